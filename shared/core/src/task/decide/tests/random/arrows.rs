//! The arrows that random lives take are those of the document.

use std::cell::RefCell;
use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::fixture::Scene;
use super::super::fixture::task;
use super::{RandomTask, passing, plan, step};
use crate::arrows::{Arrow, TIME, TRIED, are_documented, arrow, name_of, same_lives};
use crate::command::Context;
use crate::id::{LeaseId, Nonce};
use crate::task::command::Command;
use crate::task::{State, Task, transition};

/// What an arrow changes: the status, or which attempt it is.
fn place(task: &Task) -> (&'static str, u32, Option<LeaseId>) {
    (task.status().as_str(), task.attempt, task.running().map(|running| running.lease))
}

impl RandomTask {
    /// The arrows that the command would take: first that of an instant that has passed.
    fn arrows_of(&self, command: &Command) -> Vec<Arrow> {
        let nonce = Nonce::from_bytes([0; 8]);
        let context = Context { now: self.now, nonce, limits: &self.plan.limits, by: None };
        let decision = crate::task::decide(self.record.as_ref(), command, &context);
        let after = decision.record().filter(|_| !decision.writes.is_empty());
        let Some(after) = after else { return vec![] };
        let Some(before) = self.record.as_ref().filter(|task| !task.is_gone(self.now)) else {
            return vec![arrow("new", &name_of(command), place(after).0)];
        };
        let expired = transition::expire(before, &context).filter(|_| !stops_time(command, before));
        let between = expired.as_ref().unwrap_or(before);
        let first = expired.as_ref().map(|_| arrow(place(before).0, TIME, place(between).0));
        let is_moved = place(between) != place(after);
        let second = is_moved.then(|| arrow(place(between).0, &name_of(command), place(after).0));
        first.into_iter().chain(second).collect()
    }
}

/// Whether no timeout ends the task, because it waits and its execution is paused.
const fn stops_time(command: &Command, before: &Task) -> bool {
    let is_of_a_pause = match command {
        Command::Hold => true,
        Command::Claim(claim) => claim.held,
        _ => false,
    };
    is_of_a_pause && matches!(before.state, State::Pending(_))
}

/// The last step of a scene.
type Last = fn(Scene) -> Scene;

/// Arrows that are rare in random lives, by the last step of a scene.
fn rare() -> impl Iterator<Item = Arrow> {
    let running = || task().max_losses(0).scheduled().claim_for("a", "10s");
    let doomed =
        |is_error| task().attempts(2).delay("1h").with_total_timeout("1h", is_error).scheduled().claim("a");
    let scenes: Vec<(&str, Scene, Last)> = vec![
        ("release", running().cancel(), |scene| scene.release("a")),
        ("fail", running().cancel(), |scene| scene.fail("a")),
        ("fail", doomed(true), |scene| scene.fail("a")),
        ("fail", doomed(false), |scene| scene.fail("a")),
        ("claim", running().cancel().at("10s"), |scene| scene.claim("b")),
        ("claim", running().at("10s"), |scene| scene.claim("b")),
        ("claim", task().scheduled().claim_for("a", "10s").at("10s"), |scene| scene.claim_held("b")),
    ];
    scenes.into_iter().map(|(by, scene, last)| {
        let from = place(scene.record()).0;
        arrow(from, by, place(last(scene).record()).0)
    })
}

#[test]
fn the_states_and_arrows_of_a_task_are_those_of_the_document() {
    let taken = RefCell::new(BTreeSet::new());
    let moments = prop::collection::vec((passing(), prop::collection::vec(step(), TRIED)), 1..60);
    same_lives(&(plan(), moments), |(plan, moments)| {
        let mut life = RandomTask { record: None, ..RandomTask::start(plan) };
        let schedule = Command::Schedule(Box::new(life.plan.schedule.clone()));
        taken.borrow_mut().extend(life.arrows_of(&schedule));
        life.tell(&schedule);
        for (passing, steps) in &moments {
            life.pass(*passing);
            let leases = life.leases.len();
            for step in steps {
                let command = life.command(step);
                taken.borrow_mut().extend(life.arrows_of(&command));
            }
            life.leases.truncate(leases);
            let command = life.command(&steps[0]);
            life.tell(&command);
        }
    });
    let mut taken = taken.into_inner();
    taken.extend(rare());
    are_documented(&taken, "\n## Every state and arrow of a task\n");
}
