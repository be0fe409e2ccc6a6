use std::collections::BTreeSet;

use serde_json::{Value, json};
use tickover_core::cron::expression::EXPRESSION_MAX;
use tickover_core::flow::{
    CONCURRENCY_KEYS_MAX, CONCURRENCY_MAX, RATE_MAX, RATE_PERIOD_MAX, REQUIRES_MAX, WINDOW_MAX,
};
use tickover_core::id::{CAPABILITY_MAX, FLOW_KEY_MAX, Owner};
use tickover_core::limits::{
    CLAIM_MAX, EVENT_ID_MAX, EVENT_NAME_MAX, EXECUTION_ID_MAX, ID_MAX, IDEMPOTENCY_KEY_MAX, KIND_MAX,
    LABEL_NAME_MAX, LABEL_VALUE_MAX, LABELS_MAX, LEASE_RANGE, Limits, PAGE_MAX, QUEUE_NAME_MAX,
    RUN_TIMEOUT_MIN, SPAN_MAX, STEP_NAME_MAX, WAIT_MAX, WORKER_MAX, WORKFLOW_MAX,
};
use tickover_core::queue::PROVIDES_MAX;
use tickover_core::retry::{MAX_CODE_CHARS, MAX_CODES, MAX_LISTED_DELAYS};
use tickover_service::executions::PAYLOADS_MAX;
use tickover_service::operations::IDS_MAX;

use super::*;

const DOCUMENT: &str = include_str!("../../openapi.json");

#[test]
fn the_document_that_is_served_is_that_of_the_routes() {
    let renew = "renew it: cargo run --package tickover-api --example openapi > shared/api/openapi.json";
    assert!(DOCUMENT == document(), "{renew}");
}

/// The schema itself, whether inline or referenced, without the `null` of an optional field.
fn form<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    if let Some(target) = schema["$ref"].as_str() {
        return document.pointer(&target[1..]).unwrap();
    }
    let forms = schema["oneOf"].as_array().into_iter().flatten();
    let real: Vec<_> = forms.filter(|form| form["type"] != "null").collect();
    if let [one] = real.as_slice() { form(document, one) } else { schema }
}

/// The JSON types that fit a schema; none if any does.
fn types(document: &Value, schema: &Value) -> BTreeSet<String> {
    if let Some(target) = schema["$ref"].as_str() {
        return types(document, document.pointer(&target[1..]).unwrap());
    }
    if let Some(forms) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
        return forms.iter().flat_map(|form| types(document, form)).collect();
    }
    let named = schema["type"].as_array().cloned().unwrap_or_else(|| vec![schema["type"].clone()]);
    named.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn check_alternatives(document: &Value, place: &Value) {
    if let Some(forms) = place["oneOf"].as_array() {
        let mut seen = BTreeSet::new();
        for one in forms.iter().map(|form| types(document, form)) {
            assert!(!one.is_empty() && seen.is_disjoint(&one), "more than one may fit: {place}");
            seen.extend(one);
        }
    }
    match place {
        Value::Object(fields) => fields.values().for_each(|field| check_alternatives(document, field)),
        Value::Array(items) => items.iter().for_each(|item| check_alternatives(document, item)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Where exactly one alternative must fit, the type of the value says which.
#[test]
fn no_value_fits_two_alternatives_of_which_one_must_fit() {
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    check_alternatives(&document, &document);
    let policy = &document["components"]["schemas"]["RetryPolicy"];
    assert_eq!(policy["anyOf"].as_array().map(Vec::len), Some(3), "both spellings fit `{{}}`: {policy}");
}

#[test]
fn what_is_in_a_path_or_a_request_has_a_bound_unless_it_is_known_to_have_none() {
    const FREE: [&str; 6] = [
        "FailError.message",
        "CronRequest.time_zone",
        "RetryObject.backoff",
        "SteepRetries.exponentialBackoff",
        "run_at",
        "expires_at",
    ];
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    let is_free =
        |place: &str| place.ends_with("traceparent") || FREE.iter().any(|free| place.ends_with(free));
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        let is_asked =
            ["Request", "Entry", "Error", "Object", "Retries"].iter().any(|end| name.ends_with(end));
        for (field, schema) in schema["properties"].as_object().into_iter().flatten().filter(|_| is_asked) {
            let (form, place) = (form(&document, schema), format!("{name}.{field}"));
            let is_a = |kind: &str| form["type"].to_string().contains(&format!("\"{kind}\""));
            let is_bounded = match () {
                () if form.get("$ref").is_some() || form.get("enum").is_some() => true,
                () if is_a("string") => form.get("minLength").is_some(),
                () if is_a("integer") || is_a("number") => form.get("minimum").is_some(),
                () => true,
            };
            assert!(is_bounded || is_free(&place), "{place}: {form}");
        }
    }
    for (path, item) in document["paths"].as_object().unwrap() {
        for operation in item.as_object().unwrap().values() {
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let schema = form(&document, &parameter["schema"]);
                if parameter["in"] == "path" {
                    assert!(
                        schema["pattern"].is_string() && schema["maxLength"].is_u64(),
                        "{path}: {schema}"
                    );
                }
            }
        }
    }
}

#[test]
fn names_and_numbers_are_taken_at_their_bounds_and_not_beyond() {
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    let bound = |schema: &str, field: &str, which: &str| {
        let schema = &document["components"]["schemas"][schema]["properties"][field];
        let schema = form(&document, schema);
        usize::try_from(schema[which].as_u64().unwrap()).unwrap()
    };
    let taken = |body: Value| {
        let read = crate::body::read(body.to_string().as_bytes());
        read.and_then(|read| crate::request::task(read, tickover_core::time::Timestamp::EPOCH)).is_ok()
    };
    let with = |field: &str, value: Value| {
        let mut body = serde_json::json!({"queue": "q", "kind": "k"});
        body[field] = value;
        body
    };
    for field in ["queue", "kind", "id"] {
        let most = bound("ScheduleRequest", field, "maxLength");
        assert!(taken(with(field, "x".repeat(most).into())), "{field}");
        assert!(!taken(with(field, "x".repeat(most + 1).into())), "{field}");
    }
    for field in ["timeout_ms", "timeout_seconds", "delay_ms", "delay_seconds", "heartbeat_timeout_ms"] {
        let (least, most) =
            (bound("ScheduleRequest", field, "minimum"), bound("ScheduleRequest", field, "maximum"));
        assert!(taken(with(field, least.into())) && taken(with(field, most.into())), "{field}");
        assert!(!taken(with(field, (most + 1).into())), "{field}");
        assert_eq!(taken(with(field, 0.into())), least == 0, "{field}");
        // JSON Schema counts 7.0 as an integer.
        assert!(taken(with(field, 7.0.into())) && !taken(with(field, 7.5.into())), "{field}");
    }
}

#[test]
fn every_reference_in_the_document_leads_somewhere() {
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    let mut open = vec![&document];
    while let Some(value) = open.pop() {
        if let Some(target) = value.get("$ref").and_then(Value::as_str) {
            assert!(document.pointer(&target[1..]).is_some(), "{target}");
        }
        match value {
            Value::Object(fields) => open.extend(fields.values()),
            Value::Array(entries) => open.extend(entries),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

#[test]
fn a_result_never_admits_null() {
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for (name, schema) in schemas.iter().filter(|(name, _)| !name.contains("Request")) {
        if ["View", "Answer", "Result", "Problem"].iter().any(|end| name.ends_with(end)) {
            assert!(!schema.to_string().contains("\"null\""), "{name}: {schema}");
        }
    }
}

/// Compares each limit in the document with the constant that the server checks.
#[test]
fn every_limit_in_the_document_is_the_servers() {
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    let mut said = Vec::new();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        limits_of(name, schema, &mut said);
    }
    let year = SPAN_MAX.as_u64();
    let (second, lease) = (RUN_TIMEOUT_MIN.as_u64(), (LEASE_RANGE.0.as_u64(), LEASE_RANGE.1.as_u64()));
    let name = |name: &str, most: usize| (name.to_owned(), json!({"minLength": 1, "maxLength": most}));
    let range =
        |name: &str, least: u64, most: u64| (name.to_owned(), json!({"minimum": least, "maximum": most}));
    let mut expected = vec![
        name("TaskId", ID_MAX),
        name("QueueName", QUEUE_NAME_MAX),
        name("TaskKind", KIND_MAX),
        name("WorkerName", WORKER_MAX),
        name("WorkerVersion", WORKER_MAX),
        name("ExecutionId", EXECUTION_ID_MAX),
        name("CronId", EXECUTION_ID_MAX),
        name("OperationId", EVENT_ID_MAX),
        ("ExecutionSelection.properties.ids".to_owned(), json!({"maxItems": IDS_MAX})),
        ("TaskSelection.properties.ids".to_owned(), json!({"maxItems": IDS_MAX})),
        name("WorkflowName", WORKFLOW_MAX),
        name("StepName", STEP_NAME_MAX),
        name("EventName", EVENT_NAME_MAX),
        name("EventId", EVENT_ID_MAX),
        name("IdempotencyKey", IDEMPOTENCY_KEY_MAX),
        ("FailureCode".to_owned(), json!({"minLength": 1})),
        name("CronText", EXPRESSION_MAX),
        ("LeaseToken".to_owned(), json!({"minLength": 1})),
        ("Cursor".to_owned(), json!({"minLength": 1})),
        ("TaskStatusList".to_owned(), json!({"minLength": 1})),
        ("ExecutionStatusList".to_owned(), json!({"minLength": 1})),
        ("Label".to_owned(), json!({"minLength": 2, "maxLength": LABEL_NAME_MAX + 1 + LABEL_VALUE_MAX})),
        ("Labels".to_owned(), json!({"maxProperties": LABELS_MAX})),
        ("Labels.propertyNames".to_owned(), json!({"minLength": 1, "maxLength": LABEL_NAME_MAX})),
        ("Labels.additionalProperties".to_owned(), json!({"maxLength": LABEL_VALUE_MAX})),
        ("Codes".to_owned(), json!({"minItems": 0, "maxItems": MAX_CODES})),
        ("Codes.items".to_owned(), json!({"minLength": 1, "maxLength": MAX_CODE_CHARS})),
        ("Delay.oneOf.1".to_owned(), json!({"minItems": 1, "maxItems": MAX_LISTED_DELAYS})),
        ("ScheduleBatchRequest.properties.tasks".to_owned(), json!({"maxItems": Limits::default().batch})),
        ("CompleteBatchRequest.properties.tasks".to_owned(), json!({"maxItems": Limits::default().batch})),
        ("Attempts".to_owned(), json!({"minimum": -1, "maximum": u32::MAX})),
        range("Progress", 0, 1),
        name("EventsAnswer.properties.counts.propertyNames", EVENT_NAME_MAX),
        name("FlowKey", FLOW_KEY_MAX),
        name("Capability", CAPABILITY_MAX),
        ("UniqueFor".to_owned(), json!({"minLength": 2})),
        ("CronTask.properties.concurrency".to_owned(), json!({"maxItems": CONCURRENCY_KEYS_MAX})),
        ("CronTask.properties.requires".to_owned(), json!({"maxItems": REQUIRES_MAX})),
        ("CronExecution.properties.concurrency".to_owned(), json!({"maxItems": CONCURRENCY_KEYS_MAX})),
        ("StartRequest.properties.concurrency".to_owned(), json!({"maxItems": CONCURRENCY_KEYS_MAX})),
        name("Owner", Owner::MAX),
        ("ScheduleRequest.properties.concurrency".to_owned(), json!({"maxItems": CONCURRENCY_KEYS_MAX})),
        ("ScheduleRequest.properties.requires".to_owned(), json!({"maxItems": REQUIRES_MAX})),
        ("KindDefaults.properties.concurrency".to_owned(), json!({"maxItems": CONCURRENCY_KEYS_MAX})),
        ("KindDefaults.properties.requires".to_owned(), json!({"maxItems": REQUIRES_MAX})),
        ("ClaimRequest.properties.provides".to_owned(), json!({"maxItems": PROVIDES_MAX})),
        ("WorkRequest.properties.provides".to_owned(), json!({"maxItems": PROVIDES_MAX})),
        ("TurnReadRequest.properties.payloads".to_owned(), json!({"maxItems": PAYLOADS_MAX})),
        range("ConcurrencyLimit", 1, u64::from(CONCURRENCY_MAX)),
        range("RateLimit", 1, u64::from(RATE_MAX)),
        range("RatePeriod.oneOf.1", 1, RATE_PERIOD_MAX.as_u64()),
        range("Window.oneOf.1", 1, WINDOW_MAX.as_u64()),
        range("ClaimCount", 1, CLAIM_MAX as u64),
        range("PageLimit", 1, PAGE_MAX as u64),
        range("RunCount", 1, u64::from(u32::MAX)),
        range("RunNumber", 1, u64::from(u32::MAX)),
        range("ValueVersion", 1, u64::from(u32::MAX)),
        range("Duration.oneOf.1", 0, year),
        range("DurationMilliseconds", 0, year),
        range("DurationSeconds", 0, year / 1_000),
        range("Timeout.oneOf.1", 1, year),
        range("TimeoutMilliseconds", 1, year),
        range("TimeoutSeconds", 1, year / 1_000),
        range("RunTimeout.oneOf.1", second, year),
        range("RunTimeoutMilliseconds", second, year),
        range("RunTimeoutSeconds", 1, year / 1_000),
        range("Interval.oneOf.1", 1_000, year),
        range("IntervalMilliseconds", 1_000, year),
        range("IntervalSeconds", 1, year / 1_000),
        range("Lease.oneOf.1", lease.0, lease.1),
        range("Wait.oneOf.1", 0, WAIT_MAX.as_u64()),
    ];
    expected.sort_by(|(one, _), (other, _)| one.cmp(other));
    said.sort_by(|(one, _), (other, _)| one.cmp(other));
    assert_eq!(said, expected);
}

#[test]
fn a_call_that_is_refused_without_a_body_has_one_in_the_document() {
    let document: Value = serde_json::from_str(&document()).unwrap();
    let operations =
        document["paths"].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap());
    let changes: Vec<_> =
        operations.filter(|(method, _)| ["post", "put"].contains(&method.as_str())).collect();
    assert!(changes.len() > 20);
    for (_, operation) in changes {
        assert_eq!(operation["requestBody"]["required"], true, "{}", operation["operationId"]);
    }
}

/// The limits of a schema and of its inner schemas, with their paths. Limits that only give the range of a Rust type
/// (`u32` is never negative) aren't the server's.
fn limits_of(place: &str, schema: &Value, said: &mut Vec<(String, Value)>) {
    const LIMITS: [&str; 7] =
        ["minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "maxProperties"];
    match schema {
        Value::Object(fields) => {
            // A schema's properties may have one of the name "format".
            let format = fields.get("format").and_then(Value::as_str);
            let is_of_a_type = format.is_some_and(|format| format.starts_with("int"));
            let limits: serde_json::Map<_, _> = fields
                .iter()
                .filter(|(name, value)| LIMITS.contains(&name.as_str()) && value.is_number() && !is_of_a_type)
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            if !limits.is_empty() {
                said.push((place.to_owned(), limits.into()));
            }
            for (name, inner) in fields {
                limits_of(&format!("{place}.{name}"), inner, said);
            }
        }
        Value::Array(entries) => {
            for (index, entry) in entries.iter().enumerate() {
                limits_of(&format!("{place}.{index}"), entry, said);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
