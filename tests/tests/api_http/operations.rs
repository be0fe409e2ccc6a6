//! Operations on many tasks and executions.

use std::sync::Arc;

use serde_json::{Value, json};
use tickover_service::memory::MemoryStore;
use tickover_service::ports::Listed;
use tickover_tests::scene::Scene;

use crate::support::{Api, keys, names};

impl Api {
    /// A task that has failed with this code.
    async fn failed(&self, id: &str, code: &str) {
        let lease = self.running(id, json!({"retry": "none", "labels": {"team": code}})).await;
        let failure = json!({"lease": lease, "error": {"code": code, "message": "no"}});
        self.post(&format!("/v1/tasks/{id}/fail"), failure).await.ok(200);
    }

    async fn operation(&self, id: &str) -> Value {
        self.get(&format!("/v1/operations/{id}")).await.ok(200)["operation"].take()
    }
}

#[tokio::test]
async fn all_failed_tasks_with_an_error_are_retried_once_by_an_operation() {
    let api = Api::start().await;
    for (id, code) in [("a", "declined"), ("b", "declined"), ("c", "other")] {
        api.failed(id, code).await;
    }
    let asked = json!({"id": "again", "action": "retry", "tasks": {"queue": "q", "error": "declined"}});
    let started = api.post("/v1/operations", asked.clone()).await.ok(201)["operation"].take();
    assert_eq!(keys(&started), names("id action dry_run status created_at matched changed unchanged tasks"));
    assert_eq!((&started["status"], &started["matched"]), (&json!("running"), &json!(0)));
    // Without a status it is for those that a retry is for.
    let expected = json!({"queue": "q", "error": "declined", "status": ["failed", "timed_out"]});
    assert_eq!(started["tasks"], expected);
    assert_eq!(api.post("/v1/operations", asked).await.ok(200)["operation"], started);
    let other = json!({"id": "again", "action": "retry", "tasks": {"queue": "q"}});
    api.post("/v1/operations", other).await.problem(409, "id_conflict");
    assert_eq!(api.task("a").await["status"], "failed");

    api.scene.fire().await;
    let ended = api.operation("again").await;
    assert_eq!(
        (&ended["status"], &ended["matched"], &ended["changed"]),
        (&json!("completed"), &json!(2), &json!(2))
    );
    assert!(ended["ended_at"].is_string() && ended["expires_at"].is_string(), "{ended}");
    for (id, status) in [("a", "pending"), ("b", "pending"), ("c", "failed")] {
        assert_eq!(api.task(id).await["status"], status, "{id}");
    }
    let listed = api.get("/v1/operations?limit=1").await.ok(200);
    assert_eq!(listed["operations"], json!([ended]));
    api.post("/v1/operations/again/stop", json!({})).await.ok(200);
    api.get("/v1/operations/nobody").await.problem(404, "not_found");
    api.post("/v1/operations/nobody/stop", json!({})).await.problem(404, "not_found");
}

#[tokio::test]
async fn an_operation_is_counted_first_stopped_and_names_what_was_refused() {
    let api = Api::start().await;
    for id in ["e-1", "e-2"] {
        api.post("/v1/executions", json!({"workflow": "w", "id": id})).await.ok(201);
    }
    let all = json!({"workflow": "w"});
    let counted = json!({"id": "count", "action": "cancel", "executions": all, "dry_run": true});
    api.post("/v1/operations", counted).await.ok(201);
    api.scene.fire().await;
    let counted = api.operation("count").await;
    assert_eq!(
        (&counted["matched"], &counted["changed"], &counted["dry_run"]),
        (&json!(2), &json!(0), &json!(true))
    );

    let cancel = json!({"id": "stopped", "action": "cancel", "executions": all});
    api.post("/v1/operations", cancel).await.ok(201);
    let stopped = api.post("/v1/operations/stopped/stop", json!({})).await.ok(200);
    assert_eq!((&stopped["changed"], &stopped["operation"]["status"]), (&json!(true), &json!("stopping")));
    let again = api.post("/v1/operations/stopped/stop", json!({})).await.ok(200);
    assert_eq!(again["changed"], false);
    api.scene.fire().await;
    let stopped = api.operation("stopped").await;
    assert_eq!((&stopped["status"], &stopped["matched"]), (&json!("stopped"), &json!(0)));
    assert_eq!(stopped.get("total"), None, "nobody has counted them");
    let open = api.get("/v1/executions?workflow=w&status=pending").await.ok(200);
    assert_eq!(open["executions"].as_array().unwrap().len(), 2);

    let ids = json!({"ids": ["e-2", "nobody", "e-2"]});
    let restart = json!({"id": "these", "action": "restart", "executions": ids});
    api.post("/v1/operations", restart).await.ok(201);
    let event = json!({"name": "go", "payload": {"n": 1.50}});
    let announce =
        json!({"id": "event", "action": "send_event", "executions": {"ids": ["e-1"]}, "event": event});
    let sent = api.post("/v1/operations", announce).await.ok(201);
    assert_eq!(sent["operation"]["event"], event);
    api.scene.fire().await;
    let these = api.operation("these").await;
    assert_eq!(
        (&these["matched"], &these["unchanged"], &these["refused"]),
        (&json!(1), &json!(1), &json!({"not_found": 1}))
    );
    let waiting = api.get("/v1/executions/e-1/events").await.ok(200);
    let expected = json!([{"name": "go", "event_id": "event", "payload": {"n": 1.5}}]);
    let mut events = waiting["events"].clone();
    events[0].as_object_mut().unwrap().remove("sent_at");
    assert_eq!(events, expected);
}

#[tokio::test]
async fn a_stopped_operation_goes_on_and_says_how_many_there_are() {
    let api = Api::start().await;
    for id in ["a", "b", "c"] {
        api.failed(id, "declined").await;
    }
    let retry = json!({"id": "again", "action": "retry", "tasks": {"queue": "q"}, "total": 3});
    let started = api.post("/v1/operations", retry).await.ok(201);
    assert_eq!(started["operation"]["total"], 3);
    let resume = async || api.post("/v1/operations/again/resume", json!({})).await.ok(200);
    assert_eq!(resume().await["changed"], false);
    api.post("/v1/operations/again/stop", json!({})).await.ok(200);
    assert_eq!(resume().await["changed"], false, "its last page isn't counted yet");
    api.scene.fire().await;
    assert_eq!(api.operation("again").await["status"], "stopped");
    let resumed = resume().await;
    assert_eq!((&resumed["changed"], &resumed["operation"]["status"]), (&json!(true), &json!("running")));
    api.scene.fire().await;
    let ended = api.operation("again").await;
    let done = ["status", "total", "matched", "changed"].map(|field| ended[field].clone());
    assert_eq!(done, [json!("completed"), json!(3), json!(3), json!(3)]);
    assert_eq!(resume().await["changed"], false);
    api.post("/v1/operations/nobody/resume", json!({})).await.problem(404, "not_found");
    let listed = json!({"action": "cancel", "tasks": {"ids": ["a", "nobody"]}, "total": 9});
    let listed = api.post("/v1/operations", listed).await.ok(201);
    assert_eq!(listed["operation"]["total"], 2, "they are listed");
}

#[tokio::test]
async fn an_operation_is_for_executions_of_all_workflows_where_all_are_listed() {
    let store = MemoryStore::new().listing(Listed::All);
    let api = Api::over(Scene::over(Arc::new(store))).await;
    for (id, team) in [("e-1", "a"), ("e-2", "b"), ("e-3", "a")] {
        let start = json!({"workflow": format!("of-{id}"), "id": id, "labels": {"team": team}});
        api.post("/v1/executions", start).await.ok(201);
    }
    let cancel = json!({"id": "all", "action": "cancel", "executions": {"label": "team=a"}});
    api.post("/v1/operations", cancel).await.ok(201);
    api.scene.fire().await;
    let all = api.operation("all").await;
    assert_eq!((&all["status"], &all["changed"]), (&json!("completed"), &json!(2)));
    for (id, status) in [("e-1", "cancelled"), ("e-2", "pending"), ("e-3", "cancelled")] {
        let found = api.get(&format!("/v1/executions/{id}")).await.ok(200);
        assert_eq!(found["execution"]["status"], status, "{id}");
    }
}

#[tokio::test]
async fn a_wrong_operation_is_refused_with_its_field() {
    let api = Api::start().await;
    let too_many: Vec<String> = (0..1_001).map(|number| format!("t-{number}")).collect();
    let some = json!({"workflow": "w"});
    for (body, field) in [
        (json!({"action": "retry"}), "executions"),
        (json!({"executions": some}), "action"),
        (json!({"action": "delete", "executions": some}), "action"),
        (json!({"action": "retry", "executions": some, "tasks": {"queue": "q"}}), "tasks"),
        (json!({"action": "retry", "executions": {}}), "executions"),
        (json!({"action": "retry", "tasks": {}}), "tasks"),
        (json!({"action": "retry", "executions": {"ids": []}}), "executions"),
        (json!({"action": "cancel", "executions": {"label": "team=a"}}), "executions.workflow"),
        (
            json!({"action": "retry", "executions": {"workflow": "w", "status": ["failing"]}}),
            "executions.status[0]",
        ),
        (
            json!({"action": "cancel", "executions": {"workflow": "w", "status": ["failed"]}}),
            "executions.status",
        ),
        (json!({"action": "retry", "tasks": {"status": ["cancelled"]}}), "tasks.status"),
        (json!({"action": "retry", "tasks": {"queue": "q", "status": ["completed"]}}), "tasks.status"),
        (json!({"action": "restart", "tasks": {"queue": "q"}}), "action"),
        (json!({"action": "send_event", "executions": some}), "event"),
        (json!({"action": "retry", "executions": some, "event": {"name": "go"}}), "event"),
        (json!({"action": "retry", "tasks": {"queue": "q", "team": "a"}}), "tasks.team"),
        (json!({"id": ".", "action": "retry", "executions": some}), "id"),
    ] {
        let problem = api.post("/v1/operations", body.clone()).await.problem(400, "invalid_request");
        assert_eq!(problem["field"], field, "{body}");
    }
    let body = json!({"action": "retry", "tasks": {"ids": too_many}});
    let problem = api.post("/v1/operations", body).await.problem(413, "limit_exceeded");
    assert_eq!((&problem["limit"], &problem["maximum"]), (&json!("ids"), &json!(1_000)));
    assert_eq!(api.get("/v1/operations").await.ok(200), json!({"operations": []}));
}

#[tokio::test]
async fn tasks_are_listed_by_kind_label_error_and_time() {
    let api = Api::start().await;
    api.failed("a", "declined").await;
    api.advance(60_000);
    api.failed("b", "other").await;
    api.schedule("c", json!({"kind": "late"})).await;
    for (query, expected) in [
        ("error=declined", vec!["a"]),
        ("label=team%3Dother", vec!["b"]),
        ("kind=late", vec!["c"]),
        ("created_before=2026-01-01T00:00:30Z", vec!["a"]),
        ("created_from=2026-01-01T00:00:30Z&status=failed", vec!["b"]),
        ("kind=late&error=declined", vec![]),
    ] {
        let listed = api.get(&format!("/v1/tasks?{query}")).await.ok(200);
        let ids: Vec<_> = listed["tasks"].as_array().unwrap().iter().map(|task| task["id"].clone()).collect();
        assert_eq!(ids, expected, "{query}");
    }
    api.get("/v1/tasks?label=team").await.problem(400, "invalid_request");
}
