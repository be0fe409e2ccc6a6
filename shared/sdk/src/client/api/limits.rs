//! Concurrency limits by key.

use tickover_core::id::{FlowKey, Owner};
use tickover_wire::Route;
use tickover_wire::answer::{LimitAnswer, LimitsAnswer};
use tickover_wire::request::LimitRequest;

use super::Api;
use crate::client::ClientError;
use crate::client::call::Call;

impl Api {
    /// The keys at which tasks or executions wait for a place: at most 50.
    pub async fn limits(&self) -> Result<LimitsAnswer, ClientError> {
        self.ask(Call::of(Route::Limits, [])).await
    }

    /// A key's limit, who has its places and who waits.
    pub async fn limit(&self, key: &FlowKey) -> Result<LimitAnswer, ClientError> {
        self.ask(Call::of(Route::Limit, [&key.to_path()])).await
    }

    /// Sets a key's limit, whatever requests ask for. A lower limit takes no place away.
    pub async fn set_limit(&self, key: &FlowKey, request: &LimitRequest) -> Result<LimitAnswer, ClientError> {
        self.ask(Call::with(Route::SetLimit, [&key.to_path()], request)?.repeatable(true)).await
    }

    /// Gives a key's limit back to the requests.
    pub async fn unset_limit(&self, key: &FlowKey) -> Result<LimitAnswer, ClientError> {
        self.ask(Call::of(Route::UnsetLimit, [&key.to_path()]).repeatable(true)).await
    }

    /// Forgets all starts by a key's rate: the next one comes at once.
    pub async fn reset_rate(&self, key: &FlowKey) -> Result<LimitAnswer, ClientError> {
        self.ask(Call::of(Route::ResetRate, [&key.to_path()]).repeatable(true)).await
    }

    /// Takes its place at a key from a task or an execution. The next one gets it; the one that had it goes on.
    pub async fn release_place(&self, key: &FlowKey, holder: &Owner) -> Result<LimitAnswer, ClientError> {
        self.ask(Call::of(Route::ReleasePlace, [&key.to_path(), &holder.to_string()])).await
    }
}
