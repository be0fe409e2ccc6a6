//! A state of the world, and what can happen next.

use std::ops::Range;

use tickover_core::time::Timestamp;

use super::actor::Actor;
use super::record::{Record, bit};
use super::{Faults, Plan};

/// A state of the world.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The index of the clock's instant in the plan.
    pub(super) clock: u8,
    /// The record of each task.
    pub(super) table: Vec<Option<Record>>,
    /// The order has no meaning, so they are sorted.
    pub(super) messages: Vec<Message>,
    /// All alike, so they are sorted.
    pub(super) workers: Vec<Actor>,
    /// All alike, so they are sorted.
    pub(super) ticks: Vec<Actor>,
    /// The faults that may still happen.
    pub(super) left: Faults,
    /// History that no actor sees and that the properties need.
    pub(super) seen: Seen,
}

/// History that the records don't hold.
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

/// The body of a message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Body {
    /// There is work: a copy of the record.
    Hint(Record),
    /// An instant of a task has come.
    Timer { task: u8, due_at: Timestamp },
}

/// An actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// A worker, by its index in the state.
    Worker(usize),
    /// A tick, by its index in the state.
    Tick(usize),
}

/// What can happen. Messages and actors are named by their index in the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The next task is written, and its hint is sent.
    Schedule,
    /// The next task is written, and the caller dies before it sends the hint.
    ScheduleUnsent,
    /// An idle worker receives a hint and decides on the copy in it.
    Deliver(usize),
    /// An idle tick receives a timer and decides on the record.
    Fire(usize),
    /// An idle tick finds a task in the due index and decides on its record.
    ProbeTask(u8),
    /// A decision is written and its messages are sent. Or its record is old, and the actor decides again.
    Commit(Who),
    /// A decision is written, but the answer is lost, so the actor will write again.
    CommitUnanswered(Who),
    /// A decision is written, and the actor dies before it sends the messages.
    CommitUnsent(Who),
    /// A worker reports a result.
    Complete(usize),
    /// A worker reports a retryable error.
    Fail(usize),
    /// A worker sends a heartbeat.
    Heartbeat(usize),
    /// An actor dies between two steps, and is replaced.
    Crash(Who),
    /// A message is lost.
    Lose(usize),
    /// A message is duplicated.
    Duplicate(usize),
    /// The clock advances.
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

    /// An actor dies and is replaced. Its message becomes visible again later.
    pub(super) fn die(&mut self, who: Who) -> Option<()> {
        let message = self.actor(who)?.received_message().cloned();
        self.messages.extend(message);
        self.put(who, Actor::Idle);
        Some(())
    }

    pub(super) fn everybody(&self) -> impl Iterator<Item = (Who, &Actor)> {
        let workers = self.workers.iter().enumerate().map(|(at, actor)| (Who::Worker(at), actor));
        let ticks = self.ticks.iter().enumerate().map(|(at, actor)| (Who::Tick(at), actor));
        workers.chain(ticks)
    }

    /// A number of this range that no record, actor or message holds. It is as good as a random one, and keeps the
    /// number of states finite. It is never 0, which means: not drawn yet.
    pub(super) fn fresh(&self, range: Range<u8>) -> u8 {
        let records = self.table.iter().flatten().map(Record::numbers);
        let actors = self.everybody().map(|(_, actor)| actor.numbers());
        let messages = self.messages.iter().map(|message| message.body.numbers());
        let used = records.chain(actors).chain(messages).fold(0, |all, one| all | one);
        range.clone().find(|number| used & bit(*number) == 0).unwrap_or(range.end)
    }

    /// Whether there is no hint anywhere.
    pub(super) fn looks_empty(&self) -> bool {
        let received = self.workers.iter().filter_map(Actor::received_message);
        !self.messages.iter().chain(received).any(|message| matches!(message.body, Body::Hint(_)))
    }

    /// The number of messages, including those in flight.
    pub(super) fn message_count(&self) -> usize {
        self.messages.len() + self.workers.iter().filter_map(Actor::received_message).count()
    }

    /// Makes equivalent states equal.
    pub(super) fn normalise(&mut self, keep_stale: bool) {
        for actor in self.workers.iter_mut().chain(&mut self.ticks) {
            if let Some(back) = actor.received_message().filter(|message| message.from <= self.clock) {
                self.messages.push(back.clone());
                *actor = actor.without_message();
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
