//! The tick changes an execution's due slot, and nothing else.

use tickover_core::decision::Write;
use tickover_core::due::{Due, DueKind};
use tickover_core::execution::Execution;

use super::fixture::{conflicting, running};
use crate::store::fixture::{NOW, SHARD, World, later};
use tickover_service::ports::{DueRange, StoreError};

const TO: Due = Due { at: NOW, kind: DueKind::Recheck, shard: SHARD };

impl World {
    /// Changes the due slot, as a tick does.
    pub(super) async fn moved_to(&self, execution: &Execution, to: Due) -> Result<Execution, StoreError> {
        self.store.commit(&[Write::Rearm { record: execution.clone().into(), to }]).await?;
        Ok(Execution { due: Some(to), ..execution.clone() })
    }
}

pub(crate) async fn moving_an_executions_due_slot_changes_nothing_else(
    world: World,
) -> Result<(), StoreError> {
    let hinted = world.start(world.full_execution("moved")).await?;
    let moved = world.moved_to(&hinted, TO).await?;
    assert_eq!(world.found(&moved).await?, moved);
    world.moved_to(&hinted, TO).await?;
    assert_eq!(world.found(&moved).await?, moved);
    let due = world.store.due(DueRange::until(SHARD, TO.at), 10, None).await?;
    let found = due.items.into_iter().map(|entry| (entry.record, entry.due_at, entry.kind));
    assert_eq!(found.collect::<Vec<_>>(), [(hinted.id.clone().into(), TO.at, TO.kind)]);
    // The decision was on the record as it was before, and its condition still holds.
    world.turned(&hinted, running()).await?;
    Ok(())
}

pub(crate) async fn an_executions_due_slot_that_has_moved_conflicts(world: World) -> Result<(), StoreError> {
    let hinted = world.started("raced").await?;
    let first = Due { at: later(3_000), ..TO };
    let moved = world.moved_to(&hinted, first).await?;
    assert_eq!(conflicting(world.moved_to(&hinted, TO).await), Some(moved.clone()));
    // The same instant with another kind is another due slot.
    let mistaken = Execution { due: Some(Due { kind: DueKind::Start, ..first }), ..moved.clone() };
    assert_eq!(conflicting(world.moved_to(&mistaken, TO).await), Some(moved));
    Ok(())
}

pub(crate) async fn an_execution_with_a_later_decision_keeps_its_due_slot(
    world: World,
) -> Result<(), StoreError> {
    let hinted = world.started("decided").await?;
    let taken = world.turned(&hinted, running()).await?;
    assert_eq!(conflicting(world.moved_to(&hinted, TO).await), Some(taken.clone()));
    let ended = world.ended(&taken).await?;
    assert_eq!(conflicting(world.moved_to(&taken, TO).await), Some(ended.clone()));
    assert_eq!(world.found(&ended).await?, ended);
    assert_eq!(world.store.due(DueRange::until(SHARD, later(9_999)), 10, None).await?.items, []);
    Ok(())
}
