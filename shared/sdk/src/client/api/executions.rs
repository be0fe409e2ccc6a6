//! Executions and their events.

use tickover_core::duration::Millis;
use tickover_core::execution::command::StartPolicy;
use tickover_core::id::{EventName, ExecutionId, StepName};
use tickover_wire::Route;
use tickover_wire::Word;
use tickover_wire::answer::{
    ClearEventsAnswer, EventsAnswer, ExecutionAnswer, ExecutionCancelAnswer, ExecutionChangeAnswer,
    ExecutionsAnswer, ExportAnswer, RunsAnswer, SendEventAnswer, TimelineAnswer, ValueAnswer, ValuesAnswer,
    WorkflowsAnswer,
};
use tickover_wire::request::{
    DescribeQuery, EventQuery, EventRequest, ExecutionsQuery, ExportQuery, PageQuery, RerunRequest,
    RetryStepRequest, StartRequest, TimelineQuery, ValueQuery,
};

use super::Api;
use crate::client::ClientError;
use crate::client::call::Call;

impl Api {
    /// Starts an execution. A request with an id may be repeated, unless it refuses duplicates or has an event without an
    /// id.
    ///
    /// ```no_run
    /// use tickover::client::wire::request::StartRequest;
    /// use tickover::client::{ExecutionId, WorkflowName};
    ///
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// let mut request = StartRequest::new(WorkflowName::parse("order")?);
    /// request.id = Some(ExecutionId::parse("order-7")?);
    /// println!("on queue {}", client.api().start(&request).await?.execution.queue);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn start(&self, request: &StartRequest) -> Result<ExecutionAnswer, ClientError> {
        // A start that refuses duplicates would be refused because of its own first try.
        let refuses = request.policy == Some(Word(StartPolicy::Reject));
        let counts_twice = request.event.as_ref().is_some_and(|event| event.event_id.is_none());
        let is_repeatable = request.id.is_some() && !refuses && !counts_twice;
        self.ask(Call::with(Route::Start, [], request)?.repeatable(is_repeatable)).await
    }

    /// An execution with its payloads and its open waits. The answer comes at its end, or after this wait of at most 20
    /// s.
    pub async fn execution(&self, id: &ExecutionId, wait: Millis) -> Result<ExecutionAnswer, ClientError> {
        let query = DescribeQuery { wait: (!wait.is_zero()).then(|| wait.into()), run: None };
        self.ask(Call::find(Route::DescribeExecution, [id.as_str()], &query).wait(wait)).await
    }

    /// An execution as it was at the end of this run, or as it is, if that is the current one.
    pub async fn execution_in_run(&self, id: &ExecutionId, run: u32) -> Result<ExecutionAnswer, ClientError> {
        let query = DescribeQuery { wait: None, run: Some(run.into()) };
        self.ask(Call::find(Route::DescribeExecution, [id.as_str()], &query)).await
    }

    /// A page of executions.
    pub async fn executions(&self, query: &ExecutionsQuery) -> Result<ExecutionsAnswer, ClientError> {
        self.ask(Call::find(Route::ListExecutions, [], query)).await
    }

    /// All workflows, with the number of executions of each status. A deployment on AWS with
    /// `TICKOVER_LISTS=all` counts its latest 1,000 executions; without that it answers with the problem `not_kept`.
    pub async fn workflows(&self) -> Result<WorkflowsAnswer, ClientError> {
        self.ask(Call::of(Route::Workflows, [])).await
    }

    /// What happened to an execution: in this run, or without a number in the current one.
    pub async fn timeline(&self, id: &ExecutionId, run: Option<u32>) -> Result<TimelineAnswer, ClientError> {
        self.ask(Call::find(Route::Timeline, [id.as_str()], &TimelineQuery { run: run.map(Into::into) }))
            .await
    }

    /// A page of the earlier runs of an execution, latest first. They are kept for as long as the execution would have
    /// been kept if it had ended then.
    pub async fn runs(&self, id: &ExecutionId, query: &PageQuery) -> Result<RunsAnswer, ClientError> {
        self.ask(Call::find(Route::Runs, [id.as_str()], query)).await
    }

    /// The export of a run of an execution, for [`TestEnv::replay`](crate::test::TestEnv::replay): its record and its
    /// journal, with its inputs and results only if `payloads` says so. Without a number it is the current run.
    pub async fn export(
        &self,
        id: &ExecutionId,
        run: Option<u32>,
        payloads: bool,
    ) -> Result<ExportAnswer, ClientError> {
        let mut query = ExportQuery { run: run.map(Into::into), payloads: Some(payloads), cursor: None };
        let mut whole: ExportAnswer = self.ask(Call::find(Route::Export, [id.as_str()], &query)).await?;
        while let Some(cursor) = whole.cursor.take() {
            query.cursor = Some(cursor);
            let part: ExportAnswer = self.ask(Call::find(Route::Export, [id.as_str()], &query)).await?;
            whole.entries.extend(part.entries);
            whole.cursor = part.cursor;
        }
        Ok(whole)
    }

    /// Asks an execution to end: its code stops at its next step, and its undo steps run.
    pub async fn cancel(&self, id: &ExecutionId) -> Result<ExecutionCancelAnswer, ClientError> {
        self.ask(Call::of(Route::CancelExecution, [id.as_str()]).repeatable(true)).await
    }

    /// Ends an execution at once.
    pub async fn terminate(&self, id: &ExecutionId) -> Result<ExecutionCancelAnswer, ClientError> {
        self.ask(Call::of(Route::Terminate, [id.as_str()]).repeatable(true)).await
    }

    /// Starts no new work of an execution until it is resumed. Deadlines keep running.
    pub async fn pause(&self, id: &ExecutionId) -> Result<ExecutionChangeAnswer, ClientError> {
        self.ask(Call::of(Route::PauseExecution, [id.as_str()])).await
    }

    /// Continues an execution that is paused or stuck.
    pub async fn resume(&self, id: &ExecutionId) -> Result<ExecutionChangeAnswer, ClientError> {
        self.ask(Call::of(Route::ResumeExecution, [id.as_str()])).await
    }

    /// Starts a new run of an execution that has ended.
    pub async fn restart(&self, id: &ExecutionId) -> Result<ExecutionAnswer, ClientError> {
        self.ask(Call::of(Route::Restart, [id.as_str()])).await
    }

    /// The same, but the new run keeps results of the last run.
    pub async fn rerun(
        &self,
        id: &ExecutionId,
        request: &RerunRequest,
    ) -> Result<ExecutionAnswer, ClientError> {
        self.ask(Call::with(Route::Rerun, [id.as_str()], request)?).await
    }

    /// Runs a failed step again in the same run; a remote step perhaps with another input.
    pub async fn retry_step(
        &self,
        id: &ExecutionId,
        step: &StepName,
        request: &RetryStepRequest,
    ) -> Result<ExecutionAnswer, ClientError> {
        self.ask(Call::with(Route::RetryStep, [id.as_str(), step.as_str()], request)?).await
    }

    /// The values that an execution has published.
    pub async fn values(&self, id: &ExecutionId) -> Result<ValuesAnswer, ClientError> {
        self.ask(Call::of(Route::Values, [id.as_str()])).await
    }

    /// A value that an execution has published. With a wait of at most 20 s, the answer comes once there is a later version
    /// than this, or the execution has ended.
    pub async fn value(
        &self,
        id: &ExecutionId,
        name: &StepName,
        after_version: u32,
        wait: Millis,
    ) -> Result<ValueAnswer, ClientError> {
        let query = ValueQuery {
            wait: (!wait.is_zero()).then(|| wait.into()),
            version: (after_version > 0).then(|| after_version.into()),
        };
        self.ask(Call::find(Route::Value, [id.as_str(), name.as_str()], &query).wait(wait)).await
    }

    /// A page of the events that wait for an execution, and how many of each name there are.
    pub async fn events(&self, id: &ExecutionId, query: &PageQuery) -> Result<EventsAnswer, ClientError> {
        self.ask(Call::find(Route::Events, [id.as_str()], query)).await
    }

    /// Sends an event to an execution. A call with an event id may be repeated.
    pub async fn send_event(
        &self,
        id: &ExecutionId,
        name: &EventName,
        request: &EventRequest,
    ) -> Result<SendEventAnswer, ClientError> {
        // Without an id, a repeated call would add a second event.
        let call = Call::with(Route::SendEvent, [id.as_str(), name.as_str()], request)?;
        self.ask(call.repeatable(request.event_id.is_some())).await
    }

    /// Sends an event to an execution and asks for the answer of its code, for which the call waits at most so long (20 s).
    /// The answer is absent if it isn't there by then: the same call, with the event id of this answer, waits again.
    /// `unanswered` if there will be none.
    pub async fn request(
        &self,
        id: &ExecutionId,
        name: &EventName,
        request: &EventRequest,
        wait: Millis,
    ) -> Result<SendEventAnswer, ClientError> {
        let query = EventQuery { answer: Some(wait.into()) };
        let call = Call::with(Route::SendEvent, [id.as_str(), name.as_str()], request)?.finding(&query);
        self.ask(call.wait(wait).repeatable(request.event_id.is_some())).await
    }

    /// Clears the events of a name that wait for an execution.
    pub async fn clear_events(
        &self,
        id: &ExecutionId,
        name: &EventName,
    ) -> Result<ClearEventsAnswer, ClientError> {
        self.ask(Call::of(Route::ClearEvents, [id.as_str(), name.as_str()])).await
    }
}
