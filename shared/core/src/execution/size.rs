//! The byte budget of an execution's control record. Entries that don't fit move into segments. Fields that only people
//! read are cut or dropped.

use crate::command::Context;
use crate::due::{Due, DueKind};
use crate::duration::Millis;
use crate::execution::journal::{Segment, SegmentKey};
use crate::execution::{
    Execution, ExecutionOutcome, ExecutionState, Held, Stuck, Turn, append, attempts, retention, values,
};
use crate::id::{LeaseId, WorkerName};
use crate::lane::Lane;
use crate::limits::{CONTROL_RECORD_BYTES, ERROR_BYTES, LEASE_RANGE};
use crate::parked::Parked;
use crate::payload::{BlobRef, Json};
use crate::size;
use crate::time::Timestamp;

/// Wakes are counted without a decision: the budget reserves space for this many digits.
const WAKES: u64 = 9_999_999_999;
/// The budget reserves space for a worker's name of this length. A longer one may be dropped.
const WORKER: &str = "worker-with-a-name-of-32-letters";

/// What was moved out of a record.
#[derive(Default)]
pub(super) struct Moved {
    pub(super) segments: Vec<(SegmentKey, Segment)>,
    /// The published values.
    pub(super) values: Option<(BlobRef, Json)>,
}

/// Reduces the record to its budget. Returns the segments that its entries were moved into, all but the last `stay`, and
/// the published values if there is no space for them.
pub(super) fn fit(execution: &mut Execution, stay: u32, context: &Context<'_>) -> Moved {
    let moved = fit_turn(execution, stay, context);
    drop_events(execution);
    moved
}

/// The same for what is still there once the next turn has started.
fn fit_turn(execution: &mut Execution, stay: u32, context: &Context<'_>) -> Moved {
    cut_errors(execution, ERROR_BYTES);
    if fits(execution) {
        return Moved::default();
    }
    let segments = append::seal(execution, stay, context);
    let mut values = None;
    if !fits(execution) {
        let expires_at = retention::first_expiry(execution, context.now, context.limits);
        values = values::move_aside(execution, execution.kept.unwrap_or(expires_at));
    }
    let steps: [fn(&mut Execution); 9] = [
        drop_texts,
        |execution| cut_errors(execution, 60),
        drop_worker,
        |execution| cut_errors(execution, 0),
        drop_step,
        drop_tenant,
        attempts::keep_first,
        drop_trace,
        drop_past,
    ];
    for step in steps {
        if fits(execution) {
            break;
        }
        step(execution);
    }
    Moved { segments, values }
}

/// Whether the record is within its budget, and still is once a worker has started its next turn: to start a turn
/// should cost no more than its own write.
pub(super) fn fits(execution: &Execution) -> bool {
    size::of(&largest_form(execution)) <= CONTROL_RECORD_BYTES
}

/// Adds a note, which only the timeline shows, if the record has space for it: a note isn't worth a further write.
pub(super) fn note_if_it_fits(execution: &mut Execution, kind: &str, context: &Context<'_>) {
    append::note(execution, kind, context);
    if !fits(execution) {
        execution.journal.pop();
    }
}

/// Drops the names of awaited events that don't fit into a record that waits. They are gone when the next turn starts, so
/// they move no entries into segments.
fn drop_events(execution: &mut Execution) {
    while size::of(&grown(execution)) > CONTROL_RECORD_BYTES {
        let ExecutionState::Waiting(waiting) = &mut execution.state else { return };
        if waiting.events.pop().is_none() {
            return;
        }
        waiting.has_more_events = true;
    }
}

/// The record at the largest size that it can reach in this state before the next decision measures it.
fn grown(execution: &Execution) -> Execution {
    let instant = Timestamp::from_millis(9_999_999_999_999);
    let mut grown = execution.clone();
    grown.wakes = grown.wakes.max(WAKES);
    if let Some(admission) = grown.admission.as_mut().filter(|admission| !admission.gates.is_empty()) {
        admission.held = Some(Held { mark: u32::MAX, until_day: 99_999 });
    }
    if let ExecutionState::Ended(_) = &grown.state {
        return grown;
    }
    grown.hinted_at = Some(instant);
    grown.kept = Some(instant);
    grown.parked = Parked::InLine(crate::gate::Position { since: instant, version: u64::MAX });
    grown.due = Some(Due { at: instant, kind: DueKind::Backstop, shard: u16::MAX });
    grown
}

/// The same, or by the start of a turn.
fn largest_form(execution: &Execution) -> Execution {
    let instant = Timestamp::from_millis(9_999_999_999_999);
    let mut largest = grown(execution);
    match &largest.state {
        ExecutionState::Pending(_) | ExecutionState::Waiting(_) => {
            largest.state = ExecutionState::Running(Turn {
                lease: LeaseId::from_bytes([0; 16]),
                worker: WorkerName::parse(WORKER).ok(),
                claimed_at: instant,
                lease_length: Millis::new(LEASE_RANGE.1.as_u64() - 1),
                lease_expires_at: instant,
                shared: true,
                after_loss: true,
                outside: false,
                timed_attempts: vec![],
            });
        }
        ExecutionState::Running(_) | ExecutionState::Closing(_) | ExecutionState::Ended(_) => {}
    }
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

/// Reduces a new record, whose payloads are already in it or aside. Returns the segment of its first event, if there is no
/// space for that.
pub(super) fn fit_new(execution: &mut Execution, context: &Context<'_>) -> Vec<(SegmentKey, Segment)> {
    if fits(execution) {
        return vec![];
    }
    drop_texts(execution);
    if fits(execution) { vec![] } else { append::seal(execution, 0, context) }
}

/// The texts of its keys are for people, and the records of the keys have them too.
fn drop_texts(execution: &mut Execution) {
    let Some(admission) = &mut execution.admission else { return };
    for gated in &mut admission.gates {
        gated.text.clear();
    }
    if let Some(paced) = &mut admission.paced {
        paced.text.clear();
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

/// Its turns then stand among those without a fairness key. It takes names that are all at their maximum.
const fn drop_tenant(execution: &mut Execution) {
    execution.lane.tenant = None;
}

/// Its later steps and children then belong to no trace.
const fn drop_trace(execution: &mut Execution) {
    execution.trace = None;
}

/// Deadlines and attempts that don't count any more; and the order of its turns, if it has no more of them. If it is
/// restarted, it has new deadlines and attempts, and no order.
fn drop_past(execution: &mut Execution) {
    let is_closed = execution.closed().is_some();
    if is_closed || execution.failing.is_some() {
        (execution.deadline_at, execution.run_deadline_at) = (None, None);
        execution.attempt = None;
    }
    if is_closed {
        execution.lane = Lane::default();
    }
}

/// The outcome in the record: its own, or the failure that the `on_failure` code is handling.
fn outcome(execution: &mut Execution) -> Option<&mut ExecutionOutcome> {
    match &mut execution.state {
        ExecutionState::Closing(closed) | ExecutionState::Ended(closed) => Some(&mut closed.outcome),
        ExecutionState::Pending(_) | ExecutionState::Running(_) | ExecutionState::Waiting(_) => {
            execution.failing.as_mut().map(|failing| &mut failing.outcome)
        }
    }
}
