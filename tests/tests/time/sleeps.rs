//! Sleeps of more than 15 minutes: the tick sends their hints from the due index, so that they come when they are due.

use std::sync::Arc;

use futures::FutureExt as _;
use tickover_core::duration::Millis;
use tickover_core::execution::command::{Cleanup, Suspend};
use tickover_core::execution::journal::{Entry, Happened};
use tickover_core::execution::message::TurnHint;
use tickover_core::id::{ExecutionId, QueueName, StepName, WorkflowName};
use tickover_core::limits::Limits;
use tickover_core::time::Timestamp;
use tickover_service::claim::ClaimRequest;
use tickover_service::cost;
use tickover_service::executions::{StartRequest, Suspended, Work};
use tickover_service::memory::{ManualClock, MemoryQueue, MemoryStore, Queues};
use tickover_service::ports::{Clock, Queue as _};
use tickover_service::system::SystemIds;
use tickover_service::{Ports, Service};
use tickover_tests::scene::{LeapClock, START, Scene};
use tickover_tests::seconds_queue::{Noted, SecondsQueue};

use super::{after, tick_of};

const MINUTE: u64 = 60;

fn flows() -> QueueName {
    QueueName::parse("flows").unwrap()
}

fn id(text: &str) -> ExecutionId {
    ExecutionId::parse(text).unwrap()
}

async fn work(service: &Service) -> Vec<Work> {
    let (lease, wait) = (Millis::from_secs(60), Millis::ZERO);
    let request = ClaimRequest { worker: None, max: 1, lease, wait, provides: vec![] };
    service.next_work(&flows(), &request).await.unwrap()
}

/// Starts an execution that sleeps until then.
async fn sleeps(service: &Service, name: &str, until: Timestamp) {
    let workflow = WorkflowName::parse("nap").unwrap();
    let request = StartRequest { id: Some(id(name)), ..StartRequest::new(workflow, flows()) };
    service.start(request).await.unwrap();
    let Some(Work::Turn(turn)) = work(service).await.pop() else { panic!("no turn") };
    let what = Happened::Until { name: StepName::parse("nap").unwrap(), until };
    let suspend = Suspend {
        lease: turn.lease,
        entries: vec![Entry { at: service.now(), what }],
        seen_version: turn.execution.version,
        seen_wakes: turn.execution.wakes,
        until: Some(until),
        awaits_others: false,
        events: vec![],
        cleanup: Cleanup::default(),
        values: None,
    };
    let answer = service.suspend_turn(&turn.execution, suspend).await.unwrap();
    assert!(matches!(answer, Suspended::Done(_)));
    service.done_with(&flows(), turn.receipt.as_deref().unwrap()).await;
}

/// A system whose queues count whole seconds.
fn in_seconds(clock: Arc<dyn Clock>) -> (Service, Arc<SecondsQueue>) {
    let inner = Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen));
    let queue = Arc::new(SecondsQueue::new(inner, clock.clone()));
    let (store, ids) = (Arc::new(MemoryStore::default()), Arc::new(SystemIds));
    let ports = Ports { store, queue: queue.clone(), clock, ids };
    (Service::new(ports, Limits::default()), queue)
}

fn leaping() -> (Scene, Arc<SecondsQueue>) {
    let clock = Arc::new(LeapClock::default());
    let (service, queue) = in_seconds(clock.clone());
    (Scene { service, clock, queue: queue.inner.clone() }, queue)
}

/// The hints that ticks have sent: those for a later instant.
fn hints(queue: &SecondsQueue) -> Vec<(Timestamp, Noted)> {
    let hint = |noted: Noted| Some((TurnHint::parse(&noted.body).ok()?.turn.at?, noted));
    queue.noted().into_iter().filter_map(hint).filter(|(at, _)| *at > after(MINUTE)).collect()
}

#[tokio::test]
async fn the_functions_of_long_sleeps_wait_out_a_few_hundredths_of_a_second_and_their_hints_share_requests() {
    let (scene, queue) = leaping();
    let count = 500_u64;
    for number in 0..count {
        let until = after(3_600).plus(Millis::new(number * 7_919 % 60_000));
        sleeps(&scene.service, &format!("e-{number}"), until).await;
    }
    for minute in 1..60 {
        tick_of(&scene, minute, 0).await;
    }
    let hints = hints(&queue);
    assert_eq!(hints.len(), 500);
    let waited: Vec<u64> = hints.iter().map(|(at, sent)| at.since(sent.visible_at).as_u64()).collect();
    assert!(hints.iter().all(|(at, sent)| sent.visible_at <= *at), "one came too late");
    assert!(waited.iter().all(|ms| *ms < 50), "{waited:?}");
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let mean = waited.iter().sum::<u64>() as f64 / count as f64;
    let expected = 0.5 * cost::HELD_WAITED_OUT_MS..=cost::HELD_WAITED_OUT_MS;
    assert!(expected.contains(&mean), "{mean} ms");
    let calls = hints.iter().map(|(_, sent)| sent.call).collect::<std::collections::BTreeSet<_>>();
    assert!(calls.len() <= 20, "{} calls", calls.len());
}

#[tokio::test]
async fn a_tick_holds_hints_for_at_most_a_second_and_not_at_all_where_the_queue_counts_milliseconds() {
    for counts_seconds in [true, false] {
        let scene = if counts_seconds { leaping().0 } else { Scene::in_memory() };
        for number in 0..20_u64 {
            let until = after(3_600).plus(Millis::new(number * 53));
            sleeps(&scene.service, &format!("e-{number}"), until).await;
        }
        let report = tick_of(&scene, 57, 0).await;
        assert_eq!(report.dispatched, 0);
        let report = tick_of(&scene, 58, 0).await;
        let took = scene.service.now().since(after(58 * MINUTE)).as_u64();
        assert_eq!(report.dispatched, 20);
        assert!(if counts_seconds { (900..1_000).contains(&took) } else { took == 0 }, "{took} ms");
    }
}

#[tokio::test]
async fn a_tick_without_time_sends_what_it_holds_at_once() {
    let (scene, queue) = leaping();
    sleeps(&scene.service, "e-1", after(3_600).plus(Millis::new(700))).await;
    scene.clock.advance(Millis::from_secs(58 * MINUTE));
    let stop_at = scene.service.now().plus(Millis::new(100));
    scene.service.tick(after(58 * MINUTE), stop_at).await.unwrap();
    assert_eq!(scene.service.now(), stop_at);
    let (at, sent) = hints(&queue).pop().unwrap();
    assert_eq!(at.since(sent.visible_at), Millis::new(600), "it comes early, and its function waits");
}

#[tokio::test]
async fn a_tick_that_dies_while_it_holds_hints_has_lost_none() {
    let clock = Arc::new(ManualClock::new(START));
    let (service, queue) = in_seconds(clock.clone());
    let until = after(3_600).plus(Millis::new(500));
    sleeps(&service, "e-1", until).await;
    clock.set(after(58 * MINUTE));
    let stop_at = service.now().plus(Millis::from_secs(50));
    // It waits for the half second, and is gone.
    assert!(Box::pin(service.tick(after(58 * MINUTE), stop_at)).now_or_never().is_none());
    assert!(hints(&queue).is_empty());
    clock.set(after(59 * MINUTE));
    let stop_at = service.now().plus(Millis::from_secs(50));
    clock.drive(service.tick(after(59 * MINUTE), stop_at)).await.unwrap();
    let sent = hints(&queue);
    assert_eq!(sent.iter().map(|(at, sent)| (*at, sent.visible_at)).collect::<Vec<_>>(), [(until, until)]);
}

#[tokio::test]
async fn one_tick_sends_the_hint_of_a_sleep_and_a_lost_one_is_sent_again_once() {
    let (scene, queue) = leaping();
    let until = after(3_600).plus(Millis::new(250));
    sleeps(&scene.service, "e-1", until).await;
    for minute in 1..61 {
        tick_of(&scene, minute, 0).await;
    }
    assert_eq!(hints(&queue).len(), 1);
    // It is lost.
    scene.clock.advance(Millis::from_secs(1));
    let lost = queue.inner.receive(&flows(), 1, Millis::from_secs(9), Millis::ZERO).await.unwrap();
    queue.inner.delete(&flows(), &lost[0].receipt).await.unwrap();
    let mut sent_at = None;
    for minute in 61..120 {
        tick_of(&scene, minute, 0).await;
        let sent = hints(&queue).len();
        assert!(sent <= 2, "{sent}");
        if sent == 2 {
            sent_at = sent_at.or(Some(minute));
        }
    }
    // The first probe comes ten minutes after the instant, and the second a minute later.
    assert_eq!(sent_at, Some(72));
    let Some(Work::Turn(turn)) = work(&scene.service).await.pop() else { panic!("no turn") };
    assert_eq!(turn.execution.id, id("e-1"));
}

#[tokio::test]
async fn the_next_tick_sends_the_hints_of_missed_ticks_at_once() {
    for missed in [1, 5, 45] {
        let scene = Scene::in_memory();
        sleeps(&scene.service, "e-1", after(3_600)).await;
        for minute in (1..58).chain([58 + missed]) {
            tick_of(&scene, minute, 0).await;
        }
        scene.clock.advance(after(3_600).since(scene.service.now()));
        assert!(matches!(work(&scene.service).await[..], [Work::Turn(_)]), "{missed} ticks were missed");
    }
}

#[tokio::test]
async fn a_hint_of_an_execution_that_was_woken_meanwhile_has_no_effect() {
    let (scene, queue) = leaping();
    sleeps(&scene.service, "e-1", after(3_600)).await;
    tick_of(&scene, 58, 0).await;
    assert_eq!(hints(&queue).len(), 1);
    scene.service.terminate(&id("e-1")).await.unwrap();
    scene.clock.advance(Millis::from_secs(120));
    assert!(work(&scene.service).await.is_empty());
    for minute in 61..90 {
        tick_of(&scene, minute, 0).await;
    }
    assert_eq!(hints(&queue).len(), 1);
}

#[tokio::test]
async fn the_hint_of_a_sleep_in_a_paused_queue_is_sent_once_when_the_queue_resumes() {
    let (scene, queue) = leaping();
    sleeps(&scene.service, "e-1", after(3_600)).await;
    tick_of(&scene, 58, 0).await;
    scene.service.pause_queue(&flows(), true).await.unwrap();
    scene.clock.advance(Millis::from_secs(125));
    // A function receives it.
    let hint = queue.inner.receive(&flows(), 1, Millis::from_secs(9), Millis::ZERO).await.unwrap().remove(0);
    let lease = Millis::from_secs(60);
    let request = ClaimRequest { worker: None, max: 1, lease, wait: Millis::ZERO, provides: vec![] };
    assert!(scene.service.start_turn(&hint.body, &request).await.unwrap().is_none());
    assert!(scene.service.execution(&id("e-1")).await.unwrap().unwrap().execution.parked.is_paused());
    queue.inner.delete(&flows(), &hint.receipt).await.unwrap();
    for minute in 61..600 {
        tick_of(&scene, minute, 0).await;
    }
    assert_eq!(hints(&queue).len(), 1);
    scene.service.pause_queue(&flows(), false).await.unwrap();
    for minute in 600..615 {
        tick_of(&scene, minute, 0).await;
        scene.fire().await;
    }
    assert_eq!(hints(&queue).len(), 2);
    assert!(matches!(work(&scene.service).await[..], [Work::Turn(_)]));
}

#[tokio::test]
async fn a_system_that_starts_again_has_the_hint_of_a_sleep_that_a_tick_had_sent() {
    let scene = Scene::in_memory();
    sleeps(&scene.service, "e-1", after(3_600)).await;
    tick_of(&scene, 57, 0).await;
    assert_eq!(scene.service.hint_all().await.unwrap(), 1);
    scene.clock.advance(after(3_600).since(scene.service.now()));
    assert!(matches!(work(&scene.service).await[..], [Work::Turn(_)]));
    // Earlier, no tick has sent it.
    let scene = Scene::in_memory();
    sleeps(&scene.service, "e-1", after(3_600)).await;
    assert_eq!(scene.service.hint_all().await.unwrap(), 0);
}
