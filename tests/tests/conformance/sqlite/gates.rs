//! Gates in a file: checked like all records, and deleted when nobody needs them.

use std::num::NonZeroU16;

use rusqlite::Connection;
use tickover_core::decision::{Condition, Write};
use tickover_core::duration::Millis;
use tickover_core::flow::Priority;
use tickover_core::gate::{Branch, Gate, KEPT_FOR, Position, Waiter};
use tickover_core::id::{Fingerprint, GateId, Incarnation, Nonce, TaskId};
use tickover_core::parked::Parked;
use tickover_core::task::Task;
use tickover_service::memory::{Backlog as _, Choice};
use tickover_service::ports::Store;
use tickover_sqlite::{SqliteStore, check};
use tickover_tests::scene::{START, Scene, queue_name, request, task_id};

fn waiter() -> Waiter {
    Waiter {
        owner: TaskId::parse("t").unwrap().into(),
        incarnation: Incarnation::from_bytes([1; 8]),
        branch: Branch { queue: queue_name("work"), others: vec![], required: 0 },
        priority: Priority::Low,
        position: Position { since: START, version: 2 },
        written_at: START,
        home: None,
    }
}

fn gate() -> Gate {
    let id = GateId::from(&Fingerprint::from_bytes([1; 16]));
    Gate { version: 1, ..Gate::new(id, "k".to_owned(), Nonce::from_bytes([2; 8]), START) }
}

fn put(record: &Gate, before: Option<&Gate>) -> Write {
    let before = before.cloned().map(Into::into);
    Write::Put { before, after: record.clone().into(), condition: Condition::Same }
}

fn waits(at: Millis) -> Write {
    Write::PutWaiter { gate: gate().id, waiter: waiter(), expires_at: START.plus(at) }
}

#[tokio::test]
async fn a_check_counts_gates_and_who_waits_and_names_those_that_do_not_agree_with_their_columns() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.db");
    let store = SqliteStore::file(&path).unwrap();
    store.commit(&[put(&gate(), None), waits(KEPT_FOR)]).await.unwrap();
    drop(store);
    let found = check(&path).unwrap();
    assert!(found.counts.contains(&("keys with a limit", 1)), "{found:?}");
    assert!(found.counts.contains(&("tasks and executions that wait for a place", 1)), "{found:?}");
    assert_eq!(found.problems, Vec::<String>::new());
    let damage = [
        (
            "UPDATE record SET version = 9 WHERE kind = 7",
            "key with a limit \"AQEBAQEBAQEBAQEBAQEBAQ\": its column version",
        ),
        (
            "UPDATE record SET body = '{}' WHERE kind = 7",
            "key with a limit \"AQEBAQEBAQEBAQEBAQEBAQ\": its body isn't",
        ),
        ("UPDATE record SET id = 'x' WHERE kind = 8", "item of a line \"x\": its column id"),
    ];
    for (nth, (change, problem)) in damage.into_iter().enumerate() {
        assert_eq!(Connection::open(&path).unwrap().execute(change, []).unwrap(), 1);
        let problems = check(&path).unwrap().problems;
        assert!(problems.iter().any(|found| found.starts_with(problem)), "{nth}: {problems:?}");
    }
}

#[tokio::test]
async fn a_gate_is_deleted_when_nobody_has_needed_it_for_an_hour_unless_its_limit_was_set_and_who_waits_after_their_instant()
 {
    let store = SqliteStore::memory().unwrap();
    let first = gate();
    let pinned =
        Gate { version: 2, nonce: Nonce::from_bytes([3; 8]), pinned: NonZeroU16::new(1), ..first.clone() };
    let last = Gate { version: 3, nonce: Nonce::from_bytes([4; 8]), ..first.clone() };
    store.commit(&[put(&first, None)]).await.unwrap();
    store.commit(&[put(&pinned, Some(&first))]).await.unwrap();
    let far = START.plus(Millis::from_secs(400 * 86_400));
    assert_eq!(store.delete_expired(far).await.unwrap(), 0);
    store.commit(&[put(&last, Some(&pinned)), waits(KEPT_FOR)]).await.unwrap();
    let at = START.plus(KEPT_FOR);
    assert_eq!(store.delete_expired(at.minus(Millis::new(1))).await.unwrap(), 0);
    assert_eq!(store.waiters(&last.id, "", 10).await.unwrap(), [waiter()]);
    assert_eq!(store.delete_expired(at).await.unwrap(), 2);
    assert_eq!((&store as &dyn Store).gate(&last.id).await.unwrap(), None);
    assert_eq!(store.waiters(&last.id, "", 10).await.unwrap(), []);
    assert_eq!(store.next_line(0, None).await.unwrap(), None);
}

/// The tasks of which a queue over the store would get hints.
fn hinted(store: &SqliteStore) -> usize {
    store
        .hints(&queue_name("work"), tickover_core::lane::Lane::default(), &mut |_| Choice::Take)
        .unwrap()
        .len()
}

#[tokio::test]
async fn a_queue_finds_no_hint_of_a_task_that_waits_in_a_line() {
    let store = std::sync::Arc::new(SqliteStore::memory().unwrap());
    let scene = Scene::over(store.clone());
    scene.service.schedule(request("work", Some("t"), None)).await.unwrap();
    assert_eq!(hinted(&store), 1);
    let task = (&*store as &dyn Store).task(&task_id("t")).await.unwrap().unwrap();
    let change = async |before: &Task, parked| {
        let (version, nonce) = (before.version + 1, Nonce::from_bytes((before.version + 1).to_be_bytes()));
        let after = Task { parked, version, nonce, ..before.clone() };
        let write = Write::replace(before.clone(), after.clone(), Condition::UNCHANGED);
        store.commit(&[write]).await.unwrap();
        after
    };
    let position = Position { since: START, version: 2 };
    let waits = change(&task, Parked::InLine(position)).await;
    assert_eq!(hinted(&store), 0);
    assert_eq!(
        (&*store as &dyn Store).task(&task.id).await.unwrap().unwrap().parked.in_line(),
        Some(position)
    );
    change(&waits, Parked::No).await;
    assert_eq!(hinted(&store), 1);
}
