//! For each error in a request, the answer names the field and says what is expected there, and nothing changes.

use serde_json::{Value, json};

use crate::support::Api;

/// A request that is refused: its body, the field that is named, and text that the detail must contain.
pub(crate) type Case = (Value, &'static str, &'static str);

pub(crate) async fn refused(api: &Api, path: &str, cases: &[Case]) {
    for (body, field, words) in cases {
        let problem = api.post(path, body.clone()).await.problem(400, "invalid_request");
        assert_eq!(problem["field"], *field, "{body}: {problem}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(words) && detail.contains(field), "{body}: {detail}");
    }
}

/// A request for a task with one more field, or another value of one.
pub(crate) fn with(field: &str, value: Value) -> Value {
    let mut body = json!({"queue": "q", "kind": "work"});
    body[field] = value;
    body
}

pub(crate) async fn nothing_was_scheduled(api: &Api) {
    assert_eq!(api.get("/v1/tasks").await.ok(200), json!({"tasks": []}));
}

#[tokio::test]
async fn malformed_json_is_rejected_with_its_position() {
    let api = Api::start().await;
    for (body, words) in [
        ("{\"queue\": }", "line 1 column 11"),
        ("{\n \"queue\": \"q\",\n}", "line 3 column 1"),
        ("{\"queue\": \"q\"", "EOF"),
        ("{'queue': 'q'}", "column 2"),
        ("{\"queue\": \"q\"} x", "trailing"),
        ("", "found nothing"),
        ("[]", "found a list"),
        ("\"text\"", "found the string `text`"),
        ("17", "found the number `17`"),
        ("null", "found null"),
    ] {
        let problem = api.post_text("/v1/tasks", body).await.problem(400, "invalid_request");
        assert_eq!(problem["field"], "body", "{body}");
        assert!(problem["detail"].as_str().unwrap().contains(words), "{body}: {problem}");
    }
    let invalid = b"{\"queue\":\"\xff\"}".to_vec();
    let problem = api.post_text("/v1/tasks", invalid).await.problem(400, "invalid_request");
    assert!(problem["detail"].as_str().unwrap().contains("UTF-8"), "{problem}");
    nothing_was_scheduled(&api).await;
}

#[tokio::test]
async fn unknown_missing_and_doubled_fields_are_named() {
    let api = Api::start().await;
    refused(
        &api,
        "/v1/tasks",
        &[
            (with("qeue", json!("q")), "qeue", "unknown field"),
            (with("urgency", json!(1)), "urgency", "unknown field"),
            (json!({"kind": "work"}), "queue", "required"),
            (json!({"queue": "q"}), "kind", "required"),
            (json!({"queue": null, "kind": "work"}), "queue", "required"),
            (with("retry", json!({"attempts": 3})), "retry.attempts", "max_attempts"),
        ],
    )
    .await;
    for (body, field) in [
        (r#"{"queue":"q","kind":"a","kind":"b"}"#, "kind"),
        (r#"{"queue":"q","kind":"a","retry":{"delay":1,"delay":2}}"#, "retry.delay"),
        (r#"{"queue":"q","kind":"a","labels":{"x":"1","x":"2"}}"#, "labels.x"),
        (r#"{"queue":"q","kind":"a","deadline":{"timeout":1,"timeout":2}}"#, "deadline.timeout"),
    ] {
        let problem = api.post_text("/v1/tasks", body).await.problem(400, "invalid_request");
        assert_eq!(problem["field"], field, "{body}");
        assert!(problem["detail"].as_str().unwrap().contains("twice"), "{problem}");
    }
    nothing_was_scheduled(&api).await;
}

#[tokio::test]
async fn a_wrong_type_is_refused_with_what_was_expected_and_found() {
    let api = Api::start().await;
    refused(
        &api,
        "/v1/tasks",
        &[
            (with("queue", json!(5)), "queue", "expected a string, found the number `5`"),
            (with("kind", json!(["a"])), "kind", "expected a string, found a list"),
            (with("id", json!(true)), "id", "expected a string, found the boolean `true`"),
            (with("idempotency_key", json!({})), "idempotency_key", "expected a string, found an object"),
            (with("timeout_scope", json!("step")), "timeout_scope", "expected \"global\" or \"per_attempt\""),
            (with("on_timeout", json!("fail")), "on_timeout", "expected \"retry\" or \"terminal\""),
            (with("error_on_timeout", json!("no")), "error_on_timeout", "expected true or false"),
            (with("labels", json!(["a"])), "labels", "expected a JSON object, found a list"),
            (with("labels", json!({"a": 1})), "labels.a", "expected a string, found the number `1`"),
            (with("timeout_seconds", json!("5")), "timeout_seconds", "a whole number"),
            (with("timeout_ms", json!(1.5)), "timeout_ms", "a whole number"),
            (with("retry", json!(3)), "retry", "`3`"),
            (with("retry", json!({"max_attempts": 1.5})), "retry.max_attempts", "`1.5`"),
            (with("retry", json!({"delay": ["1s", "2x"]})), "retry.delay[1]", "`2x`"),
            (with("retries", json!("sometimes")), "retries", "`sometimes`"),
            (
                with("maxRuntime", json!({"timeout": "1s", "errorOnTimeout": 1})),
                "maxRuntime.errorOnTimeout",
                "true or false",
            ),
        ],
    )
    .await;
    nothing_was_scheduled(&api).await;
}

#[tokio::test]
async fn names_must_have_valid_characters_and_lengths() {
    let api = Api::start().await;
    for (field, longest) in [("queue", 48), ("kind", 64), ("id", 96)] {
        let long = "x".repeat(longest + 1);
        refused(
            &api,
            "/v1/tasks",
            &[
                (with(field, json!("")), field, "empty"),
                (with(field, json!("a b")), field, "' '"),
                (with(field, json!("a/b")), field, "'/'"),
                (with(field, json!("naïve")), field, "'ï'"),
                (with(field, json!("a\u{0}")), field, "'\\0'"),
                (with(field, json!(long)), field, "at most"),
            ],
        )
        .await;
    }
    let id_that_is_a_route: &[Case] = &[(with("id", json!("batch")), "id", "`batch`")];
    refused(&api, "/v1/tasks", id_that_is_a_route).await;
    refused(&api, "/v1/tasks", &[(with("idempotency_key", json!("")), "idempotency_key", "empty")]).await;
    nothing_was_scheduled(&api).await;
    let longest = json!({"queue": "q".repeat(48), "kind": "k".repeat(64), "id": "A-z.0:9_".repeat(12)});
    api.post("/v1/tasks", longest).await.ok(201);
}

#[tokio::test]
async fn a_whole_number_may_be_written_with_a_fraction_of_zero_and_a_trace_is_a_text() {
    let api = Api::start().await;
    for (field, value) in
        [("delay_ms", "1.0"), ("timeout", "5000.0"), ("retry", r#"{"max_attempts": 2.0, "delay": 10.0}"#)]
    {
        let body = format!(r#"{{"queue": "other", "kind": "work", "{field}": {value}}}"#);
        api.post_text("/v1/tasks", body).await.ok(201);
    }
    api.schedule("t", json!({})).await;
    api.post_text("/v1/queues/q/claim", r#"{"max": 1.0}"#).await.ok(200);
    let wrong = [
        (with("traceparent", json!({})), "traceparent", "a string"),
        (with("traceparent", json!(7)), "traceparent", "a string"),
        (with("delay_ms", json!(1.5)), "delay_ms", "a whole number"),
    ];
    refused(&api, "/v1/tasks", &wrong).await;
    let wrong = [(json!({"workflow": "w", "traceparent": []}), "traceparent", "a string")];
    refused(&api, "/v1/executions", &wrong).await;
    // A text that isn't a trace is ignored, as W3C's recommendation asks.
    let body = json!({"queue": "other", "kind": "work", "traceparent": "nonsense"});
    api.post("/v1/tasks", body).await.ok(201);
}
