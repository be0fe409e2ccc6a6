use tickover_core::execution::ExecutionStatus;
use tickover_core::execution::command::StartPolicy;
use tickover_core::limits::{PAGE_DEFAULT, WAIT_MAX};
use tickover_service::ports::ExecutionFilter;
use tickover_wire::read;
use tickover_wire::request::DescribeQuery;

use super::*;
use crate::body::{self, read_or_empty};
use crate::request::{ListQuery, executions};

fn read(body: &str) -> Result<StartRequest, Reject> {
    start(body::read(body.as_bytes())?)
}

#[track_caller]
fn refused(body: &str) -> String {
    read(body).unwrap_err().to_string()
}

#[test]
fn a_start_needs_only_its_workflow() {
    let request = read(r#"{"workflow": "orders"}"#).unwrap();
    assert_eq!((request.workflow.as_str(), request.queue.as_str()), ("orders", "workflows"));
    assert!(request.timeouts.is_none() && request.delay.is_zero() && request.input.is_none());
    assert_eq!(request.policy, StartPolicy::UseExisting);
    assert_eq!(refused("{}"), "workflow: required; expected the workflow's name");
}

#[test]
fn a_timeout_is_taken_under_each_of_its_names() {
    let expected =
        ExecutionTimeouts { execution: Some(Millis::from_secs(90)), run: Some(Millis::from_secs(2)) };
    for body in [
        r#"{"workflow":"w","execution_timeout":"1m 30s","run_timeout":2000,"on_failure_timeout":"1m"}"#,
        r#"{"workflow":"w","execution_timeout_seconds":90,"run_timeout_seconds":2,"on_failure_timeout_seconds":60}"#,
        r#"{"workflow":"w","execution_timeout_ms":90000,"run_timeout_ms":2000,"on_failure_timeout_ms":60000}"#,
    ] {
        let request = read(body).unwrap();
        assert_eq!((request.timeouts, request.on_failure), (expected, Some(Millis::from_secs(60))), "{body}");
    }
}

#[test]
fn a_timeout_under_one_second_is_refused_by_its_name_with_the_minimum() {
    for (field, value) in [
        ("execution_timeout", "\"999ms\""),
        ("execution_timeout_ms", "1"),
        ("run_timeout", "500"),
        ("run_timeout_ms", "999"),
        ("on_failure_timeout", "\"1ms\""),
        ("on_failure_timeout_ms", "999"),
    ] {
        let refused = refused(&format!(r#"{{"workflow":"w","{field}":{value}}}"#));
        let expected = format!("{field}: expected a duration of at least 1s, found");
        assert!(refused.starts_with(&expected), "{refused}");
    }
    assert!(read(r#"{"workflow":"w","run_timeout":"1s"}"#).is_ok());
    assert!(refused(r#"{"workflow":"w","run_timeout":0}"#).starts_with("run_timeout: "));
    for field in ["execution_timeout", "on_failure_timeout"] {
        let too_long = refused(&format!(r#"{{"workflow":"w","{field}":"366 days"}}"#));
        assert!(too_long.starts_with(field) && too_long.contains("at most a year"), "{too_long}");
    }
    let twice = r#"{"workflow":"w","on_failure_timeout":"1m","on_failure_timeout_ms":60000}"#;
    assert!(refused(twice).contains("found both"), "{}", refused(twice));
}

#[test]
fn other_fields_are_held_to_their_shapes() {
    for (field, value) in [
        ("workflow", "\"a b\""),
        ("id", "\"..\""),
        ("queue", "\"\""),
        ("labels", "{\"a\": 1}"),
        ("policy", "\"replace\""),
        ("delay", "-1"),
        ("timeout", "\"1h\""),
    ] {
        let workflow = if field == "workflow" { "" } else { r#""workflow":"w","# };
        let refused = refused(&format!("{{{workflow}\"{field}\":{value}}}"));
        assert!(refused.starts_with(field), "{refused}");
    }
}

#[test]
fn an_event_may_have_nothing_and_null_is_a_payload() {
    let event = |body: &str| event(read_or_empty(body.as_bytes()).unwrap());
    assert!(event("").payload.is_none() && event("").id.is_none());
    assert_eq!(event(r#"{"payload":null}"#).payload.unwrap().as_str(), "null");
    assert_eq!(event(r#"{"payload":[1.0],"event_id":"e-1"}"#).id.unwrap().as_str(), "e-1");
}

#[test]
fn a_rerun_preserves_results_by_default() {
    let rerun = |body: &str| read_or_empty(body.as_bytes()).map(rerun);
    assert_eq!(rerun(""), Ok(Again { steps: vec![], from: None, preserve: true, input: None }));
    let body = r#"{"steps":["charge","label[3]"],"from":"ship","input":1.0,"preserve":false}"#;
    let Again { steps, from, preserve, input } = rerun(body).unwrap();
    assert_eq!((steps.len(), preserve), (2, false));
    assert_eq!((from.unwrap().as_str(), input.unwrap().as_str()), ("ship", "1.0"));
    for wrong in [r#"{"steps":["a","b c"]}"#, r#"{"steps":["a",".."]}"#] {
        assert!(rerun(wrong).unwrap_err().to_string().starts_with("steps[1]: "));
    }
}

fn pairs(query: &[(&str, &str)]) -> Vec<(String, String)> {
    query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn a_wait_is_a_duration_of_at_most_twenty_seconds() {
    let wait = |query: &[(&str, &str)]| {
        read::query::<DescribeQuery>(&pairs(query)).map(|query| query.wait.map(Millis::from))
    };
    assert_eq!(wait(&[]), Ok(None));
    assert_eq!(wait(&[("wait", "0")]), Ok(Some(Millis::ZERO)));
    assert_eq!(wait(&[("wait", "20s")]), Ok(Some(WAIT_MAX)));
    for query in [&[("wait", "21s")][..], &[("wait", "soon")], &[("wait", "1s"), ("wait", "1s")]] {
        assert!(wait(query).unwrap_err().to_string().starts_with("wait: "), "{query:?}");
    }
    assert!(wait(&[("patience", "1s")]).is_err());
}

#[test]
fn a_list_may_be_of_one_workflow_and_failed_may_include_timed_out() {
    let read = |query: &[(&str, &str)]| read::query(&pairs(query)).map(executions);
    let ListQuery { of: ExecutionFilter { statuses, .. }, limit, .. } = read(&[("workflow", "w")]).unwrap();
    assert_eq!((statuses, limit), (vec![], PAGE_DEFAULT));
    let query = [("workflow", "w"), ("status", "failed,waiting"), ("include_timed_out", "true")];
    let expected = [ExecutionStatus::Waiting, ExecutionStatus::Failed, ExecutionStatus::TimedOut];
    assert_eq!(read(&query).unwrap().of.statuses, expected);
    for (query, field) in [
        (&[("workflow", "a b")][..], "workflow"),
        (&[("workflow", "w"), ("status", "skipped")], "status"),
        (&[("workflow", "w"), ("limit", "501")], "limit"),
        (&[("workflow", "w"), ("queue", "q")], "queue"),
    ] {
        assert!(read(query).unwrap_err().to_string().starts_with(field), "{query:?}");
    }
}
