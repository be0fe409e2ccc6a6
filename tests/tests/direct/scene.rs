//! A table, queues and parameters as `infra/core.yaml` makes them, for one test alone, and workers that use them.

use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;
use tickover::Client;
use tickover::client::aws::Aws;
use tickover::client::{TaskDescription, TaskHandle};
use tickover_dynamodb::Table;
use tickover_tests::emulator::{REGION, aws_config, endpoint, unique};
use tickover_tests::process::{Process, binary, until};
use tokio::process::Command;

/// A command that says that it runs, and waits until the test makes the file `go` or deletes its folder.
pub(crate) const UNTIL_GO: &str = r#"echo "$TICKOVER_TASK_ID" >> "$DIR/runs"
    while [ -d "$DIR" ] && [ ! -e "$DIR/go" ]; do sleep 0.05; done; echo done"#;

/// A deployment with the queue `emails`, and a folder that commands and tests share.
pub(crate) struct Scene {
    pub(crate) system: String,
    pub(crate) client: Client,
    pub(crate) folder: TempDir,
}

impl Scene {
    pub(crate) async fn start() -> Self {
        let system = unique("dir");
        Table::new(&system)
            .create(&aws_sdk_dynamodb::Client::new(&aws_config().await))
            .await
            .expect("a table");
        parameters(&system, env!("CARGO_PKG_VERSION")).await;
        create_queue(&format!("{system}-timers")).await;
        create_queue(&format!("{system}-work-emails")).await;
        let aws = Aws::of(&aws_config().await).expect("credentials");
        let core = aws.core(&system).await.expect("parameters");
        let client = core.client().await.expect("a client");
        Self { system, client, folder: tempfile::tempdir().expect("a folder") }
    }

    /// Starts a worker of the queue `emails` that runs this script for each task.
    pub(crate) fn worker(&self, options: &[&str], script: &str) -> Process {
        self.worker_of("emails", options, script)
    }

    pub(crate) fn worker_of(&self, queue: &str, options: &[&str], script: &str) -> Process {
        let stack = ["--stack", &self.system, "work", queue, "--direct", "--wait", "1s"];
        let command = ["--", "sh", "-c", script];
        let mut tool = tool(&[&stack[..], options, &command].concat());
        Process::from_command(tool.env("DIR", self.folder.path())).expect("a worker")
    }

    /// Schedules a task on the queue `emails`.
    pub(crate) async fn schedule(&self, id: &str) -> TaskHandle<Value> {
        let task = self.client.task("send", json!({"to": id})).queue("emails").id(id);
        task.retry("fixed(3, 0s)").await.expect("a task")
    }

    /// How often a command has said that it runs.
    pub(crate) fn runs(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path("runs")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Makes the file for which the command waits.
    pub(crate) fn go(&self) {
        std::fs::write(self.path("go"), "").expect("a file");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// The tool with this emulator for all of AWS, and without the test's own variables.
pub(crate) fn tool(args: &[&str]) -> Command {
    let mut command = Command::new(binary("tickover"));
    at_emulator(&mut command).args(args);
    command
}

/// Sets the variables with which a program finds the emulator, and no others.
pub(crate) fn at_emulator(command: &mut Command) -> &mut Command {
    command.env_clear().envs([
        ("PATH", std::env::var("PATH").unwrap_or_default().as_str()),
        ("AWS_ENDPOINT_URL", &endpoint()),
        ("AWS_REGION", REGION),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_CONFIG_FILE", "/dev/null"),
        ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ])
}

pub(crate) async fn create_queue(name: &str) {
    let sqs = aws_sdk_sqs::Client::new(&aws_config().await);
    tickover_sqs::create_queue(&sqs, name, []).await.expect("a queue");
}

/// Makes the parameters that `infra/core.yaml` makes for workers.
pub(crate) async fn parameters(system: &str, version: &str) {
    let queue = |name: &str| format!("{}/000000000000/{system}-{name}", endpoint());
    for (name, value) in [
        ("queue-urls", queue("work-{name}").as_str()),
        ("timers", &queue("timers")),
        ("events", "none"),
        ("due-shards", "2"),
        ("retention", "7d"),
        ("trace", "off"),
        ("lists", "failed"),
        ("callback-secret", "none"),
        ("callback-url", "none"),
        ("version", version),
    ] {
        parameter(system, name, value).await;
    }
}

/// Makes a parameter in the region of the tests. No crate of the AWS SDK is needed for that.
pub(crate) async fn parameter(system: &str, name: &str, value: &str) {
    let name = format!("/tickover/{system}/{name}");
    let body = json!({"Name": name, "Value": value, "Type": "String", "Overwrite": true});
    let scope = format!("test/20260101/{REGION}/ssm/aws4_request");
    let authorization = format!("AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0");
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let request = http.post(endpoint()).header("x-amz-target", "AmazonSSM.PutParameter");
    let request = request.header("content-type", "application/x-amz-json-1.1").body(body.to_string());
    let answer = request.header("authorization", authorization).send().await.expect("an answer");
    assert!(answer.status().is_success(), "{answer:?}");
}

/// Waits until a task satisfies the condition.
pub(crate) async fn until_task(
    task: &TaskHandle<Value>,
    is_wanted: impl Fn(&TaskDescription) -> bool,
) -> TaskDescription {
    until("a task's state", async || {
        let found = task.describe().await.expect("a task");
        is_wanted(&found).then_some(found)
    })
    .await
}
