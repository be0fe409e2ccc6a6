//! What must hold of the time at which instants are noticed: as soon as the faults of the run allow.

use std::collections::{BTreeMap, BTreeSet};

use tickover_core::duration::Millis;
use tickover_core::time::Timestamp;

use super::story::{Stories, visible_instant};
use super::timers::SLOW_MS;
use crate::Run;
use crate::fault_plan::{LAG, SKEW};
use crate::hardship::Span;
use crate::history::{Actor, Answer, Fate, Request, What};
use crate::trace::{brief, clock};
use crate::violation::{Invariant, Violation};

/// How late a deadline is noticed at most where nothing goes wrong and no call takes time: the timers' function may
/// still wait for another timer's last second.
const PROMPT: Millis = Millis::from_secs(2);
/// Calls to the world, each way, between an instant and the write that notices it.
const LEGS: u64 = 16;
/// The tick of a minute sends timers for instants before this long after it, by its own clock, which may be behind.
const SLOT_END: Millis = Millis::from_secs(180);
/// A tick must have ended this long before an instant to have sent its timer in time.
const IN_TIME: Millis = Millis::from_secs(30);

/// So many functions read the queue of timers.
const FUNCTIONS: usize = 2;

/// A function that reads the queue of timers.
struct Function {
    /// When it received what it has.
    since: Timestamp,
    calls: BTreeSet<u64>,
    busy: Vec<Span>,
}

/// A tick that finished its work.
struct Tick {
    minute: Timestamp,
    began: Timestamp,
    ended: Timestamp,
}

/// An instant that a record waits for, and for how long the record was in that state.
pub(super) struct Passing {
    /// When that state began.
    pub(super) since: Timestamp,
    pub(super) instant: Timestamp,
    /// When that state ended.
    pub(super) until: Timestamp,
    /// A short description of the record.
    pub(super) brief: String,
    /// How many things are done one after the other before the write that ends the state.
    pub(super) acts: u64,
}

/// Every instant that a record waited for.
fn passing(stories: &Stories<'_>, run: &Run) -> Vec<Passing> {
    let mut all = Vec::new();
    for steps in stories.tasks() {
        let ends = steps.iter().skip(1).map(|step| step.at).chain([run.ended_at]);
        all.extend(steps.iter().zip(ends).filter_map(|(step, until)| {
            let instant = visible_instant(step.after)?;
            Some(Passing { since: step.at, instant, until, brief: brief(step.after), acts: 1 })
        }));
    }
    all
}

pub(super) fn of_run(stories: &Stories<'_>, run: &Run) -> Vec<Violation> {
    of_instants(&passing(stories, run), run)
}

/// The violations at these instants.
pub(super) fn of_instants(all: &[Passing], run: &Run) -> Vec<Violation> {
    let ticks = good_ticks(run);
    let mut found: Vec<_> = all.iter().filter_map(|one| ticks_miss_nothing(one, &ticks, run)).collect();
    if run.plan.is_fair() {
        let busy = busy_functions(run);
        found.extend(all.iter().filter_map(|one| timers_are_prompt(one, &ticks, &busy, run)));
    }
    found
}

/// The violations at instants that only a message brings: no tick looks for them at once.
pub(super) fn of_notices(all: &[Passing], run: &Run) -> Vec<Violation> {
    let (ticks, busy) = (good_ticks(run), busy_functions(run));
    let late = |one| timers_are_prompt(one, &ticks, &busy, run);
    if run.plan.is_fair() { all.iter().filter_map(late).collect() } else { vec![] }
}

/// After a tick that starts after an instant has passed, sees the index as of then, and succeeds, no record is in the
/// state from before that instant.
fn ticks_miss_nothing(one: &Passing, ticks: &[Tick], run: &Run) -> Option<Violation> {
    let from = one.instant.plus(SKEW).max(one.since.plus(lag(run)));
    let tick = ticks.iter().find(|tick| tick.began >= from && tick.ended < one.until)?;
    let what = format!("the tick that ended at {1} missed {0}", clock(one.instant), clock(tick.ended));
    Some(Violation::new(Invariant::Timeliness, tick.ended, format!("{}: {what}", one.brief)))
}

/// Where nothing fails, no instant has to wait for a tick: it is noticed at once, unless ticks were missing that should
/// have sent its timer.
fn timers_are_prompt(one: &Passing, ticks: &[Tick], busy: &[Vec<Span>], run: &Run) -> Option<Violation> {
    let faults = run.plan.faults;
    let last_call = one.instant.minus(IN_TIME);
    let known = one.since.plus(lag(run)).plus(SKEW);
    let handed_over = ticks.iter().any(|tick| {
        tick.minute.plus(SLOT_END).minus(SKEW) > one.instant && tick.began >= known && tick.ended <= last_call
    });
    // A write that sets an instant assumes that the index lags by seconds, not by half a minute.
    if (faults.missed_tick > 0 || run.plan.hardship.lag.is_some()) && !handed_over {
        return None;
    }
    let calls = Millis::new(faults.latency_ms).saturating_mul(LEGS * one.acts);
    let skew = Millis::new(u64::try_from(2 * faults.ahead_max_ms).unwrap_or(0));
    // An instant may be written so late that it has already passed.
    let visible = one.instant.max(one.since).plus(PROMPT).plus(skew);
    let by = first_free(busy, visible).plus(calls);
    let late = one.until > by;
    let what = || format!("{} was noticed only at {}", clock(one.instant), clock(one.until));
    late.then(|| Violation::new(Invariant::Timeliness, by, format!("{}: {}", one.brief, what())))
}

/// Where calls take seconds: when each function was busy with what it had received. Timers wait for the next free one.
fn busy_functions(run: &Run) -> Vec<Vec<Span>> {
    if run.plan.faults.latency_ms < SLOW_MS {
        return vec![];
    }
    let mut functions: BTreeMap<Actor, Function> = BTreeMap::new();
    for event in run.events.iter().filter(|event| matches!(event.actor, Actor::Timers(_))) {
        let new = || Function { since: event.at, calls: BTreeSet::new(), busy: vec![] };
        let function = functions.entry(event.actor).or_insert_with(new);
        match &event.what {
            What::Message { fate: Fate::Received, .. } if function.calls.is_empty() => {
                function.since = event.at;
            }
            What::Called { call, .. } => {
                function.calls.insert(*call);
            }
            What::Answered { call, .. } if function.calls.remove(call) && function.calls.is_empty() => {
                function.busy.push(Span { from: function.since, until: event.at });
            }
            _ => {}
        }
    }
    functions.into_values().map(|function| function.busy).collect()
}

/// The first instant from this one on at which a function is free.
fn first_free(functions: &[Vec<Span>], mut at: Timestamp) -> Timestamp {
    if functions.len() < FUNCTIONS {
        return at;
    }
    loop {
        let end = |busy: &Vec<Span>| busy.iter().find(|span| span.holds(at)).map(|span| span.until);
        let ends: Option<Vec<Timestamp>> = functions.iter().map(end).collect();
        let Some(next) = ends.and_then(|ends| ends.into_iter().min()) else { return at };
        at = next;
    }
}

/// How far the due index may lag in this run.
fn lag(run: &Run) -> Millis {
    run.plan.hardship.lag.unwrap_or(LAG)
}

fn good_ticks(run: &Run) -> Vec<Tick> {
    let mut under_way = BTreeMap::new();
    let mut ticks = Vec::new();
    let hardship = run.plan.hardship;
    let needs_table_only = hardship.queues_away.or(hardship.queue_removed).is_some();
    for event in &run.events {
        match &event.what {
            What::Called { call, request: Request::Tick(minute) } => {
                under_way.insert(*call, (*minute, event.at));
            }
            What::Answered { call, answer: Answer::Ticked(report) } => {
                // Where only the queues are unreachable, a tick needs no more than the table to enforce instants. But with
                // calls that take seconds, a few pages are more than it has time for.
                let has_time = !report.out_of_time || run.plan.faults.latency_ms < SLOW_MS;
                let did_all = report.fanned_out == 0
                    && ((needs_table_only && has_time) || (report.failed == 0 && !report.out_of_time));
                let tick = under_way.remove(call).filter(|_| did_all);
                ticks.extend(tick.map(|(minute, began)| Tick { minute, began, ended: event.at }));
            }
            What::Answered { call, answer: Answer::Failed(_) } if needs_table_only => {
                let tick = under_way.remove(call);
                ticks.extend(tick.map(|(minute, began)| Tick { minute, began, ended: event.at }));
            }
            What::Called { .. }
            | What::Answered { .. }
            | What::Decided(_)
            | What::Stored(_)
            | What::OfExecution(_)
            | What::Message { .. }
            | What::Fault(_) => {}
        }
    }
    ticks
}
