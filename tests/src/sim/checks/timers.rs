//! What must hold of the messages in the queue of timers: somebody decided to send each, and no tick hands an
//! instant over that another one has handed over before.

use std::collections::BTreeMap;

use tickover_core::decision::Effect;
use tickover_core::execution::ExecutionState;
use tickover_core::id::RecordId;
use tickover_core::time::Timestamp;
use tickover_core::timer::Timer;

use crate::sim::Run;
use crate::sim::history::execution::Happening;
use crate::sim::history::{Actor, Answer, Fate, Note, Request, What};
use crate::sim::trace::clock;
use crate::sim::violation::{Invariant, Violation};

type Key = (RecordId, Timestamp, Timestamp);

/// A tick waits 3 s for a queue. A call takes as long as this at most, each way.
const SLOW_MS: u64 = 1_500;

/// What is known while going through the history.
#[derive(Default)]
struct Known {
    /// Timers that may be sent because somebody decided to.
    decided: BTreeMap<Key, i64>,
    /// Timers that somebody received, and may send on.
    received: BTreeMap<(Actor, Key), i64>,
    /// When the tick began that each ticker is at.
    began: BTreeMap<Actor, Timestamp>,
    /// What each ticker has handed over in the tick that it is at.
    handing_over: BTreeMap<Actor, Vec<Key>>,
    /// Those that hand over for a tick the rest of a slot, by a message of it.
    helping: BTreeMap<u64, Actor>,
    /// When the first tick ended well that had handed it over.
    handed_over: BTreeMap<Key, Timestamp>,
}

pub(super) fn of_run(run: &Run) -> Vec<Violation> {
    let mut known = Known::default();
    // A tick doesn't wait for a slow queue: what it sent all the same, a later one sends again.
    let in_time = run.plan.is_fair() && run.plan.faults.latency_ms < SLOW_MS;
    let mut found = Vec::new();
    for event in &run.events {
        let (actor, at) = (event.actor, event.at);
        match &event.what {
            What::Decided(decided) => {
                known.decide(&decided.effects);
            }
            What::OfExecution(happening) => {
                known.hear(happening);
            }
            What::Message { fate: Fate::Received, note: Note::Timers(timers), .. } => {
                for timer in timers {
                    *known.received.entry((actor, key(timer))).or_default() += 1;
                }
            }
            What::Message { fate: Fate::Sent(_) | Fate::Dropped, note: Note::Timers(timers), .. } => {
                for timer in timers {
                    let wrong = known.send(actor, timer, in_time);
                    found.extend(wrong.map(|what| Violation::new(Invariant::I9, at, what)));
                }
            }
            What::Called { call, request: Request::Fire(note) } if note.is_handover() => {
                known.helping.insert(*call, actor);
            }
            What::Called { request: Request::Tick(_), .. } => {
                known.began.insert(actor, at);
                known.handing_over.remove(&actor);
            }
            What::Answered { call, answer: Answer::Fired(_) | Answer::NotFired(_) } => {
                known.helping.remove(call);
            }
            What::Answered { answer: Answer::Ticked(report), .. } if !report.out_of_time => {
                for key in known.handing_over.remove(&actor).unwrap_or_default() {
                    known.handed_over.entry(key).or_insert(at);
                }
            }
            What::Called { .. }
            | What::Answered { .. }
            | What::Stored(_)
            | What::Message { .. }
            | What::Fault(_) => {}
        }
    }
    found
}

impl Known {
    fn hear(&mut self, happening: &Happening) {
        match happening {
            Happening::Decided(ruling) => self.decide(&ruling.effects),
            // Whoever wrote it may have no time for what is left of the close: a message goes on with it.
            Happening::Stored(change) => {
                if let ExecutionState::Closing(closed) = &change.after.state {
                    let at = closed.ended_at;
                    let of_the_close = (change.after.id.clone().into(), at, at);
                    *self.decided.entry(of_the_close).or_default() += 1;
                }
            }
            Happening::Sealed { .. } | Happening::Joined { .. } | Happening::Did(_) | Happening::Acted(_) => {
            }
        }
    }

    fn decide(&mut self, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::Timer(timer) => *self.decided.entry(key(timer)).or_default() += 1,
                Effect::Dispatch { .. } | Effect::Turn { .. } | Effect::NotifyParent(_) => {}
            }
        }
    }

    /// What is wrong with sending this timer, if anything is.
    fn send(&mut self, actor: Actor, timer: &Timer, in_fair_weather: bool) -> Option<String> {
        let key = key(timer);
        let by_decision = self.decided.get_mut(&key);
        let by_receipt = self.received.get_mut(&(actor, key.clone()));
        if let Some(left) = by_receipt.into_iter().chain(by_decision).find(|left| **left > 0) {
            *left -= 1;
            return None;
        }
        let what = || format!("the timer of {} for {}", timer.record, clock(timer.at));
        if self.helping.values().any(|helping| *helping == actor) {
            // A message that comes twice, or whose call fails after it has sent some, has them sent twice.
            return None;
        }
        if !matches!(actor, Actor::Ticker(_)) {
            return Some(format!("nobody decided to send {}", what()));
        }
        self.handing_over.entry(actor).or_default().push(key.clone());
        // Where calls fail, a tick may be unable to note what it has handed over.
        let (began, noted) = (self.began.get(&actor)?, self.handed_over.get(&key)?);
        let again = in_fair_weather && noted < began;
        again.then(|| format!("{} was handed over before, at {}", what(), clock(*noted)))
    }
}

fn key(timer: &Timer) -> Key {
    (timer.record.clone(), timer.at, timer.due_at)
}
