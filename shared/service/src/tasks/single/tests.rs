//! Unique keys and bursts over a store in memory: races, and processes that die between two writes.

use futures::future::join_all;
use tickover_core::command::Context;
use tickover_core::decision::{Condition, Write};
use tickover_core::id::{FlowKey, QueueName, TaskKind};
use tickover_core::payload::Json;
use tickover_core::retry::RetryPolicy;
use tickover_core::task::Status;
use tickover_core::timeout::Timeouts;

use super::key::{GRACE, record_of};
use super::*;
use crate::claim::{ClaimRequest, ClaimedTask};
use crate::executions::tests::mortal::NEVER;
use crate::executions::tests::scene::Scene;

fn queue() -> QueueName {
    QueueName::parse("jobs").unwrap()
}

fn key() -> FlowKey {
    FlowKey::parse("digest of 7").unwrap()
}

fn request(input: &str, flow: FlowRequest) -> ScheduleRequest {
    ScheduleRequest {
        asked: crate::tasks::schedule::Asked::default(),
        id: None,
        idempotency_key: None,
        queue: queue(),
        kind: TaskKind::parse("mail").unwrap(),
        input: Json::parse(input),
        labels: None,
        retry: RetryPolicy::none(),
        flow,
        timeouts: Timeouts::default(),
        start: Start::After(Millis::ZERO),
        trace: None,
    }
}

fn unique(input: &str, window: UniqueWindow, on_conflict: OnConflict) -> ScheduleRequest {
    let unique = Some(Unique { key: key(), window, on_conflict });
    request(input, FlowRequest { unique, ..FlowRequest::default() })
}

fn open(input: &str) -> ScheduleRequest {
    unique(input, UniqueWindow::Open, OnConflict::Existing)
}

fn bounced(input: &str) -> ScheduleRequest {
    let (wait, at_most) = (Millis::from_secs(10), Millis::from_secs(60));
    let debounce = Some(Debounce { key: key(), wait, at_most });
    request(input, FlowRequest { debounce, ..FlowRequest::default() })
}

impl Scene {
    async fn place(&self, request: ScheduleRequest) -> Scheduled {
        self.service.schedule(request).await.unwrap()
    }

    async fn claim_one(&self) -> Option<ClaimedTask> {
        let request = ClaimRequest {
            worker: None,
            max: 1,
            lease: Millis::from_secs(60),
            wait: Millis::ZERO,
            provides: vec![],
        };
        self.service.claim(&queue(), &request).await.unwrap().pop()
    }

    async fn run_one(&self) -> Option<String> {
        let claimed = self.claim_one().await?;
        self.service.complete(&claimed.task.id, &claimed.token, None).await.unwrap();
        claimed.input.map(|json| json.as_str().to_owned())
    }

    async fn live(&self) -> usize {
        let all = self.store.list(crate::ports::Listing::All, 100, None).await.unwrap().items;
        let tasks = self.store.tasks(&all).await.unwrap();
        tasks.iter().filter(|task| task.status().is_live()).count()
    }
}

#[tokio::test]
async fn while_a_task_of_the_key_is_open_it_is_the_answer() {
    let scene = Scene::new();
    let first = scene.place(open("1")).await;
    let second = scene.place(open("2")).await;
    assert_eq!((second.existed, &second.task.id), (true, &first.task.id));
    assert_eq!(second.input.unwrap().as_str(), "1");
    let claimed = scene.claim_one().await.unwrap();
    assert!(scene.place(open("3")).await.existed);
    scene.service.complete(&claimed.task.id, &claimed.token, None).await.unwrap();
    let next = scene.place(open("4")).await;
    assert_eq!((next.existed, next.task.id == first.task.id), (false, false));
}

#[tokio::test]
async fn a_key_for_waiting_tasks_is_free_once_a_worker_has_claimed_its_task() {
    let scene = Scene::new();
    let waiting = |input| unique(input, UniqueWindow::Waiting, OnConflict::Existing);
    scene.place(waiting("1")).await;
    assert!(scene.place(waiting("2")).await.existed);
    let _running = scene.claim_one().await.unwrap();
    assert!(!scene.place(waiting("3")).await.existed);
}

#[tokio::test]
async fn a_key_for_a_time_is_kept_however_its_task_ends() {
    let scene = Scene::new();
    let minute = |input| unique(input, UniqueWindow::For(Millis::from_secs(60)), OnConflict::Existing);
    scene.place(minute("1")).await;
    assert_eq!(scene.run_one().await.unwrap(), "1");
    scene.advance(59);
    assert!(scene.place(minute("2")).await.existed);
    scene.advance(1);
    assert!(!scene.place(minute("3")).await.existed);
}

#[tokio::test]
async fn another_task_is_refused_or_replaced_if_the_request_says_so() {
    let scene = Scene::new();
    let first = scene.place(open("1")).await.task.id;
    let refused = scene.service.schedule(unique("2", UniqueWindow::Open, OnConflict::Refuse)).await;
    let Err(ServiceError::Rejected(reject)) = refused else { panic!("it was not refused") };
    assert_eq!(reject, Reject::NotUnique { by: first.clone().into() });
    let third = scene.place(unique("3", UniqueWindow::Open, OnConflict::Replace)).await;
    assert!(!third.existed);
    let replaced = scene.store.task(&first).await.unwrap().unwrap();
    assert_eq!(replaced.status(), Status::Cancelled);
    assert_eq!((scene.run_one().await.as_deref(), scene.run_one().await), (Some("3"), None));
}

#[tokio::test]
async fn a_repeated_request_with_an_id_finds_its_own_task_after_the_key_went_on() {
    let scene = Scene::new();
    let own = || ScheduleRequest { id: Some(TaskId::parse("mine").unwrap()), ..open("1") };
    scene.place(own()).await;
    scene.run_one().await.unwrap();
    scene.place(open("2")).await;
    let again = scene.place(own()).await;
    assert_eq!((again.existed, again.task.status()), (true, Status::Completed));
}

#[tokio::test]
async fn of_many_at_once_one_is_scheduled() {
    let scene = Scene::new();
    scene.interleave();
    let all = join_all((0..8).map(|number| scene.service.schedule(open(&number.to_string())))).await;
    let scheduled: Vec<_> = all.into_iter().filter_map(Result::ok).collect();
    assert_eq!(scheduled.iter().filter(|one| !one.existed).count(), 1);
    assert_eq!(scene.live().await, 1);
}

#[tokio::test]
async fn a_process_that_dies_between_its_writes_leaves_the_key_to_the_next() {
    let mut survived = false;
    for last in 0.. {
        let scene = Scene::new();
        scene.service.open_queue(&queue()).await.unwrap();
        scene.crash_after(last);
        survived = scene.service.schedule(open("1")).await.is_ok();
        scene.crash_after(NEVER);
        scene.advance(GRACE.as_u64() / 1_000);
        let next = scene.place(open("2")).await;
        // The first one exists only if its process got as far as to write it.
        assert_eq!(scene.live().await, 1, "{last}");
        assert_eq!(next.existed, last >= 2, "{last}");
        if survived {
            break;
        }
    }
    assert!(survived);
}

/// A process that has written its key and not yet its task: the command that it still has to carry out.
async fn late(scene: &Scene, request: &ScheduleRequest) -> Command {
    scene.service.open_queue(&queue()).await.unwrap();
    let single = Single::of(&request.flow).unwrap();
    let schedule = scene.service.single_command(request, single);
    let (now, nonce) = (scene.now(), scene.service.new_nonce());
    let record = record_of(
        single.digest("task"),
        &schedule,
        &Context { now, nonce, limits: &scene.service.limits, by: None },
    );
    scene.store.commit(&[Write::put(record, Condition::SameOrAbsent)]).await.unwrap();
    scene.advance(GRACE.as_u64() / 1_000);
    Command::Schedule(schedule)
}

async fn goes_on(scene: &Scene, late: &Command) -> Task {
    let Command::Schedule(schedule) = late else { panic!("a command to schedule") };
    let decision = scene.service.drive_unpublished(&schedule.id, Known::Absent, late).await.unwrap();
    decision.outcome.unwrap().0
}

#[tokio::test]
async fn a_process_that_is_late_with_its_task_cannot_write_it_once_another_one_has_the_key() {
    for request in [open("1"), bounced("1")] {
        let scene = Scene::new();
        let first = late(&scene, &request).await;
        let second = scene.place(ScheduleRequest { input: Json::parse("2"), ..request }).await;
        assert!(!second.existed);
        assert!(is_fence(&goes_on(&scene, &first).await));
        assert_eq!(scene.live().await, 1);
        scene.advance(10);
        assert_eq!((scene.run_one().await.as_deref(), scene.run_one().await), (Some("2"), None));
    }
}

#[tokio::test]
async fn a_task_that_was_written_late_but_first_keeps_its_key() {
    let scene = Scene::new();
    let first = goes_on(&scene, &late(&scene, &open("1")).await).await;
    let second = scene.place(open("2")).await;
    assert_eq!((second.existed, second.task.id), (true, first.id));
}

#[tokio::test]
async fn a_request_with_an_id_that_is_repeated_after_a_crash_gets_that_id() {
    let scene = Scene::new();
    let own = || ScheduleRequest { id: Some(TaskId::parse("mine").unwrap()), ..open("1") };
    let first = late(&scene, &own()).await;
    let again = scene.place(own()).await;
    assert_eq!((again.existed, again.task.id.as_str()), (false, "mine"));
    assert_eq!(goes_on(&scene, &first).await.incarnation, again.task.incarnation);
    assert_eq!(scene.live().await, 1);
}

#[tokio::test]
async fn a_fence_is_written_only_while_the_late_task_could_still_be() {
    let scene = Scene::new();
    let _never = late(&scene, &open("1")).await;
    scene.advance(3_600);
    let before = scene.writes();
    assert!(!scene.place(open("2")).await.existed);
    assert_eq!(scene.writes() - before, 2);
}

#[tokio::test]
async fn of_a_burst_the_last_request_runs_once_it_is_quiet() {
    let scene = Scene::new();
    let first = scene.place(bounced("1")).await;
    for number in 2..=4 {
        scene.advance(9);
        let next = scene.place(bounced(&number.to_string())).await;
        assert_eq!((next.existed, &next.task.id), (true, &first.task.id));
    }
    scene.advance(8);
    assert_eq!(scene.run_one().await, None);
    scene.advance(2);
    assert_eq!((scene.run_one().await.as_deref(), scene.run_one().await), (Some("4"), None));
    let next = scene.place(bounced("5")).await;
    assert_eq!((next.existed, next.task.id == first.task.id), (false, false));
}

#[tokio::test]
async fn a_burst_that_never_ends_runs_at_its_bound() {
    let scene = Scene::new();
    scene.place(bounced("0")).await;
    for number in 1..=6 {
        scene.advance(9);
        scene.place(bounced(&number.to_string())).await;
    }
    scene.advance(6);
    assert_eq!(scene.run_one().await.as_deref(), Some("6"));
}

#[tokio::test]
async fn a_bounce_is_one_write_and_a_burst_two_more_than_a_task_at_most() {
    let scene = Scene::new();
    // The queue's own record is written with the first task.
    scene.place(request("0", FlowRequest::default())).await;
    let writes = async |request| {
        let before = scene.writes();
        scene.place(request).await;
        scene.writes() - before
    };
    assert_eq!(writes(request("1", FlowRequest::default())).await, 1);
    assert_eq!(writes(bounced("1")).await, 2);
    assert_eq!(writes(bounced("2")).await, 1);
    assert_eq!(writes(open("1")).await, 2);
    assert_eq!(writes(open("2")).await, 0);
}

#[tokio::test]
async fn an_acknowledged_request_of_a_burst_is_never_lost_though_processes_die_after_any_write() {
    let mut survived = false;
    for last in 0.. {
        let scene = Scene::new();
        scene.place(bounced("1")).await;
        scene.advance(5);
        scene.crash_after(last);
        survived = scene.service.schedule(bounced("2")).await.is_ok();
        scene.crash_after(NEVER);
        scene.advance(10);
        let ran = scene.run_one().await;
        // Without an answer, either of them may be the last.
        assert!(ran.as_deref() == Some("2") || (!survived && ran.as_deref() == Some("1")), "{last}: {ran:?}");
        assert_eq!(scene.run_one().await, None);
        if survived {
            break;
        }
    }
    assert!(survived);
}

#[tokio::test]
async fn what_contradicts_a_single_key_is_refused() {
    let scene = Scene::new();
    let id = Some(TaskId::parse("mine").unwrap());
    let both = FlowRequest { unique: open("1").flow.unique, ..bounced("1").flow };
    for (contradiction, field) in [
        (ScheduleRequest { idempotency_key: Some("k".to_owned()), ..open("1") }, "unique"),
        (ScheduleRequest { idempotency_key: Some("k".to_owned()), ..bounced("1") }, "debounce"),
        (ScheduleRequest { id, ..bounced("1") }, "debounce"),
        (ScheduleRequest { start: Start::After(Millis::from_secs(1)), ..bounced("1") }, "debounce"),
        (request("1", both), "debounce"),
    ] {
        let refused = scene.service.schedule(contradiction).await;
        let Err(ServiceError::Rejected(Reject::InvalidRequest { field: named, .. })) = refused else {
            panic!("{field}: it was not refused")
        };
        assert_eq!(named, field);
    }
    assert_eq!(scene.writes(), 0);
}
