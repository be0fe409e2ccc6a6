//! Lists of the executions of all workflows: each filter finds what fits and nothing else, page by page.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use tickover_core::decision::{Condition, NewItem, Write};
use tickover_core::duration::Millis;
use tickover_core::execution::fixture::{every_state, pending};
use tickover_core::execution::{Closed, Execution, ExecutionOutcome, ExecutionState, ExecutionStatus};
use tickover_core::failure::Failure;
use tickover_core::id::{BlobId, ExecutionId, Incarnation, Nonce, WorkflowName};
use tickover_core::limits::Limits;
use tickover_core::payload::{BlobRef, Json, Payload};
use tickover_core::time::Timestamp;
use tickover_service::memory::{MemoryQueue, MemoryStore, Queues};
use tickover_service::ports::{ExecutionCount, ExecutionFilter, Store};
use tickover_service::system::{SystemClock, SystemIds};
use tickover_service::{Ports, Service};
use tickover_sqlite::{SqliteStore, check};

use super::tasks::back_to_the_fifth_schema;

/// So far ahead that nothing has expired.
const START: Timestamp = Timestamp::from_millis(4_000_000_000_000);
const WORKFLOWS: [&str; 3] = ["import", "order", "order-2"];
const CUSTOMERS: [&str; 4] = ["1", "2", "ä = b", ""];
const CODES: [&str; 2] = ["card_declined", "no_stock"];
const EXECUTIONS: u64 = 96;
/// Small, so that each list has several pages and pages end between executions of the same instant.
const PAGE: usize = 7;

fn service(store: Arc<dyn Store>) -> Service {
    let clock = Arc::new(SystemClock);
    let queue = Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen));
    let ports = Ports { store, queue, clock, ids: Arc::new(SystemIds) };
    Service::new(ports, Limits::default())
}

/// An execution as a test knows it.
struct Known {
    record: Execution,
    customer: Option<&'static str>,
}

/// An execution that is written in two steps, as most are: it starts, and gets its state.
async fn write(store: &dyn Store, number: u64) -> Known {
    let pick = |count: usize, salt: u64| {
        usize::try_from((number + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33).unwrap() % count
    };
    let customer = (pick(3, 1) > 0).then(|| CUSTOMERS[pick(CUSTOMERS.len(), 2)]);
    let details = customer.map(|customer| {
        let memo = if number.is_multiple_of(2) { r#","memo":"large""# } else { "" };
        Json::parse(format!(r#"{{"labels":{{"customer":{customer:?},"tier":"gold"}}{memo}}}"#)).unwrap()
    });
    // Every other one is too large for the record.
    let details = match details {
        Some(body) if number.is_multiple_of(2) => {
            let mut id = [0; 16];
            id[..8].copy_from_slice(&number.to_be_bytes());
            let expires_at = START.plus(Millis::from_secs(1_000_000));
            let at = BlobRef { id: BlobId::from_bytes(id), bytes: 100, expires_at };
            store.put_item(&NewItem::Blob { at: at.clone(), body }).await.unwrap();
            Some(Payload::Blob(at))
        }
        details => details.map(Payload::Inline),
    };
    let started = Execution {
        id: ExecutionId::parse(format!("e-{number:03}")).unwrap(),
        incarnation: Incarnation::from_bytes(number.to_be_bytes()),
        nonce: Nonce::from_bytes((2 * number).to_be_bytes()),
        workflow: WorkflowName::parse(WORKFLOWS[pick(3, 3)]).unwrap(),
        created_at: START.plus(Millis::from_secs(number / 3)),
        details,
        due: None,
        ..pending(START)
    };
    let create = Write::put(started.clone(), Condition::Free { now: START });
    store.commit(&[create]).await.unwrap();
    let states = every_state(START);
    let state = match states[pick(states.len(), 4)].clone() {
        ExecutionState::Ended(Closed {
            outcome: ExecutionOutcome::Failed { step, retries_exhausted, .. },
            ended_at,
            expires_at,
        }) => {
            let error = Failure::new(CODES[pick(2, 5)], "no");
            let outcome = ExecutionOutcome::Failed { error, step, retries_exhausted };
            ExecutionState::Ended(Closed { outcome, ended_at, expires_at })
        }
        other => other,
    };
    let paused = pick(7, 6) == 0;
    let nonce = Nonce::from_bytes((2 * number + 1).to_be_bytes());
    let record = Execution { state, paused, version: started.version + 1, nonce, ..started.clone() };
    let update = Write::replace(started, record.clone(), Condition::UNCHANGED);
    store.commit(&[update]).await.unwrap();
    Known { record, customer }
}

async fn write_all(store: &dyn Store) -> Vec<Known> {
    let mut all = vec![];
    for number in 0..EXECUTIONS {
        all.push(write(store, number).await);
    }
    all.sort_by(|one, other| {
        (other.record.created_at, &other.record.id).cmp(&(one.record.created_at, &one.record.id))
    });
    all
}

/// All that a list finds, page by page.
async fn found(service: &Service, filter: &ExecutionFilter) -> Vec<ExecutionId> {
    let (mut found, mut cursor) = (vec![], None);
    loop {
        let page = service.executions(filter, PAGE, cursor.as_deref()).await.unwrap();
        assert!(
            page.items.len() == PAGE || page.next.is_none(),
            "a short page that isn't the last: {filter:?}"
        );
        found.extend(page.items.into_iter().map(|execution| execution.id));
        cursor = page.next;
        if cursor.is_none() {
            return found;
        }
    }
}

/// What a filter should find.
fn expected(all: &[Known], filter: &ExecutionFilter) -> Vec<ExecutionId> {
    let fits = |known: &&Known| {
        let record = &known.record;
        let has_label = |(name, value): &(String, String)| match name.as_str() {
            "customer" => known.customer == Some(value),
            "tier" => known.customer.is_some() && value == "gold",
            _ => false,
        };
        let code = match &record.closed().map(|closed| &closed.outcome) {
            Some(ExecutionOutcome::Failed { error, .. }) => Some(error.code.as_str()),
            _ => None,
        };
        filter.workflow.as_ref().is_none_or(|workflow| *workflow == record.workflow)
            && (filter.statuses.is_empty() || filter.statuses.contains(&record.status()))
            && filter.started_from.is_none_or(|from| from <= record.created_at)
            && filter.started_before.is_none_or(|before| record.created_at < before)
            && filter.label.as_ref().is_none_or(has_label)
            && filter.error.as_deref().is_none_or(|error| code == Some(error))
    };
    all.iter().filter(fits).map(|known| known.record.id.clone()).collect()
}

/// Every set of statuses, and every combination of a few values of the other fields.
fn filters(workflows: &[Option<&str>]) -> Vec<ExecutionFilter> {
    let workflow = |name: &&str| WorkflowName::parse(*name).unwrap();
    let mut filters = vec![];
    for named in workflows {
        let plain = ExecutionFilter { workflow: named.as_ref().map(workflow), ..ExecutionFilter::default() };
        for bits in 0..1_usize << ExecutionStatus::ALL.len() {
            let all = ExecutionStatus::ALL.into_iter().enumerate();
            let statuses = all.filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, status)| status).collect();
            filters.push(ExecutionFilter { statuses, ..plain.clone() });
        }
        let labels = [None, Some(("customer", "1")), Some(("customer", "ä = b")), Some(("customer", ""))];
        for label in labels.into_iter().chain([Some(("tier", "gold")), Some(("tier", "1")), Some(("x", ""))])
        {
            for error in [None, Some("card_declined"), Some("none")] {
                for statuses in [vec![], vec![ExecutionStatus::Failed], vec![ExecutionStatus::Completed]] {
                    for span in [
                        (None, None),
                        (Some(5), None),
                        (None, Some(9)),
                        (Some(5), Some(9)),
                        (Some(9), Some(5)),
                    ] {
                        let instant =
                            |secs: Option<u64>| secs.map(|secs| START.plus(Millis::from_secs(secs)));
                        filters.push(ExecutionFilter {
                            statuses: statuses.clone(),
                            started_from: instant(span.0),
                            started_before: instant(span.1),
                            label: label.map(|(name, value)| (name.to_owned(), value.to_owned())),
                            error: error.map(str::to_owned),
                            ..plain.clone()
                        });
                    }
                }
            }
        }
    }
    filters
}

#[tokio::test]
async fn executions_of_all_workflows_are_found_by_every_filter() {
    let store = Arc::new(SqliteStore::memory().unwrap());
    let all = write_all(&*store).await;
    let service = service(store);
    for filter in filters(&[None, Some("order"), Some("order-2"), Some("none")]) {
        assert_eq!(found(&service, &filter).await, expected(&all, &filter), "{filter:?}");
    }
}

#[tokio::test]
async fn without_an_index_one_workflow_is_found_by_every_filter() {
    let store = Arc::new(MemoryStore::new());
    let all = write_all(&*store).await;
    let service = service(store);
    for filter in filters(&[Some("order"), Some("none")]) {
        assert_eq!(found(&service, &filter).await, expected(&all, &filter), "{filter:?}");
    }
    let refused = service.executions(&ExecutionFilter::default(), PAGE, None).await.unwrap_err();
    assert!(refused.to_string().starts_with("workflow: expected a workflow"), "{refused}");
    assert_eq!(service.count_executions().await.unwrap(), None);
}

/// How many labels a file has.
fn labels(path: &Path) -> usize {
    let file = Connection::open(path).unwrap();
    file.query_row("SELECT count(*) FROM label", [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn a_cursor_is_for_its_own_filter_only() {
    let store = Arc::new(SqliteStore::memory().unwrap());
    write_all(&*store).await;
    let service = service(store);
    let all = ExecutionFilter::default();
    let cursor = service.executions(&all, PAGE, None).await.unwrap().next;
    assert!(service.executions(&all, PAGE, cursor.as_deref()).await.is_ok());
    let failed = ExecutionFilter { statuses: vec![ExecutionStatus::Failed], ..all };
    let refused = service.executions(&failed, PAGE, cursor.as_deref()).await.unwrap_err();
    assert!(refused.to_string().starts_with("cursor: "), "{refused}");
}

fn counted(all: &[Known]) -> Vec<ExecutionCount> {
    let mut counts = BTreeMap::new();
    for Known { record, .. } in all {
        *counts.entry((record.workflow.clone(), record.status())).or_insert(0) += 1;
    }
    counts.into_iter().map(|((workflow, status), count)| ExecutionCount { workflow, status, count }).collect()
}

#[tokio::test]
async fn executions_are_counted_by_workflow_and_status_until_they_are_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.db");
    let store = Arc::new(SqliteStore::file(&path).unwrap());
    let all = write_all(&*store).await;
    let service = service(store.clone());
    assert_eq!(service.count_executions().await.unwrap().map(|found| found.counts), Some(counted(&all)));

    let (ended, open): (Vec<_>, Vec<_>) = all.into_iter().partition(|known| known.record.closed().is_some());
    store.delete_expired(START.plus(Millis::from_secs(500_000))).await.unwrap();
    let open: Vec<Known> = open
        .into_iter()
        .chain(ended.into_iter().filter(|known| !matches!(known.record.state, ExecutionState::Ended(_))))
        .collect();
    assert_eq!(service.count_executions().await.unwrap().map(|found| found.counts), Some(counted(&open)));
    let gold =
        ExecutionFilter { label: Some(("tier".to_owned(), "gold".to_owned())), ..ExecutionFilter::default() };
    assert_eq!(found(&service, &gold).await.len(), expected(&open, &gold).len());
    // Each has two labels or none.
    let labelled = open.iter().filter(|known| known.customer.is_some()).count();
    assert_eq!(labels(&path), 2 * labelled);
}

/// A new execution with an id that another one had has only its own labels.
#[tokio::test]
async fn an_id_that_is_used_again_leaves_its_earlier_labels() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.db");
    let store = Arc::new(SqliteStore::file(&path).unwrap());
    let labelled = |value: &str, created_at: Timestamp, nonce: u8| {
        let details = Json::parse(format!(r#"{{"labels":{{"customer":{value:?}}}}}"#)).unwrap();
        let nonce = Nonce::from_bytes([nonce; 8]);
        Execution { details: Some(Payload::Inline(details)), created_at, nonce, ..pending(created_at) }
    };
    let create = |execution: &Execution, now| Write::put(execution.clone(), Condition::Free { now });
    let first = labelled("old", START, 1);
    store.commit(&[create(&first, START)]).await.unwrap();
    let ended = Execution {
        state: every_state(START).remove(5),
        version: first.version + 1,
        nonce: Nonce::from_bytes([2; 8]),
        ..first.clone()
    };
    let update = Write::replace(first, ended.clone(), Condition::UNCHANGED);
    store.commit(&[update]).await.unwrap();
    let later = ended.closed().unwrap().expires_at.plus(Millis::from_secs(1));
    let second = Execution { incarnation: Incarnation::from_bytes([9; 8]), ..labelled("new", later, 3) };
    store.commit(&[create(&second, later)]).await.unwrap();

    let service = service(store);
    let of = |value: &str| ExecutionFilter {
        label: Some(("customer".to_owned(), value.to_owned())),
        ..ExecutionFilter::default()
    };
    assert_eq!(found(&service, &of("old")).await, []);
    assert_eq!(found(&service, &of("new")).await, [second.id]);
    assert_eq!(labels(&path), 1);
}

/// Takes from a file what the second version of the schema has added.
fn back_to_the_first_schema(path: &Path) {
    back_to_the_fifth_schema(path);
    let file = Connection::open(path).unwrap();
    file.execute_batch(
        "DROP TABLE history; DROP TRIGGER record_leaves_no_label; DROP TABLE label; DROP INDEX execution_by_status;
         DROP INDEX execution_by_error; ALTER TABLE record DROP COLUMN error;
         DROP INDEX record_by_lane; DROP INDEX record_laned_by_queue; DROP INDEX record_by_queue;
         ALTER TABLE record DROP COLUMN lane;
         CREATE INDEX record_by_queue ON record (queue, ready_at) WHERE ready_at IS NOT NULL;
         CREATE INDEX record_running ON record (queue, id) WHERE kind = 0 AND status = 'running';
         PRAGMA user_version = 1;",
    )
    .unwrap();
}

#[tokio::test]
async fn a_file_of_the_first_schema_gets_the_columns_and_labels_of_its_executions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.db");
    let all = write_all(&SqliteStore::file(&path).unwrap()).await;
    back_to_the_first_schema(&path);
    let service = service(Arc::new(SqliteStore::file(&path).unwrap()));
    assert_eq!(service.count_executions().await.unwrap().map(|found| found.counts), Some(counted(&all)));
    for code in CODES {
        let filter = ExecutionFilter { error: Some(code.to_owned()), ..ExecutionFilter::default() };
        assert_eq!(found(&service, &filter).await, expected(&all, &filter), "{code}");
    }
    for customer in CUSTOMERS {
        let label = Some(("customer".to_owned(), customer.to_owned()));
        let filter = ExecutionFilter { label, ..ExecutionFilter::default() };
        assert_eq!(found(&service, &filter).await, expected(&all, &filter), "{customer}");
    }
}

#[tokio::test]
async fn a_check_finds_labels_that_do_not_agree_with_their_executions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.db");
    let store = SqliteStore::file(&path).unwrap();
    let mut labelled = vec![];
    for number in 0..9 {
        let known = write(&store, number).await;
        labelled.extend(known.customer.map(|_| known.record.id));
    }
    drop(store);
    let whole = check(&path).unwrap();
    assert!(whole.counts.contains(&("labels", 2 * labelled.len() as u64)), "{whole:?}");
    assert_eq!(whole.problems, Vec::<String>::new());
    // One has its labels in its record, and one in an item of their own.
    let number = |id: &ExecutionId| id.as_str()[2..].parse::<u64>().unwrap();
    let inline = labelled.iter().find(|id| !number(id).is_multiple_of(2)).unwrap();
    let apart = labelled.iter().find(|id| number(id).is_multiple_of(2)).unwrap();
    let differ =
        |id: &ExecutionId| format!("execution \"{id}\": its labels and those by which it is found differ");
    let row = |id: &ExecutionId| format!("(SELECT row FROM record WHERE kind = 1 AND id = '{id}')");
    for (damage, problems) in [
        (format!("DELETE FROM label WHERE id = '{inline}' AND name = 'tier'"), vec![differ(inline)]),
        (format!("DELETE FROM label WHERE id = '{apart}'"), vec![differ(apart)]),
        (
            format!("UPDATE label SET value = 'lead' WHERE id = '{apart}' AND name = 'tier'"),
            vec![differ(apart)],
        ),
        (format!("UPDATE label SET at = at + 1 WHERE id = '{inline}'"), vec![differ(inline)]),
        (format!("UPDATE label SET id = 'x' WHERE id = '{inline}' AND name = 'tier'"), vec![differ(inline)]),
        (
            format!(
                "INSERT INTO label SELECT 1, 'team', 'a', list_at, id, row FROM record WHERE id = '{inline}'"
            ),
            vec![differ(inline)],
        ),
        (format!("UPDATE label SET row = {} WHERE id = '{inline}' AND name = 'tier'", row(apart)), {
            let mut both = [inline, apart];
            both.sort();
            both.map(differ).to_vec()
        }),
        (
            "INSERT INTO label VALUES (1, 'team', 'a', 1, 'gone', 999)".to_owned(),
            vec!["execution \"gone\": it has labels, and isn't there".to_owned()],
        ),
        // Without its item, nothing says which labels it should have.
        ("DELETE FROM blob".to_owned(), vec![]),
    ] {
        let copy = folder.path().join("copy.db");
        std::fs::copy(&path, &copy).unwrap();
        assert!(Connection::open(&copy).unwrap().execute(&damage, []).unwrap() > 0, "{damage}");
        assert_eq!(check(&copy).unwrap().problems, problems, "{damage}");
    }
}
