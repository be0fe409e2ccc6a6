//! Reads of executions: by many ids, by workflow, and from the due index.

use tickover_core::due::{Due, DueKind};
use tickover_core::execution::journal::{Segment, SegmentKey};
use tickover_core::execution::{Closed, DeadlineKind, Execution, ExecutionOutcome, ExecutionState};
use tickover_core::failure::Failure;
use tickover_core::flow::Priority;
use tickover_core::id::{ExecutionId, Fingerprint, RecordId};
use tickover_core::lane::Lane;

use super::fixture::{closed, execution_id, parent_of, running, slot, workflow};
use crate::store::fixture::{NOW, SHARD, World, id, later, present};
use tickover_service::ports::{DueEntry, DueRange, Listed, Listing, Sleeper, StoreError};

/// More pages than any case fills: a wrong cursor causes a failure, not an endless loop.
const PAGES_MAX: usize = 50;

impl World {
    /// All executions of a workflow, page by page.
    async fn of_workflow(&self, name: &str, limit: usize) -> Result<Vec<ExecutionId>, StoreError> {
        let (mut all, mut cursor) = (Vec::new(), None);
        for _ in 0..PAGES_MAX {
            let page = self.store.list_executions(&workflow(name), limit, cursor.as_deref()).await?;
            assert!(page.items.len() <= limit);
            all.extend(page.items);
            cursor = page.next;
            if cursor.is_none() {
                return Ok(all);
            }
        }
        panic!("the pages of the executions of {name} have no end");
    }

    async fn started_after(&self, id: &str, secs: u64, name: &str) -> Result<Execution, StoreError> {
        let (workflow, created_at) = (workflow(name), later(secs));
        self.start(Execution { workflow, created_at, ..self.execution(id) }).await
    }
}

pub(crate) async fn many_executions_are_read_at_once_without_the_absent_ones(
    world: World,
) -> Result<(), StoreError> {
    let mut written = Vec::new();
    for number in 0..30 {
        written.push(world.started(&format!("e-{number:02}")).await?);
    }
    let mut wanted: Vec<_> = (0..98).map(|number| execution_id(&format!("e-{number:02}"))).collect();
    wanted.push(execution_id("e-00"));
    let mut read = world.store.executions(&wanted).await?;
    read.sort_by(|one, other| one.id.cmp(&other.id));
    assert_eq!(read, written);
    assert_eq!(world.store.executions(&[]).await?, []);
    // There are no writes in between, so a peek shows the same.
    assert_eq!(world.store.peek_execution(&execution_id("e-00")).await?.as_ref(), written.first());
    assert_eq!(world.store.peek_execution(&execution_id("e-98")).await?, None);
    Ok(())
}

pub(crate) async fn executions_are_listed_by_workflow_the_latest_first(
    world: World,
) -> Result<(), StoreError> {
    for (id, secs) in [("b", 2), ("e", 5), ("a", 1), ("d", 4), ("c", 3)] {
        world.started_after(id, secs, "checkout").await?;
    }
    let other = world.started_after("other", 3, "check").await?;
    world.scheduled("task").await?;
    world.failed("dead", NOW).await?;
    let expected = ["e", "d", "c", "b", "a"].map(execution_id);
    for limit in [1, 2, 100] {
        assert_eq!(world.of_workflow("checkout", limit).await?, expected);
    }
    // After any change, it stays in the list where it was started.
    let taken = world.turned(&other, running()).await?;
    let ended = world.ended(&taken).await?;
    let again = Execution {
        state: taken.state,
        due: taken.due,
        run: 2,
        run_started_at: later(9),
        ..world.next_version(&ended)
    };
    world.update(&ended, &again).await?;
    assert_eq!(world.of_workflow("check", 2).await?, [execution_id("other")]);
    assert_eq!(world.of_workflow("nothing", 2).await?, []);
    Ok(())
}

/// In stores that have such a list; others have an index of all executions.
pub(crate) async fn failed_executions_of_all_workflows_are_listed_until_they_run_again(
    world: World,
) -> Result<(), StoreError> {
    let Some(lists) = world.store.traits().lists else { return Ok(()) };
    let ended = ended_in_every_way(&world).await?;
    world.failed("a-task", NOW).await?;
    let first = lists.find(Listed::Failed, 2, None).await?;
    assert_eq!(first.items, ["e-4", "e-3"].map(execution_id));
    let rest = lists.find(Listed::Failed, 2, first.next.as_deref()).await?;
    assert_eq!((rest.items, rest.next), (vec![execution_id("e-1")], None));

    restarted(&world, &ended[3]).await?;
    let found = lists.find(Listed::Failed, 9, None).await?;
    assert_eq!(found.items, ["e-3", "e-1"].map(execution_id));
    Ok(())
}

/// In stores with such a list.
pub(crate) async fn executions_of_all_workflows_are_one_list_from_their_starts_on(
    world: World,
) -> Result<(), StoreError> {
    let Some(lists) = world.store.traits().lists else { return Ok(()) };
    if lists.longest() < Listed::All {
        return Ok(());
    }
    let all = async || Ok::<_, StoreError>(lists.find(Listed::All, 9, None).await?.items);
    world.started_after("e-9", 9, "w-9").await?;
    assert_eq!(all().await?, [execution_id("e-9")]);
    let ended = ended_in_every_way(&world).await?;
    let expected = ["e-9", "e-5", "e-4", "e-3", "e-2", "e-1"].map(execution_id);
    assert_eq!(all().await?, expected);
    // Neither a failure nor a restart between two pages changes the order.
    for limit in 1..=7 {
        let (mut found, mut cursor, mut pages) = (vec![], None, 0);
        loop {
            let page = lists.find(Listed::All, limit, cursor.as_deref()).await?;
            assert!(page.items.len() <= limit);
            found.extend(page.items);
            (cursor, pages) = (page.next, pages + 1);
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!((found.as_slice(), pages), (&expected[..], 6_usize.div_ceil(limit)), "{limit} a page");
    }
    let first = lists.find(Listed::All, 2, None).await?;
    restarted(&world, &ended[2]).await?;
    let rest = lists.find(Listed::All, 9, first.next.as_deref()).await?;
    assert_eq!((rest.items.as_slice(), rest.next), (&expected[2..], None));
    let of_failed = lists.find(Listed::Failed, 1, None).await?.next;
    let wrong = lists.find(Listed::All, 1, of_failed.as_deref()).await;
    assert!(matches!(wrong, Err(StoreError::BadCursor)), "{wrong:?}");
    Ok(())
}

/// An execution of each outcome, each of another workflow, in the order of their starts: as they were, and as they are.
async fn ended_in_every_way(world: &World) -> Result<Vec<(Execution, Execution)>, StoreError> {
    let failed = |error: &str| ExecutionOutcome::Failed {
        error: Failure::new(error, ""),
        step: None,
        retries_exhausted: false,
    };
    let mut ended = vec![];
    for (secs, outcome) in [
        (1, failed("declined")),
        (2, ExecutionOutcome::Completed { output: None }),
        (3, ExecutionOutcome::TimedOut { kind: DeadlineKind::Execution }),
        (4, failed("other")),
        (5, ExecutionOutcome::Cancelled { terminated: false }),
    ] {
        let open = world.started_after(&format!("e-{secs}"), secs, &format!("w-{secs}")).await?;
        let closed = Closed { outcome, ..closed() };
        let after =
            Execution { state: ExecutionState::Ended(closed), due: None, ..world.next_version(&open) };
        world.update(&open, &after).await?;
        ended.push((open, after));
    }
    Ok(ended)
}

async fn restarted(world: &World, (open, ended): &(Execution, Execution)) -> Result<(), StoreError> {
    let again = Execution { state: open.state.clone(), due: open.due, run: 2, ..world.next_version(ended) };
    world.update(ended, &again).await.map(drop)
}

pub(crate) async fn a_long_list_of_executions_is_one_list_in_pages_of_any_size(
    world: World,
) -> Result<(), StoreError> {
    let mut expected = Vec::new();
    for number in 0_u32..120 {
        let (secs, name) = (u64::from(number / 40), format!("e-{number:03}"));
        world.started_after(&name, secs, "checkout").await?;
        expected.push((secs, execution_id(&name)));
    }
    expected.sort();
    let expected: Vec<ExecutionId> = expected.into_iter().rev().map(|(_, id)| id).collect();
    for limit in [9, 50, 1_000] {
        assert_eq!(world.of_workflow("checkout", limit).await?, expected, "pages of {limit}");
    }
    assert_eq!(world.store.list_executions(&workflow("checkout"), 50, None).await?.items.len(), 50);
    Ok(())
}

pub(crate) async fn a_cursor_of_another_workflow_or_listing_is_refused(
    world: World,
) -> Result<(), StoreError> {
    for (id, secs) in [("a", 1), ("b", 2), ("c", 3)] {
        world.started_after(id, secs, "checkout").await?;
        world.failed(id, NOW).await?;
    }
    let (checkout, refund) = (workflow("checkout"), workflow("refund"));
    let own = present(world.store.list_executions(&checkout, 1, None).await?.next);
    let dead = present(world.store.list(Listing::Dead, 1, None).await?.next);
    for (name, cursor) in
        [(&checkout, ""), (&checkout, "e30"), (&checkout, dead.as_str()), (&refund, own.as_str())]
    {
        let refused = world.store.list_executions(name, 1, Some(cursor)).await;
        assert!(matches!(refused, Err(StoreError::BadCursor)), "{name} {cursor:?}: {refused:?}");
    }
    for listing in [Listing::Live { shard: SHARD }, Listing::Dead, Listing::All] {
        let refused = world.store.list(listing, 1, Some(&own)).await;
        assert!(matches!(refused, Err(StoreError::BadCursor)), "{listing:?}: {refused:?}");
    }
    Ok(())
}

pub(crate) async fn due_records_come_in_order_whatever_their_kind(world: World) -> Result<(), StoreError> {
    for secs in [30, 10, 50] {
        let execution = world.execution(&format!("e-{secs}"));
        let due = Some(Due { at: later(secs), kind: DueKind::Instant, shard: SHARD });
        world.start(Execution { due, ..execution }).await?;
        let task = world.scheduled(&format!("t-{secs}")).await?;
        world.moved(&task, Due { at: later(secs + 5), kind: DueKind::Recheck, shard: SHARD }).await?;
    }
    let range = DueRange { shard: SHARD, from: later(15), until: later(50) };
    let (mut seen, mut cursor) = (Vec::new(), None);
    for _ in 0..PAGES_MAX {
        let page = world.store.due(range, 1, cursor.as_deref()).await?;
        assert!(page.items.len() <= 1);
        seen.extend(page.items.into_iter().map(|entry| (entry.record, entry.kind)));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    let task = |name| (RecordId::Task(id(name)), DueKind::Recheck);
    let execution = |name| (RecordId::Execution(execution_id(name)), DueKind::Instant);
    assert_eq!(seen, [task("t-10"), execution("e-30"), task("t-30"), execution("e-50")]);
    Ok(())
}

pub(crate) async fn the_due_entry_of_an_execution_that_sleeps_has_what_its_hint_needs(
    world: World,
) -> Result<(), StoreError> {
    let asleep = Due { at: later(9_000), kind: DueKind::Asleep, shard: SHARD };
    let plain = world.execution("plain");
    let plain = world.start(Execution { due: Some(asleep), ..plain }).await?;
    let lane = Lane { priority: Priority::Low, tenant: Some(Fingerprint::from_bytes([7; 16])) };
    let laned = world.start(Execution { lane, ..world.execution("laned") }).await?;
    let range = DueRange::until(SHARD, later(99_999));
    let entries = world.store.due(range, 10, None).await?.items;
    let of = |entries: &[DueEntry], one: &Execution| {
        let found = entries.iter().find(|entry| entry.record == one.id.clone().into());
        found.and_then(|entry| entry.sleeper.as_deref().cloned())
    };
    assert_eq!(of(&entries, &plain), Some(Sleeper::of(&plain)));
    assert_eq!(of(&entries, &laned), None, "it has a slot of another kind");
    world.moved_to(&laned, asleep).await?;
    let entries = world.store.due(range, 10, None).await?.items;
    assert_eq!(of(&entries, &laned), Some(Sleeper::of(&laned)));
    Ok(())
}

pub(crate) async fn lists_of_tasks_hold_nothing_of_executions(world: World) -> Result<(), StoreError> {
    let execution = world.started("both").await?;
    let key = SegmentKey { incarnation: execution.incarnation, run: 1, number: 1, mark: world.nonce() };
    let segment = Segment { before: None, entries: vec![], end: None };
    world.store.put_segment(&execution.id, &key, &segment, later(60)).await?;
    world.store.join(&parent_of("both", execution.incarnation), slot(0), later(60)).await?;
    world.scheduled("task").await?;
    for listing in [Listing::All, Listing::Live { shard: SHARD }] {
        let (mut all, mut cursor) = (Vec::new(), None);
        for _ in 0..PAGES_MAX {
            let page = world.store.list(listing, 1, cursor.as_deref()).await?;
            all.extend(page.items);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(all, [id("task")], "{listing:?}");
    }
    Ok(())
}
