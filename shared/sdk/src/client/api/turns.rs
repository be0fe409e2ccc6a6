//! The calls of programs that run workflows.

use tickover_core::duration::Millis;
use tickover_core::id::{ExecutionId, QueueName};
use tickover_wire::Route;
use tickover_wire::answer::{
    CallbackAnswer, TurnAnswer, TurnCancelAnswer, TurnPayloadAnswer, TurnStartAnswer, WorkAnswer,
};
use tickover_wire::request::{
    TurnCallbackRequest, TurnCancelRequest, TurnPayloadRequest, TurnReadRequest, TurnStartRequest,
    TurnWriteRequest, WorkRequest,
};

use super::Api;
use crate::client::ClientError;
use crate::client::call::Call;

/// The calls with which a program runs workflows. [`serve`](crate::serve()) makes them for you: see
/// [a worker of another process](crate::guide::first_workflow#a-worker-of-another-process).
impl Api {
    /// Claims work of a queue: tasks, and turns of workflows. The call is sent once, because a claim whose answer was lost
    /// may have claimed work.
    pub async fn claim_work(
        &self,
        queue: &QueueName,
        request: &WorkRequest,
    ) -> Result<WorkAnswer, ClientError> {
        let wait = request.wait.map(Millis::from).unwrap_or_default();
        self.ask(Call::with(Route::ClaimWork, [queue.as_str()], request)?.wait(wait)).await
    }

    /// Records what a turn has done, and extends its lease or ends it.
    pub async fn write_turn(
        &self,
        id: &ExecutionId,
        request: &TurnWriteRequest,
    ) -> Result<TurnAnswer, ClientError> {
        self.ask(Call::with(Route::WriteTurn, [id.as_str()], request)?.repeatable(true)).await
    }

    /// Reads the record of a turn, its journal, outcomes, and large payloads.
    pub async fn read_turn(
        &self,
        id: &ExecutionId,
        request: &TurnReadRequest,
    ) -> Result<TurnAnswer, ClientError> {
        self.ask(Call::with(Route::ReadTurn, [id.as_str()], request)?.repeatable(true)).await
    }

    /// Starts remote steps and children of a turn.
    pub async fn start_steps(
        &self,
        id: &ExecutionId,
        request: &TurnStartRequest,
    ) -> Result<TurnStartAnswer, ClientError> {
        self.ask(Call::with(Route::StartSteps, [id.as_str()], request)?.repeatable(true)).await
    }

    /// Cancels remote steps that a turn no longer waits for.
    pub async fn cancel_steps(
        &self,
        id: &ExecutionId,
        request: &TurnCancelRequest,
    ) -> Result<TurnCancelAnswer, ClientError> {
        self.ask(Call::with(Route::CancelSteps, [id.as_str()], request)?.repeatable(true)).await
    }

    /// Stores a large payload of a turn.
    pub async fn store_payload(
        &self,
        id: &ExecutionId,
        request: &TurnPayloadRequest,
    ) -> Result<TurnPayloadAnswer, ClientError> {
        self.ask(Call::with(Route::StorePayload, [id.as_str()], request)?.repeatable(true)).await
    }

    /// Makes the token with which a wait of a turn ends.
    pub async fn create_wait_callback(
        &self,
        id: &ExecutionId,
        request: &TurnCallbackRequest,
    ) -> Result<CallbackAnswer, ClientError> {
        self.ask(Call::with(Route::CreateWaitCallback, [id.as_str()], request)?.repeatable(true)).await
    }
}
