//! The `OpenAPI` document describes all that the server does, and the server does all that it describes.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Api, send};

fn operations(document: &Value) -> Vec<(String, String)> {
    let paths = document["paths"].as_object().unwrap().iter();
    let of = |(path, item): (&String, &Value)| {
        let methods: Vec<_> = item.as_object().unwrap().keys().cloned().collect();
        methods.into_iter().map(|method| (method, path.clone())).collect::<Vec<_>>()
    };
    paths.flat_map(of).collect()
}

#[tokio::test]
async fn every_documented_route_answers() {
    let api = Api::start().await;
    api.schedule("t", json!({})).await;
    api.post("/v1/executions", json!({"workflow": "w", "id": "t"})).await.ok(201);
    let operation = json!({"id": "t", "action": "cancel", "tasks": {"ids": ["t"]}, "dry_run": true});
    api.post("/v1/operations", operation).await.ok(201);
    let cron = json!({"id": "t", "every": "1h", "task": {"queue": "q", "kind": "k"}});
    api.post("/v1/crons", cron).await.ok(201);
    let document = api.get("/openapi.json").await.ok(200);
    assert_eq!(document["openapi"], "3.1.0");
    let mut operations = operations(&document);
    operations.sort_by_key(|(method, _)| method == "delete");
    for (method, path) in operations {
        let method: Method = method.to_uppercase().parse().unwrap();
        let path = path.replace("{id}", "t").replace("{queue}", "q").replace("{name}", "n");
        let path = path.replace("{key}", "k").replace("{task}", "t");
        let reply = send(api.request(method.clone(), &path)).await;
        // Everything that the paths name exists except the step, the callback and the published value; for those, the answer
        // has its own code.
        let absent = ["unknown_step", "unknown_callback", "unknown_value"];
        let is_absent = absent.contains(&reply.body["code"].as_str().unwrap_or_default());
        let set_missing = reply.status == 404 && !is_absent;
        assert!(!set_missing, "{method} {path}: {}", reply.text);
        // The store in memory has no index of workflows.
        let is_kept = reply.status < 500 || reply.body["code"] == "not_kept";
        assert!(reply.status != 405 && is_kept, "{method} {path}: {}", reply.text);
    }
}

#[tokio::test]
async fn every_operation_is_described_with_its_problems() {
    let api = Api::start().await;
    let document = api.get("/openapi.json").await.ok(200);
    for (method, path) in operations(&document) {
        let operation = &document["paths"][&path][&method];
        assert!(operation["summary"].is_string() && operation["operationId"].is_string(), "{path}");
        if path.starts_with("/v1") {
            for status in ["400", "404", "429", "500", "503"] {
                let content = &operation["responses"][status]["content"]["application/problem+json"];
                assert_eq!(content["schema"]["$ref"], "#/components/schemas/Problem", "{path} {status}");
            }
        }
        if method == "post" {
            assert!(operation["requestBody"]["content"]["application/json"].is_object(), "{path}");
        }
    }
    let problem = api.get("/nowhere").await.problem(404, "not_found");
    conforms(&document, &json!({"$ref": "#/components/schemas/Problem"}), &problem, "problem");
}

/// Checks that a value has all that its schema requires and no unknown field, at every depth.
#[track_caller]
fn conforms(document: &Value, schema: &Value, value: &Value, place: &str) {
    let schema = match schema["$ref"].as_str() {
        Some(target) => document.pointer(&target[1..]).unwrap(),
        None => schema,
    };
    match value {
        Value::Object(fields) => {
            let Some(known) = schema["properties"].as_object() else { return };
            for name in schema["required"].as_array().into_iter().flatten() {
                assert!(fields.contains_key(name.as_str().unwrap()), "{place} lacks {name}");
            }
            for (name, value) in fields {
                let inner = known.get(name).unwrap_or_else(|| panic!("{place}.{name} isn't in the document"));
                conforms(document, inner, value, &format!("{place}.{name}"));
            }
        }
        Value::Array(entries) => {
            for entry in entries {
                conforms(document, &schema["items"], entry, place);
            }
        }
        Value::String(_) => {
            assert!(schema["type"].is_null() || schema["type"] == "string", "{place}: {schema}");
        }
        Value::Number(_) => {
            let number = ["integer", "number"].map(Value::from).contains(&schema["type"]);
            assert!(schema["type"].is_null() || number, "{place}: {schema}");
        }
        Value::Bool(_) => {
            assert!(schema["type"].is_null() || schema["type"] == "boolean", "{place}: {schema}");
        }
        Value::Null => assert!(schema["type"].is_null(), "{place}: {schema}"),
    }
}

/// Makes a call whose answer must match the document.
async fn checked(api: &Api, document: &Value, path: &str, pattern: &str, body: Option<Value>) -> Value {
    let (method, reply) = match body {
        Some(body) => ("post", api.post(path, body).await),
        None => ("get", api.get(path).await),
    };
    let response = &document["paths"][pattern][method]["responses"][reply.status.to_string()];
    let media_type = reply.headers["content-type"].to_str().unwrap().to_owned();
    let schema = &response["content"][media_type]["schema"];
    assert!(schema.is_object(), "{method} {pattern} doesn't say what {} looks like", reply.status);
    conforms(document, schema, &reply.body, path);
    reply.body
}

#[tokio::test]
async fn answers_of_a_whole_life_are_as_the_document_says() {
    let api = Api::start().await;
    let document = api.get("/openapi.json").await.ok(200);
    let call = async |path: &str, pattern: &str, body: Option<Value>| {
        checked(&api, &document, path, pattern, body).await
    };
    let task = json!({
        "queue": "q", "kind": "k", "id": "t", "input": {"a": [1]}, "labels": {"l": "x"}, "retry": "fixed(1, 0)",
        "timeout": "1h", "heartbeat_timeout": "1m", "schedule_to_start_timeout": "1m", "start_to_close_timeout": "5m",
    });
    call("/v1/tasks", "/v1/tasks", Some(task.clone())).await;
    call("/v1/tasks", "/v1/tasks", Some(task)).await;
    call("/v1/tasks", "/v1/tasks", Some(json!({"queue": 1}))).await;
    let batch = json!({"tasks": [{"queue": "q", "kind": "k", "delay": "1h"}, {}]});
    call("/v1/tasks/batch", "/v1/tasks/batch", Some(batch)).await;
    let claimed = call("/v1/queues/q/claim", "/v1/queues/{queue}/claim", Some(json!({"worker": "w"}))).await;
    let lease = claimed["tasks"][0]["lease"].clone();
    let beat = json!({"lease": lease, "progress": 0.25});
    call("/v1/tasks/t/heartbeat", "/v1/tasks/{id}/heartbeat", Some(beat)).await;
    call("/v1/tasks/t", "/v1/tasks/{id}", None).await;
    let fail = json!({"lease": lease, "error": {"code": "x", "message": "y"}});
    call("/v1/tasks/t/fail", "/v1/tasks/{id}/fail", Some(fail)).await;
    let claimed = call("/v1/tasks/t/claim", "/v1/tasks/{id}/claim", Some(json!({}))).await;
    let lease = claimed["tasks"][0]["lease"].clone();
    call("/v1/tasks/t/release", "/v1/tasks/{id}/release", Some(json!({"lease": lease}))).await;
    call("/v1/tasks/t/cancel", "/v1/tasks/{id}/cancel", Some(json!({}))).await;
    call("/v1/tasks/t/retry", "/v1/tasks/{id}/retry", Some(json!({}))).await;
    let claimed = call("/v1/tasks/t/claim", "/v1/tasks/{id}/claim", Some(json!({}))).await;
    let entry = json!({"id": "t", "lease": claimed["tasks"][0]["lease"], "output": [1.5, null]});
    call("/v1/tasks/complete", "/v1/tasks/complete", Some(json!({"tasks": [entry, entry]}))).await;
    call("/v1/tasks/t/cancel", "/v1/tasks/{id}/cancel", Some(json!({}))).await;
    call("/v1/tasks?limit=1", "/v1/tasks", None).await;
    for id in ["l1", "l2"] {
        let task = json!({"id": id, "queue": "l", "kind": "k", "concurrency": [{"key": "c", "limit": 1}]});
        call("/v1/tasks", "/v1/tasks", Some(task)).await;
    }
    call("/v1/queues/l/claim", "/v1/queues/{queue}/claim", Some(json!({"max": 2}))).await;
    call("/v1/tasks/l2", "/v1/tasks/{id}", None).await;
    call("/v1/limits/c", "/v1/limits/{key}", None).await;
    call("/v1/limits", "/v1/limits", None).await;
    call("/v1/queues", "/v1/queues", None).await;
    call("/v1/queues/q", "/v1/queues/{queue}", None).await;
    call("/v1/queues/q/pause", "/v1/queues/{queue}/pause", Some(json!({}))).await;
    call("/v1/queues/q/resume", "/v1/queues/{queue}/resume", Some(json!({}))).await;
    let cron = json!({
        "id": "s", "cron": "0 9 * * *", "time_zone": "Europe/Berlin", "jitter": "1m", "max_runs": 5,
        "task": {"queue": "q", "kind": "k", "input": [1.50]},
    });
    call("/v1/crons", "/v1/crons", Some(cron)).await;
    call("/v1/crons", "/v1/crons", Some(json!({"every": "1h"}))).await;
    call("/v1/crons/s/trigger", "/v1/crons/{id}/trigger", Some(json!({}))).await;
    call("/v1/crons/s/pause", "/v1/crons/{id}/pause", Some(json!({}))).await;
    call("/v1/crons/s", "/v1/crons/{id}", None).await;
    call("/v1/crons/s/resume", "/v1/crons/{id}/resume", Some(json!({}))).await;
    call("/v1/crons", "/v1/crons", None).await;
    call("/healthz", "/healthz", None).await;
}

#[tokio::test]
async fn answers_of_an_executions_life_are_as_the_document_says() {
    let api = Api::start().await;
    let document = api.get("/openapi.json").await.ok(200);
    let call = async |path: &str, pattern: &str, body: Option<Value>| {
        checked(&api, &document, path, &format!("/v1/executions{pattern}"), body).await
    };
    let start = json!({
        "workflow": "w", "id": "e", "input": {"a": [1]}, "labels": {"l": "x"}, "memo": 7, "execution_timeout": "1h",
        "run_timeout": "30m", "on_failure_timeout": "5m", "delay": "1s",
    });
    call("/v1/executions", "", Some(start.clone())).await;
    call("/v1/executions", "", Some(start)).await;
    call("/v1/executions", "", Some(json!({"workflow": 1}))).await;
    let event = json!({"payload": {"b": 2}, "event_id": "once"});
    call("/v1/executions/e/events/n", "/{id}/events/{name}", Some(event.clone())).await;
    call("/v1/executions/e/events/n", "/{id}/events/{name}", Some(event)).await;
    call("/v1/executions/e/events", "/{id}/events", None).await;
    call("/v1/executions/e", "/{id}", None).await;
    call("/v1/executions/e?wait=1ms", "/{id}", None).await;
    call("/v1/executions/e/export?payloads=true", "/{id}/export", None).await;
    call("/v1/executions/e/pause", "/{id}/pause", Some(json!({}))).await;
    call("/v1/executions/e/resume", "/{id}/resume", Some(json!({}))).await;
    call("/v1/executions?workflow=w&limit=1", "", None).await;
    call("/v1/executions?label=l%3Dx&error=e&started_from=2026-01-31T08:00:00Z", "", None).await;
    checked(&api, &document, "/v1/workflows", "/v1/workflows", None).await;
    call("/v1/executions/e/cancel", "/{id}/cancel", Some(json!({}))).await;
    call("/v1/executions/e/terminate", "/{id}/terminate", Some(json!({}))).await;
    call("/v1/executions/e/timeline", "/{id}/timeline", None).await;
    call("/v1/executions/e/restart", "/{id}/restart", Some(json!({}))).await;
    call("/v1/executions/e/runs", "/{id}/runs", None).await;
    call("/v1/executions/e/timeline?run=1", "/{id}/timeline", None).await;
    call("/v1/executions/e/rerun", "/{id}/rerun", Some(json!({"steps": ["s"]}))).await;
    call("/v1/executions/e/steps/s/retry", "/{id}/steps/{name}/retry", Some(json!({}))).await;
    call("/v1/executions/e/events/n", "/{id}/events/{name}", Some(json!({"event": 1}))).await;
}
