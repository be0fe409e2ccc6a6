//! Work for a process that does several things at once: what may have killed another worker is handed out apart from
//! the rest, so that it is run with nothing beside it.

use tickover_core::id::QueueName;

use super::{ClaimRequest, Company, Looked, Wanted};
use crate::error::ServiceError;
use crate::executions::Work;
use crate::ports::Received;
use crate::service::Service;

/// Work whose last worker was lost, perhaps because of it. Nobody has taken it yet.
#[derive(Clone, Debug)]
pub struct Suspect(Received);

/// What a queue has for a process that does several things at once.
#[derive(Clone, Debug, Default)]
pub struct Offered {
    /// To be done side by side.
    pub work: Vec<Work>,
    /// To be taken one after another, while nothing else is done.
    pub suspects: Vec<Suspect>,
}

impl Service {
    /// Takes work from a queue that can be done side by side, and names what has to be done alone. Tasks of a kind
    /// that the caller doesn't know are left to others.
    pub async fn work_apart(
        &self,
        queue: &QueueName,
        request: &ClaimRequest,
        knows: &(dyn Fn(&str) -> bool + Send + Sync),
    ) -> Result<Offered, ServiceError> {
        let company = Company::Shared;
        let wanted = Wanted { request, turns: true, company, knows: Some(knows), apart: true };
        self.look_for_work(queue, wanted).await
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
            return Ok(Looked::Found(Offered { work: found.work, suspects }));
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
        let wanted = Wanted { request, turns: true, company: Company::Alone, knows: None, apart: false };
        let found = self.work_messages(queue, &[&suspect.0], wanted).await;
        match (found.work.into_iter().next(), found.trouble) {
            (Some(work), _) => Ok(Some(work)),
            (None, Some(error)) => Err(error),
            (None, None) => Ok(None),
        }
    }
}
