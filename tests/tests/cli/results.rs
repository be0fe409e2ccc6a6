//! The input of a worker's command, and its output.

use serde_json::{Value, json};

use crate::scene::Scene;

#[tokio::test]
async fn json_output_is_kept_verbatim_other_output_becomes_a_string_and_none_is_absent() {
    let scene = Scene::start().await;
    let script = r"case $TICKOVER_KIND in json) cat;; text) printf 'two\nlines\n';; esac";
    let _worker = scene.worker(&[], script);
    // Parsing would change the number's form and the white space.
    let args = ["task", "work", "json", r#"{"n": 1.50, "big": 12345678901234567890123}"#, "--id", "verbatim"];
    assert!(scene.run(&args).await.status.success());
    let text = scene.schedule_plain("text").await;
    let nothing = scene.schedule_plain("nothing").await;
    scene.until_status("verbatim", "completed").await;
    let described = scene.text("verbatim").await;
    assert!(described.contains(r#""output":{"n": 1.50, "big": 12345678901234567890123}"#), "{described}");
    assert_eq!(scene.until_status(&text, "completed").await["output"], "two\nlines");
    assert_eq!(scene.until_status(&nothing, "completed").await.get("output"), None);
}

#[tokio::test]
async fn a_commands_environment_has_the_task_and_its_deadline() {
    let scene = Scene::start().await;
    let script = r#"printf '["%s","%s","%s","%s","%s","%s","%s"]' "$TICKOVER_TASK_ID" "$TICKOVER_ATTEMPT" \
        "$TICKOVER_KIND" "$TICKOVER_QUEUE" "$TICKOVER_ENDPOINT" "${TICKOVER_DEADLINE_AT-unset}" \
        "$TICKOVER_IDEMPOTENCY_KEY""#;
    let _worker = scene.worker(&[], script);
    let plain = scene.schedule_plain("send").await;
    let timed = scene.schedule(&json!({"queue": "work", "kind": "send", "timeout": "1h"})).await;
    let task = scene.until_status(&plain, "completed").await;
    assert_eq!(task["output"], json!([plain, "1", "send", "work", scene.endpoint, "unset", plain]));
    let task = scene.until_status(&timed, "completed").await;
    assert_eq!(task["output"][5], task["deadline_at"]);
}

#[tokio::test]
async fn a_commands_environment_names_the_trace_where_traces_are_carried() {
    let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let task = json!({"queue": "work", "kind": "send", "traceparent": traceparent});
    for (mode, seen) in [("carry", traceparent), ("off", "unset")] {
        let scene = Scene::start_in(&[("TICKOVER_TRACE", mode)]).await;
        let _worker = scene.worker(&[], r#"printf '"%s"' "${TRACEPARENT-unset}""#);
        let id = scene.schedule(&task).await;
        assert_eq!(scene.until_status(&id, "completed").await["output"], seen, "{mode}");
    }
}

#[tokio::test]
async fn a_task_without_input_has_an_empty_one_and_null_is_an_input() {
    let scene = Scene::start().await;
    let _worker = scene.worker(&[], "wc -c");
    let none = scene.schedule_plain("count").await;
    let null = scene.schedule(&json!({"queue": "work", "kind": "count", "input": null})).await;
    assert_eq!(scene.until_status(&none, "completed").await["output"], 0);
    assert_eq!(scene.until_status(&null, "completed").await["output"], 4);
}

#[tokio::test]
async fn a_command_need_not_read_its_input() {
    let scene = Scene::start().await;
    let _worker = scene.worker(&[], "echo done");
    let input = "x".repeat(300_000);
    let id = scene.schedule(&json!({"queue": "work", "kind": "ignore", "input": input})).await;
    let task = scene.until_status(&id, "completed").await;
    assert_eq!((&task["output"], &task["attempt"]), (&Value::from("done"), &Value::from(1)));
}

#[tokio::test]
async fn a_large_input_and_a_large_output_are_passed_whole() {
    let scene = Scene::start().await;
    let _worker = scene.worker(&[], "cat");
    let input = json!(["é".repeat(100_000)]);
    let id = scene.schedule(&json!({"queue": "work", "kind": "echo", "input": input})).await;
    assert_eq!(scene.until_status(&id, "completed").await["output"], input);
}

#[tokio::test]
async fn a_command_that_never_stops_writing_is_ended_and_has_failed() {
    let scene = Scene::start().await;
    let _worker = scene.worker(&[], "yes");
    let id = scene.schedule_plain("flood").await;
    let task = scene.until_status(&id, "failed").await;
    assert_eq!(task["error"]["code"], "output_too_large", "{task}");
}

#[tokio::test]
async fn a_result_that_the_server_refuses_is_a_failed_attempt() {
    let scene = Scene::start().await;
    // Nested deeper than payloads may be.
    let _worker = scene.worker(&[], r"printf '[%.0s' $(seq 70); printf ']%.0s' $(seq 70)");
    let id = scene.schedule_plain("deep").await;
    let task = scene.until_status(&id, "failed").await;
    assert_eq!(task["error"]["code"], "output_too_large", "{task}");
    let message = task["error"]["message"].as_str().expect("a message");
    assert!(message.contains("json_depth"), "{message}");
}
