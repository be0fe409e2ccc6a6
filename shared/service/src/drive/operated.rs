//! An operator's command: the record says who changed it. It may be for records that had ended at an instant: what happened
//! to one afterwards isn't asked about.

use std::sync::Arc;

use tickover_core::by::By;
use tickover_core::command::Context;
use tickover_core::cron::Cron;
use tickover_core::decision::Decision;
use tickover_core::error::Reject;
use tickover_core::execution::Execution;
use tickover_core::task::Task;
use tickover_core::time::Timestamp;

use super::{Drive, TryOf};
use crate::error::ServiceError;
use crate::service::{Rules, Service};

/// A record that ends.
pub(crate) trait Ends {
    /// When it ended, if it has.
    fn ended_at(&self) -> Option<Timestamp>;
}

impl Ends for Task {
    fn ended_at(&self) -> Option<Timestamp> {
        self.ended().map(|ended| ended.ended_at)
    }
}

impl Ends for Execution {
    fn ended_at(&self) -> Option<Timestamp> {
        self.closed().map(|closed| closed.ended_at)
    }
}

/// Crons have no end after which they go on.
impl Ends for Cron {
    fn ended_at(&self) -> Option<Timestamp> {
        None
    }
}

/// A command with the operator whose call it is.
pub(crate) struct Operated<C> {
    command: C,
    /// Absent if it isn't an operator's, or nobody knows whose.
    by: Option<Arc<By>>,
    ended_by: Option<Timestamp>,
}

impl<C> Operated<C> {
    /// The same, refused with [`Reject::EndedLater`] if the record ended after an instant, also if another process changes
    /// the record meanwhile.
    pub(crate) fn if_ended_by(self, ended_by: Option<Timestamp>) -> Self {
        Self { ended_by, ..self }
    }
}

impl Service {
    /// The command as the call of the operator for whom this service works. What follows from it, such as the end of
    /// children, isn't the operator's.
    pub(crate) fn operated<C>(&self, command: C) -> Operated<C> {
        Operated { command, by: self.by.clone(), ended_by: None }
    }
}

impl<C> Drive for Operated<C>
where
    C: Drive + Send + 'static,
    C::Record: Ends + Clone,
    C::Reply: 'static,
{
    type Record = C::Record;
    type Reply = C::Reply;
    type Id = C::Id;
    const KIND: &'static str = C::KIND;
    const NOTIFIES_PARENT_FIRST: bool = C::NOTIFIES_PARENT_FIRST;

    fn decide(
        &self,
        rules: &dyn Rules,
        record: Option<&C::Record>,
        context: &Context<'_>,
    ) -> Decision<C::Record, C::Reply> {
        let ended_at = record.and_then(Ends::ended_at);
        if self.ended_by.is_some_and(|by| ended_at > Some(by)) {
            return Decision::refuse(record, Reject::EndedLater);
        }
        self.command.decide(rules, record, &Context { by: self.by.as_deref(), ..*context })
    }

    fn hints_first(&self, record: Option<&C::Record>) -> bool {
        self.command.hints_first(record)
    }

    fn id(record: &C::Record) -> &C::Id {
        C::id(record)
    }

    async fn first(
        &self,
        service: &Service,
        record: &C::Record,
    ) -> Result<Option<TryOf<Self>>, ServiceError> {
        self.command.first(service, record).await
    }

    async fn again(
        &self,
        service: &Service,
        seen: &C::Record,
        current: &C::Record,
    ) -> Result<Option<Self>, ServiceError> {
        let again = self.command.again(service, seen, current).await?;
        Ok(again.map(|command| Self { command, by: self.by.clone(), ended_by: self.ended_by }))
    }

    fn count(&self, record: &C::Record) {
        self.command.count(record);
    }
}
