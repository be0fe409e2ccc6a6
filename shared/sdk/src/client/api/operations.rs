//! Operations on many executions or tasks.

use tickover_core::id::OperationId;
use tickover_wire::Route;
use tickover_wire::answer::{OperationAnswer, OperationChangeAnswer, OperationsAnswer};
use tickover_wire::request::{OperationRequest, PageQuery};

use super::Api;
use crate::client::ClientError;
use crate::client::call::Call;

impl Api {
    /// Starts an operation on many executions or tasks. A request with an id may be repeated.
    pub async fn start_operation(&self, request: &OperationRequest) -> Result<OperationAnswer, ClientError> {
        self.ask(Call::with(Route::StartOperation, [], request)?.repeatable(request.id.is_some())).await
    }

    /// An operation, with its counts so far.
    pub async fn operation(&self, id: &OperationId) -> Result<OperationAnswer, ClientError> {
        self.ask(Call::of(Route::DescribeOperation, [id.as_str()])).await
    }

    /// A page of operations, latest first.
    pub async fn operations(&self, query: &PageQuery) -> Result<OperationsAnswer, ClientError> {
        self.ask(Call::find(Route::ListOperations, [], query)).await
    }

    /// Stops an operation: the page that is under way is its last one.
    pub async fn stop_operation(&self, id: &OperationId) -> Result<OperationChangeAnswer, ClientError> {
        self.ask(Call::of(Route::StopOperation, [id.as_str()]).repeatable(true)).await
    }

    /// Lets an operation go on that was stopped or has failed.
    pub async fn resume_operation(&self, id: &OperationId) -> Result<OperationChangeAnswer, ClientError> {
        self.ask(Call::of(Route::ResumeOperation, [id.as_str()]).repeatable(true)).await
    }
}
