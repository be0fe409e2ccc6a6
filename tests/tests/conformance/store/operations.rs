//! Operations on many records: their versions follow each other, they are due until their end, and the latest is listed
//! first.

use tickover_core::decision::{Condition, Write};
use tickover_core::id::{Fingerprint, OperationId, RecordId};
use tickover_core::operation::{Action, Counts, HowEnded, NewOperation, Operation, Target};
use tickover_core::payload::{BlobRef, Payload};
use tickover_core::time::Timestamp;

use super::fixture::{NOW, SHARD, World, conflicting, json, later, parsed, present};
use tickover_service::ports::{DueRange, StoreError};

fn name(text: &str) -> OperationId {
    parsed(OperationId::parse(text))
}

fn started(world: &World, id: &str, now: Timestamp) -> Operation {
    let new = NewOperation {
        id: name(id),
        fingerprint: Fingerprint::from_bytes([7; 16]),
        action: Action::SendEvent,
        target: Target::Executions,
        dry_run: true,
        details: Payload::Inline(json(r#"{"a":1.50}"#)),
        by: None,
    };
    Operation::new(new, None, world.nonce(), now, 1)
}

/// The next version of a record.
fn next(world: &World, changed: Operation) -> Operation {
    Operation { version: changed.version + 1, nonce: world.nonce(), ..changed }
}

fn put(record: &Operation) -> [Write; 1] {
    [Write::put(record.clone(), Condition::Follows)]
}

/// A page of which some records were refused.
fn page(world: &World, of: &Operation, cursor: Option<&str>, now: Timestamp) -> Operation {
    let refused = [("already_terminal".to_owned(), 3), ("not_found".to_owned(), 1)].into();
    let counts = Counts { matched: 100, changed: 90, unchanged: 7, refused };
    let noted = of.note_page(of.pages, counts, cursor.map(str::to_owned), now);
    next(world, present(noted))
}

pub(super) async fn every_change_of_an_operation_is_read_as_it_was_written(
    world: World,
) -> Result<(), StoreError> {
    let first = started(&world, "o", NOW);
    assert_eq!(world.store.operation(&first.id).await?, None);
    let second = page(&world, &first, Some("{\"a\":\"ä/#\"}"), later(61));
    let last = page(&world, &second, None, later(62));
    let at = BlobRef { id: world.blob_id(), bytes: 7_000, expires_at: later(9_000) };
    let other = Operation { details: Payload::Blob(at), dry_run: false, ..started(&world, "p", NOW) };
    let how = HowEnded::Failed { message: "a \"payload\" is missing".to_owned() };
    let failed = next(&world, present(other.ended(how, later(1))));
    for record in [first, second, last, other, failed] {
        world.store.commit(&put(&record)).await?;
        assert_eq!(world.store.operation(&record.id).await?, Some(record));
    }
    Ok(())
}

pub(super) async fn an_operations_versions_follow_each_other(world: World) -> Result<(), StoreError> {
    let first = started(&world, "o", NOW);
    let rival = started(&world, "o", NOW);
    world.store.commit(&put(&first)).await?;
    // The same write again: its answer was lost.
    world.store.commit(&put(&first)).await?;
    assert_eq!(conflicting(world.store.commit(&put(&rival)).await), None);
    let second = page(&world, &first, Some("x"), later(1));
    world.store.commit(&put(&second)).await?;
    world.store.commit(&put(&second)).await?;
    // Another process decided on the same record, or on one that has changed since.
    let stopped = next(&world, present(first.ended(HowEnded::Stopped, later(1))));
    let skipping = Operation { version: 4, ..stopped.clone() };
    for refused in [&first, &stopped, &skipping] {
        assert_eq!(conflicting(world.store.commit(&put(refused)).await), None);
    }
    assert_eq!(world.store.operation(&second.id).await?, Some(second));
    Ok(())
}

pub(super) async fn an_operation_is_due_until_its_end(world: World) -> Result<(), StoreError> {
    let task = world.scheduled("o").await?;
    let first = started(&world, "o", NOW);
    let moved = page(&world, &first, Some("x"), later(100));
    assert!(moved.due.map(|due| due.at) > first.due.map(|due| due.at));
    let ended = next(&world, present(moved.ended(HowEnded::Stopped, later(101))));
    let range = DueRange::until(SHARD, later(86_400));
    for record in [first, moved, ended] {
        world.store.commit(&put(&record)).await?;
        let mut entries = world.store.due(range, 10, None).await?.items;
        entries.retain(|entry| entry.record != RecordId::Task(task.id.clone()));
        let found: Vec<_> =
            entries.into_iter().map(|entry| (entry.record, entry.due_at, entry.kind)).collect();
        let due = record.due.map(|due| (RecordId::Operation(record.id.clone()), due.at, due.kind));
        assert_eq!(found, due.into_iter().collect::<Vec<_>>());
    }
    Ok(())
}

pub(super) async fn operations_are_listed_the_latest_first(world: World) -> Result<(), StoreError> {
    world.scheduled("a").await?;
    assert_eq!(world.store.operations(3, None).await?.items, []);
    let mut all = Vec::new();
    for (seconds, id) in [(0, "c"), (10, "a"), (20, "d"), (30, "b"), (30, "e")] {
        let record = started(&world, id, later(seconds));
        world.store.commit(&put(&record)).await?;
        all.insert(0, record);
    }
    // Its place stays the same.
    all[2] = next(&world, present(all[2].ended(HowEnded::Completed, later(40))));
    world.store.commit(&put(&all[2])).await?;
    for limit in [1, 2, 3, 10] {
        let (mut found, mut cursor) = (Vec::new(), None);
        loop {
            let page = world.store.operations(limit, cursor.as_deref()).await?;
            assert!(page.items.len() <= limit);
            found.extend(page.items);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(found, all, "{limit} a page");
    }
    assert!(matches!(world.store.operations(3, Some("x")).await, Err(StoreError::BadCursor)));
    Ok(())
}
