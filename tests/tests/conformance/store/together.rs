//! Several writes of one decision: all of them or none.

use tickover_core::decision::{Condition, Write};
use tickover_core::due::{Due, DueKind};
use tickover_core::id::Fingerprint;
use tickover_core::queue::{KeyRecord, QueueRecord};
use tickover_core::task::command::{Command, Key, Schedule};

use super::fixture::{NOW, SHARD, World, conflicting, id, later, present, queue};
use tickover_service::ports::StoreError;

const DIGEST: Fingerprint = Fingerprint::from_bytes([3; 16]);

fn keyed(world: &World, task: &str, replaces: Option<KeyRecord>) -> Command {
    let key = Some(Key { digest: DIGEST, replaces });
    Command::Schedule(Box::new(Schedule { key, ..world.request(task) }))
}

pub(super) async fn a_key_and_its_task_are_written_together(world: World) -> Result<(), StoreError> {
    assert_eq!(world.store.key(&DIGEST).await?, None);
    let decision = world.decide(None, &keyed(&world, "keyed", None), NOW);
    assert_eq!(decision.writes.len(), 2);
    let task = world.carry_out(decision).await?;
    assert_eq!(world.stored(&task).await?, task);
    let record = present(world.store.key(&DIGEST).await?);
    assert_eq!((record.owner, record.incarnation), (task.id.into(), task.incarnation));
    assert_eq!((record.nonce, record.created_at), (task.nonce, NOW));
    assert_eq!(Some(record.expires_at), task.key.map(|key| key.expires_at));
    Ok(())
}

pub(super) async fn a_key_in_use_keeps_its_task_from_being_written(world: World) -> Result<(), StoreError> {
    world.carry_out(world.decide(None, &keyed(&world, "first", None), NOW)).await?;
    let record = present(world.store.key(&DIGEST).await?);
    let second = world.carry_out(world.decide(None, &keyed(&world, "second", None), NOW)).await;
    assert_eq!(conflicting(second), None);
    assert_eq!(world.store.task(&id("second")).await?, None);
    assert_eq!(world.store.key(&DIGEST).await?, Some(record.clone()));

    let third = keyed(&world, "third", Some(record));
    world.carry_out(world.decide(None, &third, NOW)).await?;
    assert_eq!(present(world.store.key(&DIGEST).await?).owner, id("third").into());
    Ok(())
}

pub(super) async fn a_task_in_use_keeps_its_key_from_being_written(world: World) -> Result<(), StoreError> {
    let first = world.scheduled("taken").await?;
    let second = world.carry_out(world.decide(None, &keyed(&world, "taken", None), NOW)).await;
    assert_eq!(conflicting(second), Some(first));
    assert_eq!(world.store.key(&DIGEST).await?, None);
    Ok(())
}

pub(super) async fn writing_both_again_counts_as_done_even_when_the_task_has_moved_on(
    world: World,
) -> Result<(), StoreError> {
    let decision = world.decide(None, &keyed(&world, "keyed", None), NOW);
    let task = world.carry_out(decision.clone()).await?;
    world.carry_out(decision.clone()).await?;
    let running = world.drive(&task, &world.claim(), NOW).await?;
    world.carry_out(decision).await?;
    assert_eq!(world.stored(&running).await?, running);
    Ok(())
}

pub(super) async fn an_equal_due_slot_does_not_prove_the_other_writes(
    world: World,
) -> Result<(), StoreError> {
    let hinted = world.scheduled("moved").await?;
    let to = Due { at: later(5), kind: DueKind::Recheck, shard: SHARD };
    let moved = world.moved(&hinted, to).await?;
    let record = QueueRecord { version: 1, ..QueueRecord::new(queue("mail"), world.nonce()) };
    let writes = [Write::Rearm { record: hinted.into(), to }, Write::put(record, Condition::Follows)];
    assert_eq!(conflicting(world.store.commit(&writes).await), Some(moved));
    assert_eq!(world.store.queue(&queue("mail")).await?, None);
    Ok(())
}
