use tickover_core::id::{QueueName, TaskId, TaskKind};
use tickover_core::limits::Limits;
use tickover_core::retry::RetryPolicy;
use tickover_core::task::Status;
use tickover_core::task::command::Start;
use tickover_core::timeout::{LifeTimeout, Timeouts};
use tickover_core::timer::{Timer, Wake};

use super::*;
use crate::claim::Delivered;
use crate::memory::{ManualClock, MemoryQueue, MemoryStore, Queues};
use crate::system::SystemIds;
use crate::tasks::schedule::ScheduleRequest;
use crate::timers::Fired;
use crate::{Ports, Service};

fn true_at(ms: i64) -> Timestamp {
    Timestamp::from_millis(1_767_225_600_000 + ms)
}

/// An answer at a true instant, seen by a machine whose clock is `ahead` ms fast, after a round trip of `round_trip`
/// ms.
fn answer(skew: &Skew, at: i64, ahead: i64, round_trip: i64) {
    let of_machine = |ms| true_at(ms + ahead);
    let date = Timestamp::from_millis(true_at(at).as_millis().div_euclid(1_000) * 1_000);
    skew.note(of_machine(at - round_trip / 2), of_machine(at + round_trip / 2), date);
}

#[test]
fn one_answer_shows_a_clock_that_is_off_to_a_second() {
    for ahead in [30_000, -30_000, 2_000, -2_000] {
        for at in [0, 250, 999] {
            let skew = Skew::default();
            answer(&skew, at, ahead, 40);
            assert!((skew.offset_ms() + ahead).abs() <= 520, "{ahead} at {at}: {}", skew.offset_ms());
        }
    }
}

#[test]
fn many_answers_show_it_to_a_few_hundredths_and_one_that_is_right_is_left_alone() {
    for ahead in [30_000_i64, -700, 300, 90, 0, -90] {
        let skew = Skew::default();
        for number in 0..100 {
            answer(&skew, number * 137, ahead, 20);
        }
        let expected = if ahead.abs() < 100 { 0 } else { -ahead };
        assert!((skew.offset_ms() - expected).abs() <= 30, "{ahead}: {}", skew.offset_ms());
    }
}

#[test]
fn a_long_poll_gives_wide_but_correct_bounds() {
    let skew = Skew::default();
    answer(&skew, 20_000, 5_000, 20_000);
    assert_eq!(skew.offset_ms(), 0);
    answer(&skew, 21_000, 5_000, 20);
    assert!((skew.offset_ms() + 5_000).abs() <= 520, "{}", skew.offset_ms());
    answer(&skew, 45_000, 5_000, 20_000);
    assert!((skew.offset_ms() + 5_000).abs() <= 600, "{}", skew.offset_ms());
}

#[test]
fn one_server_that_is_wrong_moves_nothing_and_a_clock_that_was_set_is_noticed_at_the_second_answer() {
    let skew = Skew::default();
    for number in 0..20 {
        answer(&skew, number * 137, 0, 20);
    }
    answer(&skew, 3_000, 60_000, 20);
    assert_eq!(skew.offset_ms(), 0);
    answer(&skew, 3_100, 0, 20);
    answer(&skew, 3_200, 60_000, 20);
    assert_eq!(skew.offset_ms(), 0);
    answer(&skew, 3_300, 60_000, 20);
    assert!((skew.offset_ms() + 60_000).abs() <= 520, "{}", skew.offset_ms());
}

/// A worker on a machine whose clock is 30 s ahead, after answers of AWS.
fn worker_ahead() -> (Service, Arc<ManualClock>) {
    let machine = Arc::new(ManualClock::new(true_at(30_000)));
    let skew = Arc::new(Skew::default());
    for number in 0..50 {
        answer(&skew, number * 137 - 7_000, 30_000, 20);
    }
    let clock: Arc<dyn Clock> = Arc::new(MeasuredClock::new(machine.clone(), skew));
    let queue = Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen));
    let ports = Ports { store: Arc::new(MemoryStore::new()), queue, clock, ids: Arc::new(SystemIds) };
    (Service::new(ports, Limits::default()), machine)
}

#[tokio::test]
async fn a_worker_whose_clock_is_ahead_ends_nothing_before_its_deadline() {
    let (worker, machine) = worker_ahead();
    let id = TaskId::parse("a").unwrap();
    let limit = LifeTimeout { after: Millis::from_secs(60), is_error: true };
    let deadline = Timeouts { schedule_to_close: Some(limit), ..Timeouts::default() };
    let request = ScheduleRequest {
        id: Some(id.clone()),
        idempotency_key: None,
        queue: QueueName::parse("mail").unwrap(),
        kind: TaskKind::parse("work").unwrap(),
        input: None,
        labels: None,
        retry: RetryPolicy::none(),
        flow: tickover_core::flow::FlowRequest::default(),
        timeouts: deadline,
        start: Start::After(Millis::ZERO),
        trace: None,
        asked: crate::tasks::schedule::Asked::default(),
    };
    worker.schedule(request).await.unwrap();
    let deadline_at = worker.describe(&id).await.unwrap().task.deadline_at.unwrap();
    assert!((deadline_at.as_millis() - true_at(60_000).as_millis()).abs() <= 100, "{deadline_at:?}");

    let timer = Wake::Timer(Timer { record: id.clone().into(), at: deadline_at, due_at: deadline_at });
    let body = timer.body().unwrap();
    machine.set(true_at(30_000 + 55_000));
    let stop_at = true_at(58_000);
    assert_eq!(worker.fire(Delivered::first(&body), stop_at).await.unwrap(), Fired::SentOn);
    assert_eq!(worker.describe(&id).await.unwrap().task.status(), Status::Pending);

    machine.set(true_at(30_000 + 59_500));
    let fired = machine.drive(worker.fire(Delivered::first(&body), true_at(100_000))).await.unwrap();
    assert_eq!(fired, Fired::TimedOut);
    let ended_at = machine.now().minus(Millis::from_secs(30));
    assert!((ended_at.as_millis() - deadline_at.as_millis()).abs() <= 100, "{ended_at:?}");
}
