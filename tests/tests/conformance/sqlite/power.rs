//! A power failure: what was written after the last acknowledged commit is lost or torn.
//!
//! `SQLite` syncs the log before a commit returns (`synchronous` is `FULL`, which a test of the crate checks). So after a power
//! failure, the disk has at least the bytes of the log that were there at the last acknowledgement. What was written
//! later may be there, missing, or damaged, in any mixture.

use std::fs;
use std::path::{Path, PathBuf};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tickover_service::ports::Store;
use tickover_service::tasks::schedule::ScheduleRequest;
use tickover_sqlite::SqliteStore;
use tickover_tests::scene::{request, task_id};

use super::service;

/// Power failures tried.
const FAILURES: u64 = 60;
/// Tasks that are acknowledged, and those that are written after that.
const ACKNOWLEDGED: usize = 12;
const LATER: usize = 12;
/// Too large for a record: such a payload is an item of its own.
const LARGE: usize = 3_000;

fn log_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// A task with an idempotency key: a commit of two records. Every third has a payload of its own.
fn numbered(number: usize) -> ScheduleRequest {
    let input = if number.is_multiple_of(3) { "x".repeat(LARGE) } else { "small".to_owned() };
    ScheduleRequest {
        id: Some(task_id(&format!("t-{number}"))),
        idempotency_key: Some(format!("key-{number}")),
        ..request("work", None, Some(&format!("{input:?}")))
    }
}

#[tokio::test]
async fn after_a_power_failure_every_acknowledged_commit_is_there_and_none_is_there_by_half() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.db");
    let store = SqliteStore::file(&path).unwrap();
    let service = service(store);
    for number in 0..ACKNOWLEDGED {
        service.schedule(numbered(number)).await.unwrap();
    }
    let (database, synced) = (fs::read(&path).unwrap(), fs::read(log_of(&path)).unwrap());
    for number in ACKNOWLEDGED..ACKNOWLEDGED + LATER {
        service.schedule(numbered(number)).await.unwrap();
    }
    let written = fs::read(log_of(&path)).unwrap();
    assert!(written.starts_with(&synced), "the log has begun again: make fewer commits");
    let mut survived = 0;
    for seed in 0..FAILURES {
        let mut dice = StdRng::seed_from_u64(seed);
        let mut log = written.clone();
        log.truncate(dice.random_range(synced.len()..=written.len()));
        // Sectors that were to be written and weren't, or only by half.
        for sector in log[synced.len()..].chunks_mut(512) {
            if seed % 2 == 1 && dice.random_bool(0.2) {
                let torn_at = dice.random_range(0..sector.len());
                sector[torn_at..].fill(0);
            }
        }
        let copy = folder.path().join(format!("copy-{seed}.db"));
        fs::write(&copy, &database).unwrap();
        fs::write(log_of(&copy), &log).unwrap();
        survived += check(&copy).await;
    }
    assert!(survived > 0 && survived < FAILURES * LATER as u64, "of the later ones {survived}");
}

/// What is there after the failure: how many of the commits that weren't acknowledged.
async fn check(path: &Path) -> u64 {
    let store = SqliteStore::file(path).unwrap();
    let database = rusqlite::Connection::open(path).unwrap();
    let integrity: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(integrity, "ok");
    let keys: i64 =
        database.query_row("SELECT count(*) FROM record WHERE kind = 4", [], |row| row.get(0)).unwrap();
    let mut tasks = 0;
    for number in 0..ACKNOWLEDGED + LATER {
        let Some(task) = (&store as &dyn Store).task(&task_id(&format!("t-{number}"))).await.unwrap() else {
            assert!(number >= ACKNOWLEDGED, "task {number} was acknowledged and is lost");
            continue;
        };
        if let Some(blob) = task.input.as_ref().and_then(|input| input.blob()) {
            assert!(store.blob(&blob.id).await.unwrap().is_some(), "task {number} has lost its payload");
        }
        tasks += 1;
    }
    assert_eq!(keys, tasks, "a task without its key, or a key without its task");
    u64::try_from(tasks).unwrap() - ACKNOWLEDGED as u64
}
