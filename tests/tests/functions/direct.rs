//! Direct invocations with the bodies of the HTTP API.

use serde_json::{Value, json};

use crate::deployment::{Deployment, event, running_task};

#[tokio::test]
async fn a_task_lives_its_whole_life_by_direct_invocation() {
    let deployment = Deployment::new().await;
    let [schedule, claim, complete] = [
        deployment.start("schedule").await,
        deployment.start("claim").await,
        deployment.start("complete").await,
    ];

    let scheduled = schedule.invoke(event("direct_schedule")).await.unwrap();
    assert_eq!(scheduled["task"]["id"], "order-17");
    assert_eq!(scheduled["task"]["status"], "pending");
    let again = schedule.invoke(event("direct_schedule")).await.unwrap();
    assert_eq!(again["task"]["created_at"], scheduled["task"]["created_at"]);

    let claimed = claim.invoke(event("direct_claim")).await.unwrap();
    assert_eq!(claimed["tasks"].as_array().unwrap().len(), 1, "{claimed}");
    let task = &claimed["tasks"][0];
    assert_eq!((&task["id"], &task["attempt"]), (&json!("order-17"), &json!(1)));
    assert_eq!(task["input"], json!({"to": "ada@example.com", "total": 12.5}));

    let report = |body: Value| {
        let mut body = body;
        body["id"] = task["id"].clone();
        body["lease"] = task["lease"].clone();
        body
    };
    let heartbeat = json!({"type": "heartbeat", "body": report(json!({"progress": 0.5}))});
    let renewed = complete.invoke(heartbeat).await.unwrap();
    assert_eq!(renewed["cancel_requested"], false, "{renewed}");

    let completed = complete.invoke(report(json!({"output": {"sent": true}}))).await.unwrap();
    assert_eq!(completed["task"]["status"], "completed", "{completed}");
    let repeated = complete.invoke(report(json!({"output": "other"}))).await.unwrap();
    assert_eq!((&repeated["duplicate"], &repeated["task"]["output"]), (&json!(true), &json!({"sent": true})));

    for function in [schedule, claim, complete] {
        assert!(!function.logs().contains("ada@example.com"), "a payload is logged: {}", function.logs());
    }
}

#[tokio::test]
async fn envelopes_fail_and_release_attempts_and_tasks_are_claimed_by_id() {
    let deployment = Deployment::new().await;
    let [schedule, claim, complete] = [
        deployment.start("schedule").await,
        deployment.start("claim").await,
        deployment.start("complete").await,
    ];
    let retry = json!({"retry": {"max_attempts": 2}});
    let lease = running_task(&schedule, &claim, "t", retry).await;

    let error = json!({"code": "smtp", "message": "no route"});
    let fail = json!({"v": 1, "type": "fail", "body": {"id": "t", "lease": lease, "error": error}});
    let failed = complete.invoke(fail).await.unwrap();
    assert_eq!((&failed["task"]["status"], &failed["task"]["attempt"]), (&json!("pending"), &json!(1)));

    let claimed = claim.invoke(json!({"id": "t", "worker": "worker-2"})).await.unwrap();
    assert_eq!(claimed["tasks"][0]["attempt"], 2, "{claimed}");
    let lease = &claimed["tasks"][0]["lease"];
    let release = json!({"type": "release", "body": {"id": "t", "lease": lease}});
    let released = complete.invoke(release).await.unwrap();
    assert_eq!(released["task"]["status"], "pending", "{released}");
}

#[tokio::test]
async fn batches_answer_each_entry_separately() {
    let deployment = Deployment::new().await;
    let [schedule, claim, complete] = [
        deployment.start("schedule").await,
        deployment.start("claim").await,
        deployment.start("complete").await,
    ];

    let scheduled = schedule.invoke(event("direct_schedule_batch")).await.unwrap();
    let results = scheduled["results"].as_array().unwrap();
    assert_eq!(results.len(), 3, "{scheduled}");
    assert!(results[1].to_string().contains("invalid_request"), "{scheduled}");

    let claimed = claim.invoke(event("direct_claim")).await.unwrap();
    let mut reports: Vec<Value> = claimed["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| json!({"id": task["id"], "lease": task["lease"], "output": 1}))
        .collect();
    assert_eq!(reports.len(), 2, "{claimed}");
    reports.push(json!({"id": "batch-1", "lease": "made up"}));
    let completed = complete.invoke(json!({ "tasks": reports })).await.unwrap();
    let results = completed["results"].as_array().unwrap();
    assert_eq!(results.len(), 3, "{completed}");
    assert!(results[2].to_string().contains("lease_lost"), "{completed}");
}

#[tokio::test]
async fn a_refusal_is_an_answer_with_its_code_and_status() {
    let deployment = Deployment::new().await;
    let [schedule, claim, complete] = [
        deployment.start("schedule").await,
        deployment.start("claim").await,
        deployment.start("complete").await,
    ];
    let task = json!({"queue": "emails", "kind": "send-email"});
    let unknown = json!({"v": 1, "type": "job", "body": {}});
    let execution = json!({"v": 1, "type": "execution", "body": {"queue": "emails"}});
    for (function, event, status, code, said) in [
        (&schedule, json!({"queue": "emails"}), 400, "invalid_request", "kind"),
        (&schedule, json!({"queue": "nowhere", "kind": "k"}), 404, "unknown_queue", "nowhere"),
        (&schedule, json!({"queue": "emails", "kind": "k", "colour": 1}), 400, "invalid_request", "colour"),
        (&schedule, json!({"v": 2, "type": "task", "body": task}), 400, "invalid_request", "found 2"),
        (&schedule, unknown, 400, "invalid_request", "expected task, execution, event"),
        (&schedule, execution, 400, "invalid_request", "workflow"),
        (&schedule, json!([task]), 400, "invalid_request", "expected a JSON object"),
        // No caller can schedule to Tickover's own queues or claim from them.
        (&schedule, json!({"queue": "@timers", "kind": "k"}), 400, "invalid_request", "queue"),
        (&claim, json!({"queue": "@timers", "worker": "w"}), 400, "invalid_request", "queue"),
        (&claim, json!({"worker": "w"}), 400, "invalid_request", "queue"),
        (&claim, json!({"queue": "emails", "id": "t"}), 400, "invalid_request", "found both"),
        (&claim, json!({"id": "no-such-task", "worker": "w"}), 404, "not_found", "no task"),
        (&complete, json!({"lease": "x"}), 400, "invalid_request", "id"),
        (&complete, json!({"id": "no-such-task", "lease": "x"}), 404, "not_found", "no task"),
        (&complete, json!({"type": "cancel", "body": {}}), 400, "invalid_request", "heartbeat"),
    ] {
        let answer = function.invoke(event.clone()).await.unwrap();
        let found = (&answer["status"], &answer["code"]);
        assert_eq!(found, (&json!(status), &json!(code)), "{event} was answered {answer}");
        assert!(answer["detail"].as_str().unwrap().contains(said), "{event} was answered {answer}");
    }
}

#[tokio::test]
async fn an_event_of_another_kind_is_refused_with_what_was_expected() {
    let deployment = Deployment::new().await;
    let schedule = event("scheduler_input");
    for (name, events, expected) in [
        (
            "schedule",
            ["s3_put", "events_rule", "http_api_get_task"],
            "expected a direct invocation with a task",
        ),
        ("claim", ["s3_put", "sqs_ingress", "events_rule"], "expected a direct invocation with the queue"),
        (
            "complete",
            ["s3_put", "scheduler_input", "http_api_get_task"],
            "expected a direct invocation with a report",
        ),
        ("tick", ["s3_put", "http_api_get_task", "direct_schedule"], "expected the event of a schedule"),
        (
            "worker",
            ["s3_put", "events_rule", "direct_schedule"],
            "expected a batch of messages from a queue of workflows",
        ),
    ] {
        let function = deployment.start(name).await;
        for sort in events {
            let error = function.invoke(event(sort)).await.unwrap_err();
            assert_eq!(error.error_type, "unexpected_event", "{name} given {sort}: {error}");
            assert!(error.error_message.starts_with(expected), "{name} given {sort}: {error}");
        }
    }
    let gateway = deployment.start("gateway").await;
    for event in [event("s3_put"), event("sqs_ingress"), schedule, json!({})] {
        let error = gateway.invoke(event.clone()).await.unwrap_err();
        assert!(error.error_message.contains("expects"), "{event}: {error}");
    }
}

#[tokio::test]
async fn envelopes_start_executions_and_send_events() {
    let deployment = Deployment::new().await;
    let schedule = deployment.start("schedule").await;
    let start =
        json!({"workflow": "orders", "id": "order-7", "queue": "emails", "input": {"secret": "seagull"}});
    let start = json!({"type": "execution", "body": start});
    let started = schedule.invoke(start.clone()).await.unwrap();
    assert_eq!(
        (&started["execution"]["id"], &started["execution"]["status"]),
        (&json!("order-7"), &json!("pending"))
    );
    let again = schedule.invoke(start).await.unwrap();
    assert_eq!(again["execution"]["created_at"], started["execution"]["created_at"]);

    let event = |id: &str| {
        let body = json!({"id": id, "name": "shipped", "event_id": "a", "payload": "seagull"});
        json!({"type": "event", "body": body})
    };
    assert_eq!(schedule.invoke(event("order-7")).await.unwrap(), json!({"pending": 1}));
    let repeated = schedule.invoke(event("order-7")).await.unwrap();
    assert_eq!(repeated, json!({"duplicate": true, "pending": 1}));
    let unknown = schedule.invoke(event("nobody")).await.unwrap();
    assert_eq!((&unknown["status"], &unknown["code"]), (&json!(404), &json!("not_found")));
    assert!(!schedule.logs().contains("seagull"), "a payload is logged: {}", schedule.logs());
}
