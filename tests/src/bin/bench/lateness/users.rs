//! The users of a server: the caller that schedules tasks, and the workers, all over HTTP.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use tickover_core::duration::Millis;
use tickover_core::time::Timestamp;
use tickover_service::Service;
use tokio::task::JoinSet;

/// One entry for each worker of a queue: how many tasks it asks for in one call.
const WORKERS: [usize; 8] = [1, 1, 1, 2, 3, 5, 10, 10];
const BATCH: usize = 50;

/// An attempt that a worker has received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// When the worker received it.
    pub(super) at: Timestamp,
    /// When the next attempt may start, as the answer to the failure said.
    pub(super) again_at: Option<Timestamp>,
}

type Attempts = Arc<Mutex<BTreeMap<(String, u32), Seen>>>;

/// Callers of one server.
#[derive(Clone)]
pub(super) struct Users {
    http: reqwest::Client,
    base: String,
    service: Service,
}

impl Users {
    /// Users of the server at this address. They use the service behind it only for its clock and its records.
    pub(super) fn new(base: &str, service: &Service) -> Result<Self> {
        // The server is on this machine: no proxy is used.
        let http = reqwest::Client::builder().no_proxy().build()?;
        Ok(Self { http, base: base.to_owned(), service: service.clone() })
    }

    pub(super) fn service(&self) -> &Service {
        &self.service
    }

    pub(super) fn now(&self) -> Timestamp {
        self.service.now()
    }

    /// Schedules tasks on a queue. `field` names the setting that gets the span: the first task gets `first`, the last
    /// one `first` plus `spread`. Returns the ids, and when each task may start.
    pub(super) async fn schedule(
        &self,
        queue: &str,
        count: usize,
        first: Millis,
        spread: Millis,
        field: &str,
    ) -> Result<BTreeMap<String, Option<Timestamp>>> {
        let mut scheduled = BTreeMap::new();
        let numbers: Vec<usize> = (0..count).collect();
        for lot in numbers.chunks(BATCH) {
            let tasks = lot.iter().map(|number| {
                let span_ms = first.as_u64() + spread.as_u64() * (*number as u64) / (count as u64).max(1);
                let span = match field {
                    "retry" => json!({ "max_attempts": 2, "delay": span_ms }),
                    _ => json!(span_ms),
                };
                json!({ "id": format!("{queue}-{number}"), "queue": queue, "kind": "work", field: span })
            });
            let body = json!({ "tasks": tasks.collect::<Vec<_>>() });
            let answer = self.post("/v1/tasks/batch", &body).await?;
            for result in answer["results"].as_array().context("results")? {
                let task = &result["task"];
                let id = task["id"].as_str().with_context(|| format!("not scheduled: {result}"))?;
                scheduled.insert(id.to_owned(), instant(&task["available_at"]));
            }
        }
        Ok(scheduled)
    }

    /// Runs workers on these queues until then. They complete what they get, except for first attempts of tasks with
    /// another attempt left, which they fail.
    pub(super) async fn work_until(
        &self,
        queues: &[&str],
        until: Timestamp,
    ) -> Result<BTreeMap<(String, u32), Seen>> {
        let attempts = Attempts::default();
        let mut workers = JoinSet::new();
        for queue in queues {
            for max in WORKERS {
                let (users, attempts, queue) = (self.clone(), Arc::clone(&attempts), (*queue).to_owned());
                workers.spawn(async move { users.work(&queue, max, &attempts).await });
            }
        }
        tokio::select! {
            () = self.service.clock().sleep_until(until) => {}
            // A worker ends only if something is wrong.
            ended = workers.join_next() => if let Some(ended) = ended { ended??; },
        }
        workers.shutdown().await;
        Ok(attempts.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    async fn work(&self, queue: &str, max: usize, attempts: &Attempts) -> Result<()> {
        loop {
            let body = json!({ "worker": "bench", "max": max, "wait": "20s" });
            let mut answer = self.post(&format!("/v1/queues/{queue}/claim"), &body).await?;
            let at = self.now();
            let tasks = answer["tasks"].take();
            let reports = tasks.as_array().context("tasks")?.iter().map(|task| async move {
                let attempt = u32::try_from(task["attempt"].as_u64().unwrap_or(0))?;
                let id = task["id"].as_str().context("an id")?.to_owned();
                let seen = Seen { at, again_at: None };
                attempts.lock().unwrap_or_else(PoisonError::into_inner).insert((id.clone(), attempt), seen);
                let again_at = self.report(&id, attempt, queue == "retries", &task["lease"]).await?;
                let seen = Seen { at, again_at };
                attempts.lock().unwrap_or_else(PoisonError::into_inner).insert((id, attempt), seen);
                anyhow::Ok(())
            });
            for reported in futures::future::join_all(reports).await {
                reported?;
            }
        }
    }

    async fn report(&self, id: &str, attempt: u32, fails: bool, lease: &Value) -> Result<Option<Timestamp>> {
        if fails && attempt == 1 {
            let body = json!({ "lease": lease, "error": { "code": "first", "message": "as planned" } });
            let answer = self.post(&format!("/v1/tasks/{id}/fail"), &body).await?;
            return Ok(instant(&answer["task"]["available_at"]));
        }
        self.post(&format!("/v1/tasks/{id}/complete"), &json!({ "lease": lease })).await?;
        Ok(None)
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let answer = self.http.post(format!("{}{path}", self.base)).json(body).send().await?;
        let status = answer.status();
        let body: Value = answer.json().await?;
        if !status.is_success() {
            bail!("{path}: {status} {body}");
        }
        Ok(body)
    }
}

fn instant(value: &Value) -> Option<Timestamp> {
    value.as_str().and_then(Timestamp::parse_rfc3339)
}
