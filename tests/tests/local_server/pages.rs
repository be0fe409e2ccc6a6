//! Requests that a web page can make a browser send to a server on this machine.

use std::net::{IpAddr, SocketAddr};

use tickover_core::limits::Limits;
use tickover_embedded::{Local, Storage};

use crate::Server;

const TASK: &str = r#"{"queue": "q", "kind": "k", "id": "from-a-page"}"#;

/// Checks that nothing was scheduled, cancelled or paused.
async fn is_untouched(server: &Server) {
    assert_eq!(server.get("/v1/tasks/from-a-page").await.status, 404);
    assert_eq!(server.get("/v1/tasks/mine").await.ok(200)["task"]["status"], "pending");
    assert_eq!(server.get("/v1/queues/q").await.ok(200)["queue"]["paused"], false);
}

async fn with_a_task() -> Server {
    let server = Server::start().await;
    server.post("/v1/tasks", r#"{"queue": "q", "kind": "k", "id": "mine"}"#).await.ok(201);
    server
}

#[tokio::test]
async fn a_form_or_a_fetch_without_cors_of_any_page_changes_nothing() {
    let server = with_a_task().await;
    let calls = [("/v1/tasks", TASK), ("/v1/tasks/mine/cancel", ""), ("/v1/queues/q/pause", "")];
    for (path, body) in calls {
        let line = format!("POST {path} HTTP/1.1");
        for media_type in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "text/json",
            "",
        ] {
            let media_type = format!("content-type: {media_type}");
            // Old browsers, which don't send the origin of a request.
            server
                .send(&[&line, "host: localhost", &media_type], body)
                .await
                .problem(415, "unsupported_media_type");
            for from in ["origin: https://evil.test", "origin: null", "sec-fetch-site: cross-site"] {
                let lines = [&line, "host: localhost", &media_type, from];
                server.send(&lines, body).await.problem(403, "foreign_origin");
            }
        }
        server.send(&[&line, "host: localhost"], body).await.problem(415, "unsupported_media_type");
    }
    is_untouched(&server).await;
    server.stop().await;
}

#[tokio::test]
async fn a_page_of_another_site_is_refused_whatever_it_declares_and_its_preflight_too() {
    let server = with_a_task().await;
    for from in [
        "origin: https://evil.test",
        "origin: http://localhost:3000",
        "sec-fetch-site: same-site",
        "origin: null",
    ] {
        let json = "content-type: application/json";
        let schedule = ["POST /v1/tasks HTTP/1.1", "host: localhost", json, from];
        server.send(&schedule, TASK).await.problem(403, "foreign_origin");
        let read = ["GET /v1/tasks HTTP/1.1", "host: localhost", from];
        server.send(&read, "").await.problem(403, "foreign_origin");
        for path in ["/v1/crons/s", "/v1/executions/e/events/n"] {
            let delete = format!("DELETE {path} HTTP/1.1");
            server.send(&[&delete, "host: localhost", from], "").await.problem(403, "foreign_origin");
        }
        let asks = "access-control-request-method: POST";
        let preflight = ["OPTIONS /v1/tasks HTTP/1.1", "host: localhost", from, asks];
        server.send(&preflight, "").await.problem(403, "foreign_origin");
    }
    let bare = server.send(&["OPTIONS /v1/tasks HTTP/1.1", "host: localhost"], "").await;
    bare.problem(405, "method_not_allowed");
    is_untouched(&server).await;
    server.stop().await;
}

#[tokio::test]
async fn a_rebound_host_name_is_refused() {
    let server = with_a_task().await;
    for path in ["/v1/tasks", "/v1/tasks/mine", "/healthz", "/metrics", "/openapi.json", "/nowhere"] {
        let line = format!("GET {path} HTTP/1.1");
        for host in ["host: evil.test:7070", "host: localhost.evil.test", "host: 0.0.0.0", "x-no: host"] {
            let reply = server.send(&[&line, host], "").await;
            reply.problem(403, "foreign_host");
            assert!(!reply.text.contains("mine"), "{reply:?}");
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn programs_and_the_servers_own_pages_get_answers() {
    let server = with_a_task().await;
    for host in ["localhost", "127.0.0.1:7070", "[::1]:7070", "LOCALHOST:1"] {
        for path in ["/v1/tasks/mine", "/healthz", "/metrics", "/openapi.json"] {
            let (line, host) = (format!("GET {path} HTTP/1.1"), format!("host: {host}"));
            server.send(&[&line, &host], "").await.ok(200);
        }
    }
    let own = [
        "POST /v1/queues/q/pause HTTP/1.1",
        "host: localhost:7070",
        "origin: http://localhost:7070",
        "sec-fetch-site: same-origin",
        "content-type: application/json; charset=utf-8",
    ];
    server.send(&own, "").await.ok(200);
    let typed =
        ["GET /healthz HTTP/1.1", "host: localhost:7070", "sec-fetch-site: none", "sec-fetch-mode: navigate"];
    server.send(&typed, "").await.ok(200);
    server.stop().await;
}

#[tokio::test]
async fn an_allowed_host_name_is_answered_and_others_are_refused() {
    let local = Local::open(&Storage::Memory, Limits::default()).await.unwrap();
    let server = Server::over(local.allow_hosts(["tickover.test".parse().unwrap()])).await;
    for (host, status) in
        [("tickover.test", 200), ("Tickover.TEST:7070", 200), ("localhost", 200), ("other.test", 403)]
    {
        let host = format!("host: {host}");
        server.send(&["GET /healthz HTTP/1.1", &host], "").await.ok(status);
    }
    server.stop().await;
}

/// An address of this machine that other machines use, if it has one: a caller on it looks like another machine.
fn own_address() -> Option<IpAddr> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    // Nothing is sent.
    socket.connect("192.0.2.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|address| !address.is_loopback())
}

#[tokio::test]
async fn a_server_on_all_addresses_refuses_other_machines_until_a_name_is_allowed() {
    let Some(own) = own_address() else { return };
    for (names, status) in [(vec![], 403), (vec!["tickover.test".parse().unwrap()], 200)] {
        let local = Local::open(&Storage::Memory, Limits::default()).await.unwrap();
        let server = Server::at("0.0.0.0:0", local.allow_hosts(names)).await;
        server.get("/healthz").await.ok(200);
        let there = Server { address: SocketAddr::new(own, server.address.port()), ..server };
        let reply = there.get("/healthz").await;
        assert_eq!(reply.status, status, "{reply:?}");
        if status == 403 {
            reply.problem(403, "foreign_machine");
        }
        there.stop().await;
    }
}

#[tokio::test]
async fn every_body_must_be_declared_as_json() {
    let server = with_a_task().await;
    let schedule = r#"{"every": "1h", "task": {"queue": "q", "kind": "k"}}"#;
    for (line, body) in [
        ("PUT /v1/crons/s HTTP/1.1", schedule),
        ("PUT /v1/crons/s HTTP/1.1", ""),
        ("DELETE /v1/crons/s HTTP/1.1", "{}"),
        ("DELETE /v1/executions/e/events/n HTTP/1.1", "{}"),
    ] {
        for media_type in ["content-type: text/plain", "x-none: 1"] {
            let reply = server.send(&[line, "host: localhost", media_type], body).await;
            reply.problem(415, "unsupported_media_type");
        }
    }
    let json = "content-type: application/json";
    server.send(&["PUT /v1/crons/s HTTP/1.1", "host: localhost", json], schedule).await.ok(201);
    let delete = "DELETE /v1/crons/s HTTP/1.1";
    server.send(&[delete, "host: localhost", json], r#"{"a": 1}"#).await.problem(400, "invalid_request");
    server.send(&[delete, "host: localhost"], "").await.ok(200);
    server.stop().await;
}
