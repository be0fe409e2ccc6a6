//! Deadlines that pass without any call.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use crate::system::{System, task};

/// So far ahead that the write sends no timer: a tick has to.
const BEYOND_WRITERS: &str = "210s";
/// That span, and the time that a busy machine needs.
const PASSED: Duration = Duration::from_mins(5);

#[tokio::test]
async fn deadlines_that_only_a_tick_enforces_pass_and_a_late_result_is_refused() {
    let system = System::deployed().await;
    let parked = task("parked", "default", json!({"timeout": BEYOND_WRITERS}));
    system.post("/v1/tasks", parked).await;
    let silent = task("silent", "default", json!({"start_to_close_timeout": BEYOND_WRITERS}));
    system.post("/v1/tasks", silent).await;
    // Its worker takes a lease longer than the deadline, and never reports in time.
    let claimed = system.post("/v1/tasks/silent/claim", json!({"worker": "w", "lease": "10m"})).await;
    let lease = &claimed["tasks"][0]["lease"];
    assert!(lease.is_string(), "{claimed}");

    let (parked, silent) = tokio::join!(
        system.status("parked", "timed_out", PASSED),
        system.status("silent", "timed_out", PASSED)
    );
    assert_eq!(parked["attempts"], json!([]), "it was never claimed");
    for task in [&parked, &silent] {
        assert_eq!(task["error"]["code"], "timed_out", "{task}");
    }

    let report = json!({"lease": lease, "output": "too late"});
    let (status, problem) = system.call(Method::POST, "/v1/tasks/silent/complete", Some(report)).await;
    assert_eq!((status, &problem["code"]), (409, &json!("deadline_exceeded")), "{problem}");
    assert_eq!(system.task("silent").await.unwrap()["status"], "timed_out");
}
