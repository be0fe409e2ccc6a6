//! Crons.

use tickover_core::id::CronId;
use tickover_wire::Route;
use tickover_wire::answer::{CronAnswer, CronsAnswer, DeletedAnswer, TriggerAnswer};
use tickover_wire::request::{CronRequest, PageQuery};

use super::Api;
use crate::client::ClientError;
use crate::client::call::Call;

impl Api {
    /// Creates a cron. A request with an id may be repeated.
    pub async fn create_cron(&self, request: &CronRequest) -> Result<CronAnswer, ClientError> {
        self.ask(Call::with(Route::CreateCron, [], request)?.repeatable(request.id.is_some())).await
    }

    /// Creates a cron, or replaces the one that has the id.
    pub async fn replace_cron(&self, id: &CronId, request: &CronRequest) -> Result<CronAnswer, ClientError> {
        self.ask(Call::with(Route::ReplaceCron, [id.as_str()], request)?.repeatable(true)).await
    }

    /// A cron, and the state of its last runs.
    pub async fn cron(&self, id: &CronId) -> Result<CronAnswer, ClientError> {
        self.ask(Call::of(Route::DescribeCron, [id.as_str()])).await
    }

    /// A page of crons.
    pub async fn crons(&self, query: &PageQuery) -> Result<CronsAnswer, ClientError> {
        self.ask(Call::find(Route::ListCrons, [], query)).await
    }

    /// Starts no planned runs until the cron is resumed.
    pub async fn pause_cron(&self, id: &CronId) -> Result<CronAnswer, ClientError> {
        self.ask(Call::of(Route::PauseCron, [id.as_str()]).repeatable(true)).await
    }

    /// Continues with the next occurrence.
    pub async fn resume_cron(&self, id: &CronId) -> Result<CronAnswer, ClientError> {
        self.ask(Call::of(Route::ResumeCron, [id.as_str()]).repeatable(true)).await
    }

    /// Starts a run now.
    pub async fn trigger_cron(&self, id: &CronId) -> Result<TriggerAnswer, ClientError> {
        self.ask(Call::of(Route::TriggerCron, [id.as_str()])).await
    }

    /// Deletes a cron. Runs that it has started continue.
    pub async fn delete_cron(&self, id: &CronId) -> Result<DeletedAnswer, ClientError> {
        self.ask(Call::of(Route::DeleteCron, [id.as_str()])).await
    }
}
