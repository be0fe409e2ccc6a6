//! `tickover task`: schedules a task.

use anyhow::Context as _;
use serde_json::value::RawValue;
use tickover::Client;
use tickover_core::id::{Capability, FlowKey, QueueName, TaskId, TaskKind};
use tickover_wire::request::{Concurrency, Debounce, Rate, Retry, ScheduleRequest, Unique};

use crate::argument::{self, label, name};
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
    /// The retry policy: `none`, `fixed(3, 2s)`, `exponential(5, 1s)`, or a policy as a JSON object
    #[arg(long, value_name = "POLICY")]
    retry: Option<String>,
    /// At most LIMIT tasks of KEY run at once; up to three times
    #[arg(long, value_name = "KEY=LIMIT", value_parser = limit_of_key)]
    concurrency: Vec<Concurrency>,
    /// At most LIMIT tasks of KEY start in each PERIOD, such as `smtp=100/1m`
    #[arg(long, value_name = "KEY=LIMIT/PERIOD", value_parser = rate_of_key)]
    rate: Option<Rate>,
    /// How many of the rate may start at once after a quiet time
    #[arg(long, value_name = "COUNT", requires = "rate")]
    burst: Option<u32>,
    /// Which tasks of the queue start first
    #[arg(long, value_name = "PRIORITY", value_parser = ["high", "normal", "low"])]
    priority: Option<String>,
    /// Tasks of one such key don't delay those of others
    #[arg(long, value_name = "KEY")]
    fairness_key: Option<String>,
    /// Schedule no second task beside another one with this key
    #[arg(long, value_name = "KEY", conflicts_with = "debounce")]
    unique: Option<String>,
    /// For how long the key is unique: `open` (until the task has ended), `waiting` (until it is claimed), or a duration
    #[arg(long, value_name = "WINDOW", requires = "unique")]
    unique_for: Option<String>,
    /// What happens if another task has the key
    #[arg(long, value_name = "WHAT", requires = "unique", value_parser = ["existing", "replace", "refuse"])]
    on_conflict: Option<String>,
    /// Of a burst of tasks with this key, run the last one
    #[arg(long, value_name = "KEY", requires_all = ["debounce_wait", "debounce_at_most"])]
    debounce: Option<String>,
    /// How long it must have been quiet
    #[arg(long, value_name = "DURATION", requires = "debounce")]
    debounce_wait: Option<String>,
    /// How long after the first one it runs at the latest
    #[arg(long, value_name = "DURATION", requires = "debounce")]
    debounce_at_most: Option<String>,
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
        retry: args.retry.as_deref().map(policy).transpose()?,
        labels: argument::labels(args.labels.clone()),
        concurrency: (!args.concurrency.is_empty()).then(|| args.concurrency.clone()),
        rate: with_burst(args.rate.clone(), args.burst)?,
        priority: argument::field("priority", args.priority.as_deref())?,
        fairness_key: argument::field("fairness_key", args.fairness_key.as_deref())?,
        unique: unique(args)?,
        debounce: debounce(args)?,
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

/// The rate with the number that may start at once.
pub(crate) fn with_burst(rate: Option<Rate>, burst: Option<u32>) -> anyhow::Result<Option<Rate>> {
    let Some(rate) = rate else { return Ok(None) };
    Ok(Some(Rate { burst: argument::number("rate.burst", burst)?, ..rate }))
}

fn unique(args: &TaskArgs) -> anyhow::Result<Option<Unique>> {
    let Some(key) = argument::field("unique.key", args.unique.as_deref())? else { return Ok(None) };
    let window = argument::field("unique.for", args.unique_for.as_deref())?;
    let on_conflict = argument::field("unique.on_conflict", args.on_conflict.as_deref())?;
    Ok(Some(Unique { key, window, on_conflict }))
}

fn debounce(args: &TaskArgs) -> anyhow::Result<Option<Debounce>> {
    let Some(key) = argument::field("debounce.key", args.debounce.as_deref())? else { return Ok(None) };
    let wait = argument::field("debounce.wait", args.debounce_wait.as_deref())?;
    let at_most = argument::field("debounce.at_most", args.debounce_at_most.as_deref())?;
    let (wait, at_most) =
        wait.zip(at_most).context("--debounce needs --debounce-wait and --debounce-at-most")?;
    Ok(Some(Debounce { key, wait, at_most }))
}

/// `KEY=LIMIT`. The key may contain `=`.
pub(crate) fn limit_of_key(text: &str) -> Result<Concurrency, String> {
    let (key, limit) = text.rsplit_once('=').ok_or("expected KEY=LIMIT")?;
    let key = FlowKey::parse(key).map_err(|error| format!("the key {error}"))?;
    Ok(Concurrency { key, limit: count("concurrency.limit", limit)? })
}

/// `KEY=LIMIT/PERIOD`, or `KEY=LIMIT` for one second.
pub(crate) fn rate_of_key(text: &str) -> Result<Rate, String> {
    let (key, rate) = text.rsplit_once('=').ok_or("expected KEY=LIMIT/PERIOD")?;
    let key = FlowKey::parse(key).map_err(|error| format!("the key {error}"))?;
    let (limit, per) = rate.split_once('/').map_or((rate, None), |(limit, per)| (limit, Some(per)));
    let per = argument::field("rate.per", per).map_err(|error| error.to_string())?;
    Ok(Rate { key, limit: count("rate.limit", limit)?, per, burst: None })
}

fn count<T: serde::de::DeserializeOwned>(field: &str, text: &str) -> Result<T, String> {
    let number: u32 = text.parse().map_err(|_| format!("{text:?} isn't a whole number"))?;
    let read = argument::number(field, Some(number)).map_err(|error| error.to_string())?;
    read.ok_or_else(|| format!("{field} is missing"))
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
    fn limits_of_keys_are_read_as_the_server_reads_them() {
        let written = |text| limit_of_key(text).map(|read| serde_json::to_string(&read).unwrap());
        assert_eq!(written("customer=7=5").unwrap(), r#"{"key":"customer=7","limit":5}"#);
        for (text, problem) in
            [("customer-7", "expected KEY=LIMIT"), ("c=0", "from 1 to 1000"), ("=5", "empty")]
        {
            let refused = written(text).unwrap_err();
            assert!(refused.contains(problem), "{text}: {refused}");
        }
        let rate = |text| rate_of_key(text).map(|read| serde_json::to_string(&read).unwrap());
        assert_eq!(rate("smtp=100/1m").unwrap(), r#"{"key":"smtp","limit":100,"per":"1m"}"#);
        assert_eq!(rate("smtp=100").unwrap(), r#"{"key":"smtp","limit":100}"#);
        assert!(rate("smtp=100/25h").unwrap_err().contains("rate.per"));
    }

    #[test]
    fn a_policy_is_sent_as_an_object_or_as_a_short_form() {
        let sent = |text| serde_json::to_string(&policy(text).unwrap()).unwrap();
        assert_eq!(sent("fixed(3, 2s)"), r#""fixed(3, 2s)""#);
        assert_eq!(sent(r#"{"max_attempts":3}"#), r#"{"max_attempts":3}"#);
        assert!(policy("{max_attempts: 3}").is_err());
    }
}
