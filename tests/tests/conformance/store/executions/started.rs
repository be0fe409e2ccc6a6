//! New executions: once, twice, and after an earlier one of the same id.

use tickover_core::decision::{Condition, Write};
use tickover_core::due::{Due, DueKind};
use tickover_core::duration::Millis;
use tickover_core::execution::{Execution, ExecutionState, fixture};

use super::fixture::{closed, conflicting, execution_id};
use crate::store::fixture::{NOW, SHARD, World, later};
use tickover_service::ports::StoreError;

pub(crate) async fn a_new_execution_is_read_as_it_was_written(world: World) -> Result<(), StoreError> {
    assert_eq!(world.store.execution(&execution_id("plain")).await?, None);
    for execution in [world.execution("plain"), world.full_execution("full")] {
        let written = world.start(execution).await?;
        assert_eq!(world.found(&written).await?, written);
    }
    for (number, state) in fixture::every_state(NOW).into_iter().enumerate() {
        let is_open = !matches!(state, ExecutionState::Ended(_));
        let due = is_open.then_some(Due { at: later(60), kind: DueKind::Instant, shard: SHARD });
        let written = Execution { state, due, ..world.full_execution(&format!("state-{number}")) };
        let written = world.start(written).await?;
        assert_eq!(world.found(&written).await?, written);
    }
    Ok(())
}

pub(crate) async fn an_id_in_use_conflicts_with_its_execution(world: World) -> Result<(), StoreError> {
    let first = world.start(world.full_execution("twice")).await?;
    assert_eq!(conflicting(world.started("twice").await), Some(first.clone()));
    assert_eq!(world.found(&first).await?, first);
    Ok(())
}

pub(crate) async fn starting_again_by_the_same_decision_counts_as_done(
    world: World,
) -> Result<(), StoreError> {
    let written = world.started("again").await?;
    world.start(written.clone()).await?;
    assert_eq!(world.found(&written).await?, written);
    Ok(())
}

pub(crate) async fn an_executions_id_is_free_at_the_very_end_of_retention(
    world: World,
) -> Result<(), StoreError> {
    let old = world.started("reused").await?;
    let closing = world.turned(&old, ExecutionState::Closing(closed())).await?;
    let end = closed().expires_at;
    let new = world.execution("reused");
    let at = |now| [Write::put(new.clone(), Condition::Free { now })];
    // A closing execution still exists, however late it is.
    assert_eq!(conflicting(world.store.commit(&at(later(999_999))).await), Some(closing.clone()));

    let old = world.ended(&closing).await?;
    let too_early = world.store.commit(&at(end.minus(Millis::new(1)))).await;
    assert_eq!(conflicting(too_early), Some(old));
    // The very millisecond, not the next whole second.
    world.store.commit(&at(end)).await?;
    assert_eq!(world.found(&new).await?, new);
    Ok(())
}

pub(crate) async fn a_task_and_an_execution_of_one_id_are_two_records(
    world: World,
) -> Result<(), StoreError> {
    let task = world.scheduled("both").await?;
    let execution = world.started("both").await?;
    assert_eq!(world.stored(&task).await?, task);
    let running = world.drive(&task, &world.claim(), NOW).await?;
    let after = world.next_version(&execution);
    world.update(&execution, &after).await?;
    assert_eq!(world.stored(&running).await?, running);
    assert_eq!(world.found(&after).await?, after);
    Ok(())
}
