//! The tick changes a record's due slot, and nothing else.

use tickover_core::due::{Due, DueKind};
use tickover_core::task::Task;

use super::fixture::{NOW, SHARD, World, conflicting, later};
use tickover_service::ports::{DueRange, StoreError};

const TO: Due = Due { at: NOW, kind: DueKind::Recheck, shard: SHARD };

pub(super) async fn moving_a_due_slot_changes_nothing_else(world: World) -> Result<(), StoreError> {
    let hinted = world.scheduled("moved").await?;
    let moved = world.moved(&hinted, TO).await?;
    assert_eq!((moved.version, moved.nonce), (hinted.version, hinted.nonce));
    assert_eq!(world.stored(&moved).await?, moved);
    let due = world.store.due(DueRange::until(SHARD, TO.at), 10, None).await?;
    let found = due.items.into_iter().map(|entry| (entry.record, entry.due_at, entry.kind));
    assert_eq!(found.collect::<Vec<_>>(), [(hinted.id.clone().into(), TO.at, TO.kind)]);

    // The hint that was sent before is still valid.
    world.drive(&hinted, &world.claim(), NOW).await?;
    Ok(())
}

pub(super) async fn moving_a_due_slot_again_counts_as_done(world: World) -> Result<(), StoreError> {
    let hinted = world.scheduled("again").await?;
    let moved = world.moved(&hinted, TO).await?;
    world.moved(&hinted, TO).await?;
    assert_eq!(world.stored(&moved).await?, moved);
    Ok(())
}

pub(super) async fn a_due_slot_that_has_moved_conflicts(world: World) -> Result<(), StoreError> {
    let hinted = world.scheduled("raced").await?;
    let first = Due { at: later(3_000), ..TO };
    let moved = world.moved(&hinted, first).await?;
    assert_eq!(conflicting(world.moved(&hinted, TO).await), Some(moved.clone()));
    // The same instant with another kind is another due slot.
    let mistaken = Task { due: Some(Due { kind: DueKind::Start, ..first }), ..moved.clone() };
    assert_eq!(conflicting(world.moved(&mistaken, TO).await), Some(moved));
    Ok(())
}

pub(super) async fn a_record_with_a_later_decision_keeps_its_due_slot(
    world: World,
) -> Result<(), StoreError> {
    let hinted = world.scheduled("decided").await?;
    // A claim without a timeout keeps the due slot.
    let claimed = world.drive(&hinted, &world.claim(), NOW).await?;
    assert_eq!(claimed.due, hinted.due);
    assert_eq!(conflicting(world.moved(&hinted, TO).await), Some(claimed.clone()));
    assert_eq!(world.stored(&claimed).await?, claimed);
    Ok(())
}

pub(super) async fn a_record_that_has_ended_gets_no_due_slot(world: World) -> Result<(), StoreError> {
    let running = world.claimed("ended").await?;
    let ended = world.drive(&running, &world.complete(&running, "1"), NOW).await?;
    assert_eq!(conflicting(world.moved(&running, TO).await), Some(ended.clone()));
    assert_eq!(world.stored(&ended).await?, ended);
    assert_eq!(world.store.due(DueRange::until(SHARD, later(9_999)), 10, None).await?.items, []);
    Ok(())
}
