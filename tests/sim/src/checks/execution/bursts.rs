//! What must hold of a burst of starts: the execution that waits runs what was asked last, from an instant within the
//! burst's bounds.

use tickover_core::execution::ExecutionState;
use tickover_core::execution::command::{Bounce, Command};
use tickover_core::execution::decision::Reply;
use tickover_core::payload::Payload;

use super::found;
use super::story::Step;
use crate::history::execution::Ruling;
use crate::violation::{Invariant, Violation};

/// The bounce that a step wrote.
fn bounced(ruling: &Ruling) -> Option<&Bounce> {
    match (&ruling.command, &ruling.outcome) {
        (Command::Bounce(bounce), Ok(Reply::Bounced { taken: true })) => Some(bounce),
        _ => None,
    }
}

pub(super) fn of_step(step: &Step<'_>) -> Option<Violation> {
    let ruling = step.ruling?;
    let bounce = bounced(ruling)?;
    let wrong = |what: &str| Some(found(Invariant::Single, step, what.to_owned()));
    // The inputs of these executions are short enough for their record.
    let runs = match step.after.input.as_ref() {
        Some(Payload::Inline(json)) => Some(json),
        Some(Payload::Blob(_)) | None => None,
    };
    if runs != bounce.given.input.as_ref() {
        return wrong("it doesn't run the last start of its burst");
    }
    let ExecutionState::Pending(ready) = &step.after.state else {
        return wrong("a start joined a burst that doesn't wait");
    };
    let latest = step.after.created_at.plus(bounce.at_most).max(ruling.now);
    let quiet = ruling.now.plus(bounce.wait).min(latest);
    let is_right = (quiet..=latest).contains(&ready.available_at);
    if is_right { None } else { wrong("it starts outside of the bounds of its burst") }
}
