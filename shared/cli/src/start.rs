//! `tickover start`: starts an execution, and waits for its end with `--wait`.

use std::process::ExitCode;

use tickover::Client;
use tickover_core::duration::Millis;
use tickover_core::execution::ExecutionStatus;
use tickover_core::execution::command::StartPolicy;
use tickover_core::id::{EventId, EventName, ExecutionId, QueueName, WorkflowName};
use tickover_core::limits::WAIT_MAX;
use tickover_service::ports::Clock as _;
use tickover_service::system::SystemClock;
use tickover_wire::answer::ExecutionView;
use tickover_wire::request::{FirstEvent, StartRequest};

use crate::argument::{self, duration, label, name};
use crate::flow::FlowArgs;
use crate::{execution, show};

/// After this long without a worker, `--wait` says so.
const UNTAKEN_AFTER: Millis = Millis::from_secs(2);

/// Options of `tickover start`. Durations are like `30s` or `1h 30m`.
#[derive(clap::Args, Debug)]
pub(crate) struct StartArgs {
    /// The workflow to run
    #[arg(value_parser = name(WorkflowName::parse))]
    workflow: WorkflowName,
    /// Its input as JSON; `-` reads it from standard input
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// The execution's id; repeating the call with an id is idempotent; random by default
    #[arg(long, value_parser = name(ExecutionId::parse))]
    id: Option<ExecutionId>,
    /// The queue of its workers; `workflows` by default
    #[arg(long, value_parser = name(QueueName::parse))]
    queue: Option<QueueName>,
    /// A label; may be repeated
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// Any JSON, stored with the execution
    #[arg(long, value_name = "JSON")]
    memo: Option<String>,
    /// An event for it, with its payload as JSON. If the execution is there already, by its id or its unique key, the event
    /// is sent to it
    #[arg(long, value_name = "NAME[=JSON]", value_parser = first_event)]
    event: Option<FirstEvent>,
    /// The event's own id; repeating the call with an id is idempotent
    #[arg(long, requires = "event", value_parser = name(EventId::parse))]
    event_id: Option<EventId>,
    /// How long all its runs together may take
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
    /// How long each run may take
    #[arg(long, value_name = "DURATION")]
    run_timeout: Option<String>,
    /// How long the workflow's failure code may take. If it is known from the start, that code runs even if no worker
    /// claims the execution in time
    #[arg(long, value_name = "DURATION")]
    on_failure_timeout: Option<String>,
    /// How long to wait before a worker may claim it
    #[arg(long, value_name = "DURATION")]
    delay: Option<String>,
    #[command(flatten)]
    flow: FlowArgs,
    /// Fail if an execution with this id exists, instead of showing it
    #[arg(long, requires = "id")]
    reject_duplicate: bool,
    /// Wait this long for its end; the exit status then says whether it completed
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    wait: Option<Millis>,
    /// Print the server's answer
    #[arg(long)]
    json: bool,
}

/// Starts the execution, waits if asked to, and prints it.
pub(crate) async fn run(args: StartArgs, client: &Client) -> anyhow::Result<ExitCode> {
    let (wait, as_json) = (args.wait, args.json);
    let mut execution = client.api().start(&request(args)?).await?.execution;
    if let Some(wait) = wait {
        execution = until_ended(execution, wait, client).await?;
    }
    if as_json {
        show::answer(&execution)?;
    } else {
        show::print(&execution::show::execution(&execution))?;
    }
    // For scripts: the exit status is 0 only if it completed.
    let has_failed = wait.is_some() && execution.status != ExecutionStatus::Completed;
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn request(args: StartArgs) -> anyhow::Result<StartRequest> {
    Ok(StartRequest {
        id: args.id,
        queue: args.queue,
        input: argument::json(args.input.as_deref(), "the input")?,
        labels: argument::labels(args.labels),
        memo: argument::json(args.memo.as_deref(), "the memo")?,
        event: args.event.map(|event| FirstEvent { event_id: args.event_id, ..event }),
        execution_timeout: argument::field("execution_timeout", args.timeout.as_deref())?,
        run_timeout: argument::field("run_timeout", args.run_timeout.as_deref())?,
        on_failure_timeout: argument::field("on_failure_timeout", args.on_failure_timeout.as_deref())?,
        delay: argument::field("delay", args.delay.as_deref())?,
        concurrency: args.flow.concurrency(),
        rate: args.flow.rate()?,
        priority: args.flow.priority()?,
        fairness_key: args.flow.fairness_key()?,
        unique: args.flow.unique()?,
        debounce: args.flow.debounce()?,
        policy: args.reject_duplicate.then_some(StartPolicy::Reject.into()),
        ..StartRequest::new(args.workflow)
    })
}

/// Reads `NAME`, or `NAME=JSON`.
fn first_event(text: &str) -> Result<FirstEvent, String> {
    let (name, payload) = text.split_once('=').map_or((text, None), |(name, json)| (name, Some(json)));
    let name = EventName::parse(name).map_err(|problem| problem.to_string())?;
    let payload = argument::json(payload, "the event's payload").map_err(|problem| format!("{problem:#}"))?;
    Ok(FirstEvent { name, payload, event_id: None })
}

/// The execution at its end, or its state when the time has passed.
async fn until_ended(
    mut execution: ExecutionView,
    wait: Millis,
    client: &Client,
) -> anyhow::Result<ExecutionView> {
    let until = SystemClock.now().plus(wait);
    let mut at_once = UNTAKEN_AFTER;
    while execution.is_live() {
        let left = until.since(SystemClock.now());
        if left.is_zero() {
            show::say(&format!("{} hasn't ended after {wait}", execution.id));
            break;
        }
        // The server answers after this time at the latest.
        execution = client.api().execution(&execution.id, left.min(at_once)).await?.execution;
        if at_once == UNTAKEN_AFTER {
            untaken(&execution);
        }
        at_once = WAIT_MAX;
    }
    Ok(execution)
}

/// Says that no worker has taken an execution, or that none of its queue knows its workflow.
fn untaken(execution: &ExecutionView) {
    let ExecutionView { workflow, queue, .. } = execution;
    if let Some(stuck) = &execution.stuck {
        show::say(&format!("no worker can continue it: {}: {}", stuck.code, stuck.message));
    } else if execution.next.paused {
        show::say(&format!("its queue {queue} is paused: no worker takes it"));
    } else if execution.next.what == "waits_for_worker"
        && execution.completed_steps.is_none_or(|steps| steps == 0)
    {
        show::say(&format!(
            "no worker has taken it yet: one with the workflow {workflow} must listen to the queue {queue}"
        ));
    }
}
