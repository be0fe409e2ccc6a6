//! The calls of workers.

use tickover_core::duration::Millis;
use tickover_core::id::{QueueName, TaskId};
use tickover_wire::Route;
use tickover_wire::answer::{ClaimAnswer, HeartbeatAnswer, TaskAnswer};
use tickover_wire::request::{ClaimRequest, CompleteRequest, FailRequest, HeartbeatRequest, ReleaseRequest};

use super::Api;
use crate::client::ClientError;
use crate::client::call::Call;

impl Api {
    /// Claims tasks of a queue: the caller gets a lease for each. The call is sent once, because a claim whose answer
    /// was lost may have claimed tasks.
    ///
    /// With `same_key`, all tasks are of one kind and have the same fairness key; with `fill`, the call waits that long
    /// for more tasks after the first. See [batches](crate::guide::flow_control#batches).
    ///
    /// ```no_run
    /// use tickover::QueueName;
    /// use tickover::client::wire::request::{ClaimRequest, CompleteRequest};
    ///
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let queue = QueueName::parse("mail")?;
    /// let request = ClaimRequest::default(); // one task, if there is one now, for 60 s
    /// for task in client.api().claim(&queue, &request).await?.tasks {
    ///     println!("to be sent: {:?}", task.input);
    ///     let report = CompleteRequest { lease: task.lease, output: None };
    ///     client.api().complete(&task.id, &report).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn claim(&self, queue: &QueueName, request: &ClaimRequest) -> Result<ClaimAnswer, ClientError> {
        let [wait, fill] =
            [request.wait, request.fill].map(|wait| wait.map(Millis::from).unwrap_or_default());
        self.ask(Call::with(Route::Claim, [queue.as_str()], request)?.wait(wait.saturating_add(fill))).await
    }

    /// Sends a heartbeat: it extends the lease, restarts the heartbeat timeout unless it is of the worker alone, and its
    /// answer says whether a cancellation was requested.
    ///
    /// ```no_run
    /// use tickover::client::wire::{answer::ClaimedView, request::HeartbeatRequest};
    ///
    /// # async fn example(client: tickover::Client, task: ClaimedView) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let request = HeartbeatRequest { lease: task.lease, progress: None, details: None, worker_only: None };
    /// let answer = client.api().heartbeat(&task.id, &request).await?;
    /// println!("cancelled: {}", answer.cancel_requested);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn heartbeat(
        &self,
        id: &TaskId,
        request: &HeartbeatRequest,
    ) -> Result<HeartbeatAnswer, ClientError> {
        self.ask(Call::with(Route::Heartbeat, [id.as_str()], request)?.repeatable(true)).await
    }

    /// Ends an attempt with its result. Of several reports, the first one counts.
    pub async fn complete(&self, id: &TaskId, request: &CompleteRequest) -> Result<TaskAnswer, ClientError> {
        self.ask(Call::with(Route::Complete, [id.as_str()], request)?.repeatable(true)).await
    }

    /// Ends an attempt with an error. The task's retry policy decides whether another attempt follows.
    ///
    /// ```no_run
    /// use tickover::client::wire::answer::ClaimedView;
    /// use tickover::client::wire::request::{FailError, FailRequest};
    ///
    /// # async fn example(client: tickover::Client, task: ClaimedView) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let error: FailError = serde_json::from_str(r#"{"code": "no_such_address", "retryable": false}"#)?;
    /// client.api().fail(&task.id, &FailRequest { lease: task.lease, error }).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn fail(&self, id: &TaskId, request: &FailRequest) -> Result<TaskAnswer, ClientError> {
        self.ask(Call::with(Route::Fail, [id.as_str()], request)?.repeatable(true)).await
    }

    /// Releases a task without a result: another worker may claim it at once. The attempt doesn't count.
    pub async fn release(&self, id: &TaskId, request: &ReleaseRequest) -> Result<TaskAnswer, ClientError> {
        self.ask(Call::with(Route::Release, [id.as_str()], request)?.repeatable(true)).await
    }
}
