//! `tickover dev --data`, killed with SIGKILL at any moment or on a full disk, loses no task that it had acknowledged.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod disk;
mod files;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tickover_tests::process::Process;

/// Kills in a row on the same data.
const ROUNDS: usize = 4;
/// Concurrent schedulers when the process is killed.
const SCHEDULERS: usize = 4;
/// Acknowledgements after which it is killed, more in each round: so it dies at different moments.
const KILL_AFTER: usize = 7;

async fn start(data: &str) -> (Process, String) {
    let dev = Process::tickover(&["dev", "--listen", "127.0.0.1:0", "--data", data]).unwrap();
    let address = dev.address().await.unwrap();
    (dev, address)
}

/// Schedules until the server is gone; returns the ids it acknowledged.
async fn schedule_until_gone(
    http: reqwest::Client,
    address: String,
    prefix: String,
    acknowledged: Arc<AtomicUsize>,
) -> Vec<String> {
    let mut ids = Vec::new();
    for number in 0.. {
        let id = format!("{prefix}-{number}");
        // Every third task has a payload in an item of its own.
        let input = if number % 3 == 0 { "x".repeat(5_000) } else { "small".to_owned() };
        let body = json!({"queue": "durable", "kind": "work", "id": id, "input": input});
        let answer = http.post(format!("{address}/v1/tasks")).json(&body).send().await;
        match answer {
            Ok(answer) if answer.status() == 201 => {
                ids.push(id);
                acknowledged.fetch_add(1, Ordering::SeqCst);
            }
            Ok(answer) => panic!("{}", answer.status()),
            Err(_) => break,
        }
    }
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_loses_no_acknowledged_task() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("tickover.db").display().to_string();
    let http = reqwest::Client::new();
    let mut all = BTreeSet::new();
    for round in 0..ROUNDS {
        let (dev, address) = start(&data).await;
        let acknowledged = Arc::new(AtomicUsize::new(0));
        let schedulers: Vec<_> = (0..SCHEDULERS)
            .map(|scheduler| {
                let prefix = format!("{round}-{scheduler}");
                let count = acknowledged.clone();
                tokio::spawn(schedule_until_gone(http.clone(), address.clone(), prefix, count))
            })
            .collect();
        while acknowledged.load(Ordering::SeqCst) < KILL_AFTER * (round + 1) {
            assert!(schedulers.iter().all(|scheduler| !scheduler.is_finished()), "{}", dev.stderr());
            tokio::task::yield_now().await;
        }
        dev.kill().await.unwrap();
        for scheduler in schedulers {
            all.extend(scheduler.await.unwrap());
        }
    }
    assert!(all.len() >= ROUNDS * KILL_AFTER, "{}", all.len());

    let (dev, address) = start(&data).await;
    let mut left = all.clone();
    // Claiming shows more than describing: the queue lost all messages, and each task gets another hint.
    while !left.is_empty() {
        let claim = json!({"max": 10, "wait": "5s"});
        let answer =
            http.post(format!("{address}/v1/queues/durable/claim")).json(&claim).send().await.unwrap();
        let tasks: Value = answer.json().await.unwrap();
        let tasks = tasks["tasks"].as_array().unwrap().clone();
        assert!(!tasks.is_empty(), "these were acknowledged and are gone: {left:?}");
        for task in tasks {
            let id = task["id"].as_str().unwrap();
            let length = task["input"].as_str().unwrap().len();
            assert!(length == 5 || length == 5_000, "{id}: {length}");
            let complete = json!({"lease": task["lease"], "output": 1});
            let done =
                http.post(format!("{address}/v1/tasks/{id}/complete")).json(&complete).send().await.unwrap();
            assert_eq!(done.status(), 200);
            left.remove(id);
        }
    }
    let ended = dev.interrupt().await;
    ended.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_that_passes_while_the_server_is_dead_fires_when_it_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("tickover.db").display().to_string();
    let http = reqwest::Client::new();
    let (dev, address) = start(&data).await;
    let body = json!({"queue": "q", "kind": "work", "id": "late", "timeout": "300ms"});
    let answer = http.post(format!("{address}/v1/tasks")).json(&body).send().await.unwrap();
    assert_eq!(answer.status(), 201);
    dev.kill().await.unwrap();
    let (_dev, address) = start(&data).await;
    for _ in 0..10_000 {
        let answer = http.get(format!("{address}/v1/tasks/late")).send().await.unwrap();
        let task: Value = answer.json().await.unwrap();
        if task["task"]["status"] == "timed_out" {
            assert_eq!(task["task"]["timeout_kind"], "schedule_to_close");
            return;
        }
    }
    panic!("never timed out");
}
