//! What the code hears of: one outcome at a time, in the order of the journal, and the next one once it rests.
//!
//! Code that waits for several things goes on with whichever ends first, so the order in which it hears of their ends
//! is a part of what has happened. All that a future of the context waits for ends with an entry, a sleep's end and an
//! event's arrival too; nothing is ready when it is first polled but values that were captured and are small.
//!
//! Code may also look elsewhere when it is told, as `select!` does with its other branches while it runs one. What it
//! was told of is there when it looks again. Of several, only one is, until the code has come to rest: `select!` looks
//! at its branches in random order, and would take another one in each replay. That is the first in the journal; if the
//! code looks at others and not at that, as with `now_or_never`, another one's turn comes.

use tickover_core::execution::journal::Happened;
use tickover_core::id::StepName;
use tickover_core::payload::Payload;
use tickover_core::time::Timestamp;

use super::need::{Need, Rank, Waiting};
use super::state::{Due, State};

/// Large results that are read at once, of those that the code hears of next.
const READ_AHEAD: usize = 32;

/// What the code is told.
pub(super) enum Delivered {
    /// That something which it waits for has ended. Who polls it has been woken.
    Something,
    /// Nothing before these are read.
    NotYet(Vec<Payload>),
    /// Nothing: it has heard of all that has ended.
    Nothing,
}

impl State {
    /// Tells the code of the next outcome that it waits for. It has to be at rest.
    pub(super) fn deliver(&mut self) -> Delivered {
        self.told = None;
        while let Some((place, number)) =
            self.asked.first_key_value().map(|(place, number)| (*place, *number))
        {
            // It may have been set aside once more.
            if self.is_watched(number) {
                return self.tell(number);
            }
            self.asked.remove(&place);
        }
        while let Some(name) = self.replay.next_outcome() {
            match self.numbers.get(name).copied() {
                Some(number) if !self.is_over(number) => return self.tell(number),
                Some(_) | None => self.replay.pass(),
            }
        }
        Delivered::Nothing
    }

    fn is_over(&self, number: u64) -> bool {
        self.needs.get(&number).is_none_or(|waiting| waiting.ended.is_some())
    }

    fn tell(&mut self, number: u64) -> Delivered {
        let Some(Waiting { need, ended, .. }) = self.needs.get(&number) else {
            return Delivered::Something;
        };
        let (name, ended) = (need.name().clone(), *ended);
        self.stand_back();
        // What else it waits for that has ended it is told of next, or it could take either.
        let due = self.heard.first_key_value().map(|(_, due)| *due).filter(|_| ended.is_none());
        for next in due.and_then(|due| self.name_of(due)).iter().chain([&name]) {
            if self.unread(next).is_some() {
                return Delivered::NotYet(self.to_read(next));
            }
        }
        match ended {
            Some(Rank { place, .. }) => drop(self.asked.remove(&place)),
            None => self.replay.pass(),
        }
        self.due = Due { number: due, is_looked_past: false };
        if let Some(place) = self.replay.place(&name) {
            self.has_ended(number, place);
        }
        if let Some(waker) = self.needs.get_mut(&number).and_then(|waiting| waiting.waker.take()) {
            waker.wake();
        }
        self.told = Some(number);
        self.last_heard = Some(name);
        Delivered::Something
    }

    fn name_of(&self, number: u64) -> Option<StepName> {
        self.needs.get(&number).map(|waiting| waiting.need.name().clone())
    }

    /// What was due stands back behind the others if the code has looked at one of them and not at that.
    fn stand_back(&mut self) {
        let Due { number, is_looked_past } = self.due;
        let due = number.and_then(|number| self.needs.get_mut(&number));
        if let (true, Some(Waiting { ended: Some(rank), .. })) = (is_looked_past, due)
            && let Some(number) = self.heard.remove(rank)
        {
            self.stood_back += 1;
            rank.stood_back = self.stood_back;
            self.heard.insert(*rank, number);
        }
        self.due.is_looked_past = false;
    }

    /// What has to be read before the code can be told of this outcome.
    fn unread(&self, name: &StepName) -> Option<&Payload> {
        self.replay.standing(name).payload().filter(|payload| self.text(payload).is_none())
    }

    /// What has to be read for this outcome, and for those that come after it.
    fn to_read(&self, name: &StepName) -> Vec<Payload> {
        let ahead = self.replay.outcomes_ahead().filter(|ahead| *ahead != name);
        let waited = ahead.filter(|ahead| self.numbers.contains_key(*ahead));
        let unread =
            std::iter::once(name).chain(waited.take(READ_AHEAD)).filter_map(|name| self.unread(name));
        unread.cloned().collect()
    }

    /// Writes down which sleep, time limit or wait ends now, whichever came first: its instant has passed, or there
    /// is an event for it. Whether there was one.
    pub(super) fn settle(&mut self, now: Timestamp) -> bool {
        let next = self.open().filter_map(|need| self.end_of(need, now)).min_by_key(|(at, _)| *at);
        let Some((_, what)) = next else { return false };
        self.replay.push(now, what);
        true
    }

    /// Since when something has been over that ends by itself, and what is to be written of it.
    fn end_of(&self, need: &Need, now: Timestamp) -> Option<(Timestamp, Happened)> {
        match need {
            Need::Timer { name, until } => {
                (*until <= now).then(|| (*until, Happened::Fired { name: name.clone() }))
            }
            Need::Event { name, event, until } => {
                let waited = |event| Happened::Waited { name: name.clone(), event };
                // An event that was offered too late is another wait's.
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

    /// Writes down until when the code sleeps or waits, where that isn't known yet.
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
        let unknown = instants.filter(|(name, _)| self.replay.standing(name).is_fresh());
        let noted: Vec<_> =
            unknown.map(|(name, until)| Happened::Until { name: name.clone(), until }).collect();
        for what in noted {
            self.replay.push(now, what);
        }
    }
}
