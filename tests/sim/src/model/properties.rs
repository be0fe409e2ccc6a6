//! What must always hold, and what must be possible: without the latter, the check would hold of an empty world.

use stateright::Property;
use tickover_core::payload::{Json, Payload};
use tickover_core::task::due::visible_at;
use tickover_core::task::{Ending, Outcome, Status, Task};

use super::actor::Actor;
use super::record::Record;
use super::state::State;
use super::{Plan, Protocol};

/// The names of the properties.
pub mod name {
    pub const ONE_RESULT: &str = "at most one result is recorded";
    /// A worker that has lost the task can't record a result.
    pub const HOLDERS_RESULT: &str = "a result is that of the attempt that held the task";
    pub const END_STAYS: &str = "a record that has ended never changes";
    pub const DEADLINE_STAYS: &str = "a deadline never moves";
    pub const DUE_IN_TIME: &str = "a live record is due no later than the next instant that a user can see";
    pub const NOT_TOO_LATE: &str = "no result is decided on at or after its deadline";
    pub const NOT_LOST: &str = "where nothing more can happen, every task has ended";
    pub const ENFORCED: &str = "an instant that has passed is enforced, or a tick can enforce it";
    pub const COMPLETES: &str = "a task completes";
    pub const REHINTED: &str = "a lost hint is sent again";
    pub const TAKEN_OVER: &str = "a task is taken over from a lost worker";
    pub const EXPIRES_WAITING: &str = "a waiting task times out";
    pub const EXPIRES_HELD: &str = "a running task times out";
    pub const RETRIED: &str = "an attempt is tried again";
}

/// The properties of a world with these bounds: all that must always hold, and the possible ones that the plan names.
pub(super) fn of(plan: &Plan) -> Vec<Property<Protocol>> {
    let mut all = vec![
        Property::always(name::ONE_RESULT, |_, state: &State| state.seen.results.iter().all(|n| *n <= 1)),
        Property::always(name::HOLDERS_RESULT, |_, state: &State| {
            records(state).all(|task| is_holders(task))
        }),
        Property::always(name::END_STAYS, |_, state: &State| !state.seen.revived),
        Property::always(name::DEADLINE_STAYS, |_, state: &State| {
            records(state).all(|task| deadline_stays(task))
        }),
        Property::always(name::DUE_IN_TIME, |_, state: &State| {
            records(state).all(|task| is_due_in_time(task))
        }),
        Property::always(name::NOT_TOO_LATE, |_, state: &State| {
            records(state).all(|task| !is_too_late(task))
        }),
        Property::always(name::NOT_LOST, |model, state| !is_stuck(model, state)),
    ];
    if plan.sweeps {
        all.push(Property::always(name::ENFORCED, is_enforced));
    }
    all.extend(reachable().into_iter().filter(|property| plan.reaches.contains(&property.name)));
    all
}

fn reachable() -> [Property<Protocol>; 6] {
    [
        Property::sometimes(name::COMPLETES, |_, state: &State| {
            records(state).any(|task| task.status() == Status::Completed)
        }),
        Property::sometimes(name::RETRIED, |_, state: &State| {
            records(state).any(|task| task.attempt > 1 && task.status() == Status::Completed)
        }),
        Property::sometimes(name::TAKEN_OVER, |_, state: &State| {
            has_attempt(state, |end| end == Ending::Lost)
        }),
        Property::sometimes(name::REHINTED, |_, state: &State| {
            records(state).any(|task| task.hinted_at.is_some())
        }),
        Property::sometimes(name::EXPIRES_WAITING, |_, state: &State| {
            records(state).any(|task| task.status() == Status::TimedOut && task.history.is_empty())
        }),
        Property::sometimes(name::EXPIRES_HELD, |_, state: &State| {
            has_attempt(state, |end| matches!(end, Ending::TimedOut(_)))
        }),
    ]
}

fn records(state: &State) -> impl Iterator<Item = &Record> {
    state.table.iter().flatten()
}

fn has_attempt(state: &State, wanted: impl Fn(Ending) -> bool) -> bool {
    records(state).any(|task| task.history.iter().any(|past| wanted(past.ending)))
}

/// Whether the result names the lease of the worker that sent it.
fn is_holders(task: &Task) -> bool {
    let Some(Outcome::Completed { output: Some(Payload::Inline(output)) }) =
        task.ended().map(|ended| &ended.outcome)
    else {
        return true;
    };
    let held = task.history.last().and_then(|past| past.lease);
    held.is_some_and(|lease| *output == Json::string(&lease.as_bytes()[0].to_string()))
}

/// No operator retries a task here, so the deadline is what scheduling made it.
fn deadline_stays(task: &Task) -> bool {
    task.deadline_at == task.timeouts.schedule_to_close.map(|timeout| task.created_at.plus(timeout.after))
}

fn is_due_in_time(task: &Task) -> bool {
    match (task.due, visible_at(task)) {
        (Some(due), Some(visible_at)) => due.at <= visible_at,
        (Some(_), None) => true,
        // Only a record that has ended has no due slot.
        (None, _) => task.ended().is_some(),
    }
}

/// By the time of the decision: no store could refuse a write for the time that it takes to arrive.
fn is_too_late(task: &Task) -> bool {
    let completed = task.history.iter().filter(|past| past.ending == Ending::Completed);
    completed.into_iter().any(|past| {
        let close = task.timeouts.start_to_close.map(|timeout| timeout.after);
        let ends_at = close.zip(past.claimed_at).map(|(after, claimed_at)| claimed_at.plus(after));
        [task.deadline_at, ends_at].into_iter().flatten().any(|at| at <= past.ended_at)
    })
}

/// The clock is at its last instant, no actor has anything to do, and yet a task hasn't ended.
fn is_stuck(model: &Protocol, state: &State) -> bool {
    let live = records(state).any(|task| task.ended().is_none());
    let quiet = state.everybody().all(|(_, actor)| *actor == Actor::Idle);
    live && quiet && model.is_last(state) && stateright::Model::next_states(model, state).is_empty()
}

/// For each instant that has passed and that a user can see: a tick is busy, or a tick that read the record would
/// write.
fn is_enforced(model: &Protocol, state: &State) -> bool {
    let now = model.now(state);
    (0..model.plan.tasks).all(|task| {
        let visible_at = state.record(task).and_then(|record| visible_at(record));
        if visible_at.is_none_or(|at| at > now) {
            return true;
        }
        let busy = state.ticks.iter().any(|tick| *tick != Actor::Idle);
        let mut looked = state.clone();
        busy || model.look(&mut looked, task).is_some()
    })
}
