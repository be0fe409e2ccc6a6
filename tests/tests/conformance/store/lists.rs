//! Reads of the indexes.

use tickover_core::decision::{Condition, Write};
use tickover_core::due::{Due, DueKind};
use tickover_core::id::{RecordId, TaskId};
use tickover_core::queue::QueueRecord;
use tickover_core::task::command::{Command, Schedule};
use tickover_core::time::Timestamp;

use super::fixture::{NOW, SHARD, World, deadline, id, json, later, look, place, present, queue};
use tickover_service::ports::{DueRange, Listing, Page, StoreError};

/// More pages than any case fills: a wrong cursor causes a failure, not an endless loop.
const PAGES_MAX: usize = 200;

const LISTINGS: [Listing; 3] = [Listing::Live { shard: SHARD }, Listing::Dead, Listing::All];

impl World {
    /// The whole list, page by page. Pages may be short, and the last may be empty.
    async fn listed(&self, listing: Listing, limit: usize) -> Result<Vec<TaskId>, StoreError> {
        let (mut all, mut cursor) = (Vec::new(), None);
        for _ in 0..PAGES_MAX {
            let page = self.store.list(listing, limit, cursor.as_deref()).await?;
            assert!(page.items.len() <= limit);
            all.extend(page.items);
            cursor = page.next;
            if cursor.is_none() {
                return Ok(all);
            }
        }
        panic!("the pages of {listing:?} have no end");
    }

    /// Moves a live task in the due index, or has a dead one retried and failed again.
    async fn changed_for_a_while(
        &self,
        id: &TaskId,
        listing: Listing,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let task = present(self.store.task(id).await?);
        if listing == Listing::Dead {
            let pending = self.drive(&task, &Command::Retry(None), now).await?;
            let running = self.drive(&pending, &self.claim(), now).await?;
            self.drive(&running, &self.fail(&running, false), now).await?;
        } else {
            let due = place(&task);
            let at = if due.at < later(25) { later(45) } else { later(5) };
            self.moved(&task, Due { at, ..due }).await?;
        }
        Ok(())
    }

    async fn all_due(&self, until: Timestamp) -> Result<Vec<RecordId>, StoreError> {
        let Page { items, .. } = self.store.due(DueRange::until(SHARD, until), 100, None).await?;
        Ok(items.into_iter().map(|entry| entry.record).collect())
    }
}

fn ids<const N: usize>(names: [&str; N]) -> Vec<TaskId> {
    names.into_iter().map(id).collect()
}

fn records<const N: usize>(names: [&str; N]) -> Vec<RecordId> {
    names.into_iter().map(|name| id(name).into()).collect()
}

pub(super) async fn due_entries_come_in_order_and_in_pages(world: World) -> Result<(), StoreError> {
    for secs in [50, 10, 40, 20, 70, 30, 60] {
        let request = Schedule { timeouts: deadline(secs), ..world.request(&format!("at-{secs}")) };
        world.schedule(request).await?;
    }
    let range = DueRange { shard: SHARD, from: later(20), until: later(60) };
    let (mut seen, mut cursor) = (Vec::new(), None);
    for _ in 0..PAGES_MAX {
        let page = world.store.due(range, 2, cursor.as_deref()).await?;
        assert!(page.items.len() <= 2);
        assert!(page.items.iter().all(|entry| entry.kind == DueKind::Armed));
        seen.extend(page.items.into_iter().map(|entry| (entry.record, entry.due_at)));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    let expected = [20, 30, 40, 50, 60].map(|secs| (id(&format!("at-{secs}")).into(), later(secs)));
    assert_eq!(seen, expected);
    assert_eq!(world.store.due(DueRange::until(SHARD + 1, later(99)), 10, None).await?.items, []);
    Ok(())
}

pub(super) async fn records_that_have_ended_are_not_due(world: World) -> Result<(), StoreError> {
    let waiting = world.scheduled("waiting").await?;
    world.completed("completed", NOW).await?;
    world.failed("failed", NOW).await?;
    assert_eq!(world.all_due(place(&waiting).at).await?, records(["waiting"]));
    Ok(())
}

pub(super) async fn failed_and_timed_out_tasks_are_dead_until_revived(
    world: World,
) -> Result<(), StoreError> {
    world.completed("fine", NOW).await?;
    world.failed("first", later(1)).await?;
    let second = world.schedule(Schedule { timeouts: deadline(2), ..world.request("second") }).await?;
    world.drive(&second, &look(), later(2)).await?;
    let third = world.failed("third", later(3)).await?;
    // All were scheduled at one instant.
    assert_eq!(world.listed(Listing::Dead, 2).await?, ids(["third", "second", "first"]));

    let revived = world.drive(&third, &Command::Retry(None), later(4)).await?;
    assert_eq!(world.stored(&revived).await?, revived);
    assert_eq!(world.listed(Listing::Dead, 10).await?, ids(["second", "first"]));
    assert_eq!(world.all_due(place(&revived).at).await?, records(["third"]));
    Ok(())
}

/// A store may spread a list over shards, but it reads as one list: sorted by the instant of scheduling, then by id, in
/// pages as large as asked for.
pub(super) async fn a_long_list_is_one_list_in_pages_of_any_size(world: World) -> Result<(), StoreError> {
    // Many of one instant, and many instants.
    let mut expected = Vec::new();
    for number in 0_u32..180 {
        let secs = u64::from(number.saturating_sub(60));
        let name = format!("dead-{number:03}");
        world.failed_since(&name, later(secs)).await?;
        expected.push((secs, id(&name)));
    }
    expected.sort();
    let expected: Vec<TaskId> = expected.into_iter().rev().map(|(_, id)| id).collect();
    for limit in [7, 100, 1_000] {
        assert_eq!(world.listed(Listing::Dead, limit).await?, expected, "pages of {limit}");
    }
    let first = world.store.list(Listing::Dead, 100, None).await?;
    assert_eq!(first.items.len(), 100);
    // A task that is scheduled and fails meanwhile is listed before the cursor, and shifts nothing after it.
    world.failed_since("dead-later", later(500)).await?;
    let second = world.store.list(Listing::Dead, 100, first.next.as_deref()).await?;
    assert_eq!(second.items, expected[100..]);
    assert_eq!(second.next, None);
    Ok(())
}

pub(super) async fn all_tasks_are_listed_and_nothing_else(world: World) -> Result<(), StoreError> {
    let names: Vec<String> = (10..20).map(|number| format!("task-{number}")).collect();
    for name in &names {
        let input = Some(json(&format!("\"{}\"", "x".repeat(2_000))));
        world.schedule(Schedule { input, ..world.request(name) }).await?;
    }
    world.failed("task-20", NOW).await?;
    let record = QueueRecord { version: 1, ..QueueRecord::new(queue("mail"), world.nonce()) };
    world.store.commit(&[Write::put(record, Condition::Follows)]).await?;

    let mut listed = world.listed(Listing::All, 3).await?;
    listed.sort();
    let expected: Vec<TaskId> = names.iter().map(|name| id(name)).chain([id("task-20")]).collect();
    assert_eq!(listed, expected);
    Ok(())
}

pub(super) async fn live_tasks_are_listed_by_shard(world: World) -> Result<(), StoreError> {
    for name in ["a", "b", "c"] {
        world.scheduled(name).await?;
    }
    world.completed("d", NOW).await?;
    let mut listed = world.listed(Listing::Live { shard: SHARD }, 2).await?;
    listed.sort();
    assert_eq!(listed, ids(["a", "b", "c"]));
    assert_eq!(world.listed(Listing::Live { shard: SHARD + 1 }, 2).await?, []);
    Ok(())
}

/// A walk over a list finds each task that belongs to it from the begin to the end once, whatever happens meanwhile.
pub(super) async fn no_change_moves_a_task_in_its_list(world: World) -> Result<(), StoreError> {
    for (secs, name) in [(30, "l1"), (20, "l2"), (40, "l3"), (10, "l4"), (50, "l5")] {
        world.schedule(Schedule { timeouts: deadline(secs), ..world.request(name) }).await?;
    }
    for name in ["d1", "d2", "d3", "d4"] {
        world.failed(name, NOW).await?;
    }
    for (listing, expected) in [
        (Listing::Live { shard: SHARD }, ids(["l1", "l2", "l3", "l4", "l5"]).as_slice()),
        (Listing::Dead, &ids(["d4", "d3", "d2", "d1"])),
    ] {
        let (mut seen, mut cursor) = (vec![], None);
        for at in 1..PAGES_MAX as u64 {
            let page = world.store.list(listing, 1, cursor.as_deref()).await?;
            seen.extend(page.items);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
            for id in expected {
                world.changed_for_a_while(id, listing, later(at)).await?;
            }
        }
        assert_eq!(seen, expected, "{listing:?}");
    }
    Ok(())
}

pub(super) async fn an_invalid_cursor_or_one_of_another_listing_is_refused(
    world: World,
) -> Result<(), StoreError> {
    for name in ["a", "b", "c"] {
        world.failed(name, NOW).await?;
    }
    let other = present(world.store.list(Listing::Dead, 1, None).await?.next);
    for cursor in ["", "no cursor", "e30", "bnVsbA"] {
        for listing in LISTINGS {
            let refused = world.store.list(listing, 1, Some(cursor)).await;
            assert!(matches!(refused, Err(StoreError::BadCursor)), "{listing:?} {cursor:?}: {refused:?}");
        }
    }
    for listing in [Listing::Live { shard: SHARD }, Listing::All] {
        let refused = world.store.list(listing, 1, Some(&other)).await;
        assert!(matches!(refused, Err(StoreError::BadCursor)), "{listing:?}: {refused:?}");
    }
    let refused = world.store.due(DueRange::until(SHARD, NOW), 1, Some(&other)).await;
    assert!(matches!(refused, Err(StoreError::BadCursor)), "{refused:?}");
    Ok(())
}
