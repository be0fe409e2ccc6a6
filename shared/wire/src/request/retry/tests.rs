use std::num::NonZeroU32;

use serde_json::{Value, json};
use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::retry::{Jitter, MAX_DELAY, MaxAttempts};

use super::*;
use crate::request::ScheduleRequest;

fn secs(secs: u64) -> Millis {
    Millis::from_secs(secs)
}

fn limited(attempts: u32) -> MaxAttempts {
    MaxAttempts::Limited(NonZeroU32::new(attempts).unwrap())
}

/// Reads the value as the field `retry` of a request.
fn try_read(value: &Value) -> Result<RetryPolicy, Reject> {
    let body = json!({"queue": "q", "kind": "k", "retry": value}).to_string();
    let read: ScheduleRequest = crate::read::body(&body)?;
    let given = read.retry.ok_or_else(|| Reject::field("retry", "nothing"))?;
    RetryPolicy::try_from(given).map_err(|error| error.under("retry").into())
}

fn read(value: &Value) -> RetryPolicy {
    try_read(value).unwrap_or_else(|error| panic!("{value}: {error}"))
}

#[test]
fn objects_are_read_field_by_field() {
    let fixed = |max_attempts, delay| RetryPolicy { max_attempts, delay, ..RetryPolicy::none() };
    for (value, expected) in [
        (json!({}), RetryPolicy::none()),
        (json!({"max_attempts": null, "delay": null, "jitter": null}), RetryPolicy::none()),
        (json!({"max_attempts": 0}), fixed(MaxAttempts::Skip, retry::Delay::default())),
        (json!({"max_attempts": -1}), fixed(MaxAttempts::Unlimited, retry::Delay::default())),
        (json!({"max_attempts": u32::MAX}), fixed(limited(u32::MAX), retry::Delay::default())),
        (
            json!({"max_attempts": 2.0, "delay": 10.0}),
            fixed(limited(2), retry::Delay::Fixed(Millis::new(10))),
        ),
        (json!({"delay": "0s"}), RetryPolicy::none()),
        (json!({"delay": "365d"}), fixed(limited(1), retry::Delay::Fixed(MAX_DELAY))),
        (json!({"delay": [0, "5s"]}), fixed(limited(1), retry::Delay::Listed(vec![Millis::ZERO, secs(5)]))),
        (
            json!({"max_attempts": 4, "delay": "2s", "backoff": 1.5, "max_delay": "1m", "jitter": "full",
                "non_retryable": ["bad_input"]}),
            RetryPolicy {
                max_attempts: limited(4),
                delay: retry::Delay::Fixed(secs(2)),
                backoff: 1.5,
                max_delay: Some(secs(60)),
                jitter: Jitter::Full,
                non_retryable: vec!["bad_input".to_owned()],
            },
        ),
        (json!("exponential(5, 1s)"), RetryPolicy::exponential(5, secs(1))),
    ] {
        assert_eq!(read(&value), expected, "{value}");
        let sent = serde_json::to_value(Retry::from(&expected)).unwrap();
        assert_eq!(read(&sent), expected, "{sent}");
    }
}

#[test]
fn camel_case_policies_have_exact_delays() {
    let policy =
        read(&json!({"maxAttempts": 6, "delay": 1000, "exponentialBackoff": 2, "maxDelay": "10 seconds"}));
    let expected = RetryPolicy { backoff: 2.0, max_delay: Some(secs(10)), ..RetryPolicy::fixed(5, secs(1)) };
    assert_eq!(policy, expected);
    assert_eq!(read(&json!({"maxAttempts": -1})).max_attempts, MaxAttempts::Unlimited);
    assert_eq!(read(&json!({"maxAttempts": 0})).max_attempts, MaxAttempts::Skip);
}

#[test]
fn max_delay_in_camel_case_cuts_only_a_growing_delay() {
    let delays = |value: &Value| [1, 2, 3].map(|attempt| read(value).delay_before_next(attempt, 0).as_u64());
    for (value, expected) in [
        (json!({"delay": "2s", "maxDelay": "1s"}), [2_000, 2_000, 2_000]),
        (json!({"delay": "2s", "exponentialBackoff": 1, "maxDelay": "1s"}), [2_000, 2_000, 2_000]),
        (json!({"delay": "2s", "exponentialBackoff": 0.5, "maxDelay": "1s"}), [2_000, 1_000, 500]),
        (json!({"delay": "2s", "exponentialBackoff": 1.5, "maxDelay": "4s"}), [2_000, 3_000, 4_000]),
        (json!({"delay": "2s", "exponentialBackoff": 2, "maxDelay": "1s"}), [1_000, 1_000, 1_000]),
        (json!({"delay": "2s", "max_delay": "1s"}), [1_000, 1_000, 1_000]),
    ] {
        assert_eq!(delays(&value), expected, "{value}");
    }
    assert_eq!(read(&json!({"delay": "2s", "maxDelay": "1s"})).max_delay, None, "nothing reads it");
}

#[test]
fn a_wrong_policy_is_refused_where_it_is_wrong() {
    for (value, path, found) in [
        (json!(3), "retry", "3"),
        (json!(["none"]), "retry", "a list"),
        (json!("sometimes"), "retry", "sometimes"),
        (json!("fixed(3, 2x)"), "retry", "2x"),
        (json!({"max_attempts": -2}), "retry.max_attempts", "-2"),
        (json!({"maxAttempts": -2}), "retry.maxAttempts", "-2"),
        (json!({"max_attempts": 1.5}), "retry.max_attempts", "1.5"),
        (json!({"max_attempts": "3"}), "retry.max_attempts", "3"),
        (json!({"max_attempts": 4_294_967_296_u64}), "retry.max_attempts", "4294967296"),
        (json!({"max_attempts": u64::MAX}), "retry.max_attempts", "18446744073709551615"),
        (json!({"delay": "5x"}), "retry.delay", "5x"),
        (json!({"delay": -1}), "retry.delay", "-1"),
        (json!({"delay": "8761h"}), "retry.delay", "8761h"),
        (json!({"delay": []}), "retry.delay", "0 delays"),
        (json!({"delay": vec!["1s"; 11]}), "retry.delay", "11 delays"),
        (json!({"delay": ["1s", "2x"]}), "retry.delay[1]", "2x"),
        (json!({"delay": ["1s", "366d"]}), "retry.delay[1]", "366d"),
        (json!({"delay": [["1s"]]}), "retry.delay[0]", "a list"),
        (json!({"delay": ["1s"], "backoff": 2}), "retry.backoff", "2"),
        (json!({"delay": ["1s"], "exponentialBackoff": 2}), "retry.exponentialBackoff", "2"),
        (json!({"backoff": 0}), "retry.backoff", "0"),
        (json!({"backoff": -2}), "retry.backoff", "-2"),
        (json!({"exponentialBackoff": "2"}), "retry.exponentialBackoff", "2"),
        (json!({"max_delay": 0}), "retry.max_delay", "0"),
        (json!({"maxDelay": "400d"}), "retry.maxDelay", "400d"),
        (json!({"delay": "2s", "maxDelay": 0}), "retry.maxDelay", "0"),
        (json!({"jitter": "equal"}), "retry.jitter", "equal"),
        (json!({"jitter": true}), "retry.jitter", "true"),
        (json!({"non_retryable": "bad"}), "retry.non_retryable", "bad"),
        (json!({"non_retryable": ["ok", 5]}), "retry.non_retryable[1]", "5"),
        (json!({"non_retryable": [""]}), "retry.non_retryable[0]", ""),
        (json!({"non_retryable": ["a\nb"]}), "retry.non_retryable[0]", "a\nb"),
        (json!({"non_retryable": ["a".repeat(65)]}), "retry.non_retryable[0]", "aaa"),
        (json!({"non_retryable": vec!["a"; 9]}), "retry.non_retryable", "9 codes"),
        (json!({"non_retryable": ["é".repeat(64), "a"]}), "retry.non_retryable", "129 bytes"),
        (json!({"delai": "1s"}), "retry.delai", ""),
        (json!({"max_attempts": 3, "maxDelay": "1s"}), "retry", "both"),
        (json!({"jitter": "full", "maxAttempts": 3}), "retry", "both"),
    ] {
        let error = try_read(&value).expect_err(&value.to_string());
        let Reject::InvalidRequest { field, found: quoted, .. } = error else { panic!("{value}") };
        assert_eq!(field, path, "{value}");
        assert!(quoted.unwrap_or_default().contains(found), "{value}");
    }
}
