use serde_json::{Value, json};

use super::*;

const NOW: &str = "2026-01-31T12:00:00.000Z";

/// The explanation of a task with these fields besides the required ones.
fn explained(fields: &Value) -> String {
    let mut task = json!({"id": "t1", "queue": "emails", "kind": "send", "attempt": 0, "max_attempts": 3,
        "created_at": NOW, "attempts": [], "next": {"what": "waits_for_worker"}});
    for (name, value) in fields.as_object().expect("an object") {
        task[name] = value.clone();
    }
    let task = serde_json::from_value(task).expect("a task");
    text(&task, Timestamp::parse_rfc3339(NOW).expect("an instant"))
}

#[track_caller]
fn assert_says(fields: &Value, sentences: &[&str]) {
    let explained = explained(fields);
    for sentence in sentences {
        assert!(explained.contains(sentence), "{sentence:?} should be in:\n{explained}");
    }
}

#[test]
fn a_task_that_nobody_claims_waits_for_a_worker() {
    assert_says(
        &json!({"status": "pending", "available_at": "2026-01-31T11:59:00.000Z",
            "next": {"what": "waits_for_worker"}}),
        &[
            "Task t1 (kind send, queue emails) is pending: it has been waiting for a worker of queue emails that knows its kind since",
            "Next: the first worker that asks gets it; nothing limits the wait.",
            "Attempts: 0 of 3 used, 3 left.",
            "No deadline or timeout binds it.",
        ],
    );
}

#[test]
fn a_task_of_a_paused_queue_waits_for_whoever_resumes_it() {
    assert_says(
        &json!({"status": "pending", "next": {"what": "queue_paused", "paused": true}}),
        &[
            "its queue emails is paused: no worker gets it",
            "Next: nothing, until `tickover queue resume emails`.",
        ],
    );
    let bound = json!({"status": "pending", "deadline_at": "2026-01-31T13:00:00.000Z",
        "next": {"what": "schedule_to_close_timeout", "at": "2026-01-31T13:00:00.000Z", "paused": true}});
    assert_says(
        &bound,
        &["its queue emails is paused", "Next: unless it has ended by 2026-01-31T13:00:00.000Z"],
    );
}

#[test]
fn a_task_that_waits_for_a_place_names_the_key_the_holders_and_its_position() {
    let holder = |task: &str| json!({"task": task, "until": NOW, "called": false});
    let limit = json!({"key": "customer-7", "limit": 2, "pinned": false, "taken": 2,
        "holders": [holder("a"), holder("b")], "waiting": 4, "more": false, "next": [{"task": "t0"}, {"task": "t1"}]});
    assert_says(
        &json!({"status": "pending", "available_at": "2026-01-31T11:59:00.000Z",
            "waits_at": {"limit": limit, "position": 2}, "next": {"what": "waits_for_place"}}),
        &[
            "is pending: key \"customer-7\" has reached its limit of 2 since",
            "it is number 2 of 4 that wait, and the places have a, b.",
            "Next: it is called when it is its turn for a place; nothing limits the wait.",
        ],
    );
}

#[test]
fn a_task_that_waits_for_its_rate_names_the_key_and_the_instant() {
    assert_says(
        &json!({"status": "pending", "available_at": "2026-01-31T12:00:05.000Z",
            "next": {"what": "waits_for_rate", "at": "2026-01-31T12:00:05.000Z", "key": "smtp"}}),
        &[
            "is pending: key \"smtp\" has reached its rate, which lets it start 2026-01-31T12:00:05.000Z (in 5s).",
            "Next: from 2026-01-31T12:00:05.000Z (in 5s) on a worker of queue emails may have it.",
        ],
    );
}

#[test]
fn a_task_in_its_backoff_says_which_attempt_failed_why_and_when_the_next_may_start() {
    assert_says(
        &json!({"status": "pending", "attempt": 1, "available_at": "2026-01-31T12:00:05.000Z",
            "deadline_at": "2026-01-31T13:30:00.000Z",
            "next": {"what": "becomes_available", "at": "2026-01-31T12:00:05.000Z"},
            "attempts": [{"attempt": 1, "ended_at": "2026-01-31T11:59:55.000Z", "outcome": "failed",
                "error": {"code": "exit_7", "message": "first line\nno such host\n"}}]}),
        &[
            "attempt 1 failed, and the wait before the next one ends 2026-01-31T12:00:05.000Z (in 5s).",
            "Next: from 2026-01-31T12:00:05.000Z (in 5s) on a worker of queue emails may have it.",
            "Attempts: 1 of 3 used, 2 left.",
            "Last error: exit_7: no such host (attempt 1, 2026-01-31T11:59:55.000Z (5s ago)).",
            "It is bound by 1 instant:\n  2026-01-31T13:30:00.000Z (in 1h 30m): the whole task must have ended",
        ],
    );
}

#[test]
fn a_running_task_names_its_worker_and_its_instants_soonest_first() {
    let explained =
        explained(&json!({"status": "running", "attempt": 3, "progress": 0.5, "details": {"row": 7},
        "deadline_at": "2026-01-31T12:10:00.000Z", "lease_expires_at": "2026-01-31T12:00:40.000Z",
        "next": {"what": "lease_expires", "at": "2026-01-31T12:00:40.000Z"},
        "attempts": [{"attempt": 3, "worker": "laptop-1", "claimed_at": "2026-01-31T11:59:40.000Z"}]}));
    assert!(
        explained.contains("laptop-1 has had it since 2026-01-31T11:59:40.000Z and says it is 50 % done, with the details {\"row\":7}.")
    );
    assert!(explained.contains("another worker takes the task over"));
    assert!(explained.contains("3 of 3 used, this is the last one."));
    let lease = explained.find("renewed its lease").expect("the lease");
    let deadline = explained.find("whole task").expect("the deadline");
    assert!(lease < deadline, "{explained}");
}

#[test]
fn a_worker_that_went_silent_is_said_to_be_perhaps_lost() {
    assert_says(
        &json!({"status": "running", "attempt": 1, "lease_expires_at": "2026-01-31T11:59:59.000Z"}),
        &["its lease ran out 2026-01-31T11:59:59.000Z (1s ago): it may be lost."],
    );
}

#[test]
fn every_end_says_why_it_is_the_end() {
    let last =
        json!([{"attempt": 3, "ended_at": NOW, "outcome": "failed", "error": {"code": "c", "message": ""}}]);
    for (fields, sentence) in [
        (json!({"status": "failed", "attempt": 3, "attempts": last}), "it was the last one."),
        (json!({"status": "failed", "attempt": 1}), "with an error that isn't retried."),
        (
            json!({"status": "failed", "attempt": 1, "error": {"code": "poisoned", "message": ""}}),
            "were lost while they had it.",
        ),
        (
            json!({"status": "timed_out", "timeout_kind": "schedule_to_close"}),
            "deadline over all attempts passed",
        ),
        (
            json!({"status": "timed_out", "timeout_kind": "heartbeat"}),
            "no sign of life in time, and that is final.",
        ),
        (json!({"status": "cancelled"}), "somebody cancelled it."),
        (
            json!({"status": "cancelled", "timeout_kind": "start_to_close"}),
            "which for this task is no error.",
        ),
        (json!({"status": "skipped", "max_attempts": 0}), "allows 0 attempts"),
        (json!({"status": "completed", "attempt": 1}), "attempt 1 reported its result."),
    ] {
        assert_says(&fields, &[sentence]);
    }
}

#[test]
fn an_ended_task_says_how_it_can_be_revived_unless_it_has_its_result() {
    let deleted = json!({"what": "deleted", "at": "2026-03-02T12:00:00.000Z"});
    assert_says(
        &json!({"status": "failed", "next": deleted}),
        &["`tickover retry t1` gives it another life."],
    );
    assert!(!explained(&json!({"status": "completed", "next": deleted})).contains("retry"));
}

#[test]
fn a_steps_task_names_its_execution_and_its_policies() {
    assert_says(
        &json!({"status": "timed_out", "execution_id": "order-7", "step": "label[3]",
            "retry": {"max_attempts": 3, "delay": "2s", "backoff": 2.0},
            "timeouts": {"start_to_close": {"after": "30s", "on_timeout": "retry", "error_on_timeout": true}}}),
        &[
            "It is the step label[3] of the execution order-7; `tickover explain order-7` explains that.",
            "Retries: 3 attempts; delay 2s; backoff 2.",
            "Timeouts: closes within 30s, retried.",
        ],
    );
}
