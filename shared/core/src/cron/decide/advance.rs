//! due and started: occurrences that have come are written down, and what became of them.
//!
//! One occurrence is taken at a time, unless they may run beside each other: only when a run is known to have
//! started is it open, and only then can the next one see it. Whoever carries the decision out comes again.

use super::operate::{drop_waiting, go_on};
use super::settle;
use crate::command::Context;
use crate::cron::command::StartResult;
use crate::cron::decision::{Decision, Reply};
use crate::cron::plan::{Missed, Next, Overlap};
use crate::cron::run::{Occurrence, Run, RunState, Skip, Stop};
use crate::cron::{Cron, LIVE_MAX, MISSED_AFTER, State, WAITING_MAX, Waiting};
use crate::time::Timestamp;

/// The name of a refusal is cut to this, in bytes: it is one of our own codes.
const CODE_BYTES: usize = 20;

pub(super) fn due(record: &Cron, ended: &[Occurrence], context: &Context<'_>) -> Decision {
    let mut after = record.clone();
    let has_ended = |run: &Run| run.state.is_open() && ended.contains(&run.occurrence);
    for run in after.runs.iter_mut().filter(|run| has_ended(run)) {
        run.state = RunState::Done;
    }
    // Those that are written down already are started before more are.
    if after.starting_runs().next().is_none() {
        advance(&mut after, context.now);
    }
    settle(Some(record), after, Reply::Done, context)
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
    settle(Some(record), after, Reply::Done, context)
}

/// What became of an occurrence that was taken.
#[derive(PartialEq, Eq)]
enum Taken {
    /// It was dealt with, and the next one may be.
    Done,
    /// It has to be started before any other is looked at.
    Starting,
    /// As many are followed as can be: it is left for later.
    NoRoom,
}

/// Takes all that has come by now, in order, as far as that can be done before runs are started.
fn advance(after: &mut Cron, now: Timestamp) {
    if take_waiting(after, now) {
        return;
    }
    while let Some(next) = after.next().filter(|next| next.starts_at <= now) {
        let is_missed = now.since(next.starts_at) > MISSED_AFTER && !collects(after);
        let (taken, last) = if is_missed { catch_up(after, now) } else { (take(after, next.at, now), next) };
        if taken == Taken::NoRoom {
            return;
        }
        move_on(after, last, now);
        if taken == Taken::Starting {
            return;
        }
    }
}

/// Whether occurrences pile up behind an open run: then it makes no difference whether anybody saw them come.
fn collects(after: &Cron) -> bool {
    let is_behind = after.waiting.is_some() || after.open_runs().next().is_some();
    after.plan.overlap == Overlap::BufferAll && is_behind
}

/// Deals with occurrences that nobody saw in time, and says up to which.
fn catch_up(after: &mut Cron, now: Timestamp) -> (Taken, Next) {
    let by = now.minus(MISSED_AFTER);
    let first = after.next().unwrap_or(Next { at: now, starts_at: now });
    let found = after.plan.started_by(by, after.anchor, after.incarnation);
    let last = found.filter(|last| last.at > first.at).unwrap_or(first);
    let following = after.plan.next_after(last.at, after.anchor, after.incarnation);
    let is_followed = following.is_some_and(|next| next.starts_at <= now);
    match after.plan.missed {
        // One that is just in time makes up for those that weren't.
        Missed::RunOnce if !is_followed => (take(after, last.at, now), last),
        Missed::RunOnce | Missed::Skip => {
            skip(after, last.at, Skip::Missed);
            (Taken::Done, last)
        }
    }
}

/// Plans what comes after an occurrence that was dealt with.
fn move_on(after: &mut Cron, last: Next, now: Timestamp) {
    let is_full = after.waiting.is_some_and(|waiting| waiting.count >= WAITING_MAX);
    if matches!(after.state, State::Finished { .. }) {
        return;
    }
    // There may be any number of those that find no room: they aren't counted one by one.
    let from = if is_full && collects(after) { now.max(last.at) } else { last.at };
    go_on(after, from);
}

/// Decides what becomes of one occurrence.
fn take(after: &mut Cron, at: Timestamp, now: Timestamp) -> Taken {
    let is_free = after.open_runs().next().is_none() && after.waiting.is_none();
    if is_free && after.plan.overlap != Overlap::AllowAll {
        return start(after, at, now);
    }
    match after.plan.overlap {
        Overlap::AllowAll => {
            let taken = start(after, at, now);
            // They don't look at each other, so more may be written down at once.
            if taken == Taken::Starting { Taken::Done } else { taken }
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

/// Writes a run down.
fn start(after: &mut Cron, at: Timestamp, now: Timestamp) -> Taken {
    if after.runs.iter().filter(|run| run.state.is_live()).count() >= LIVE_MAX {
        return Taken::NoRoom;
    }
    after.runs.push(Run { occurrence: Occurrence::planned(at), state: RunState::Starting });
    after.started = after.started.saturating_add(1);
    if after.plan.max_runs.is_some_and(|max| after.started >= max.get()) {
        drop_waiting(after, Skip::Dropped);
        after.state = State::Finished { at: now };
    }
    Taken::Starting
}

/// Starts the first that waits, if nothing is open any more: whether it did.
fn take_waiting(after: &mut Cron, now: Timestamp) -> bool {
    let Some(waiting) = after.waiting.filter(|_| after.open_runs().next().is_none()) else { return false };
    let following = after.plan.when.after(waiting.first, after.anchor).filter(|_| waiting.count > 1);
    after.waiting = following.map(|first| Waiting { first, count: waiting.count - 1, ..waiting });
    start(after, waiting.first, now) == Taken::Starting
}

fn wait(after: &mut Cron, at: Timestamp, now: Timestamp) -> Taken {
    match &mut after.waiting {
        None => after.waiting = Some(Waiting { first: at, count: 1, since: now }),
        Some(waiting) if waiting.count < WAITING_MAX => waiting.count += 1,
        Some(_) => return skip(after, at, Skip::Full),
    }
    Taken::Done
}

fn skip(after: &mut Cron, at: Timestamp, why: Skip) -> Taken {
    after.runs.push(Run { occurrence: Occurrence::planned(at), state: RunState::Skipped(why) });
    Taken::Done
}

fn stop_open(after: &mut Cron, how: Stop) {
    for run in after.runs.iter_mut().filter(|run| run.state.is_open()) {
        run.state = RunState::Stopping(how);
    }
}
