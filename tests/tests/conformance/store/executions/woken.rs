//! Wakes: many callers may wake an execution at once, without a decision.

use futures::future::try_join_all;
use tickover_core::decision::{Condition, Write};
use tickover_core::execution::{Execution, ExecutionState};

use super::fixture::{closed, conflicting, execution_id, running, waiting, wake};
use crate::store::fixture::{NOW, World};
use tickover_service::ports::StoreError;

/// The write that suspends it if it has been woken exactly so often.
fn sleep(world: &World, before: &Execution, seen: u64) -> (Execution, [Write; 1]) {
    let after = Execution { state: waiting(seen), ..world.next_version(before) };
    let condition = Condition::Unchanged { due_no_later_than: None, wakes: Some(seen) };
    (after.clone(), [Write::replace(before.clone(), after, condition)])
}

pub(crate) async fn a_wake_changes_the_count_and_nothing_else(world: World) -> Result<(), StoreError> {
    let full = world.start(world.full_execution("full")).await?;
    world.store.commit(&[wake(&full)]).await?;
    assert_eq!(world.found(&full).await?, Execution { wakes: full.wakes + 1, ..full.clone() });

    // A wake counts on any later version, while the execution runs or waits.
    let mut current = world.started("any").await?;
    for (number, state) in [running(), waiting(0)].into_iter().enumerate() {
        current = world.turned(&current, state).await?;
        world.store.commit(&[wake(&current)]).await?;
        assert_eq!(world.found(&current).await?.wakes, number as u64 + 1);
    }
    Ok(())
}

pub(crate) async fn wakes_at_once_all_count(world: World) -> Result<(), StoreError> {
    let execution = world.started("many").await?;
    let writes = [wake(&execution)];
    try_join_all((0..16).map(|_| world.store.commit(&writes))).await?;
    assert_eq!(world.found(&execution).await?.wakes, 16);
    Ok(())
}

pub(crate) async fn decisions_leave_the_count_of_wakes(world: World) -> Result<(), StoreError> {
    let pending = world.started("counted").await?;
    world.store.commit(&[wake(&pending)]).await?;
    let after = Execution { wakes: 7, ..world.next_version(&pending) };
    world.update(&pending, &after).await?;
    assert_eq!(world.found(&after).await?, Execution { wakes: 1, ..after });
    Ok(())
}

pub(crate) async fn an_execution_with_an_unseen_wake_is_not_suspended(
    world: World,
) -> Result<(), StoreError> {
    let taken = world.turned(&world.started("woken").await?, running()).await?;
    world.store.commit(&[wake(&taken)]).await?;
    let woken = Execution { wakes: 1, ..taken.clone() };
    assert_eq!(conflicting(world.store.commit(&sleep(&world, &taken, 0).1).await), Some(woken.clone()));
    assert_eq!(conflicting(world.store.commit(&sleep(&world, &taken, 2).1).await), Some(woken.clone()));
    let (asleep, writes) = sleep(&world, &woken, 1);
    world.store.commit(&writes).await?;
    assert_eq!(world.found(&asleep).await?, asleep);
    // Woken after it was suspended: the same write again still counts as done.
    world.store.commit(&[wake(&asleep)]).await?;
    world.store.commit(&writes).await?;
    assert_eq!(world.found(&asleep).await?, Execution { wakes: 2, ..asleep });
    Ok(())
}

pub(crate) async fn a_closed_deleted_or_different_execution_is_not_woken(
    world: World,
) -> Result<(), StoreError> {
    let nobody = world.execution("nobody");
    world.store.commit(&[wake(&nobody)]).await?;
    assert_eq!(world.store.execution(&execution_id("nobody")).await?, None);

    let open = world.started("name").await?;
    let stranger = Write::Wake { id: open.id.clone(), incarnation: world.incarnation() };
    world.store.commit(&[stranger]).await?;
    assert_eq!(world.found(&open).await?, open);

    let closing = world.turned(&open, ExecutionState::Closing(closed())).await?;
    world.store.commit(&[wake(&closing)]).await?;
    assert_eq!(world.found(&closing).await?, closing);
    let ended = world.ended(&closing).await?;
    world.store.commit(&[wake(&ended)]).await?;
    assert_eq!(world.found(&ended).await?, ended);

    // A restart opens it again.
    let again = Execution { state: open.state.clone(), due: open.due, run: 2, ..world.next_version(&ended) };
    world.update(&ended, &again).await?;
    world.store.commit(&[wake(&again)]).await?;
    assert_eq!(world.found(&again).await?, Execution { wakes: 1, ..again });
    assert_eq!(ended.run_started_at, NOW);
    Ok(())
}
