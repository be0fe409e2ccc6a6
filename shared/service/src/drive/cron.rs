//! How the loop handles crons.

use tickover_core::command::Context;
use tickover_core::cron::{Command, Cron, Decision, Reply};
use tickover_core::id::CronId;

use super::{Drive, TryOf};
use crate::error::ServiceError;
use crate::ports::{Current, Store, StoreError};
use crate::service::{Rules, Service};

impl Drive for Command {
    type Record = Cron;
    type Reply = Reply;
    type Id = CronId;
    const KIND: &'static str = "cron";
    const NOTIFIES_PARENT_FIRST: bool = false;

    fn decide(&self, rules: &dyn Rules, cron: Option<&Cron>, context: &Context<'_>) -> Decision {
        rules.decide_cron(cron, self, context)
    }

    async fn read(store: &dyn Store, id: &CronId) -> Result<Option<Cron>, StoreError> {
        store.cron(id).await
    }

    /// Stores don't return crons with a conflict: few writers change the same cron at once.
    fn current(_current: Current) -> Option<Box<Cron>> {
        None
    }

    fn id(cron: &Cron) -> &CronId {
        &cron.id
    }

    async fn first(&self, _service: &Service, _cron: &Cron) -> Result<Option<TryOf<Self>>, ServiceError> {
        Ok(None)
    }
}
