//! The policies of a task, as it was scheduled with them.

use tickover_core::payload::Json;
use tickover_core::retry::RetryPolicy;
use tickover_core::timeout::{self, AttemptTimeout, LifeTimeout, Timeouts};
use tickover_wire::answer::{TimeoutView, TimeoutsView};
use tickover_wire::request::{OnTimeout, Retry};
use tickover_wire::{OpenEnum, Verbatim};

/// A retry policy as a request gives it, with all fields.
pub(super) fn retry(policy: &RetryPolicy) -> Option<Verbatim> {
    let text = serde_json::to_string(&Retry::from(policy)).ok()?;
    Json::parse(text).map(Verbatim)
}

/// The timeouts, if there are some.
pub(super) fn timeouts(timeouts: &Timeouts) -> Option<TimeoutsView> {
    let Timeouts { schedule_to_close, schedule_to_start, heartbeat, start_to_close } = *timeouts;
    let view = TimeoutsView {
        schedule_to_close: schedule_to_close.map(whole),
        schedule_to_start: schedule_to_start.map(of_attempt),
        start_to_close: start_to_close.map(of_attempt),
        heartbeat: heartbeat.map(of_attempt),
    };
    (*timeouts != Timeouts::default()).then_some(view)
}

fn whole(timeout: LifeTimeout) -> TimeoutView {
    let on_timeout = OpenEnum::Known(OnTimeout::Terminal);
    TimeoutView { after: timeout.after.into(), on_timeout, error_on_timeout: timeout.is_error }
}

fn of_attempt(timeout: AttemptTimeout) -> TimeoutView {
    let (on_timeout, error_on_timeout) = match timeout.on_timeout {
        timeout::OnTimeout::Retry => (OnTimeout::Retry, true),
        timeout::OnTimeout::Terminal => (OnTimeout::Terminal, true),
        timeout::OnTimeout::Cancel => (OnTimeout::Terminal, false),
    };
    TimeoutView { after: timeout.after.into(), on_timeout: OpenEnum::Known(on_timeout), error_on_timeout }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tickover_core::duration::Millis;
    use tickover_core::retry::{Delay, Jitter};

    use super::*;

    #[test]
    fn a_policy_is_shown_with_all_fields_as_a_request_gives_them() {
        let second = Millis::from_secs(1);
        let policy = RetryPolicy {
            delay: Delay::Listed(vec![second, second.saturating_mul(90)]),
            max_delay: Some(second.saturating_mul(60)),
            jitter: Jitter::Full,
            non_retryable: vec!["bad_address".to_owned()],
            ..RetryPolicy::fixed(2, second)
        };
        let shown = serde_json::to_value(retry(&policy)).unwrap();
        let expected = json!({
            "max_attempts": 3, "delay": ["1s", "1m 30s"], "backoff": 1.0, "max_delay": "1m", "jitter": "full",
            "non_retryable": ["bad_address"],
        });
        assert_eq!(shown, expected);
        let read: Retry = serde_json::from_value(shown).unwrap();
        assert_eq!(RetryPolicy::try_from(read).unwrap(), policy);
    }

    #[test]
    fn each_timeout_has_its_length_and_what_it_does() {
        assert_eq!(timeouts(&Timeouts::default()), None);
        let attempt = |seconds, on_timeout| AttemptTimeout { after: Millis::from_secs(seconds), on_timeout };
        let shown = timeouts(&Timeouts {
            schedule_to_close: Some(LifeTimeout { after: Millis::from_secs(3_600), is_error: true }),
            schedule_to_start: Some(attempt(60, timeout::OnTimeout::Terminal)),
            heartbeat: Some(attempt(5, timeout::OnTimeout::Retry)),
            start_to_close: Some(attempt(90, timeout::OnTimeout::Cancel)),
        });
        let expected = json!({
            "schedule_to_close": {"after": "1h", "on_timeout": "terminal", "error_on_timeout": true},
            "schedule_to_start": {"after": "1m", "on_timeout": "terminal", "error_on_timeout": true},
            "start_to_close": {"after": "1m 30s", "on_timeout": "terminal", "error_on_timeout": false},
            "heartbeat": {"after": "5s", "on_timeout": "retry", "error_on_timeout": true},
        });
        assert_eq!(serde_json::to_value(shown).unwrap(), expected);
    }
}
