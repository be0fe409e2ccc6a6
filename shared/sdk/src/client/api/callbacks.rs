//! Callbacks.

use tickover_core::id::TaskId;
use tickover_wire::answer::{CallbackAnswer, ReceivedAnswer};
use tickover_wire::request::{CallbackFailure, CallbackRequest, CallbackResult};

use super::Api;
use crate::client::ClientError;
use crate::client::call::{Call, Route};

impl Api {
    /// Makes a token with which somebody without credentials ends the attempt that has the lease.
    pub async fn create_callback(
        &self,
        id: &TaskId,
        request: &CallbackRequest,
    ) -> Result<CallbackAnswer, ClientError> {
        self.ask(Call::with(Route::CreateCallback(id.clone()), request)?.repeatable(true)).await
    }

    /// Reports the result of a callback.
    pub async fn complete_callback(
        &self,
        token: &str,
        result: &CallbackResult,
    ) -> Result<ReceivedAnswer, ClientError> {
        self.ask(Call::with(Route::CompleteCallback(token.to_owned()), result)?).await
    }

    /// Reports the failure of a callback.
    pub async fn fail_callback(
        &self,
        token: &str,
        failure: &CallbackFailure,
    ) -> Result<ReceivedAnswer, ClientError> {
        self.ask(Call::with(Route::FailCallback(token.to_owned()), failure)?).await
    }

    /// Reports that somebody still works on what the callback is for.
    pub async fn callback_heartbeat(&self, token: &str) -> Result<ReceivedAnswer, ClientError> {
        self.ask(Call::change(Route::CallbackHeartbeat(token.to_owned())).repeatable(true)).await
    }
}
