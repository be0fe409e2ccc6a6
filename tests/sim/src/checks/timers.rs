//! What must hold of the messages in the queue of timers: a decision is behind each, and no tick sends a timer that an
//! earlier tick has sent.

use std::collections::{BTreeMap, BTreeSet};

use tickover_core::decision::Effect;
use tickover_core::execution::command::Command;
use tickover_core::execution::{Execution, ExecutionState};
use tickover_core::id::RecordId;
use tickover_core::time::Timestamp;
use tickover_core::timer::Timer;

use super::unanswered::Unanswered;
use crate::Run;
use crate::history::execution::Happening;
use crate::history::{Actor, Answer, Fate, Note, Request, What};
use crate::trace::clock;
use crate::violation::{Invariant, Violation};

type Key = (RecordId, Timestamp, Timestamp);

/// A tick waits 3 s for a queue. A call takes at most this long, each way.
pub(super) const SLOW_MS: u64 = 1_500;

/// What is known at some point of the history.
#[derive(Default)]
struct Known {
    /// Timers that may be sent because of a decision.
    decided: BTreeMap<Key, i64>,
    /// Timers that an actor received, and may send again.
    received: BTreeMap<(Actor, Key), i64>,
    /// The messages that anybody has received.
    seen: BTreeSet<String>,
    /// For each actor, how many messages it has received that had been received before, or that look after a call.
    again: BTreeMap<Actor, i64>,
    /// For each ticker, when its present tick began.
    began: BTreeMap<Actor, Timestamp>,
    /// For each ticker, the timers that its present tick has sent.
    handing_over: BTreeMap<Actor, Vec<Key>>,
    /// The actors that, by calls on a message, send the rest of a tick's timers.
    helping: BTreeMap<u64, Actor>,
    /// The due slots that crons had at any time.
    slots: BTreeSet<(RecordId, Timestamp)>,
    unanswered: Unanswered<Key>,
    /// For each timer, when the first tick succeeded that had sent it.
    handed_over: BTreeMap<Key, Timestamp>,
}

pub(super) fn of_run(run: &Run) -> Vec<Violation> {
    let crons = run.world.ledger.crons().into_iter();
    let slots = crons.filter_map(|noted| Some((RecordId::Cron(noted.cron.id), noted.cron.due?.at))).collect();
    let mut known = Known { slots, unanswered: Unanswered::in_run(run), ..Known::default() };
    // A tick doesn't wait for a slow queue: timers that were sent in spite of that are sent again by a later tick.
    let in_time = run.plan.is_fair() && run.plan.faults.latency_ms < SLOW_MS;
    let mut found = Vec::new();
    for event in &run.events {
        let (actor, at) = (event.actor, event.at);
        known.unanswered.event(event);
        match &event.what {
            What::Decided(decided) => {
                known.decide(&decided.effects);
            }
            What::OfExecution(happening) => {
                known.hear(happening);
            }
            What::Message { fate: Fate::Received, note, .. } => {
                known.receive(actor, note);
                let Note::Timers(timers) = note else { continue };
                for timer in timers {
                    *known.received.entry((actor, key(timer))).or_default() += 1;
                }
            }
            What::Message { fate: Fate::Sent(_) | Fate::Dropped, note: Note::Timers(timers), .. } => {
                for timer in timers {
                    let wrong = known.send((actor, at), timer, in_time);
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
            Happening::Decided(ruling) => {
                self.decide(&ruling.effects);
                // Whoever ends a child also goes on with a close that it finds: the process that began it may have died.
                if matches!(ruling.command, Command::Cancel | Command::Terminate | Command::Start(_))
                    && let Some(found) = &ruling.seen
                {
                    self.may_continue(found);
                }
            }
            Happening::Stored(change) => self.may_continue(&change.after),
            Happening::Sealed { .. } | Happening::Joined { .. } | Happening::Did(_) | Happening::Acted(_) => {
            }
        }
    }

    /// Its close is in progress, and whoever does it may send a message that goes on with it.
    fn may_continue(&mut self, execution: &Execution) {
        if let ExecutionState::Closing(closed) = &execution.state {
            let at = closed.ended_at;
            *self.decided.entry((execution.id.clone().into(), at, at)).or_default() += 1;
        }
    }

    fn receive(&mut self, actor: Actor, note: &Note) {
        let looks_after = matches!(note, Note::Timers(timers) if timers.iter().any(Timer::is_beforehand));
        if !self.seen.insert(format!("{note:?}")) || looks_after {
            *self.again.entry(actor).or_default() += 1;
        }
    }

    fn decide(&mut self, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::Timer(timer) => *self.decided.entry(key(timer)).or_default() += 1,
                Effect::Dispatch { .. }
                | Effect::Turn { .. }
                | Effect::NotifyParent(_)
                | Effect::CameToLine { .. }
                | Effect::FreePlaces(_) => {}
            }
        }
    }

    /// An error, if this timer must not be sent.
    fn send(
        &mut self,
        (actor, at): (Actor, Timestamp),
        timer: &Timer,
        without_failures: bool,
    ) -> Option<String> {
        let key = key(timer);
        if self.unanswered.repeats(actor, key.clone(), at) {
            return None;
        }
        let by_decision = self.decided.get_mut(&key);
        let by_receipt = self.received.get_mut(&(actor, key.clone()));
        if let Some(left) = by_receipt.into_iter().chain(by_decision).find(|left| **left > 0) {
            *left -= 1;
            return None;
        }
        let what = || format!("the timer of {} for {}", timer.record, clock(timer.at));
        if self.helping.values().any(|helping| *helping == actor) {
            // A message that is received twice, or whose call fails after it has sent some timers, sends them twice.
            return None;
        }
        if self.slots.contains(&(timer.record.clone(), timer.due_at)) {
            // The history has no decisions on crons.
            return None;
        }
        if matches!(timer.record, RecordId::Cron(_))
            && self.decided.contains_key(&key)
            && let Some(left) = self.again.get_mut(&actor).filter(|left| **left > 0)
        {
            // A message that comes again after the end of a run tells the cron once more.
            *left -= 1;
            return None;
        }
        if matches!(timer.record, RecordId::Operation(_)) {
            // Whoever carries an operation out sends its message on, without a decision.
            return None;
        }
        if timer.is_beforehand() {
            // An operator's call sends one before its decision.
            return None;
        }
        if !matches!(actor, Actor::Ticker(_)) {
            return Some(format!("no decision is behind {}", what()));
        }
        self.handing_over.entry(actor).or_default().push(key.clone());
        // Where calls fail, a tick may be unable to record which timers it has sent.
        let (began, noted) = (self.began.get(&actor)?, self.handed_over.get(&key)?);
        let again = without_failures && noted < began;
        again.then(|| format!("a tick had already sent {}, at {}", what(), clock(*noted)))
    }
}

fn key(timer: &Timer) -> Key {
    (timer.record.clone(), timer.at, timer.due_at)
}
