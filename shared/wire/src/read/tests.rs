use serde_json::Value;
use serde_json::value::to_raw_value;

use crate::request::*;

use super::*;

/// The refusal of a request for a task with one more field, or with another value of a field.
#[track_caller]
fn refused(field: &str, value: &str) -> String {
    let others = [("queue", "\"q\""), ("kind", "\"k\"")].into_iter().filter(|(name, _)| *name != field);
    let fields: Vec<_> = [(field, value)]
        .into_iter()
        .chain(others)
        .map(|(name, value)| format!("\"{name}\":{value}"))
        .collect();
    body::<ScheduleRequest>(&format!("{{{}}}", fields.join(","))).unwrap_err().to_string()
}

#[test]
fn a_wrong_value_is_refused_with_what_belongs_there_and_its_own_text() {
    const SPAN: &str =
        "expected a duration such as \"1h 30m\" (units ms, s, m, h, d), or whole milliseconds, found";
    for (field, value, expected) in [
        ("queue", "5", "queue: expected a string, found the number `5`"),
        ("queue", "[1]", "queue: expected a string, found a list"),
        ("queue", "\"\"", "queue: expected a name that is not empty, found nothing"),
        ("queue", "\"a b\"", "queue: expected a name of A-Z a-z 0-9 . _ : - only, found ' '"),
        ("error_on_timeout", "\"no\"", "error_on_timeout: expected true or false, found the string `no`"),
        ("on_timeout", "\"fail\"", "on_timeout: expected \"retry\" or \"terminal\", found the string `fail`"),
        ("timeout", "\"0s\"", "timeout: expected a duration longer than zero, found the string `0s`"),
        (
            "timeout",
            "\"5 fortnights\"",
            &format!("timeout: {SPAN} `5 fortnights`: the unit `fortnights` is unknown"),
        ),
        ("timeout", "1.5", &format!("timeout: {SPAN} the number `1.5`")),
        (
            "timeout",
            "1e999",
            "timeout: expected a duration of at most a year (365d), found the number `1e999`",
        ),
        ("timeout_ms", "-1", "timeout_ms: expected a whole number, not negative, found the number `-1`"),
        (
            "delay_seconds",
            "1.5",
            "delay_seconds: expected a whole number, not negative, found the number `1.5`",
        ),
        ("labels", "[]", "labels: expected a JSON object, found a list"),
        ("labels", r#"{"a":1}"#, "labels.a: expected a string, found the number `1`"),
        ("labels", r#"{"":"x"}"#, "labels.: expected a name of 1 to 64 characters, found 0 characters"),
        ("labels", r#"{"x":"1","x":"2"}"#, "labels.x: expected once, found twice"),
        (
            "retry",
            r#"{"delay":["1s","2x"]}"#,
            &format!("retry.delay[1]: {SPAN} `2x`: the unit `x` is unknown"),
        ),
        ("retry", r#"{"attempts":3}"#, "retry.attempts: unknown field; did you mean `max_attempts`?"),
        ("retry", r#"{"retries":3}"#, "retry.retries: unknown field; did you mean `max_attempts`?"),
        (
            "retry",
            r#"{"backoff":1,"maxDelay":1}"#,
            "retry: expected one spelling of the fields, snake_case or camelCase, found both",
        ),
        ("deadline", "{}", "deadline.timeout: required; expected a duration"),
        ("qeue", "1", "qeue: unknown field; did you mean `queue`?"),
        ("colour", "1", "colour: unknown field"),
        ("scope", "\"global\"", "scope: unknown field; did you mean `timeout_scope`?"),
        ("attempt_timeout", "1", "attempt_timeout: unknown field; did you mean `start_to_close_timeout`?"),
    ] {
        assert_eq!(refused(field, value), expected);
    }
    let long = refused("on_timeout", &format!("\"{}\"", "ü".repeat(3_000)));
    assert!(long.chars().count() < 200, "{long}");
}

#[test]
fn a_length_of_time_has_three_spellings_of_which_one_is_given() {
    let task = |fields: &str| body::<ScheduleRequest>(&format!(r#"{{"queue":"q","kind":"k",{fields}}}"#));
    for spelling in [r#""delay":"7s""#, r#""delay":7000"#, r#""delay_seconds":7.0"#, r#""delay_ms":7000"#] {
        let read = task(spelling).unwrap();
        assert_eq!(
            read.delay.map(tickover_core::duration::Millis::from).unwrap().as_u64(),
            7_000,
            "{spelling}"
        );
    }
    for spelling in [r#""timeout_ms":null"#, r#""labels":{"timeout_ms":"x","timeout":"y"}"#] {
        assert_eq!(task(spelling).unwrap().timeout, None, "{spelling}");
    }
    for (fields, expected) in [
        (r#""delay":1,"delay_ms":1"#, "delay_ms: expected only one of delay and delay_ms, found both"),
        (
            r#""delay_ms":1,"delay_seconds":1"#,
            "delay_ms: expected only one of delay_seconds and delay_ms, found both",
        ),
        (
            r#""delay_seconds":"1s""#,
            "delay_seconds: expected a whole number, not negative, found the string `1s`",
        ),
        (r#""timeout_ms":0"#, "timeout_ms: expected a duration longer than zero, found the number `0`"),
        (
            r#""delay_seconds":31536001"#,
            "delay_seconds: expected a duration of at most a year (365d), found the number `31536001`",
        ),
        (
            r#""delay_seconds":1e999"#,
            "delay_seconds: expected a duration of at most a year (365d), found the number `1e999`",
        ),
        (r#""priority_ms":1"#, "priority_ms: unknown field; did you mean `priority`?"),
        (r#""deadline":{"timeout_ms":1}"#, "deadline.timeout_ms: unknown field; did you mean `timeout`?"),
    ] {
        assert_eq!(task(fields).unwrap_err().to_string(), expected);
    }
    let raw = to_raw_value(&serde_json::json!({"workflow": "w", "run_timeout_seconds": 5})).unwrap();
    let (read, _) = without::<StartRequest>("execution", &raw, "id").unwrap();
    assert_eq!(read.run_timeout, Some(tickover_core::duration::Millis::from_secs(5).into()));
}

#[test]
fn what_was_expected_has_nothing_of_what_was_sent() {
    for (field, value) in [
        ("queue", "\"hunter2 \""),
        ("timeout", "\"hunter2\""),
        ("retry", "{\"hunter2\":1}"),
        ("retry", "[\"hunter2\"]"),
        ("labels", "{\"a\":[\"hunter2\"]}"),
        ("hunter2", "1"),
        ("run_at", "\"hunter2\""),
    ] {
        let text = format!(r#"{{"queue":"q","kind":"k","{field}":{value}}}"#).replacen(
            r#""queue":"q","#,
            "",
            usize::from(field == "queue"),
        );
        let Err(Reject::InvalidRequest { expected, .. }) = body::<ScheduleRequest>(&text) else {
            panic!("{text}")
        };
        assert!(!expected.contains("hunter2"), "{expected}");
    }
}

#[test]
fn a_body_that_is_no_object_is_refused_as_a_whole() {
    for (text, found) in
        [("[]", "a list"), ("17", "the number `17`"), ("null", "null"), ("\"a\"", "the string `a`")]
    {
        let refused = body::<Nothing>(text).unwrap_err();
        assert_eq!(refused.to_string(), format!("body: expected a JSON object, found {found}"));
    }
    let malformed = body::<Nothing>("{\"a\":}").unwrap_err().to_string();
    assert!(malformed.starts_with("body: expected one JSON object, found malformed JSON: "), "{malformed}");
    assert!(malformed.ends_with("line 1 column 6"), "{malformed}");
    assert_eq!(
        body::<FailRequest>("{}").unwrap_err().to_string(),
        "lease: required; expected the token that the claim gave"
    );
}

#[test]
fn a_number_is_whole_however_it_is_written() {
    for number in ["7", "7.0", "0.7e1"] {
        let read: ClaimRequest = body(&format!(r#"{{"max":{number},"wait":{number}}}"#)).unwrap();
        assert_eq!(
            (read.max.unwrap().0, read.wait.unwrap()),
            (7, tickover_core::duration::Millis::new(7).into())
        );
    }
}

#[test]
fn a_field_can_be_taken_out_of_a_request_of_which_it_means_something_else() {
    let raw =
        to_raw_value(&serde_json::json!({"queue": "q", "kind": "k", "id": "a b {occurrence}"})).unwrap();
    let (read, id) = without::<ScheduleRequest>("task", &raw, "id").unwrap();
    assert_eq!((read.id, id.as_deref()), (None, Some("a b {occurrence}")));
    for (value, expected) in [
        (serde_json::json!({"queue": "q"}), "task.kind: required"),
        (serde_json::json!({"id": 1}), "task.id: expected a string, found the number `1`"),
        (
            serde_json::json!({"queue": "q", "kind": "k", "retry": {"delay": ["x"]}}),
            "task.retry.delay[0]: expected a duration",
        ),
        (serde_json::json!("x"), "task: expected a JSON object, found the string `x`"),
    ] {
        let raw = to_raw_value(&value).unwrap();
        let refused = without::<ScheduleRequest>("task", &raw, "id").unwrap_err().to_string();
        assert!(refused.starts_with(expected), "{refused}");
    }
}

#[test]
fn an_answer_that_can_not_be_read_says_where() {
    let wrong = br#"{"tasks":[{"id":"a","queue":"q","kind":"k","status":7}]}"#;
    let unreadable = answer::<crate::answer::ListAnswer>(wrong).unwrap_err();
    assert_eq!(unreadable.path, "tasks[0].status");
    assert!(answer::<Value>(b"{} x").is_err());
}
