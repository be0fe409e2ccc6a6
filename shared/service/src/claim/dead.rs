//! Messages whose tasks have ended, or have no place at a key: skipped in large batches, so that work behind them is
//! found, however many there are.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::{join_all, try_join};
use tickover_core::duration::Millis;
use tickover_core::execution::message::TurnHint;
use tickover_core::execution::{Execution, ExecutionState};
use tickover_core::id::{ExecutionId, Incarnation, Owner, QueueName, TaskId};
use tickover_core::limits::CLAIM_MAX;
use tickover_core::task::hint::Hint;
use tickover_core::task::{State, Task};
use tickover_core::time::Timestamp;

use super::messages::{arrives_at, available_at};
use super::{ClaimRequest, REDELIVERY_DELAY};
use crate::error::ServiceError;
use crate::ports::{Received, StoreError};
use crate::service::Service;
use crate::telemetry::field;

/// How many batches of messages are received at once. One call reads all their records.
const BATCHES: usize = 8;

/// What a message says, as far as it can be skipped.
enum Body {
    Task(Box<Hint>),
    Turn(TurnHint),
    Other,
}

/// The current records of the tasks and executions that messages are of.
pub(super) struct Hinted {
    pub(super) tasks: BTreeMap<TaskId, Task>,
    pub(super) executions: BTreeMap<ExecutionId, Execution>,
    /// Whether an execution can't be read: then one that isn't here may exist.
    unreadable: bool,
}

impl Service {
    /// Receives a great many messages, deletes those that lead to nothing, and returns as many of the others as the
    /// caller asked for. The rest is made visible to others at once.
    pub(super) async fn skim(
        &self,
        queue: &QueueName,
        request: &ClaimRequest,
    ) -> Result<Vec<Received>, ServiceError> {
        let batches =
            (0..BATCHES).map(|_| self.ports.queue.receive(queue, CLAIM_MAX, request.lease, Millis::ZERO));
        let (mut messages, mut trouble) = (Vec::new(), None);
        for batch in join_all(batches).await {
            match batch {
                Ok(batch) => messages.extend(batch),
                Err(error) => trouble = Some(error),
            }
        }
        if let (true, Some(error)) = (messages.is_empty(), trouble) {
            return Err(error.into());
        }
        let bodies: Vec<Body> = messages.iter().map(|message| Body::of(&message.body)).collect();
        let records = match self.records_of(&bodies).await {
            Ok(records) => records,
            Err(error) => {
                self.set_visibilities(queue, &messages.iter().collect::<Vec<_>>(), REDELIVERY_DELAY).await;
                return Err(error);
            }
        };
        let lined_up = self.line_up(&records).await;
        let (mut dead, mut live, mut arrived) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (message, body) in messages.into_iter().zip(bodies) {
            let leads_nowhere =
                body.is_of(&lined_up) || records.have_nothing_for(&body, message.receive_count > 1);
            if leads_nowhere && let Some(at) = body.arrives_at() {
                let latest = arrived.entry(self.ports.queue.class_of(&message.receipt)).or_insert(at);
                *latest = at.max(*latest);
            }
            if leads_nowhere {
                dead.push(message.receipt);
            } else {
                live.push((body.available_at(), message));
            }
        }
        // The queue flows, even if its messages lead to nothing.
        for (class, arrived) in arrived {
            self.note_received(queue, class, arrived).await;
        }
        // Those that say no instant come first: they are few, or would be put back each time.
        live.sort_by_key(|(available_at, _)| *available_at);
        let surplus = live.split_off(live.len().min(request.max));
        let live = live.into_iter().map(|(_, message)| message).collect();
        if let Err(error) = self.ports.queue.delete_all(queue, &dead).await {
            // They are received again, and lead to nothing then.
            tracing::warn!({ field::QUEUE_NAME } = %queue, %error, "messages not deleted");
        }
        let surplus: Vec<&Received> = surplus.iter().map(|(_, message)| message).collect();
        self.set_visibilities(queue, &surplus, Millis::ZERO).await;
        Ok(live)
    }

    /// The current records that messages are of.
    async fn records_of(&self, bodies: &[Body]) -> Result<Hinted, ServiceError> {
        let (mut hints, mut executions) = (BTreeMap::new(), BTreeSet::new());
        for body in bodies {
            match body {
                Body::Task(hint) => drop(hints.insert(hint.task.id.clone(), &hint.task)),
                Body::Turn(hint) => drop(executions.insert(hint.turn.id.clone())),
                Body::Other => {}
            }
        }
        let ids: Vec<TaskId> = hints.keys().cloned().collect();
        let executions: Vec<ExecutionId> = executions.into_iter().collect();
        let tasks = async {
            if ids.is_empty() {
                return Ok(BTreeMap::new());
            }
            match self.with_retries(|| self.ports.store.tasks(&ids)).await {
                Ok(tasks) => Ok(tasks.into_iter().map(|task| (task.id.clone(), task)).collect()),
                // A record that can't be read must not hide the others: each is then tried on its own.
                Err(StoreError::Corrupt { .. }) => {
                    Ok(hints.into_iter().map(|(id, task)| (id, task.clone())).collect())
                }
                Err(error) => Err(ServiceError::from(error)),
            }
        };
        let executions = async {
            if executions.is_empty() { Ok(Default::default()) } else { self.executions_of(&executions).await }
        };
        let (tasks, (executions, unreadable)) = try_join(tasks, executions).await?;
        let executions = executions.into_iter().map(|one| (one.id.clone(), one)).collect();
        Ok(Hinted { tasks, executions, unreadable: unreadable > 0 })
    }

    /// Changes how long messages without a lease stay hidden. Where that fails, they are visible again later.
    pub(super) async fn set_visibilities(&self, queue: &QueueName, messages: &[&Received], after: Millis) {
        let receipts: Vec<String> = messages.iter().map(|message| message.receipt.clone()).collect();
        if receipts.is_empty() {
            return;
        }
        if let Err(error) = self.ports.queue.hide_all(queue, &receipts, after).await {
            tracing::debug!({ field::QUEUE_NAME } = %queue, %error, "visibility of the messages not changed");
        }
    }
}

impl Body {
    fn of(body: &str) -> Self {
        if TurnHint::is_turn_hint(body) {
            return TurnHint::parse(body).map_or(Self::Other, Self::Turn);
        }
        Hint::parse(body).map_or(Self::Other, |hint| Self::Task(Box::new(hint)))
    }

    /// Whether it is of one of these.
    fn is_of(&self, some: &BTreeSet<(Owner, Incarnation)>) -> bool {
        match self {
            Self::Task(hint) => some.contains(&(hint.task.id.clone().into(), hint.task.incarnation)),
            Self::Turn(hint) => some.contains(&(hint.turn.id.clone().into(), hint.turn.inc)),
            Self::Other => false,
        }
    }

    /// When it was to arrive, if it says so.
    fn arrives_at(&self) -> Option<Timestamp> {
        match self {
            Self::Task(hint) => Some(arrives_at(&hint.task)),
            Self::Turn(hint) => hint.turn.at,
            Self::Other => None,
        }
    }

    /// Since when its work may be started, if it says so.
    fn available_at(&self) -> Option<Timestamp> {
        match self {
            Self::Task(hint) => Some(available_at(&hint.task)),
            Self::Turn(hint) => hint.turn.at,
            Self::Other => None,
        }
    }
}

impl Hinted {
    /// Whether a message can't lead to anything any more, by the current record. One that was received before may have to
    /// send the hint that has followed it, or to say to a cron that its run has ended.
    fn have_nothing_for(&self, body: &Body, again: bool) -> bool {
        match body {
            Body::Task(hint) => is_dead(hint, self.tasks.get(&hint.task.id), again),
            Body::Turn(hint) => match self.executions.get(&hint.turn.id) {
                None => !self.unreadable,
                Some(one) if one.incarnation != hint.turn.inc => true,
                // Its message may be the one that notifies its parent, or gives up its places.
                Some(one) => !again && one.parent.is_none() && matches!(one.state, ExecutionState::Ended(_)),
            },
            // It is processed as usual.
            Body::Other => false,
        }
    }
}

/// Whether a hint can't lead to anything any more, by the current record. One that was received before may have to send the
/// hint that has followed it, or to say to a cron that its run has ended.
fn is_dead(hint: &Hint, record: Option<&Task>, again: bool) -> bool {
    let Some(task) = record.filter(|task| task.incarnation == hint.task.incarnation) else { return true };
    match &task.state {
        State::Pending(pending) => hint.task.version < pending.since_version && !again,
        State::Running(_) => false,
        // Its message may be the one that notifies the execution of which it is a step.
        State::Ended(_) => task.parent.is_none() && !(again && task.end_of_run().is_some()),
    }
}
