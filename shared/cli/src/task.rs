//! `tickover task`: schedules one.

use std::collections::BTreeMap;
use std::io::Read as _;

use anyhow::Context as _;
use serde::Serialize;
use serde_json::value::RawValue;
use tickover_core::id::{QueueName, TaskId, TaskKind};

use crate::client::Client;
use crate::show;

/// Options of `tickover task`. Durations are like `30s` or `1h 30m`.
#[derive(clap::Args, Debug)]
pub(crate) struct TaskArgs {
    /// The queue whose workers are to do it
    #[arg(value_parser = name(QueueName::parse))]
    queue: QueueName,
    /// What sort of work it is
    #[arg(value_parser = name(TaskKind::parse))]
    kind: TaskKind,
    /// Its input as JSON; `-` reads it from standard input
    #[arg(value_name = "INPUT")]
    input: Option<String>,
    /// Its id, which makes repeating the call harmless; random without it
    #[arg(long, value_parser = name(TaskId::parse))]
    id: Option<TaskId>,
    /// Makes repeating the call harmless for a day without choosing an id
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// How long to wait before a worker may have it
    #[arg(long, value_name = "DURATION", conflicts_with = "run_at")]
    delay: Option<String>,
    /// From when a worker may have it, as RFC 3339
    #[arg(long, value_name = "INSTANT")]
    run_at: Option<String>,
    /// How long it may take as a whole, waiting and retries included
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
    /// Whether `--timeout` is for the whole task or for each attempt
    #[arg(long, value_name = "SCOPE", value_parser = ["global", "per_attempt"], requires = "timeout")]
    timeout_scope: Option<String>,
    /// How long an attempt may wait for a worker
    #[arg(long, value_name = "DURATION")]
    schedule_to_start_timeout: Option<String>,
    /// How long an attempt may run
    #[arg(long, value_name = "DURATION")]
    start_to_close_timeout: Option<String>,
    /// How long a worker may be silent
    #[arg(long, value_name = "DURATION")]
    heartbeat_timeout: Option<String>,
    /// Whether an attempt that timed out is tried again
    #[arg(long, value_name = "WHAT", value_parser = ["retry", "terminal"])]
    on_timeout: Option<String>,
    /// How to try again: `none`, `fixed(3, 2s)`, `exponential(5, 1s)`, or a policy as a JSON object
    #[arg(long, value_name = "POLICY")]
    retry: Option<String>,
    /// A label; may be given several times
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// Print the server's answer
    #[arg(long)]
    json: bool,
}

/// The request, in the API's words. What it accepts is the server's to say.
#[derive(Serialize)]
struct Request<'a> {
    queue: &'a QueueName,
    kind: &'a TaskKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a TaskId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<&'a str, &'a str>,
    #[serde(flatten)]
    texts: BTreeMap<&'static str, &'a str>,
}

/// Schedules the task and prints it.
pub(crate) async fn run(args: TaskArgs, client: &Client) -> anyhow::Result<()> {
    let input = args.input.as_deref().map(|text| read_json(text, "the input")).transpose()?;
    let request = Request {
        queue: &args.queue,
        kind: &args.kind,
        input,
        id: args.id.as_ref(),
        retry: args.retry.as_deref().map(policy).transpose()?,
        labels: args.labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect(),
        texts: texts(&args),
    };
    let answer = client.schedule(&request).await?;
    if args.json { show::print_json(answer.json()) } else { show::print(&show::task(&answer.task()?)) }
}

fn texts(args: &TaskArgs) -> BTreeMap<&'static str, &str> {
    [
        ("idempotency_key", &args.idempotency_key),
        ("delay", &args.delay),
        ("run_at", &args.run_at),
        ("timeout", &args.timeout),
        ("timeout_scope", &args.timeout_scope),
        ("schedule_to_start_timeout", &args.schedule_to_start_timeout),
        ("start_to_close_timeout", &args.start_to_close_timeout),
        ("heartbeat_timeout", &args.heartbeat_timeout),
        ("on_timeout", &args.on_timeout),
    ]
    .into_iter()
    .filter_map(|(field, text)| text.as_deref().map(|text| (field, text)))
    .collect()
}

/// Reads an argument that is JSON, or from standard input where it is `-`.
pub(crate) fn read_json(argument: &str, what: &str) -> anyhow::Result<Box<RawValue>> {
    let text = if argument == "-" {
        let mut text = String::new();
        let read = std::io::stdin().read_to_string(&mut text);
        read.with_context(|| format!("can't read {what} from standard input"))?;
        text.trim().to_owned()
    } else {
        argument.to_owned()
    };
    RawValue::from_string(text)
        .with_context(|| format!("{what} isn't JSON (a text needs quotes of its own: '\"text\"')"))
}

/// A policy in JSON goes as it is, a short form as a string.
fn policy(text: &str) -> anyhow::Result<Box<RawValue>> {
    if text.trim_start().starts_with('{') {
        return RawValue::from_string(text.to_owned()).context("--retry isn't JSON");
    }
    Ok(serde_json::value::to_raw_value(text)?)
}

/// Reads `NAME=VALUE`.
pub(crate) fn label(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Makes a parser of names one of options.
pub(crate) fn name<N, E: std::fmt::Display>(
    parse: impl Fn(String) -> Result<N, E> + Clone,
) -> impl Fn(&str) -> Result<N, String> + Clone {
    move |text| parse(text.to_owned()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_sent_as_an_object_or_as_a_short_form() {
        assert_eq!(policy("fixed(3, 2s)").unwrap().get(), r#""fixed(3, 2s)""#);
        assert_eq!(policy(r#"{"max_attempts":3}"#).unwrap().get(), r#"{"max_attempts":3}"#);
        assert!(policy("{max_attempts: 3}").is_err());
    }

    #[test]
    fn an_input_that_is_no_json_is_explained() {
        assert_eq!(read_json(r#"{"n": 1.50}"#, "the input").unwrap().get(), r#"{"n": 1.50}"#);
        assert!(format!("{:#}", read_json("hello", "the input").unwrap_err()).contains("quotes of its own"));
    }
}
