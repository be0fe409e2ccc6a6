//! Starts that fail, and stores that can't be reached.

use serde_json::json;
use tickover_tests::runtime_api::Function;

use crate::deployment::Deployment;

const FUNCTIONS: [&str; 6] = ["schedule", "claim", "complete", "tick", "gateway", "worker"];

#[tokio::test]
async fn a_wrong_environment_stops_every_function_at_its_start_with_all_problems() {
    for name in FUNCTIONS {
        let environment =
            [("TICKOVER_QUEUES", "emails"), ("TICKOVER_EVENTS", "events"), ("TICKOVER_LEASE", "1 fortnight")];
        let function = Function::start(&format!("tickover-{name}"), &environment).await.unwrap();
        let error = function.init_error().await.unwrap();
        assert_eq!(error.error_type, "invalid_environment", "{name}: {error}");
        for problem in [
            "TICKOVER_TABLE is missing",
            "TICKOVER_QUEUES must be a list of name=URL",
            "TICKOVER_TIMERS is missing: the URL of the timers queue, without which deadlines",
            "TICKOVER_EVENTS must be a queue's URL",
            "1 fortnight",
        ] {
            assert!(error.error_message.contains(problem), "{name}: {error}");
        }

        let exit = function.invoke(json!({})).await.unwrap_err();
        assert!(exit.error_message.contains("exit status: 1"), "{name}: {exit}");
        assert!(function.logs().contains("TICKOVER_TABLE is missing"), "{name}: {}", function.logs());
    }
}

#[tokio::test]
async fn a_store_that_cannot_be_reached_is_an_error_so_that_lambda_repeats_the_event() {
    let nowhere = Deployment::unreachable();
    for (name, event) in [
        ("schedule", json!({"queue": "emails", "kind": "send-email"})),
        ("claim", json!({"queue": "emails", "worker": "worker-1"})),
        ("tick", json!({})),
    ] {
        let function = nowhere.start_at(name, "http://127.0.0.1:1").await;
        let error = function.invoke(event).await.unwrap_err();
        assert_eq!(error.error_type, "unavailable", "{name}: {error}");
    }
}

#[tokio::test]
async fn a_missing_table_or_queue_is_an_error_with_advice() {
    let nothing = Deployment::empty();
    let schedule = nothing.start("schedule").await;
    let error = schedule.invoke(json!({"queue": "emails", "kind": "send-email"})).await.unwrap_err();
    assert_eq!(error.error_type, "unavailable", "{error}");
    let logs = schedule.logs();
    assert!(logs.contains("ResourceNotFoundException") && logs.contains("correct TICKOVER_TABLE"), "{logs}");

    // The table exists, but there is no queue at the URL of that name.
    let half = Deployment::without_queues().await;
    let claim = half.start("claim").await;
    let answer = claim.invoke(json!({"queue": "emails", "worker": "worker-1"})).await.unwrap();
    assert_eq!((&answer["status"], &answer["code"]), (&json!(404), &json!("unknown_queue")), "{answer}");
    let logs = claim.logs();
    assert!(logs.contains("no queue at the URL configured") && logs.contains("emails"), "{logs}");
}
