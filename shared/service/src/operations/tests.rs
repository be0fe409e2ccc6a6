//! Operations over executions and tasks in memory: what each changes, and what is left of it when its process dies.

mod actions;
mod by;
mod crashes;
mod record;
mod selection;
mod together;

use tickover_core::execution::command::Ending;
use tickover_core::execution::{ExecutionOutcome, ExecutionStatus};
use tickover_core::id::{TaskKind, WorkflowName};
use tickover_core::retry::RetryPolicy;
use tickover_core::task::command::Start;
use tickover_core::task::{Failure, Status, Task};
use tickover_core::timeout::Timeouts;

use super::*;
use crate::claim::{ClaimRequest, ClaimedTask};
use crate::executions::tests::scene::{Scene, id};
use crate::executions::{StartRequest, StartedTurn};
use crate::tasks::schedule::ScheduleRequest;

/// The queue of the executions, which [`Scene`] gives.
fn work() -> QueueName {
    QueueName::parse("work").unwrap()
}

/// The queue of the tasks.
fn jobs() -> QueueName {
    QueueName::parse("jobs").unwrap()
}

fn orders() -> WorkflowName {
    WorkflowName::parse("orders").unwrap()
}

fn task_id(text: &str) -> TaskId {
    TaskId::parse(text).unwrap()
}

fn operation_id(text: &str) -> OperationId {
    OperationId::parse(text).unwrap()
}

fn name_of(number: usize) -> String {
    format!("r{number:04}")
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(name_of).collect()
}

/// All executions of the workflow.
fn all_orders() -> Selection {
    let filter = ExecutionFilter { workflow: Some(orders()), ..ExecutionFilter::default() };
    Selection::Executions { filter, ids: vec![] }
}

/// All tasks of the queue.
fn all_jobs() -> Selection {
    let filter = TaskFilter { queue: Some(jobs()), ..TaskFilter::default() };
    Selection::Tasks { filter, ids: vec![] }
}

fn these_executions(names: &[&str]) -> Selection {
    let ids = names.iter().map(|name| id(name)).collect();
    Selection::Executions { filter: ExecutionFilter::default(), ids }
}

fn these_tasks(names: &[&str]) -> Selection {
    let ids = names.iter().map(|name| task_id(name)).collect();
    Selection::Tasks { filter: TaskFilter::default(), ids }
}

fn asked(action: Action, selection: Selection) -> OperationRequest {
    let event = (action == Action::SendEvent)
        .then(|| EventToSend { name: EventName::parse("go").unwrap(), payload: Some(Json::string("now")) });
    let details = Details { selection, event };
    OperationRequest { id: Some(operation_id("op")), action, dry_run: false, total: None, details }
}

fn one_at_a_time() -> ClaimRequest {
    ClaimRequest { worker: None, max: 1, lease: Millis::from_secs(60), wait: Millis::ZERO, provides: vec![] }
}

impl Scene {
    async fn start(&self, called: &str) {
        self.start_with(StartRequest { id: Some(id(called)), ..StartRequest::new(orders(), work()) }).await;
    }

    async fn start_with(&self, request: StartRequest) {
        self.service.start(request).await.unwrap();
    }

    async fn schedule(&self, called: &str) {
        self.schedule_with(job(called)).await;
    }

    async fn schedule_with(&self, request: ScheduleRequest) {
        self.service.schedule(request).await.unwrap();
    }

    async fn end_turn(&self, turn: StartedTurn, ending: Ending) {
        self.close(&turn.execution, turn.lease, vec![], ending).await;
        self.service.done_with(&work(), turn.receipt.as_deref().unwrap()).await;
    }

    /// Ends all executions that workers are asked to run. Returns how many.
    async fn end_turns(&self, ending: impl Fn() -> Ending) -> usize {
        let mut count = 0;
        while let Some(turn) = self.turn().await {
            self.end_turn(turn, ending()).await;
            count += 1;
        }
        count
    }

    async fn fail_turns(&self) -> usize {
        self.end_turns(|| failed("declined")).await
    }

    async fn claim(&self) -> Option<ClaimedTask> {
        self.service.claim(&jobs(), &one_at_a_time()).await.unwrap().pop()
    }

    /// Fails all tasks that workers are given. Returns how many.
    async fn fail_tasks(&self, code: &str) -> usize {
        let mut count = 0;
        while let Some(claimed) = self.claim().await {
            let error = Failure::new(code, "no");
            self.service.fail(&claimed.task.id, &claimed.token, error, false).await.unwrap();
            count += 1;
        }
        count
    }

    /// Executions with these names that have failed a second ago.
    async fn failed_executions(names: &[String]) -> Self {
        let scene = Self::new();
        for name in names {
            scene.start(name).await;
        }
        assert_eq!(scene.fail_turns().await, names.len());
        scene.advance(1);
        scene
    }

    /// Tasks, likewise.
    async fn failed_tasks(names: &[String]) -> Self {
        let scene = Self::new();
        for name in names {
            scene.schedule(name).await;
        }
        assert_eq!(scene.fail_tasks("declined").await, names.len());
        scene.advance(1);
        scene
    }

    async fn task(&self, called: &str) -> Task {
        self.service.describe(&task_id(called)).await.unwrap().task
    }

    async fn count_of_tasks(&self, names: &[String], status: Status) -> u64 {
        let mut count = 0;
        for name in names {
            count += u64::from(self.task(name).await.status() == status);
        }
        count
    }

    /// How many runs the executions have had in all, each of which has had `least` or more.
    async fn runs(&self, names: &[String], least: u32) -> u32 {
        let mut sum = 0;
        for name in names {
            let run = self.execution(name).await.run;
            assert!(run >= least, "{name} had {run} runs");
            sum += run;
        }
        sum
    }

    async fn begin(&self, request: OperationRequest) -> Operation {
        self.service.start_operation(request).await.unwrap().operation
    }

    /// Starts an operation and carries it out to its end. Nothing fails meanwhile.
    async fn carry_out(&self, request: OperationRequest) -> Operation {
        let id = self.begin(request).await.id;
        self.advance(1);
        while self.fire(50_000).await > 0 {}
        let operation = self.operation(id.as_str()).await;
        assert_eq!(operation.end.as_ref().map(|end| &end.how), Some(&HowEnded::Completed));
        assert_eq!(operation.due, None);
        operation
    }

    async fn operation(&self, called: &str) -> Operation {
        self.service.operation(&operation_id(called)).await.unwrap().operation
    }

    /// Ticks, and fires timers, for as long as a lost operation and a lost hint may need. Between them, `work` happens.
    async fn recover(&self, mut work: impl AsyncFnMut(&Self)) {
        for _ in 0..14 {
            work(self).await;
            self.advance(61);
            self.tick().await.unwrap();
            while self.fire(50_000).await > 0 {}
        }
        work(self).await;
    }
}

/// Why a call was refused.
fn refused<T>(result: Result<T, ServiceError>) -> Reject {
    match result {
        Err(ServiceError::Rejected(reject)) => reject,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was not refused"),
    }
}

fn failed(code: &str) -> Ending {
    let error = Failure::new(code, "no");
    Ending::Outcome(ExecutionOutcome::Failed { error, step: None, retries_exhausted: true })
}

fn completed() -> Ending {
    Ending::Outcome(ExecutionOutcome::Completed { output: None })
}

fn job(called: &str) -> ScheduleRequest {
    ScheduleRequest {
        id: Some(task_id(called)),
        idempotency_key: None,
        queue: jobs(),
        kind: TaskKind::parse("mail").unwrap(),
        input: None,
        labels: None,
        retry: RetryPolicy::none(),
        flow: tickover_core::flow::FlowRequest::default(),
        timeouts: Timeouts::default(),
        start: Start::After(Millis::ZERO),
        trace: None,
        asked: crate::tasks::schedule::Asked::default(),
    }
}

fn counts(matched: u64, changed: u64, unchanged: u64, refused: &[(&str, u64)]) -> Counts {
    let refused = refused.iter().map(|(code, count)| ((*code).to_owned(), *count)).collect();
    Counts { matched, changed, unchanged, refused }
}
