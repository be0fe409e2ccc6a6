//! Work for a process that does several things at once: what may have killed another worker is handed out apart from
//! the rest, so that it is run with nothing beside it.

use tickover_core::id::QueueName;
use tickover_core::time::Timestamp;

use super::{ClaimRequest, Isolation, Looked, Wanted};
use crate::error::ServiceError;
use crate::executions::Work;
use crate::ports::Received;
use crate::service::Service;

/// Work whose last worker was lost, perhaps because of it. Nobody has taken it yet.
#[derive(Clone, Debug)]
pub struct Suspect(Received);

/// What a queue has for a process that does several things at once.
#[derive(Clone, Debug, Default)]
pub struct FoundWork {
    /// To be done side by side.
    pub work: Vec<Work>,
    /// To be taken one after another, while nothing else is done.
    pub suspects: Vec<Suspect>,
}

/// Messages that have come, and that nobody has looked at yet.
#[derive(Debug)]
pub struct Arrived {
    messages: Vec<Received>,
    /// Until when others don't see them.
    hidden_until: Timestamp,
}

impl Arrived {
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }
}

impl Service {
    /// Waits for the first messages of a queue, and takes nothing yet.
    pub async fn arrivals(&self, queue: &QueueName, request: &ClaimRequest) -> Result<Arrived, ServiceError> {
        let until = self.now().plus(request.wait);
        let messages = self.first_messages(queue, request, until).await?;
        Ok(Arrived { messages, hidden_until: self.now().plus(request.lease) })
    }

    /// Takes work among messages that have come, as [`Self::work_apart`] does, without waiting for more.
    pub async fn work_among(
        &self,
        queue: &QueueName,
        arrived: Arrived,
        request: &ClaimRequest,
        knows: &(dyn Fn(&str) -> bool + Send + Sync),
    ) -> Result<FoundWork, ServiceError> {
        let now = self.now();
        if arrived.is_empty() || arrived.hidden_until <= now {
            // Whatever had come can be seen by others again.
            return Ok(FoundWork::default());
        }
        self.look_among(queue, arrived.messages, Wanted::apart(request, knows), now).await
    }

    /// Takes work from a queue that can be done side by side, and names what has to be done alone. Tasks of a kind
    /// that the caller doesn't know are left to others.
    pub async fn work_apart(
        &self,
        queue: &QueueName,
        request: &ClaimRequest,
        knows: &(dyn Fn(&str) -> bool + Send + Sync),
    ) -> Result<FoundWork, ServiceError> {
        self.look_for_work(queue, Wanted::apart(request, knows)).await
    }

    /// What messages come to for a caller who takes what has to be done alone by itself.
    pub(super) async fn offer_apart(
        &self,
        queue: &QueueName,
        messages: &[Received],
        wanted: Wanted<'_>,
    ) -> Result<Looked, ServiceError> {
        let messages: Vec<&Received> = messages.iter().collect();
        let found = self.work_messages(queue, &messages, wanted).await;
        let suspects: Vec<_> = found.suspects.into_iter().cloned().map(Suspect).collect();
        if !found.work.is_empty() || !suspects.is_empty() {
            return Ok(Looked::Found(FoundWork { work: found.work, suspects }));
        }
        found.trouble.map_or(Ok(Looked::Nothing { all_spent: true }), Err)
    }

    /// Takes work that was named as suspect, by a process that has nothing else under way. Nothing if others were
    /// faster, or it has ended.
    pub async fn take_suspect(
        &self,
        queue: &QueueName,
        suspect: &Suspect,
        request: &ClaimRequest,
    ) -> Result<Option<Work>, ServiceError> {
        if self.is_paused(queue).await? {
            self.show_again(queue, &suspect.0, super::SHOWN_AGAIN).await;
            return Ok(None);
        }
        let wanted = Wanted { request, turns: true, company: Isolation::Alone, knows: None, apart: false };
        let found = self.work_messages(queue, &[&suspect.0], wanted).await;
        match (found.work.into_iter().next(), found.trouble) {
            (Some(work), _) => Ok(Some(work)),
            (None, Some(error)) => Err(error),
            (None, None) => Ok(None),
        }
    }
}
