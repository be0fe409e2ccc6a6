//! Lines in the log.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::cell::RefCell;
use std::io;
use std::sync::Once;

use serde_json::{Value, json};
use tickover_tests::http::Caller;

use crate::stage::{SECRET, eventful_life, with_events};

thread_local! {
    /// What this thread has logged since [`Log::listen`].
    static LOG: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// All that a test's own thread logs, at every level.
pub(crate) struct Log;

impl Log {
    /// Records from now on. The subscriber is the process's: whether a line is wanted is cached for all threads.
    pub(crate) fn listen() {
        static SUBSCRIBER: Once = Once::new();
        SUBSCRIBER.call_once(|| {
            let json = tracing_subscriber::fmt().json().flatten_event(true);
            json.with_max_level(tracing::Level::TRACE).with_writer(|| Self).init();
        });
        LOG.set(Some(vec![]));
    }

    pub(crate) fn text() -> String {
        String::from_utf8(LOG.with_borrow(|log| log.clone().unwrap())).unwrap()
    }

    /// The lines with this message.
    pub(crate) fn lines(message: &str) -> Vec<Value> {
        let lines =
            Self::text().lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>();
        lines.into_iter().filter(|line| line["message"] == message).collect()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOG.with_borrow_mut(|log| log.iter_mut().for_each(|log| log.extend_from_slice(bytes)));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn the_log_line_of_a_timeout_has_the_task_the_kind_the_deadline_and_the_lateness() {
    Log::listen();
    let caller = Caller::default();
    let task = caller.schedule("a", json!({"timeout": "10s"})).await;
    let claimed_at = caller.now();
    caller.lease().await;
    caller.pass(12).await;
    caller.pass(12).await;

    let lines = Log::lines("TaskTimedOut");
    assert_eq!(lines.len(), 1, "{}", Log::text());
    let expected = [
        ("level", json!("WARN")),
        ("task.id", json!("a")),
        ("queue.name", json!("work")),
        ("attempt", json!(1)),
        ("timeout.kind", json!("schedule_to_close")),
        ("deadline_at", task["deadline_at"].clone()),
        ("lateness_ms", json!(2_000)),
        ("started_at", json!(claimed_at)),
        ("outcome", json!("timed_out")),
        ("worker", json!("tester")),
    ];
    for (field, value) in expected {
        assert_eq!(lines[0][field], value, "{field}: {}", lines[0]);
    }
    assert_eq!(Log::lines("TaskScheduled").len(), 1);
    assert_eq!(Log::lines("TaskStarted").len(), 1);
}

#[tokio::test]
async fn the_log_contains_no_payload() {
    Log::listen();
    let caller = with_events().await;
    eventful_life(&caller, "a").await;
    // Too late, refused, failed: calls that log an error.
    caller.schedule("b", json!({"input": SECRET, "timeout": "5s"})).await;
    let lease = caller.lease().await;
    caller.pass(6).await;
    let late = json!({"lease": lease, "output": SECRET});
    caller.refused("/v1/tasks/b/complete", late).await;
    caller.schedule("c", json!({"input": SECRET})).await;
    let lease = caller.lease().await;
    let error = json!({"code": "smtp", "message": SECRET, "retryable": false});
    caller.ok("/v1/tasks/c/fail", json!({"lease": lease, "error": error})).await;

    assert_eq!(Log::lines("TaskFailed")[0]["error.code"], "smtp");
    assert_eq!(Log::lines("TaskCompleted").len(), 1);
    assert!(!Log::text().contains(SECRET), "{}", Log::text());
}
