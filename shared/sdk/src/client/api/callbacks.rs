//! Callbacks.

use tickover_core::id::TaskId;
use tickover_wire::Route;
use tickover_wire::answer::{CallbackAnswer, ReceivedAnswer};
use tickover_wire::request::{CallbackFailure, CallbackRequest, CallbackResult};

use super::Api;
use crate::client::ClientError;
use crate::client::call::Call;

impl Api {
    /// Makes a token with which somebody without credentials ends the attempt that has the lease.
    pub async fn create_callback(
        &self,
        id: &TaskId,
        request: &CallbackRequest,
    ) -> Result<CallbackAnswer, ClientError> {
        self.ask(Call::with(Route::CreateCallback, [id.as_str()], request)?.repeatable(true)).await
    }

    /// Reports the result of a callback.
    pub async fn complete_callback(
        &self,
        token: &str,
        result: &CallbackResult,
    ) -> Result<ReceivedAnswer, ClientError> {
        self.ask(Call::with(Route::CompleteCallback, [token], result)?).await
    }

    /// Reports the failure of a callback.
    pub async fn fail_callback(
        &self,
        token: &str,
        failure: &CallbackFailure,
    ) -> Result<ReceivedAnswer, ClientError> {
        self.ask(Call::with(Route::FailCallback, [token], failure)?).await
    }

    /// Reports that somebody still works on what the callback is for.
    pub async fn callback_heartbeat(&self, token: &str) -> Result<ReceivedAnswer, ClientError> {
        self.ask(Call::of(Route::CallbackHeartbeat, [token]).repeatable(true)).await
    }
}
