//! Keys of which only one execution is started at a time: unique keys, and bursts of which only the last request runs.
//!
//! As for tasks (see `tasks/single.rs`), a record of the key names its execution, and is written before that. Tasks and
//! executions don't share these keys: an answer is always of the kind that was asked for.

use tickover_core::command::Context;
use tickover_core::error::Reject;
use tickover_core::execution::Execution;
use tickover_core::execution::command::{Bounce, Command, FirstEvent, Given, Start};
use tickover_core::execution::decision::Reply;
use tickover_core::flow::{Debounce, OnConflict, UniqueWindow};
use tickover_core::id::{ExecutionId, Fingerprint, Incarnation, Owner, QueueName};
use tickover_core::queue::KeyRecord;

use super::start::{details, is_fence};
use super::{StartRequest, Started};
use crate::contention::Tries;
use crate::drive::Known;
use crate::error::ServiceError;
use crate::service::Service;
use crate::tasks::single::{Holder, Single, WAIT, key_record};

/// What comes of a request whose key has an execution.
enum Met {
    Answer(Box<Started>),
    /// The execution has let the key go.
    LetGo,
}

impl Service {
    /// Starts an execution, or finds out what the execution that has its key says to the request.
    pub(super) async fn start_single(
        &self,
        request: &StartRequest,
        queue: &QueueName,
        single: Single<'_>,
        event: Option<&FirstEvent>,
    ) -> Result<Started, ServiceError> {
        if let Some(id) = &request.id
            && self.load_execution(id).await?.is_some_and(|found| !is_fence(&found))
        {
            // Perhaps the same request, repeated after the key went on to another execution.
            return self.start_as(request.clone(), queue.clone(), None, event.cloned()).await;
        }
        let key = single.digest("execution");
        let (mut tries, _turn) = (Tries::default(), self.turns.take(format!("key {key}")).await);
        loop {
            let stored = self.with_retries(|| self.ports.store.key(&key)).await?;
            let own = (request.id.clone().unwrap_or_else(|| self.new_execution_id()), self.new_incarnation());
            let free = match self.execution_with(stored.as_ref()).await? {
                Holder::Nobody => Some(own),
                Holder::Coming => None,
                // The same request, repeated: of the two creations, the second finds the first one's execution.
                Holder::Unwritten(id, incarnation) if id == own.0 => Some((id, incarnation)),
                Holder::Unwritten(id, incarnation) => {
                    self.keep_out(request, queue, (id, incarnation)).await?.then_some(own)
                }
                Holder::Written(found) => match self.met(request, single, *found).await? {
                    Met::Answer(started) => return Ok(*started),
                    Met::LetGo => Some(own),
                },
            };
            if let Some(own) = free
                && let Some(started) = self.start_with_key(request, queue, own, (key, stored), event).await?
            {
                return Ok(started);
            }
            self.once_more(&mut tries, WAIT).await?;
        }
    }

    async fn execution_with(
        &self,
        stored: Option<&KeyRecord>,
    ) -> Result<Holder<ExecutionId, Execution>, ServiceError> {
        let Some((key, id)) = stored.and_then(|key| Some((key, key.owner.execution()?))) else {
            return Ok(Holder::Nobody);
        };
        let found = self.load_execution(id).await?.filter(|found| found.incarnation == key.incarnation);
        Ok(self.holder_of(key, id, found, is_fence))
    }

    async fn met(
        &self,
        request: &StartRequest,
        single: Single<'_>,
        found: Execution,
    ) -> Result<Met, ServiceError> {
        let unique = match single {
            Single::Debounce(debounce) => return self.bounce_execution(request, debounce, found).await,
            Single::Unique(unique) => unique,
        };
        let keeps = match unique.window {
            UniqueWindow::Open => found.closed().is_none(),
            UniqueWindow::Waiting => found.is_untouched(),
            UniqueWindow::For(span) => self.now() < found.created_at.plus(span),
        };
        match unique.on_conflict {
            _ if !keeps => Ok(Met::LetGo),
            OnConflict::Existing => Ok(Met::Answer(Box::new(Started { execution: found, existed: true }))),
            OnConflict::Refuse => Err(Reject::NotUnique { by: Owner::Execution(found.id) }.into()),
            OnConflict::Replace => match Box::pin(self.terminate(&found.id)).await {
                Ok(_) | Err(ServiceError::Rejected(Reject::ExecutionClosed { .. } | Reject::NoExecution)) => {
                    Ok(Met::LetGo)
                }
                Err(error) => Err(error),
            },
        }
    }

    /// Puts the request in the place of the one that waits, unless a worker has begun that: then a new burst begins.
    async fn bounce_execution(
        &self,
        request: &StartRequest,
        debounce: &Debounce,
        found: Execution,
    ) -> Result<Met, ServiceError> {
        let bounce = Command::Bounce(Box::new(Bounce {
            given: Given {
                input: request.input.clone(),
                details: details(request.labels.as_ref(), request.memo.as_ref()),
                blob_ids: [self.new_blob_id(), self.new_blob_id()],
            },
            wait: debounce.wait,
            at_most: debounce.at_most,
        }));
        let id = found.id.clone();
        let decision = self.drive_execution(&id, Known::Record(Box::new(found)), &bounce).await?;
        Ok(match decision.outcome {
            Ok((execution, Reply::Bounced { taken: true })) => {
                Met::Answer(Box::new(Started { execution, existed: true }))
            }
            Ok(_) | Err(_) => Met::LetGo,
        })
    }

    /// Writes an ended execution under the id of one that a late process may still write, which is then refused. Returns
    /// whether that one doesn't exist.
    async fn keep_out(
        &self,
        beside: &StartRequest,
        queue: &QueueName,
        (id, incarnation): (ExecutionId, Incarnation),
    ) -> Result<bool, ServiceError> {
        let fence = StartRequest::new(beside.workflow.clone(), queue.clone());
        let start = self.start_of(fence, queue.clone(), id.clone(), None);
        let fence = Command::Start(Box::new(Start { incarnation, is_fence: true, ..*start }));
        let decision = self.drive_execution(&id, Known::Absent, &fence).await?;
        match decision.outcome {
            Ok((execution, _)) => Ok(is_fence(&execution)),
            // Another execution has this id, so the late process is refused anyway.
            Err(refusal) if matches!(refusal.reject, Reject::IdConflict { .. }) => Ok(true),
            Err(refusal) => Err(refusal.into()),
        }
    }

    /// Takes the key, and then starts the execution. `None` if another request was faster.
    async fn start_with_key(
        &self,
        request: &StartRequest,
        queue: &QueueName,
        own: (ExecutionId, Incarnation),
        (key, replaces): (Fingerprint, Option<KeyRecord>),
        event: Option<&FirstEvent>,
    ) -> Result<Option<Started>, ServiceError> {
        let mut request = request.clone();
        if let Some(debounce) = &request.flow.debounce {
            request.delay = debounce.wait;
        }
        let context = Context { now: self.now(), nonce: self.new_nonce(), limits: &self.limits, by: None };
        let owner = (Owner::Execution(own.0.clone()), own.1);
        let record = key_record(key, owner, context.now.plus(request.delay), &context);
        if !self.put_key(record, replaces).await? {
            return Ok(None);
        }
        let started = self.start_as(request, queue.clone(), Some(own), event.cloned()).await?;
        // If it is a fence, this process was so late that another one has taken the key.
        Ok(Some(started).filter(|started| !is_fence(&started.execution)))
    }
}

#[cfg(test)]
mod tests;
