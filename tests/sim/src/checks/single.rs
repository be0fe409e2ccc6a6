//! What must hold of unique tasks and bursts: of a key never two at once, and of a burst the last request, in time.

use std::collections::{BTreeMap, BTreeSet};

use tickover_core::execution::Execution;
use tickover_core::id::Incarnation;
use tickover_core::payload::{Json, Payload};
use tickover_core::task::command::{Bounce, Command};
use tickover_core::task::decision::Reply;
use tickover_core::task::{State, Task};

use super::story::{Step, Stories};
use crate::Run;
use crate::history::{Answer, Decided, What};
use crate::plan::single::KeyUse;
use crate::trace::brief;
use crate::violation::{Invariant, Violation};

pub(super) fn of_run(stories: &Stories<'_>, run: &Run) -> Vec<Violation> {
    let mut found = one_holds_the_key(run);
    found.extend(one_execution_holds_the_key(run));
    found.extend(acknowledged_requests_are_written(stories, run));
    found.extend(stories.steps().filter_map(|step| of_step(step, run)));
    found
}

fn found(step: &Step<'_>, what: &str) -> Violation {
    Violation::new(Invariant::Single, step.at, format!("{}: {what}", brief(step.after)))
}

/// Whether a task has its key. An operator may revive one whose key has gone on.
fn holds(key: KeyUse, task: &Task) -> bool {
    let is_new = task.attempt == 0 && task.history.is_empty();
    let holds = match key {
        KeyUse::Open => task.status().is_live(),
        KeyUse::Waiting | KeyUse::Burst => is_new && matches!(task.state, State::Pending(_)),
    };
    holds && task.revived_at.is_none()
}

fn one_holds_the_key(run: &Run) -> Vec<Violation> {
    let mut holders: BTreeMap<&'static str, BTreeMap<Incarnation, &Task>> = BTreeMap::new();
    let mut found = vec![];
    for event in &run.events {
        let Some(after) = event.what.task_change().map(|change| &change.after) else { continue };
        let Some(key) = KeyUse::of(&after.kind) else { continue };
        let all = holders.entry(key.name()).or_default();
        if holds(key, after) {
            all.insert(after.incarnation, after);
        } else {
            all.remove(&after.incarnation);
        }
        if all.len() > 1 {
            let names: Vec<_> = all.values().map(|task| brief(task)).collect();
            let what = format!("the key of {} has several tasks: {}", after.kind, names.join("; "));
            found.push(Violation::new(Invariant::Single, event.at, what));
        }
    }
    found
}

/// The same of executions. One that had ended and was restarted has let its key go.
fn one_execution_holds_the_key(run: &Run) -> Vec<Violation> {
    let mut holders: BTreeMap<&'static str, BTreeMap<Incarnation, &Execution>> = BTreeMap::new();
    let mut has_ended = BTreeSet::new();
    let mut found = vec![];
    for event in &run.events {
        let Some(after) = event.what.execution_change().map(|change| &change.after) else { continue };
        let Some(key) = KeyUse::of_execution(after) else { continue };
        if after.closed().is_some() {
            has_ended.insert(after.incarnation);
        }
        let holds = match key {
            KeyUse::Open => !has_ended.contains(&after.incarnation),
            KeyUse::Waiting | KeyUse::Burst => after.is_untouched(),
        };
        let all = holders.entry(key.name()).or_default();
        if holds {
            all.insert(after.incarnation, after);
        } else {
            all.remove(&after.incarnation);
        }
        if all.len() > 1 {
            let ids: Vec<_> = all.values().map(|execution| execution.id.as_str()).collect();
            let what = format!("the key {} has several executions: {}", key.name(), ids.join(", "));
            found.push(Violation::new(Invariant::Single, event.at, what));
        }
    }
    found
}

/// The bounce that a step wrote.
fn bounced(decided: &Decided) -> Option<&Bounce> {
    let is_taken = decided.outcome == Ok(Reply::Bounced { taken: true });
    if let Command::Bounce(bounce) = &decided.command { Some(&**bounce).filter(|_| is_taken) } else { None }
}

/// An answer that a request has joined a burst is given only after it was written.
fn acknowledged_requests_are_written(stories: &Stories<'_>, run: &Run) -> Vec<Violation> {
    let mut found = vec![];
    for event in &run.events {
        let What::Answered { call, answer: Answer::Scheduled(all) } = &event.what else { continue };
        for made in all.iter().flatten().filter(|made| made.existed) {
            let steps = stories.task(made.incarnation);
            let is_burst =
                steps.first().is_some_and(|step| KeyUse::of(&step.after.kind) == Some(KeyUse::Burst));
            let by_this_call = |step: &Step<'_>| {
                step.at <= event.at
                    && step.decided.is_some_and(|decided| decided.call == *call && bounced(decided).is_some())
            };
            if is_burst && !steps.iter().any(by_this_call) {
                let what = format!("the answer to call #{call} says that it joined {}", made.task);
                found.push(Violation::new(Invariant::Single, event.at, what));
            }
        }
    }
    found
}

/// Only a bounce changes what runs: to what was asked last, from an instant within its bounds.
fn of_step(step: &Step<'_>, run: &Run) -> Option<Violation> {
    KeyUse::of(&step.after.kind).filter(|key| *key == KeyUse::Burst)?;
    let Some(bounce) = step.decided.and_then(bounced) else {
        let is_same = step.before.is_none_or(|before| before.input == step.after.input);
        return (!is_same).then(|| found(step, "its input changed without a request"));
    };
    if input(step.after, run) != bounce.input {
        return Some(found(step, "it doesn't run the last request of its burst"));
    }
    let State::Pending(pending) = &step.after.state else {
        return Some(found(step, "a request joined a burst that doesn't wait"));
    };
    let now = step.decided?.now;
    let latest = step.after.created_at.plus(bounce.at_most).max(now);
    let quiet = now.plus(bounce.wait).min(latest);
    let is_right = (quiet..=latest).contains(&pending.available_at);
    (!is_right).then(|| found(step, "it starts outside of the bounds of its burst"))
}

fn input(task: &Task, run: &Run) -> Option<Json> {
    match task.input.as_ref()? {
        Payload::Inline(json) => Some(json.clone()),
        Payload::Blob(at) => run.world.ledger.blob(&at.id),
    }
}
