//! When a turn may write its record.

use futures::StreamExt as _;
use tickover_core::execution::journal::Happened;
use tickover_core::flow::FlowRequest;
use tickover_core::id::{EventName, StepName, TaskKind};
use tickover_core::retry::RetryPolicy;
use tickover_core::timeout::Timeouts;
use tickover_service::executions::RemoteStep;

use super::*;
use crate::turn::drive::{Done, Driver};

#[tokio::test]
async fn nothing_is_written_while_the_entries_of_other_writers_are_reread() {
    let scene = Scene::new();
    scene.start("three").await;
    let turn = scene.take(Millis::from_secs(60)).await;
    let registry = scene.three_steps("1h");
    let backend = scene.service.clone().into();
    let Ok(mut driver) = Driver::new(&backend, &registry, *turn, &TurnSettings::default()) else {
        panic!("the workflow is known")
    };
    let id = ExecutionId::parse("x").unwrap();
    let stored = async || scene.service.execution(&id).await.unwrap().unwrap().execution;
    // Events that no longer fit into the record are in segments, which the answer of a write doesn't have.
    while stored().await.sealed.is_none() {
        let (name, payload) =
            (EventName::parse("e").unwrap(), Json::parse(format!("\"{}\"", "x".repeat(900))));
        scene.service.send_event(&id, name, None, payload).await.unwrap();
    }
    assert!(driver.apply(Done::Stored(Ok(Box::new(stored().await)))).is_ok());
    assert!(driver.busy.writing);
    let reread = driver.jobs.next().await.unwrap();
    assert!(matches!(&reread, Done::Reread(Ok(journal)) if !journal.is_empty()));
    assert!(driver.apply(reread).is_ok());
    assert!(!driver.busy.writing);
}

#[tokio::test]
async fn a_step_whose_end_is_read_while_it_is_ended_ends_once() {
    let scene = Scene::new();
    scene.start("three").await;
    let turn = scene.take(Millis::from_secs(60)).await;
    let registry = scene.three_steps("1h");
    let Ok(mut driver) =
        Driver::new(&scene.service.clone().into(), &registry, *turn, &TurnSettings::default())
    else {
        panic!("the workflow is known")
    };
    let names: Vec<StepName> = ["b", "c"].into_iter().map(|name| StepName::parse(name).unwrap()).collect();
    let steps = names.iter().map(|name| RemoteStep {
        name: name.clone(),
        kind: TaskKind::parse("race").unwrap(),
        queue: QueueName::parse("races").unwrap(),
        input: None,
        retry: RetryPolicy::default(),
        flow: FlowRequest::default(),
        timeouts: Timeouts::default(),
        given: vec![],
        slot: None,
        any_queue: false,
        at_most: None,
    });
    scene.service.start_remote(&driver.record, steps.collect()).await.all().unwrap();
    for name in names.clone() {
        driver.shared.lock().replay.push(scene.clock.now(), Happened::Remote { name });
    }
    scene.service.cancel_remote(&driver.record, &names[..1]).await.unwrap();
    driver.start_reading_outcomes();
    let read = driver.jobs.next().await.unwrap();
    assert!(driver.apply(read).is_ok());
    assert!(driver.apply(Done::Ended(Ok(names.clone()))).is_ok());
    let state = driver.shared.lock();
    let ends = state.replay.unwritten().filter_map(|entry| match &entry.what {
        Happened::Step { name, .. } => Some(name),
        _ => None,
    });
    assert_eq!(ends.collect::<Vec<_>>(), names.iter().collect::<Vec<_>>());
    assert!(state.replay.open_remote().is_empty());
}

#[tickover::step]
async fn wait_for(#[state] clock: &Arc<ManualClock>, secs: u64) -> crate::Result<u64> {
    clock.sleep_until(clock.now().plus(Millis::from_secs(secs))).await;
    Ok(secs)
}

#[tickover::workflow]
async fn busy(ctx: Ctx, steps: u64) -> crate::Result<u64> {
    let waited = ctx.join_all("wait", (1..=steps).map(wait_for)).await?;
    Ok(waited.len() as u64)
}

#[tokio::test]
async fn a_turn_that_always_has_results_to_write_extends_its_lease() {
    // When a write ends, other steps have ended.
    let scene = Scene::with_slow_writes(Millis::from_secs(5));
    scene.start_with("busy", "100").await;
    let lease = Millis::from_secs(60);
    let turn = scene.take(lease).await;
    let registry = Registry::new().with(busy).with_state(scene.clock.clone());
    let (settings, began) = (TurnSettings::default(), scene.clock.now());
    let kept = KeptRuns::new(0);
    let backend = scene.service.clone().into();
    let run = run_turn(&backend, &registry, &kept, *turn, &settings);
    assert_eq!(Box::pin(scene.clock.drive(run)).await, TurnEnd::Closed);
    assert_eq!(scene.output().await.as_deref(), Some("100"));
    assert!(scene.clock.now().since(began) > lease);
}
