//! Each optional field of a request for a task or an execution has the same effect whatever way the request comes: over
//! HTTP, by message, by a direct invocation, from a cron, from the client, from the command line.

use std::collections::BTreeSet;

use axum::http::Method;
use serde_json::{Map, Value, json};
use tickover::Client;
use tickover::client::wire::read;
use tickover_lambda::ingress::{Accepted, Kind};
use tickover_lambda::message;
use tickover_service::Service;
use tickover_tests::http::Caller;
use tickover_tests::process::Process;

const KINDS: &[Kind] = &[Kind::Task, Kind::Execution];

/// The two kinds of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Tasks,
    Executions,
}

/// The ways that a request takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Http,
    Message,
    Direct,
    Cron,
    Client,
    Cli,
}

/// A value of a field, with other fields that it needs, and the words for it on the command line; none if the tool has
/// another spelling of the same, or doesn't send it.
struct Sample {
    field: &'static str,
    fields: Value,
    cli: Option<&'static [&'static str]>,
}

fn sample(field: &'static str, fields: Value, cli: &'static [&'static str]) -> Sample {
    Sample { field, fields, cli: Some(cli) }
}

/// Another spelling, or what belongs to the transport: the tool doesn't have it.
fn spelt(field: &'static str, value: Value) -> Sample {
    Sample { field, fields: Value::Object(Map::from_iter([(field.to_owned(), value)])), cli: None }
}

/// The fields that both kinds have.
fn common() -> Vec<Sample> {
    vec![
        sample("id", json!({"id": "own"}), &["--id", "own"]),
        sample("labels", json!({"labels": {"a": "b=c"}}), &["--label", "a=b=c"]),
        sample("delay", json!({"delay": "5s"}), &["--delay", "5s"]),
        spelt("delay_seconds", json!(5)),
        spelt("delay_ms", json!(5000)),
        sample("concurrency", json!({"concurrency": [{"key": "k", "limit": 2}]}), &["--concurrency", "k=2"]),
        sample(
            "rate",
            json!({"rate": {"key": "k", "limit": 3, "per": "1m", "burst": 2}}),
            &["--rate", "k=3/1m", "--burst", "2"],
        ),
        sample("priority", json!({"priority": "high"}), &["--priority", "high"]),
        sample("fairness_key", json!({"fairness_key": "t"}), &["--fairness-key", "t"]),
        sample(
            "unique",
            json!({"unique": {"key": "u", "for": "1h", "on_conflict": "refuse"}}),
            &["--unique", "u", "--unique-for", "1h", "--on-conflict", "refuse"],
        ),
        sample(
            "debounce",
            json!({"debounce": {"key": "d", "wait": "2s", "at_most": "9s"}}),
            &["--debounce", "d", "--debounce-wait", "2s", "--debounce-at-most", "9s"],
        ),
        spelt("traceparent", json!("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")),
    ]
}

fn of_tasks() -> Vec<Sample> {
    let mut samples = common();
    samples.extend([
        sample("input", json!({"input": {"n": [1.5, null]}}), &["{\"n\": [1.5, null]}"]),
        sample("queue", json!({}), &[]),
        sample("idempotency_key", json!({"idempotency_key": "i"}), &["--idempotency-key", "i"]),
        sample("run_at", json!({"run_at": LATER}), &["--run-at", LATER]),
        sample("timeout", json!({"timeout": "10m"}), &["--timeout", "10m"]),
        spelt("timeout_seconds", json!(600)),
        spelt("timeout_ms", json!(600_000)),
        sample(
            "timeout_scope",
            json!({"timeout": "10m", "timeout_scope": "per_attempt"}),
            &["--timeout", "10m", "--timeout-scope", "per_attempt"],
        ),
        sample(
            "schedule_to_start_timeout",
            json!({"schedule_to_start_timeout": "1m"}),
            &["--schedule-to-start-timeout", "1m"],
        ),
        spelt("schedule_to_start_timeout_seconds", json!(60)),
        spelt("schedule_to_start_timeout_ms", json!(60_000)),
        sample(
            "start_to_close_timeout",
            json!({"start_to_close_timeout": "1m"}),
            &["--start-to-close-timeout", "1m"],
        ),
        spelt("start_to_close_timeout_seconds", json!(60)),
        spelt("start_to_close_timeout_ms", json!(60_000)),
        sample("heartbeat_timeout", json!({"heartbeat_timeout": "1m"}), &["--heartbeat-timeout", "1m"]),
        spelt("heartbeat_timeout_seconds", json!(60)),
        spelt("heartbeat_timeout_ms", json!(60_000)),
        sample("on_timeout", json!({"on_timeout": "terminal"}), &["--on-timeout", "terminal"]),
        sample(
            "error_on_timeout",
            json!({"timeout": "1m", "error_on_timeout": false}),
            &["--timeout", "1m", "--error-on-timeout", "false"],
        ),
        sample("retry", json!({"retry": "fixed(2, 3s)"}), &["--retry", "fixed(2, 3s)"]),
        sample("requires", json!({"requires": ["gpu"]}), &["--requires", "gpu"]),
        spelt("maxInactivity", json!("1m")),
        spelt("maxRuntime", json!("1m")),
        spelt("deadline", json!("1m")),
        spelt("retries", json!("fixed(2, 3s)")),
    ]);
    samples
}

fn of_executions() -> Vec<Sample> {
    let mut samples = common();
    samples.extend([
        sample(
            "event",
            json!({"event": {"name": "add", "payload": "a lamp", "event_id": "1"}}),
            &["--event", "add=\"a lamp\"", "--event-id", "1"],
        ),
        sample("input", json!({"input": {"n": [1.5, null]}}), &["--input", "{\"n\": [1.5, null]}"]),
        sample("queue", json!({"queue": "other"}), &["--queue", "other"]),
        sample("memo", json!({"memo": [1]}), &["--memo", "[1]"]),
        sample("execution_timeout", json!({"execution_timeout": "1h"}), &["--timeout", "1h"]),
        spelt("execution_timeout_seconds", json!(60)),
        spelt("execution_timeout_ms", json!(60_000)),
        sample("run_timeout", json!({"run_timeout": "1h"}), &["--run-timeout", "1h"]),
        spelt("run_timeout_seconds", json!(60)),
        spelt("run_timeout_ms", json!(60_000)),
        sample("on_failure_timeout", json!({"on_failure_timeout": "1h"}), &["--on-failure-timeout", "1h"]),
        spelt("on_failure_timeout_seconds", json!(60)),
        spelt("on_failure_timeout_ms", json!(60_000)),
        sample(
            "policy",
            json!({"id": "own", "policy": "reject_duplicate"}),
            &["--id", "own", "--reject-duplicate"],
        ),
    ]);
    samples
}

const LATER: &str = "2026-06-30T12:00:00.000Z";

impl Of {
    fn samples(self) -> Vec<Sample> {
        match self {
            Self::Tasks => of_tasks(),
            Self::Executions => of_executions(),
        }
    }

    /// The field with the work in a cron's request, and the path of the list of records.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Tasks => ("task", "tasks"),
            Self::Executions => ("execution", "executions"),
        }
    }

    /// The name of the request's schema.
    const fn schema(self) -> &'static str {
        match self {
            Self::Tasks => "ScheduleRequest",
            Self::Executions => "StartRequest",
        }
    }

    /// What a cron's runs can't have, because each occurrence has an id and an instant of its own.
    const fn refused_by_crons(self) -> &'static [&'static str] {
        match self {
            Self::Tasks => &["id", "idempotency_key", "run_at", "debounce", "traceparent"],
            Self::Executions => &["id", "debounce", "event", "policy", "traceparent"],
        }
    }

    fn body(self, sample: &Sample) -> Value {
        let mut body = match self {
            Self::Tasks => json!({"queue": "q", "kind": "k"}),
            Self::Executions => json!({"workflow": "w"}),
        };
        let Value::Object(fields) = sample.fields.clone() else { panic!("no object") };
        body.as_object_mut().expect("an object").extend(fields);
        body
    }
}

/// Sends the request; `None` if the way doesn't have the field.
async fn send(way: Way, of: Of, sample: &Sample, caller: &Caller) -> Option<Result<(), String>> {
    let service: &Service = &caller.scene.service;
    let (body, (work, path)) = (of.body(sample), of.names());
    let envelope = json!({"v": 1, "type": work, "body": body}).to_string();
    let failed = |problem: tickover_api::Problem| format!("{}: {}", problem.code(), problem.detail());
    Some(match way {
        Way::Http => {
            let (status, answer) = caller.send(Method::POST, &format!("/v1/{path}"), Some(&body)).await;
            if status.is_success() { Ok(()) } else { Err(answer.to_string()) }
        }
        Way::Message => {
            let accepted = Accepted { kinds: KINDS, without_envelope: None };
            let message = json!({"messageId": "m-1", "body": envelope});
            let message = serde_json::from_value(message).expect("a message");
            message::take(service, &accepted, message).await.map_err(failed)
        }
        Way::Direct => {
            let accepted = Accepted { kinds: KINDS, without_envelope: Some(Kind::Task) };
            let request = accepted.read(&envelope).expect("a request");
            request.run(service).await.map(drop).map_err(failed)
        }
        Way::Cron => {
            let cron = json!({"id": "c", "every": "1h", (work): body});
            let (status, answer) = caller.send(Method::POST, "/v1/crons", Some(&cron)).await;
            if !status.is_success() {
                return Some(Err(answer.to_string()));
            }
            let (status, answer) = caller.send(Method::POST, "/v1/crons/c/trigger", Some(&json!({}))).await;
            if status.is_success() { Ok(()) } else { Err(answer.to_string()) }
        }
        Way::Client => {
            let (client, text) = (Client::from(service.clone()), body.to_string());
            let sent = match of {
                Of::Tasks => client.api().schedule(&read::body(&text).expect("a request")).await.map(drop),
                Of::Executions => client.api().start(&read::body(&text).expect("a request")).await.map(drop),
            };
            sent.map_err(|error| error.to_string())
        }
        Way::Cli => run_tool(of, sample.cli?, service).await,
    })
}

/// Runs the tool with these words against the service.
async fn run_tool(of: Of, words: &[&str], service: &Service) -> Result<(), String> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    let router = tickover_api::router(service.clone());
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    let begin: &[&str] = match of {
        Of::Tasks => &["task", "q", "k"],
        Of::Executions => &["start", "w"],
    };
    let args = [&["--endpoint", &endpoint], begin, words].concat();
    let ended = Process::tickover(&args).expect("the tool").ended().await.expect("its end");
    server.abort();
    if ended.status.success() { Ok(()) } else { Err(ended.stderr) }
}

/// The only record, without what is of its way: its id, and the cron that started it.
async fn record(of: Of, caller: &Caller) -> Value {
    let (work, path) = of.names();
    let query = if of == Of::Tasks { "" } else { "?workflow=w" };
    let (_, list) = caller.send(Method::GET, &format!("/v1/{path}{query}"), None).await;
    let all = list[path].as_array().expect("a list");
    assert_eq!(all.len(), 1, "{list}");
    let id = all[0]["id"].as_str().expect("an id");
    let (_, mut answer) = caller.send(Method::GET, &format!("/v1/{path}/{id}"), None).await;
    let mut record = answer[work].take();
    for own in ["id", "cron"] {
        record.as_object_mut().expect("an object").remove(own);
    }
    record
}

async fn check(of: Of) {
    let samples = of.samples();
    let document: Value =
        serde_json::from_str(include_str!("../../../shared/api/openapi.json")).expect("JSON");
    let schema = &document["components"]["schemas"][of.schema()];
    let required: BTreeSet<_> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let fields = schema["properties"].as_object().expect("fields").keys().map(String::as_str);
    let optional: BTreeSet<_> = fields.filter(|field| !required.contains(field)).collect();
    assert_eq!(samples.iter().map(|sample| sample.field).collect::<BTreeSet<_>>(), optional);
    let mut problems = vec![];
    for sample in &samples {
        let mut expected = None;
        for way in [Way::Http, Way::Message, Way::Direct, Way::Cron, Way::Client, Way::Cli] {
            if way == Way::Cron && of.refused_by_crons().contains(&sample.field) {
                continue;
            }
            let caller = Caller::default();
            let problem = match send(way, of, sample, &caller).await {
                None => continue,
                Some(Err(refusal)) => refusal,
                Some(Ok(())) => {
                    let record = record(of, &caller).await;
                    let expected = expected.get_or_insert_with(|| record.clone());
                    if record == *expected {
                        continue;
                    }
                    format!("{record} instead of {expected}")
                }
            };
            problems.push(format!("{} {way:?}: {problem}", sample.field));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[tokio::test]
async fn each_field_of_a_task_counts_whatever_way_it_comes() {
    check(Of::Tasks).await;
}

#[tokio::test]
async fn each_field_of_an_execution_counts_whatever_way_it_comes() {
    check(Of::Executions).await;
}
