//! Messages whose tasks have ended: skipped in large batches, so that work behind them is found, however many there
//! are.

use std::collections::{BTreeMap, HashMap};

use futures::future::join_all;
use tickover_core::duration::Millis;
use tickover_core::id::{QueueName, TaskId};
use tickover_core::limits::CLAIM_MAX;
use tickover_core::task::hint::Hint;
use tickover_core::task::{State, Task};

use super::messages::{arrives_at, available_at};
use super::{ClaimRequest, REDELIVERY_DELAY};
use crate::error::ServiceError;
use crate::ports::{Received, StoreError};
use crate::service::Service;
use crate::telemetry::field;

/// How many batches of messages are received at once. One call reads all their records.
const BATCHES: usize = 8;

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
        let hints: Vec<Option<Hint>> =
            messages.iter().map(|message| Hint::parse(&message.body).ok()).collect();
        let records = match self.records_of(&hints).await {
            Ok(records) => records,
            Err(error) => {
                self.set_visibilities(queue, &messages.iter().collect::<Vec<_>>(), REDELIVERY_DELAY).await;
                return Err(error);
            }
        };
        let (mut dead, mut live, mut arrived) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (message, hint) in messages.into_iter().zip(hints) {
            match &hint {
                Some(hint) if is_dead(hint, records.get(&hint.task.id)) => {
                    let at = arrives_at(&hint.task);
                    let latest = arrived.entry(self.ports.queue.class_of(&message.receipt)).or_insert(at);
                    *latest = at.max(*latest);
                    dead.push(message.receipt);
                }
                // Messages that aren't a task's hint are processed as usual.
                Some(_) | None => live.push((hint.map(|hint| available_at(&hint.task)), message)),
            }
        }
        // The queue flows, even if its messages lead to nothing.
        for (class, arrived) in arrived {
            self.note_received(queue, class, arrived).await;
        }
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

    /// The current records of the tasks that hints are of.
    async fn records_of(&self, hints: &[Option<Hint>]) -> Result<HashMap<TaskId, Task>, ServiceError> {
        let mut ids: Vec<TaskId> = hints.iter().flatten().map(|hint| hint.task.id.clone()).collect();
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        match self.with_retries(|| self.ports.store.tasks(&ids)).await {
            Ok(tasks) => Ok(tasks.into_iter().map(|task| (task.id.clone(), task)).collect()),
            // A record that can't be read must not hide the others: each is then tried on its own.
            Err(StoreError::Corrupt { .. }) => {
                let copies = hints.iter().flatten().map(|hint| (hint.task.id.clone(), hint.task.clone()));
                Ok(copies.collect())
            }
            Err(error) => Err(error.into()),
        }
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

/// Whether a hint can't lead to anything any more, by the current record.
fn is_dead(hint: &Hint, record: Option<&Task>) -> bool {
    let Some(task) = record.filter(|task| task.incarnation == hint.task.incarnation) else { return true };
    match &task.state {
        State::Pending(pending) => hint.task.version < pending.since_version,
        State::Running(_) => false,
        // Its message may be the one that notifies the execution of which it is a step.
        State::Ended(_) => task.parent.is_none(),
    }
}
