//! due and started: records the occurrences that have come, and the results of starting runs.
//!
//! Occurrences are taken one at a time, unless they may overlap. A run is open only once its start is known, and
//! only then can the next occurrence take it into account. The caller of the decision calls again for the next one.

use super::operate::{continue_after, drop_waiting};
use super::write_record;
use crate::command::Context;
use crate::cron::command::StartResult;
use crate::cron::decision::{Decision, Reply};
use crate::cron::plan::{Missed, Next, Overlap};
use crate::cron::run::{Occurrence, Run, RunState, Skip, Stop};
use crate::cron::{Cron, LIVE_MAX, MISSED_AFTER, State, WAITING_MAX, Waiting};
use crate::time::{SKEW_MAX, Timestamp};

/// A refusal's code is cut to this number of bytes. It is one of Tickover's own codes.
const CODE_BYTES: usize = 20;

pub(super) fn due(record: &Cron, ended: &[Occurrence], context: &Context<'_>) -> Decision {
    let mut after = record.clone();
    let has_ended = |run: &Run| run.state.is_open() && ended.contains(&run.occurrence);
    for run in after.runs.iter_mut().filter(|run| has_ended(run)) {
        run.state = RunState::Done;
    }
    plan_anew(&mut after, context.now);
    // Runs in the state `Starting` are started before others are recorded.
    if after.starting_runs().next().is_none() {
        advance(&mut after, context.now);
    }
    write_record(Some(record), after, Reply::Done, context)
}

/// Plans from now on, if the clock was set back since the next occurrence was planned. What has run by the old time doesn't
/// run twice: its id exists.
fn plan_anew(after: &mut Cron, now: Timestamp) {
    let later = now.plus(SKEW_MAX);
    let Some(next) = after.next().filter(|next| next.starts_at > later) else { return };
    // Intervals count from the creation. By this clock, it is perhaps still to come.
    let second = Timestamp::from_millis(now.as_millis().div_euclid(1_000) * 1_000);
    let anchor = if after.anchor > later { second } else { after.anchor };
    let own = after.plan.next_after(later, anchor, after.incarnation);
    if own.is_some_and(|own| own.at < next.at) {
        after.anchor = anchor;
        continue_after(after, now);
    }
}

pub(super) fn started(
    record: &Cron,
    results: &[(Occurrence, StartResult)],
    context: &Context<'_>,
) -> Decision {
    let mut after = record.clone();
    let follows = after.plan.overlap != Overlap::AllowAll;
    for (occurrence, result) in results {
        let starting = |run: &&mut Run| run.occurrence == *occurrence && run.state == RunState::Starting;
        let Some(run) = after.runs.iter_mut().find(starting) else { continue };
        run.state = match result {
            StartResult::Started if follows => RunState::Open,
            StartResult::Started => RunState::Done,
            StartResult::Refused { code } => RunState::Refused(code.chars().take(CODE_BYTES).collect()),
        };
    }
    write_record(Some(record), after, Reply::Done, context)
}

/// The result of taking an occurrence.
#[derive(PartialEq, Eq)]
enum TakeResult {
    /// It is done, and the next one may be taken.
    Done,
    /// It must be started before another one is taken.
    Starting,
    /// The cron follows the maximum number of runs, so the occurrence is left for later.
    LimitReached,
}

/// Takes all occurrences that have come by now, in order, until a run must be started first.
fn advance(after: &mut Cron, now: Timestamp) {
    if take_waiting(after, now) {
        return;
    }
    while let Some(next) = after.next().filter(|next| next.starts_at <= now) {
        let is_missed = now.since(next.starts_at) > MISSED_AFTER && !is_buffering(after);
        let (taken, last) = if is_missed { catch_up(after, now) } else { (take(after, next.at, now), next) };
        if taken == TakeResult::LimitReached {
            return;
        }
        plan_next(after, last, now);
        if taken == TakeResult::Starting {
            return;
        }
    }
}

/// Whether occurrences wait behind an open run. Then it doesn't matter whether one of them is found too late.
fn is_buffering(after: &Cron) -> bool {
    let is_behind = after.waiting.is_some() || after.open_runs().next().is_some();
    after.plan.overlap == Overlap::BufferAll && is_behind
}

/// Handles missed occurrences. Returns the last one that it handled.
fn catch_up(after: &mut Cron, now: Timestamp) -> (TakeResult, Next) {
    let by = now.minus(MISSED_AFTER);
    let first = after.next().unwrap_or(Next { at: now, starts_at: now });
    let found = after.plan.started_by(by, after.anchor, after.incarnation);
    let last = found.filter(|last| last.at > first.at).unwrap_or(first);
    let following = after.plan.next_after(last.at, after.anchor, after.incarnation);
    let is_followed = following.is_some_and(|next| next.starts_at <= now);
    match after.plan.missed {
        // An occurrence that is in time replaces the missed ones.
        Missed::RunOnce if !is_followed => (take(after, last.at, now), last),
        Missed::RunOnce | Missed::Skip => {
            skip(after, last.at, Skip::Missed);
            (TakeResult::Done, last)
        }
    }
}

/// Plans the next occurrence after one that was taken.
fn plan_next(after: &mut Cron, last: Next, now: Timestamp) {
    let is_full = after.waiting.is_some_and(|waiting| waiting.count >= WAITING_MAX);
    if matches!(after.state, State::Finished { .. }) {
        return;
    }
    // There may be any number of occurrences that find no space, so they aren't counted one by one.
    let from = if is_full && is_buffering(after) { now.max(last.at) } else { last.at };
    continue_after(after, from);
}

/// Decides the result of one occurrence.
fn take(after: &mut Cron, at: Timestamp, now: Timestamp) -> TakeResult {
    let has_run = |run: &Run| run.occurrence == Occurrence::planned(at) && run.state.was_started();
    if after.runs.iter().any(has_run) {
        // Before the clock was set back.
        return TakeResult::Done;
    }
    let is_free = after.open_runs().next().is_none() && after.waiting.is_none();
    if is_free && after.plan.overlap != Overlap::AllowAll {
        return start(after, at, now);
    }
    match after.plan.overlap {
        Overlap::AllowAll => {
            let taken = start(after, at, now);
            // Their runs don't depend on each other, so several may be recorded at once.
            if taken == TakeResult::Starting { TakeResult::Done } else { taken }
        }
        Overlap::Skip => skip(after, at, Skip::Overlap),
        Overlap::BufferOne if after.waiting.is_some() => skip(after, at, Skip::Full),
        Overlap::BufferOne | Overlap::BufferAll => wait(after, at, now),
        Overlap::CancelOther => {
            drop_waiting(after, Skip::Overlap);
            stop_open(after, Stop::Cancel);
            wait(after, at, now)
        }
        Overlap::TerminateOther => {
            stop_open(after, Stop::Terminate);
            start(after, at, now)
        }
    }
}

/// Records a run to start.
fn start(after: &mut Cron, at: Timestamp, now: Timestamp) -> TakeResult {
    if after.runs.iter().filter(|run| run.state.is_live()).count() >= LIVE_MAX {
        return TakeResult::LimitReached;
    }
    after.runs.push(Run { occurrence: Occurrence::planned(at), state: RunState::Starting });
    after.started = after.started.saturating_add(1);
    if after.plan.max_runs.is_some_and(|max| after.started >= max.get()) {
        drop_waiting(after, Skip::Dropped);
        after.state = State::Finished { at: now };
    }
    TakeResult::Starting
}

/// Starts the first waiting occurrence if no run is open. Returns whether it did.
fn take_waiting(after: &mut Cron, now: Timestamp) -> bool {
    let Some(waiting) = after.waiting.filter(|_| after.open_runs().next().is_none()) else { return false };
    let following = after.plan.when.after(waiting.first, after.anchor).filter(|_| waiting.count > 1);
    after.waiting = following.map(|first| Waiting { first, count: waiting.count - 1, ..waiting });
    start(after, waiting.first, now) == TakeResult::Starting
}

fn wait(after: &mut Cron, at: Timestamp, now: Timestamp) -> TakeResult {
    match &mut after.waiting {
        None => after.waiting = Some(Waiting { first: at, count: 1, since: now }),
        Some(waiting) if waiting.count < WAITING_MAX => waiting.count += 1,
        Some(_) => return skip(after, at, Skip::Full),
    }
    TakeResult::Done
}

fn skip(after: &mut Cron, at: Timestamp, why: Skip) -> TakeResult {
    after.runs.push(Run { occurrence: Occurrence::planned(at), state: RunState::Skipped(why) });
    TakeResult::Done
}

fn stop_open(after: &mut Cron, how: Stop) {
    for run in after.runs.iter_mut().filter(|run| run.state.is_open()) {
        run.state = RunState::Stopping(how);
    }
}
