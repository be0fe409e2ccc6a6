//! Decisions on executions that exist, each under its condition.

use futures::future::join_all;
use tickover_core::decision::{Condition, Write};
use tickover_core::due::{Due, DueKind};
use tickover_core::execution::{Execution, ExecutionState, fixture};
use tickover_core::queue::QueueRecord;

use super::fixture::{closed, conflicting, running, updating, waiting, wake};
use crate::store::fixture::{NOW, SHARD, World, later, queue};
use tickover_service::ports::StoreError;

pub(crate) async fn every_change_of_an_execution_is_read_as_it_was_written(
    world: World,
) -> Result<(), StoreError> {
    let mut current = world.started("life").await?;
    for state in fixture::every_state(NOW) {
        // Every field is set and removed, also by a restart of a record that had ended.
        let full = world.full_execution("life");
        let is_open = !matches!(state, ExecutionState::Ended(_));
        let due = full.due.filter(|_| is_open);
        let Execution { incarnation, version, wakes, .. } = current;
        let after = Execution { state, due, incarnation, version: version + 1, wakes, ..full };
        world.update(&current, &after).await?;
        assert_eq!(world.found(&after).await?, after);
        let plain = Execution { incarnation, version: version + 2, wakes, ..world.execution("life") };
        world.update(&after, &plain).await?;
        assert_eq!(world.found(&plain).await?, plain);
        current = plain;
    }
    Ok(())
}

pub(crate) async fn a_stale_version_conflicts_with_the_current_execution(
    world: World,
) -> Result<(), StoreError> {
    let pending = world.started("stale").await?;
    let taken = world.turned(&pending, running()).await?;
    assert_eq!(conflicting(world.turned(&pending, waiting(0)).await), Some(taken.clone()));
    assert_eq!(world.found(&taken).await?, taken);
    Ok(())
}

pub(crate) async fn a_later_execution_of_the_same_id_is_left_alone(world: World) -> Result<(), StoreError> {
    let old = world.started("name").await?;
    world.ended(&old).await?;
    let new = world.execution("name");
    let write = Write::put(new.clone(), Condition::Free { now: closed().expires_at });
    world.store.commit(&[write]).await?;
    assert_eq!(new.version, old.version);
    assert_eq!(conflicting(world.turned(&old, running()).await), Some(new));
    Ok(())
}

pub(crate) async fn an_execution_that_never_was_conflicts_with_nothing(
    world: World,
) -> Result<(), StoreError> {
    let unwritten = world.execution("unwritten");
    assert_eq!(conflicting(world.turned(&unwritten, running()).await), None);
    assert_eq!(world.store.execution(&unwritten.id).await?, None);
    Ok(())
}

pub(crate) async fn a_change_by_the_same_decision_counts_as_done_until_others_have_decided(
    world: World,
) -> Result<(), StoreError> {
    let pending = world.started("again").await?;
    let taken = Execution { state: running(), ..world.next_version(&pending) };
    world.update(&pending, &taken).await?;
    world.update(&pending, &taken).await?;
    // Others may wake it meanwhile: its decision is still the last one.
    world.store.commit(&[wake(&taken)]).await?;
    world.update(&pending, &taken).await?;
    assert_eq!(world.found(&taken).await?, Execution { wakes: 1, ..taken.clone() });

    let asleep = world.turned(&taken, waiting(1)).await?;
    let found = Execution { wakes: 1, ..asleep };
    assert_eq!(conflicting(world.update(&pending, &taken).await), Some(found));
    Ok(())
}

pub(crate) async fn an_executions_instant_that_would_be_found_too_late_conflicts(
    world: World,
) -> Result<(), StoreError> {
    let hinted = world.started("late").await?;
    let taken = Execution { state: running(), ..world.next_version(&hinted) };
    let insisting = |latest| {
        let condition = Condition::Unchanged { due_no_later_than: Some(latest), wakes: None };
        [Write::replace(hinted.clone(), taken.clone(), condition)]
    };
    assert_eq!(conflicting(world.store.commit(&insisting(later(599))).await), Some(hinted.clone()));
    let moved =
        world.moved_to(&hinted, Due { at: later(900), kind: DueKind::Backstop, shard: SHARD }).await?;
    assert_eq!(conflicting(world.store.commit(&insisting(later(899))).await), Some(moved));
    world.store.commit(&insisting(later(900))).await?;
    Ok(())
}

pub(crate) async fn an_executions_due_slot_moved_by_a_tick_is_kept_unless_a_new_one_is_written(
    world: World,
) -> Result<(), StoreError> {
    let hinted = world.started("moved").await?;
    let to = Due { at: later(3_000), kind: DueKind::Recheck, shard: SHARD };
    world.moved_to(&hinted, to).await?;
    let taken = world.turned(&hinted, running()).await?;
    assert_eq!(world.found(&taken).await?, Execution { due: Some(to), ..taken.clone() });

    // The same instant with another kind than the one decided on: only half of it differs.
    let place = hinted.due.map(|due| Due { kind: DueKind::Instant, ..due });
    let after = Execution { due: place, ..world.next_version(&taken) };
    world.update(&taken, &after).await?;
    assert_eq!(world.found(&after).await?, after);
    Ok(())
}

pub(crate) async fn of_changes_of_an_execution_at_once_one_wins(world: World) -> Result<(), StoreError> {
    let pending = world.started("race").await?;
    let tries = (0..16).map(|_| world.turned(&pending, running()));
    let (mut winners, mut losers) = (Vec::new(), 0);
    for result in join_all(tries).await {
        match result {
            Ok(execution) => winners.push(execution),
            Err(StoreError::Conflict { .. }) => losers += 1,
            Err(error) => return Err(error),
        }
    }
    assert_eq!((winners.len(), losers), (1, 15));
    assert_eq!(world.found(&pending).await?, winners[0]);
    Ok(())
}

pub(crate) async fn an_execution_and_other_records_are_written_together_or_not_at_all(
    world: World,
) -> Result<(), StoreError> {
    let pending = world.started("together").await?;
    let record = QueueRecord { version: 1, ..QueueRecord::new(queue("mail"), world.nonce()) };
    let stale = Execution { version: 9, ..pending.clone() };
    let put = Write::put(record.clone(), Condition::Follows);
    let other = world.started("other").await?;
    let refused = [put.clone(), updating(&stale, &world.next_version(&stale)), wake(&other)];
    assert_eq!(conflicting(world.store.commit(&refused).await), Some(pending.clone()));
    assert_eq!(world.store.queue(&record.name).await?, None);
    assert_eq!(world.found(&other).await?, other);

    let after = Execution { nonce: record.nonce, ..world.next_version(&pending) };
    let writes = [wake(&other), put, updating(&pending, &after)];
    world.store.commit(&writes).await?;
    world.store.commit(&writes).await?;
    assert_eq!(world.found(&after).await?, after);
    assert_eq!(world.store.queue(&record.name).await?, Some(record));
    assert!(world.found(&other).await?.wakes >= 1);
    assert_eq!(after.created_at, NOW);
    Ok(())
}
