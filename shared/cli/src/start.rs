//! `tickover start`: starts an execution, and waits for its end if wished.

use std::collections::BTreeMap;
use std::process::ExitCode;

use reqwest::Method;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tickover_core::duration::Millis;
use tickover_core::execution::ExecutionStatus;
use tickover_core::id::{ExecutionId, QueueName, WorkflowName};
use tickover_core::limits::WAIT_MAX;
use tickover_service::ports::Clock as _;
use tickover_service::system::SystemClock;

use super::answer::{Execution, Single};
use super::show;
use crate::client::Client;
use crate::schedule::{label, name, read_json};
use crate::show::{print, print_json, say};

/// Options of `tickover start`. Durations are like `30s` or `1h 30m`.
#[derive(clap::Args, Debug)]
pub(crate) struct StartArgs {
    /// The workflow whose code is to run
    #[arg(value_parser = name(WorkflowName::parse))]
    workflow: WorkflowName,
    /// Its input as JSON; `-` reads it from standard input
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// Its id, which makes repeating the call harmless; random without it
    #[arg(long, value_parser = name(ExecutionId::parse))]
    id: Option<ExecutionId>,
    /// Where its workers are; `workflows` without it
    #[arg(long, value_parser = name(QueueName::parse))]
    queue: Option<QueueName>,
    /// A label; may be given several times
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// Any JSON, to be found again with it
    #[arg(long, value_name = "JSON")]
    memo: Option<String>,
    /// How long all its runs together may take
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
    /// How long each run may take
    #[arg(long, value_name = "DURATION")]
    run_timeout: Option<String>,
    /// How long the workflow's code for failures may take, known from the start: so it runs even if no worker takes
    /// the execution in time
    #[arg(long, value_name = "DURATION")]
    on_failure_timeout: Option<String>,
    /// How long to wait before a worker may take it
    #[arg(long, value_name = "DURATION")]
    delay: Option<String>,
    /// Fail if there is one of this id, instead of showing it
    #[arg(long, requires = "id")]
    reject_duplicate: bool,
    /// Wait so long for its end; the exit status then says whether it has a result
    #[arg(long, value_name = "DURATION", value_parser = span)]
    wait: Option<Millis>,
    /// Print the server's answer
    #[arg(long)]
    json: bool,
}

/// The request, in the API's words. What it accepts is the server's to say.
#[derive(Serialize)]
struct Request<'a> {
    workflow: &'a WorkflowName,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memo: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<&'a str, &'a str>,
    #[serde(flatten)]
    texts: BTreeMap<&'static str, &'a str>,
}

/// Starts the execution and prints it as it stands, at its end if that is waited for.
pub(crate) async fn run(args: StartArgs, client: &Client) -> anyhow::Result<ExitCode> {
    let texts = [
        ("id", args.id.as_ref().map(ExecutionId::as_str)),
        ("queue", args.queue.as_ref().map(QueueName::as_str)),
        ("execution_timeout", args.timeout.as_deref()),
        ("run_timeout", args.run_timeout.as_deref()),
        ("on_failure_timeout", args.on_failure_timeout.as_deref()),
        ("delay", args.delay.as_deref()),
        ("policy", args.reject_duplicate.then_some("reject_duplicate")),
    ];
    let request = Request {
        workflow: &args.workflow,
        input: args.input.as_deref().map(|text| read_json(text, "the input")).transpose()?,
        memo: args.memo.as_deref().map(|text| read_json(text, "the memo")).transpose()?,
        labels: args.labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect(),
        texts: texts.into_iter().filter_map(|(field, text)| Some((field, text?))).collect(),
    };
    let body = to_raw_value(&request)?;
    let mut answer: Single = client.call(Method::POST, &["executions"], &[], Some(&body)).await?;
    let mut execution = answer.execution()?;
    if let Some(wait) = args.wait {
        (answer, execution) = until_ended(answer, execution, wait, client).await?;
    }
    if args.json {
        print_json(answer.json())?;
    } else {
        print(&show::execution(&execution))?;
    }
    Ok(if args.wait.is_some() { outcome(&execution) } else { ExitCode::SUCCESS })
}

/// The execution at its end, or as it stands after so long.
async fn until_ended(
    mut answer: Single,
    mut execution: Execution,
    wait: Millis,
    client: &Client,
) -> anyhow::Result<(Single, Execution)> {
    let until = SystemClock.now().plus(wait);
    let id = execution.id.clone();
    while execution.status.is_live() {
        let left = until.since(SystemClock.now());
        if left.is_zero() {
            say(&format!("{id} hasn't ended after {wait}"));
            break;
        }
        // An answer takes as long as it is asked to, and no longer than the server allows.
        let parameters = [("wait", left.min(WAIT_MAX).to_string())];
        answer = client.call(Method::GET, &["executions", &id], &parameters, None).await?;
        execution = answer.execution()?;
    }
    Ok((answer, execution))
}

/// For scripts: a result is a success, anything else isn't.
fn outcome(execution: &Execution) -> ExitCode {
    match execution.status {
        ExecutionStatus::Completed => ExitCode::SUCCESS,
        ExecutionStatus::Pending
        | ExecutionStatus::Running
        | ExecutionStatus::Waiting
        | ExecutionStatus::Paused
        | ExecutionStatus::Failed
        | ExecutionStatus::TimedOut
        | ExecutionStatus::Cancelled => ExitCode::FAILURE,
    }
}

fn span(text: &str) -> Result<Millis, String> {
    Millis::parse(text).map_err(|error| error.to_string())
}
