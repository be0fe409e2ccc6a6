//! Records in the line of a key in the byte budget: the position is larger than the flag of a pause.

use crate::error::Reject;
use crate::id::TaskId;
use crate::payload::Payload;
use crate::task::Status;
use crate::task::command::Command;
use crate::task::decide::tests::fixture::{Plan, Scene, json, lease, task};
use crate::task::decide::tests::size::details::{details, heartbeat_with_places};
use crate::{flow, limits};

use super::{aged, claim_like, fail, largest, largest_step, text};

/// The most keys with the longest texts, as far as the record has space for them.
fn limited(mut plan: Plan) -> Plan {
    for _ in 0..flow::CONCURRENCY_KEYS_MAX {
        plan = plan.limited(1_000);
    }
    for gated in &mut plan.schedule.flow.gates {
        gated.text = "k".repeat(crate::gate::TEXT_MAX);
    }
    plan
}

fn claim(scene: Scene, name: &str) -> Scene {
    let version = scene.record().version;
    let (since, until) = (scene.now(), scene.now().plus(limits::LEASE_RANGE.1).plus(crate::gate::GRACE));
    claim_like(scene, name, |claim| claim.places = Some(crate::gate::Places { since, until, version }))
}

/// Waits in line before each attempt, and once more after its worker was lost. Each step checks the budget.
fn through_lines(begin: impl Fn() -> Scene) {
    let message = "m".repeat(10_000);
    let mut scene = begin();
    for name in ["a", "b", "c", "d"] {
        let available_at = scene.pending().available_at;
        scene = scene.at_instant(available_at).wait_in_line();
        assert!(scene.record().parked.in_line().is_some());
        scene = claim(scene, name).is(Status::Running);
        let lost = scene.running().lease_expires_at;
        scene = scene.at_instant(lost).wait_in_line().is(Status::Running);
        assert!(scene.record().parked.in_line().is_some());
        scene = claim(scene, &format!("{name}{name}")).is(Status::Running);
        scene = fail(scene, &format!("{name}{name}"), &message, true).is(Status::Pending);
    }
    let available_at = scene.pending().available_at;
    scene.at_instant(available_at).wait_in_line().cancel().is(Status::Cancelled);
}

#[test]
fn a_task_in_line_stays_within_the_budget_with_everything_at_its_maximum() {
    let mut accepted = 0;
    // Keys and policies share their space: so the ids are as long as is just accepted.
    for keys in 1..=flow::CONCURRENCY_KEYS_MAX {
        for plan in [largest, largest_step] {
            for input in ["1", &text(200), &text(4_000)] {
                let with_id = |length: usize| {
                    let mut plan = limited(plan().input(input).labels("{}"));
                    plan.schedule.flow.gates.truncate(keys);
                    plan.schedule.retry.delay = task().schedule.retry.delay;
                    plan.schedule.retry.non_retryable.clear();
                    plan.schedule.id = TaskId::parse("i".repeat(length)).unwrap();
                    plan
                };
                let fits = |length: &usize| {
                    let scene = with_id(*length).scheduled();
                    let refused = matches!(scene.decision().reply(), Err(Reject::LimitExceeded { .. }));
                    assert!(refused || scene.decision().reply().is_ok(), "{:?}", scene.decision().reply());
                    !refused
                };
                if let Some(length) = (1..=limits::ID_MAX).rev().find(fits) {
                    accepted += 1;
                    through_lines(|| aged(with_id(length)));
                }
            }
        }
    }
    assert!(accepted >= 4, "{accepted}");
}

#[test]
fn inputs_and_labels_of_any_size_leave_space_for_the_line() {
    let mut accepted = 0;
    for bytes in (2..700).step_by(11) {
        for keys in 1..=flow::CONCURRENCY_KEYS_MAX {
            for labels in [None, Some(60), Some(bytes)] {
                let plan = || {
                    let mut plan = limited(task().attempts(-1)).input(&text(bytes));
                    plan.schedule.flow.gates.truncate(keys);
                    plan.schedule.labels = labels.map(|bytes| json(&text(bytes)));
                    plan
                };
                if plan().scheduled().decision().reply().is_ok() {
                    accepted += 1;
                    through_lines(|| aged(plan()));
                }
            }
        }
    }
    assert!(accepted > 300, "{accepted}");
}

#[test]
fn details_are_still_there_after_a_stay_in_the_line() {
    let mut inline = 0;
    for input in (2..500).step_by(7) {
        for bytes in [100, 300, 400, 512] {
            let plan = task().limited(1).attempts(-1).input(&text(input));
            let scene = heartbeat_with_places(claim(aged(plan), "a"), "a", bytes);
            let kept = details(&scene);
            assert!(kept.is_some());
            inline += usize::from(matches!(scene.record().details, Some(Payload::Inline(_))));
            let lost = scene.running().lease_expires_at;
            let scene = scene.at_instant(lost).wait_in_line();
            assert!(scene.record().parked.in_line().is_some());
            assert_eq!(details(&scene), kept, "input {input}, details {bytes}");
            let scene = claim(scene, "b").is(Status::Running);
            assert_eq!(details(&scene), kept, "input {input}, details {bytes}");
            let scene = fail(scene, "b", &"m".repeat(10_000), true);
            let available_at = scene.pending().available_at;
            let scene = scene.at_instant(available_at).wait_in_line();
            assert_eq!(details(&scene), kept, "input {input}, details {bytes}");
            assert_eq!(details(&scene.run(&Command::Release { lease: lease("b") })), kept);
        }
    }
    assert!(inline > 0);
}
