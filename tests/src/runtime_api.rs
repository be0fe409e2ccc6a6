//! The Lambda Runtime API, so that tests run a real function binary as Lambda does: it starts with Lambda's
//! environment, asks for its next event, and posts its answer.
//!
//! One [`Function`] is one sandbox: it handles one event at a time. Further events wait in a queue.

mod server;

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use anyhow::Result;
use serde::Deserialize;
use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;

use crate::emulator::REGION;
use crate::process::{BOUND, Process, binary};
use server::Server;

/// How long a function may work on one event of [`Function::invoke`]; the event carries this deadline.
pub const INVOKE_BOUND: Duration = BOUND;

/// The variables that Lambda sets beside the function's own configuration.
const FIXED_ENVIRONMENT: &[(&str, &str)] = &[
    ("AWS_ACCESS_KEY_ID", "test"),
    ("AWS_SECRET_ACCESS_KEY", "test"),
    ("AWS_REGION", REGION),
    ("AWS_DEFAULT_REGION", REGION),
    ("AWS_EXECUTION_ENV", "AWS_Lambda_provided.al2023"),
    ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256"),
    ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
    ("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand"),
    ("AWS_LAMBDA_LOG_STREAM_NAME", "2026/01/01/[$LATEST]0123456789abcdef0123456789abcdef"),
    ("LAMBDA_TASK_ROOT", "/var/task"),
    ("LANG", "en_US.UTF-8"),
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ("TZ", ":UTC"),
    ("_HANDLER", "bootstrap"),
];

/// The error that a function or Lambda itself reports instead of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FunctionError {
    /// The function's own type, or Lambda's `Sandbox.Timedout` or `Runtime.ExitError`.
    pub error_type: String,
    pub error_message: String,
}

impl Display for FunctionError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.error_type, self.error_message)
    }
}

impl std::error::Error for FunctionError {}

impl FunctionError {
    fn new(error_type: &str, error_message: impl Into<String>) -> Self {
        Self { error_type: error_type.to_owned(), error_message: error_message.into() }
    }
}

/// One of our function binaries, running as in one of Lambda's sandboxes. Dropping it kills it.
#[derive(Debug)]
pub struct Function {
    server: Server,
    process: Process,
}

impl Function {
    /// Starts the binary with Lambda's environment and `env`, and without the test's environment. `env` has to say
    /// where AWS is: `("AWS_ENDPOINT_URL", &endpoint())`. Doesn't wait until the function is ready.
    pub async fn start(binary_name: &str, env: &[(&str, &str)]) -> Result<Self> {
        Self::from_command(Command::new(binary(binary_name)), binary_name, env).await
    }

    /// The same with any binary, as a function of this name.
    pub async fn from_command(mut command: Command, name: &str, env: &[(&str, &str)]) -> Result<Self> {
        let server = Server::start(name).await?;
        command.env_clear().envs(FIXED_ENVIRONMENT.iter().copied());
        command.env("AWS_LAMBDA_RUNTIME_API", server.address().to_string());
        command
            .env("AWS_LAMBDA_FUNCTION_NAME", name)
            .env("AWS_LAMBDA_LOG_GROUP_NAME", format!("/aws/lambda/{name}"));
        let process = Process::from_command(command.envs(env.iter().copied()))?;
        Ok(Self { server, process })
    }

    /// Invokes it with one event and waits for its answer, at most for [`INVOKE_BOUND`].
    pub async fn invoke(&self, event: Value) -> Result<Value, FunctionError> {
        self.invoke_within(event, INVOKE_BOUND).await
    }

    /// The same with another time limit, which the function gets as its event's deadline. As on Lambda, a function that
    /// exceeds it is killed.
    pub async fn invoke_within(&self, event: Value, limit: Duration) -> Result<Value, FunctionError> {
        let answer = async {
            tokio::select! {
                // An answer counts, even if the function ended right after it.
                biased;
                Ok(answer) = self.server.queue_event(&event, limit) => answer,
                error = self.exit_error() => Err(error),
            }
        };
        if let Ok(answer) = timeout(limit, answer).await {
            return answer;
        }
        // An error means that it is gone already.
        drop(self.kill().await);
        Err(FunctionError::new("Sandbox.Timedout", format!("timed out after {limit:?}; {}", self.logs())))
    }

    /// Waits until the function asks for its first event, and returns `None`; or until its start fails.
    pub async fn init_error(&self) -> Option<FunctionError> {
        let init = async {
            tokio::select! {
                biased;
                init = self.server.init() => init.err(),
                error = self.exit_error() => Some(error),
            }
        };
        timeout(BOUND, init).await.unwrap_or_else(|_| {
            Some(FunctionError::new(
                "Sandbox.Timedout",
                format!("no first event in {BOUND:?}; {}", self.logs()),
            ))
        })
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Kills the sandbox, as a crash of its machine would.
    pub async fn kill(&self) -> Result<()> {
        self.process.kill().await.map(drop)
    }

    /// Its log so far.
    pub fn logs(&self) -> String {
        self.process.output_text()
    }

    /// The first line on its standard output, printed already or later, that `is_wanted` accepts. Only metrics are
    /// there: the log is on standard error.
    pub async fn line(&self, is_wanted: impl Fn(&str) -> bool) -> Result<String> {
        self.process.line(is_wanted).await
    }

    /// Its standard output so far.
    pub fn stdout(&self) -> String {
        self.process.stdout()
    }

    /// Its standard error so far.
    pub fn stderr(&self) -> String {
        self.process.stderr()
    }

    /// Waits for the end of the process, whatever its cause.
    async fn exit_error(&self) -> FunctionError {
        let status = match self.process.end().await {
            Some(status) => status.to_string(),
            None => "an unknown status".to_owned(),
        };
        FunctionError::new(
            "Runtime.ExitError",
            format!("Runtime exited with error: {status}; {}", self.logs()),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use serde_json::json;

    use super::*;

    /// A small runtime: it answers `{"answer": x}` with x, fails with the text x on `{"fail": x}`, ends its process on
    /// `{"exit": n}`, and never answers `{"hang": 1}`.
    const RUNTIME: &str = r"
import json, os, signal, sys, urllib.request
base = 'http://' + os.environ['AWS_LAMBDA_RUNTIME_API'] + '/2018-06-01/runtime/'
def post(path, value):
    urllib.request.urlopen(urllib.request.Request(base + path, json.dumps(value).encode(), method='POST'))
if os.environ.get('BROKEN'):
    post('init/error', {'errorType': 'Config', 'errorMessage': os.environ['BROKEN'], 'stackTrace': []})
    sys.exit(1)
while True:
    with urllib.request.urlopen(base + 'invocation/next') as response:
        event, id = json.load(response), response.headers['Lambda-Runtime-Aws-Request-Id']
        assert int(response.headers['Lambda-Runtime-Deadline-Ms']) > 1_700_000_000_000
    print('event', id, flush=True)
    if 'answer' in event: post(f'invocation/{id}/response', event['answer'])
    elif 'fail' in event: post(f'invocation/{id}/error', {'errorType': 'Fail', 'errorMessage': event['fail']})
    elif 'exit' in event: sys.exit(event['exit'])
    else: signal.pause()
";

    async fn function(env: &[(&str, &str)]) -> Function {
        // Found before the environment is cleared.
        let python = Command::new("python3")
            .args(["-c", "import sys; print(sys.executable)"])
            .stderr(Stdio::null())
            .output();
        let python = String::from_utf8(python.await.expect("python3").stdout).expect("a path");
        let mut command = Command::new(python.trim());
        command.args(["-c", RUNTIME]);
        Function::from_command(command, "tickover-test", env).await.expect("starts")
    }

    #[tokio::test]
    async fn events_are_answered_one_after_the_other() {
        let function = function(&[]).await;
        assert_eq!(function.init_error().await, None);
        let (one, two) = tokio::join!(
            function.invoke(json!({"answer": {"deep": [1, null]}})),
            function.invoke(json!({"answer": 2})),
        );
        assert_eq!((one, two), (Ok(json!({"deep": [1, null]})), Ok(json!(2))));
    }

    #[tokio::test]
    async fn an_error_leaves_the_function_alive_and_an_exit_does_not() {
        let function = function(&[]).await;
        let failed = function.invoke(json!({"fail": "no such queue"})).await;
        assert_eq!(failed, Err(FunctionError::new("Fail", "no such queue")));
        assert_eq!(function.invoke(json!({"answer": 1})).await, Ok(json!(1)));

        for _ in 0..2 {
            let error = function.invoke(json!({"exit": 3})).await.expect_err("no answer");
            assert_eq!(error.error_type, "Runtime.ExitError");
            assert!(error.error_message.contains("exit status: 3"), "{error}");
        }
    }

    #[tokio::test]
    async fn an_overrun_deadline_kills_the_function() {
        let function = function(&[]).await;
        assert_eq!(function.init_error().await, None);
        let error = function.invoke_within(json!({"hang": 1}), Duration::from_millis(300)).await;
        assert_eq!(error.expect_err("no answer").error_type, "Sandbox.Timedout");
        let error = function.invoke(json!({"answer": 1})).await.expect_err("it is gone");
        assert_eq!(error.error_type, "Runtime.ExitError");
    }

    #[tokio::test]
    async fn a_function_that_cannot_start_says_why() {
        let function = function(&[("BROKEN", "no table")]).await;
        assert_eq!(function.init_error().await, Some(FunctionError::new("Config", "no table")));
    }
}
