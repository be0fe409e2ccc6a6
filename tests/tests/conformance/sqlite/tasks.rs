//! Tasks by label and by error, and what has failed: also in a file of an earlier schema.

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use tickover_core::duration::Millis;
use tickover_core::failure::Failure;
use tickover_core::id::{TaskId, TaskKind};
use tickover_core::payload::Json;
use tickover_core::task::{Status, Task};
use tickover_service::Service;
use tickover_service::overview::{FailedWork, Failures};
use tickover_service::ports::{Clock, Period, TaskFilter};
use tickover_service::system::SystemClock;
use tickover_service::tasks::schedule::ScheduleRequest;
use tickover_sqlite::{SqliteStore, check};
use tickover_tests::scene::{claim_request, queue_name, request, task_id};

use super::service;

const QUEUES: [&str; 2] = ["a", "b"];
const KINDS: [&str; 2] = ["mail", "report"];
const CODES: [&str; 3] = ["declined", "gone", "too ä"];
const CUSTOMERS: [&str; 3] = ["1", "2", "ä = b"];
const TASKS: usize = 72;
/// Small, so that each list has several pages.
const PAGE: usize = 7;

/// A task as a test knows it.
struct Known {
    task: Task,
    customer: Option<&'static str>,
}

fn kind(name: &str) -> TaskKind {
    TaskKind::parse(name).unwrap()
}

/// Tasks in several states, with labels and without.
async fn write_all(service: &Service) -> Vec<Known> {
    let mut all = vec![];
    for number in 0..TASKS {
        let id = task_id(&format!("t-{number:02}"));
        let customer = (number % 4 > 0).then(|| CUSTOMERS[number % 3]);
        // Some are too large for the record.
        let more = if number % 8 == 1 { "x".repeat(2_000) } else { "gold".to_owned() };
        let labels = customer.map(|customer| format!(r#"{{"customer":{customer:?},"tier":"{more}"}}"#));
        let scheduled = ScheduleRequest {
            kind: kind(KINDS[number / 2 % 2]),
            labels: labels.and_then(Json::parse),
            ..request(QUEUES[number % 2], Some(id.as_str()), None)
        };
        service.schedule(scheduled).await.unwrap();
        if number % 6 > 1 {
            let claimed = service.claim_by_id(&id, &claim_request(1)).await.unwrap().unwrap();
            let token = &claimed.token;
            match number % 6 {
                2 => {}
                3 => drop(service.complete(&id, token, None).await.unwrap()),
                _ => {
                    let failure = Failure::new(CODES[number / 6 % 3], format!("the message of {id}"));
                    service.fail(&id, token, failure, false).await.unwrap();
                }
            }
        }
        all.push(Known { task: service.describe(&id).await.unwrap().task, customer });
    }
    all
}

/// All that a list finds, page by page.
async fn found(service: &Service, filter: &TaskFilter) -> Vec<TaskId> {
    let (mut found, mut cursor) = (vec![], None);
    loop {
        let page = service.list(filter, PAGE, cursor.as_deref()).await.unwrap();
        assert!(
            page.items.len() == PAGE || page.next.is_none(),
            "a short page that isn't the last: {filter:?}"
        );
        found.extend(page.items.into_iter().map(|task| task.id));
        cursor = page.next;
        if cursor.is_none() {
            found.sort();
            return found;
        }
    }
}

fn expected(all: &[Known], filter: &TaskFilter) -> Vec<TaskId> {
    let fits = |known: &&Known| {
        let has =
            |(name, value): &(String, String)| name == "customer" && known.customer == Some(value.as_str());
        filter.fits_but_for_labels(&known.task) && filter.label.as_ref().is_none_or(has)
    };
    all.iter().filter(fits).map(|known| known.task.id.clone()).collect()
}

/// Each combination of a label, an error, a kind, a queue and statuses.
fn filters() -> Vec<TaskFilter> {
    let label = |customer: &&str| ("customer".to_owned(), (*customer).to_owned());
    let labels = || CUSTOMERS.iter().chain(&["none"]).map(label).map(Some).chain([None]);
    let errors = || CODES.iter().chain(&["none"]).map(|code| Some((*code).to_owned())).chain([None]);
    let kinds = || KINDS.iter().map(|name| Some(kind(name))).chain([None]);
    let queues = || [Some("b"), None].map(|name| name.map(queue_name));
    let statuses = [vec![], vec![Status::Failed, Status::TimedOut], vec![Status::Pending, Status::Completed]];
    let mut all = vec![];
    for label in labels() {
        for error in errors() {
            for kind in kinds() {
                for queue in queues() {
                    for statuses in &statuses {
                        let (label, error, kind) = (label.clone(), error.clone(), kind.clone());
                        let (queue, statuses) = (queue.clone(), statuses.clone());
                        all.push(TaskFilter { queue, statuses, kind, label, error, ..TaskFilter::default() });
                    }
                }
            }
        }
    }
    all
}

#[tokio::test]
async fn tasks_are_found_by_label_error_and_kind_a_page_at_a_time() {
    let service = service(SqliteStore::memory().unwrap());
    let all = write_all(&service).await;
    for filter in filters() {
        assert_eq!(found(&service, &filter).await, expected(&all, &filter), "{filter:?}");
    }
}

/// What a walk over all tasks would count.
fn counted(all: &[Known]) -> Vec<(FailedWork, Option<String>, u64)> {
    let mut groups: Vec<(FailedWork, Option<String>, u64)> = vec![];
    for Known { task, .. } in all {
        let Some(code) = task.error_code() else { continue };
        let (of, code) = (FailedWork::Task(task.kind.clone()), Some(code.to_owned()));
        match groups.iter_mut().find(|(work, error, _)| (work, error) == (&of, &code)) {
            Some((.., count)) => *count += 1,
            None => groups.push((of, code, 1)),
        }
    }
    groups.sort();
    groups
}

async fn failures(service: &Service) -> Failures {
    service.failures(Period::default()).await.unwrap()
}

/// The groups, after a check that the rest of the answer agrees with them.
fn groups(found: &Failures, all: &[Known]) -> Vec<(FailedWork, Option<String>, u64)> {
    let count = found.groups.iter().map(|group| group.count).sum::<u64>();
    assert_eq!((found.count.count, found.count.more, found.read_max), (count, false, None));
    for group in &found.groups {
        let message = group.message.as_deref().unwrap();
        let last = all.iter().find(|known| message == format!("the message of {}", known.task.id)).unwrap();
        assert_eq!(last.task.ended().unwrap().ended_at, group.last_at, "{group:?}");
        assert!(group.first_at <= group.last_at);
    }
    let mut groups: Vec<_> =
        found.groups.iter().map(|group| (group.of.clone(), group.code.clone(), group.count)).collect();
    groups.sort();
    groups
}

#[tokio::test]
async fn failures_are_counted_over_all_until_they_are_retried_or_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.db");
    let service = service(SqliteStore::file(&path).unwrap());
    let mut all = write_all(&service).await;
    assert_eq!(groups(&failures(&service).await, &all), counted(&all));
    let failed = all.iter_mut().find(|known| known.task.error_code().is_some()).unwrap();
    failed.task = service.retry(&failed.task.id).await.unwrap();
    assert_eq!(groups(&failures(&service).await, &all), counted(&all));
    let later = SystemClock.now().plus(Millis::from_secs(10));
    let none = Period { from: Some(later), before: None };
    assert_eq!(service.failures(none).await.unwrap().groups, []);
    assert_eq!(check(&path).unwrap().problems, Vec::<String>::new());
}

#[tokio::test]
async fn the_labels_of_a_task_follow_its_last_request_and_go_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.db");
    let store = Arc::new(SqliteStore::file(&path).unwrap());
    let service = super::service_of(store.clone());
    let all = write_all(&service).await;
    let labelled = all.iter().filter(|known| known.customer.is_some()).count();
    assert_eq!(labels(&path), 2 * labelled);
    // None of them is kept for so long.
    store.delete_expired(SystemClock.now().plus(Millis::from_secs(400 * 86_400))).await.unwrap();
    let open = all.iter().filter(|known| known.task.ended().is_none());
    assert_eq!(labels(&path), 2 * open.filter(|known| known.customer.is_some()).count());
}

fn labels(path: &Path) -> usize {
    let file = Connection::open(path).unwrap();
    file.query_row("SELECT count(*) FROM label", [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn a_file_of_the_fifth_schema_gets_what_its_tasks_are_found_by() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.db");
    let all = write_all(&service(SqliteStore::file(&path).unwrap())).await;
    back_to_the_fifth_schema(&path);
    let service = service(SqliteStore::file(&path).unwrap());
    for filter in filters() {
        assert_eq!(found(&service, &filter).await, expected(&all, &filter), "{filter:?}");
    }
    assert_eq!(groups(&failures(&service).await, &all), counted(&all));
    drop(service);
    assert_eq!(check(&path).unwrap().problems, Vec::<String>::new());
}

#[tokio::test]
async fn a_check_finds_what_does_not_agree_with_a_task() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.db");
    let all = write_all(&service(SqliteStore::file(&path).unwrap())).await;
    let labelled = all.iter().find(|known| known.customer.is_some()).unwrap().task.id.clone();
    let failed = all.iter().find(|known| known.task.error_code().is_some()).unwrap().task.id.clone();
    for (damage, problem) in [
        (
            format!("DELETE FROM label WHERE id = '{labelled}' AND name = 'tier'"),
            format!("task \"{labelled}\": its labels and those by which it is found differ"),
        ),
        (
            "INSERT INTO label VALUES (0, 'team', 'a', 1, 'gone', 999)".to_owned(),
            "task \"gone\": it has labels, and isn't there".to_owned(),
        ),
        (
            format!("UPDATE record SET failed_of = 'other' WHERE kind = 0 AND id = '{failed}'"),
            format!("task \"{failed}\": its column failed_of and its body differ"),
        ),
        (
            format!("UPDATE record SET error = NULL WHERE kind = 0 AND id = '{failed}'"),
            format!("task \"{failed}\": its column error and its body differ"),
        ),
    ] {
        let copy = folder.path().join("copy.db");
        std::fs::copy(&path, &copy).unwrap();
        assert!(Connection::open(&copy).unwrap().execute(&damage, []).unwrap() > 0, "{damage}");
        assert_eq!(check(&copy).unwrap().problems, [problem], "{damage}");
    }
}

/// Takes from a file what the sixth version of the schema has added.
pub(super) fn back_to_the_fifth_schema(path: &Path) {
    let file = Connection::open(path).unwrap();
    file.execute_batch(
        "DROP INDEX failed; DROP INDEX execution_by_error;
         ALTER TABLE record DROP COLUMN failed_at; ALTER TABLE record DROP COLUMN failed_of;
         ALTER TABLE record DROP COLUMN failed_step;
         UPDATE record SET error = NULL WHERE kind = 0;
         CREATE INDEX execution_by_error ON record (error, list_at, id) WHERE error IS NOT NULL;
         DROP TRIGGER record_leaves_no_label; ALTER TABLE label RENAME TO of_both;
         CREATE TABLE label (name TEXT NOT NULL, value TEXT NOT NULL, at INTEGER NOT NULL, id TEXT NOT NULL,
             row INTEGER NOT NULL, PRIMARY KEY (name, value, at, id)) STRICT, WITHOUT ROWID;
         INSERT INTO label SELECT name, value, at, id, row FROM of_both WHERE kind = 1;
         DROP TABLE of_both; CREATE INDEX label_by_row ON label (row);
         CREATE TRIGGER record_leaves_no_label AFTER DELETE ON record WHEN old.kind = 1 BEGIN
             DELETE FROM label WHERE row = old.row;
         END;
         PRAGMA user_version = 5;",
    )
    .unwrap();
}
