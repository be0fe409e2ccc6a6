//! What the tests run against, and what only an account can show.

use std::io::Write;

use aws_config::{BehaviorVersion, SdkConfig};
use serde_json::Value;
use tickover_lambda::https_client;
use tickover_tests::emulator::{aws_config, endpoint};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// The variable in which `cargo xtask e2e --account` passes the account's number, and `--rehearse` the emulator's.
const ACCOUNT: &str = "TICKOVER_TEST_ACCOUNT";
/// The variable with an emulator's address.
const ENDPOINT: &str = "TICKOVER_TEST_ENDPOINT";
/// The variable in which `cargo xtask e2e --localstack` says that the emulator is one.
const LOCALSTACK: &str = "TICKOVER_TEST_LOCALSTACK";
/// The variable in which `cargo xtask e2e` passes a Python with boto3.
const PYTHON: &str = "TICKOVER_TEST_PYTHON";

/// What the tests run against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// `cargo xtask e2e`.
    Emulator,
    /// `cargo xtask e2e --localstack`.
    LocalStack,
    /// `cargo xtask e2e --rehearse`: an emulator, deployed as an account is.
    Rehearsal,
    /// `cargo xtask e2e --account`.
    Account,
}

impl Target {
    pub(crate) fn here() -> Self {
        match (std::env::var(ACCOUNT), std::env::var(ENDPOINT)) {
            (Err(_), _) if std::env::var(LOCALSTACK).is_ok() => Self::LocalStack,
            (Err(_), _) => Self::Emulator,
            (Ok(_), Ok(_)) => Self::Rehearsal,
            (Ok(_), Err(_)) => Self::Account,
        }
    }

    /// The emulator's address, if it is one.
    pub(crate) fn endpoint(self) -> Option<String> {
        (self != Self::Account).then(endpoint)
    }

    /// Whether a new project's worker is deployed too. Prints a line if it isn't.
    pub(crate) fn has_project(self) -> bool {
        let has = matches!(self, Self::Emulator | Self::LocalStack);
        if !has {
            say("a new project's worker: only emulators get one");
        }
        has
    }

    /// Whether reports by callback are taken. Prints a line if they aren't.
    pub(crate) fn has_callbacks(self) -> bool {
        let has = self != Self::LocalStack;
        if !has {
            say("callbacks: LocalStack's free edition has no HTTP API");
        }
        has
    }

    /// The configuration of the AWS SDK.
    pub(crate) async fn config(self) -> SdkConfig {
        if self != Self::Account {
            return aws_config().await;
        }
        aws_config::defaults(BehaviorVersion::latest()).http_client(https_client()).load().await
    }

    /// Whether this target shows what the check is about. Prints a line if it doesn't.
    pub(crate) fn shows(self, check: Check) -> bool {
        let (what, reason) = check.is_left_out();
        let is_shown = !self.leaves_out().contains(&check);
        if !is_shown {
            say(&format!("{what}: {reason}"));
        }
        is_shown
    }

    /// The checks that this target can't show.
    pub(crate) fn leaves_out(self) -> Vec<Check> {
        match self {
            Self::LocalStack => Check::ALL.to_vec(),
            Self::Emulator => Check::ALL.into_iter().filter(|check| *check != Check::Signatures).collect(),
            Self::Rehearsal => Check::ALL.into_iter().filter(|check| !check.is_rehearsed()).collect(),
            Self::Account => vec![],
        }
    }
}

/// Says what isn't checked. Not by `eprintln!`, which the test harness shows only for tests that fail.
fn say(what: &str) {
    std::io::stderr().write_all(format!("e2e: NOT CHECKED here: {what}\n").as_bytes()).unwrap();
}

/// What an emulator can't show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    Roles,
    FailedDeployment,
    SecondDeployment,
    Loops,
    Dashboard,
    Deletion,
    Signatures,
}

impl Check {
    pub(crate) const ALL: [Self; 7] = [
        Self::Roles,
        Self::FailedDeployment,
        Self::SecondDeployment,
        Self::Loops,
        Self::Dashboard,
        Self::Deletion,
        Self::Signatures,
    ];

    /// What isn't checked in an emulator, and why.
    pub(crate) fn is_left_out(self) -> (&'static str, &'static str) {
        match self {
            Self::Roles => (
                "AWS's own decision on each call of each role",
                "emulators enforce no permissions; the same table is compared with the deployed policies",
            ),
            Self::FailedDeployment => (
                "a first deployment that fails is undone and can be repeated",
                "it needs a system of its own, and a key that only AWS looks for",
            ),
            Self::SecondDeployment => ("a second deployment changes nothing", "it needs a system of its own"),
            Self::Loops => (
                "forty steps pass Lambda's detection of loops",
                "emulators don't count the loops of these functions, nor apply RecursiveLoop",
            ),
            Self::Dashboard => {
                ("the dashboard shows data", "emulators make no metrics of logs, and search for none")
            }
            Self::Deletion => (
                "a deleted system leaves only its table",
                "it needs a system of its own; `cargo xtask e2e` checks the deletion of the emulator's",
            ),
            Self::Signatures => ("an unsigned request is refused", "LocalStack answers it"),
        }
    }

    /// Whether a system of its own, deployed into an emulator, shows it in part.
    fn is_rehearsed(self) -> bool {
        match self {
            Self::Roles | Self::SecondDeployment | Self::Deletion | Self::Signatures => true,
            Self::FailedDeployment | Self::Loops | Self::Dashboard => false,
        }
    }
}

/// Calls AWS by `infra/tools/aws.py`: calls as `[service, operation, parameters]`, in boto3's names. Their answers.
pub(crate) async fn aws(calls: Vec<Value>) -> Vec<Value> {
    let mut python = python("aws.py", &[]);
    let mut child = python.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(Value::from(calls).to_string().as_bytes()).await.unwrap();
    drop(input);
    let ended = child.wait_with_output().await.unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}");
    serde_json::from_slice(&ended.stdout).unwrap()
}

/// A program of `infra/tools`, with its output captured.
pub(crate) fn python(program: &str, args: &[&str]) -> Command {
    let tools = concat!(env!("CARGO_MANIFEST_DIR"), "/../infra/tools/");
    let mut command = at_target(Command::new(python_path()));
    command.arg(format!("{tools}{program}")).args(args);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// SAM, in the folder of the templates.
pub(crate) fn sam(args: &[&str]) -> Command {
    let mut command = at_target(Command::new(std::path::Path::new(&python_path()).with_file_name("sam")));
    command.args(args).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../infra"));
    command
}

fn at_target(mut command: Command) -> Command {
    if let Some(endpoint) = Target::here().endpoint() {
        command.env("AWS_ENDPOINT_URL", endpoint);
    }
    command.stdin(std::process::Stdio::null());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    command
}

fn python_path() -> String {
    std::env::var(PYTHON).unwrap_or_else(|error| panic!("{PYTHON}: {error}. Run `cargo xtask e2e`"))
}
