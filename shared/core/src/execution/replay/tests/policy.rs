//! What follows an attempt, by the policy of its step.

use super::*;
use crate::timeout::{AttemptTimeout, Expired, ExpiredKind, OnTimeout};

fn policy(retry: RetryPolicy, timeout: Option<u64>) -> StepPolicy {
    let timeout = timeout.map(Millis::new);
    StepPolicy { retry, timeout, attempt_timeout: None, heartbeat: None, at_most_once: false }
}

/// Nine retries, each after 60 ms, of attempts with a timeout of 100 ms.
fn each(on_timeout: OnTimeout) -> StepPolicy {
    let attempt_timeout = Some(AttemptTimeout { after: Millis::new(100), on_timeout });
    StepPolicy { attempt_timeout, ..policy(RetryPolicy::fixed(9, Millis::new(60)), None) }
}

fn ended(attempt: u32, first_at: Timestamp, now: Timestamp) -> EndedAttempt {
    EndedAttempt { attempt, first_at, seed: 0, now }
}

fn after(policy: &StepPolicy, attempt: u32, now: Timestamp, bounds: Bounds) -> AfterFailure {
    policy.after_failure(&ended(attempt, NOW, now), "net", bounds, text("last"))
}

fn after_timeout(policy: &StepPolicy, attempt: u32, now: Timestamp, bounds: Bounds) -> AfterFailure {
    policy.after_timeout(&ended(attempt, NOW, now), too_long(now), bounds)
}

/// The limit of an attempt.
const fn too_long(deadline_at: Timestamp) -> Expired {
    Expired { kind: ExpiredKind::StartToClose, deadline_at }
}

/// The limit over all attempts.
const fn over_all(deadline_at: Timestamp) -> Expired {
    Expired { kind: ExpiredKind::ScheduleToClose, deadline_at }
}

fn name_state(attempt: u32, next_at: Timestamp) -> NameState {
    NameState::Failed {
        attempt,
        first_at: NOW,
        error: Failure::new("net", ""),
        next_at,
        reported: Reported::default(),
    }
}

#[test]
fn attempts_are_used_up_and_a_single_one_is_the_steps_own_failure() {
    let once = policy(RetryPolicy::none(), None);
    let error = text("last");
    let ended = AfterFailure::End(StepOutcome::Failed { error: error.clone() });
    assert_eq!(after(&once, 1, NOW, Bounds::default()), ended);
    let thrice = policy(RetryPolicy::fixed(2, Millis::new(10)), None);
    assert_eq!(after(&thrice, 2, NOW, Bounds::default()), AfterFailure::Retry { at: at(10) });
    let exhausted = AfterFailure::End(StepOutcome::Exhausted { error });
    assert_eq!(after(&thrice, 3, NOW, Bounds::default()), exhausted);
}

#[test]
fn a_global_timeout_counts_from_the_first_attempt_and_a_retry_it_dooms_is_not_waited_for() {
    let global = policy(RetryPolicy::fixed(9, Millis::new(60)), Some(100));
    let none = Bounds::default();
    assert_eq!(after(&global, 1, at(20), none), AfterFailure::Retry { at: at(80) });
    assert_eq!(after(&global, 2, at(40), none), AfterFailure::TimedOut(over_all(at(100))));
    let next = global.next(&name_state(1, at(80)), at(80));
    assert_eq!(next, Next::Run { attempt: 2, first_at: NOW, limit: Some(over_all(at(100))) });
    let late = global.next(&name_state(1, at(80)), at(100));
    assert_eq!(late, Next::Over { attempts: 1, expired: over_all(at(100)) });
}

#[test]
fn a_timeout_per_attempt_starts_again_with_each_attempt() {
    for on_timeout in [OnTimeout::Retry, OnTimeout::Terminal] {
        let each = each(on_timeout);
        let next = each.next(&name_state(3, at(500)), at(700));
        assert_eq!(next, Next::Run { attempt: 4, first_at: NOW, limit: Some(too_long(at(800))) });
        assert_eq!(each.next(&name_state(3, at(500)), at(400)), Next::Wait { next_at: at(500) });
    }
}

#[test]
fn of_both_timeouts_an_attempt_has_the_sooner_one() {
    let both = StepPolicy { timeout: Some(Millis::new(250)), ..each(OnTimeout::Retry) };
    for (begins, over) in [(0, too_long(at(100))), (150, over_all(at(250))), (149, too_long(at(249)))] {
        let next = both.next(&name_state(1, at(begins)), at(begins));
        assert_eq!(next, Next::Run { attempt: 2, first_at: NOW, limit: Some(over) });
    }
    assert_eq!(both.longest_attempt(), Some(Millis::new(100)));
    assert_eq!(policy(RetryPolicy::none(), Some(7)).longest_attempt(), Some(Millis::new(7)));
    assert_eq!(policy(RetryPolicy::none(), None).longest_attempt(), None);
}

#[test]
fn an_attempt_that_takes_too_long_is_followed_by_another_while_any_are_left() {
    let retried = each(OnTimeout::Retry);
    let none = Bounds::default();
    assert_eq!(after_timeout(&retried, 1, at(100), none), AfterFailure::Retry { at: at(160) });
    assert_eq!(after_timeout(&retried, 9, at(100), none), AfterFailure::Retry { at: at(160) });
    // The step has no error of its own that it could end with.
    assert_eq!(after_timeout(&retried, 10, at(100), none), AfterFailure::TimedOut(too_long(at(100))));
    // As with tasks, only the codes of the step's own errors can be non-retryable.
    let retry = RetryPolicy { non_retryable: vec!["timed_out".to_owned()], ..retried.retry.clone() };
    let listed = StepPolicy { retry, ..retried };
    assert_eq!(after_timeout(&listed, 1, at(100), none), AfterFailure::Retry { at: at(160) });
}

#[test]
fn an_attempt_that_takes_too_long_ends_the_step_where_its_policy_says_so() {
    let none = Bounds::default();
    let timed_out = AfterFailure::TimedOut(too_long(at(100)));
    assert_eq!(after_timeout(&each(OnTimeout::Terminal), 1, at(100), none), timed_out);
    let cancelled = AfterFailure::Cancelled(too_long(at(100)));
    assert_eq!(after_timeout(&each(OnTimeout::Cancel), 1, at(100), none), cancelled);
    // It is unknown how far the attempt had come.
    let once = StepPolicy { at_most_once: true, ..each(OnTimeout::Retry) };
    assert_eq!(after_timeout(&once, 1, at(100), none), timed_out);
    assert_eq!(after(&once, 1, at(50), none), AfterFailure::Retry { at: at(110) });
}

#[test]
fn a_retry_after_an_attempts_timeout_has_to_fit_into_the_time_over_all_and_before_the_deadline() {
    let both = StepPolicy { timeout: Some(Millis::new(160)), ..each(OnTimeout::Retry) };
    let none = Bounds::default();
    assert_eq!(after_timeout(&both, 1, at(99), none), AfterFailure::Retry { at: at(159) });
    assert_eq!(after_timeout(&both, 1, at(100), none), AfterFailure::TimedOut(over_all(at(160))));
    let bounds = Bounds::of([Some(at(160))]);
    let exceeded = AfterFailure::End(StepOutcome::DeadlineExceeded);
    assert_eq!(after_timeout(&each(OnTimeout::Retry), 1, at(100), bounds), exceeded);
    // The timeout over all attempts ends the step.
    let over = StepPolicy { timeout: Some(Millis::new(100)), ..each(OnTimeout::Cancel) };
    assert_eq!(after_timeout(&over, 1, at(100), none), AfterFailure::TimedOut(over_all(at(100))));
}

#[test]
fn a_timed_out_attempt_is_remembered_with_the_code_that_tasks_have() {
    let failure = timed_out(too_long(at(100)));
    assert_eq!(failure.code, "timed_out");
    for part in ["2026-01-01T00:00:00.100Z", "start_to_close"] {
        assert!(failure.message.contains(part), "{}", failure.message);
    }
}

#[test]
fn a_retry_that_the_deadline_dooms_fails_at_once() {
    let policy = policy(RetryPolicy::fixed(9, Millis::new(60)), None);
    let bounds = Bounds::of([None, Some(at(60)), Some(at(90))]);
    assert_eq!(after(&policy, 1, NOW, bounds), AfterFailure::End(StepOutcome::DeadlineExceeded));
}

fn begun(timeout_at: Option<Timestamp>) -> NameState {
    NameState::InProgress {
        attempt: 2,
        first_at: NOW,
        timeout_at,
        reported: Reported::default(),
        last_error: None,
    }
}

#[test]
fn a_lost_attempt_runs_again_unless_it_may_run_only_once() {
    let mut policy = policy(RetryPolicy::fixed(9, Millis::ZERO), None);
    assert!(matches!(policy.next(&begun(None), at(9)), Next::Run { attempt: 2, first_at: NOW, .. }));
    policy.at_most_once = true;
    assert_eq!(policy.next(&begun(None), at(9)), Next::Interrupted { attempt: 2 });
}

#[test]
fn the_time_of_an_attempt_that_was_written_down_passes_though_its_worker_is_lost() {
    let begun = begun(Some(at(150)));
    let over = |expired| Next::TimedOut { attempt: 2, first_at: NOW, expired };
    let global = policy(RetryPolicy::fixed(9, Millis::ZERO), Some(150));
    // Its time goes on, and isn't begun again.
    let again = Next::Run { attempt: 2, first_at: NOW, limit: Some(over_all(at(150))) };
    assert_eq!(global.next(&begun, at(149)), again);
    assert_eq!(global.next(&begun, at(150)), over(over_all(at(150))));
    // The same as if its worker were alive: the step must not run again either way.
    let once = StepPolicy { at_most_once: true, ..global.clone() };
    assert_eq!(once.next(&begun, at(149)), Next::Interrupted { attempt: 2 });
    assert_eq!(once.next(&begun, at(150)), over(over_all(at(150))));
    let once = StepPolicy { at_most_once: true, ..each(OnTimeout::Retry) };
    assert_eq!(once.next(&begun, at(150)), over(too_long(at(150))));
    // The code allows more time by now.
    let longer = StepPolicy { timeout: Some(Millis::new(900)), ..each(OnTimeout::Retry) };
    assert!(matches!(longer.next(&begun, at(150)), Next::Run { attempt: 2, .. }));
}

#[test]
fn a_step_with_a_window_is_recorded_before_it_runs_with_the_end_of_the_window() {
    let plain = each(OnTimeout::Retry);
    assert!(!plain.is_recorded_first());
    let window = StepPolicy { timeout: Some(Millis::new(900)), ..plain.clone() };
    assert!(window.is_recorded_first());
    // Not the end of its first attempt: the next ones aren't recorded.
    assert_eq!(window.recorded_timeout_at(NOW, at(50)), Some(at(900)));
    let once = StepPolicy { at_most_once: true, ..window.clone() };
    assert_eq!(once.recorded_timeout_at(NOW, at(50)), Some(at(150)));
    let heartbeat = Some(AttemptTimeout { after: Millis::new(9), on_timeout: OnTimeout::Retry });
    let watched = StepPolicy { heartbeat, ..plain };
    assert_eq!((watched.is_recorded_first(), watched.recorded_timeout_at(NOW, NOW)), (true, None));
}

#[test]
fn what_follows_silence_is_what_the_heartbeat_says() {
    let silent = Expired { kind: ExpiredKind::Heartbeat, deadline_at: at(30) };
    let watched = |on_timeout| {
        let heartbeat = Some(AttemptTimeout { after: Millis::new(30), on_timeout });
        StepPolicy { heartbeat, ..each(OnTimeout::Terminal) }
    };
    let after = |policy: StepPolicy| policy.after_timeout(&ended(1, NOW, at(30)), silent, Bounds::default());
    assert_eq!(after(watched(OnTimeout::Retry)), AfterFailure::Retry { at: at(90) });
    assert_eq!(after(watched(OnTimeout::Terminal)), AfterFailure::TimedOut(silent));
    assert_eq!(after(watched(OnTimeout::Cancel)), AfterFailure::Cancelled(silent));
}
