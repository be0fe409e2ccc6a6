//! The events for which time matters: the schedule's event once a minute, and the timers' messages.
//!
//! The schedule's input is `{"scheduled_at":"<aws.scheduler.scheduled-time>"}`.

use serde_json::json;
use serde_json::value::RawValue;
use tickover_api::Problem;
use tickover_core::duration::Millis;
use tickover_core::time::Timestamp;
use tickover_lambda::fields::Fields;
use tickover_lambda::{App, Event, Failure, Invocation, answer, sqs, timer};

const EXPECTED: &str =
    "the event of a schedule, a batch of messages from the queue of timers, or {} to tick by hand";
/// A tick older than this is dropped, and the next one does its work.
///
/// Scheduler takes up to 60 s to send the tick of a minute, and a cold start takes a few seconds more, so younger ticks
/// may be on time. Older ones are Lambda's retries of a tick that failed: the first comes one minute after the failure,
/// the second two minutes after that. Those of a throttled function come for hours. At this age, the deadlines for
/// which a tick sends timers (from two minutes after its minute on) are still half a minute ahead.
const AGE_MAX: Millis = Millis::from_secs(90);
/// A tick further ahead than this is not from the schedule: the schedule is never early, and AWS's clocks differ
/// little.
const AHEAD_MAX: Millis = Millis::from_secs(60);
/// How long before the end of the invocation a tick stops, so that its running writes can finish.
const MARGIN: Millis = Millis::from_secs(2);

/// Handles one event until the time is up: the tick processes all that is due, the other events are batches of timers.
pub(crate) async fn handle(app: App, invocation: Invocation) -> Result<Box<RawValue>, Failure> {
    let now = app.service.now();
    let stop_at = stop_at(now, invocation.deadline_at, app.config.tick_budget);
    match invocation.event {
        Event::Tick(scheduled_at) if now.since(scheduled_at) > AGE_MAX => dropped(scheduled_at, now),
        Event::Tick(scheduled_at) if scheduled_at.since(now) > AHEAD_MAX => {
            Err(too_far_ahead(scheduled_at, now))
        }
        Event::Tick(scheduled_at) => tick(&app, scheduled_at, stop_at).await,
        Event::BadTick(field, found) => Err(missing_instant(field, &found)),
        Event::Messages(batch) => {
            // A timer may wait for up to its last second. One after the other, the last timers would be late.
            let at_once = batch.records.len();
            let fire = |message| timer::take(&app.service, message, stop_at);
            answer::json(&sqs::each(batch, at_once, fire).await)
        }
        Event::Invoke(body) if is_empty(&body) => tick(&app, now, stop_at).await,
        other @ (Event::Invoke(_) | Event::Unsupported(_)) => Err(other.unexpected(EXPECTED)),
    }
}

/// Runs one tick for its minute. The service's own clock decides what is due.
async fn tick(app: &App, scheduled_at: Timestamp, stop_at: Timestamp) -> Result<Box<RawValue>, Failure> {
    let report = app.service.tick(scheduled_at, stop_at).await.map_err(Problem::from)?;
    answer::json(&report)
}

fn dropped(scheduled_at: Timestamp, now: Timestamp) -> Result<Box<RawValue>, Failure> {
    let age_ms = now.since(scheduled_at).as_u64();
    let scheduled_at = scheduled_at.to_rfc3339();
    tracing::warn!(scheduled_at, age_ms, "an old tick dropped");
    answer::json(&json!({ "dropped": true, "scheduled_at": scheduled_at, "age_ms": age_ms }))
}

/// Such a tick would mark deadlines as passed to timers although no tick has read them.
fn too_far_ahead(scheduled_at: Timestamp, now: Timestamp) -> Failure {
    let (at, now) = (scheduled_at.to_rfc3339(), now.to_rfc3339());
    malformed(format!("expected an instant at most {AHEAD_MAX} after this function's {now}; found {at}"))
}

fn missing_instant(field: &str, found: &str) -> Failure {
    malformed(format!(
        "expected `{field}` to be an RFC 3339 instant such as \"2026-01-31T12:00:00Z\"; found {found}"
    ))
}

fn malformed(message: String) -> Failure {
    tracing::error!(reason = message, "a malformed tick");
    Failure { code: "malformed_tick", message }
}

/// When to stop: before the budget and the function's own time end. If less than two seconds are left, half of them are
/// used.
fn stop_at(now: Timestamp, deadline_at: Timestamp, budget: Millis) -> Timestamp {
    let half = Millis::new(deadline_at.since(now).as_u64() / 2);
    deadline_at.minus(MARGIN.min(half)).min(now.plus(budget))
}

fn is_empty(body: &RawValue) -> bool {
    Fields::read("body", body.get()).is_ok_and(|fields| fields.first().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_stops_before_its_budget_and_before_its_function_ends() {
        let now = Timestamp::from_millis(1_000_000);
        let stops_after = |function_ms, budget_ms| {
            let deadline_at = now.plus(Millis::new(function_ms));
            stop_at(now, deadline_at, Millis::new(budget_ms)).since(now).as_u64()
        };
        assert_eq!(stops_after(60_000, 50_000), 50_000);
        assert_eq!(stops_after(30_000, 50_000), 28_000);
        assert_eq!(stops_after(3_000, 50_000), 1_500);
        assert_eq!(stops_after(0, 50_000), 0);
    }

    #[test]
    fn a_malformed_tick_says_what_was_expected_and_what_came() {
        let now = Timestamp::parse_rfc3339("2026-01-31T12:00:00Z").unwrap();
        let failure = too_far_ahead(now.plus(Millis::from_secs(3 * 3600)), now);
        assert_eq!(
            failure.to_string(),
            "malformed_tick: expected an instant at most 1m after this function's 2026-01-31T12:00:00.000Z; \
             found 2026-01-31T15:00:00.000Z"
        );
        let failure = missing_instant("time", "7");
        assert!(failure.message.starts_with("expected `time` to be an RFC 3339 instant"), "{failure}");
        assert!(failure.message.ends_with("; found 7"), "{failure}");
    }

    #[test]
    fn only_an_empty_object_is_a_tick_by_hand() {
        let body = |text: &str| is_empty(&RawValue::from_string(text.to_owned()).unwrap());
        assert!(body("{}") && body("{ }"));
        assert!(!body("[]") && !body("null") && !body(r#"{"queue":"q"}"#));
    }
}
