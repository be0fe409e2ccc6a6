//! A command for records that had ended at an instant: what happened to one afterwards isn't asked about.

use tickover_core::command::Context;
use tickover_core::decision::Decision;
use tickover_core::error::Reject;
use tickover_core::execution::Execution;
use tickover_core::task::Task;
use tickover_core::time::Timestamp;

use super::{Drive, TryOf};
use crate::error::ServiceError;
use crate::ports::{Current, Store, StoreError};
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

/// A command that is refused with [`Reject::EndedLater`] if the record ended after `by`, also if another process changes
/// the record meanwhile.
pub(crate) struct EndedBy<C> {
    pub(crate) command: C,
    /// Absent: at any time.
    pub(crate) by: Option<Timestamp>,
}

impl<C> Drive for EndedBy<C>
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
        if self.by.is_some_and(|by| ended_at > Some(by)) {
            return Decision::refuse(record, Reject::EndedLater);
        }
        self.command.decide(rules, record, context)
    }

    async fn read(store: &dyn Store, id: &C::Id) -> Result<Option<C::Record>, StoreError> {
        C::read(store, id).await
    }

    fn current(current: Current) -> Option<Box<C::Record>> {
        C::current(current)
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
        Ok(again.map(|command| Self { command, by: self.by }))
    }

    fn count(&self, record: &C::Record) {
        self.command.count(record);
    }
}
