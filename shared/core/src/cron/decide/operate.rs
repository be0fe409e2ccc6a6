//! pause, resume, trigger, delete: the operators' commands on a cron.

use super::write_record;
use crate::command::Context;
use crate::cron::decision::{Decision, Reply};
use crate::cron::run::{Occurrence, Run, RunState, Skip};
use crate::cron::{Cron, LIVE_MAX, State};
use crate::duration::Millis;
use crate::limits;
use crate::time::Timestamp;

pub(super) fn pause(record: &Cron, context: &Context<'_>) -> Decision {
    let mut after = record.clone();
    stop_planning(&mut after, context.now);
    write_record(Some(record), after, Reply::Done, context)
}

pub(super) fn resume(record: &Cron, context: &Context<'_>) -> Decision {
    let mut after = record.clone();
    if matches!(after.state, State::Paused { .. }) {
        continue_after(&mut after, context.now);
    }
    write_record(Some(record), after, Reply::Done, context)
}

/// A run outside of the plan. It starts in parallel to open runs, and later occurrences find it open.
pub(super) fn trigger(record: &Cron, context: &Context<'_>) -> Decision {
    let live = record.runs.iter().filter(|run| run.state.is_live()).count();
    if let Err(reject) = limits::check("open_runs", live + 1, LIVE_MAX) {
        return Decision::refuse(Some(record), reject);
    }
    let mut occurrence = Occurrence { at: context.now, manual: true };
    // An instant is used once, or it would be the same run again.
    if let Some(newest) = record.newest_trigger() {
        occurrence.at = occurrence.at.max(newest.plus(Millis::new(1)));
    }
    let mut after = record.clone();
    after.runs.push(Run { occurrence, state: RunState::Starting });
    write_record(Some(record), after, Reply::Triggered(occurrence), context)
}

pub(super) fn delete(record: &Cron, context: &Context<'_>) -> Decision {
    let mut after = record.clone();
    after.state = State::Deleted { expires_at: context.now };
    after.waiting = None;
    after.runs = vec![];
    write_record(Some(record), after, Reply::Done, context)
}

/// From now on the plan starts nothing, and waiting occurrences aren't started either.
pub(super) fn stop_planning(after: &mut Cron, now: Timestamp) {
    match &after.state {
        State::Active(_) => {
            drop_waiting(after, Skip::Dropped);
            after.state = State::Paused { since: now };
        }
        State::Paused { .. } | State::Finished { .. } | State::Deleted { .. } => {}
    }
}

/// Continues with the next occurrence, if the cron may have more runs.
pub(super) fn continue_after(after: &mut Cron, from: Timestamp) {
    let may_start = after.plan.max_runs.is_none_or(|max| after.started < max.get());
    let next = after.plan.next_after(from, after.anchor, after.incarnation).filter(|_| may_start);
    after.state = next.map_or(State::Finished { at: from }, State::Active);
}

/// Drops the waiting occurrences. The record keeps the first of them.
pub(super) fn drop_waiting(after: &mut Cron, why: Skip) {
    if let Some(waiting) = after.waiting.take() {
        let occurrence = Occurrence::planned(waiting.first);
        after.runs.push(Run { occurrence, state: RunState::Skipped(why) });
    }
}
