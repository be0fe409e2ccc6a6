//! The events that make time pass. A schedule's input is `{"scheduled_at":"<aws.scheduler.scheduled-time>"}`.

use serde_json::json;
use serde_json::value::RawValue;
use tickover_core::duration::Millis;
use tickover_core::time::Timestamp;
use tickover_lambda::fields::Fields;
use tickover_lambda::{App, Event, Failure, Invocation, answer};

const EXPECTED: &str = "the event of a schedule, or {} to tick by hand";
/// Lambda repeats a failed tick for hours; by then others have done its work.
const AGE_MAX: Millis = Millis::from_secs(60);
/// What is under way when a tick stops gets this long to end.
const MARGIN: Millis = Millis::from_secs(2);

/// Handles one event: deals with everything due now, for as long as there is time.
pub(crate) async fn handle(app: App, invocation: Invocation) -> Result<Box<RawValue>, Failure> {
    let now = app.service.now();
    match invocation.event {
        Event::Tick(scheduled_at) if now.since(scheduled_at) > AGE_MAX => dropped(scheduled_at, now),
        Event::Tick(_) => tick(&app, now, invocation.deadline_at).await,
        Event::Invoke(body) if is_empty(&body) => tick(&app, now, invocation.deadline_at).await,
        other @ (Event::Invoke(_) | Event::Messages(_) | Event::Foreign(_)) => {
            Err(other.unexpected(EXPECTED))
        }
    }
}

async fn tick(app: &App, now: Timestamp, deadline_at: Timestamp) -> Result<Box<RawValue>, Failure> {
    let stop_at = stop_at(now, deadline_at, app.config.tick_budget);
    let report = app.service.tick(now, stop_at).await.map_err(tickover_api::Problem::from)?;
    answer::json(&report)
}

fn dropped(scheduled_at: Timestamp, now: Timestamp) -> Result<Box<RawValue>, Failure> {
    let age_ms = now.since(scheduled_at).as_u64();
    let scheduled_at = scheduled_at.to_rfc3339();
    tracing::warn!(scheduled_at, age_ms, "an old tick dropped");
    answer::json(&json!({ "dropped": true, "scheduled_at": scheduled_at, "age_ms": age_ms }))
}

/// Before the function's own time is up, whatever it is: one that has no two seconds left uses half of them.
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
    fn only_an_empty_object_is_a_tick_by_hand() {
        let body = |text: &str| is_empty(&RawValue::from_string(text.to_owned()).unwrap());
        assert!(body("{}") && body("{ }"));
        assert!(!body("[]") && !body("null") && !body(r#"{"queue":"q"}"#));
    }
}
