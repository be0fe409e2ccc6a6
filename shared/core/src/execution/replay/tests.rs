use super::*;
use crate::duration::Millis;
use crate::execution::journal::StepOutcome;
use crate::failure::Failure;
use crate::parent::ParentClosePolicy;
use crate::payload::{Json, Payload};
use crate::retry::RetryPolicy;

const NOW: Timestamp = Timestamp::from_millis(1_767_225_600_000);

fn name(text: &str) -> StepName {
    StepName::parse(text).unwrap()
}

fn event_name(text: &str) -> EventName {
    EventName::parse(text).unwrap()
}

fn text(text: &str) -> Payload {
    Payload::Inline(Json::string(text))
}

fn at(ms: u64) -> Timestamp {
    NOW.plus(Millis::new(ms))
}

fn completed(step: &str) -> Happened {
    let outcome = StepOutcome::Completed { output: Some(text(step)) };
    Happened::Step { name: name(step), outcome, attempts: Some(1) }
}

fn sent(event: &str, payload: &str) -> Happened {
    Happened::Event { name: event_name(event), id: None, payload: Some(text(payload)) }
}

fn journal(happened: impl IntoIterator<Item = Happened>) -> Vec<Entry> {
    happened.into_iter().map(|what| Entry { at: NOW, what }).collect()
}

fn replay(happened: impl IntoIterator<Item = Happened>) -> Replay {
    Replay::new(&journal(happened), &Limits::default())
}

#[test]
fn the_latest_entry_of_a_name_is_its_state() {
    let failed = |attempt| Happened::Attempt {
        name: name("charge"),
        attempt,
        first_at: NOW,
        error: Some(Failure::new("net", "down")),
        next_at: Some(at(5)),
        progress: None,
    };
    let replay =
        replay([failed(1), failed(2), Happened::Remote { name: name("label[0]") }, completed("pack")]);
    assert!(matches!(replay.name_state(&name("charge")), NameState::Failed { attempt: 2, .. }));
    assert_eq!(replay.name_state(&name("label[0]")), &NameState::Remote);
    assert!(matches!(replay.name_state(&name("pack")), NameState::Ended { attempts: Some(1), .. }));
    assert_eq!(replay.name_state(&name("never")), &NameState::Fresh);
    assert_eq!(replay.open_remote(), [name("label[0]")]);
}

#[test]
fn attempts_that_an_earlier_build_wrote_down_are_read_as_they_were_meant() {
    let read =
        |text: &str| Replay::new(&serde_json::from_str::<Vec<Entry>>(text).unwrap(), &Limits::default());
    let begun = r#"[{"t":1767225600000,"a":{"n":"charge","i":2,"f":1767225600000,"u":1767225600150}}]"#;
    let name_state =
        NameState::InProgress { attempt: 2, first_at: NOW, timeout_at: Some(at(150)), progress: None };
    assert_eq!(read(begun).name_state(&name("charge")), &name_state);
    let failed = r#"[{"t":1767225600000,"a":{"n":"charge","i":2,"f":1767225600000,
        "x":{"c":"net","m":"down"},"u":1767225600150}}]"#;
    let error = Failure::new("net", "down");
    let name_state = NameState::Failed { attempt: 2, first_at: NOW, error, next_at: at(150), progress: None };
    assert_eq!(read(failed).name_state(&name("charge")), &name_state);
}

#[test]
fn a_result_is_kept_from_an_earlier_run_if_nothing_of_it_was_begun_in_this_one() {
    let begun = Happened::Remote { name: name("label[1]") };
    let mut replay = replay([completed("label[0]"), begun, completed("label[1]")]);
    assert!(replay.is_from_earlier_run(&name("label[0]")));
    assert!(!replay.is_from_earlier_run(&name("label[1]")) && !replay.is_from_earlier_run(&name("never")));
    replay.rebuild(&journal([Happened::Remote { name: name("label[0]") }, completed("label[0]")]));
    assert!(!replay.is_from_earlier_run(&name("label[0]")));
}

#[test]
fn a_name_can_be_used_once_whether_or_not_it_has_a_result() {
    let mut replay = replay([completed("pack")]);
    for used in ["pack", "fresh"] {
        assert_eq!(replay.claim(&name(used)), Ok(()));
        let refused = replay.claim(&name(used)).unwrap_err();
        assert!(refused.to_string().contains(&format!("{used:?}")), "{refused}");
    }
}

#[test]
fn what_happens_counts_at_once_and_is_written_once() {
    let mut replay = replay([]);
    replay.push(NOW, completed("pack"));
    replay.push(NOW, Happened::Until { name: name("settle"), until: at(9) });
    assert_eq!(replay.name_state(&name("settle")), &NameState::Until(at(9)));
    assert_eq!(replay.take_fresh().len(), 2);
    assert!(!replay.has_fresh() && replay.take_fresh().is_empty());
    assert_eq!(replay.entries(), 2);
}

#[test]
fn what_could_not_be_written_is_written_next_time_and_in_its_order() {
    let mut replay = replay([]);
    replay.push(NOW, completed("a"));
    replay.take_fresh();
    replay.push(NOW, completed("b"));
    replay.put_back();
    assert_eq!(replay.take_fresh(), journal([completed("a"), completed("b")]));
}

#[test]
fn an_operator_can_have_a_step_forgotten() {
    let replay = replay([completed("pack"), Happened::Reopened { name: name("pack") }]);
    assert_eq!(replay.name_state(&name("pack")), &NameState::Fresh);
    assert_eq!(replay.reopened(), 1);
    assert!(replay.was_reopened(&name("pack")) && !replay.was_reopened(&name("other")));
}

#[test]
fn a_wait_takes_the_oldest_event_of_its_name() {
    let taken = |wait: &str| Happened::Waited { name: name(wait), event: Some(event_name("shipped")) };
    let mut replay = replay([sent("shipped", "a"), sent("paid", "x"), sent("shipped", "b"), taken("w1")]);
    assert_eq!(replay.name_state(&name("w1")), &NameState::Waited(WaitOutcome::Event(Some(text("a")))));
    assert_eq!(replay.next_event(&event_name("shipped")).unwrap().payload, Some(text("b")));
    replay.push(NOW, taken("w2"));
    assert_eq!(replay.name_state(&name("w2")), &NameState::Waited(WaitOutcome::Event(Some(text("b")))));
    assert_eq!(replay.next_event(&event_name("shipped")), None);
    replay.push(NOW, Happened::Waited { name: name("w3"), event: None });
    assert_eq!(replay.name_state(&name("w3")), &NameState::Waited(WaitOutcome::Nothing));
    assert_eq!(replay.free_events(), journal([sent("paid", "x")]));
}

#[test]
fn cleared_events_are_gone_and_later_ones_stay() {
    let drained = Happened::EventsCleared { name: event_name("e"), count: 2 };
    let replay = replay([sent("e", "a"), sent("e", "b"), drained, sent("e", "c")]);
    assert_eq!(replay.event_count(&event_name("e")), 1);
    assert_eq!(replay.next_event(&event_name("e")).unwrap().payload, Some(text("c")));
}

#[test]
fn patches_are_those_of_the_runs_first_claim() {
    let untouched = replay([sent("e", "a"), Happened::Note { kind: "paused".to_owned(), name: None }]);
    assert!(untouched.is_untouched());
    let old = replay([completed("pack")]);
    assert!(!old.is_untouched() && old.patches().is_none());
    let new = replay([Happened::Patches { names: vec!["tax".to_owned()] }]);
    assert_eq!(new.patches().unwrap(), ["tax"]);
}

#[test]
fn children_are_open_until_they_end() {
    let child = crate::id::ExecutionId::parse("child").unwrap();
    let begun = Happened::Child {
        name: name("child:child"),
        execution: child.clone(),
        policy: ParentClosePolicy::Terminate,
    };
    let mut replay = replay([begun]);
    assert_eq!(replay.open_children(), [(name("child:child"), child)]);
    replay.push(
        NOW,
        Happened::Step { name: name("child:child"), outcome: StepOutcome::TimedOut, attempts: None },
    );
    assert!(replay.open_children().is_empty());
}

#[test]
fn limits_are_enforced_and_warned_of_once_at_four_fifths() {
    let limits = Limits { journal_entries: 5, open_steps: 2, ..Limits::default() };
    let three = ["a", "b", "c"].map(completed);
    let mut replay = Replay::new(&journal(three), &limits);
    assert!(replay.warnings().is_empty());
    assert!(
        replay.check_fan_out(limits.fan_out).is_ok() && replay.check_fan_out(limits.fan_out + 1).is_err()
    );
    assert_eq!(replay.warnings()[0].limit, "fan_out");
    replay.push(NOW, completed("d"));
    assert_eq!(replay.warnings(), [Warning { limit: "journal_entries", value: 4, maximum: 5 }]);
    assert!(replay.warnings().is_empty());
    replay.push(NOW, completed("e"));
    assert!(matches!(replay.claim(&name("f")), Err(ClaimError::Limit(Reject::LimitExceeded { .. }))));
    assert_eq!(replay.claim(&name("a")), Ok(()));
    assert!(replay.check_open(2).is_ok() && replay.check_open(3).is_err());
}

mod policy {
    use super::*;
    use crate::timeout::{AttemptTimeout, OnTimeout};

    fn policy(retry: RetryPolicy, timeout: Option<u64>) -> StepPolicy {
        StepPolicy { retry, timeout: timeout.map(Millis::new), attempt_timeout: None, at_most_once: false }
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
        policy.after_timeout(&ended(attempt, NOW, now), bounds)
    }

    fn name_state(attempt: u32, next_at: Timestamp) -> NameState {
        NameState::Failed { attempt, first_at: NOW, error: Failure::new("net", ""), next_at, progress: None }
    }

    const TIMED_OUT: AfterFailure = AfterFailure::End(StepOutcome::TimedOut);

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
        assert_eq!(after(&global, 2, at(40), none), TIMED_OUT);
        let next = global.next(&name_state(1, at(80)), at(80));
        assert_eq!(next, Next::Run { attempt: 2, first_at: NOW, timeout_at: Some(at(100)) });
        let late = global.next(&name_state(1, at(80)), at(100));
        assert_eq!(late, Next::End { outcome: StepOutcome::TimedOut, attempts: 1 });
    }

    #[test]
    fn a_timeout_per_attempt_starts_again_with_each_attempt() {
        for on_timeout in [OnTimeout::Retry, OnTimeout::Terminal] {
            let each = each(on_timeout);
            let next = each.next(&name_state(3, at(500)), at(700));
            assert_eq!(next, Next::Run { attempt: 4, first_at: NOW, timeout_at: Some(at(800)) });
            assert_eq!(each.next(&name_state(3, at(500)), at(400)), Next::Wait { next_at: at(500) });
        }
    }

    #[test]
    fn of_both_timeouts_an_attempt_has_the_sooner_one() {
        let both = StepPolicy { timeout: Some(Millis::new(250)), ..each(OnTimeout::Retry) };
        for (begins, over) in [(0, 100), (150, 250), (149, 249)] {
            let next = both.next(&name_state(1, at(begins)), at(begins));
            assert_eq!(next, Next::Run { attempt: 2, first_at: NOW, timeout_at: Some(at(over)) });
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
        assert_eq!(after_timeout(&retried, 10, at(100), none), TIMED_OUT);
        // As with tasks, only the codes of the step's own errors can be non-retryable.
        let retry = RetryPolicy { non_retryable: vec!["timed_out".to_owned()], ..retried.retry.clone() };
        let listed = StepPolicy { retry, ..retried };
        assert_eq!(after_timeout(&listed, 1, at(100), none), AfterFailure::Retry { at: at(160) });
    }

    #[test]
    fn an_attempt_that_takes_too_long_ends_the_step_where_its_policy_says_so() {
        let none = Bounds::default();
        assert_eq!(after_timeout(&each(OnTimeout::Terminal), 1, at(100), none), TIMED_OUT);
        let cancelled = AfterFailure::End(StepOutcome::Cancelled);
        assert_eq!(after_timeout(&each(OnTimeout::Cancel), 1, at(100), none), cancelled);
        // It is unknown how far the attempt had come.
        let once = StepPolicy { at_most_once: true, ..each(OnTimeout::Retry) };
        assert_eq!(after_timeout(&once, 1, at(100), none), TIMED_OUT);
        assert_eq!(after(&once, 1, at(50), none), AfterFailure::Retry { at: at(110) });
    }

    #[test]
    fn a_retry_after_an_attempts_timeout_has_to_fit_into_the_time_over_all_and_before_the_deadline() {
        let both = StepPolicy { timeout: Some(Millis::new(160)), ..each(OnTimeout::Retry) };
        let none = Bounds::default();
        assert_eq!(after_timeout(&both, 1, at(99), none), AfterFailure::Retry { at: at(159) });
        assert_eq!(after_timeout(&both, 1, at(100), none), TIMED_OUT);
        let bounds = Bounds::of([Some(at(160))]);
        let exceeded = AfterFailure::End(StepOutcome::DeadlineExceeded);
        assert_eq!(after_timeout(&each(OnTimeout::Retry), 1, at(100), bounds), exceeded);
        // The timeout over all attempts ends the step.
        let over = StepPolicy { timeout: Some(Millis::new(100)), ..each(OnTimeout::Cancel) };
        assert_eq!(after_timeout(&over, 1, at(100), none), TIMED_OUT);
    }

    #[test]
    fn a_timed_out_attempt_is_remembered_with_the_code_that_tasks_have() {
        let failure = timed_out(at(100));
        assert_eq!(failure.code, "timed_out");
        assert!(failure.message.contains("2026-01-01T00:00:00.100Z"), "{}", failure.message);
    }

    #[test]
    fn a_retry_that_the_deadline_dooms_fails_at_once() {
        let policy = policy(RetryPolicy::fixed(9, Millis::new(60)), None);
        let bounds = Bounds::of([None, Some(at(60)), Some(at(90))]);
        assert_eq!(after(&policy, 1, NOW, bounds), AfterFailure::End(StepOutcome::DeadlineExceeded));
    }

    fn begun(timeout_at: Option<Timestamp>) -> NameState {
        NameState::InProgress { attempt: 2, first_at: NOW, timeout_at, progress: None }
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
        let over = Next::TimedOut { attempt: 2, first_at: NOW, timeout_at: at(150) };
        for on_timeout in [OnTimeout::Retry, OnTimeout::Terminal] {
            let each = each(on_timeout);
            let again = Next::Run { attempt: 2, first_at: NOW, timeout_at: Some(at(249)) };
            assert_eq!(each.next(&begun, at(149)), again);
            assert_eq!(each.next(&begun, at(150)), over);
        }
        let global = policy(RetryPolicy::fixed(9, Millis::ZERO), Some(150));
        assert!(matches!(global.next(&begun, at(149)), Next::Run { attempt: 2, .. }));
        assert_eq!(global.next(&begun, at(150)), over);
        // The same as if its worker were alive: the step must not run again either way.
        let once = StepPolicy { at_most_once: true, ..global.clone() };
        assert_eq!(once.next(&begun, at(149)), Next::Interrupted { attempt: 2 });
        assert_eq!(once.next(&begun, at(150)), over);
        // The code allows more time by now.
        let longer = StepPolicy { timeout: Some(Millis::new(900)), ..global };
        assert!(matches!(longer.next(&begun, at(150)), Next::Run { attempt: 2, .. }));
    }
}

fn fired(sleep: &str) -> Happened {
    Happened::Fired { name: name(sleep) }
}

fn captured(text_of: &str, bytes: usize) -> Happened {
    Happened::Captured { name: name(text_of), value: text(&"x".repeat(bytes)) }
}

fn note(kind: &str, of: Option<&str>) -> Happened {
    Happened::Note { kind: kind.to_owned(), name: of.map(name) }
}

/// All outcomes that the code receives, in order.
fn received(replay: &mut Replay) -> Vec<String> {
    std::iter::from_fn(|| {
        let next = replay.next_outcome()?.to_string();
        replay.pass();
        Some(next)
    })
    .collect()
}

#[test]
fn the_code_receives_outcomes_in_the_order_of_the_journal() {
    let until = Happened::Until { name: name("settle"), until: at(9) };
    let took = Happened::Waited { name: name("event:paid"), event: Some(event_name("paid")) };
    let begun = Happened::Remote { name: name("charge") };
    let mut replay = replay([
        begun,
        until,
        sent("paid", "5"),
        completed("pack"),
        took,
        fired("settle"),
        completed("charge"),
        captured("small", 5),
        captured("large", 5_000),
    ]);
    assert_eq!(received(&mut replay), ["pack", "event:paid", "settle", "charge", "large"]);
    // New outcomes come after it.
    replay.push(NOW, completed("label"));
    replay.push(NOW, fired("nap"));
    assert_eq!(received(&mut replay), ["label", "nap"]);
    assert!(replay.is_delivered(&name("pack")) && !replay.is_delivered(&name("small")));
}

#[test]
fn received_outcomes_are_not_received_again_when_the_journal_is_read_again() {
    let mut replay = replay([completed("a"), completed("b")]);
    replay.pass();
    replay.rebuild(&journal([completed("a"), sent("paid", "5"), completed("b"), completed("c")]));
    assert_eq!(received(&mut replay), ["b", "c"]);
    // Its old outcome no longer counts: there will be another one.
    replay.push(NOW, Happened::Reopened { name: name("b") });
    assert!(!replay.is_delivered(&name("b")));
    replay.push(NOW, completed("b"));
    assert_eq!(received(&mut replay), ["b"]);
}

#[test]
fn an_outcome_keeps_its_place_among_those_that_were_passed() {
    let mut replay = replay([completed("b"), completed("a")]);
    assert_eq!(replay.position(&name("a")), None);
    assert_eq!(received(&mut replay), ["b", "a"]);
    replay.rebuild(&journal([completed("b"), sent("paid", "5"), completed("a")]));
    replay.push(NOW, completed("c"));
    assert_eq!(received(&mut replay), ["c"]);
    let places = ["b", "a", "c"].map(|text| replay.position(&name(text)));
    assert!(places.is_sorted_by(|one, next| one < next), "{places:?}");
}

fn unused(replay: &Replay) -> Vec<String> {
    replay.unused().map(ToString::to_string).collect()
}

#[test]
fn what_the_code_does_not_ask_for_is_drift_unless_it_may_come_to_it_later() {
    let mut changed = replay([completed("a"), fired("nap"), completed("b"), note("drift", Some("b"))]);
    changed.claim(&name("a")).unwrap();
    assert_eq!(unused(&changed), ["b", "nap"]);
    assert!(changed.is_noted(&name("b")) && !changed.is_noted(&name("nap")));
    // A rerun gets to the kept results only after the steps that run again.
    let kept = replay([completed("a"), completed("b"), note("restarted", None), completed("c")]);
    assert_eq!(unused(&kept), ["c"]);
    let reopened = replay([completed("a"), completed("b"), Happened::Reopened { name: name("a") }]);
    assert_eq!(unused(&reopened), Vec::<String>::new());
    assert_eq!(reopened.unclaimed().collect::<Vec<_>>(), [&name("b")]);
}
