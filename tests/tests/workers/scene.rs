//! A local server for one test, and the example workers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tickover_tests::process::{BOUND, Process};
use tokio::process::Command;
use tokio::time::{interval, timeout};

/// How often a test checks for what it waits for.
const CHECK_EVERY: Duration = Duration::from_millis(20);

/// The variables in which `cargo xtask workers` passes the Python with the libraries, and the folders of the compiled
/// TypeScript worker and of the generated client.
const PYTHON: &str = "TICKOVER_TEST_PYTHON";
const TYPESCRIPT: &str = "TICKOVER_TEST_TYPESCRIPT";
const CLIENT: &str = "TICKOVER_TEST_CLIENT";

/// The language of an example worker.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Language {
    Python,
    TypeScript,
}

impl Language {
    pub(crate) const ALL: [Self; 2] = [Self::Python, Self::TypeScript];

    /// The program of the example itself.
    fn example(self) -> Command {
        match self {
            Self::Python => program(variable(PYTHON), &repository("infra/examples/worker-python/worker.py")),
            Self::TypeScript => program("node".into(), &variable(TYPESCRIPT).join("dist/main.js")),
        }
    }

    /// A program of the tests, which gives the example's worker other handlers.
    fn handlers(self) -> Command {
        match self {
            Self::Python => {
                let mut command = program(variable(PYTHON), &repository("tests/tests/workers/handlers.py"));
                command.env("PYTHONPATH", repository("infra/examples/worker-python"));
                command
            }
            Self::TypeScript => {
                let mut command = program("node".into(), &repository("tests/tests/workers/handlers.mjs"));
                command.env("WORKER", variable(TYPESCRIPT).join("dist/worker.js"));
                command
            }
        }
    }
}

/// The calls of the generated client. The server's address is their argument.
pub(crate) fn generated_client() -> Command {
    program("node".into(), &variable(CLIENT).join("dist/calls.js"))
}

/// The program has none of this machine's variables, in which credentials may be.
fn program(interpreter: PathBuf, script: &Path) -> Command {
    let mut command = Command::new(interpreter);
    command.arg(script).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn variable(name: &str) -> PathBuf {
    match std::env::var_os(name) {
        Some(value) => value.into(),
        None => panic!("{name} is not set. This test needs the example workers: run `cargo xtask workers`"),
    }
}

/// A server that listens, and a folder that the handlers share with the test.
pub(crate) struct Scene {
    pub(crate) endpoint: String,
    language: Language,
    _server: Process,
    http: reqwest::Client,
    folder: TempDir,
}

impl Scene {
    pub(crate) async fn start(language: Language) -> Self {
        Self::start_at(language, "127.0.0.1:0").await
    }

    pub(crate) async fn start_at(language: Language, address: &str) -> Self {
        let server = Process::tickover(&["dev", "--listen", address]).expect("a server");
        let endpoint = server.address().await.expect("an address");
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        let folder = tempfile::tempdir().expect("a folder");
        Self { endpoint, language, _server: server, http, folder }
    }

    /// Starts the example as it is, on the queue `work`.
    pub(crate) fn example(&self) -> Process {
        start_example(self.language, &self.endpoint)
    }

    /// Starts the example's worker with the tests' handlers, on the queue `work`.
    pub(crate) fn worker(&self, lease_seconds: u32) -> Process {
        self.worker_at(&self.endpoint, lease_seconds, &[])
    }

    /// The same with another address of the server, and more variables.
    pub(crate) fn worker_at(&self, endpoint: &str, lease_seconds: u32, more: &[(&str, &str)]) -> Process {
        let mut command = self.language.handlers();
        command.args(["work", &lease_seconds.to_string()]);
        command.env("TICKOVER_ENDPOINT", endpoint).env("DIR", self.folder.path());
        Process::from_command(command.envs(more.iter().copied())).expect("a worker")
    }

    /// Schedules a task on the queue `work` and returns its id.
    pub(crate) async fn schedule(&self, kind: &str) -> String {
        let task = json!({"queue": "work", "kind": kind, "input": {"to": "ada"}, "retry": "fixed(3, 0s)"});
        let answer = self.post("tasks", &task).await;
        answer["task"]["id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Value {
        let request = self.http.post(format!("{}/v1/{path}", self.endpoint)).json(body);
        request.send().await.expect("an answer").json().await.expect("JSON")
    }

    pub(crate) async fn task(&self, id: &str) -> Value {
        let request = self.http.get(format!("{}/v1/tasks/{id}", self.endpoint));
        let answer: Value = request.send().await.expect("an answer").json().await.expect("JSON");
        answer["task"].clone()
    }

    /// Waits until a task satisfies the condition.
    pub(crate) async fn until(&self, id: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let mut looks = interval(CHECK_EVERY);
        let found = timeout(BOUND, async {
            loop {
                let task = self.task(id).await;
                if is_wanted(&task) {
                    return task;
                }
                looks.tick().await;
            }
        });
        let Ok(found) = found.await else {
            panic!("{:?}: {id} never got into the wanted state: {}", self.language, self.task(id).await)
        };
        found
    }

    pub(crate) async fn until_status(&self, id: &str, status: &str) -> Value {
        self.until(id, |task| task["status"] == status).await
    }

    /// A file of the folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes the file for which the handler `until-go` waits.
    pub(crate) fn go(&self) {
        std::fs::write(self.folder.path().join("go"), "").expect("a file");
    }

    /// Whether the handler `until-stopped` was stopped.
    pub(crate) fn was_stopped(&self) -> bool {
        self.folder.path().join("stopped").exists()
    }
}

/// Starts the example as it is, on the queue `work` of this server.
pub(crate) fn start_example(language: Language, endpoint: &str) -> Process {
    let mut command = language.example();
    Process::from_command(command.arg("work").env("TICKOVER_ENDPOINT", endpoint)).expect("a worker")
}

/// Waits until a worker has printed a line that starts so.
pub(crate) async fn says(worker: &Process, start: &str) -> String {
    worker.line(|line| line.starts_with(start)).await.expect("a line")
}

/// Checks that a worker has ended by itself without an error.
pub(crate) async fn ends_well(worker: &Process) {
    let ended = worker.ended().await.expect("an end");
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
}
