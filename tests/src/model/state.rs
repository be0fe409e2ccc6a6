//! All there is at one moment, and what can happen next.

use std::ops::Range;

use tickover_core::time::Timestamp;

use super::actor::Actor;
use super::record::{Record, bit};
use super::{Faults, Plan};

/// A moment of the world.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// Which of the plan's instants it is.
    pub(super) clock: u8,
    /// The record of each task.
    pub(super) table: Vec<Option<Record>>,
    /// In no order, so they are kept in one.
    pub(super) messages: Vec<Message>,
    /// All alike, so they are kept in order.
    pub(super) workers: Vec<Actor>,
    /// All alike, so they are kept in order.
    pub(super) ticks: Vec<Actor>,
    /// What may still go wrong.
    pub(super) left: Faults,
    /// What nobody in the world sees, but properties look at.
    pub(super) seen: Seen,
}

/// What happened so far, as far as the records don't tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Seen {
    /// Results recorded for each task.
    pub(super) results: Vec<u8>,
    /// Whether a record was changed after it had ended.
    pub(super) revived: bool,
}

/// A message. In flight, it is with the worker that received it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Message {
    pub(super) body: Body,
    /// The instant from which it can be received: 0 once it can.
    pub(super) from: u8,
}

/// What a message says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Body {
    /// There is work: the record as it stood.
    Hint(Record),
    /// Look at a task now.
    Timer { task: u8, due_at: Timestamp },
}

/// Somebody who acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// A worker, by its place in the state.
    Worker(usize),
    /// A tick, by its place in the state.
    Tick(usize),
}

/// What can happen. Messages and actors are named by their place in the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The next task is written, and its hint is sent.
    Schedule,
    /// The next task is written, and whoever did it dies before it sends the hint.
    ScheduleUnsent,
    /// An idle worker receives a hint and decides on the copy in it.
    Deliver(usize),
    /// An idle tick receives a timer and decides on the record.
    Fire(usize),
    /// An idle tick finds a task in the due index and decides on its record.
    Look(u8),
    /// A decision is written and others are told, or it was made on an old record and is made again.
    Commit(Who),
    /// A decision is written, but the answer is lost, so it will be tried again.
    CommitUnanswered(Who),
    /// A decision is written, and whoever made it dies before it tells anybody.
    CommitUnsent(Who),
    /// A worker reports a result, or what it thinks is one.
    Complete(usize),
    /// A worker reports an error that is worth a retry.
    Fail(usize),
    /// A worker says that it is alive.
    Heartbeat(usize),
    /// Somebody dies in the middle of something, and is replaced.
    Crash(Who),
    /// A message is lost.
    Lose(usize),
    /// A message is doubled.
    Duplicate(usize),
    /// Time goes on.
    Advance,
}

impl State {
    /// Before anything has happened.
    pub(super) fn first(plan: &Plan) -> Self {
        let tasks = usize::from(plan.tasks);
        Self {
            clock: 0,
            table: vec![None; tasks],
            messages: vec![],
            workers: vec![Actor::Idle; plan.workers],
            ticks: vec![Actor::Idle; plan.ticks],
            left: plan.faults,
            seen: Seen { results: vec![0; tasks], revived: false },
        }
    }

    pub(super) fn record(&self, task: u8) -> Option<&Record> {
        self.table.get(usize::from(task)).and_then(Option::as_ref)
    }

    pub(super) fn actor(&self, who: Who) -> Option<&Actor> {
        match who {
            Who::Worker(at) => self.workers.get(at),
            Who::Tick(at) => self.ticks.get(at),
        }
    }

    pub(super) fn put(&mut self, who: Who, actor: Actor) {
        let place = match who {
            Who::Worker(at) => self.workers.get_mut(at),
            Who::Tick(at) => self.ticks.get_mut(at),
        };
        if let Some(place) = place {
            *place = actor;
        }
    }

    /// Somebody dies and is replaced; the message it had is seen again later.
    pub(super) fn die(&mut self, who: Who) -> Option<()> {
        let message = self.actor(who)?.flight().cloned();
        self.messages.extend(message);
        self.put(who, Actor::Idle);
        Some(())
    }

    pub(super) fn everybody(&self) -> impl Iterator<Item = (Who, &Actor)> {
        let workers = self.workers.iter().enumerate().map(|(at, actor)| (Who::Worker(at), actor));
        let ticks = self.ticks.iter().enumerate().map(|(at, actor)| (Who::Tick(at), actor));
        workers.chain(ticks)
    }

    /// A number of this range that nothing in the world remembers: as good as a random one, and there remain
    /// finitely many states. None is 0, which stands for one that isn't drawn yet.
    pub(super) fn fresh(&self, range: Range<u8>) -> u8 {
        let records = self.table.iter().flatten().map(Record::numbers);
        let actors = self.everybody().map(|(_, actor)| actor.numbers());
        let messages = self.messages.iter().map(|message| message.body.numbers());
        let used = records.chain(actors).chain(messages).fold(0, |all, one| all | one);
        range.clone().find(|number| used & bit(*number) == 0).unwrap_or(range.end)
    }

    /// Whether no hint is anywhere.
    pub(super) fn looks_empty(&self) -> bool {
        let flights = self.workers.iter().filter_map(Actor::flight);
        !self.messages.iter().chain(flights).any(|message| matches!(message.body, Body::Hint(_)))
    }

    /// Messages, those in flight included.
    pub(super) fn message_count(&self) -> usize {
        self.messages.len() + self.workers.iter().filter_map(Actor::flight).count()
    }

    /// The same for all states that nobody could tell apart.
    pub(super) fn normalise(&mut self, keep_stale: bool) {
        for actor in self.workers.iter_mut().chain(&mut self.ticks) {
            if let Some(back) = actor.flight().filter(|message| message.from <= self.clock) {
                self.messages.push(back.clone());
                *actor = actor.without_flight();
            }
            if !keep_stale && let Some(fresher) = actor.without_stale_copy(&self.table) {
                *actor = fresher;
            }
        }
        for message in &mut self.messages {
            if message.from <= self.clock {
                message.from = 0;
            }
        }
        self.messages.sort_unstable();
        self.workers.sort_unstable();
        self.ticks.sort_unstable();
    }
}

impl Body {
    pub(super) fn numbers(&self) -> u64 {
        match self {
            Self::Hint(record) => record.numbers(),
            Self::Timer { .. } => 0,
        }
    }
}
