//! Decisions on tasks that exist, each under its condition.

use futures::future::join_all;
use tickover_core::decision::{Condition, Write};
use tickover_core::due::{Due, DueKind};
use tickover_core::duration::Millis;
use tickover_core::id::BlobId;
use tickover_core::payload::{Json, Payload};
use tickover_core::task::Task;
use tickover_core::task::command::{Command, Heartbeat, Schedule, SignOfLife};
use tickover_core::timeout::{AttemptTimeout, OnTimeout, Timeouts};

use super::fixture::{NOW, SHARD, World, conflicting, deadline, later, look, place, present, retried};
use tickover_service::ports::StoreError;

pub(super) async fn every_step_of_a_life_is_read_as_it_was_written(world: World) -> Result<(), StoreError> {
    let mut task = world.schedule(Schedule { retry: retried(2), ..world.request("life") }).await?;
    let lease = |task: &Task| present(task.running()).lease;
    task = world.drive(&task, &world.claim(), NOW).await?;
    assert_eq!(world.stored(&task).await?, task);
    let beat = Command::Heartbeat(Heartbeat {
        lease: lease(&task),
        sign_of: SignOfLife::Both,
        progress: Some(0.1),
        details: Json::parse(r#"{"processed":120}"#),
        blob_id: BlobId::from_bytes([5; 16]),
        places: None,
    });
    task = world.drive(&task, &beat, later(1)).await?;
    assert!(matches!(task.details, Some(Payload::Inline(_))));
    assert_eq!(world.stored(&task).await?, task);
    task = world.drive(&task, &Command::Release { lease: lease(&task) }, later(2)).await?;
    assert_eq!(world.stored(&task).await?, task);
    task = world.drive(&task, &world.claim(), later(3)).await?;
    task = world.drive(&task, &world.fail(&task, true), later(4)).await?;
    assert_eq!(world.stored(&task).await?, task);
    task = world.drive(&task, &world.claim(), later(6)).await?;
    task = world.drive(&task, &Command::Cancel { force: false }, later(7)).await?;
    assert_eq!(world.stored(&task).await?, task);
    task = world.drive(&task, &world.complete(&task, r#"{"ok":true}"#), later(8)).await?;
    assert_eq!(world.stored(&task).await?, task);
    Ok(())
}

pub(super) async fn a_stale_version_conflicts_with_the_current_record(
    world: World,
) -> Result<(), StoreError> {
    let pending = world.scheduled("stale").await?;
    let running = world.drive(&pending, &world.claim(), NOW).await?;
    let second = world.drive(&pending, &world.claim(), NOW).await;
    assert_eq!(conflicting(second), Some(running.clone()));
    assert_eq!(world.stored(&running).await?, running);
    Ok(())
}

pub(super) async fn a_later_task_of_the_same_id_is_left_alone(world: World) -> Result<(), StoreError> {
    let old = world.scheduled("name").await?;
    let ended = world.drive(&old, &Command::Cancel { force: false }, NOW).await?;
    let end = present(ended.ended()).expires_at;
    let command = Command::Schedule(Box::new(world.request("name")));
    let new = world.carry_out(world.decide(None, &command, end)).await?;
    assert_eq!(new.version, old.version);
    let claimed = world.drive(&old, &world.claim(), NOW).await;
    assert_eq!(conflicting(claimed), Some(new));
    Ok(())
}

pub(super) async fn a_task_that_never_was_conflicts_with_nothing(world: World) -> Result<(), StoreError> {
    let command = Command::Schedule(Box::new(world.request("unwritten")));
    let unwritten = present(world.decide(None, &command, NOW).record().cloned());
    assert_eq!(conflicting(world.drive(&unwritten, &world.claim(), NOW).await), None);
    assert_eq!(world.store.task(&unwritten.id).await?, None);
    Ok(())
}

pub(super) async fn an_update_by_the_same_decision_counts_as_done(world: World) -> Result<(), StoreError> {
    let pending = world.scheduled("again").await?;
    let decision = world.decide(Some(&pending), &world.claim(), NOW);
    let running = world.carry_out(decision.clone()).await?;
    world.carry_out(decision).await?;
    assert_eq!(world.stored(&running).await?, running);
    Ok(())
}

pub(super) async fn a_repeated_write_conflicts_once_others_have_decided(
    world: World,
) -> Result<(), StoreError> {
    let pending = world.scheduled("overtaken").await?;
    let decision = world.decide(Some(&pending), &world.claim(), NOW);
    let running = world.carry_out(decision.clone()).await?;
    let done = world.drive(&running, &world.complete(&running, "1"), NOW).await?;
    assert_eq!(conflicting(world.carry_out(decision).await), Some(done));
    Ok(())
}

pub(super) async fn an_instant_that_would_be_found_too_late_conflicts(
    world: World,
) -> Result<(), StoreError> {
    let heartbeat = Some(AttemptTimeout { after: Millis::from_secs(900), on_timeout: OnTimeout::Retry });
    let timeouts = Timeouts { heartbeat, ..Timeouts::default() };
    let hinted = world.schedule(Schedule { timeouts, ..world.request("late") }).await?;
    // Without the tick, the backstop at 600 s would be early enough for a heartbeat due at 900 s.
    let decision = world.decide(Some(&hinted), &world.claim(), NOW);
    assert_eq!(present(decision.record().cloned()).due, hinted.due);
    let to = Due { at: later(3_000), kind: DueKind::Backstop, shard: SHARD };
    let moved = world.moved(&hinted, to).await?;

    assert_eq!(conflicting(world.carry_out(decision).await), Some(moved.clone()));
    // Another decision on the current record sets an earlier due slot.
    let running = world.drive(&moved, &world.claim(), NOW).await?;
    assert_eq!(place(&running).at, later(900));
    assert_eq!(world.stored(&running).await?, running);
    Ok(())
}

pub(super) async fn a_due_slot_moved_by_a_tick_is_kept(world: World) -> Result<(), StoreError> {
    let hinted = world.scheduled("moved").await?;
    let to = Due { at: later(3_000), kind: DueKind::Backstop, shard: SHARD };
    world.moved(&hinted, to).await?;
    let running = world.drive(&hinted, &world.claim(), NOW).await?;
    assert_eq!(world.stored(&running).await?, Task { due: Some(to), ..running });
    Ok(())
}

pub(super) async fn a_new_due_slot_replaces_one_moved_by_a_tick(world: World) -> Result<(), StoreError> {
    let before = world.scheduled("whole").await?;
    world.moved(&before, Due { at: later(3_000), kind: DueKind::Recheck, shard: SHARD }).await?;
    // The same instant with another kind than the one decided on: only half of it differs.
    let to = Due { kind: DueKind::Instant, ..place(&before) };
    let after = Task { due: Some(to), version: before.version + 1, nonce: world.nonce(), ..before.clone() };
    let write = Write::replace(before, after.clone(), Condition::UNCHANGED);
    world.store.commit(&[write]).await?;
    assert_eq!(world.stored(&after).await?, after);
    Ok(())
}

pub(super) async fn of_updates_at_once_one_wins(world: World) -> Result<(), StoreError> {
    let pending = world.schedule(Schedule { timeouts: deadline(60), ..world.request("race") }).await?;
    let decisions = (0..16).map(|_| world.decide(Some(&pending), &world.claim(), NOW));
    let expiry = world.decide(Some(&pending), &look(), later(60));
    let tries = decisions.chain([expiry]).map(|decision| world.carry_out(decision));
    let (mut winners, mut losers) = (Vec::new(), 0);
    for result in join_all(tries).await {
        match result {
            Ok(task) => winners.push(task),
            Err(StoreError::Conflict { .. }) => losers += 1,
            Err(error) => return Err(error),
        }
    }
    assert_eq!((winners.len(), losers), (1, 16));
    assert_eq!(world.stored(&pending).await?, winners[0]);
    Ok(())
}
