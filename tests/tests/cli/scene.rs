//! A local server for one test, and the actions of tests on it.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;
use tickover_tests::process::{Ended, Process, until};
use tokio::process::Command;

/// A server that listens, and a folder that scripts and tests share.
pub(crate) struct Scene {
    server: Process,
    pub(crate) endpoint: String,
    http: reqwest::Client,
    folder: TempDir,
}

impl Scene {
    /// Its tick comes once a minute, and late, as on AWS: no test here may depend on it.
    pub(crate) async fn start() -> Self {
        Self::start_in(&[]).await
    }

    /// The same with these variables in the server's environment.
    pub(crate) async fn start_in(environment: &[(&str, &str)]) -> Self {
        let mut server = Command::new(tickover_tests::process::binary("tickover"));
        server.args(["dev", "--listen", "127.0.0.1:0", "--tick-late", "40s"]);
        let server = Process::from_command(server.envs(environment.iter().copied())).expect("a server");
        let endpoint = server.address().await.expect("an address");
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        Self { server, endpoint, http, folder: tempfile::tempdir().expect("a folder") }
    }

    /// Schedules a task and returns its id.
    pub(crate) async fn schedule(&self, task: &Value) -> String {
        let answer = self.post("tasks", task).await;
        answer["task"]["id"]
            .as_str()
            .unwrap_or_else(|| panic!("{answer}; {}", self.server.output_text()))
            .to_owned()
    }

    /// Schedules a task of this kind on the queue `work`, without further options.
    pub(crate) async fn schedule_plain(&self, kind: &str) -> String {
        self.schedule(&json!({"queue": "work", "kind": kind})).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Value {
        let request = self.http.post(format!("{}/v1/{path}", self.endpoint)).json(body);
        request.send().await.expect("an answer").json().await.expect("JSON")
    }

    /// The server's description of a task, as text.
    pub(crate) async fn text(&self, id: &str) -> String {
        let request = self.http.get(format!("{}/v1/tasks/{id}", self.endpoint));
        request.send().await.expect("an answer").text().await.expect("text")
    }

    pub(crate) async fn task(&self, id: &str) -> Value {
        let answer: Value = serde_json::from_str(&self.text(id).await).expect("JSON");
        answer["task"].clone()
    }

    /// Waits until a task satisfies the condition.
    pub(crate) async fn until(&self, id: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        until(&format!("a state of {id}"), async || {
            let task = self.task(id).await;
            is_wanted(&task).then_some(task)
        })
        .await
    }

    pub(crate) async fn until_status(&self, id: &str, status: &str) -> Value {
        self.until(id, |task| task["status"] == status).await
    }

    /// Starts a worker of the queue `work` that runs this shell script, in which `$DIR` is the folder.
    pub(crate) fn worker(&self, options: &[&str], script: &str) -> Process {
        self.worker_of(&[options, &["--", "sh", "-c", script]].concat())
    }

    /// Starts a worker of the queue `work` with these options and this command.
    pub(crate) fn worker_of(&self, options: &[&str]) -> Process {
        let mut command = Command::new(tickover_tests::process::binary("tickover"));
        command.args(["--endpoint", &self.endpoint, "work", "work"]).args(options);
        command.env("DIR", self.folder.path());
        Process::from_command(&mut command).expect("a worker")
    }

    /// Runs a command of the tool to its end.
    pub(crate) async fn run(&self, args: &[&str]) -> Ended {
        let args = [&["--endpoint", &self.endpoint], args].concat();
        Process::tickover(&args).expect("a process").ended().await.expect("an end")
    }

    /// Writes a file into the folder; returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.to_str().expect("a path of text").to_owned()
    }

    /// Makes a file in the folder, for which a script waits.
    pub(crate) fn signal(&self, name: &str) {
        std::fs::write(self.folder.path().join(name), "").expect("a file");
    }

    /// Waits until a script has written this file, and reads it.
    pub(crate) async fn file(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        until(name, async || read_line(&path)).await
    }
}

/// A complete line: a script may still be writing it.
fn read_line(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    text.strip_suffix('\n').map(str::to_owned)
}

/// Waits until there is no process with this id.
pub(crate) async fn is_gone(pid: &str) {
    until("the end of a process", async || {
        // One that nobody has waited for yet is still listed, as `Z`.
        let probe = Command::new("ps").args(["-o", "stat=", "-p", pid]).output().await.expect("ps runs");
        (probe.stdout.is_empty() || probe.stdout.starts_with(b"Z")).then_some(())
    })
    .await;
}
