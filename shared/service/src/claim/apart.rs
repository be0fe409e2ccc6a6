//! Claims for a process that does several pieces of work at once: work that may have killed another worker is returned
//! apart from the rest, so that the process runs it alone.

use tickover_core::id::QueueName;
use tickover_core::time::Timestamp;

use super::{ClaimRequest, Isolation, ProcessedMessages, Wanted};
use crate::error::ServiceError;
use crate::executions::Work;
use crate::ports::Received;
use crate::service::Service;

/// Work whose last worker was lost, perhaps because of this work. It isn't leased yet.
#[derive(Clone, Debug)]
pub struct Suspect(Received);

/// A queue's work for a process that does several pieces at once.
#[derive(Clone, Debug, Default)]
pub struct FoundWork {
    /// To be done at the same time.
    pub work: Vec<Work>,
    /// To be claimed one after another, while no other work is in progress.
    pub suspects: Vec<Suspect>,
}

/// Messages that were received and not yet processed.
#[derive(Debug)]
pub struct Arrived {
    messages: Vec<Received>,
    /// Until when they are hidden from others.
    hidden_until: Timestamp,
}

impl Arrived {
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }
}

impl Service {
    /// Waits for the first messages of a queue, without claiming anything yet.
    pub async fn arrivals(&self, queue: &QueueName, request: &ClaimRequest) -> Result<Arrived, ServiceError> {
        let until = self.now().plus(request.wait);
        let messages = self.first_messages(queue, request, until).await?;
        Ok(Arrived { messages, hidden_until: self.now().plus(request.lease) })
    }

    /// Claims work among messages that were received, as [`Self::work_apart`] does, without waiting for more.
    pub async fn work_among(
        &self,
        queue: &QueueName,
        arrived: Arrived,
        request: &ClaimRequest,
        knows: &(dyn Fn(&str) -> bool + Send + Sync),
    ) -> Result<FoundWork, ServiceError> {
        let now = self.now();
        if arrived.is_empty() || arrived.hidden_until <= now {
            // The messages may be visible to others again.
            return Ok(FoundWork::default());
        }
        self.find_work_among(queue, arrived.messages, Wanted::apart(request, knows), now).await
    }

    /// Claims work from a queue that can be done at the same time, and reports work that must run alone. Tasks of kinds
    /// that the caller doesn't know are left to other workers.
    pub async fn work_apart(
        &self,
        queue: &QueueName,
        request: &ClaimRequest,
        knows: &(dyn Fn(&str) -> bool + Send + Sync),
    ) -> Result<FoundWork, ServiceError> {
        self.find_work(queue, Wanted::apart(request, knows)).await
    }

    /// Processes messages for a caller who claims separately what must run alone.
    pub(super) async fn process_apart(
        &self,
        queue: &QueueName,
        messages: &[Received],
        wanted: Wanted<'_>,
    ) -> Result<ProcessedMessages, ServiceError> {
        let messages: Vec<&Received> = messages.iter().collect();
        let found = self.work_messages(queue, &messages, wanted).await;
        let suspects: Vec<_> = found.suspects.into_iter().cloned().map(Suspect).collect();
        if !found.work.is_empty() || !suspects.is_empty() {
            return Ok(ProcessedMessages::Found(FoundWork { work: found.work, suspects }));
        }
        found.error.map_or(Ok(ProcessedMessages::Nothing { all_spent: true }), Err)
    }

    /// Claims work that was reported as suspect, for a process that has no other work in progress. Returns `None` if
    /// another worker was faster, or the work has ended.
    pub async fn take_suspect(
        &self,
        queue: &QueueName,
        suspect: &Suspect,
        request: &ClaimRequest,
    ) -> Result<Option<Work>, ServiceError> {
        if self.is_paused(queue).await? {
            self.set_visibility(queue, &suspect.0, super::REDELIVERY_DELAY).await;
            return Ok(None);
        }
        let wanted = Wanted { request, turns: true, isolation: Isolation::Alone, knows: None, apart: false };
        let found = self.work_messages(queue, &[&suspect.0], wanted).await;
        match (found.work.into_iter().next(), found.error) {
            (Some(work), _) => Ok(Some(work)),
            (None, Some(error)) => Err(error),
            (None, None) => Ok(None),
        }
    }
}
