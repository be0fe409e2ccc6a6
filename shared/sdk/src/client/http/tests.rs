use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;
use tickover_core::payload::Json;

use super::*;
use crate::client::{Action, Description, EventName, ExecutionError, ExecutionId, Outcome};
use crate::error::{Cause, Failure};
use crate::options::Scope;
use tickover_wire::Route;

fn described(json: &str) -> Description {
    read::answer(json.as_bytes()).unwrap()
}

#[test]
fn a_failure_is_read_with_the_step_that_it_comes_from() {
    let description = described(
        r#"{"id":"order-7","workflow":"order-fulfilment","queue":"orders","status":"failed","run":2,
            "created_at":"2026-01-31T12:00:00.000Z","run_started_at":"2026-01-31T12:00:01.250Z",
            "ended_at":"2026-01-31T12:05:00.000Z","open_steps":0,"pending_events":1,
            "error":{"code":"declined","message":"no funds"},
            "cause":{"category":"step","step":"charge","retries_exhausted":true},
            "input":{"boxes": 1.50},"next":{"what":"deleted"},"new_in_a_later_build":[1]}"#,
    );
    let error = Failure::new("declined", "no funds");
    let cause = Cause::Step { name: "charge".to_owned(), error, retries_exhausted: true };
    assert_eq!(Outcome::of(&description), Ok(Some(Outcome::Failed(cause))));
    assert_eq!(description.input.unwrap().as_str(), r#"{"boxes": 1.50}"#);
    assert_eq!((description.run, description.pending_events), (2, 1));
    assert_eq!(description.run_started_at.since(*description.created_at), Millis::new(1_250));
}

#[test]
fn the_other_ends_are_distinguished() {
    let ended = |status: &str, more: &str| {
        let text = format!(
            r#"{{"id":"a","workflow":"w","queue":"q","status":"{status}","run":1,
                "created_at":"2026-01-31T12:00:00Z","run_started_at":"2026-01-31T12:00:00Z",
                "open_steps":0,"pending_events":0,"next":{{"what":"deleted"}}{more}}}"#
        );
        Outcome::of(&described(&text))
    };
    assert_eq!(ended("waiting", ""), Ok(None));
    assert_eq!(ended("completed", r#","output":null"#), Ok(Some(Outcome::Completed(Json::parse("null")))));
    let timed_out =
        ended("timed_out", r#","timeout_kind":"run","cause":{"category":"timeout","kind":"run"}"#);
    let result = timed_out.unwrap().unwrap().into_result::<u32>();
    assert_eq!(result.unwrap_err().to_string(), "the execution timed out: the deadline of its run passed");
    let terminated = ended("cancelled", r#","cause":{"category":"terminated"}"#);
    assert_eq!(terminated, Ok(Some(Outcome::Cancelled { terminated: true })));
    assert_eq!(ended("cancelled", ""), Ok(Some(Outcome::Cancelled { terminated: false })));
    // Otherwise a caller that waits for the result would wait forever.
    assert!(matches!(ended("archived", ""), Err(ClientError::Unreadable { .. })));
}

#[test]
fn a_result_of_another_type_is_reported_with_its_path() {
    let outcome = Outcome::Completed(Json::parse(r#"[1,"two"]"#));
    let Err(ExecutionError::Unreadable { type_name, problem }) = outcome.into_result::<Vec<u32>>() else {
        panic!("it doesn't fit")
    };
    assert!(type_name.contains("Vec<u32>") && problem.starts_with("at `[1]`"), "{type_name}: {problem}");
}

#[test]
fn a_start_is_sent_with_only_the_fields_that_were_set() {
    let client = Client::http("http://127.0.0.1:7070").unwrap();
    let start = client.start_by_name::<()>("w", "q", 1.5).delay("1500ms").label("b", "2").label("a", "1");
    let sent = serde_json::to_string(&start.finished().unwrap()).unwrap();
    assert_eq!(
        sent,
        r#"{"workflow":"w","queue":"q","input":1.5,"labels":{"a":"1","b":"2"},"delay":"1s 500ms"}"#
    );
}

#[test]
fn a_task_is_sent_with_only_the_fields_that_were_set() {
    let client = Client::http("http://127.0.0.1:7070").unwrap();
    let sent =
        |task: crate::client::ScheduleTask<()>| serde_json::to_string(&task.finished().unwrap()).unwrap();
    let task = client.task("k", 1.5).queue("q").label("b", "2").label("a", "1");
    assert_eq!(sent(task), r#"{"queue":"q","kind":"k","input":1.5,"labels":{"a":"1","b":"2"}}"#);
    let task = client.task("k", ()).retry("exponential(2, 1s, 1m)").timeout("5s").scope(Scope::PerAttempt);
    let retry = r#"{"max_attempts":3,"delay":"1s","backoff":2.0,"max_delay":"1m","jitter":"full","non_retryable":[]}"#;
    assert_eq!(
        sent(task),
        format!(
            r#"{{"queue":"workflows","kind":"k","input":null,"timeout":"5s","timeout_scope":"per_attempt","retry":{retry}}}"#
        )
    );
}

#[test]
fn a_path_of_the_endpoint_stays_and_names_are_one_segment() {
    let names = ["a".to_owned(), "label[3]".to_owned()];
    for (endpoint, expected) in [
        ("http://127.0.0.1:7070", "http://127.0.0.1:7070/v1/executions/a/steps/label[3]/retry"),
        ("https://example.com/prod/", "https://example.com/prod/v1/executions/a/steps/label[3]/retry"),
    ] {
        let http = Http::new(endpoint).unwrap();
        let url = http.address(&Route::RetryStep.segments(&names)).to_string();
        assert_eq!(url.replace("%5B", "[").replace("%5D", "]"), expected);
    }
    assert_eq!(Http::new("file:///tmp").unwrap_err().code(), Some("invalid_request"));
    assert!(Http::new("no address").is_err());
}

#[test]
fn this_machine_is_recognised_in_every_spelling() {
    let local = ["http://localhost:1", "http://127.0.0.2", "http://[::1]:7070"];
    assert!(local.iter().all(|url| is_loopback(&url.parse().unwrap())));
    assert!(!is_loopback(&"https://example.com".parse().unwrap()));
}

#[test]
fn the_page_of_another_server_is_quoted_and_cut() {
    let body = "<html>".repeat(100);
    let error = refused(
        StatusCode::BAD_GATEWAY,
        &HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from(7))]),
        body.as_bytes(),
    );
    assert!(error.to_string().starts_with("http_502: <html><html>"), "{error}");
    assert!(error.to_string().len() <= "http_502: ".len() + EXCERPT_CHARS);
    assert_eq!((error.is_transient(), error.retry_after()), (true, Some(Millis::from_secs(7))));
    let empty = refused(StatusCode::SERVICE_UNAVAILABLE, &HeaderMap::new(), b"");
    assert_eq!(empty.to_string(), "http_503: 503 Service Unavailable");
}

#[test]
fn a_refusal_names_the_field_and_what_was_expected() {
    let body = r#"{"code":"invalid_request","detail":"retry.delay[2]: expected a duration","field":"retry.delay[2]"}"#;
    let error = refused(StatusCode::BAD_REQUEST, &HeaderMap::new(), body.as_bytes());
    assert_eq!(error.to_string(), "invalid_request: retry.delay[2]: expected a duration");
    let problem = error.problem().unwrap();
    assert_eq!((problem.field.as_deref(), problem.status), (Some("retry.delay[2]"), 400));
    assert!(!error.is_transient());
}

/// Answers each connection with the next of these answers, and counts the connections.
async fn server(answers: &'static [(&'static str, &'static str)]) -> (String, std::sync::Arc<AtomicU32>) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let count = std::sync::Arc::new(AtomicU32::new(0));
    let counted = std::sync::Arc::clone(&count);
    tokio::spawn(async move {
        for (status, body) in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
            let _ = stream.read(&mut [0; 4096]).await;
            let length = body.len();
            let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
            let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
        }
    });
    (address, count)
}

const EVENTS: &str =
    r#"{"events":[{"name":"shipped","payload":{"slip":7},"sent_at":"2026-01-31T12:00:00Z"}],"counts":{}}"#;

#[tokio::test]
async fn a_call_that_may_be_repeated_is_sent_again_when_the_server_has_no_time() {
    let busy = ("503 Service Unavailable", r#"{"code":"unavailable","detail":"not now"}"#);
    let answers = Box::leak(Box::new([busy, ("200 OK", EVENTS)]));
    let (address, count) = server(answers).await;
    let client = Client::from(Http { pause: Millis::ZERO, ..Http::new(&address).unwrap() });
    let events = client.handle::<()>("order-7").unwrap().events().await.unwrap();
    assert_eq!(events[0].read::<serde_json::Value>().unwrap(), json!({"slip": 7}));
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn an_event_without_an_id_is_sent_once() {
    let busy = ("503 Service Unavailable", r#"{"code":"unavailable","detail":"not now"}"#);
    let answers = Box::leak(Box::new([busy, ("200 OK", r#"{"pending":1}"#)]));
    let (address, count) = server(answers).await;
    let handle = Client::http(&address).unwrap().handle::<()>("order-7").unwrap();
    let error = handle.send_event("shipped", 1).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    assert_eq!(count.load(Ordering::SeqCst), 1);
    assert_eq!(handle.send_event("shipped", 1).id("e-1").await.unwrap().pending, 1);
}

#[tokio::test]
async fn an_operation_whose_answer_is_lost_is_asked_for_again_under_its_id() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked = tokio::spawn(async move {
        let mut asked = vec![];
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![];
            let body: serde_json::Value = loop {
                assert!(stream.read_buf(&mut request).await.unwrap() > 0, "half a request");
                let text = str::from_utf8(&request).unwrap();
                let body = text.split_once("\r\n\r\n").map(|(_, body)| serde_json::from_str(body));
                if let Some(Ok(body)) = body {
                    break body;
                }
            };
            let id = body["id"].as_str().unwrap_or_default().to_owned();
            asked.push(id.clone());
            // The first connection is closed without an answer.
            if asked.len() > 1 {
                let answer = json!({"operation": {
                    "id": id, "action": "cancel", "dry_run": false, "status": "running",
                    "created_at": "2026-01-31T12:00:00Z", "matched": 0, "changed": 0, "unchanged": 0,
                }});
                let answer = answer.to_string();
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", answer.len());
                stream.write_all(format!("{head}{answer}").as_bytes()).await.unwrap();
                return asked;
            }
        }
    });
    let client = Client::from(Http { pause: Millis::ZERO, ..Http::new(&address).unwrap() });
    let operation = client.on_tasks(Action::Cancel).only("mail-7").await.unwrap();
    let asked = asked.await.unwrap();
    assert_eq!(asked, [operation.id().as_str(), operation.id().as_str()]);
}

#[tokio::test]
async fn a_refusal_keeps_its_code_and_is_not_repeated() {
    let gone = ("404 Not Found", r#"{"code":"not_found","detail":"there is no execution with this id"}"#);
    let (address, count) = server(Box::leak(Box::new([gone]))).await;
    let handle = Client::http(&address).unwrap().handle::<()>("order-7").unwrap();
    let error = handle.describe().await.unwrap_err();
    assert!(error.is_not_found(), "{error}");
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_header_is_in_each_call_and_in_no_log() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let http = Http::new(&address).unwrap().header("X-Token", "sesame").unwrap();
    assert!(!format!("{http:?}").contains("sesame"));
    let received = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 4096];
        let length = stream.read(&mut request).await.unwrap();
        stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        String::from_utf8_lossy(&request[..length]).into_owned()
    });
    let handle = Client::from(http.clone()).handle::<()>("order-7").unwrap();
    assert!(handle.describe().await.is_err());
    let received = received.await.unwrap();
    assert!(received.contains("x-token: sesame\r\n"), "{received}");

    for (name, value) in [("no spaces", "a"), ("x-token", "line\nbreak")] {
        assert_eq!(http.clone().header(name, value).unwrap_err().code(), Some("invalid_request"));
    }
}

#[tokio::test]
async fn a_caller_that_repeats_calls_itself_has_each_sent_once() {
    let busy = ("503 Service Unavailable", r#"{"code":"unavailable","detail":"not now"}"#);
    let (address, count) = server(Box::leak(Box::new([busy, busy]))).await;
    let client = Client::from(Http::new(&address).unwrap().tries(1));
    assert!(client.handle::<()>("order-7").unwrap().events().await.is_err());
    let name = EventName::parse("shipped").unwrap();
    let id = ExecutionId::parse("order-7").unwrap();
    assert!(client.api().clear_events(&id, &name).await.unwrap_err().is_transient());
    assert_eq!(count.load(Ordering::SeqCst), 2);
}
