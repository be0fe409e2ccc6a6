//! The byte budget of an execution's control record: what doesn't fit goes into segments, and what is only there to
//! be read by people gives way.

use crate::command::Context;
use crate::due::{Due, DueKind};
use crate::duration::Millis;
use crate::execution::journal::{Segment, SegmentKey};
use crate::execution::{Execution, ExecutionOutcome, ExecutionState, Stuck, Turn, append, attempts};
use crate::id::{LeaseId, WorkerName};
use crate::limits::{CONTROL_RECORD_BYTES, ERROR_BYTES, LEASE_RANGE};
use crate::size;
use crate::time::Timestamp;

/// Wakes that are counted without a decision: room is kept for their digits.
const WAKES: u64 = 9_999_999_999;
/// A worker's name that most records have room for; a longer one may have to go.
const WORKER: &str = "worker-with-a-name-of-32-letters";

/// Makes the record keep its budget, and gives the segments that its journal went into for that.
pub(super) fn fit(execution: &mut Execution, context: &Context<'_>) -> Vec<(SegmentKey, Segment)> {
    cut_errors(execution, ERROR_BYTES);
    if fits(execution) {
        return vec![];
    }
    let segments = append::seal(execution, context);
    let steps: [fn(&mut Execution); 5] = [
        |execution| cut_errors(execution, 60),
        drop_worker,
        |execution| cut_errors(execution, 0),
        drop_step,
        attempts::keep_first,
    ];
    for step in steps {
        if fits(execution) {
            break;
        }
        step(execution);
    }
    segments
}

/// Whether the record stays within its budget, also once a worker has taken its next turn: taking one should cost
/// no more than its own write.
pub(super) fn fits(execution: &Execution) -> bool {
    size::of(&at_its_largest(execution)) <= CONTROL_RECORD_BYTES
}

/// Adds something that only the timeline shows, where the record has room for it: a note isn't worth a write of its own.
pub(super) fn note_if_it_fits(execution: &mut Execution, kind: &str, context: &Context<'_>) {
    append::note(execution, kind, context);
    if !fits(execution) {
        execution.journal.pop();
    }
}

/// The record with all that comes to it by itself.
fn at_its_largest(execution: &Execution) -> Execution {
    let instant = Timestamp::from_millis(9_999_999_999_999);
    let mut largest = execution.clone();
    largest.wakes = largest.wakes.max(WAKES);
    match &largest.state {
        ExecutionState::Pending(_) | ExecutionState::Waiting(_) => {
            largest.state = ExecutionState::Running(Turn {
                lease: LeaseId::from_bytes([0; 16]),
                worker: WorkerName::parse(WORKER).ok(),
                claimed_at: instant,
                lease_length: Millis::new(LEASE_RANGE.1.as_u64() - 1),
                lease_expires_at: instant,
                shared: true,
                under_way: vec![],
            });
        }
        ExecutionState::Running(_) | ExecutionState::Closing(_) => {}
        ExecutionState::Ended(_) => return largest,
    }
    largest.hinted_at = Some(instant);
    largest.kept = Some(instant);
    largest.parked = true;
    largest.due = Some(Due { at: instant, kind: DueKind::Backstop, shard: u16::MAX });
    largest
}

fn cut_errors(execution: &mut Execution, bytes: usize) {
    if let Some(Stuck::Unreadable(failure) | Stuck::Code { failure, .. }) = &mut execution.stuck {
        *failure = failure.cut(bytes);
    }
    if let Some(ExecutionOutcome::Failed { error, .. }) = outcome(execution) {
        *error = error.cut(bytes);
    }
}

fn drop_worker(execution: &mut Execution) {
    if let ExecutionState::Running(turn) = &mut execution.state {
        turn.worker = None;
    }
}

fn drop_step(execution: &mut Execution) {
    if let Some(ExecutionOutcome::Failed { step, .. }) = outcome(execution) {
        *step = None;
    }
}

/// The outcome that the record holds: its own, or the one that is being dealt with.
fn outcome(execution: &mut Execution) -> Option<&mut ExecutionOutcome> {
    match &mut execution.state {
        ExecutionState::Closing(closed) | ExecutionState::Ended(closed) => Some(&mut closed.outcome),
        ExecutionState::Pending(_) | ExecutionState::Running(_) | ExecutionState::Waiting(_) => {
            execution.failing.as_mut().map(|failing| &mut failing.outcome)
        }
    }
}
