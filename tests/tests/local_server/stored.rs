//! What a local server finds in its file when it starts.

use std::time::Duration;

use serde_json::json;
use tickover_core::limits::Limits;
use tickover_embedded::{Local, Storage};

use crate::Server;

#[tokio::test]
async fn unreadable_records_are_named_and_all_others_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let storage = Storage::File(path.clone());
    let server = Server::over(Local::open(&storage, Limits::default()).await.unwrap()).await;
    for id in ["broken", "whole"] {
        let task = json!({"queue": "q", "kind": "k", "id": id}).to_string();
        server.post("/v1/tasks", &task).await.ok(201);
        server.post("/v1/executions", &json!({"workflow": "w", "id": id}).to_string()).await.ok(201);
        let schedule = json!({"id": id, "every": "1h", "task": {"queue": "q", "kind": "k"}}).to_string();
        server.post("/v1/crons", &schedule).await.ok(201);
    }
    server.stop().await;
    let database = rusqlite::Connection::open(&path).unwrap();
    let changed = database
        .execute("UPDATE record SET body = replace(body, '{\"v\":', '{\"v\":9') WHERE id = 'broken'", []);
    assert_eq!(changed, Ok(3));
    drop(database);
    let server = Server::over(Local::open(&storage, Limits::default()).await.unwrap()).await;
    // The server answers while it still reads its records.
    let named = async {
        loop {
            let health = server.get("/healthz").await.ok(200).clone();
            let named: Vec<String> = serde_json::from_value(health["unreadable"].clone()).unwrap_or_default();
            if named.len() == 3 {
                assert_eq!(health["status"], "degraded");
                return named;
            }
        }
    };
    let mut named = tokio::time::timeout(Duration::from_secs(30), named).await.unwrap();
    named.sort_unstable();
    assert_eq!(named, ["cron broken", "execution broken", "task broken"]);
    assert_eq!(server.post("/v1/queues/q/claim", "{}").await.ok(200)["tasks"][0]["id"], "whole");
    server.get("/v1/tasks/broken").await.problem(500, "corrupt_record");
    server.get("/v1/executions/whole").await.ok(200);
    server.get("/v1/crons/whole").await.ok(200);
    server.stop().await;
}
