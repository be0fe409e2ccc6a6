//! Messages whose tasks have ended, or have no place at a key: skipped in large batches, so that work behind them is
//! found, however many there are.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use tickover_core::duration::Millis;
use tickover_core::id::{Incarnation, QueueName, TaskId};
use tickover_core::limits::CLAIM_MAX;
use tickover_core::task::decision::{ClaimReply, Reply};
use tickover_core::task::hint::Hint;
use tickover_core::task::{Command, State, Task};

use super::messages::{arrives_at, available_at};
use super::{ClaimRequest, REDELIVERY_DELAY};
use crate::drive::Known;
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
        let lined_up = self.line_up(records.values()).await;
        let waits = |task: &Task| lined_up.contains(&(task.id.clone(), task.incarnation));
        let (mut dead, mut live, mut arrived) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (message, hint) in messages.into_iter().zip(hints) {
            match &hint {
                Some(hint)
                    if waits(&hint.task)
                        || is_dead(hint, records.get(&hint.task.id), message.receive_count > 1) =>
                {
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

    /// Puts those in the line that could start now and need a place where none is free. Returns them.
    async fn line_up(&self, tasks: impl Iterator<Item = &Task>) -> BTreeSet<(TaskId, Incarnation)> {
        let (now, mut known, mut full) = (self.now(), BTreeMap::new(), Vec::new());
        for task in tasks {
            let is_ready = task.running().is_none() && task.ready_at().is_some_and(|at| at <= now);
            // One of a step may be paused with its execution, which its claim finds out.
            let may_wait = is_ready && task.parent.is_none() && task.parked.is_no();
            if may_wait && self.lacks_place(task.gates(), &mut known).await.unwrap_or(false) {
                full.push(task);
            }
        }
        let decided = join_all(full.iter().map(|task| async {
            let command = Command::WaitInLine { seen_version: task.version };
            self.drive_unpublished(&task.id, Known::Record(Box::new((*task).clone())), &command).await
        }));
        let (mut lined_up, mut effects) = (BTreeSet::new(), Vec::new());
        for (task, decided) in full.iter().zip(decided.await) {
            // The message of one for which this fails is processed as usual.
            let Ok(mut decision) = decided else { continue };
            effects.append(&mut decision.effects);
            if matches!(decision.outcome, Ok((_, Reply::Claim(ClaimReply::Parked)))) {
                lined_up.insert((task.id.clone(), task.incarnation));
            }
        }
        self.publish(effects).await;
        lined_up
    }

    /// The current records of the tasks that hints are of.
    async fn records_of(&self, hints: &[Option<Hint>]) -> Result<BTreeMap<TaskId, Task>, ServiceError> {
        let mut ids: Vec<TaskId> = hints.iter().flatten().map(|hint| hint.task.id.clone()).collect();
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() {
            return Ok(BTreeMap::new());
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
