//! Long polls that end early: with an answer, at the server's end, for a caller who sends nothing more, and for another caller.

use std::time::Duration;

use tickover_embedded::Bounds;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::{Server, reply};

/// Far less than the polls wait.
const SOON: Duration = Duration::from_secs(5);

/// A queue that exists and is empty, and an execution without a worker.
async fn server(bounds: Bounds) -> Server {
    let server = Server::bounded(bounds).await;
    server.post("/v1/tasks", r#"{"queue": "q", "kind": "k", "id": "first"}"#).await.ok(201);
    server.post("/v1/queues/q/claim", "{}").await.ok(200);
    server.post("/v1/executions", r#"{"workflow": "w", "id": "e"}"#).await.ok(201);
    server
}

/// Sends a claim that waits for 20 s, on a connection that its caller keeps.
async fn claiming(server: &Server, more: &str) -> TcpStream {
    let claim = format!(r#"{{"wait": "20s"{more}}}"#);
    let head = "POST /v1/queues/q/claim HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let mut stream = server.connect().await;
    let request = format!("{head}content-length: {}\r\n\r\n{claim}", claim.len());
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

async fn watching(server: &Server) -> TcpStream {
    let mut stream = server.connect().await;
    let request = "GET /v1/executions/e?wait=20s HTTP/1.1\r\nhost: localhost\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// Returns once the server has seen all that was sent before.
async fn seen(server: &Server) {
    for _ in 0..3 {
        server.get("/healthz").await.ok(200);
    }
}

#[tokio::test]
async fn a_stopping_server_answers_its_long_polls_at_once() {
    let server = server(Bounds::default()).await;
    let (mut claim, mut filling) = (claiming(&server, "").await, claiming(&server, r#", "max": 5"#).await);
    let mut watch = watching(&server).await;
    seen(&server).await;
    timeout(SOON, server.stop()).await.unwrap();
    for claim in [&mut claim, &mut filling] {
        assert_eq!(reply(claim).await.ok(200)["tasks"], serde_json::json!([]));
    }
    assert_eq!(reply(&mut watch).await.ok(202)["execution"]["status"], "pending");
}

#[tokio::test]
async fn a_caller_who_has_closed_its_side_gets_its_answer_and_no_task_that_comes_later() {
    let server = server(Bounds::default()).await;
    let mut asking = server.connect().await;
    asking.write_all(b"GET /v1/tasks/first HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    asking.shutdown().await.unwrap();
    assert_eq!(reply(&mut asking).await.ok(200)["task"]["id"], "first");

    let mut claim = claiming(&server, "").await;
    claim.shutdown().await.unwrap();
    let answer = timeout(SOON, reply(&mut claim)).await.unwrap();
    assert_eq!(answer.ok(200)["tasks"], serde_json::json!([]));
    // A task that is there is claimed at once.
    server.post("/v1/tasks", r#"{"queue": "q", "kind": "k", "id": "second"}"#).await.ok(201);
    let mut claim = claiming(&server, "").await;
    claim.shutdown().await.unwrap();
    assert_eq!(reply(&mut claim).await.ok(200)["tasks"][0]["id"], "second");
    server.stop().await;
}

#[tokio::test]
async fn the_oldest_long_poll_ends_for_a_new_caller_when_there_is_no_connection_left() {
    let server = server(Bounds { connections: Some(3), ..Bounds::default() }).await;
    let mut first = claiming(&server, "").await;
    seen(&server).await;
    let mut second = claiming(&server, "").await;
    seen(&server).await;
    let is_answered =
        async |poll: &TcpStream| timeout(Duration::from_millis(50), poll.readable()).await.is_ok();
    let mut further = vec![];
    while !is_answered(&first).await {
        further.push(claiming(&server, "").await);
        // One of which nothing was read yet would be closed first.
        assert!(!is_answered(&first).await);
        timeout(SOON, server.get("/healthz")).await.unwrap().ok(200);
    }
    assert_eq!(reply(&mut first).await.ok(200)["tasks"], serde_json::json!([]));
    assert!(!is_answered(&second).await);
    server.stop().await;
    assert_eq!(reply(&mut second).await.ok(200)["tasks"], serde_json::json!([]));
}
