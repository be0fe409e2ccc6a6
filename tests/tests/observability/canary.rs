//! No line of the log contains a user's payload or a lease, whatever the interface and whatever the error.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::sync::atomic::{AtomicU32, Ordering};

use axum::http::Method;
use serde_json::{Value, json};
use tickover::prelude::*;
use tickover::test::TestEnv;
use tickover_core::duration::Millis;
use tickover_lambda::ingress::{Accepted, Kind};
use tickover_lambda::{message, sqs, timer};
use tickover_service::ports::{Outgoing, Queue as _};
use tickover_tests::http::Caller;

use crate::executions::{begin, next, queue, turn};
use crate::lines::Log;
use crate::stage::{SECRET, events, with_events};

const INLET: Accepted = Accepted {
    kinds: &[Kind::Task, Kind::Execution, Kind::Event, Kind::Complete, Kind::Fail, Kind::Heartbeat],
    without_envelope: Some(Kind::Task),
};

/// Sends bodies as messages to the function `schedule`, and as timers to the function `tick`.
async fn by_message(caller: &Caller, bodies: &[String]) {
    let record =
        |(index, body)| json!({"messageId": format!("m-{index}"), "body": body, "eventSource": "aws:sqs"});
    let batch = || {
        let records: Vec<Value> = bodies.iter().enumerate().map(record).collect();
        serde_json::from_value(json!({ "Records": records })).unwrap()
    };
    let service = &caller.scene.service;
    sqs::each(batch(), 3, |body| message::take(service, &INLET, body)).await;
    let stop_at = service.now().plus(Millis::from_secs(50));
    sqs::each(batch(), 3, |body| timer::take(service, body, stop_at)).await;
}

/// Copies of a request, each with the secret in one field where another value belongs. The secret is never a name:
/// names aren't secret, and a queue, or a misspelt field, may have any name.
fn with_secret_in_each_field(request: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    for name in request.as_object().unwrap().keys() {
        for wrong in [json!([SECRET]), json!({"x": {SECRET: SECRET}}), json!(format!("{SECRET} é"))] {
            let mut body = request.clone();
            body[name.as_str()] = wrong;
            all.push(body);
        }
    }
    all
}

#[track_caller]
fn silent() {
    let text = Log::text();
    assert!(!text.is_empty());
    for line in text.lines() {
        assert!(!line.contains(SECRET), "{line}");
    }
}

#[tokio::test]
async fn no_request_leaves_its_payload_in_the_log_however_wrong_it_is() {
    Log::listen();
    let caller = with_events().await;
    let task = json!({
        "queue": "work", "kind": "work", "input": SECRET, "idempotency_key": "k", "delay": "1s", "timeout": "1h",
        "timeout_scope": "global", "on_timeout": "retry", "error_on_timeout": true, "retry": {"max_attempts": 2},
        "labels": {"team": SECRET}, "heartbeat_timeout_ms": 5, "maxRuntime": "1h",
    });
    let execution = json!({
        "workflow": "order", "queue": "work", "input": SECRET, "memo": SECRET, "labels": {"team": SECRET},
        "execution_timeout": "1h", "policy": "use_existing",
    });
    let report = json!({
        "id": "none", "lease": SECRET, "output": SECRET, "error": {"code": "smtp", "message": SECRET}, "progress": 1,
    });
    let mut bodies = vec![SECRET.to_owned(), format!("{{\"input\": {SECRET}}}"), format!("\"{SECRET}")];
    for (path, kind, request) in
        [("/v1/tasks", "task", &task), ("/v1/executions", "execution", &execution), ("/v1/crons", "x", &task)]
    {
        for body in with_secret_in_each_field(request) {
            caller.post(path, body.clone()).await;
            bodies.push(json!({"v": 1, "type": kind, "body": body}).to_string());
            bodies.push(body.to_string());
        }
    }
    for what in ["complete", "fail", "heartbeat", "release"] {
        for body in with_secret_in_each_field(&report) {
            caller.post(&format!("/v1/tasks/{SECRET}/{what}"), body.clone()).await;
            bodies.push(json!({"v": 1, "type": what, "body": body}).to_string());
        }
    }
    bodies.extend(
        with_secret_in_each_field(&json!({"v": 1, "type": "task", "body": {"a": 1}}))
            .iter()
            .map(Value::to_string),
    );
    let labels = json!({"queue": "work", "kind": "work", "labels": {SECRET: [SECRET]}});
    bodies.push(json!({"v": 1, "type": "task", "body": labels}).to_string());
    bodies.push(json!({"v": 1, "timer": {"task": SECRET, "at": SECRET, "due_at": 1}}).to_string());
    by_message(&caller, &bodies).await;
    caller.send(Method::GET, &format!("/v1/tasks?status={SECRET}"), None).await;
    assert!(Log::lines("message failed").len() > 50);
    silent();
}

#[tokio::test]
async fn unreadable_messages_are_not_quoted_in_the_log() {
    Log::listen();
    let caller = with_events().await;
    caller.schedule("a", json!({})).await;
    caller.lease().await;
    let hint = json!({"v": 1, "task": {"v": 1, "id": "t", "in": {"j": SECRET}, "q": SECRET, "st": SECRET}});
    let turn = json!({"v": 1, "turn": {"id": "e", "inc": SECRET}});
    for body in [SECRET.to_owned(), format!("\"{SECRET}\""), hint.to_string(), turn.to_string()] {
        let message = Outgoing::plain(body, Millis::ZERO);
        caller.scene.queue.send(&queue(), &[message]).await.unwrap();
        assert!(caller.claim().await.is_none());
        assert!(next(&caller.scene.service).await.is_none());
    }
    silent();
}

#[tokio::test]
async fn no_log_line_and_no_event_contains_a_lease_valid_or_lost() {
    Log::listen();
    let caller = with_events().await;
    caller.schedule("a", json!({"input": SECRET, "retry": "fixed(1, 1s)"})).await;
    let lease = caller.lease().await;
    caller.ok("/v1/tasks/a/heartbeat", json!({"lease": lease})).await;
    let body = json!({"v": 1, "type": "heartbeat", "body": {"id": "a", "lease": lease, "progress": "x"}});
    by_message(&caller, &[body.to_string()]).await;
    caller.pass(61).await;
    let second = caller.lease().await;
    caller.refused("/v1/tasks/a/complete", json!({"lease": lease, "output": SECRET})).await;
    let body = json!({"v": 1, "type": "complete", "body": {"id": "a", "lease": lease, "output": SECRET}});
    by_message(&caller, &[body.to_string()]).await;
    assert_eq!(Log::lines("late report dropped").len(), 1, "{}", Log::text());
    // Workers' reports too: a turn's lease is known only to its worker.
    caller
        .ok("/v1/executions", json!({"id": "e", "workflow": "order", "queue": "work", "input": SECRET}))
        .await;
    let service = &caller.scene.service;
    let taken = turn(service).await;
    begin(service, &taken, "label", None).await;
    let mut told = format!("{:?}", events(&caller).await);
    told.push_str(&Log::text());
    let turn_lease = String::from(taken.lease);
    for secret in [lease.as_str(), second.as_str(), turn_lease.as_str(), SECRET] {
        assert!(!told.contains(secret), "{secret}: {told}");
    }
    assert!(!format!("{taken:?}").contains(&turn_lease), "its debug text doesn't contain the lease either");
}

static READS: AtomicU32 = AtomicU32::new(0);

#[tickover::step(retry = "fixed(1, 1s)")]
async fn refuses(input: String) -> Result<u32> {
    Err(Error::new("refused", format!("it was {input}")))
}

#[tickover::workflow("canary", on_failure = clean_up)]
async fn canary(ctx: Ctx, input: String) -> Result<u32> {
    ctx.capture("seen", move || input).await?;
    let told: String = ctx.wait_for_event("word", forever()).await?;
    ctx.step(refuses(told)).await.map_err(Error::from)
}

async fn clean_up(_ctx: Ctx, input: String, _cause: Cause) -> Result<Option<u32>> {
    Err(Error::new("worse", format!("and then {input}")))
}

#[tickover::workflow("changed")]
async fn changed(ctx: Ctx, input: String) -> Result<u32> {
    // First a text, later a number: the stored result no longer fits the type.
    if READS.fetch_add(1, Ordering::SeqCst) == 0 {
        ctx.capture("value", move || input).await?;
    } else {
        ctx.capture("value", || 7_u32).await?;
    }
    ctx.sleep("pause", "1h").await?;
    Ok(1)
}

#[tickover::workflow("panics")]
async fn panics(_ctx: Ctx, input: String) -> Result<u32> {
    panic!("it was {input}")
}

#[tokio::test]
async fn a_failing_workflow_leaves_no_payload_in_the_log() {
    Log::listen();
    let env = TestEnv::new().workflow((canary, changed, panics));
    let run = env.start(&canary, SECRET.to_owned()).await.unwrap();
    run.send_event("word", SECRET).await.unwrap();
    assert!(run.result().await.unwrap_err().to_string().contains(SECRET), "the caller sees the failure");
    let parked = env.start(&changed, SECRET.to_owned()).await.unwrap();
    drop(env.advance("2h").await);
    drop(parked.timeline().await);
    env.start(&panics, SECRET.to_owned()).await.unwrap();
    drop(env.advance("5s").await);

    assert_eq!(Log::lines("what was to be done about the failure failed itself").len(), 1, "{}", Log::text());
    assert!(
        !Log::lines("what is remembered doesn't fit the code; the execution waits for an operator")
            .is_empty()
    );
    assert!(!Log::lines("the workflow's code panicked").is_empty());
    silent();
}
