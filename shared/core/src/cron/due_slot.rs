//! The due slots of crons: the next occurrence, and repeated checks of runs that a cron waits for.

use super::Cron;
use crate::decision::{Effect, Write};
use crate::due::{Due, DueKind, TIMER_HORIZON, shard_of_name};
use crate::duration::Millis;
use crate::id::RecordId;
use crate::limits::Limits;
use crate::payload::Payload;
use crate::time::{Timestamp, earliest};
use crate::timer::Timer;

/// How long after the wait began a cron first checks whether a run has ended.
const FIRST_CHECK_AFTER: Millis = Millis::from_secs(5);
/// The longest time between two checks.
const CHECKS_AT_MOST: Millis = Millis::from_secs(300);

/// How long the payload of a cron's request is kept after its last extension. If no record points to it any more, it
/// then expires.
pub(super) const KEPT_FOR: Millis = Millis::from_days(120);
/// The payload is extended when no more than this is left.
const EXTEND_BELOW: Millis = Millis::from_days(60);

/// Extends the expiry of the request's payload, if it is time.
pub(super) fn extend_request(after: &mut Cron, now: Timestamp) -> Vec<Write> {
    let is_due = extend_at(after).is_some_and(|at| at <= now);
    match &mut after.request {
        Payload::Blob(at) if is_due => {
            at.expires_at = now.plus(KEPT_FOR);
            vec![Write::extend_blob(at)]
        }
        Payload::Blob(_) | Payload::Inline(_) => vec![],
    }
}

/// When the payload's expiry is to be extended.
fn extend_at(after: &Cron) -> Option<Timestamp> {
    let request = after.request.blob().filter(|_| !after.is_deleted())?;
    Some(request.expires_at.minus(EXTEND_BELOW))
}

/// The due slot of a record, and the timer to send if the slot is new and close.
pub(super) fn slot_and_timer(
    before: Option<&Cron>,
    after: &Cron,
    now: Timestamp,
    limits: &Limits,
) -> (Option<Due>, Option<Effect>) {
    let current = before.and_then(|before| before.due);
    let Some(at) = next_due_at(after, current, now) else { return (None, None) };
    // A slot that is already due is kept, because a move would cost two index writes.
    if let Some(current) = current.filter(|current| current.at == at || (current.at <= now && at <= now)) {
        return (Some(current), None);
    }
    let shard =
        current.map_or_else(|| shard_of_name(after.id.as_str(), limits.due_shards), |current| current.shard);
    let soon = at > now && at <= now.plus(TIMER_HORIZON);
    let kind = if soon { DueKind::Armed } else { DueKind::Instant };
    let timer = Timer { record: RecordId::Cron(after.id.clone()), at, due_at: at };
    (Some(Due { at, kind, shard }), soon.then_some(Effect::Timer(timer)))
}

/// The instant of the next due slot.
fn next_due_at(after: &Cron, current: Option<Due>, now: Timestamp) -> Option<Timestamp> {
    if after.is_deleted() {
        return None;
    }
    if after.starting_runs().next().is_some() {
        // At once: if the process that was to start them has stopped, the tick starts them.
        return Some(now);
    }
    // A check that was planned stays: each look before it would move it, and send one more timer.
    let planned = current.map(|due| due.at).filter(|at| *at > now);
    let check = next_check_at(after, now).map(|at| planned.map_or(at, |planned| at.min(planned)));
    earliest([after.next().map(|next| next.starts_at), check, extend_at(after)])
}

/// When to check next whether the runs that it waits for have ended. The time between checks grows with the wait.
fn next_check_at(after: &Cron, now: Timestamp) -> Option<Timestamp> {
    // It stops the other runs because of the run that it started last.
    let is_stopping = after.runs.iter().any(|run| run.state.stop().is_some());
    let last = after.runs.iter().filter(|run| run.state.is_live()).map(|run| run.occurrence.at).max();
    let since = after.waiting.map(|waiting| waiting.since).or(last.filter(|_| is_stopping))?;
    let waited = Millis::new(now.since(since).as_u64() / 2);
    Some(now.plus(waited.clamp(FIRST_CHECK_AFTER, CHECKS_AT_MOST)))
}
