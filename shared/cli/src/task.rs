//! `tickover task`: schedules a task.

use anyhow::Context as _;
use serde_json::value::RawValue;
use tickover::Client;
use tickover_core::id::{Capability, QueueName, TaskId, TaskKind};
use tickover_wire::request::{Retry, ScheduleRequest};

use crate::argument::{self, label, name};
use crate::flow::FlowArgs;
use crate::show;

/// What stands for the queue whose workers provide what a task requires.
const ANY_QUEUE: &str = "any";

/// Options of `tickover task`. Durations are like `30s` or `1h 30m`.
#[derive(clap::Args, Debug)]
pub(crate) struct TaskArgs {
    /// The queue of its workers; with --requires, `any` stands for the queue whose workers provide it
    #[arg(value_parser = name(QueueName::parse))]
    queue: QueueName,
    /// The kind of work
    #[arg(value_parser = name(TaskKind::parse))]
    kind: TaskKind,
    /// Its input as JSON; `-` reads it from standard input
    #[arg(value_name = "INPUT")]
    input: Option<String>,
    /// The task's id; repeating the call with an id is idempotent; random by default
    #[arg(long, value_parser = name(TaskId::parse))]
    id: Option<TaskId>,
    /// Makes repeating the call idempotent for a day without an id
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// How long to wait before a worker may claim it
    #[arg(long, value_name = "DURATION", conflicts_with = "run_at")]
    delay: Option<String>,
    /// The instant from which a worker may claim it, in RFC 3339
    #[arg(long, value_name = "INSTANT")]
    run_at: Option<String>,
    /// How long it may take in total, with waiting and retries
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
    /// Whether `--timeout` applies to the whole task or to each attempt
    #[arg(long, value_name = "SCOPE", value_parser = ["global", "per_attempt"], requires = "timeout")]
    timeout_scope: Option<String>,
    /// How long an attempt may wait for a worker
    #[arg(long, value_name = "DURATION")]
    schedule_to_start_timeout: Option<String>,
    /// How long an attempt may run
    #[arg(long, value_name = "DURATION")]
    start_to_close_timeout: Option<String>,
    /// How long a worker may take between heartbeats
    #[arg(long, value_name = "DURATION")]
    heartbeat_timeout: Option<String>,
    /// Whether an attempt that timed out is retried
    #[arg(long, value_name = "WHAT", value_parser = ["retry", "terminal"])]
    on_timeout: Option<String>,
    /// Whether a timeout counts as an error; if not, it ends in `cancelled`
    #[arg(long, value_name = "WHETHER")]
    error_on_timeout: Option<bool>,
    /// The retry policy: `none`, `fixed(3, 2s)`, `exponential(5, 1s)`, or a policy as a JSON object
    #[arg(long, value_name = "POLICY")]
    retry: Option<String>,
    #[command(flatten)]
    flow: FlowArgs,
    /// What its worker must provide; may be repeated
    #[arg(long = "requires", value_name = "NAME", value_parser = name(Capability::parse))]
    capabilities: Vec<Capability>,
    /// A label; may be repeated
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// Print the server's answer
    #[arg(long)]
    json: bool,
}

/// Schedules the task and prints it.
pub(crate) async fn run(args: TaskArgs, client: &Client) -> anyhow::Result<()> {
    let answer = client.api().schedule(&request(&args)?).await?;
    if args.json { show::answer(&answer.task) } else { show::print(&show::task(&answer.task)) }
}

fn request(args: &TaskArgs) -> anyhow::Result<ScheduleRequest> {
    let timeout = |name, text: &Option<String>| argument::field(name, text.as_deref());
    Ok(ScheduleRequest {
        input: argument::json(args.input.as_deref(), "the input")?,
        id: args.id.clone(),
        idempotency_key: argument::field("idempotency_key", args.idempotency_key.as_deref())?,
        delay: argument::field("delay", args.delay.as_deref())?,
        run_at: argument::field("run_at", args.run_at.as_deref())?,
        timeout: timeout("timeout", &args.timeout)?,
        timeout_scope: argument::field("timeout_scope", args.timeout_scope.as_deref())?,
        schedule_to_start_timeout: timeout("schedule_to_start_timeout", &args.schedule_to_start_timeout)?,
        start_to_close_timeout: timeout("start_to_close_timeout", &args.start_to_close_timeout)?,
        heartbeat_timeout: timeout("heartbeat_timeout", &args.heartbeat_timeout)?,
        on_timeout: argument::field("on_timeout", args.on_timeout.as_deref())?,
        error_on_timeout: args.error_on_timeout,
        retry: args.retry.as_deref().map(policy).transpose()?,
        labels: argument::labels(args.labels.clone()),
        concurrency: args.flow.concurrency(),
        rate: args.flow.rate()?,
        priority: args.flow.priority()?,
        fairness_key: args.flow.fairness_key()?,
        unique: args.flow.unique()?,
        debounce: args.flow.debounce()?,
        requires: (!args.capabilities.is_empty()).then(|| args.capabilities.clone()),
        queue: queue(args),
        ..ScheduleRequest::new(args.queue.clone(), args.kind.clone())
    })
}

/// No queue if `any` stands for it. A queue of that name is still reached by a task that requires nothing.
fn queue(args: &TaskArgs) -> Option<QueueName> {
    let is_any = !args.capabilities.is_empty() && args.queue.as_str() == ANY_QUEUE;
    (!is_any).then(|| args.queue.clone())
}

/// A policy as JSON, or in a short form.
fn policy(text: &str) -> anyhow::Result<Retry> {
    let json = if text.trim_start().starts_with('{') {
        RawValue::from_string(text.to_owned()).context("--retry isn't JSON")?
    } else {
        serde_json::value::to_raw_value(text)?
    };
    argument::value("retry", &json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_sent_as_an_object_or_as_a_short_form() {
        let sent = |text| serde_json::to_string(&policy(text).unwrap()).unwrap();
        assert_eq!(sent("fixed(3, 2s)"), r#""fixed(3, 2s)""#);
        assert_eq!(sent(r#"{"max_attempts":3}"#), r#"{"max_attempts":3}"#);
        assert!(policy("{max_attempts: 3}").is_err());
    }
}
