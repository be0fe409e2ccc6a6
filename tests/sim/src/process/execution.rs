//! A process's calls about executions, recorded like all its calls.

use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::execution::Execution;
use tickover_core::execution::command::{Cleanup, Close, ReleaseReason, Suspend};
use tickover_core::execution::journal::{Entry, StepOutcome};
use tickover_core::execution::message::TurnHint;
use tickover_core::id::{EventId, EventName, ExecutionId, QueueName, StepName};
use tickover_core::payload::{Json, Payload};
use tickover_core::time::Timestamp;
use tickover_service::callbacks;
use tickover_service::claim::{ClaimRequest, ClaimedTask, Delivered, Hinted, Isolation};
use tickover_service::executions::{
    RemoteStep, StartRequest, Started, StartedTurn, StartedWork, Suspended, ToStart, Work,
};
use tickover_service::ports::Received;
use tickover_service::{Service, ServiceError};

use std::collections::BTreeMap;

use super::{Process, held, with_held};
use crate::history::execution::{
    Asked, Done, ExecutionCallAnswer, Happening, HeldTurn, Operation, ScriptAction, TurnCall,
};
use crate::history::{Answer, Held, Request, What};
use crate::tokens::Given;

/// How long a caller waits for an answer.
const ANSWER_WAIT: Millis = Millis::from_secs(20);

/// Work that a worker has received.
pub enum ReceivedWork {
    Task(Box<ClaimedTask>, Held),
    Turn(Box<StartedTurn>),
}

/// The result of a message that another actor received.
pub enum Delivery {
    /// A task or a turn to run.
    ReceivedWork(ReceivedWork),
    /// The work has to run alone.
    Suspect,
    /// Nothing is to be done.
    Spent,
}

/// The turn that a worker has started.
pub fn turn_of(taken: &StartedTurn) -> HeldTurn {
    let StartedTurn { execution, lease, .. } = taken;
    HeldTurn {
        execution: execution.id.clone(),
        incarnation: execution.incarnation,
        run: execution.run,
        lease: *lease,
    }
}

impl Process {
    /// Receives tasks and turns from a queue.
    pub async fn work(
        &self,
        queue: &QueueName,
        request: &ClaimRequest,
    ) -> Result<Vec<ReceivedWork>, ServiceError> {
        let taken = |work: &Vec<Work>| {
            let (mut tasks, mut turns) = (Vec::new(), Vec::new());
            for one in work {
                match one {
                    Work::Task(task) => tasks.extend(held(task)),
                    Work::Turn(turn) => turns.push(turn_of(turn)),
                }
            }
            Answer::Taken(tasks, turns)
        };
        let next = async |service: Service| service.next_work(queue, request).await;
        let work = self.call(Request::Work(queue.clone()), taken, next).await?;
        let in_hand = |one| match one {
            Work::Task(task) => with_held(*task).map(|(task, held)| ReceivedWork::Task(Box::new(task), held)),
            Work::Turn(turn) => Some(ReceivedWork::Turn(turn)),
        };
        Ok(work.into_iter().filter_map(in_hand).collect())
    }

    /// Claims the work that a message of a work queue is about.
    pub async fn deliver(
        &self,
        queue: &QueueName,
        message: &Received,
        request: &ClaimRequest,
        isolation: Isolation,
    ) -> Result<Delivery, ServiceError> {
        let taken = |delivery: &Delivery| match delivery {
            Delivery::ReceivedWork(ReceivedWork::Task(_, held)) => Answer::Taken(vec![held.clone()], vec![]),
            Delivery::ReceivedWork(ReceivedWork::Turn(turn)) => Answer::Taken(vec![], vec![turn_of(turn)]),
            Delivery::Suspect | Delivery::Spent => Answer::Taken(vec![], vec![]),
        };
        let take = async |service: Service| {
            let (receipt, receives) = (Some(message.receipt.as_str()), message.receive_count);
            let delivered = Delivered { body: &message.body, receipt, receives };
            if TurnHint::is_turn_hint(&message.body) {
                return Ok(match service.start_turn_among(delivered, request, isolation).await? {
                    Hinted::Taken(turn) => Delivery::ReceivedWork(ReceivedWork::Turn(turn)),
                    Hinted::Suspect => Delivery::Suspect,
                    Hinted::Spent => Delivery::Spent,
                });
            }
            Ok(match service.claim_hinted(delivered, request, isolation).await? {
                Hinted::Taken(task) => with_held(*task).map_or(Delivery::Spent, |(task, held)| {
                    Delivery::ReceivedWork(ReceivedWork::Task(Box::new(task), held))
                }),
                Hinted::Suspect => Delivery::Suspect,
                Hinted::Spent => Delivery::Spent,
            })
        };
        self.call(Request::Work(queue.clone()), taken, take).await
    }

    pub async fn start(&self, request: StartRequest) -> Result<ExecutionId, ServiceError> {
        self.start_with(request, async |service, request| service.start(request).await).await
    }

    /// Starts a child, which an earlier run of its parent may have started.
    pub async fn start_child(&self, request: StartRequest, again: bool) -> Result<ExecutionId, ServiceError> {
        self.start_with(request, async |service, request| service.start_child(request, again).await).await
    }

    async fn start_with(
        &self,
        request: StartRequest,
        start: impl AsyncFnOnce(Service, StartRequest) -> Result<Started, ServiceError>,
    ) -> Result<ExecutionId, ServiceError> {
        let started = |started: &Started| {
            let execution = &started.execution;
            Answer::OfExecution(ExecutionCallAnswer::Started {
                execution: execution.id.clone(),
                incarnation: execution.incarnation,
                existed: started.existed,
            })
        };
        let asked = Request::OfExecution(Asked::Start(request.id.clone()));
        let started = self.call(asked, started, async |service| start(service, request).await).await?;
        Ok(started.execution.id)
    }

    pub async fn send_event(
        &self,
        id: &ExecutionId,
        (event, event_id): (EventName, Option<EventId>),
        payload: Json,
    ) -> Result<(), ServiceError> {
        let asked = Request::OfExecution(Asked::SendEvent {
            execution: id.clone(),
            event: event.clone(),
            id: event_id.clone(),
            payload: payload.as_str().to_owned(),
        });
        let offered = |offered: &tickover_service::executions::EventSent| {
            Answer::OfExecution(ExecutionCallAnswer::EventSent { duplicate: offered.duplicate })
        };
        self.call(asked, offered, async |service| {
            service.send_event(id, event, event_id, Some(payload)).await
        })
        .await?;
        Ok(())
    }

    /// Waits for the answer to an event that was sent with this id.
    pub async fn ask_for_answer(
        &self,
        id: &ExecutionId,
        (event, event_id): (EventName, EventId),
    ) -> Result<(), ServiceError> {
        let asked = Asked::Answer { execution: id.clone(), id: event_id.clone() };
        let told = |answer: &Option<Json>| {
            let answer = answer.as_ref().map(|json| json.as_str().to_owned());
            Answer::OfExecution(ExecutionCallAnswer::Answered(answer))
        };
        let wait = async |service: Service| service.wait_for_answer(id, &event, &event_id, ANSWER_WAIT).await;
        self.call(Request::OfExecution(asked), told, wait).await.map(drop)
    }

    /// Executes an operator's request.
    pub async fn operate(&self, id: &ExecutionId, operation: Operation) -> Result<(), ServiceError> {
        let asked = Request::OfExecution(Asked::Operate(id.clone(), operation.clone()));
        let has_reason = self.gate.dice.chance(200);
        let operate = async |service: Service| {
            let service = if has_reason { service.because("its warehouse was shut") } else { service };
            match operation {
                Operation::Cancel => drop(service.cancel_execution(id).await?),
                Operation::Terminate => drop(service.terminate(id).await?),
                Operation::Pause => drop(service.pause(id).await?),
                Operation::Resume => drop(service.resume(id).await?),
                Operation::Restart => drop(service.restart(id).await?),
                Operation::Rerun(again) => drop(service.rerun_as(id, *again).await?),
                Operation::RetryStep(step) => drop(service.retry_step(id, step).await?),
                Operation::ClearEvents(name) => {
                    return Ok(ExecutionCallAnswer::EventsCleared(
                        service.clear_events(id, event_name(name)).await?,
                    ));
                }
            }
            Ok(ExecutionCallAnswer::Done)
        };
        self.call(asked, |told: &ExecutionCallAnswer| Answer::OfExecution(told.clone()), operate)
            .await
            .map(drop)
    }

    /// Records the entries of a turn.
    pub async fn record_turn(
        &self,
        turn: &HeldTurn,
        execution: &Execution,
        (entries, cleanup): (Vec<Entry>, Cleanup),
    ) -> Result<Execution, ServiceError> {
        let asked = TurnCall::Record(entries.clone());
        let record =
            async |service: Service| service.record_turn(execution, turn.lease, entries, cleanup).await;
        self.of_turn(turn, asked, |after: &Execution| ExecutionCallAnswer::Written(after.version), record)
            .await
    }

    /// Suspends a turn that waits.
    pub async fn suspend_turn(
        &self,
        turn: &HeldTurn,
        execution: &Execution,
        suspend: Suspend,
    ) -> Result<Suspended, ServiceError> {
        let asked = TurnCall::Suspend(suspend.entries.clone());
        let told = |suspended: &Suspended| match suspended {
            Suspended::Done(_) => ExecutionCallAnswer::Done,
            Suspended::Continue(after, _) => ExecutionCallAnswer::Written(after.version),
        };
        self.of_turn(turn, asked, told, async |service| service.suspend_turn(execution, suspend).await).await
    }

    pub async fn close_turn(
        &self,
        turn: &HeldTurn,
        execution: &Execution,
        close: Close,
    ) -> Result<Execution, ServiceError> {
        let asked = TurnCall::Close(close.entries.clone());
        let told = |after: &Execution| ExecutionCallAnswer::Written(after.version);
        self.of_turn(turn, asked, told, async |service| service.close_turn(execution, close).await).await
    }

    /// Sends a heartbeat for a turn, with its new entries.
    pub async fn heartbeat_turn(
        &self,
        turn: &HeldTurn,
        execution: &Execution,
        entries: Vec<Entry>,
        receipt: Option<&str>,
    ) -> Result<Execution, ServiceError> {
        let told = |after: &Execution| ExecutionCallAnswer::Written(after.version);
        let renew = async |service: Service| {
            service.heartbeat_turn(execution, turn.lease, (entries, None), receipt).await
        };
        self.of_turn(turn, TurnCall::Heartbeat, told, renew).await
    }

    pub async fn release_turn(
        &self,
        turn: &HeldTurn,
        execution: &Execution,
        after: Millis,
        reason: ReleaseReason,
        cleanup: Cleanup,
    ) -> Result<(), ServiceError> {
        let release = async |service: Service| {
            service.release_turn(execution, turn.lease, after, reason, Some(cleanup)).await
        };
        self.of_turn(turn, TurnCall::Release, |()| ExecutionCallAnswer::Done, release).await
    }

    /// Starts remote steps, some of them again.
    pub async fn start_remote(
        &self,
        turn: &HeldTurn,
        execution: &Execution,
        steps: Vec<RemoteStep>,
        again: Vec<StepName>,
    ) -> Result<(), ServiceError> {
        let asked = TurnCall::Begin(steps.iter().map(|step| step.name.clone()).collect());
        let begin = async |service: Service| {
            let work = ToStart { steps, again, ..ToStart::default() };
            let StartedWork { steps, trouble, .. } = service.start_work(execution, work).await;
            let refused = steps.into_iter().any(|(_, started)| started.is_err());
            let refusal = refused.then(|| Reject::field("steps", "one of them was refused").into());
            refusal.or(trouble).map_or(Ok(()), Err)
        };
        self.of_turn(turn, asked, |()| ExecutionCallAnswer::Done, begin).await
    }

    /// The outcomes of those remote steps and children that have ended.
    pub async fn outcomes(
        &self,
        execution: &Execution,
        remote: &[StepName],
        children: &[(StepName, ExecutionId)],
    ) -> Result<BTreeMap<StepName, StepOutcome>, ServiceError> {
        let mut outcomes = BTreeMap::new();
        if !remote.is_empty() {
            let ended = self.service.remote_outcomes(execution, remote).await?;
            outcomes.extend(ended.into_iter().map(|(name, ended)| (name, ended.outcome)));
        }
        if !children.is_empty() {
            let ended = self.service.child_outcomes(execution, children).await?;
            outcomes.extend(ended.into_iter().map(|(name, ended)| (name, ended.outcome)));
        }
        Ok(outcomes)
    }

    /// The token with which a wait of this execution ends.
    pub async fn token(
        &self,
        execution: &Execution,
        event: EventName,
        expires_at: Timestamp,
    ) -> Result<String, ServiceError> {
        let (id, incarnation) = (&execution.id, execution.incarnation);
        Ok(self.service.callback_of_wait(id, incarnation, event, expires_at).await?.token)
    }

    /// A report with a token.
    pub async fn call_back(&self, given: &Given, report: callbacks::Report) -> Result<(), ServiceError> {
        let asked = Request::OfExecution(Asked::CallBack {
            incarnation: given.incarnation,
            event: given.event.clone(),
            is_heartbeat: report == callbacks::Report::Heartbeat,
        });
        let call = async |service: Service| service.call_back(&given.token, report).await;
        self.call(asked, |()| Answer::Done, call).await
    }

    /// Reads the whole of a turn that was told only what came since another one.
    pub async fn read_whole(&self, turn: StartedTurn) -> Result<StartedTurn, ServiceError> {
        self.service.read_turn(turn, None).await
    }

    /// A run's whole journal.
    pub async fn journal_of(&self, execution: &Execution) -> Result<Vec<Entry>, ServiceError> {
        self.service.journal_of(execution).await
    }

    /// A payload for a journal.
    pub async fn keep(&self, json: Json) -> Result<Payload, ServiceError> {
        self.service.store_payload(json).await
    }

    /// A payload's text.
    pub async fn open(&self, payload: &Payload) -> Result<Json, ServiceError> {
        self.service.open(payload).await
    }

    /// Deletes the message of a turn that has ended.
    pub async fn done_with(&self, queue: &QueueName, receipt: &str) {
        self.service.done_with(queue, receipt).await;
    }

    /// Records what a script does.
    pub fn did(&self, turn: &HeldTurn, what: Done) {
        let deed = Happening::Did(ScriptAction { turn: turn.clone(), what });
        self.world.note(self.gate.actor, What::OfExecution(Box::new(deed)));
    }

    async fn of_turn<T>(
        &self,
        turn: &HeldTurn,
        asked: TurnCall,
        told: impl FnOnce(&T) -> ExecutionCallAnswer,
        carry_out: impl AsyncFnOnce(Service) -> Result<T, ServiceError>,
    ) -> Result<T, ServiceError> {
        let request = Request::OfExecution(Asked::Turn(turn.clone(), asked));
        self.call(request, |value| Answer::OfExecution(told(value)), carry_out).await
    }
}

/// A step's name.
///
/// # Panics
///
/// If the constant isn't a valid one.
#[expect(clippy::expect_used, reason = "our own constants")]
pub fn step_name(name: &str) -> StepName {
    StepName::parse(name).expect("a step's name")
}

/// An event's name.
///
/// # Panics
///
/// If the constant isn't a valid one.
#[expect(clippy::expect_used, reason = "our own constants")]
pub fn event_name(name: &str) -> EventName {
    EventName::parse(name).expect("an event's name")
}
