//! Rates over a store in memory: what is reserved when, and processes that die between two writes.

use std::num::{NonZeroU16, NonZeroU32};

use futures::future::join_all;
use tickover_core::duration::Millis;
use tickover_core::flow::{Concurrency, Debounce, FlowRequest, OnConflict, Unique, UniqueWindow};
use tickover_core::gate::Gate;
use tickover_core::id::{FlowKey, GateId, QueueName, StepName, TaskKind};
use tickover_core::retry::RetryPolicy;
use tickover_core::task::{Failure, State, Status, Task};
use tickover_core::time::Timestamp;
use tickover_core::timeout::Timeouts;

use super::*;
use crate::claim::{ClaimRequest, ClaimedTask};
use crate::executions::RemoteStep;
use crate::executions::tests::mortal::NEVER;
use crate::executions::tests::scene::Scene;
use crate::flow::gate_digest;
use crate::tasks::schedule::Scheduled;

fn queue() -> QueueName {
    QueueName::parse("jobs").unwrap()
}

fn rate(limit: u32, per_s: u64, burst: u32) -> Rate {
    let whole = |number| NonZeroU32::new(number).unwrap();
    let key = FlowKey::parse("smtp").unwrap();
    Rate { key, limit: whole(limit), per: Millis::from_secs(per_s), burst: whole(burst) }
}

/// A task of a key that one task a minute may start for.
fn mail() -> ScheduleRequest {
    by(rate(1, 60, 1))
}

fn by(rate: Rate) -> ScheduleRequest {
    ScheduleRequest {
        asked: crate::tasks::schedule::Asked::default(),
        id: None,
        idempotency_key: None,
        queue: queue(),
        kind: TaskKind::parse("mail").unwrap(),
        input: None,
        labels: None,
        retry: RetryPolicy::fixed(5, Millis::ZERO),
        flow: FlowRequest { rate: Some(rate), ..FlowRequest::default() },
        timeouts: Timeouts::default(),
        start: Start::After(Millis::ZERO),
        trace: None,
    }
}

fn called(id: &str) -> ScheduleRequest {
    ScheduleRequest { id: Some(TaskId::parse(id).unwrap()), ..mail() }
}

fn available_at(task: &Task) -> Timestamp {
    match &task.state {
        State::Pending(pending) => pending.available_at,
        State::Running(_) | State::Ended(_) => panic!("not pending: {task:?}"),
    }
}

impl Scene {
    async fn mails(&self, request: ScheduleRequest) -> Scheduled {
        self.service.schedule(request).await.unwrap()
    }

    /// After how many seconds the task of this request may start.
    async fn starts_in(&self, request: ScheduleRequest) -> u64 {
        let now = self.now();
        available_at(&self.mails(request).await.task).since(now).as_u64() / 1_000
    }

    async fn takes(&self) -> Option<ClaimedTask> {
        let (lease, wait) = (Millis::from_secs(600), Millis::ZERO);
        let request = ClaimRequest { worker: None, max: 1, lease, wait, provides: vec![] };
        self.service.claim(&queue(), &request).await.unwrap().pop()
    }

    async fn gate_of_smtp(&self) -> Option<Gate> {
        self.store.gate(&GateId::from(&gate_digest(&rate(1, 1, 1).key))).await.unwrap()
    }

    /// After how many seconds the next start would be.
    async fn next_in(&self) -> u64 {
        let gate = self.gate_of_smtp().await.unwrap();
        tickover_core::gate::next_start(&gate, self.now()).unwrap().since(self.now()).as_u64() / 1_000
    }

    /// Claims once a second, and returns after how many seconds each start was.
    async fn starts_within(&self, seconds: u64) -> Vec<u64> {
        let mut starts = vec![];
        for second in 0..seconds {
            while let Some(claimed) = self.takes().await {
                starts.push(second);
                self.service.complete(&claimed.task.id, &claimed.token, None).await.unwrap();
            }
            self.advance(1);
        }
        starts
    }
}

#[tokio::test]
async fn tasks_of_a_key_start_at_its_rate_after_a_burst() {
    let scene = Scene::new();
    for _ in 0..6 {
        scene.mails(by(rate(6, 60, 3))).await;
    }
    assert_eq!(scene.starts_within(60).await, [0, 0, 0, 10, 20, 30]);
}

#[tokio::test]
async fn a_batch_reserves_all_starts_of_a_key_by_one_write() {
    let scene = Scene::new();
    scene.mails(ScheduleRequest { flow: FlowRequest::default(), ..mail() }).await;
    let before = scene.writes();
    let batch = scene.service.schedule_batch(vec![mail(); 5]).await.unwrap();
    assert_eq!(scene.writes() - before, 5 + 1);
    let now = scene.now();
    let starts: Vec<u64> =
        batch.into_iter().map(|one| available_at(&one.unwrap().task).since(now).as_u64() / 1_000).collect();
    assert_eq!(starts, [0, 60, 120, 180, 240]);
}

#[tokio::test]
async fn a_repeated_request_takes_no_second_start() {
    let scene = Scene::new();
    let keyed = ScheduleRequest { idempotency_key: Some("k".to_owned()), ..mail() };
    let window = UniqueWindow::Open;
    let unique = Unique { key: FlowKey::parse("u").unwrap(), window, on_conflict: OnConflict::Existing };
    let flow = FlowRequest { unique: Some(unique), ..mail().flow };
    let unique = ScheduleRequest { flow, ..mail() };
    for (nth, request) in (1..).zip([called("a"), keyed, unique]) {
        assert!(!scene.mails(request.clone()).await.existed);
        assert!(scene.mails(request.clone()).await.existed);
        assert!(scene.service.schedule_batch(vec![request]).await.unwrap().remove(0).unwrap().existed);
        assert_eq!(scene.next_in().await, nth * 60);
    }
    // Twice in one batch: the second start is given back.
    scene.service.schedule_batch(vec![called("b"), called("b")]).await.unwrap();
    assert_eq!(scene.next_in().await, 4 * 60);
}

#[tokio::test]
async fn a_refused_request_takes_no_start() {
    let scene = Scene::new();
    scene.mails(ScheduleRequest { flow: FlowRequest::default(), ..called("a") }).await;
    scene.mails(mail()).await;
    let other = ScheduleRequest { kind: TaskKind::parse("other").unwrap(), ..called("a") };
    scene.service.schedule(other).await.unwrap_err();
    assert_eq!(scene.next_in().await, 60);
}

#[tokio::test]
async fn a_delayed_task_takes_its_start_when_it_is_claimed_and_delays_no_other() {
    let scene = Scene::new();
    let delayed = ScheduleRequest { start: Start::After(Millis::from_secs(600)), ..mail() };
    scene.mails(delayed).await;
    let wait = Millis::from_secs(600);
    let debounce = Debounce { key: FlowKey::parse("d").unwrap(), wait, at_most: wait };
    let flow = FlowRequest { debounce: Some(debounce), ..mail().flow };
    scene.mails(ScheduleRequest { flow, ..mail() }).await;
    assert_eq!(scene.gate_of_smtp().await, None);
    assert_eq!(scene.starts_in(mail()).await, 0);
    assert_eq!(scene.starts_within(720).await, [0, 600, 660]);
}

#[tokio::test]
async fn each_retry_takes_a_start_of_its_own() {
    let scene = Scene::new();
    scene.mails(mail()).await;
    let mut starts = vec![];
    for second in 0..200 {
        if let Some(claimed) = scene.takes().await {
            starts.push(second);
            assert_eq!(
                usize::try_from(claimed.task.attempt).unwrap(),
                starts.len(),
                "putting off is no attempt"
            );
            let error = Failure::new("broken", "");
            scene.service.fail(&claimed.task.id, &claimed.token, error, true).await.unwrap();
        }
        scene.advance(1);
    }
    assert_eq!(starts, [0, 60, 120, 180]);
}

#[tokio::test]
async fn after_an_outage_of_the_workers_tasks_start_at_the_rate_and_not_at_once() {
    let scene = Scene::new();
    for _ in 0..5 {
        scene.mails(by(rate(6, 60, 1))).await;
    }
    scene.advance(3_600);
    assert_eq!(scene.starts_within(60).await, [0, 10, 20, 30, 40]);
}

/// As behind a backlog: nothing would start if each of them had to reserve another one.
#[tokio::test]
async fn tasks_whose_workers_come_ten_seconds_late_each_time_start_at_the_rate_all_the_same() {
    let scene = Scene::new();
    for _ in 0..4 {
        scene.mails(by(rate(1, 60, 1))).await;
    }
    assert!(scene.takes().await.is_some());
    scene.advance(10);
    for _ in 0..3 {
        scene.advance(60);
        assert!(scene.takes().await.is_some());
    }
}

/// Workers that take one task each ten seconds, and five minutes of other work before each that becomes ready.
#[tokio::test]
async fn behind_a_backlog_of_minutes_tasks_start_at_their_rate_all_the_same() {
    let scene = Scene::new();
    let plain = || ScheduleRequest { flow: FlowRequest::default(), ..mail() };
    for _ in 0..30 {
        scene.mails(plain()).await;
    }
    for _ in 0..20 {
        scene.mails(by(rate(2, 60, 1))).await;
    }
    let (mut starts, mut others) = (vec![], 0);
    for _ in 0..180 {
        scene.mails(plain()).await;
        if let Some(one) = scene.takes().await {
            let is_paced = one.task.paced().is_some();
            starts.extend(is_paced.then(|| scene.now()));
            others += u32::from(!is_paced);
            scene.service.complete(&one.task.id, &one.token, None).await.unwrap();
        }
        scene.advance(10);
    }
    assert_eq!(starts.len(), 20, "of thirty minutes, {others} others");
    assert!(starts.windows(2).all(|two| two[1].since(two[0]) >= Millis::from_secs(20)), "{starts:?}");
}

#[tokio::test]
async fn a_claim_with_other_work_waits_for_no_start_while_the_leases_of_that_work_pass() {
    let scene = Scene::new();
    for _ in 0..2 {
        scene.mails(by(rate(2, 1, 1))).await;
    }
    scene.mails(ScheduleRequest { flow: FlowRequest::default(), ..mail() }).await;
    // Their starts have passed, so each needs another one.
    scene.advance(60);
    let (lease, wait, came_at) = (Millis::from_secs(1), Millis::ZERO, scene.now());
    let request = ClaimRequest { worker: None, max: 10, lease, wait, provides: vec![] };
    assert_eq!(scene.service.claim(&queue(), &request).await.unwrap().len(), 2);
    assert_eq!(scene.now(), came_at);
    // Its message comes back for its start.
    assert!(scene.takes().await.is_none());
    scene.advance(1);
    assert!(scene.takes().await.is_some());
}

#[tokio::test]
async fn a_claim_by_an_old_message_uses_up_no_start() {
    let scene = Scene::new();
    let delayed = ScheduleRequest { start: Start::After(Millis::from_secs(1)), ..called("a") };
    let task = scene.mails(delayed).await.task;
    scene.advance(1);
    let hint = tickover_core::task::hint::Hint::of(&task);
    let running = scene.takes().await.unwrap();
    scene.service.send_hint(&queue(), &hint.body().unwrap(), Millis::ZERO).await.unwrap();
    assert!(scene.takes().await.is_none());
    assert_eq!(scene.next_in().await, 60);
    scene.service.complete(&running.task.id, &running.token, None).await.unwrap();
}

#[tokio::test]
async fn cancelled_tasks_give_their_starts_back_in_whatever_order() {
    let scene = Scene::new();
    for id in ["a", "b", "c"] {
        scene.mails(called(id)).await;
    }
    let id = |text: &str| TaskId::parse(text).unwrap();
    let before = scene.writes();
    scene.service.cancel(&id("b"), false).await.unwrap();
    assert_eq!(scene.writes() - before, 2);
    assert_eq!(scene.next_in().await, 60);
    scene.service.cancel(&id("c"), false).await.unwrap();
    assert_eq!(scene.writes() - before, 4);
    assert_eq!([scene.starts_in(called("d")).await, scene.starts_in(called("e")).await], [60, 120]);
}

#[tokio::test]
async fn a_retry_comes_before_a_thousand_reserved_starts_and_nothing_is_left_of_them_once_they_are_cancelled()
{
    let scene = Scene::new();
    scene.mails(mail()).await;
    let running = scene.takes().await.unwrap();
    let mut ids = vec![];
    for some in vec![mail(); 1_000].chunks(100) {
        let made = scene.service.schedule_batch(some.to_vec()).await.unwrap();
        ids.extend(made.into_iter().map(|one| one.unwrap().task.id));
    }
    let error = Failure::new("smtp", "busy");
    scene.service.fail(&running.task.id, &running.token, error, true).await.unwrap();
    let mut waited = 0;
    let again = loop {
        if let Some(next) = scene.takes().await.filter(|next| next.task.id == running.task.id) {
            break next;
        }
        scene.advance(1);
        waited += 1;
        assert!(waited <= 180, "behind the reserved starts");
    };
    scene.service.complete(&again.task.id, &again.token, None).await.unwrap();
    // An order that is neither theirs nor its reverse.
    for nth in 0..ids.len() {
        scene.service.cancel(&ids[nth * 389 % ids.len()], true).await.unwrap();
    }
    assert!(scene.starts_in(mail()).await <= 60);
}

#[tokio::test]
async fn many_requests_at_once_never_get_the_same_start() {
    let scene = Scene::new();
    scene.mails(mail()).await;
    scene.interleave();
    let all = join_all((0..8).map(|_| scene.service.schedule(mail()))).await;
    let mut starts: Vec<Timestamp> = all.into_iter().map(|one| available_at(&one.unwrap().task)).collect();
    starts.sort_unstable();
    assert!(starts.windows(2).all(|pair| pair[1].since(pair[0]) == Millis::from_secs(60)), "{starts:?}");
}

#[tokio::test]
async fn a_start_more_than_a_year_ahead_is_refused_and_given_back() {
    let scene = Scene::new();
    let daily = |count| vec![by(rate(1, 86_400, 1)); count];
    for _ in 0..3 {
        scene.service.schedule_batch(daily(100)).await.unwrap();
    }
    let last = scene.service.schedule_batch(daily(67)).await.unwrap();
    assert!(last[65].is_ok() && last[66].is_err());
    assert_eq!(scene.next_in().await, 366 * 86_400);
}

#[tokio::test]
async fn remote_steps_of_a_key_start_at_its_rate_and_a_repeated_start_takes_no_second_one() {
    let scene = Scene::new();
    let turn = scene.started("e", None).await;
    let step = |nth: usize| RemoteStep {
        name: StepName::parse(format!("label[{nth}]")).unwrap(),
        kind: TaskKind::parse("print").unwrap(),
        queue: queue(),
        input: None,
        retry: RetryPolicy::none(),
        flow: mail().flow,
        timeouts: Timeouts::default(),
        given: vec![],
        slot: None,
        any_queue: false,
        at_most: None,
    };
    let steps = || (0..3).map(step).collect::<Vec<_>>();
    for _ in 0..2 {
        scene.service.start_remote(&turn.execution, steps()).await.all().unwrap();
        assert_eq!(scene.next_in().await, 180);
    }
    assert_eq!(scene.starts_within(180).await, [0, 60, 120]);
}

#[tokio::test]
async fn a_task_in_a_transaction_of_its_own_takes_no_start_before_it_is_committed() {
    let scene = Scene::new();
    scene.mails(ScheduleRequest { flow: FlowRequest::default(), ..mail() }).await;
    scene.takes().await.unwrap();
    let _refused = scene.service.prepare_schedule(mail()).await.unwrap();
    let prepared = scene.service.prepare_schedule(mail()).await.unwrap();
    assert_eq!(scene.gate_of_smtp().await, None);
    scene.store.commit(&prepared.writes).await.unwrap();
    scene.service.announce(prepared).await;
    scene.mails(mail()).await;
    assert_eq!(scene.starts_within(120).await, [0, 60]);
}

#[tokio::test]
async fn a_place_comes_before_a_start_so_that_no_start_is_lost_in_the_line() {
    let scene = Scene::new();
    let limit = NonZeroU16::MIN;
    let place = Concurrency { key: FlowKey::parse("customer").unwrap(), limit };
    let both = || {
        let flow = FlowRequest { concurrency: vec![place.clone()], ..by(rate(60, 60, 1)).flow };
        ScheduleRequest { flow, start: Start::After(Millis::from_secs(1)), ..mail() }
    };
    for _ in 0..3 {
        scene.mails(both()).await;
    }
    scene.advance(1);
    let mut starts = vec![];
    let mut running = None;
    for second in 0..60 {
        if let Some(claimed) = scene.takes().await {
            assert!(running.replace(claimed).is_none(), "two run at once");
            starts.push(second);
        }
        if starts.last().is_some_and(|started| second >= started + 10)
            && let Some(done) = running.take()
        {
            scene.service.complete(&done.task.id, &done.token, None).await.unwrap();
        }
        scene.advance(1);
    }
    assert_eq!(starts, [0, 11, 22]);
    let gate = scene.gate_of_smtp().await.unwrap();
    assert!(gate.rate.unwrap().base_at <= scene.now());
    assert_eq!(gate.version, 3, "each has taken one start");
}

#[tokio::test]
async fn who_goes_to_a_line_gives_its_start_back_to_those_that_can_use_it() {
    let scene = Scene::new();
    let place = Concurrency { key: FlowKey::parse("customer").unwrap(), limit: NonZeroU16::MIN };
    let flow = FlowRequest { concurrency: vec![place], ..by(rate(6, 3_600, 6)).flow };
    let both = ScheduleRequest { flow, ..mail() };
    for started in scene.service.schedule_batch(vec![both; 6]).await.unwrap() {
        assert_eq!(available_at(&started.unwrap().task), scene.now());
    }
    let mut running = scene.takes().await.unwrap();
    for _ in 0..5 {
        scene.takes().await;
        scene.advance(60);
        scene.service.complete(&running.task.id, &running.token, None).await.unwrap();
        running = scene.takes().await.expect("the burst of six is for all of them");
    }
}

/// A process dies after any of its writes, at a claim that puts the task off and one that starts it, and at the end.
#[tokio::test]
async fn whichever_write_a_process_dies_after_a_task_runs_and_no_two_start_within_the_rate() {
    for last in 0.. {
        let scene = Scene::new();
        scene.service.open_queue(&queue()).await.unwrap();
        scene.crash_after(last);
        let mut survived = true;
        let retried = ScheduleRequest { start: Start::After(Millis::from_secs(1)), ..called("b") };
        for request in [called("a"), retried] {
            survived &= scene.service.schedule(request).await.is_ok();
        }
        let (mut starts, mut times) = (vec![], 0);
        for second in 0..2_400_u64 {
            let lease = Millis::from_secs(30);
            let request = ClaimRequest { worker: None, max: 1, lease, wait: Millis::ZERO, provides: vec![] };
            let claimed = scene.service.claim(&queue(), &request).await;
            survived &= claimed.is_ok();
            if let Some(claimed) = claimed.ok().and_then(|mut tasks| tasks.pop()) {
                starts.push(second);
                let done = scene.service.complete(&claimed.task.id, &claimed.token, None).await;
                survived &= done.is_ok();
            }
            if !survived && times == 0 {
                // Another process goes on. Who called repeats the request.
                times = second;
                scene.crash_after(NEVER);
                for id in ["a", "b"] {
                    scene.service.schedule(called(id)).await.ok();
                }
            }
            scene.advance(1);
            if second.is_multiple_of(60) {
                scene.tick().await.ok();
                while scene.fire(50_000).await > 0 {}
            }
        }
        for id in ["a", "b"] {
            let task = scene.store.task(&TaskId::parse(id).unwrap()).await.unwrap().unwrap();
            assert_eq!(task.status(), Status::Completed, "{last}: {id}");
        }
        let gaps: Vec<u64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| *gap >= 55), "{last}: {starts:?}");
        if survived {
            assert!(last > 5, "{last} writes are too few");
            return;
        }
    }
}
