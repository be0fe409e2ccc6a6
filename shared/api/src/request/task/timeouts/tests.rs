use serde_json::json;
use tickover_core::duration::Millis;
use tickover_core::timeout::OnTimeout;

use super::{AttemptTimeout, LifeTimeout, Reject, Timeouts, timeouts};

fn read(body: &serde_json::Value) -> Result<Timeouts, Reject> {
    let mut request = body.clone();
    (request["queue"], request["kind"]) = ("q".into(), "k".into());
    timeouts(&tickover_wire::read::body(&request.to_string())?)
}

fn whole_task(secs: u64, is_error: bool) -> LifeTimeout {
    LifeTimeout { after: Millis::from_secs(secs), is_error }
}

fn each(secs: u64, on_timeout: OnTimeout) -> AttemptTimeout {
    AttemptTimeout { after: Millis::from_secs(secs), on_timeout }
}

#[test]
fn without_any_there_is_none() {
    assert_eq!(read(&json!({})), Ok(Timeouts::default()));
    let nothing = json!({"timeout": null, "timeout_scope": null, "deadline": null, "on_timeout": null});
    assert_eq!(read(&nothing), Ok(Timeouts::default()));
}

#[test]
fn every_name_of_a_timeout_means_the_same() {
    for body in [
        json!({"timeout": "90s"}),
        json!({"timeout": 90_000}),
        json!({"timeout_seconds": 90}),
        json!({"timeout_ms": 90_000}),
        json!({"deadline": {"timeout": "90s", "errorOnTimeout": true}}),
    ] {
        assert_eq!(read(&body).unwrap().schedule_to_close, Some(whole_task(90, true)), "{body}");
    }
    let aliases = json!({
        "schedule_to_start_timeout_seconds": 1,
        "start_to_close_timeout_ms": 2_000,
        "heartbeat_timeout_seconds": 3,
    });
    let expected = Timeouts {
        schedule_to_close: None,
        schedule_to_start: Some(each(1, OnTimeout::Retry)),
        heartbeat: Some(each(3, OnTimeout::Retry)),
        start_to_close: Some(each(2, OnTimeout::Retry)),
    };
    assert_eq!(read(&aliases), Ok(expected));
}

#[test]
fn a_timeout_per_attempt_is_final_and_the_others_follow_on_timeout() {
    let body = json!({"timeout": "9s", "timeout_scope": "per_attempt", "heartbeat_timeout": "1s"});
    let read_back = read(&body).unwrap();
    assert_eq!(read_back.start_to_close, Some(each(9, OnTimeout::Terminal)));
    assert_eq!((read_back.heartbeat, read_back.schedule_to_close), (Some(each(1, OnTimeout::Retry)), None));
    let terminal = read(&json!({"heartbeat_timeout": "1s", "on_timeout": "terminal"})).unwrap();
    assert_eq!(terminal.heartbeat, Some(each(1, OnTimeout::Terminal)));
}

#[test]
fn a_timeout_that_is_no_error_cancels() {
    let body = json!({"timeout": "9s", "heartbeat_timeout": "1s", "error_on_timeout": false});
    let read_back = read(&body).unwrap();
    assert_eq!(read_back.schedule_to_close, Some(whole_task(9, false)));
    assert_eq!(read_back.heartbeat, Some(each(1, OnTimeout::Cancel)));
}

#[test]
fn steeps_policies_cancel_unless_they_are_errors() {
    let body = json!({
        "maxInactivity": "1s",
        "maxRuntime": {"timeout": "2s", "errorOnTimeout": true},
        "deadline": 3_000,
    });
    let expected = Timeouts {
        schedule_to_close: Some(whole_task(3, false)),
        schedule_to_start: None,
        heartbeat: Some(each(1, OnTimeout::Cancel)),
        start_to_close: Some(each(2, OnTimeout::Retry)),
    };
    assert_eq!(read(&body), Ok(expected));
    let both_scopes = json!({"timeout": "1s", "timeout_scope": "per_attempt", "deadline": "5s"});
    assert_eq!(read(&both_scopes).unwrap().schedule_to_close, Some(whole_task(5, false)));
}

#[test]
fn two_names_for_one_timeout_contradict_each_other() {
    for (body, field) in [
        (json!({"timeout": "1s", "timeout_ms": 1_000}), "timeout_ms"),
        (json!({"timeout": "1s", "deadline": "1s"}), "deadline"),
        (json!({"start_to_close_timeout": "1s", "maxRuntime": "1s"}), "maxRuntime"),
        (json!({"timeout": "1s", "timeout_scope": "per_attempt", "maxRuntime": "1s"}), "maxRuntime"),
        (json!({"heartbeat_timeout_ms": 1, "maxInactivity": "1s"}), "maxInactivity"),
        (json!({"timeout": 1, "timeout_scope": "per_attempt", "start_to_close_timeout": 1}), "timeout"),
        (json!({"timeout": 1, "timeout_scope": "per_attempt", "on_timeout": "retry"}), "on_timeout"),
        (json!({"timeout_scope": "per_attempt"}), "timeout_scope"),
    ] {
        let Err(Reject::InvalidRequest { field: found, .. }) = read(&body) else { panic!("{body}") };
        assert_eq!(found, field, "{body}");
    }
}
