//! A remote step notifies its execution when it ends, and again if its end is reported again.

use crate::decision::Effect;
use crate::task::Status;
use crate::timeout::OnTimeout::Retry;

use super::fixture::{Scene, parent, task};
use super::life::{ACCEPTED, DUPLICATE};

#[track_caller]
fn assert_notifies(scene: Scene) -> Scene {
    assert_eq!(scene.decision().effects, [Effect::NotifyParent(parent())]);
    scene
}

#[test]
fn every_end_of_a_remote_step_notifies_its_parent() {
    let step = || task().step().scheduled();
    assert_notifies(step().claim("a").complete("a").is(Status::Completed));
    assert_notifies(step().claim("a").fail("a").is(Status::Failed));
    assert_notifies(step().cancel().is(Status::Cancelled));
    assert_notifies(step().claim("a").cancel_by_force().is(Status::Cancelled));
    assert_notifies(step().claim("a").cancel().release("a").is(Status::Cancelled));
    assert_notifies(task().step().deadline("1m").scheduled().at("1m").tick().is(Status::TimedOut));
    assert_notifies(task().step().deadline("1m").scheduled().at("1m").timer_for("1m").is(Status::TimedOut));
    assert_notifies(
        task()
            .step()
            .heartbeats("1m", Retry)
            .scheduled()
            .claim("a")
            .at("1m")
            .complete("a")
            .is(Status::TimedOut),
    );
    assert_notifies(
        task().step().max_losses(0).scheduled().claim("a").at("1m").claim("b").is(Status::Failed),
    );
    assert_notifies(task().step().attempts(0).scheduled().is(Status::Skipped));
}

#[test]
fn an_end_that_is_reported_again_notifies_again() {
    let scene = task().step().scheduled().claim("a").complete("a").replies(ACCEPTED);
    assert_notifies(assert_notifies(scene).complete("a").replies(DUPLICATE).changes_nothing());
    let scene = task().step().scheduled().claim("a").fail("a");
    assert_notifies(assert_notifies(scene).fail("a").replies(DUPLICATE).changes_nothing());
}

#[test]
fn an_open_step_does_not_notify() {
    let scene = task().step().attempts(2).scheduled().sends_hint_for("0s").claim("a").sends_nothing();
    let scene = scene.heartbeat("a").sends_nothing().fail("a").sends_hint_for("0s");
    let told = |scene: &Scene| scene.decision().effects.contains(&Effect::NotifyParent(parent()));
    assert!(!told(&scene));
    let scene = assert_notifies(scene.claim("b").complete("b")).at("1m").tick().sends_nothing();
    scene.claim("c").sends_nothing();
    task().scheduled().claim("a").complete("a").sends_nothing();
}

#[test]
fn a_step_that_is_started_again_after_its_end_notifies_again() {
    let scene = task().step().scheduled().claim("a").complete("a");
    assert_notifies(scene.schedule_again().changes_nothing());
    // A step that is open notifies when it ends.
    task().step().scheduled().schedule_again().sends_hint_for("0s");
    task().step().scheduled().claim("a").schedule_again().sends_nothing();
    // A task without a parent notifies no execution.
    task().scheduled().claim("a").complete("a").schedule_again().sends_nothing();
}
