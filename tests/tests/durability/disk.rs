//! A disk that takes no more bytes while the server runs, and takes them again later.

use std::fs;

use reqwest::StatusCode;
use serde_json::{Value, json};
use tempfile::TempDir;
use tickover_tests::process::{BOUND, Process, binary};
use tokio::process::Command;
use tokio::time::timeout;

/// Bytes that fit onto the disk after it is made small: a few tasks.
const ROOM: u64 = 50_000;
/// Calls that are refused, before the disk is large again.
const REFUSALS: usize = 40;

struct Scene {
    server: Process,
    address: String,
    http: reqwest::Client,
    folder: TempDir,
}

impl Scene {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (server, address) = serve(&folder).await;
        Self { server, address, http: reqwest::Client::new(), folder }
    }

    /// Limits the size of each file that the server writes, as a full disk does.
    async fn limit(&self, bytes: &str) {
        let limit = format!("--fsize={bytes}:");
        let set = Command::new("prlimit").args(["--pid", &self.server.pid().to_string(), &limit]).status();
        assert!(set.await.unwrap().success());
    }

    async fn schedule(&self, task: &Value) -> StatusCode {
        let request = self.http.post(format!("{}/v1/tasks", self.address)).json(task);
        request.send().await.unwrap().status()
    }

    async fn get(&self, path: &str) -> Value {
        self.http.get(format!("{}{path}", self.address)).send().await.unwrap().json().await.unwrap()
    }

    /// Asks until the answer is this one.
    async fn until(&self, path: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let found = timeout(BOUND, async {
            loop {
                let answer = self.get(path).await;
                if is_wanted(&answer) {
                    return answer;
                }
            }
        });
        found.await.unwrap_or_else(|_| panic!("{path} never was as wanted; {}", self.server.output_text()))
    }

    /// The lines of the log, without those about tasks that timed out.
    fn log(&self) -> Vec<String> {
        let stderr = self.server.stderr();
        let of_log = stderr.lines().filter(|line| line.contains("ERROR") || line.contains("WARN"));
        of_log.filter(|line| !line.contains("TaskTimedOut")).map(str::to_owned).collect()
    }
}

fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).display().to_string()
}

/// A server whose writes beyond the limit fail, instead of ending it.
async fn serve(folder: &TempDir) -> (Process, String) {
    let mut command = Command::new("sh");
    command.args(["-c", r#"trap "" XFSZ; exec "$0" "$@""#]).arg(binary("tickover"));
    command.args(["dev", "--listen", "127.0.0.1:0", "--tick", "100ms", "--data", &path(folder, "data.db")]);
    let server = Process::from_command(&mut command).unwrap();
    let address = server.address().await.unwrap();
    (server, address)
}

fn task(number: usize) -> Value {
    // Its input is an item of its own.
    json!({"id": format!("t-{number}"), "queue": "q", "kind": "k", "input": "x".repeat(5_000)})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_calls_says_so_once_and_loses_nothing_that_was_acknowledged() {
    let scene = Scene::start().await;
    let mut acknowledged = 0;
    while acknowledged < 5 {
        assert_eq!(scene.schedule(&task(acknowledged)).await, StatusCode::CREATED);
        acknowledged += 1;
    }
    // Timers and ticks try to write while the disk is full.
    for number in 0..20 {
        let late = json!({"id": format!("late-{number}"), "queue": "late", "kind": "k", "timeout": "1s"});
        assert_eq!(scene.schedule(&late).await, StatusCode::CREATED);
    }
    assert_eq!(scene.get("/healthz").await, json!({"status": "ok"}));

    let log_bytes = fs::metadata(path(&scene.folder, "data.db-wal")).unwrap().len();
    scene.limit(&(log_bytes + ROOM).to_string()).await;
    let mut refused = 0;
    let mut next = acknowledged;
    let mut kept: Vec<usize> = (0..acknowledged).collect();
    while refused < REFUSALS {
        match scene.schedule(&task(next)).await {
            StatusCode::CREATED => kept.push(next),
            StatusCode::SERVICE_UNAVAILABLE => refused += 1,
            other => panic!("{other}: {}", scene.server.output_text()),
        }
        next += 1;
    }
    let health = scene.get("/healthz").await;
    assert_eq!(health["status"], "degraded");
    assert!(health["storage"].as_str().unwrap().starts_with("the disk "), "{health}");
    assert_eq!(scene.log().len(), 1, "{}", scene.server.output_text());
    assert!(scene.log()[0].contains("ERROR"), "{}", scene.server.output_text());

    // Nobody writes, and the trouble ends all the same.
    scene.limit("unlimited").await;
    scene.until("/healthz", |health| *health == json!({"status": "ok"})).await;
    assert_eq!(scene.log().len(), 2, "{}", scene.server.output_text());
    assert!(scene.log()[1].contains("the disk takes commits again"), "{}", scene.server.output_text());
    for number in 0..20 {
        let path = format!("/v1/tasks/late-{number}");
        scene.until(&path, |answer| answer["task"]["status"] == "timed_out").await;
    }
    assert_eq!(scene.schedule(&task(next)).await, StatusCode::CREATED);
    kept.push(next);
    assert_eq!(scene.log().len(), 2, "{}", scene.server.output_text());

    // All of it is on the disk, not only in the process.
    scene.server.kill().await.unwrap();
    let (server, address) = serve(&scene.folder).await;
    let scene = Scene { server, address, ..scene };
    for number in kept {
        let task = scene.get(&format!("/v1/tasks/t-{number}")).await;
        assert_eq!(task["task"]["status"], "pending", "{number}: {task}");
    }
}
