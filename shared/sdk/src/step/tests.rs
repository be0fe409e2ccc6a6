use std::time::Duration;

use serde::{Deserialize, Serialize};
use tickover_core::duration::Millis;
use tickover_core::timeout::AttemptTimeout;

use super::*;

#[derive(Clone, Serialize, Deserialize)]
struct Order {
    id: u32,
}

struct Charge;

impl StepHandler for Charge {
    const NAME: &'static str = "charge";
    type Input = (Order, u32);
    type Output = u32;
    type Error = Failure;

    fn options() -> StepOptions {
        StepOptions { timeout: Some(Millis::from_secs(300)), ..StepOptions::default() }
    }

    fn run((order, amount): Self::Input, _: &States) -> Attempt<u32, Failure> {
        Ok(async move { Ok(order.id + amount) }.boxed())
    }
}

fn charge() -> Step<u32> {
    step_of::<Charge>((Order { id: 7 }, 30))
}

#[tokio::test]
async fn every_attempt_of_a_step_gets_its_own_copy_of_the_argument() {
    let run = charge().run.unwrap();
    for _ in 0..2 {
        assert_eq!(run(&States::default()).unwrap().await, Ok(37));
    }
}

#[test]
fn a_step_starts_from_its_functions_options_and_the_call_may_change_them() {
    let step = charge();
    assert_eq!((step.name.as_str(), step.kind.as_str()), ("charge", "charge"));
    assert_eq!(step.options, Charge::options());

    let step = charge()
        .named("charge[2]")
        .retry("fixed(3, 2s)")
        .non_retryable(["declined"])
        .timeout(Duration::from_secs(2))
        .scope(Scope::PerAttempt)
        .heartbeat("10s")
        .on_timeout(OnTimeout::Terminal)
        .on_queue("payments")
        .remote();
    assert_eq!((step.name.as_str(), step.kind.as_str()), ("charge[2]", "charge"));
    assert!(step.options.retry.attempts_left(3) && !step.options.retry.attempts_left(4));
    assert!(!step.options.retry.is_retryable("declined"));
    assert_eq!(step.options.timeout, Some(Millis::from_secs(2)));
    assert_eq!(step.options.scope, Scope::PerAttempt);
    assert_eq!(step.options.heartbeat, Some(Millis::from_secs(10)));
    assert_eq!(step.options.on_timeout, OnTimeout::Terminal);
    assert_eq!(step.options.place, Place::Remote { queue: QueueName::parse("payments").ok() });
    assert_eq!(step.problem(), None);
}

#[test]
fn a_timeout_per_attempt_is_final_and_an_attempts_timeout_is_what_its_step_says() {
    let each = |secs, on_timeout| Some(AttemptTimeout { after: Millis::from_secs(secs), on_timeout });
    let options = charge().scope(Scope::PerAttempt).options;
    assert_eq!((options.all_attempts(), options.each_attempt()), (None, each(300, OnTimeout::Terminal)));
    let options = charge().attempt_timeout("10s").heartbeat("5s").options;
    assert_eq!(options.all_attempts(), Some(Millis::from_secs(300)));
    assert_eq!(options.each_attempt(), each(10, OnTimeout::Retry));
    assert_eq!(options.heartbeat(), each(5, OnTimeout::Retry));
    let options = charge().attempt_timeout("10s").heartbeat("5s").on_timeout(OnTimeout::Cancel).options;
    assert_eq!(options.each_attempt(), each(10, OnTimeout::Cancel));
    assert_eq!(options.heartbeat(), each(5, OnTimeout::Cancel));
}

#[test]
fn several_arguments_travel_as_an_array_and_one_as_itself() {
    assert_eq!(charge().input().unwrap().as_str(), r#"[{"id":7},30]"#);
    assert_eq!(remote::<()>("print-label", Order { id: 7 }).input().unwrap().as_str(), r#"{"id":7}"#);
}

#[test]
fn an_option_that_cannot_be_used_is_reported_with_its_text_when_the_step_is_run() {
    for (step, texts) in [
        (charge().timeout("5 parsecs"), ["timeout", "5 parsecs"]),
        (charge().timeout(Duration::ZERO), ["timeout", "longer than zero"]),
        (charge().timeout("2000d"), ["timeout", "at most 365d, not 2000d"]),
        (charge().attempt_timeout("5 parsecs"), ["attempt_timeout", "5 parsecs"]),
        (charge().attempt_timeout(Duration::ZERO), ["attempt_timeout", "longer than zero"]),
        (charge().heartbeat("0s"), ["heartbeat", "longer than zero"]),
        (charge().heartbeat("366d"), ["heartbeat", "at most 365d, not 366d"]),
        (charge().scope(Scope::PerAttempt).attempt_timeout("5s"), ["attempt_timeout", "only one of them"]),
        (charge().retry("sometimes"), ["retry", "sometimes"]),
        (charge().on_queue("no spaces"), ["queue", "no spaces"]),
        (charge().non_retryable(["a\"b"]), ["non_retryable[0]", "a\"b"]),
        (charge().named("no spaces"), ["name", "no spaces"]),
        (remote("no spaces", 1).named("label"), ["kind", "no spaces"]),
    ] {
        let problem = step.problem().unwrap();
        assert!(texts.iter().all(|text| problem.contains(text)), "{problem}");
    }
}

#[test]
fn the_first_problem_is_reported() {
    let step = charge().timeout("soon").retry("sometimes");
    assert!(step.problem().unwrap().contains("soon"));
}

#[test]
fn a_closure_is_not_sent_to_another_worker() {
    let here = step("audit", || async { Ok::<_, Failure>(1) });
    assert_eq!(here.problem(), None);
    let elsewhere = here.on_queue("audits");
    assert!(elsewhere.problem().unwrap().contains("closure"));
    assert!(matches!(elsewhere.input(), Err(StepError::Invalid { .. })));
}
