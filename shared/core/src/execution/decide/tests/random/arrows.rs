//! The arrows that random lives take are those of the document.

use std::cell::RefCell;
use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::fixture::Scene;
use super::super::fixture::{Plan, begun, execution, span, t};
use super::steps::Step;
use super::{Life, passing, plan, step};
use crate::arrows::{Arrow, TIME, TRIED, are_documented, arrow, name_of, same_lives};
use crate::command::Context;
use crate::execution::command::{Cleanup, Command};
use crate::execution::{Execution, ExecutionState, closing, decide};
use crate::id::{LeaseId, Nonce};

/// What an arrow changes: the state, the run, whose turn it is, or whether the code that handles a failure runs.
const fn place(execution: &Execution) -> (&'static str, u32, Option<LeaseId>, bool) {
    let (state, lease) = match &execution.state {
        ExecutionState::Pending(_) => ("pending", None),
        ExecutionState::Running(turn) => ("running", Some(turn.lease)),
        ExecutionState::Waiting(_) => ("waiting", None),
        ExecutionState::Closing(_) => ("closing", None),
        ExecutionState::Ended(_) => ("ended", None),
    };
    (state, execution.run, lease, execution.failing.is_some())
}

impl Life {
    /// The arrows that the command would take: first that of a deadline that has passed.
    fn arrows_of(&self, command: &Command) -> Vec<Arrow> {
        let nonce = Nonce::from_bytes([0; 8]);
        let context = Context { now: self.now, nonce, limits: &self.plan.limits, by: None };
        let decision = decide(self.record.as_ref(), command, &context);
        let after = decision.record().filter(|_| !decision.writes.is_empty());
        let Some(after) = after else { return vec![] };
        let Some(before) = self.record.as_ref().filter(|execution| !execution.is_gone(self.now)) else {
            return vec![arrow("new", &name_of(command), place(after).0)];
        };
        let expired = closing::expire(before, &context);
        let between = expired.as_ref().unwrap_or(before);
        let first = expired.as_ref().map(|_| arrow(place(before).0, TIME, closed(before, between)));
        let is_moved = place(between) != place(after) && between.closed().is_none_or(|_| expired.is_none());
        let second = is_moved.then(|| arrow(place(between).0, &name_of(command), closed(between, after)));
        first.into_iter().chain(second).collect()
    }
}

/// The state to which an arrow leads. One that is closed without work left passes `closing` in the same write.
const fn closed(before: &Execution, after: &Execution) -> &'static str {
    if before.closed().is_none() && after.closed().is_some() { "closing" } else { place(after).0 }
}

/// The last step of a scene.
type Last = fn(Scene) -> Scene;

/// Arrows that are rare in random lives, by the last step of a scene.
fn rare() -> impl Iterator<Item = Arrow> {
    let running = || execution().started().start_turn("a");
    let undoing = || Cleanup { undoes: true, ..Cleanup::default() };
    let asleep = || running().suspend("a", |suspend| suspend.until = Some(t("1h")));
    let undoes = || running().suspend("a", |suspend| suspend.cleanup = undoing());
    let spent = |plan: Plan| plan.limited(|limits| limits.idle_turns = 1).started().start_turn("a");
    let in_vain = |plan: Plan| spent(plan).suspend("a", |suspend| suspend.until = Some(t("0s")));
    let handles = execution().started().edit(|execution| execution.on_cancel = Some(span("1h")));
    let failing = execution().deadline("1m").on_failure("1h").started().start_turn("a").wait("a");
    let overdue = || running().record_entries("a", vec![begun("charge", "10s")]).at("1m");
    let scenes: Vec<(&str, Scene, Last)> = vec![
        ("retry_step", running().fail_by_step("a", "charge"), |scene| scene.retry_step("charge")),
        ("release", running().cancel(), |scene| scene.release("a", "0s")),
        ("cancel", asleep(), Scene::cancel),
        ("terminate", asleep(), Scene::terminate),
        ("time", failing, |scene| scene.at("1m").tick()),
        ("cancel", undoes(), Scene::cancel),
        ("start_turn", running().at("1h"), |scene| scene.start_turn("b")),
        ("start_turn", spent(execution()).at("1h"), |scene| scene.start_turn("b")),
        ("start_turn", spent(execution().on_failure("1h")).at("1h"), |scene| scene.start_turn("b")),
        ("start_turn", in_vain(execution()), |scene| scene.start_turn("b")),
        ("start_turn", in_vain(execution().on_failure("1h")), |scene| scene.start_turn("b")),
        ("cancel", handles, Scene::cancel),
        ("due", overdue(), Scene::next_tick),
        ("timer", overdue(), |scene| scene.timer_for("10s")),
        ("resume", running().pause().at("1h"), Scene::resume),
    ];
    scenes.into_iter().map(|(by, scene, last)| {
        let before = scene.record().clone();
        arrow(place(&before).0, by, closed(&before, last(scene).record()))
    })
}

#[test]
fn the_states_and_arrows_of_an_execution_are_those_of_the_document() {
    let taken = RefCell::new(BTreeSet::new());
    let moments = prop::collection::vec((passing(), prop::collection::vec(step(), TRIED)), 1..60);
    same_lives(&(plan(), moments), |(plan, moments)| {
        let start = Command::Start(Box::new(plan.start.clone()));
        let mut life = Life::begin(plan);
        life.record = None;
        taken.borrow_mut().extend(life.arrows_of(&start));
        life.apply(&start);
        for (passing, steps) in &moments {
            life.pass(*passing);
            let leases = life.leases.len();
            for step in steps {
                let command = life.command(step);
                taken.borrow_mut().extend(life.arrows_of(&command));
            }
            life.leases.truncate(leases);
            if matches!(steps[0], Step::Wake) {
                life.wake();
                continue;
            }
            let command = life.command(&steps[0]);
            life.apply(&command);
        }
    });
    let mut taken = taken.into_inner();
    taken.extend(rare());
    are_documented(&taken, "\n## Every state and arrow of an execution\n");
}
