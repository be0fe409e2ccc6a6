//! Each type is written as it was read, with its values at their limits, by this crate's reader of requests and by
//! `serde_json`.

use std::fmt::Debug;

use crate::answer::*;
use crate::read;
use crate::request::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tickover_core::by::CALLER_BYTES_MAX;
use tickover_core::id::{CAPABILITY_MAX, FLOW_KEY_MAX};
use tickover_core::limits::*;

const AT: &str = "2026-01-31T12:00:00.250Z";

fn name(length: usize) -> String {
    "A-z.0:9_".chars().cycle().take(length).collect()
}

/// Checks that both readers accept a request, and that it is the same after each.
#[track_caller]
fn request<T: Serialize + DeserializeOwned + PartialEq + Debug>(sample: &Value) {
    let text = sample.to_string();
    let read: T = read::body(&text).unwrap_or_else(|refused| panic!("{refused}: {text}"));
    same(&read, sample);
}

#[track_caller]
fn answer<T: Serialize + DeserializeOwned + PartialEq + Debug>(sample: &Value) {
    let mut newer = sample.clone();
    let read: T = read::answer(sample.to_string().as_bytes()).unwrap();
    same(&read, sample);
    newer["a_field_of_a_newer_server"] = json!([1]);
    assert_eq!(read::answer::<T>(newer.to_string().as_bytes()).unwrap(), read);
}

#[track_caller]
fn query<T: Serialize + DeserializeOwned + PartialEq + Debug>(sample: &Value) {
    let read: T = serde_json::from_value(sample.clone()).unwrap();
    let pairs = pairs(&read);
    assert_eq!(pairs.len(), sample.as_object().unwrap().len());
    assert_eq!(read::query::<T>(&pairs).unwrap(), read);
    same(&read, sample);
}

#[track_caller]
fn same<T: Serialize + DeserializeOwned + PartialEq + Debug>(read: &T, sample: &Value) {
    assert_eq!(serde_json::to_value(read).unwrap(), *sample);
    let text = serde_json::to_string(read).unwrap();
    assert_eq!(serde_json::from_str::<T>(&text).unwrap(), *read);
}

macro_rules! all {
    ($by:ident: $($type:ty = $sample:expr;)*) => { $($by::<$type>(&$sample);)* };
}

fn labels() -> Value {
    let label = |number| (format!("{number:0>LABEL_NAME_MAX$}"), "ü".repeat(LABEL_VALUE_MAX).into());
    Value::Object((0..LABELS_MAX).map(label).collect())
}

fn retry() -> Value {
    json!({
        "max_attempts": u32::MAX, "delay": ["365d", "1h 30m", "0ms"], "backoff": 1.0, "max_delay": "1ms",
        "jitter": "full", "non_retryable": ["x".repeat(64)],
    })
}

fn task() -> Value {
    json!({
        "queue": name(QUEUE_NAME_MAX), "kind": name(KIND_MAX), "id": name(ID_MAX), "input": {"b": [1.5, null]},
        "idempotency_key": "x".repeat(IDEMPOTENCY_KEY_MAX), "delay": "365d",
        "run_at": AT, "timeout": "1ms",
        "timeout_scope": "per_attempt", "schedule_to_start_timeout": "365d",
        "start_to_close_timeout": "1ms",
        "heartbeat_timeout": "1ms",
        "on_timeout": "terminal", "error_on_timeout": false, "retry": retry(),
        "labels": labels(), "maxInactivity": "365d", "maxRuntime": {"timeout": "1ms", "errorOnTimeout": true},
        "deadline": {"timeout": "1s"}, "retries": "exponential(3, 1s, 1m)", "traceparent": "",
    })
}

#[test]
fn requests() {
    let lease = json!("l");
    all! {
        request:
        ScheduleRequest = task();
        ScheduleRequest = json!({"queue": "q", "kind": "k", "input": null, "retry": {
            "maxAttempts": -1, "delay": "1s", "exponentialBackoff": 1.5, "maxDelay": "365d",
        }});
        ScheduleBatchRequest = json!({"tasks": [task()]});
        Batch = json!({"tasks": [task(), 7]});
        ClaimRequest = json!({"worker": name(WORKER_MAX), "version": name(WORKER_MAX), "max": CLAIM_MAX, "lease": "12h", "wait": "20s"});
        ClaimRequest = json!({"max": 1, "lease": "1s", "wait": "0ms"});
        ClaimRequest = json!({"same_key": true, "fill": "20s", "provides": [name(CAPABILITY_MAX)]});
        CompleteRequest = json!({"lease": lease, "output": null});
        CompleteBatchEntry = json!({"id": name(ID_MAX), "lease": lease, "output": "x"});
        CompleteBatchRequest = json!({"tasks": [{"id": "t", "lease": lease}]});
        FailError = json!({"code": "x".repeat(ERROR_CODE_MAX), "message": "", "retryable": false});
        FailRequest = json!({"lease": lease, "error": {"code": "c"}});
        HeartbeatRequest = json!({"lease": lease, "progress": 1.0, "details": null, "worker_only": false});
        ReleaseRequest = json!({"lease": lease});
        CancelRequest = json!({"force": true});
        Nothing = json!({});
        StartRequest = json!({
            "workflow": name(WORKFLOW_MAX), "id": name(EXECUTION_ID_MAX), "queue": name(QUEUE_NAME_MAX), "input": null,
            "labels": labels(), "memo": [null], "execution_timeout": "365d",
            "run_timeout": "1s",
            "on_failure_timeout": "1s",
            "delay": "0ms",
            "policy": "reject_duplicate", "traceparent": "x",
        });
        StartRequest = json!({
            "workflow": "w", "concurrency": [{"key": "k".repeat(FLOW_KEY_MAX), "limit": 1_000}, {"key": "a", "limit": 1}],
            "rate": {"key": "smtp", "limit": 1_000_000, "per": "1d", "burst": 1}, "priority": "low",
            "fairness_key": "ä", "unique": {"key": "u", "for": "30d", "on_conflict": "replace"},
            "debounce": {"key": "d", "wait": "1ms", "at_most": "30d"},
        });
        RerunRequest = json!({
            "steps": ["label[3]", name(STEP_NAME_MAX)], "from": "charge", "input": null, "preserve": false,
        });
        RetryStepRequest = json!({"input": [1]});
        EventRequest = json!({"payload": null, "event_id": name(EVENT_ID_MAX), "traceparent": "x"});
        EventMessage = json!({
            "id": name(EXECUTION_ID_MAX), "name": name(EVENT_NAME_MAX), "payload": 1, "event_id": "e", "traceparent": "x",
        });
        CronRequest = json!({
            "id": name(EXECUTION_ID_MAX), "cron": "0 9 * * *", "time_zone": "UTC", "every": "365d",
            "task": {"queue": "q", "id": "{occurrence}"},
            "execution": {"workflow": "w"}, "overlap": "terminate_other", "missed": "run_once", "jitter": "365d",
            "max_runs": u32::MAX, "paused": true,
        });
    }
}

#[test]
fn queries() {
    all! {
        query:
        TasksQuery = json!({
            "queue": name(QUEUE_NAME_MAX), "status": "pending,timed_out", "include_timed_out": true, "limit": PAGE_MAX,
            "cursor": "c", "ended_from": AT, "ended_before": AT, "stuck": true, "id_prefix": name(ID_MAX),
        });
        ExecutionsQuery = json!({
            "workflow": name(WORKFLOW_MAX), "status": "waiting", "include_timed_out": false, "limit": 1, "cursor": "c",
            "ended_from": AT, "ended_before": AT, "stuck": false, "id_prefix": "e",
        });
        HistoryQuery = json!({"queue": "q"});
        FailuresQuery = json!({"ended_from": AT, "ended_before": AT});
        PageQuery = json!({"limit": 1, "cursor": "c"});
        DescribeQuery = json!({"wait": "20s", "run": 1});
        EventQuery = json!({"answer": "20s"});
    }
}

fn error() -> Value {
    json!({"code": "c", "message": "m"})
}

fn by() -> Value {
    json!({"caller": "c".repeat(CALLER_BYTES_MAX), "operation": name(EVENT_ID_MAX)})
}

fn task_view() -> Value {
    json!({
        "by": by(),
        "id": name(ID_MAX), "queue": name(QUEUE_NAME_MAX), "kind": name(KIND_MAX), "status": "timed_out",
        "execution_id": name(EXECUTION_ID_MAX), "step": "label[3]", "attempt": u32::MAX, "max_attempts": -1,
        "retry": retry(), "timeouts": {
            "schedule_to_close": {"after": "1h", "on_timeout": "terminal", "error_on_timeout": false},
            "heartbeat": {"after": "1m 30s", "on_timeout": "retry", "error_on_timeout": true},
        }, "created_at": AT, "available_at": AT, "ended_at": AT,
        "deadline_at": AT, "schedule_to_start_at": AT, "start_to_close_at": AT, "heartbeat_at": AT,
        "lease_expires_at": AT, "timeout_kind": "heartbeat", "input": null, "output": [1.5], "error": error(),
        "attempts": [{
            "attempt": 1, "worker": name(WORKER_MAX), "claimed_at": AT, "ended_at": AT, "outcome": "lost",
            "error": error(),
        }],
        "progress": 0.25, "details": {"a": 1}, "labels": {"a": "b"}, "priority": "high", "fairness_key": "customer 7",
        "next": {"what": "deleted", "at": AT},
    })
}

#[test]
fn answers_about_tasks() {
    let queue = json!({
        "name": name(QUEUE_NAME_MAX), "paused": true, "depth": u64::MAX, "in_flight": 1, "delayed": 2,
        "workflows": [name(WORKFLOW_MAX)], "oldest_at": AT, "by": by(),
    });
    let count = json!({"count": 1});
    let problem = json!({
        "type": "urn:x", "title": "t", "status": 413, "detail": "d", "code": "c", "field": "f", "limit": "l",
        "value": u32::MAX, "maximum": 1, "since": AT, "task": name(ID_MAX), "retry_after": 1,
    });
    all! {
        answer:
        TaskAnswer = json!({"task": task_view(), "duplicate": true});
        CancelAnswer = json!({"task": task_view(), "outcome": "already_finished"});
        ClaimAnswer = json!({"tasks": [{
            "id": name(ID_MAX), "idempotency_key": name(ID_MAX), "kind": name(KIND_MAX), "input": null, "attempt": 1,
            "progress": 0.5, "details": {"a": 1.50},
            "traceparent": "x", "lease": "l", "lease_expires_at": AT, "deadline_at": AT, "remaining_ms": 7,
        }]});
        HeartbeatAnswer =
            json!({"lease_expires_at": AT, "deadline_at": AT, "remaining_ms": u64::MAX, "cancel_requested": true});
        BatchAnswer = json!({"results": [
            {"status": 201, "task": task_view(), "duplicate": true}, {"status": 413, "error": problem},
        ]});
        ListAnswer = json!({"tasks": [task_view()], "cursor": "c"});
        QueueAnswer = json!({"queue": queue});
        QueuesAnswer = json!({"queues": [queue]});
        WorkersAnswer = json!({"queues": [{
            "queue": name(QUEUE_NAME_MAX), "unserved": true, "paused": false, "depth": 1, "in_flight": 0,
            "workflows": [name(WORKFLOW_MAX)],
            "workers": [{"name": name(WORKER_MAX), "since": AT, "seen_at": AT, "there": true, "version": "1.2"}],
        }]});
        OverviewAnswer = json!({
            "as_of": AT,
            "tasks": {"pending": {"count": u64::MAX, "more": true}, "running": count, "late": count, "stuck": count},
            "executions": {"open": count, "late": count, "stuck": count, "announced_only": true},
            "failed": count,
            "failures": [{
                "kind": name(KIND_MAX), "workflow": name(WORKFLOW_MAX), "error": "x", "steps": ["label[…]"], "count": 2,
                "last_hour": 1, "first_at": AT, "last_at": AT, "message": "m",
            }],
            "more_failures": true,
            "queues": [{
                "name": name(QUEUE_NAME_MAX), "paused": true, "unserved": true, "depth": 1, "in_flight": 2, "delayed": 3,
                "oldest_at": AT, "workers": [name(WORKER_MAX)], "more_workers": 4,
            }],
            "more_queues": true,
        });
        FailuresAnswer = json!({
            "failed": count, "more_groups": true, "read_max": 5_000,
            "groups": [{"workflow": name(WORKFLOW_MAX), "count": 2, "last_hour": 1, "first_at": AT, "last_at": AT}],
        });
        HistoryAnswer = json!({"every": "5m", "parts": [{
            "at": AT, "completed": u64::MAX, "failed": 1, "late_ms": 2, "depth": 3, "oldest_ms": 4, "running": 5,
        }], "note": "x"});
        HealthAnswer = json!({"status": "degraded", "unreadable": ["task#x"], "storage": "the disk is full"});
        Problem = problem;
    }
}

fn execution() -> Value {
    json!({
        "id": name(EXECUTION_ID_MAX), "workflow": name(WORKFLOW_MAX), "queue": name(QUEUE_NAME_MAX),
        "status": "waiting", "run": 1, "created_at": AT, "run_started_at": AT, "available_at": AT, "ended_at": AT,
        "execution_timeout": "1h 30m", "deadline_at": AT, "run_timeout": "365d", "run_deadline_at": AT,
        "on_failure_timeout": "1s", "worker": name(WORKER_MAX), "claimed_at": AT, "lease_expires_at": AT,
        "waiting_since": AT, "wakes_at": AT,
        "waits_for": [{
            "kind": "attempt", "name": "label[3]", "task": "t", "execution": "e", "attempt": 1, "until": AT,
        }],
        "open_steps": 1, "completed_steps": 3, "pending_events": 2, "values": [value()], "cancel_requested": true, "closing": true, "stuck": error(),
        "failing": {"status": "failed", "error": error(), "cause": {"category": "workflow"}, "deadline_at": AT},
        "timeout_kind": "run", "error": error(),
        "cause": {"category": "step", "kind": "execution", "step": "s", "retries_exhausted": true},
        "input": null, "output": 1.5, "parent": {"id": name(EXECUTION_ID_MAX), "run": 1}, "labels": {"a": "b"},
        "memo": null, "next": {"what": "looks_again"},
    })
}

fn value() -> Value {
    json!({"name": "stage", "version": 2, "published_at": AT, "value": {"of": 1.50}})
}

#[test]
fn answers_about_executions() {
    all! {
        answer:
        ValuesAnswer = json!({"values": [value()]});
        ValueAnswer = json!({"value": value()});
        ExecutionAnswer = json!({"execution": execution()});
        ExecutionsAnswer = json!({"executions": [execution()], "cursor": "c"});
        ExecutionCancelAnswer = json!({"execution": execution(), "outcome": "requested"});
        ExecutionChangeAnswer = json!({"execution": execution(), "changed": false});
        SendEventAnswer = json!({"duplicate": true, "pending": 1});
        EventsAnswer = json!({
            "events": [{"name": name(EVENT_NAME_MAX), "event_id": name(EVENT_ID_MAX), "payload": null, "sent_at": AT}],
            "counts": {"n": 1}, "cursor": "c",
        });
        ClearEventsAnswer = json!({"cleared": 1});
        TimelineAnswer = json!({"id": "e", "run": 1, "entries": [{
            "at": AT, "kind": "step_failed", "name": "s", "run": 1, "attempt": 1, "attempts": 2, "lost": 1,
            "progress": 0.5, "until": AT, "execution_timeout": "1h", "deadline_at": AT,
            "run_timeout": "1h", "run_deadline_at": AT, "worker": "w", "task": "t", "execution": "e",
            "parent_close": "abandon", "event": "n", "event_id": "i", "count": 1, "patches": ["p"], "output": null,
            "output_bytes": 1, "error": error(), "step_error": {"a": 1}, "cause": {"category": "terminated"},
            "by": by(),
        }], "unread": 1_900});
    }
}

#[test]
fn answers_about_crons() {
    let cron = json!({
        "id": name(EXECUTION_ID_MAX), "status": "finished", "created_at": AT, "cron": "0 9 * * *", "time_zone": "UTC",
        "every": "1h", "overlap": "skip", "missed": "skip", "jitter": "1m", "max_runs": 1, "started": 1, "waiting": 2,
        "next_at": AT, "next_start_at": AT, "paused_at": AT, "finished_at": AT, "task": {"queue": "q"},
        "execution": {"workflow": "w"}, "run_ids": "s-{occurrence}", "by": {"caller": "local"},
        "runs": [{"at": AT, "id": "r", "manual": true, "state": "skipped", "reason": "overlap", "status": "failed",
            "ended_at": AT}], "upcoming": [{"at": AT, "local": "2026-11-29T03:00:00+01:00"}],
    });
    all! {
        answer:
        LimitsAnswer = json!({"limits": [], "more": true});
        LimitAnswer = json!({"limit": {
            "key": "customer-7", "limit": 1_000, "pinned": true, "pinned_by": by(), "taken": 2,
            "holders": [
                {"task": name(ID_MAX), "until": AT, "called": true}, {"execution": name(EXECUTION_ID_MAX), "called": false},
            ],
            "waiting": 2, "more": false, "next": [{"task": "t"}, {"execution": "e"}],
            "rate": {"limit": 1, "per": "1m", "burst": 1, "next_start_at": AT},
        }});
        CronAnswer = json!({"cron": cron});
        CronsAnswer = json!({"crons": [cron], "cursor": "c"});
        TriggerAnswer = json!({"cron": cron, "run": "r"});
        DeletedAnswer = json!({"id": "s", "deleted": true});
    }
}

#[test]
fn a_payload_stays_the_text_it_was() {
    let body = r#"{"lease":"l","output":{"b": 1.50, "a" :12345678901234567890123}}"#;
    let read: CompleteRequest = read::body(body).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), body);
    let again: CompleteRequest = read::answer(body.as_bytes()).unwrap();
    assert_eq!(again, read);
}

#[test]
fn a_word_of_a_newer_server_is_kept() {
    let mut newer = json!({"execution": execution()});
    newer["execution"]["status"] = json!("archived");
    let read: ExecutionAnswer = read::answer(newer.to_string().as_bytes()).unwrap();
    assert_eq!((read.execution.status.known(), read.execution.status.as_str()), (None, "archived"));
    assert_eq!(serde_json::to_value(&read).unwrap(), newer);
}
