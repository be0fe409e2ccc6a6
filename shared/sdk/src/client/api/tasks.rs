//! Tasks.

use tickover_core::id::TaskId;
use tickover_wire::Route;
use tickover_wire::answer::{CancelAnswer, ListAnswer, TaskAnswer};
use tickover_wire::request::{CancelRequest, ScheduleRequest, TasksQuery};

use super::Api;
use crate::client::ClientError;
use crate::client::call::Call;

impl Api {
    /// Schedules a task. A request with an id or a key may be repeated.
    ///
    /// ```no_run
    /// use tickover::client::wire::request::ScheduleRequest;
    ///
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let text = r#"{"queue": "mail", "kind": "email", "id": "mail-7", "retry": "fixed(3, 2s)"}"#;
    /// let request: ScheduleRequest = serde_json::from_str(text)?;
    /// println!("it is {}", client.api().schedule(&request).await?.task.status);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn schedule(&self, request: &ScheduleRequest) -> Result<TaskAnswer, ClientError> {
        let is_repeatable = request.id.is_some() || request.idempotency_key.is_some();
        self.ask(Call::with(Route::Schedule, [], request)?.repeatable(is_repeatable)).await
    }

    /// A task, with its payloads.
    pub async fn task(&self, id: &TaskId) -> Result<TaskAnswer, ClientError> {
        self.ask(Call::of(Route::Describe, [id.as_str()])).await
    }

    /// A page of tasks.
    pub async fn tasks(&self, query: &TasksQuery) -> Result<ListAnswer, ClientError> {
        self.ask(Call::find(Route::List, [], query)).await
    }

    /// Cancels a task. If a worker has leased it, that worker is asked to stop. With `force`, the worker loses the task
    /// at once.
    pub async fn cancel_task(&self, id: &TaskId, force: bool) -> Result<CancelAnswer, ClientError> {
        let body = CancelRequest { force: Some(force) };
        self.ask(Call::with(Route::Cancel, [id.as_str()], &body)?.repeatable(true)).await
    }

    /// Retries a task that ended without a result.
    pub async fn retry_task(&self, id: &TaskId) -> Result<TaskAnswer, ClientError> {
        self.ask(Call::of(Route::Retry, [id.as_str()])).await
    }
}
