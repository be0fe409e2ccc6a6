//! How the loop handles crons.

use tickover_core::command::Context;
use tickover_core::cron::{Command, Cron, Decision, Reply};
use tickover_core::id::CronId;

use super::{Drive, TryOf};
use crate::error::ServiceError;
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

    fn id(cron: &Cron) -> &CronId {
        &cron.id
    }

    fn hints_first(&self, _cron: Option<&Cron>) -> bool {
        false
    }

    async fn first(&self, _service: &Service, _cron: &Cron) -> Result<Option<TryOf<Self>>, ServiceError> {
        Ok(None)
    }
}
