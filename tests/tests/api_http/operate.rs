//! Operators' calls: cancel, retry, pause, resume.

use serde_json::json;

use crate::support::{Api, keys, names};

#[tokio::test]
async fn cancelling_answers_with_the_tasks_state() {
    let api = Api::start().await;
    api.schedule("waiting", json!({})).await;
    let cancelled = api.post("/v1/tasks/waiting/cancel", json!({})).await.ok(200);
    assert_eq!(keys(&cancelled), names("task outcome"));
    assert_eq!(
        (&cancelled["outcome"], &cancelled["task"]["status"]),
        (&json!("cancelled"), &json!("cancelled"))
    );
    let again = api.post("/v1/tasks/waiting/cancel", json!({"force": true})).await.ok(200);
    assert_eq!(again["outcome"], "already_finished");

    let lease = api.running("running", json!({})).await;
    let requested = api.post("/v1/tasks/running/cancel", json!({"force": false})).await.ok(200);
    assert_eq!(
        (&requested["outcome"], &requested["task"]["status"]),
        (&json!("requested"), &json!("running"))
    );
    let beat = api.post("/v1/tasks/running/heartbeat", json!({"lease": lease})).await.ok(200);
    assert_eq!(beat["cancel_requested"], true);
    assert_eq!(keys(&beat), names("lease_expires_at cancel_requested"));
    let forced = api.post("/v1/tasks/running/cancel", json!({"force": true})).await.ok(200);
    assert_eq!(forced["outcome"], "cancelled");
    api.post("/v1/tasks/running/heartbeat", json!({"lease": lease})).await.problem(409, "already_terminal");
}

#[tokio::test]
async fn a_retry_clears_the_deadline_and_gives_the_timeout_to_each_attempt() {
    let api = Api::start().await;
    api.running("t", json!({"timeout": "10s"})).await;
    api.post("/v1/tasks/t/retry", json!({})).await.problem(409, "not_terminal");
    api.advance(10_000);
    api.scene.tick().await.unwrap();
    let retried = api.post("/v1/tasks/t/retry", json!({})).await.ok(200);
    let task = &retried["task"];
    assert_eq!((&task["status"], task.get("deadline_at")), (&json!("pending"), None));
    let claimed = api.claim().await;
    assert_eq!(claimed["remaining_ms"], 10_000);
    api.post("/v1/tasks/t/complete", json!({"lease": claimed["lease"]})).await.ok(200);
    api.post("/v1/tasks/t/retry", json!({})).await.problem(409, "already_terminal");
}

#[tokio::test]
async fn no_task_of_a_paused_queue_is_claimed_until_it_is_resumed() {
    let api = Api::start().await;
    api.schedule("t", json!({})).await;
    api.advance(2_000);
    let queue = api.get("/v1/queues/q").await.ok(200);
    let expected = json!({"queue": {
        "name": "q", "paused": false, "depth": 1, "in_flight": 0, "delayed": 0,
        "oldest_at": "2026-01-01T00:00:00.000Z",
    }});
    assert_eq!(queue, expected);
    let paused = api.post("/v1/queues/q/pause", json!({})).await.ok(200);
    assert_eq!(paused["queue"]["paused"], true);
    assert_eq!(api.post("/v1/queues/q/claim", json!({})).await.ok(200), json!({"tasks": []}));
    assert_eq!(api.post("/v1/tasks/t/claim", json!({})).await.ok(200), json!({"tasks": []}));
    assert_eq!(api.post("/v1/queues/q/resume", json!({})).await.ok(200)["queue"]["paused"], false);
    api.claim().await;
    let queues = api.get("/v1/queues").await.ok(200);
    let expected =
        json!({"queues": [{"name": "q", "paused": false, "depth": 0, "in_flight": 1, "delayed": 0}]});
    assert_eq!(queues, expected);
}

#[tokio::test]
async fn a_task_can_be_claimed_by_id_once() {
    let api = Api::start().await;
    api.schedule("t", json!({"input": [1]})).await;
    let claimed = api
        .post("/v1/tasks/t/claim", json!({"worker": "w", "lease": "5s", "max": 1, "wait": 0}))
        .await
        .ok(200);
    let task = &claimed["tasks"][0];
    assert_eq!((&task["id"], &task["lease_expires_at"]), (&json!("t"), &json!("2026-01-01T00:00:05.000Z")));
    assert_eq!(api.post("/v1/tasks/t/claim", json!({})).await.ok(200), json!({"tasks": []}));
    api.post("/v1/tasks/t/complete", json!({"lease": task["lease"]})).await.ok(200);
    api.post("/v1/tasks/t/claim", json!({})).await.problem(409, "already_terminal");
    api.post("/v1/tasks/absent/claim", json!({})).await.problem(404, "not_found");
}

#[tokio::test]
async fn what_waits_in_a_paused_queue_says_so_in_every_answer_until_it_is_resumed() {
    let api = Api::start().await;
    api.schedule("ready", json!({})).await;
    api.schedule("late", json!({"delay": "10s"})).await;
    api.schedule("bound", json!({"timeout": "1h"})).await;
    api.post("/v1/executions", json!({"workflow": "orders", "queue": "q", "id": "e"})).await.ok(201);
    let next = async || {
        let mut all = vec![];
        for id in ["ready", "late", "bound"] {
            all.push(api.task(id).await["next"].clone());
        }
        all.push(api.get("/v1/executions/e").await.ok(200)["execution"]["next"].clone());
        let tasks = api.get("/v1/tasks?status=pending").await.ok(200);
        let executions = api.get("/v1/executions?workflow=orders").await.ok(200);
        let lists = [&tasks["tasks"], &executions["executions"]];
        for one in lists.into_iter().flat_map(|list| list.as_array().unwrap()) {
            let position = ["ready", "late", "bound", "e"].iter().position(|id| one["id"] == *id);
            assert!(position.is_none_or(|position| one["next"] == all[position]), "{one} in the list");
        }
        all
    };
    let (at, deadline) = ("2026-01-01T00:00:10.000Z", "2026-01-01T01:00:00.000Z");
    let running = [
        json!({"what": "waits_for_worker"}),
        json!({"what": "becomes_available", "at": at}),
        json!({"what": "schedule_to_close_timeout", "at": deadline}),
        json!({"what": "waits_for_worker"}),
    ];
    assert_eq!(next().await, running);
    api.post("/v1/queues/q/pause", json!({})).await.ok(200);
    let paused = [
        json!({"what": "queue_paused", "paused": true}),
        json!({"what": "queue_paused", "at": at, "paused": true}),
        json!({"what": "schedule_to_close_timeout", "at": deadline, "paused": true}),
        json!({"what": "queue_paused", "paused": true}),
    ];
    assert_eq!(next().await, paused);
    assert_eq!(api.schedule("new", json!({})).await["next"], paused[0]);
    api.post("/v1/queues/q/resume", json!({})).await.ok(200);
    assert_eq!(next().await[..4], running);
}

#[tokio::test]
async fn a_call_that_says_why_leaves_the_reason_where_it_was_made() {
    let api = Api::start().await;
    for id in ["e", "f"] {
        api.post("/v1/executions", json!({"workflow": "w", "id": id})).await.ok(201);
    }
    let why = "reason=ticket%2042%20%E2%80%AE";
    let reason = json!({"reason": "ticket 42 \u{202e}"});
    api.post(&format!("/v1/executions/e/pause?{why}"), json!({})).await.ok(200);
    api.post(&format!("/v1/executions/e/terminate?{why}"), json!({})).await.ok(200);
    api.post(&format!("/v1/executions/f/cancel?{why}"), json!({})).await.ok(200);
    for (id, kinds) in [("e", vec!["paused", "terminated"]), ("f", vec!["cancel_requested"])] {
        let timeline = api.get(&format!("/v1/executions/{id}/timeline")).await.ok(200);
        let entries = timeline["entries"].as_array().unwrap().clone();
        for kind in kinds {
            let entry = entries.iter().find(|entry| entry["kind"] == kind);
            assert_eq!(entry.unwrap()["by"], reason, "{id}: {timeline}");
        }
    }
    api.schedule("t", json!({})).await;
    api.post(&format!("/v1/tasks/t/cancel?{why}"), json!({})).await.ok(200);
    assert_eq!(api.task("t").await["by"], reason);
    let paused = api.post(&format!("/v1/queues/q/pause?{why}"), json!({})).await.ok(200);
    assert_eq!(paused["queue"]["by"], reason);
    let retry = json!({"id": "again", "action": "retry", "tasks": {"ids": ["t"]}});
    let started = api.post(&format!("/v1/operations?{why}"), retry).await.ok(201);
    assert_eq!(started["operation"]["by"], reason);
    api.scene.fire().await;
    assert_eq!(api.task("t").await["by"], json!({"reason": "ticket 42 \u{202e}", "operation": "again"}));
    // Who doesn't say why leaves nothing, and a long reason is refused.
    let resumed = api.post("/v1/queues/q/resume", json!({})).await.ok(200);
    assert_eq!(resumed["queue"].get("by"), None);
    let long = format!("/v1/queues/q/pause?reason={}", "x".repeat(129));
    api.post(&long, json!({})).await.problem(413, "limit_exceeded");
}
