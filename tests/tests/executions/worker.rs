//! A caller of the HTTP interface that is also the worker of the queue `workflows`.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use tickover_core::duration::Millis;
use tickover_core::execution::command::{Cleanup, Close, Ending, Suspend};
use tickover_core::execution::journal::{Entry, Happened, StepOutcome};
use tickover_core::execution::{Execution, ExecutionOutcome};
use tickover_core::id::{EventName, StepName};
use tickover_core::payload::{Json, Payload};
use tickover_core::retry::RetryPolicy;
use tickover_core::task::Failure;
use tickover_core::time::Timestamp;
use tickover_service::ServiceError;
use tickover_service::executions::{StartedTurn, Suspended, Work};
use tickover_service::ports::Clock as _;
use tickover_tests::http::Caller;
use tickover_tests::scene::{claim_request, queue_name};

/// The default queue of executions.
const QUEUE: &str = "workflows";

/// A caller and a worker.
#[derive(Default)]
pub(crate) struct Worker {
    pub(crate) caller: Caller,
}

pub(crate) fn name(text: &str) -> StepName {
    StepName::parse(text).expect("a name")
}

pub(crate) fn payload(value: &Value) -> Payload {
    Payload::Inline(Json::parse(value.to_string()).expect("JSON"))
}

pub(crate) fn completed(value: &Value) -> Ending {
    Ending::Outcome(ExecutionOutcome::Completed { output: Some(payload(value)) })
}

/// An ending: the run failed, and its code has three attempts, 30 s apart.
pub(crate) fn failed_run() -> Ending {
    let outcome = ExecutionOutcome::Failed {
        error: Failure::new("payment", "declined"),
        step: None,
        retries_exhausted: false,
    };
    let retry = RetryPolicy::fixed(2, Millis::from_secs(30));
    Ending::FailedRun { outcome, retry, carried: vec![] }
}

/// An ending: a failure by this step.
pub(crate) fn failed_by(step: &str) -> Ending {
    let error = Failure::new("payment", "declined");
    Ending::Outcome(ExecutionOutcome::Failed { error, step: Some(step.to_owned()), retries_exhausted: true })
}

impl Worker {
    /// Starts an execution of the workflow `orders` with these further fields.
    pub(crate) async fn start(&self, id: &str, fields: Value) -> Value {
        let mut body = json!({"id": id, "workflow": "orders"});
        if let (Some(body), Value::Object(fields)) = (body.as_object_mut(), fields) {
            body.extend(fields);
        }
        self.caller.ok("/v1/executions", body).await["execution"].take()
    }

    /// Reads the resource at this path.
    pub(crate) async fn get(&self, path: &str) -> Value {
        let (status, answer) = self.caller.send(Method::GET, path, None).await;
        assert_eq!(status, StatusCode::OK, "{path}: {answer}");
        answer
    }

    /// The execution as it is now.
    pub(crate) async fn seen(&self, id: &str) -> Value {
        self.get(&format!("/v1/executions/{id}")).await["execution"].take()
    }

    /// Sends an operator's call; returns the whole answer.
    pub(crate) async fn operate(&self, id: &str, call: &str) -> Value {
        self.caller.ok(&format!("/v1/executions/{id}/{call}"), json!({})).await
    }

    /// Starts the next turn, if one is ready.
    pub(crate) async fn try_take(&self) -> Option<StartedTurn> {
        let work = self.caller.scene.service.next_work(&queue_name(QUEUE), &claim_request(1)).await;
        match work.expect("an answer").pop()? {
            Work::Turn(turn) => Some(*turn),
            Work::Task(task) => panic!("a task: {task:?}"),
        }
    }

    /// Starts the next turn, which must be of this execution.
    pub(crate) async fn take(&self, id: &str) -> StartedTurn {
        let turn = self.try_take().await.expect("a turn");
        assert_eq!(turn.execution.id.as_str(), id);
        turn
    }

    /// An entry with the present time.
    pub(crate) fn entry(&self, what: Happened) -> Entry {
        Entry { at: self.caller.scene.clock.now(), what }
    }

    /// An inline step that has completed.
    pub(crate) fn step(&self, step: &str, output: &Value) -> Entry {
        let outcome = StepOutcome::Completed { output: Some(payload(output)) };
        self.entry(Happened::Step {
            name: name(step),
            outcome,
            attempts: Some(1),
            expired: None,
            errors: vec![],
        })
    }

    /// An inline step that has used up its attempts.
    pub(crate) fn exhausted(&self, step: &str) -> Entry {
        let error = payload(&json!({"code": "payment", "message": "declined"}));
        let outcome = StepOutcome::Exhausted { error };
        self.entry(Happened::Step {
            name: name(step),
            outcome,
            attempts: Some(3),
            expired: None,
            errors: vec![],
        })
    }

    /// A wait that has taken an event of its own name.
    pub(crate) fn taken(&self, event: &str) -> Entry {
        let event = EventName::parse(event).expect("a name");
        self.entry(Happened::Waited { name: name(event.as_str()), event: Some(event) })
    }

    /// Records the entries of a turn.
    pub(crate) async fn record(
        &self,
        turn: &StartedTurn,
        entries: Vec<Entry>,
    ) -> Result<Execution, ServiceError> {
        self.caller.scene.service.record_turn(&turn.execution, turn.lease, entries, Cleanup::default()).await
    }

    /// Suspends a turn until that instant, or until it is woken.
    pub(crate) async fn suspend(&self, turn: StartedTurn, entries: Vec<Entry>, until: Option<Timestamp>) {
        let suspended = self.try_suspend(&turn, entries, until, false).await.expect("a suspension");
        assert!(matches!(suspended, Suspended::Done(_)), "{suspended:?}");
        self.done_with(&turn).await;
    }

    /// Tries to suspend a turn, which may have to continue.
    pub(crate) async fn try_suspend(
        &self,
        turn: &StartedTurn,
        entries: Vec<Entry>,
        until: Option<Timestamp>,
        awaits_others: bool,
    ) -> Result<Suspended, ServiceError> {
        let suspend = Suspend {
            lease: turn.lease,
            entries,
            seen_version: turn.execution.version,
            seen_wakes: turn.execution.wakes,
            until,
            awaits_others,
            events: vec![],
            cleanup: Cleanup::default(),
            values: None,
        };
        self.caller.scene.service.suspend_turn(&turn.execution, suspend).await
    }

    /// Ends a turn and its run.
    pub(crate) async fn close(&self, turn: StartedTurn, entries: Vec<Entry>, ending: Ending) {
        self.try_close(&turn, entries, ending).await.expect("a close");
        self.done_with(&turn).await;
    }

    /// Tries to end a turn and its run.
    pub(crate) async fn try_close(
        &self,
        turn: &StartedTurn,
        entries: Vec<Entry>,
        ending: Ending,
    ) -> Result<Execution, ServiceError> {
        let close = Close { lease: turn.lease, entries, ending, cleanup: Cleanup::default(), values: None };
        self.caller.scene.service.close_turn(&turn.execution, close).await
    }

    /// Deletes a turn's message.
    pub(crate) async fn done_with(&self, turn: &StartedTurn) {
        let receipt = turn.receipt.as_deref().expect("a receipt");
        self.caller.scene.service.done_with(&turn.execution.queue, receipt).await;
    }

    /// Starts an execution and suspends it without an end of its wait.
    pub(crate) async fn parked(&self, id: &str, fields: Value) {
        self.start(id, fields).await;
        let turn = self.take(id).await;
        self.suspend(turn, vec![], None).await;
    }

    /// Starts an execution and ends it with this result.
    pub(crate) async fn ended(&self, id: &str, output: &Value) {
        self.start(id, json!({})).await;
        let turn = self.take(id).await;
        self.close(turn, vec![], completed(output)).await;
    }
}
