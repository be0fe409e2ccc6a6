//! Claims for a process that does several pieces of work at once: work that may have killed another worker is returned
//! apart from the rest, so that the process runs it alone.

use tickover_core::batch::BatchKey;
use tickover_core::execution::Execution;
use tickover_core::id::QueueName;
use tickover_core::limits::RECEIVE_MAX;
use tickover_core::task::hint::Hint;
use tickover_core::time::Timestamp;

use super::{ClaimRequest, Isolation, ProcessedMessages, Wanted};
use crate::error::ServiceError;
use crate::executions::Work;
use crate::ports::Received;
use crate::service::Service;

/// Work whose last worker was lost, perhaps because of this work. It isn't leased yet.
#[derive(Clone, Debug)]
pub struct Suspect(pub(super) Received);

impl Suspect {
    /// Whether the other one is the same message, received again.
    pub fn is_same(&self, other: &Self) -> bool {
        self.0.body == other.0.body
    }
}

/// A queue's work for a process that does several pieces at once.
#[derive(Clone, Debug, Default)]
pub struct FoundWork {
    /// To be done at the same time.
    pub work: Vec<Work>,
    /// To be claimed one after another, while no other work is in progress.
    pub suspects: Vec<Suspect>,
    /// Executions whose worker, which is elsewhere, must say first what limits their begin.
    pub asks: Vec<Execution>,
}

/// Messages that were received and not yet processed, each with the instant until which it is hidden from others.
#[derive(Debug, Default)]
pub struct Arrived(Vec<(Received, Timestamp)>);

impl Arrived {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes out all messages after the first `count`.
    #[must_use]
    pub fn split_off(&mut self, count: usize) -> Self {
        Self(self.0.split_off(count.min(self.0.len())))
    }

    /// Takes out the messages of tasks whose kinds the closure picks, each with what its batch has in common.
    pub fn take_batched(&mut self, picks: impl Fn(&str) -> bool) -> Vec<(BatchKey, Self)> {
        let mut batched = Vec::new();
        for (message, hidden_until) in std::mem::take(&mut self.0) {
            let hint = Hint::parse(&message.body).ok().filter(|hint| picks(hint.task.kind.as_str()));
            let arrived = (message, hidden_until);
            match hint {
                Some(hint) => batched.push((hint.task.batch_key(), Self(vec![arrived]))),
                None => self.0.push(arrived),
            }
        }
        batched
    }

    /// Those that are still hidden from others.
    fn hidden(self, now: Timestamp) -> Vec<Received> {
        let hidden = self.0.into_iter().filter(|(_, hidden_until)| *hidden_until > now);
        hidden.map(|(message, _)| message).collect()
    }
}

impl FromIterator<Self> for Arrived {
    fn from_iter<I: IntoIterator<Item = Self>>(all: I) -> Self {
        Self(all.into_iter().flat_map(|arrived| arrived.0).collect())
    }
}

impl Service {
    /// Waits for the first messages of a queue, without claiming anything yet.
    pub async fn arrivals(&self, queue: &QueueName, request: &ClaimRequest) -> Result<Arrived, ServiceError> {
        let until = self.now().plus(request.wait);
        let messages = self.first_messages(queue, request, until).await?;
        let hidden_until = self.now().plus(request.lease);
        Ok(Arrived(messages.into_iter().map(|message| (message, hidden_until)).collect()))
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
        // The rest may be visible to others again.
        let messages = arrived.hidden(now);
        if messages.is_empty() {
            return Ok(FoundWork::default());
        }
        self.find_work_among(queue, messages, Wanted::apart(request, knows), now).await
    }

    /// Claims the tasks of a batch whose messages were received one after another. It looks for no further messages:
    /// they would be of other tasks.
    pub async fn batch_among(
        &self,
        queue: &QueueName,
        arrived: Arrived,
        request: &ClaimRequest,
        knows: &(dyn Fn(&str) -> bool + Send + Sync),
    ) -> Result<FoundWork, ServiceError> {
        if self.is_paused(queue).await? {
            self.give_back_arrived(queue, arrived).await;
            return Ok(FoundWork::default());
        }
        let (mut all, mut trouble) = (FoundWork::default(), None);
        for some in arrived.hidden(self.now()).chunks(RECEIVE_MAX) {
            match self.process_apart(queue, some, Wanted::apart(request, knows)).await {
                Ok(ProcessedMessages::Found(found)) => {
                    all.work.extend(found.work);
                    all.suspects.extend(found.suspects);
                }
                Ok(ProcessedMessages::Nothing { .. }) => {}
                // The messages of these tasks come back soon.
                Err(error) => trouble = Some(error),
            }
        }
        match trouble {
            Some(error) if all.work.is_empty() && all.suspects.is_empty() => Err(error),
            Some(_) | None => Ok(all),
        }
    }

    /// Makes messages visible to other workers at once, with no write to their records.
    pub async fn give_back_arrived(&self, queue: &QueueName, arrived: Arrived) {
        let messages = arrived.hidden(self.now());
        self.give_back_messages(queue, &messages.iter().collect::<Vec<_>>()).await;
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
        if !found.work.is_empty() || !suspects.is_empty() || !found.asks.is_empty() {
            return Ok(ProcessedMessages::Found(FoundWork { work: found.work, suspects, asks: found.asks }));
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
        self.take_alone(queue, suspect, Wanted::of(request, true)).await
    }

    pub(super) async fn take_alone(
        &self,
        queue: &QueueName,
        suspect: &Suspect,
        wanted: Wanted<'_>,
    ) -> Result<Option<Work>, ServiceError> {
        let wanted = Wanted { isolation: Isolation::Alone, ..wanted };
        let found = self.work_messages(queue, &[&suspect.0], wanted).await;
        match (found.work.into_iter().next(), found.error) {
            (Some(work), _) => Ok(Some(work)),
            (None, Some(error)) => Err(error),
            (None, None) => Ok(None),
        }
    }
}
