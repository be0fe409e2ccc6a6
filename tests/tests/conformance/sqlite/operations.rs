//! Operations in a file: checked like all records, and deleted after their retention.

use rusqlite::Connection;
use tickover_core::decision::{Condition, Write};
use tickover_core::duration::Millis;
use tickover_core::id::{Fingerprint, Nonce, OperationId};
use tickover_core::operation::{Action, HowEnded, KEPT_FOR, NewOperation, Operation, Target};
use tickover_core::payload::{Json, Payload};
use tickover_service::ports::Store;
use tickover_sqlite::{SqliteStore, check};
use tickover_tests::scene::START;

fn started() -> Operation {
    let new = NewOperation {
        id: OperationId::parse("o").unwrap(),
        fingerprint: Fingerprint::from_bytes([1; 16]),
        action: Action::Cancel,
        target: Target::Tasks,
        dry_run: false,
        details: Payload::Inline(Json::null()),
        by: None,
    };
    Operation::new(new, None, Nonce::from_bytes([2; 8]), START, 1)
}

fn put(record: &Operation) -> [Write; 1] {
    [Write::put(record.clone(), Condition::Follows)]
}

#[tokio::test]
async fn a_check_counts_operations_and_names_one_that_does_not_agree_with_its_columns() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.db");
    let store = SqliteStore::file(&path).unwrap();
    store.commit(&put(&started())).await.unwrap();
    drop(store);
    let found = check(&path).unwrap();
    assert!(found.counts.contains(&("operations", 1)), "{found:?}");
    assert_eq!(found.problems, Vec::<String>::new());
    let damage = [
        ("UPDATE record SET list_at = list_at + 1", "its column list_at and its body differ"),
        ("UPDATE record SET body = '{}'", "its body isn't of a format that this build reads"),
    ];
    for (change, problem) in damage {
        assert_eq!(Connection::open(&path).unwrap().execute(change, []).unwrap(), 1);
        assert_eq!(check(&path).unwrap().problems, [format!("operation \"o\": {problem}")]);
    }
}

#[tokio::test]
async fn an_operation_is_deleted_after_its_retention_and_not_before() {
    let store = SqliteStore::memory().unwrap();
    let first = started();
    store.commit(&put(&first)).await.unwrap();
    let far = START.plus(Millis::from_secs(400 * 86_400));
    assert_eq!(store.delete_expired(far).await.unwrap(), 0);
    let ended = Operation { version: 2, ..first.ended(HowEnded::Stopped, START).unwrap() };
    store.commit(&put(&ended)).await.unwrap();
    let at = START.plus(KEPT_FOR);
    assert_eq!(store.delete_expired(at.minus(Millis::new(1))).await.unwrap(), 0);
    assert_eq!((&store as &dyn Store).operation(&ended.id).await.unwrap(), Some(ended.clone()));
    assert_eq!(store.delete_expired(at).await.unwrap(), 1);
    assert_eq!((&store as &dyn Store).operation(&ended.id).await.unwrap(), None);
}
