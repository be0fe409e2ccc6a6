//! A lost hint of any kind is found within a quarter of an hour on a queue that is never empty.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tickover_core::command::Context;
use tickover_core::decision::Effect;
use tickover_core::duration::Millis;
use tickover_core::execution::ExecutionOutcome;
use tickover_core::execution::command::{Cleanup, Close, Ending, ReleaseReason, Suspend};
use tickover_core::execution::journal::{Entry, Happened};
use tickover_core::id::{EventName, ExecutionId, StepName, TaskId, TaskKind, WorkflowName};
use tickover_core::retry::RetryPolicy;
use tickover_core::task::command::{Command, Start};
use tickover_core::task::decision::Decision;
use tickover_core::task::{Failure, Task};
use tickover_core::time::Timestamp;
use tickover_core::timeout::Timeouts;
use tickover_service::claim::{ClaimRequest, ClaimedTask};
use tickover_service::executions::{RemoteStep, StartRequest, StartedTurn, Suspended, Work, remote_id};
use tickover_service::ports::{Outgoing, Queue as _};
use tickover_service::tasks::schedule::ScheduleRequest;
use tickover_service::{Rules, Service};
use tickover_tests::faulty_queue::FaultyQueue;
use tickover_tests::scene::{Scene, claim_request, queue_name, request, task_id};

use super::after;

const QUEUE: &str = "busy";
/// The id of the work whose hint is lost.
const TARGET: &str = "target";
/// A lost hint is found by then.
const FOUND_WITHIN: Millis = Millis::from_secs(900);

/// The kind of the lost hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Task,
    Retry,
    TaskReleased,
    RepeatedSchedule,
    LaterTask,
    Start,
    LaterStart,
    TurnReleased,
    Sleep,
    LongSleep,
    Event,
    Resume,
    ContinueAsNew,
    StepNotification,
    LateStepNotification,
    /// The process that completed the step died before it notified the parent.
    NeverNotified,
}

const KINDS: [Kind; 16] = [
    Kind::Task,
    Kind::Retry,
    Kind::TaskReleased,
    Kind::RepeatedSchedule,
    Kind::LaterTask,
    Kind::Start,
    Kind::LaterStart,
    Kind::TurnReleased,
    Kind::Sleep,
    Kind::LongSleep,
    Kind::Event,
    Kind::Resume,
    Kind::ContinueAsNew,
    Kind::StepNotification,
    Kind::LateStepNotification,
    Kind::NeverNotified,
];

/// The rules, without the notification of the parent while the flag is set, as if the process had died before it.
struct NoNotification(Arc<AtomicBool>);

impl Rules for NoNotification {
    fn decide_task(&self, task: Option<&Task>, command: &Command, context: &Context<'_>) -> Decision {
        let mut decision = tickover_core::task::decide(task, command, context);
        if self.0.load(Ordering::SeqCst) {
            decision.effects.retain(|effect| !matches!(effect, Effect::NotifyParent(_)));
        }
        decision
    }
}

/// A queue with work that flows, and its worker.
struct Busy {
    scene: Scene,
    queue: Arc<FaultyQueue>,
    mute: Arc<AtomicBool>,
    others: u32,
    ticked: u64,
}

fn id(text: &str) -> ExecutionId {
    ExecutionId::parse(text).unwrap()
}

fn start(text: &str) -> StartRequest {
    let workflow = WorkflowName::parse("orders").unwrap();
    StartRequest { id: Some(id(text)), ..StartRequest::new(workflow, queue_name(QUEUE)) }
}

fn is_target(work: &Work) -> bool {
    match work {
        Work::Task(claimed) => claimed.task.id.as_str() == TARGET,
        Work::Turn(turn) => turn.execution.id.as_str() == TARGET,
    }
}

impl Busy {
    fn new() -> Self {
        let (mut scene, queue) = FaultyQueue::scene(4);
        let mute = Arc::new(AtomicBool::new(false));
        scene.service = scene.service.with_rules(Arc::new(NoNotification(Arc::clone(&mute))));
        Self { scene, queue, mute, others: 0, ticked: 0 }
    }

    fn service(&self) -> &Service {
        &self.scene.service
    }

    /// Adds more work, a task or an execution.
    async fn add_work(&mut self, tasks: bool) {
        self.others += 1;
        let other = format!("o{}", self.others);
        if tasks {
            self.service().schedule(request(QUEUE, Some(&other), None)).await.unwrap();
        } else {
            self.service().start(start(&other)).await.unwrap();
        }
    }

    /// Receives one task or turn.
    async fn take(&self) -> Option<Work> {
        for _ in 0..5 {
            let work = self.service().next_work(&queue_name(QUEUE), &claim_request(1)).await.unwrap().pop();
            if work.is_some() {
                return work;
            }
        }
        None
    }

    async fn turn(&self) -> StartedTurn {
        match self.take().await {
            Some(Work::Turn(turn)) => *turn,
            other => panic!("expected a turn, received {other:?}"),
        }
    }

    async fn task(&self) -> ClaimedTask {
        match self.take().await {
            Some(Work::Task(task)) => *task,
            other => panic!("expected a task, received {other:?}"),
        }
    }

    async fn do_work(&self, work: Work) {
        match work {
            Work::Task(claimed) => {
                self.service().complete(&claimed.task.id, &claimed.token, None).await.unwrap();
            }
            Work::Turn(turn) => {
                let ending = Ending::Outcome(ExecutionOutcome::Completed { output: None });
                self.close(&turn, ending).await;
            }
        }
    }

    async fn close(&self, turn: &StartedTurn, ending: Ending) {
        let close =
            Close { lease: turn.lease, entries: vec![], ending, cleanup: Cleanup::default(), values: None };
        self.service().close_turn(&turn.execution, close).await.unwrap();
        self.done_with(turn).await;
    }

    async fn done_with(&self, turn: &StartedTurn) {
        let receipt = turn.receipt.as_deref().unwrap();
        self.service().done_with(&turn.execution.queue, receipt).await;
    }

    async fn suspend(&self, turn: &StartedTurn, entries: Vec<Entry>, until: Option<Timestamp>, others: bool) {
        let suspend = Suspend {
            lease: turn.lease,
            entries,
            seen_version: turn.execution.version,
            seen_wakes: turn.execution.wakes,
            until,
            awaits_others: others,
            events: vec![],
            cleanup: Cleanup::default(),
            values: None,
        };
        let suspended = self.service().suspend_turn(&turn.execution, suspend).await.unwrap();
        assert!(matches!(suspended, Suspended::Done(_)));
        self.done_with(turn).await;
    }

    /// Starts the target, and its first turn.
    async fn begun(&self) -> StartedTurn {
        self.service().start(start(TARGET)).await.unwrap();
        self.turn().await
    }

    /// The target waits for this task, which a worker has claimed.
    async fn waiting_for_a_step(&self) -> (TaskId, ClaimedTask) {
        let turn = self.begun().await;
        let step = StepName::parse("label").unwrap();
        let remote = RemoteStep {
            name: step.clone(),
            kind: TaskKind::parse("print").unwrap(),
            queue: queue_name(QUEUE),
            input: None,
            retry: RetryPolicy::none(),
            flow: tickover_core::flow::FlowRequest::default(),
            timeouts: Timeouts::default(),
            given: vec![],
            slot: None,
            any_queue: false,
            at_most: None,
        };
        self.service().start_remote(&turn.execution, vec![remote]).await.all().unwrap();
        let id = remote_id(&turn.execution, &step);
        // Its message stays in the queue, as it does where a worker dies before it deletes it.
        let held = ClaimRequest { lease: Millis::from_secs(6 * 3_600), ..claim_request(1) };
        let claimed = self.service().claim_by_id(&id, &held).await.unwrap().unwrap();
        let begun = Entry { at: self.service().now(), what: Happened::Remote { name: step } };
        self.suspend(&turn, vec![begun], None, true).await;
        (id, claimed)
    }

    async fn minute(&mut self) {
        self.ticked += 1;
        let minute = after(self.ticked * 60);
        self.scene.clock.advance(minute.since(self.service().now()));
        self.service().tick(minute, minute.plus(Millis::from_secs(50))).await.unwrap();
    }

    /// The target's rechecks find nothing, until they come once an hour.
    async fn recheck_in_vain(&mut self) {
        for _ in 0..3 {
            let turn = loop {
                self.minute().await;
                if let Some(Work::Turn(turn)) = self.take().await {
                    break *turn;
                }
            };
            self.suspend(&turn, vec![], None, true).await;
        }
    }

    /// Lets minutes pass on a queue that is never empty, until the target is received; returns when that was.
    async fn found_at(&mut self, tasks: bool) -> Timestamp {
        for _ in 0..2 {
            self.add_work(tasks).await;
        }
        for _ in 0..600 {
            self.add_work(tasks).await;
            if let Some(work) = self.take().await {
                if is_target(&work) && self.queue.lost_due_at().is_some() {
                    return self.service().now();
                }
                self.do_work(work).await;
            }
            self.scene.clock.advance(Millis::from_secs(20));
            if self.service().now() >= after((self.ticked + 1) * 60) {
                self.minute().await;
            }
        }
        panic!("never found");
    }
}

/// Loses the hint of this kind, now or when it is sent.
async fn lose(busy: &mut Busy, kind: Kind) {
    let (own, queue) = (format!("\"{TARGET}\""), Arc::clone(&busy.queue));
    let asked = request(QUEUE, Some(TARGET), None);
    match kind {
        Kind::Task => {
            queue.lose_next(&own);
            busy.service().schedule(asked).await.unwrap();
        }
        Kind::RepeatedSchedule => {
            queue.lose_next(&own);
            busy.service().schedule(asked).await.unwrap();
            queue.lose_next(&own);
        }
        Kind::LaterTask => {
            queue.lose_next(&own);
            let start = Start::After(Millis::from_secs(1_800));
            let asked = ScheduleRequest { start, ..asked };
            busy.service().schedule(asked).await.unwrap();
        }
        Kind::Retry => {
            let retry = RetryPolicy::fixed(3, Millis::from_secs(30));
            let asked = ScheduleRequest { retry, ..asked };
            busy.service().schedule(asked).await.unwrap();
            let claimed = busy.task().await;
            queue.lose_next(&own);
            let error = Failure::new("broken", "");
            busy.service().fail(&task_id(TARGET), &claimed.token, error, true).await.unwrap();
        }
        Kind::TaskReleased => {
            busy.service().schedule(asked).await.unwrap();
            let claimed = busy.task().await;
            queue.lose_next(&own);
            busy.service().release(&task_id(TARGET), &claimed.token).await.unwrap();
        }
        Kind::Start => {
            queue.lose_next(&own);
            busy.service().start(start(TARGET)).await.unwrap();
        }
        Kind::LaterStart => {
            queue.lose_next(&own);
            let delay = Millis::from_secs(1_800);
            busy.service().start(StartRequest { delay, ..start(TARGET) }).await.unwrap();
        }
        Kind::TurnReleased
        | Kind::Sleep
        | Kind::LongSleep
        | Kind::Event
        | Kind::Resume
        | Kind::ContinueAsNew => lose_of_a_turn(busy, kind).await,
        Kind::StepNotification | Kind::LateStepNotification | Kind::NeverNotified => {
            let (step, claimed) = busy.waiting_for_a_step().await;
            if kind != Kind::StepNotification {
                busy.recheck_in_vain().await;
            }
            queue.lose_next(&own);
            busy.mute.store(kind == Kind::NeverNotified, Ordering::SeqCst);
            busy.service().complete(&step, &claimed.token, None).await.unwrap();
            busy.mute.store(false, Ordering::SeqCst);
            if kind == Kind::NeverNotified {
                // Its hint isn't lost, it is never sent.
                let never = Outgoing::again(own, Millis::ZERO);
                queue.send(&queue_name(QUEUE), &[never]).await.unwrap();
            }
        }
    }
}

async fn lose_of_a_turn(busy: &Busy, kind: Kind) {
    let (own, queue) = (format!("\"{TARGET}\""), Arc::clone(&busy.queue));
    let turn = busy.begun().await;
    let target = id(TARGET);
    let lost = || queue.lose_next(&own);
    let until = |seconds| Some(busy.service().now().plus(Millis::from_secs(seconds)));
    match kind {
        Kind::TurnReleased => {
            lost();
            busy.service()
                .release_turn(&turn.execution, turn.lease, Millis::ZERO, ReleaseReason::ByCode, None)
                .await
                .unwrap();
            busy.done_with(&turn).await;
        }
        Kind::Sleep => {
            lost();
            busy.suspend(&turn, vec![], until(90), false).await;
        }
        Kind::LongSleep => {
            lost();
            busy.suspend(&turn, vec![], until(2_400), false).await;
        }
        Kind::Event => {
            busy.suspend(&turn, vec![], until(86_400), false).await;
            lost();
            let name = EventName::parse("paid").unwrap();
            busy.service().send_event(&target, name, None, None).await.unwrap();
        }
        Kind::Resume => {
            busy.suspend(&turn, vec![], until(86_400), false).await;
            busy.service().pause(&target).await.unwrap();
            lost();
            busy.service().resume(&target).await.unwrap();
        }
        Kind::ContinueAsNew => {
            lost();
            let ending = Ending::ContinueAsNew { input: None, carried: vec![] };
            busy.close(&turn, ending).await;
        }
        other => panic!("{other:?} isn't one of a turn's"),
    }
}

#[tokio::test]
async fn a_lost_hint_of_any_kind_is_found_within_a_quarter_of_an_hour_on_a_queue_that_is_never_empty() {
    for kind in KINDS {
        let of_a_task = matches!(
            kind,
            Kind::Task | Kind::Retry | Kind::TaskReleased | Kind::RepeatedSchedule | Kind::LaterTask
        );
        // Any younger message proves that the hint is lost, whether it is of the same kind or not.
        for tasks_flow in [of_a_task, !of_a_task] {
            let mut busy = Busy::new();
            lose(&mut busy, kind).await;
            let found_at = busy.found_at(tasks_flow).await;
            let late = found_at.since(busy.queue.lost_due_at().unwrap());
            assert!(late <= FOUND_WITHIN, "{kind:?}, where tasks flow: {tasks_flow}: {late}");
        }
    }
}

/// A hint that isn't lost isn't sent a second time.
#[tokio::test]
async fn no_hint_is_repeated_on_a_flowing_queue_unless_it_was_lost() {
    let mut busy = Busy::new();
    // A backlog of seven minutes, for an hour and a half.
    for _ in 0..21 {
        busy.add_work(false).await;
    }
    let (mut taken, mut sent) = (0, 0);
    for _ in 0..270 {
        busy.add_work(false).await;
        sent += 1;
        let work = busy.take().await.unwrap();
        busy.do_work(work).await;
        taken += 1;
        busy.scene.clock.advance(Millis::from_secs(20));
        if busy.service().now() >= after((busy.ticked + 1) * 60) {
            busy.minute().await;
        }
    }
    let depth = busy.queue.depth(&queue_name(QUEUE)).await.unwrap();
    assert_eq!((taken, depth.visible), (sent, 21));
}
