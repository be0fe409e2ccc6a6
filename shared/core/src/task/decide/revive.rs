//! retry: an operator revives a task that has ended without a result.
//!
//! The old deadline is removed: the timeout over all attempts becomes a timeout of each attempt. Its input stays, unless another
//! one is given.

use crate::command::Context;
use crate::decision::{NewItem, Write};
use crate::error::Reject;
use crate::payload::Payload;
use crate::task::command::NewInput;
use crate::task::decision::{Decision, Reply};
use crate::task::transition;
use crate::task::{Outcome, Task};
use crate::timeout::{AttemptTimeout, OnTimeout};

use super::schedule::{Given, payload_expiry, spill};

pub(super) fn decide(task: &Task, given: Option<&NewInput>, context: &Context<'_>) -> Decision {
    let expired = transition::expire(task, context);
    let current = expired.as_ref().unwrap_or(task);
    let Some(ended) = current.ended() else {
        if is_revived(task) {
            // A repeated call. The hint may have been lost, so it is sent again.
            let mut decision = Decision::unchanged(task, Ok(Reply::Revived));
            decision.effects.push(super::dispatch(task));
            return decision;
        }
        return Decision::refuse(Some(task), Reject::NotTerminal { status: task.status() });
    };
    match ended.outcome {
        Outcome::Completed { .. } | Outcome::Skipped => {
            Decision::refuse(Some(task), Reject::AlreadyTerminal { status: task.status() })
        }
        Outcome::Failed { .. } | Outcome::TimedOut { .. } | Outcome::Cancelled { .. } => {
            revive(task, current.clone(), given, context)
        }
    }
}

/// Whether the task hasn't changed since it was revived.
fn is_revived(task: &Task) -> bool {
    let since = task.history.last().map(|past| past.ended_at);
    task.hint_at().is_some()
        && task.attempt == 0
        && task.revived_at.is_some_and(|revived| since.is_none_or(|ended| ended <= revived))
}

fn revive(before: &Task, mut task: Task, given: Option<&NewInput>, context: &Context<'_>) -> Decision {
    if let Some(whole) = task.timeouts.schedule_to_close.take() {
        let on_timeout = if whole.is_error { OnTimeout::Terminal } else { OnTimeout::Cancel };
        let fresh = AttemptTimeout { after: whole.after, on_timeout };
        let shorter = task.timeouts.start_to_close.is_some_and(|own| own.after <= whole.after);
        if !shorter {
            task.timeouts.start_to_close = Some(fresh);
        }
    }
    task.deadline_at = None;
    task.attempt = 0;
    task.losses = 0;
    task.revived_at = Some(context.now);
    task.by = context.by.cloned().map(Box::new);
    transition::wait_from(&mut task, context.now, context.now);
    if given.is_some() {
        task.input = None;
    }
    let extensions = extend_payloads(&mut task, context);
    let (task, new_items) = match given {
        Some(given) => with_input(task, given, context),
        None => (task, vec![]),
    };
    let mut decision = super::update(before, task, context, Ok(Reply::Revived));
    decision.writes.splice(0..0, extensions);
    Decision { new_items, ..decision }
}

/// The same task with this input. Its labels stay where they are.
fn with_input(task: Task, given: &NewInput, context: &Context<'_>) -> (Task, Vec<NewItem>) {
    let labels = task.labels.clone();
    let NewInput { input, blob_id } = given;
    let given = Given { input: Some(input), labels: None, blob_ids: [*blob_id, *blob_id] };
    let (task, new_items) = spill(task, &given, context);
    (Task { labels, ..task }, new_items)
}

/// Extends the expiry of the payloads, which was set when the task was scheduled, and of the details at a heartbeat.
pub(super) fn extend_payloads(task: &mut Task, context: &Context<'_>) -> Vec<Write> {
    let expires_at = payload_expiry(task, context);
    [&mut task.input, &mut task.labels, &mut task.details]
        .into_iter()
        .flatten()
        .filter_map(|payload| match payload {
            Payload::Inline(_) => None,
            Payload::Blob(blob) => {
                blob.expires_at = expires_at;
                Some(Write::extend_blob(blob))
            }
        })
        .collect()
}
