//! Callers that connect and send nothing, or too little: they cost little, and don't block others.

use std::time::Duration;

use tickover_embedded::Bounds;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::{Server, reply};

const SHORT: Duration = Duration::from_millis(150);
/// So long that a timeout of this length never fires in a test.
const LONG: Duration = Duration::from_hours(1);

const PATIENT: Bounds =
    Bounds { head: LONG, body: LONG, idle: LONG, connections: None, large_bodies_bytes: 64 * 1024 * 1024 };

#[tokio::test]
async fn silent_and_idle_connections_are_closed() {
    let server = Server::bounded(Bounds { idle: SHORT, ..PATIENT }).await;
    let mut silent = server.connect().await;
    assert_eq!(reply(&mut silent).await.head, "");
    let mut kept = server.connect().await;
    kept.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    // The answer, and then the end of the connection.
    assert_eq!(reply(&mut kept).await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn an_endless_request_head_is_dropped_however_slowly_it_arrives() {
    let server = Server::bounded(Bounds { head: SHORT, ..PATIENT }).await;
    for beginning in ["G", "GET / HTTP/1.1\r\n", "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: "] {
        let mut stream = server.connect().await;
        stream.write_all(beginning.as_bytes()).await.unwrap();
        assert_eq!(reply(&mut stream).await.head, "", "{beginning}");
    }
    server.stop().await;
}

#[tokio::test]
async fn an_endless_body_is_answered_with_408_and_has_no_effect() {
    let server = Server::bounded(Bounds { body: SHORT, ..PATIENT }).await;
    let head = "POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let task = r#"{"queue": "q", "kind": "k", "id": "half"}"#;
    let chunked = format!("{head}transfer-encoding: chunked\r\n\r\n{:x}\r\n{task}\r\n", task.len());
    for half in [format!("{head}content-length: 100\r\n\r\n{task}"), chunked] {
        let mut stream = server.connect().await;
        stream.write_all(half.as_bytes()).await.unwrap();
        reply(&mut stream).await.problem(408, "request_timeout");
    }
    assert_eq!(server.get("/v1/tasks/half").await.status, 404);
    server.stop().await;
}

#[tokio::test]
async fn a_hundred_silent_connections_keep_neither_new_callers_out_nor_end_a_long_poll() {
    let server = Server::bounded(Bounds { connections: Some(8), ..PATIENT }).await;
    server.post("/v1/tasks", r#"{"queue": "q", "kind": "k", "id": "first"}"#).await.ok(201);
    server.post("/v1/queues/q/claim", "{}").await.ok(200);
    let mut polling = server.connect().await;
    let claim = r#"{"wait": "20s"}"#;
    let head = "POST /v1/queues/q/claim HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let request = format!("{head}connection: close\r\ncontent-length: {}\r\n\r\n{claim}", claim.len());
    polling.write_all(request.as_bytes()).await.unwrap();
    let mut silent = Vec::new();
    for number in 0..100 {
        let mut stream = server.connect().await;
        let said =
            ["", "GET / HT", "POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{"];
        stream.write_all(said[number % 3].as_bytes()).await.unwrap();
        silent.push(stream);
        if number % 10 == 0 {
            server.get("/healthz").await.ok(200);
        }
    }
    server.post("/v1/tasks", r#"{"queue": "q", "kind": "k", "id": "second"}"#).await.ok(201);
    assert_eq!(reply(&mut polling).await.ok(200)["tasks"][0]["id"], "second");
    server.stop().await;
}

#[tokio::test]
async fn small_bodies_do_not_wait_for_large_ones_that_are_half_sent() {
    let bounds = Bounds { body: Duration::from_millis(500), large_bodies_bytes: 6 * 1024 * 1024, ..PATIENT };
    let server = Server::bounded(bounds).await;
    let head = "POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let half = format!("{head}content-length: 6000000\r\n\r\n{}", " ".repeat(10_000));
    let mut first = server.connect().await;
    first.write_all(half.as_bytes()).await.unwrap();
    let mut second = server.connect().await;
    second.write_all(half.as_bytes()).await.unwrap();
    server.post("/v1/tasks", r#"{"queue": "q", "kind": "k", "id": "small"}"#).await.ok(201);
    reply(&mut first).await.problem(408, "request_timeout");
    let status = reply(&mut second).await.status;
    assert!(status == 503 || status == 408, "{status}");
    server.stop().await;
}

#[tokio::test]
async fn a_stopping_server_finishes_running_requests_and_waits_for_no_silent_connection() {
    let server = Server::bounded(PATIENT).await;
    let (mut silent, mut asking) = (server.connect().await, server.connect().await);
    asking.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut first = [0; 12];
    asking.read_exact(&mut first).await.unwrap();
    server.stop().await;
    assert_eq!(&first, b"HTTP/1.1 200");
    assert_eq!(reply(&mut silent).await.head, "");
}
