//! Items that belong to tasks: payloads, queues, idempotency keys; and reading many at once.

use tickover_core::decision::{Condition, Expiring, Write};
use tickover_core::due::Due;
use tickover_core::duration::Millis;
use tickover_core::flow::Priority;
use tickover_core::id::{BlobId, Capability, Fingerprint, Incarnation, RecordId, TaskKind, WorkflowName};
use tickover_core::kind::{KindDefaults, Policies};
use tickover_core::payload::BlobRef;
use tickover_core::queue::{KeyRecord, Mark, QueueRecord};
use tickover_core::retry::RetryPolicy;
use tickover_core::tick::TickRecord;
use tickover_core::time::Timestamp;

use super::fixture::{NOW, World, conflicting, id, json, later, present, queue};
use tickover_service::ports::{DueEntry, DueRange, StoreError};

const DIGEST: Fingerprint = Fingerprint::from_bytes([5; 16]);

pub(super) async fn many_tasks_are_read_at_once_without_the_absent_ones(
    world: World,
) -> Result<(), StoreError> {
    let mut written = Vec::new();
    for number in 0..60 {
        written.push(world.scheduled(&format!("task-{number:02}")).await?);
    }
    let mut wanted: Vec<_> = (0..98).map(|number| id(&format!("task-{number:02}"))).collect();
    wanted.push(id("task-00"));
    wanted.push(id("task-99"));
    let mut read = world.store.tasks(&wanted).await?;
    read.sort_by(|one, other| one.id.cmp(&other.id));
    assert_eq!(read, written);
    assert_eq!(world.store.tasks(&[]).await?, []);
    Ok(())
}

fn blob_at(id: BlobId, bytes: usize) -> BlobRef {
    BlobRef { id, bytes: u32::try_from(bytes).unwrap_or(u32::MAX), expires_at: later(3_600) }
}

pub(super) async fn a_large_payload_is_read_as_it_was_written(world: World) -> Result<(), StoreError> {
    let large = json(&format!("\"{}\"", "é\\n".repeat(350 * 1024 / 4 - 1)));
    let (one, other) = (blob_at(world.blob_id(), large.len()), blob_at(world.blob_id(), 4));
    assert_eq!(world.store.blob(&one.id).await?, None);
    world.store.put_blob(&one, &large).await?;
    world.store.put_blob(&one, &large).await?;
    world.store.put_blob(&other, &json(" 1.0")).await?;
    assert_eq!(world.store.blob(&one.id).await?, Some(large));
    assert_eq!(world.store.blob(&other.id).await?, Some(json(" 1.0")));
    Ok(())
}

pub(super) async fn the_expiry_of_a_payload_is_extended_unless_it_is_deleted(
    world: World,
) -> Result<(), StoreError> {
    let (there, gone) = (blob_at(world.blob_id(), 1), blob_at(world.blob_id(), 1));
    world.store.put_blob(&there, &json("1")).await?;
    let until = later(7_200);
    let extend = |at: &BlobRef| Write::Extend { item: Expiring::Blob(at.id), expires_at: until };
    let record = QueueRecord { version: 1, ..QueueRecord::new(queue("mail"), world.nonce()) };
    let rest = Write::put(record.clone(), Condition::Follows);
    // A payload that is deleted can't be extended, but the record that it belonged to must stay writable.
    world.store.commit(&[extend(&there), extend(&gone), rest]).await?;
    assert_eq!(world.store.blob(&there.id).await?, Some(json("1")));
    assert_eq!(world.store.blob(&gone.id).await?, None);
    assert_eq!(world.store.queue(&record.name).await?, Some(record));
    Ok(())
}

pub(super) async fn a_queues_versions_follow_each_other(world: World) -> Result<(), StoreError> {
    let name = queue("mail");
    assert_eq!(world.store.queue(&name).await?, None);
    let put = |record: &QueueRecord| [Write::put(record.clone(), Condition::Follows)];
    let first = QueueRecord { version: 1, ..QueueRecord::new(name.clone(), world.nonce()) };
    world.store.commit(&put(&first)).await?;
    world.store.commit(&put(&first)).await?;
    assert_eq!(world.store.queue(&name).await?, Some(first.clone()));

    let rival = QueueRecord { nonce: world.nonce(), paused: true, ..first.clone() };
    assert_eq!(conflicting(world.store.commit(&put(&rival)).await), None);
    let nonce = world.nonce();
    let workflows = WorkflowName::parse("orders").into_iter().collect::<Vec<_>>();
    assert_eq!(workflows.len(), 1);
    let named = first.with_workflows(&workflows, NOW);
    let named = named.with_provided(&Capability::parse("gpu").into_iter().collect::<Vec<_>>(), NOW);
    let policies = Policies { retry: RetryPolicy::fixed(2, Millis::from_secs(3)), ..Policies::default() };
    let defaults = KindDefaults { given: json(r#"{"retry":"fixed(2, 3s)"}"#), policies, by: None };
    let kinds = TaskKind::parse("send").map(|kind| (kind, defaults)).into_iter().collect();
    let marks = [(Priority::Low, Mark { arrived: NOW, noted_at: NOW })].into();
    let second = QueueRecord { version: 2, nonce, paused: true, parked: true, marks, kinds, ..named };
    assert_eq!((second.provides.len(), second.kinds.len(), second.marks.len()), (1, 1, 1));
    world.store.commit(&put(&second)).await?;
    let rival = QueueRecord { nonce: world.nonce(), ..second.clone() };
    assert_eq!(conflicting(world.store.commit(&put(&rival)).await), None);
    let skipping = QueueRecord { version: 4, nonce: world.nonce(), ..second.clone() };
    assert_eq!(conflicting(world.store.commit(&put(&skipping)).await), None);
    assert_eq!(world.store.queue(&name).await?, Some(second));
    Ok(())
}

pub(super) async fn a_queue_is_in_the_due_index_while_it_has_walks_left(
    world: World,
) -> Result<(), StoreError> {
    let blank = QueueRecord::new(queue("mail"), world.nonce());
    let paused = QueueRecord { version: 1, paused: true, parked: true, ..blank };
    let next =
        |record: QueueRecord| QueueRecord { version: record.version + 1, nonce: world.nonce(), ..record };
    let resumed = paused.resume(NOW, 2).map(next).unwrap_or(paused.clone());
    let halfway = resumed.note_walk(NOW, 1, Some(NOW), NOW).map(next).unwrap_or(paused.clone());
    let one_left = halfway.finish_walk(NOW, 0).map(next).unwrap_or(paused.clone());
    let done = one_left.finish_walk(NOW, 1).map(next).unwrap_or(paused.clone());
    for record in [paused, resumed, halfway, one_left, done] {
        world.store.commit(&[Write::put(record.clone(), Condition::Follows)]).await?;
        assert_eq!(world.store.queue(&record.name).await?, Some(record.clone()));
        let mut found = Vec::new();
        for shard in 0..2 {
            let range = DueRange::until(shard, Timestamp::from_millis(i64::MAX));
            found.extend(world.store.due(range, 10, None).await?.items);
        }
        let entry = |due: Due| DueEntry {
            record: RecordId::Queue(record.name.clone()),
            due_at: due.at,
            kind: due.kind,
            sleeper: None,
        };
        assert_eq!(found, record.due().map(entry).into_iter().collect::<Vec<_>>());
    }
    Ok(())
}

pub(super) async fn the_versions_of_the_ticks_record_follow_each_other(
    world: World,
) -> Result<(), StoreError> {
    assert_eq!(world.store.tick_record().await?, None);
    let put = |record: &TickRecord| [Write::put(record.clone(), Condition::Follows)];
    let next = |record: &TickRecord, shards: &[u16]| TickRecord {
        version: record.version + 1,
        nonce: world.nonce(),
        fanned: shards.iter().map(|shard| (*shard, NOW)).collect(),
        ..record.after(later(60), shards.iter().map(|shard| (*shard, later(30))).collect())
    };
    let first = next(&TickRecord::new(world.nonce()), &[]);
    world.store.commit(&put(&first)).await?;
    world.store.commit(&put(&first)).await?;
    assert_eq!(world.store.tick_record().await?, Some(first.clone()));

    let rival = TickRecord { nonce: world.nonce(), ..first.clone() };
    assert_eq!(conflicting(world.store.commit(&put(&rival)).await), None);
    let second = next(&first, &[3, 15]);
    world.store.commit(&put(&second)).await?;
    let skipping = TickRecord { version: 4, nonce: world.nonce(), ..second.clone() };
    assert_eq!(conflicting(world.store.commit(&put(&skipping)).await), None);
    assert_eq!(world.store.tick_record().await?, Some(second));
    Ok(())
}

pub(super) async fn queues_are_listed_by_name(world: World) -> Result<(), StoreError> {
    assert_eq!(world.store.queues().await?, []);
    let mut records = Vec::new();
    for name in ["sms", "mail", "a.b:c"] {
        let record = QueueRecord { version: 1, ..QueueRecord::new(queue(name), world.nonce()) };
        world.store.commit(&[Write::put(record.clone(), Condition::Follows)]).await?;
        records.push(record);
    }
    records.sort_by(|one, other| one.name.cmp(&other.name));
    assert_eq!(world.store.queues().await?, records);
    Ok(())
}

fn key_of(world: &World, task: &str) -> KeyRecord {
    KeyRecord {
        key: DIGEST,
        owner: id(task).into(),
        incarnation: Incarnation::from_bytes([8; 8]),
        created_at: NOW,
        nonce: world.nonce(),
        expires_at: later(86_400),
    }
}

pub(super) async fn a_key_is_replaced_only_if_its_record_is_unchanged(
    world: World,
) -> Result<(), StoreError> {
    let [first, second, third] = ["first", "second", "third"].map(|task| key_of(&world, task));
    let put = |record: &KeyRecord, replaces: Option<&KeyRecord>| {
        let before = replaces.cloned().map(Into::into);
        [Write::Put { before, after: record.clone().into(), condition: Condition::SameOrAbsent }]
    };
    // The record that was read may have been deleted since.
    world.store.commit(&put(&first, Some(&third))).await?;
    assert_eq!(world.store.key(&DIGEST).await?, Some(first.clone()));
    assert_eq!(conflicting(world.store.commit(&put(&second, None)).await), None);
    world.store.commit(&put(&second, Some(&first))).await?;
    world.store.commit(&put(&second, Some(&first))).await?;
    assert_eq!(conflicting(world.store.commit(&put(&third, Some(&first))).await), None);
    assert_eq!(world.store.key(&DIGEST).await?, Some(second));
    Ok(())
}

pub(super) async fn the_expiry_of_a_key_is_extended(world: World) -> Result<(), StoreError> {
    let record = key_of(&world, "task");
    let expires_at = record.expires_at.plus(Millis::new(1));
    let extend = [Write::Extend { item: Expiring::Key(DIGEST), expires_at }];
    world.store.commit(&extend).await?;
    assert_eq!(world.store.key(&DIGEST).await?, None);
    world.store.commit(&[Write::put(record.clone(), Condition::SameOrAbsent)]).await?;
    world.store.commit(&extend).await?;
    assert_eq!(present(world.store.key(&DIGEST).await?), KeyRecord { expires_at, ..record });
    Ok(())
}
