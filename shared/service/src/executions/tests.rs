//! How long segments and payloads of executions are kept, and how executions are closed: with thousands of items and
//! steps, little time, and a crash after every write. The store deletes an item as soon as its retention allows.

mod admitted;
mod chains;
mod deaths;
mod joins;
mod missed;
pub(crate) mod mortal;
mod pauses;
pub(crate) mod scene;

use tickover_core::execution::command::{Cleanup, Ending};
use tickover_core::execution::{ExecutionOutcome, ExecutionState};
use tickover_core::payload::Payload;

use super::remote_id;
use crate::error::ServiceError;
use crate::memory::store::Item;
use mortal::NEVER;
use scene::{DAY, Scene, event, failed_by, id, large, name};

/// A failed execution whose results have items of their own, most of them referred to by segments.
async fn failed(results: usize) -> Scene {
    let scene = Scene::new();
    let turn = scene.started("e", Some(large())).await;
    let mut execution = turn.execution.clone();
    for part in (0..results).collect::<Vec<_>>().chunks(25) {
        let mut entries = Vec::new();
        for number in part {
            entries.push(scene.large_step(&format!("step[{number}]")).await);
        }
        execution =
            scene.service.record_turn(&execution, turn.lease, entries, Cleanup::default()).await.unwrap();
    }
    assert!(results < 10 || execution.sealed.is_some());
    let ending = failed_by("charge");
    scene.close(&execution, turn.lease, vec![scene.failed_step("charge")], ending).await;
    scene
}

#[tokio::test]
async fn a_step_that_runs_again_finds_all_results_however_long_it_takes() {
    let scene = failed(60).await;
    scene.pass(25 * DAY).await;
    scene.service.retry_step(&id("e"), name("charge")).await.unwrap();
    // The first end, and the retention after it, passed long ago.
    scene.pass(200 * DAY).await;
    let turn = scene.turn().await.unwrap();
    assert!(turn.input.is_some());
    for entry in &turn.journal {
        if let Some(payload) = entry.payload() {
            scene.service.open(payload).await.unwrap();
        }
    }
    let ending = Ending::Outcome(ExecutionOutcome::Completed { output: None });
    scene.close(&turn.execution, turn.lease, vec![], ending).await;
    scene.pass(130 * DAY).await;
    assert_eq!(scene.memory.expiries(), []);
}

#[tokio::test]
async fn a_step_runs_again_though_the_extension_of_retention_crashes_after_any_write() {
    for last in 0.. {
        let scene = failed(60).await;
        // Just before the deletion of the execution: its segments and payloads would be deleted before the retry has
        // ended.
        scene.advance(29 * DAY + DAY / 2);
        scene.shorten_kept("e").await;
        scene.crash_after(last);
        let retried = scene.service.retry_step(&id("e"), name("charge")).await;
        scene.crash_after(NEVER);
        if scene.execution("e").await.closed().is_some() {
            scene.service.retry_step(&id("e"), name("charge")).await.unwrap();
        }
        scene.delete_expired();
        scene.pass(100 * DAY).await;
        scene.assert_whole("e").await;
        if retried.is_ok() {
            assert!(last > 60, "{last}");
            break;
        }
    }
}

#[tokio::test]
async fn an_extension_of_retention_longer_than_a_call_continues_call_by_call() {
    let scene = failed(3_000).await;
    // The record itself would be deleted before the second call.
    scene.advance(30 * DAY - 20);
    scene.shorten_kept("e").await;
    scene.slow(1_000);
    let (mut calls, mut seen) = (0, 0);
    loop {
        calls += 1;
        match scene.service.retry_step(&id("e"), name("charge")).await {
            Ok(_) => break,
            Err(ServiceError::Unavailable { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        let progress = scene.execution("e").await.progress.unwrap();
        assert!(progress.entries > seen, "call {calls} came no further than {seen}");
        seen = progress.entries;
    }
    assert!(calls > 1);
    scene.slow(0);
    scene.pass(100 * DAY).await;
    scene.assert_whole("e").await;
}

#[tokio::test]
async fn an_execution_that_waits_for_a_year_without_a_timeout_keeps_what_it_points_to() {
    let scene = Scene::new();
    let turn = scene.started("e", Some(large())).await;
    let mut entries = Vec::new();
    for number in 0..30 {
        entries.push(scene.large_step(&format!("step[{number}]")).await);
    }
    scene.suspend(&turn, entries).await;
    // No record will ever point to this.
    scene.service.store_payload(large()).await.unwrap();
    scene.pass(365 * DAY).await;
    scene.assert_whole("e").await;
    let parts = scene.memory.expiries().into_iter().filter(|(item, _)| matches!(item, Item::Blob(_))).count();
    assert_eq!(parts, 31);
    scene.service.terminate(&id("e")).await.unwrap();
    scene.pass(100 * DAY).await;
    assert_eq!(scene.memory.expiries(), []);
}

#[tokio::test]
async fn extending_retention_survives_a_crash_after_any_write() {
    for last in 0..80 {
        let scene = Scene::new();
        let turn = scene.started("e", Some(large())).await;
        let mut entries = Vec::new();
        for number in 0..60 {
            entries.push(scene.large_step(&format!("step[{number}]")).await);
        }
        scene.suspend(&turn, entries).await;
        scene.advance(31 * DAY);
        scene.crash_after(last);
        let _ = scene.tick().await;
        scene.crash_after(NEVER);
        scene.pass(100 * DAY).await;
        scene.assert_whole("e").await;
    }
}

#[tokio::test]
async fn items_of_earlier_runs_expire_and_items_of_the_next_run_stay() {
    let scene = Scene::new();
    let first = scene.started("e", Some(large())).await;
    scene.service.send_event(&id("e"), event("go"), None, Some(large())).await.unwrap();
    let mut entries = Vec::new();
    for number in 0..30 {
        entries.push(scene.large_step(&format!("step[{number}]")).await);
    }
    let execution = scene.execution("e").await;
    let execution =
        scene.service.record_turn(&execution, first.lease, entries, Cleanup::default()).await.unwrap();
    let journal = scene.service.journal_of(&execution).await.unwrap();
    let events = tickover_core::execution::journal::pending_events(&journal).into_iter().cloned().collect();
    let input: Option<Payload> = Some(scene.service.store_payload(large()).await.unwrap());
    let ending = Ending::ContinueAsNew { input, carried: events };
    scene.close(&execution, first.lease, vec![], ending).await;
    let second = scene.turn().await.unwrap();
    assert_eq!(second.execution.run, 2);
    scene.suspend(&second, vec![]).await;
    scene.pass(300 * DAY).await;
    scene.assert_whole("e").await;
    let parts = scene.memory.expiries();
    assert!(!parts.iter().any(|(item, _)| matches!(item, Item::Segment(..))), "{parts:?}");
    assert_eq!(parts.iter().filter(|(item, _)| matches!(item, Item::Blob(_))).count(), 2);
}

/// An execution with this many open steps.
async fn fanned_out(steps: usize) -> Scene {
    let scene = Scene::new();
    let turn = scene.started("e", None).await;
    let entries = scene.start_remote(&turn.execution, steps).await;
    scene.suspend(&turn, entries).await;
    scene
}

#[tokio::test]
async fn a_start_that_fails_in_part_says_what_it_has_started() {
    let scene = Scene::new();
    let turn = scene.started("e", None).await;
    scene.crash_after(20);
    let begun = scene.try_start_remote(&turn.execution, 60).await;
    scene.crash_after(NEVER);
    assert!(begun.error.is_some() && (1..60).contains(&begun.names.len()), "{begun:?}");
    let mut unsaid = 0;
    for number in 0..60 {
        let name = name(&format!("label[{number}]"));
        let is_there = scene.service.describe(&remote_id(&turn.execution, &name)).await.is_ok();
        let is_said = begun.names.contains(&name);
        assert!(is_there || !is_said, "{name}");
        unsaid += u32::from(is_there && !is_said);
    }
    assert!(unsaid <= 1, "{unsaid}: only the last write may have lost its answer");
}

#[tokio::test]
async fn a_close_longer_than_a_call_continues_by_message_until_everything_has_ended() {
    let scene = fanned_out(1_500).await;
    scene.slow(40);
    scene.service.terminate(&id("e")).await.unwrap();
    let (mut rounds, mut seen) = (0, 0);
    while let ExecutionState::Closing(_) = scene.execution("e").await.state {
        let steps = scene.execution("e").await.progress.unwrap().steps;
        assert!(rounds == 0 || steps > seen, "round {rounds} came no further than {seen}");
        (rounds, seen) = (rounds + 1, steps);
        // Without a tick.
        assert_eq!(scene.fire(1_000).await, 1);
    }
    assert!(rounds > 2, "{rounds}");
    scene.slow(0);
    for number in 0..1_500 {
        let id = remote_id(&scene.execution("e").await, &name(&format!("label[{number}]")));
        let task = scene.service.describe(&id).await.unwrap().task;
        assert!(task.ended().is_some(), "{number}");
    }
}

#[tokio::test]
async fn the_message_of_a_close_that_fails_comes_back() {
    let scene = fanned_out(1_500).await;
    scene.slow(40);
    scene.service.terminate(&id("e")).await.unwrap();
    scene.slow(0);
    scene.crash_after(10);
    let failed = scene.try_fire(1_000).await;
    scene.crash_after(NEVER);
    assert_eq!(failed, [true], "no call would continue it for ten minutes");
    scene.advance(61);
    while scene.fire(1_000).await > 0 {}
    assert!(matches!(scene.execution("e").await.state, ExecutionState::Ended(_)));
}

#[tokio::test]
async fn a_close_survives_a_crash_after_any_write() {
    for last in 1.. {
        let scene = fanned_out(60).await;
        scene.crash_after(last);
        let _ = scene.service.terminate(&id("e")).await;
        scene.crash_after(NEVER);
        let ended = matches!(scene.execution("e").await.state, ExecutionState::Ended(_));
        scene.pass(DAY).await;
        assert!(matches!(scene.execution("e").await.state, ExecutionState::Ended(_)));
        let execution = scene.execution("e").await;
        for number in 0..60 {
            let id = remote_id(&execution, &name(&format!("label[{number}]")));
            assert!(scene.service.describe(&id).await.unwrap().task.ended().is_some(), "{number}");
        }
        if ended {
            assert!(last > 60);
            break;
        }
    }
}

#[tokio::test]
async fn ending_an_execution_with_thousands_of_results_is_one_write() {
    let scene = Scene::new();
    let turn = scene.started("e", Some(large())).await;
    let mut execution = turn.execution.clone();
    for part in 0..20 {
        let mut entries = Vec::new();
        for number in 0..100 {
            entries.push(scene.large_step(&format!("step[{part}-{number}]")).await);
        }
        execution =
            scene.service.record_turn(&execution, turn.lease, entries, Cleanup::default()).await.unwrap();
    }
    let before = scene.writes();
    let ending = Ending::Outcome(ExecutionOutcome::Completed { output: None });
    scene.close(&execution, turn.lease, vec![], ending).await;
    assert_eq!(scene.writes() - before, 1);
    assert!(matches!(scene.execution("e").await.state, ExecutionState::Ended(_)));
    // As long as the record exists, its results exist.
    scene.advance(29 * DAY);
    scene.delete_expired();
    scene.assert_whole("e").await;
    scene.pass(100 * DAY).await;
    assert_eq!(scene.memory.expiries(), []);
}

#[tokio::test]
async fn a_parent_is_notified_of_a_timed_out_child_though_the_tick_crashes_after_any_write() {
    for last in 0.. {
        let scene = Scene::new();
        let mut turn = scene.started("e", None).await;
        let mut begun = vec![scene.begin_child(&turn.execution, "child", 90_000).await];
        // Now its probes come once an hour.
        for _ in 0..4 {
            scene.wait(&turn, std::mem::take(&mut begun), true).await;
            scene.advance(3_600);
            scene.tick().await.unwrap();
            turn = scene.turn().await.unwrap();
        }
        scene.advance(90_000 - 4 * 3_600 - 1);
        scene.tick().await.unwrap();
        if let Some(other) = scene.turn().await {
            turn = other;
        }
        scene.wait(&turn, vec![], true).await;
        scene.advance(1);
        scene.crash_after(last);
        let ticked = scene.tick().await;
        scene.crash_after(NEVER);
        let was_closed = matches!(scene.execution("child").await.state, ExecutionState::Ended(_));
        let mut heard = None;
        for minute in 0..=15 {
            if scene.turn().await.is_some() {
                heard = Some(minute);
                break;
            }
            scene.advance(60);
            scene.tick().await.unwrap();
        }
        assert!(heard.is_some(), "{last}: it was not notified");
        if ticked.is_ok() && was_closed {
            assert!(last > 2, "{last}");
            break;
        }
    }
}
