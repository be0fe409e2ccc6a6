//! What must hold where very many records are due at once: all are processed in time, by one sweep for each shard. No
//! timer is sent twice and no key is overloaded.

use std::collections::{BTreeMap, BTreeSet};

use tickover_core::time::Timestamp;
use tickover_core::timer::Wake;
use tickover_service::timers::Fired;

use crate::Run;
use crate::flood::Flood;
use crate::history::{Actor, Answer, Fate, Fault, Note, Request, What};
use crate::trace::clock;
use crate::violation::{Invariant, Violation};

/// All violations.
pub fn check_flood(run: &Run, flood: Flood) -> Vec<Violation> {
    let mut found = all_are_processed_in_time(run, flood.ends_by());
    found.extend(a_shard_has_one_sweep(run));
    found.extend(no_key_is_overloaded(run));
    if flood == Flood::TickKilled {
        found.extend(a_tick_died_during_its_work(run));
    } else {
        found.extend(no_timer_is_sent_twice(run));
    }
    found
}

/// Otherwise the run would test nothing.
fn a_tick_died_during_its_work(run: &Run) -> Option<Violation> {
    let mut under_way = BTreeSet::new();
    for event in &run.events {
        match &event.what {
            What::Called { call, request: Request::Tick(_) } => drop(under_way.insert(*call)),
            What::Answered { call, .. } => drop(under_way.remove(call)),
            What::Fault(Fault::Crashed(_)) if !under_way.is_empty() => return None,
            What::Called { .. }
            | What::Decided(_)
            | What::Stored(_)
            | What::OfExecution(_)
            | What::Message { .. }
            | What::Fault(_) => {}
        }
    }
    Some(Violation::new(Invariant::Liveness, run.ended_at, "no tick died during its work"))
}

fn all_are_processed_in_time(run: &Run, by: Timestamp) -> Vec<Violation> {
    let done: BTreeSet<_> = run
        .events
        .iter()
        .filter_map(|event| match &event.what {
            What::Stored(stored) if event.at <= by && !stored.after.history.is_empty() => {
                Some(&stored.after.id)
            }
            What::Stored(stored) if event.at <= by => stored.after.ended().map(|_| &stored.after.id),
            What::Stored(_)
            | What::Called { .. }
            | What::Answered { .. }
            | What::Decided(_)
            | What::OfExecution(_)
            | What::Message { .. }
            | What::Fault(_) => None,
        })
        .collect();
    let count = run.plan.flood;
    if done.len() == count {
        return vec![];
    }
    let what = format!("of {count} records, {} were processed by {}", done.len(), clock(by));
    vec![Violation::new(Invariant::Timeliness, by, what)]
}

/// A sweep that finds another one's token on its shard does nothing.
fn a_shard_has_one_sweep(run: &Run) -> Vec<Violation> {
    let (mut asked, mut sweeps) = (BTreeMap::new(), BTreeMap::<u16, Vec<(Timestamp, Timestamp)>>::new());
    for event in &run.events {
        match &event.what {
            What::Called { call, request: Request::Fire(Note::Other(body)) } => {
                if let Ok(Wake::Sweep(sweep)) = Wake::parse(body) {
                    asked.insert(*call, (sweep.shard, event.at));
                }
            }
            What::Answered { call, answer: Answer::Fired(Fired::Swept(_)) } => {
                if let Some((shard, from)) = asked.remove(call) {
                    sweeps.entry(shard).or_default().push((from, event.at));
                }
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
    let mut found = Vec::new();
    for (shard, mut times) in sweeps {
        times.sort_unstable();
        let doubled = times.windows(2).filter(|two| two[1].0 < two[0].1);
        found.extend(doubled.map(|two| {
            Violation::new(Invariant::I9, two[1].0, format!("two sweeps of shard {shard} run at once"))
        }));
    }
    found
}

fn no_timer_is_sent_twice(run: &Run) -> Vec<Violation> {
    let (mut sent, mut found) = (BTreeSet::new(), Vec::new());
    for event in &run.events {
        if let What::Message { fate: Fate::Sent(_), note: Note::Timers(timers), .. } = &event.what
            && matches!(event.actor, Actor::Ticker(_))
        {
            let again = timers.iter().filter(|timer| !sent.insert((&timer.record, timer.at)));
            found.extend(again.map(|timer| {
                let what = format!("two timers were sent for {}", timer.record);
                Violation::new(Invariant::I9, event.at, what)
            }));
        }
    }
    found
}

fn no_key_is_overloaded(run: &Run) -> Vec<Violation> {
    let throttled = run.events.iter().filter(|event| matches!(event.what, What::Fault(Fault::KeyThrottled)));
    let what = "a key had more writes than it accepts";
    throttled.map(|event| Violation::new(Invariant::Timeliness, event.at, what)).collect()
}
