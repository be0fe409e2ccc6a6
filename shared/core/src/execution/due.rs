//! When the tick must read an execution: too early is harmless, and it is never too late.

use crate::due::{Due, DueKind, SLEEP_PROBE, START_LEAD, shard_of_name};
use crate::due_slot::{self, HasDueSlot};
use crate::duration::Millis;
use crate::execution::{
    DeadlineKind, Execution, ExecutionOutcome, ExecutionState, Ready, Turn, Waiting, attempts, retention,
};
use crate::id::RecordId;
use crate::limits::{Limits, QUEUE_DELAY_MAX};
use crate::parked::Parked;
use crate::time::{Timestamp, Wait, earliest, is_beyond};
use crate::timeout::Expired;

/// The last turn may have missed the end of a step or child that came less than this before it was suspended. It saw
/// all earlier ends.
const MISSED_WITHIN: Millis = Millis::from_secs(60);

/// The earliest instant at which something that a user can see happens to this execution by itself.
pub fn visible_at(execution: &Execution) -> Option<Timestamp> {
    earliest(instants(execution))
}

/// The deadline that comes first.
pub fn deadline_at(execution: &Execution) -> Option<Timestamp> {
    earliest(deadlines(execution))
}

/// The deadlines that count, and the first timeout of an attempt.
fn instants(execution: &Execution) -> [Option<Timestamp>; 3] {
    let [whole, run] = deadlines(execution);
    [whole, run, attempts::earliest_timeout_at(execution)]
}

/// The deadlines that count: while the `on_failure` or `on_cancel` code runs, only its own.
fn deadlines(execution: &Execution) -> [Option<Timestamp>; 2] {
    match (&execution.state, &execution.failing) {
        (ExecutionState::Closing(_) | ExecutionState::Ended(_), _) => [None; 2],
        (
            ExecutionState::Pending(_) | ExecutionState::Running(_) | ExecutionState::Waiting(_),
            Some(failing),
        ) => [Some(failing.deadline_at), None],
        (ExecutionState::Pending(_) | ExecutionState::Running(_) | ExecutionState::Waiting(_), None) => {
            [execution.deadline_at, execution.counting_run_deadline()]
        }
    }
}

/// When the tick must record the timeout of an attempt, if its worker hasn't.
pub fn attempt_timeout_at(execution: &Execution) -> Option<Timestamp> {
    attempts::earliest_timeout_at(execution)
}

/// When the hint of this execution arrives, if one should be in its queue or on its way to it.
///
/// Hints that notify of a remote step's or child's end don't count, because the execution rechecks those by itself. The
/// message of a turn in progress doesn't count either: it is in flight to the worker.
pub fn hint_arrives_at(execution: &Execution) -> Option<Timestamp> {
    if execution.needs_operator() {
        return None;
    }
    match &execution.state {
        ExecutionState::Pending(ready) => (!ready.hint_later).then_some(ready.available_at),
        ExecutionState::Waiting(waiting) => {
            let again = execution.hinted_at.filter(|_| waiting.has_extra_hint(execution));
            let wake_requested = waiting.wake_requested.then_some(waiting.since);
            let until = waiting.until.filter(|_| !waiting.hint_later);
            earliest([again.or(wake_requested), until])
        }
        ExecutionState::Running(_) | ExecutionState::Closing(_) | ExecutionState::Ended(_) => None,
    }
}

/// The same, unless that hint was deleted and something else carries the execution.
pub(crate) fn hint_under_way_at(execution: &Execution) -> Option<Timestamp> {
    hint_arrives_at(execution).filter(|_| execution.parked.is_no())
}

/// The same, but without the hint of a tick that wanted the execution to look again: the tick may have died before it sent
/// that. Whoever wakes the execution for another reason sends a hint of its own.
pub(crate) fn reliable_hint_at(execution: &Execution) -> Option<Timestamp> {
    match &execution.state {
        ExecutionState::Waiting(waiting) if !waiting.wake_requested => {
            let sent = waiting.until.filter(|_| !waiting.hint_later);
            sent.filter(|_| hint_under_way_at(execution).is_some())
        }
        ExecutionState::Pending(_)
        | ExecutionState::Waiting(_)
        | ExecutionState::Running(_)
        | ExecutionState::Closing(_)
        | ExecutionState::Ended(_) => hint_under_way_at(execution),
    }
}

impl Waiting {
    /// Whether an extra hint was sent: one other than for `until`, or for the end of a step or child.
    fn has_extra_hint(&self, execution: &Execution) -> bool {
        let was_notified = execution.wakes > self.seen_wakes && execution.hinted_at.is_some();
        self.wake_requested || was_notified || self.has_rechecked(execution)
    }

    /// Whether the tick has sent the hint for the recheck.
    fn has_rechecked(&self, execution: &Execution) -> bool {
        self.recheck.is_some_and(|recheck| execution.hinted_at.is_some_and(|at| at >= recheck.at))
    }
}

/// When the tick must send the hint for the recheck, unless another hint wakes the execution before.
pub(crate) fn recheck_at(execution: &Execution) -> Option<Timestamp> {
    let ExecutionState::Waiting(waiting) = &execution.state else { return None };
    if execution.needs_operator() || waiting.wake_requested || waiting.has_rechecked(execution) {
        return None;
    }
    let at = waiting.recheck?.at;
    // A turn that another hint starts earlier rechecks too.
    waiting.until.filter(|_| !waiting.hint_later).is_none_or(|hint| hint > at).then_some(at)
}

/// Whether it was notified that a step or child has ended, and no turn has started since. The hint that was sent with
/// the notification may be lost.
pub fn was_notified(execution: &Execution) -> bool {
    match &execution.state {
        ExecutionState::Waiting(waiting) => {
            let is_hinted = waiting.wake_requested || execution.hinted_at.is_some();
            !execution.needs_operator()
                && !is_hinted
                && waiting.recheck.is_some()
                && execution.wakes > waiting.seen_wakes
        }
        ExecutionState::Pending(_)
        | ExecutionState::Running(_)
        | ExecutionState::Closing(_)
        | ExecutionState::Ended(_) => false,
    }
}

/// Whether a waiting execution may have missed the end of a step or child at this instant: it has received no
/// notification since it was suspended, and the end came after the suspension or shortly before it.
pub fn may_have_missed(execution: &Execution, ended_at: Timestamp) -> bool {
    match &execution.state {
        ExecutionState::Waiting(waiting) => {
            waiting.recheck.is_some()
                && !waiting.wake_requested
                && execution.wakes == waiting.seen_wakes
                && ended_at.plus(MISSED_WITHIN) >= waiting.since
        }
        ExecutionState::Pending(_)
        | ExecutionState::Running(_)
        | ExecutionState::Closing(_)
        | ExecutionState::Ended(_) => false,
    }
}

/// The earlier due slot of an execution that is notified of a step's or child's end. `None` if its due slot is early
/// enough already.
pub fn slot_when_notified(execution: &Execution, now: Timestamp, limits: &Limits) -> Option<Due> {
    let ExecutionState::Waiting(waiting) = &execution.state else { return None };
    let at = now.plus(limits.backstop);
    let due = execution.due.filter(|due| due.at > at)?;
    (waiting.recheck.is_some() && !execution.needs_operator()).then_some(Due {
        at,
        kind: DueKind::Backstop,
        ..due
    })
}

/// Whether a turn may start.
pub(crate) fn is_ready(waiting: &Waiting, execution: &Execution, now: Timestamp) -> bool {
    let has_come = |at: Timestamp| at <= now;
    waiting.wake_requested
        || execution.wakes > waiting.seen_wakes
        || waiting.until.is_some_and(has_come)
        || waiting.recheck.is_some_and(|recheck| has_come(recheck.at))
}

impl Turn {
    /// Whether its execution may be what stops its worker, as for [`Task::is_suspect`](crate::task::Task::is_suspect).
    pub const fn is_suspect(&self) -> bool {
        !self.shared || self.after_loss
    }

    /// Whether its message came back though its lease isn't over: the clock was set back, and its worker hides the message
    /// no more.
    pub(crate) fn is_left(&self, again: bool, now: Timestamp) -> bool {
        again && is_beyond(self.lease_expires_at, self.lease_length, now)
    }

    /// Whether the lease is over: its worker counts as lost. Turns run inside the process that has the store to itself, if
    /// one has.
    pub fn is_lost(&self, now: Timestamp, limits: &Limits) -> bool {
        self.lease_expires_at <= now || (!self.outside && limits.outlived(self.claimed_at))
    }
}

/// When its hint arrives, whether a writer of the record has sent it or a tick sends it from the index.
fn any_hint_arrives_at(execution: &Execution) -> Option<Timestamp> {
    earliest([hint_arrives_at(execution), handed_over_at(execution)])
}

/// When the hint of a long sleep arrives that a tick sends from the index. The record doesn't show whether it was sent.
pub fn handed_over_at(execution: &Execution) -> Option<Timestamp> {
    let at = sleeps_until(execution)?;
    execution
        .due
        .is_some_and(|due| due.kind == DueKind::Asleep && due.at == at.plus(SLEEP_PROBE))
        .then_some(at)
}

/// The end of a long sleep in which nothing else needs a probe.
fn sleeps_until(execution: &Execution) -> Option<Timestamp> {
    match &execution.state {
        ExecutionState::Waiting(waiting) if waiting.recheck.is_none() => later_hint_at(execution),
        ExecutionState::Pending(_)
        | ExecutionState::Waiting(_)
        | ExecutionState::Running(_)
        | ExecutionState::Closing(_)
        | ExecutionState::Ended(_) => None,
    }
}

/// The due slot of a long sleep whose hint a tick sends from the index. It must be there before that tick reads the
/// index; a sleep whose end is too near for that has the slot of a later start.
fn asleep_slot(execution: &Execution, now: Timestamp, shard: u16) -> Option<Due> {
    let at = sleeps_until(execution)?;
    let due = Due { at: at.plus(SLEEP_PROBE), kind: DueKind::Asleep, shard };
    let is_there = execution.due == Some(due) || at.since(now) > QUEUE_DELAY_MAX;
    // If a deadline needs an earlier slot, the tick doesn't find the instant in this one.
    (is_there && due_slot::probe_slot(visible_at(execution), due, now) == due).then_some(due)
}

/// When the record last needed a hint: the instant from which its backstop counts.
pub fn hint_needed_at(execution: &Execution) -> Option<Timestamp> {
    let needed_at = match &execution.state {
        ExecutionState::Pending(_) | ExecutionState::Waiting(_) => any_hint_arrives_at(execution)?,
        ExecutionState::Running(_) if execution.needs_operator() => return None,
        ExecutionState::Running(turn) => turn.claimed_at,
        ExecutionState::Closing(closed) => closed.ended_at,
        ExecutionState::Ended(_) => return None,
    };
    Some(execution.hinted_at.map_or(needed_at, |at| at.max(needed_at)))
}

/// A close whose caller has noted nothing for so long is taken over. It is less than the time between two ticks.
pub(crate) const SILENT_AFTER: Millis = Millis::from_secs(30);

/// Whether the process that closes an execution may have died: each page of a close is noted.
pub fn is_silent(execution: &Execution, now: Timestamp) -> bool {
    hint_needed_at(execution).is_none_or(|at| at.plus(SILENT_AFTER) <= now)
}

/// Since when the execution has been waiting for a worker to receive its hint. `None` if it isn't waiting for that.
pub(crate) fn waits_since(execution: &Execution, now: Timestamp) -> Option<Timestamp> {
    let since = match &execution.state {
        ExecutionState::Pending(_) | ExecutionState::Waiting(_) => any_hint_arrives_at(execution)?,
        ExecutionState::Running(_) if execution.needs_operator() => return None,
        ExecutionState::Running(turn) => turn.lease_expires_at,
        // A close continues by itself, whatever happens to the hints in its queue.
        ExecutionState::Closing(_) | ExecutionState::Ended(_) => return None,
    };
    (since <= now).then(|| execution.hinted_at.map_or(since, |at| at.max(since)))
}

/// Whether the record has waited for a worker to receive its hint for so long that the hint may be lost.
pub fn may_be_lost(execution: &Execution, now: Timestamp, limits: &Limits) -> bool {
    execution.parked.in_line().is_none()
        && waits_since(execution, now).is_some_and(|since| now.since(since) >= limits.backstop)
}

/// Whether the tick needs the state of the queue to decide. It does only if the hint may be lost or was parked, and no
/// instant has passed that ends the wait anyway.
pub fn needs_queue_view(execution: &Execution, now: Timestamp, limits: &Limits) -> bool {
    (execution.parked.is_paused() || may_be_lost(execution, now, limits))
        && visible_at(execution).is_none_or(|at| at > now)
}

/// The latest due slot that this state allows. `None` if the tick never has to act: for an endless wait, and for an
/// execution that waits for an operator, if no deadline ends it and no blob or segment has to be kept longer.
pub fn latest(execution: &Execution, now: Timestamp, limits: &Limits) -> Option<Due> {
    let shard = execution
        .due
        .map_or_else(|| shard_of_name(execution.id.as_str(), limits.due_shards), |due| due.shard);
    if !execution.parked.is_no() {
        // Resuming its queue sends its hint. The tick only acts if that fails.
        let own =
            Due { at: due_slot::parked_until(execution.parked, now, limits), kind: DueKind::Backstop, shard };
        return Some(due_slot::probe_slot(visible_at(execution), own, now));
    }
    let backstop = hint_needed_at(execution).map(|at| Due {
        at: at.plus(limits.backstop),
        kind: DueKind::Backstop,
        shard,
    });
    let start =
        later_hint_at(execution).map(|at| Due { at: at.minus(START_LEAD), kind: DueKind::Start, shard });
    let recheck = recheck_at(execution).map(|at| Due { at, kind: DueKind::Start, shard });
    // If extending the expiry fails, the tick doesn't retry it at once.
    let keep = retention::extend_at(execution, limits).map(|at| Due {
        at: at.max(now.plus(limits.backstop)),
        kind: DueKind::Backstop,
        shard,
    });
    let asleep = asleep_slot(execution, now, shard);
    if let Some(due) = asleep.filter(|due| keep.is_none_or(|keep| keep.at >= due.at)) {
        return Some(due);
    }
    match [backstop, start, recheck, keep].into_iter().flatten().min_by_key(|due| due.at) {
        Some(own) => Some(due_slot::probe_slot(visible_at(execution), own, now)),
        None => visible_at(execution).map(|at| Due { at, kind: DueKind::Instant, shard }),
    }
}

/// The instant for which the tick must send the hint.
pub(crate) fn later_hint_at(execution: &Execution) -> Option<Timestamp> {
    if execution.needs_operator() {
        return None;
    }
    match &execution.state {
        ExecutionState::Pending(ready) => ready.hint_later.then_some(ready.available_at),
        // If another hint is on its way, the turn that it starts handles this instant too.
        ExecutionState::Waiting(waiting) => {
            waiting.until.filter(|_| waiting.hint_later && !waiting.has_extra_hint(execution))
        }
        ExecutionState::Running(_) | ExecutionState::Closing(_) | ExecutionState::Ended(_) => None,
    }
}

impl Execution {
    /// Whether the tick is still to send a hint for an instant. From then on a turn may start, whether that is written or not.
    pub fn is_hinted_later(&self) -> bool {
        later_hint_at(self).is_some()
    }

    /// Whether a worker may start the next turn, which waits so. What was ready stays ready if the clock is set back.
    pub fn is_ready(&self, ready: &Ready, now: Timestamp) -> bool {
        // A later run's wait began at an instant that the record doesn't have.
        let since = Some(self.created_at).filter(|_| self.run == 1);
        Wait { until: ready.available_at, since, hint_later: ready.hint_later }.is_over(now)
    }

    /// The deadline that has ended it, if one did.
    pub fn expired(&self) -> Option<Expired> {
        let closed = self.closed()?;
        let ExecutionOutcome::TimedOut { kind } = closed.outcome else { return None };
        let deadline_at = match kind {
            DeadlineKind::Execution => self.deadline_at,
            DeadlineKind::Run => self.run_deadline_at,
        };
        Some(Expired { kind: kind.into(), deadline_at: deadline_at.unwrap_or(closed.ended_at) })
    }
}

impl HasDueSlot for Execution {
    fn record_id(&self) -> RecordId {
        self.id.clone().into()
    }

    fn due(&self) -> Option<Due> {
        self.due
    }

    fn set_due(&mut self, due: Option<Due>) {
        self.due = due;
    }

    fn instants(&self) -> [Option<Timestamp>; 3] {
        instants(self)
    }

    fn latest(&self, now: Timestamp, limits: &Limits) -> Option<Due> {
        latest(self, now, limits)
    }

    fn is_leased(&self) -> bool {
        self.turn().is_some()
    }

    fn parked(&self) -> Parked {
        self.parked
    }
}
