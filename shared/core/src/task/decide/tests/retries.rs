//! Retries: when there is another attempt, how long it is delayed, and when it would be too late.

use std::num::NonZeroU32;

use crate::duration::Millis;
use crate::retry::{Jitter, MaxAttempts, RetryPolicy};
use crate::task::{Ending, Outcome, Status};
use crate::timeout::{OnTimeout, TimeoutKind};

use super::fixture::{Scene, t, task};

/// Claims and fails the task as soon as it may start.
fn fail_once_more(scene: Scene) -> Scene {
    let (available_at, name) = (scene.pending().available_at, format!("after-{}", scene.record().attempt));
    scene.at_instant(available_at).claim(&name).fail(&name)
}

/// How long the task waits after each of `count` failures.
fn waits(mut scene: Scene, count: usize) -> Vec<Millis> {
    let mut waits = Vec::new();
    for _ in 0..count {
        scene = fail_once_more(scene);
        let failed_at = scene.record().history.last().unwrap().ended_at;
        waits.push(scene.pending().available_at.since(failed_at));
    }
    waits
}

fn seconds(counts: &[u64]) -> Vec<Millis> {
    counts.iter().copied().map(Millis::from_secs).collect()
}

#[test]
fn attempts_are_counted_with_the_first_one_included() {
    let scene = fail_once_more(task().attempts(3).scheduled()).is(Status::Pending).on_attempt(1);
    let scene = fail_once_more(scene).is(Status::Pending).on_attempt(2);
    fail_once_more(scene).is(Status::Failed).on_attempt(3);
}

#[test]
fn without_a_limit_a_task_is_tried_again_and_again() {
    let mut scene = task().attempts(-1).scheduled();
    for attempt in 1..=50 {
        scene = fail_once_more(scene).is(Status::Pending).on_attempt(attempt);
    }
    scene.claim("a").complete("a").is(Status::Completed).on_attempt(51);
}

#[test]
fn listed_delays_are_taken_in_order_and_the_last_repeats() {
    let scene = task().attempts(-1).delays(&["1s", "5s", "30s"]).scheduled();
    assert_eq!(waits(scene, 5), seconds(&[1, 5, 30, 30, 30]));
}

#[test]
fn growing_delays_stop_at_their_maximum() {
    let mut plan = task().attempts(-1).delay("1s");
    plan.schedule.retry =
        RetryPolicy { backoff: 2.0, max_delay: Some(Millis::from_secs(10)), ..plan.schedule.retry };
    assert_eq!(waits(plan.scheduled(), 6), seconds(&[1, 2, 4, 8, 10, 10]));
}

#[test]
fn attempts_lost_or_released_do_not_increase_the_delay() {
    let scene = task().attempts(-1).delays(&["1s", "5s"]).scheduled().claim("a").release("a");
    let scene = scene.claim_for("b", "10s").at("10s").claim("c").fail("c").available_at("11s");
    fail_once_more(scene).available_at("16s");
}

#[test]
fn jitter_is_the_same_for_repeated_decisions_and_differs_from_attempt_to_attempt() {
    let jittered = || {
        let mut plan = task();
        plan.schedule.retry = RetryPolicy {
            max_attempts: MaxAttempts::Limited(NonZeroU32::new(20).unwrap()),
            jitter: Jitter::Full,
            ..RetryPolicy::fixed(0, Millis::from_secs(10))
        };
        waits(plan.scheduled(), 10)
    };
    assert_eq!(jittered(), jittered());
    assert!(jittered().iter().all(|wait| *wait <= Millis::from_secs(10)));
    assert!(jittered().windows(2).any(|pair| pair[0] != pair[1]));
}

#[test]
fn an_error_that_says_it_is_final_is_not_retried() {
    task()
        .attempts(5)
        .scheduled()
        .claim("a")
        .fail_for_good("a")
        .is(Status::Failed)
        .on_attempt(1)
        .sends_nothing();
}

#[test]
fn an_error_code_that_the_policy_lists_is_not_retried() {
    let running = || task().attempts(5).non_retryable("bad_address").scheduled().claim("a");
    running().fail_with("a", "bad_address", "no such street").is(Status::Failed);
    running().fail_with("a", "bad_address_book", "no such book").is(Status::Pending);
}

#[test]
fn a_retry_that_could_only_start_at_the_deadline_fails_at_once_with_the_reason_and_the_last_error() {
    let running = || task().attempts(5).delay("30s").deadline("1m").scheduled().claim("a");
    let doomed = running().at("30s").fail("a").is(Status::TimedOut).sends_nothing();
    let Outcome::TimedOut { kind: TimeoutKind::ScheduleToClose, error } = doomed.outcome() else {
        panic!("{:?}", doomed.outcome());
    };
    assert_eq!(
        error.message,
        "not retried: attempt 2 would start at 2023-11-14T22:14:20.000Z, and the deadline is \
         2023-11-14T22:14:20.000Z; last error: broken: the printer is on fire"
    );
    assert_eq!(doomed.record().history[0].ending, Ending::Failed);
    running().at("29s 999ms").fail("a").is(Status::Pending).available_at("59s 999ms");
}

#[test]
fn an_error_without_a_message_is_shown_by_its_code() {
    let scene =
        task().attempts(5).delay("1m").deadline("1m").scheduled().claim("a").fail_with("a", "E42", "");
    assert!(scene.error().message.ends_with("; last error: E42"), "{:?}", scene.error());
}

#[test]
fn a_doomed_retry_is_cancelled_where_the_deadline_is_no_error() {
    let scene = task()
        .attempts(5)
        .delay("30s")
        .with_total_timeout("1m", false)
        .scheduled()
        .claim("a")
        .at("40s")
        .fail("a");
    scene.ended_as(&Outcome::Cancelled { timeout: Some(TimeoutKind::ScheduleToClose) });
}

#[test]
fn a_retry_after_a_timeout_can_be_doomed_as_well() {
    let plan = task().attempts(5).delay("50s").deadline("1m").heartbeats("10s", OnTimeout::Retry);
    let scene = plan.scheduled().claim("a").at("10s").tick().is(Status::TimedOut);
    assert!(scene.error().message.contains("not retried"), "{:?}", scene.error());
    assert!(scene.error().message.contains("no sign of life"), "{:?}", scene.error());
}

#[test]
fn an_error_that_is_not_retryable_is_not_doomed_but_failed() {
    task().delay("30s").deadline("1m").scheduled().claim("a").at("50s").fail("a").is(Status::Failed);
}

#[test]
fn a_record_remembers_its_last_three_attempts_with_their_errors_cut_short() {
    let long = "é".repeat(100);
    let mut scene = task().attempts(9).scheduled();
    for name in ["a", "b", "c", "d"] {
        scene = scene.claim(name).fail_with(name, "broken", &long);
    }
    let history = &scene.record().history;
    assert_eq!(history.iter().map(|past| past.attempt).collect::<Vec<_>>(), [2, 3, 4]);
    assert!(history.iter().all(|past| past.error.as_ref().unwrap().message == "é".repeat(60)));
}

#[test]
fn a_long_message_is_cut_in_the_record_and_kept_whole_beside_it_once_the_task_has_failed() {
    let long = "\"é\n".repeat(200);
    let scene = task().scheduled().claim("a").fail_with("a", "broken", &long).is(Status::Failed);
    let Outcome::Failed { error, message: Some(at) } = scene.outcome() else {
        panic!("{:?}", scene.outcome())
    };
    assert!(long.starts_with(&error.message) && error.message.len() == 240);
    let blobs = scene.decision().blobs();
    let [blob] = blobs.as_slice() else { panic!("{:?}", scene.decision().blobs()) };
    assert_eq!(blob.0, at);
    assert_eq!(serde_json::from_str::<String>(blob.1.as_str()).unwrap(), long);
    assert!(at.expires_at > scene.record().ended().unwrap().expires_at);
    task().attempts(2).scheduled().claim("a").fail_with("a", "broken", &long).sends_hint_for("0s");
}

#[test]
fn backoff_counts_from_the_failure() {
    let scene = task().attempts(2).delay("10s").scheduled().claim("a").at("33s").fail("a");
    assert_eq!(scene.pending().available_at, t("43s"));
}
