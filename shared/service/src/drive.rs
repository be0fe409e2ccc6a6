//! The one loop, for tasks, executions and crons: decide on the current record, commit under its condition, notify
//! others, answer.
//!
//! After a conflict the loop decides again on the new record. After a lost answer it repeats the same write, which the
//! store recognises by its nonce. Both are bounded, by time or by count. What differs between the kinds of record is in
//! their `Drive`.

mod cron;
mod execution;
pub(crate) mod operated;
mod task;

use std::collections::BTreeMap;
use std::fmt::Display;

use futures::future::join_all;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tickover_core::command::Context;
use tickover_core::decision::{Decision, Effect, NewItem};
use tickover_core::duration::Millis;
use tickover_core::execution::message::TurnHint;
use tickover_core::id::{QueueName, RecordId, TaskId};
use tickover_core::limits::QUEUE_DELAY_MAX;
use tickover_core::record::Record;
use tickover_core::task::Task;
use tickover_core::task::hint::Hint;
use tickover_core::time::Timestamp;
use tickover_core::timer::Wake;

use crate::contention::Tries;
use crate::error::ServiceError;
use crate::metric;
use crate::ports::{Consistency, Outgoing, QueueError, StoreError};
use crate::service::{Rules, Service};
use crate::telemetry::field;
use crate::tick::outgoing;

/// How often the same write or read is repeated because the store throttles or doesn't answer.
const RETRIES_MAX: u32 = 4;
pub(crate) const CONFLICT_WAIT: Millis = Millis::new(4);
/// How many items that a record will point to are written at the same time.
const ITEMS_AT_ONCE: usize = 16;
const RETRY_WAIT: Millis = Millis::new(25);
/// Messages that were refused are sent again within this time. One call to SQS may take so long itself.
const SEND_AGAIN_WITHIN: Millis = Millis::from_secs(10);
/// No two calls take as long: whoever has waited so long stood still itself, and the queue may answer now.
const STOOD_STILL: Millis = Millis::from_secs(30);

/// What is known of the record before the first decision.
pub(crate) enum Known<R> {
    /// Nothing: the loop reads it.
    Unread,
    /// No record should exist.
    Absent,
    /// A copy from when a hint was sent, or from a moment ago.
    Record(Box<R>),
}

/// The result of one try.
pub(crate) enum Try<R, A> {
    /// Committed. The effects of the decision are still to be carried out.
    Done(Box<Decision<R, A>>),
    /// Another writer was first; the current record, if the store returns it.
    Conflict(Option<Box<R>>),
}

/// The result of one try of this command.
pub(crate) type TryOf<C> = Try<<C as Drive>::Record, <C as Drive>::Reply>;

/// A command that the loop carries out, and what is specific to its kind of record.
pub(crate) trait Drive: Sized + Sync {
    /// The kind of record that it changes.
    type Record: TryFrom<Record> + Send + Sync;
    /// The data of a successful answer.
    type Reply: Send;
    /// The id of its record.
    type Id: PartialEq + Display + Clone + Into<RecordId> + Send + Sync;
    /// What it is, in the name of a record of this kind.
    const KIND: &'static str;
    /// Whether the parent of this record is notified of its end before the commit.
    const NOTIFIES_PARENT_FIRST: bool;

    /// Decides the command by these rules.
    fn decide(
        &self,
        rules: &dyn Rules,
        record: Option<&Self::Record>,
        context: &Context<'_>,
    ) -> Decision<Self::Record, Self::Reply>;

    fn id(record: &Self::Record) -> &Self::Id;

    /// What must be written before this command is decided on the record, for a reason that the record doesn't have.
    fn first(
        &self,
        service: &Service,
        record: &Self::Record,
    ) -> impl Future<Output = Result<Option<TryOf<Self>>, ServiceError>> + Send;

    /// The command to decide after a conflict, if it must differ: it was first decided on the record `seen`, which has
    /// become `current`.
    fn again(
        &self,
        _service: &Service,
        _seen: &Self::Record,
        _current: &Self::Record,
    ) -> impl Future<Output = Result<Option<Self>, ServiceError>> + Send {
        async { Ok(None) }
    }

    /// Whether the hints of this command's decision on the record are sent before the commit.
    fn hints_first(&self, record: Option<&Self::Record>) -> bool;

    /// Counts in metrics what only the command says of a change, once the change is written.
    fn count(&self, _record: &Self::Record) {}
}

impl Service {
    /// Carries out a command and sends its messages.
    pub(crate) async fn drive<C: Drive>(
        &self,
        id: &C::Id,
        known: Known<C::Record>,
        command: &C,
    ) -> Result<Decision<C::Record, C::Reply>, ServiceError> {
        let mut decision = self.drive_unpublished(id, known, command).await?;
        self.publish(std::mem::take(&mut decision.effects)).await;
        Ok(*decision)
    }

    /// Carries out a command. The caller sends its messages, because it may have more of them.
    pub(crate) async fn drive_unpublished<C: Drive>(
        &self,
        id: &C::Id,
        known: Known<C::Record>,
        command: &C,
    ) -> Result<Box<Decision<C::Record, C::Reply>>, ServiceError> {
        // Boxed, because the future of each caller contains them. Its retention may have passed: the rules check.
        let read = async || {
            let store = &self.ports.store;
            let record = self.with_retries(|| store.read(id.clone(), Consistency::Strong)).await?;
            Ok::<_, ServiceError>(record.map(Box::new))
        };
        let mut record = match known {
            Known::Unread => read().await?,
            Known::Absent => None,
            Known::Record(record) => Some(record),
        };
        let (mut seen, mut again, mut effects) = (None, None, Vec::new());
        let (mut waits, mut turn) = (Tries::default(), None);
        loop {
            let asked = again.as_deref().unwrap_or(command);
            let first = match &record {
                Some(record) => asked.first(self, record).await?,
                None => None,
            };
            let tried = match first {
                Some(Try::Done(mut written)) => {
                    effects.append(&mut written.effects);
                    self.attempt(written.record(), asked).await?
                }
                Some(conflict @ Try::Conflict(_)) => conflict,
                None => self.attempt(record.as_deref(), asked).await?,
            };
            let current = match tried {
                Try::Done(mut decision) => {
                    decision.effects.splice(0..0, effects);
                    return Ok(decision);
                }
                Try::Conflict(found) => {
                    let mut found = found.filter(|found| C::id(found) == id);
                    if turn.is_none() {
                        let mine = self.turns.take(format!("{} {id}", C::KIND)).await;
                        // Others have written it meanwhile.
                        found = found.filter(|_| !mine.has_waited);
                        turn = Some(mine);
                    }
                    // Read even if its retention has passed: a lost creation may have been our own.
                    if found.is_some() { found } else { read().await? }
                }
            };
            let before = std::mem::replace(&mut record, current);
            if let (Some(seen), Some(current)) = (seen.get_or_insert(before), &record) {
                again = command.again(self, seen, current).await?.map(Box::new);
            }
            self.once_more_soon(&mut waits, CONFLICT_WAIT).await?;
        }
    }

    pub(crate) async fn attempt<C: Drive>(
        &self,
        record: Option<&C::Record>,
        command: &C,
    ) -> Result<Try<C::Record, C::Reply>, ServiceError> {
        let now = self.now();
        let mut decision = Box::new(self.decide(record, command, now));
        self.put_items(&decision.new_items).await?;
        if !decision.writes.is_empty() {
            if C::NOTIFIES_PARENT_FIRST {
                // Boxed, because the future of each caller would contain all of this, and few records have a parent.
                Box::pin(self.notify_parents_first(&mut decision.effects)).await?;
            }
            if command.hints_first(record) {
                let is_hint =
                    |effect: &mut Effect| matches!(effect, Effect::Dispatch { .. } | Effect::Turn { .. });
                Box::pin(self.send_messages(decision.effects.extract_if(.., is_hint).collect())).await;
            }
            match self.with_retries(|| self.ports.store.commit(&decision.writes)).await {
                Ok(()) => self.notify(&decision.writes, now),
                Err(StoreError::Conflict { current }) => {
                    metric::store_conflict();
                    let current = current.and_then(|current| C::Record::try_from(current).ok());
                    return Ok(Try::Conflict(current.map(Box::new)));
                }
                Err(error) => return Err(error.into()),
            }
            if let Some(record) = decision.record() {
                command.count(record);
            }
        }
        Ok(Try::Done(decision))
    }

    /// Decides a command on a record.
    pub(crate) fn decide<C: Drive>(
        &self,
        record: Option<&C::Record>,
        command: &C,
        now: Timestamp,
    ) -> Decision<C::Record, C::Reply> {
        let context = Context { now, nonce: self.new_nonce(), limits: &self.limits, by: None };
        command.decide(&*self.rules, record, &context)
    }

    /// Writes items that a record will point to.
    pub(crate) async fn put_items(&self, parts: &[NewItem]) -> Result<(), ServiceError> {
        let puts = parts.iter().map(|part| self.with_retries(|| self.ports.store.put_item(part)));
        stream::iter(puts.collect::<Vec<_>>()).buffered(ITEMS_AT_ONCE).try_collect().await.map_err(Into::into)
    }

    /// Reads a task; `None` after its retention.
    pub(crate) async fn load(&self, id: &TaskId) -> Result<Option<Task>, ServiceError> {
        let task = self.with_retries(|| self.ports.store.task(id)).await?;
        Ok(task.filter(|task| !task.is_gone(self.now())))
    }

    /// Reads tasks. A task that can't be read is logged and counted; the others are returned.
    pub(crate) async fn load_each(&self, ids: &[TaskId]) -> Result<(Vec<Task>, u64), ServiceError> {
        match self.with_retries(|| self.ports.store.tasks(ids)).await {
            Ok(tasks) => return Ok((tasks, 0)),
            Err(StoreError::Corrupt { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let (mut tasks, mut unreadable) = (Vec::new(), 0);
        for id in ids {
            match self.with_retries(|| self.ports.store.task(id)).await {
                Ok(task) => tasks.extend(task),
                Err(error @ StoreError::Corrupt { .. }) => {
                    tracing::error!({ field::TASK_ID } = %id, %error, "record left alone");
                    unreadable += 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok((tasks, unreadable))
    }

    /// Repeats a call a few times while the store throttles or is unavailable.
    pub(crate) async fn with_retries<T, F>(&self, call: impl Fn() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        for tries in 0..RETRIES_MAX {
            match call().await {
                Err(StoreError::Throttled | StoreError::Unavailable { .. }) => {
                    self.back_off(tries, RETRY_WAIT).await;
                }
                done => return done,
            }
        }
        call().await
    }

    /// Sends hints and timers. A failed send is only logged: the record is stored, and the tick finds it.
    pub(crate) async fn publish(&self, effects: Vec<Effect>) {
        let (mut messages, mut parents) = (Vec::new(), Vec::new());
        let (mut freed_places, mut lines) = (Vec::new(), BTreeMap::new());
        for effect in effects {
            match effect {
                Effect::Dispatch { .. } | Effect::Timer(_) | Effect::Turn { .. } => messages.push(effect),
                Effect::CameToLine { gate, waiter, limit } => {
                    lines.entry(gate).or_insert_with(Vec::new).push((*waiter, limit));
                }
                Effect::FreePlaces(freed) => freed_places.push(freed),
                Effect::NotifyParent(parent) => parents.push(parent),
            }
        }
        self.send_messages(messages).await;
        for parent in parents {
            // Boxed, because the future of each caller would contain all of this, and few records have a parent.
            Box::pin(self.notify_parent(&parent)).await;
        }
        for freed in freed_places {
            Box::pin(self.free_places(&freed)).await;
        }
        for (gate, came) in lines {
            Box::pin(self.came_to_line(&gate, came)).await;
        }
        self.send_notifications().await;
    }

    /// Sends those of the effects that are messages.
    async fn send_messages(&self, effects: Vec<Effect>) {
        let mut by_queue: BTreeMap<QueueName, Vec<Outgoing>> = BTreeMap::new();
        let now = self.now();
        for effect in effects {
            let (queue, message) = match effect {
                Effect::Dispatch { hint, at } => (hint.task.queue.clone(), hinting(&hint, at.since(now))),
                Effect::Timer(timer) if self.has_timers() => {
                    let after = timer.at.since(now);
                    (QueueName::timers(), outgoing(&Wake::Timer(timer), after))
                }
                Effect::Turn { queue, hint, at } => (queue, turning(hint, at, now)),
                // Without a timers queue, the tick enforces deadlines.
                Effect::Timer(_)
                | Effect::CameToLine { .. }
                | Effect::FreePlaces(_)
                | Effect::NotifyParent(_) => continue,
            };
            by_queue.entry(queue).or_default().extend(message);
        }
        join_all(by_queue.iter().map(|(queue, messages)| async {
            let sent = self.send(queue, messages).await;
            if !queue.is_reserved() {
                metric::hints_sent(queue, sent);
            }
        }))
        .await;
    }

    /// Sends messages, again those that the queue refuses, and returns how many were sent. What a queue that doesn't answer has
    /// kept waiting for long isn't repeated: a caller waits.
    pub(crate) async fn send(&self, queue: &QueueName, messages: &[Outgoing]) -> usize {
        let (began, mut stop_at) = (self.now(), self.now().plus(SEND_AGAIN_WITHIN));
        let mut refused: Option<Vec<Outgoing>> = None;
        let mut tries = 0;
        loop {
            let left = refused.as_deref().unwrap_or(messages);
            let results = match self.ports.queue.send(queue, left).await {
                Ok(results) => results,
                Err(error) => vec![Err(error); left.len()],
            };
            let failed = |(_, result): &(&Outgoing, &Result<(), QueueError>)| result.is_err();
            let not_sent: Vec<_> =
                left.iter().zip(&results).filter(failed).map(|(one, _)| one.clone()).collect();
            let Some(error) = results.into_iter().find_map(Result::err) else { return messages.len() };
            let may_pass = matches!(error, QueueError::Throttled | QueueError::Unavailable { .. });
            let now = self.now();
            if now.since(began) >= STOOD_STILL {
                stop_at = now.plus(SEND_AGAIN_WITHIN);
            }
            if !may_pass || tries == RETRIES_MAX || now >= stop_at {
                tracing::warn!({ field::QUEUE_NAME } = %queue, %error, "message not sent; the tick will find the record");
                return messages.len() - not_sent.len();
            }
            self.back_off(tries, RETRY_WAIT).await;
            tries += 1;
            refused = Some(not_sent);
        }
    }
}

pub(crate) fn turning(hint: TurnHint, at: Timestamp, now: Timestamp) -> Option<Outgoing> {
    let hint = hint.arriving(at.max(now));
    match hint.body() {
        Ok(body) => {
            let lane = hint.turn.lane;
            Some(Outgoing { body, delay: at.since(now).min(QUEUE_DELAY_MAX), lane })
        }
        Err(error) => {
            tracing::error!({ field::EXECUTION_ID } = %hint.turn.id, %error, "unsendable hint");
            None
        }
    }
}

fn hinting(hint: &Hint, after: Millis) -> Option<Outgoing> {
    match hint.body() {
        Ok(body) => Some(Outgoing { body, delay: after.min(QUEUE_DELAY_MAX), lane: hint.task.lane() }),
        Err(error) => {
            tracing::error!({ field::TASK_ID } = %hint.task.id, %error, "unsendable hint");
            None
        }
    }
}
