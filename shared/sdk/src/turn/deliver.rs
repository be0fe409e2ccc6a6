//! Delivers outcomes to the code: one at a time, in the order of the journal, each when the code is at rest.
//!
//! Code that waits for several futures continues with the first that ends. So the order in which outcomes are delivered
//! must be the same in every replay. Every future of the context ends with a journal entry, also a sleep or a wait for
//! an event. No future is ready at its first poll, except for small captured values.
//!
//! When an outcome is delivered, the code may be polling another future, as `select!` does while it runs one of its
//! branches. The outcome stays available for the next poll of its future. If there are several such outcomes, only one
//! of them is available until the code is at rest: `select!` polls its branches in random order, and would take another
//! one in each replay. The available outcome is the first one in the journal. If the code polls others of them and not
//! this one, as with `now_or_never`, another one becomes available.

use tickover_core::execution::journal::Happened;
use tickover_core::id::StepName;
use tickover_core::payload::Payload;
use tickover_core::time::Timestamp;

use super::need::{Need, Rank, Waiting};
use super::state::{AlsoAvailable, State};

/// How many large results are read at once, ahead of their delivery.
const READ_AHEAD: usize = 32;

/// The result of a delivery.
pub(super) enum Delivered {
    /// An outcome was delivered. The future that polls it was woken.
    Something,
    /// The next outcome needs these payloads, which have to be read first.
    NotYet(Vec<Payload>),
    /// There is no further outcome.
    Nothing,
}

impl State {
    /// Delivers the next outcome that the code waits for. The code has to be at rest.
    pub(super) fn deliver(&mut self) -> Delivered {
        self.delivering = None;
        while let Some((place, number)) =
            self.requested.first_key_value().map(|(place, number)| (*place, *number))
        {
            // The code may have stopped polling it again.
            if self.is_watched(number) {
                return self.deliver_to(number);
            }
            self.requested.remove(&place);
        }
        while let Some(name) = self.replay.next_outcome() {
            match self.numbers.get(name).copied() {
                Some(number) if !self.is_over(number) => return self.deliver_to(number),
                Some(_) | None => self.replay.pass(),
            }
        }
        Delivered::Nothing
    }

    fn is_over(&self, number: u64) -> bool {
        self.needs.get(&number).is_none_or(|waiting| waiting.ended.is_some())
    }

    fn deliver_to(&mut self, number: u64) -> Delivered {
        let Some(Waiting { need, ended, .. }) = self.needs.get(&number) else {
            return Delivered::Something;
        };
        let (name, ended) = (need.name().clone(), *ended);
        self.move_back();
        // The available outcome must be read too, because the code could take either.
        let other = self.passed.first_key_value().map(|(_, other)| *other).filter(|_| ended.is_none());
        for next in other.and_then(|other| self.name_of(other)).iter().chain([&name]) {
            if self.unread(next).is_some() {
                return Delivered::NotYet(self.to_read(next));
            }
        }
        match ended {
            Some(Rank { place, .. }) => drop(self.requested.remove(&place)),
            None => self.replay.pass(),
        }
        self.also_available = AlsoAvailable { number: other, is_passed_over: false };
        if let Some(place) = self.replay.position(&name) {
            self.has_ended(number, place);
        }
        if let Some(waker) = self.needs.get_mut(&number).and_then(|waiting| waiting.waker.take()) {
            waker.wake();
        }
        self.delivering = Some(number);
        self.last_delivered = Some(name);
        Delivered::Something
    }

    fn name_of(&self, number: u64) -> Option<StepName> {
        self.needs.get(&number).map(|waiting| waiting.need.name().clone())
    }

    /// Moves the available outcome behind the others, if the code has polled one of them and not this one.
    fn move_back(&mut self) {
        let AlsoAvailable { number, is_passed_over } = self.also_available;
        let other = number.and_then(|number| self.needs.get_mut(&number));
        if let (true, Some(Waiting { ended: Some(rank), .. })) = (is_passed_over, other)
            && let Some(number) = self.passed.remove(rank)
        {
            self.moved_back += 1;
            rank.moved_back = self.moved_back;
            self.passed.insert(*rank, number);
        }
        self.also_available.is_passed_over = false;
    }

    /// The payload that has to be read before this outcome can be delivered.
    fn unread(&self, name: &StepName) -> Option<&Payload> {
        self.replay.name_state(name).payload().filter(|payload| self.text(payload).is_none())
    }

    /// The payloads that have to be read for this outcome, and for those after it.
    fn to_read(&self, name: &StepName) -> Vec<Payload> {
        let ahead = self.replay.undelivered_outcomes().filter(|ahead| *ahead != name);
        let waited = ahead.filter(|ahead| self.numbers.contains_key(*ahead));
        let unread =
            std::iter::once(name).chain(waited.take(READ_AHEAD)).filter_map(|name| self.unread(name));
        unread.cloned().collect()
    }

    /// Records the end of the sleep, timeout or wait that ends first: its instant has passed, or its event has arrived.
    /// Returns whether there was one.
    pub(super) fn record_next_end(&mut self, now: Timestamp) -> bool {
        let Some((_, what)) = self.next_end(now) else { return false };
        self.replay.push(now, what);
        true
    }

    /// The instant of the next end if its time has passed, rather than an event has arrived.
    pub(super) fn next_end_by_time(&self, now: Timestamp) -> Option<Timestamp> {
        let (at, what) = self.next_end(now)?;
        (!matches!(what, Happened::Waited { event: Some(_), .. })).then_some(at)
    }

    fn next_end(&self, now: Timestamp) -> Option<(Timestamp, Happened)> {
        self.open().filter_map(|need| self.end_of(need, now)).min_by_key(|(at, _)| *at)
    }

    /// The instant at which a sleep or wait has ended, and its journal entry. `None` if it hasn't ended.
    fn end_of(&self, need: &Need, now: Timestamp) -> Option<(Timestamp, Happened)> {
        match need {
            Need::Timer { name, until } => {
                (*until <= now).then(|| (*until, Happened::Fired { name: name.clone() }))
            }
            Need::Event { name, event, until } => {
                let waited = |event| Happened::Waited { name: name.clone(), event };
                // An event that was sent too late is left for another wait.
                let in_time = |sent_at: Timestamp| until.is_none_or(|until| sent_at < until);
                let offered = self.replay.next_event(event).map(|event| event.sent_at);
                match offered.filter(|at| in_time(*at)) {
                    Some(at) => Some((at, waited(Some(event.clone())))),
                    None => until.filter(|until| *until <= now).map(|until| (until, waited(None))),
                }
            }
            Need::Keep { .. }
            | Need::Inline(_)
            | Need::Remote(_)
            | Need::Child { .. }
            | Need::Outcome { .. }
            | Need::Elsewhere { .. } => None,
        }
    }

    /// Records until when the code sleeps or waits, if the journal doesn't have it yet.
    pub(super) fn note_instants(&mut self, now: Timestamp) {
        let instants = self.open().filter_map(|need| match need {
            Need::Timer { name, until } | Need::Event { name, until: Some(until), .. } => {
                Some((name, *until))
            }
            Need::Event { until: None, .. }
            | Need::Keep { .. }
            | Need::Inline(_)
            | Need::Remote(_)
            | Need::Child { .. }
            | Need::Outcome { .. }
            | Need::Elsewhere { .. } => None,
        });
        let unknown = instants.filter(|(name, _)| self.replay.name_state(name).is_fresh());
        let noted: Vec<_> =
            unknown.map(|(name, until)| Happened::Until { name: name.clone(), until }).collect();
        for what in noted {
            self.replay.push(now, what);
        }
    }
}
