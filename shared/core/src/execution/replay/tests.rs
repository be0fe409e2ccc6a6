use super::*;
use crate::duration::Millis;
use crate::execution::journal::StepOutcome;
use crate::execution::{Execution, fixture};
use crate::failure::Failure;
use crate::parent::ParentClosePolicy;
use crate::payload::{Json, Payload};
use crate::reported::Reported;
use crate::retry::RetryPolicy;

mod drift;
mod policy;

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
    Happened::Step { name: name(step), outcome, attempts: Some(1), expired: None, errors: vec![] }
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
        details: None,
        is_ongoing: false,
        errors: vec![],
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
fn the_time_of_a_step_that_has_not_ended_starts_afresh_at_a_resume() {
    let attempt = |step: &str, error: Option<Failure>| Happened::Attempt {
        name: name(step),
        attempt: 2,
        first_at: NOW,
        error,
        next_at: Some(at(5)),
        progress: None,
        details: None,
        is_ongoing: false,
        errors: vec![],
    };
    let note = |kind: &str| Happened::Note { kind: kind.to_owned(), name: None, by: None };
    let mut entries = journal([attempt("waits", Some(Failure::new("net", "down"))), attempt("lost", None)]);
    entries.push(Entry { at: at(1_000), what: note("paused") });
    let first_at = |entries: &[Entry], step: &str| match Replay::new(entries, &Limits::default())
        .name_state(&name(step))
    {
        NameState::Failed { attempt: 2, first_at, next_at, .. } if *next_at == at(5) => *first_at,
        NameState::InProgress { attempt: 2, first_at, timeout_at, .. } if *timeout_at == Some(at(5)) => {
            *first_at
        }
        other => panic!("{other:?}"),
    };
    assert_eq!((first_at(&entries, "waits"), first_at(&entries, "lost")), (NOW, NOW));
    entries.push(Entry { at: at(60_000), what: note(RESUMED) });
    assert_eq!((first_at(&entries, "waits"), first_at(&entries, "lost")), (at(60_000), at(60_000)));
    // Nor does the time until an operator has another step run again, and the attempt that the end cut off doesn't count.
    let again = Happened::Reopened { name: name("other"), by: None, input: None };
    entries.push(Entry { at: at(90_000), what: again });
    let reopened = Replay::new(&entries, &Limits::default());
    let lost = reopened.name_state(&name("lost"));
    let goes_on = |first_at: &Timestamp| *first_at == at(90_000);
    assert!(
        matches!(lost, NameState::InProgress { attempt: 2, first_at, timeout_at: None, .. } if goes_on(first_at)),
        "{lost:?}"
    );
    let waits = reopened.name_state(&name("waits"));
    assert!(matches!(waits, NameState::Failed { first_at, .. } if goes_on(first_at)), "{waits:?}");
}

#[test]
fn attempts_that_an_earlier_build_wrote_down_are_read_as_they_were_meant() {
    let read =
        |text: &str| Replay::new(&serde_json::from_str::<Vec<Entry>>(text).unwrap(), &Limits::default());
    let begun = r#"[{"t":1767225600000,"a":{"n":"charge","i":2,"f":1767225600000,"u":1767225600150}}]"#;
    let name_state = NameState::InProgress {
        attempt: 2,
        first_at: NOW,
        timeout_at: Some(at(150)),
        reported: Reported::default(),
        last_error: None,
    };
    assert_eq!(read(begun).name_state(&name("charge")), &name_state);
    let failed = r#"[{"t":1767225600000,"a":{"n":"charge","i":2,"f":1767225600000,
        "x":{"c":"net","m":"down"},"u":1767225600150}}]"#;
    let error = Failure::new("net", "down");
    let name_state = NameState::Failed {
        attempt: 2,
        first_at: NOW,
        error,
        next_at: at(150),
        reported: Reported::default(),
    };
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
    let replay =
        replay([completed("pack"), Happened::Reopened { name: name("pack"), by: None, input: None }]);
    assert_eq!(replay.name_state(&name("pack")), &NameState::Fresh);
    assert_eq!(replay.reopened(), 1);
    assert!(replay.was_reopened(&name("pack")) && !replay.was_reopened(&name("other")));
}

#[test]
fn a_wait_takes_the_oldest_event_of_its_name() {
    let taken = |wait: &str| Happened::Waited { name: name(wait), event: Some(event_name("shipped")) };
    let mut replay = replay([sent("shipped", "a"), sent("paid", "x"), sent("shipped", "b"), taken("w1")]);
    assert_eq!(
        replay.name_state(&name("w1")),
        &NameState::Waited(WaitOutcome::Event { id: None, payload: Some(text("a")) })
    );
    assert_eq!(replay.next_event(&event_name("shipped")).unwrap().payload, Some(text("b")));
    replay.push(NOW, taken("w2"));
    assert_eq!(
        replay.name_state(&name("w2")),
        &NameState::Waited(WaitOutcome::Event { id: None, payload: Some(text("b")) })
    );
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
    let untouched =
        replay([sent("e", "a"), Happened::Note { kind: "paused".to_owned(), name: None, by: None }]);
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
        left: false,
        was_left: false,
    };
    let mut replay = replay([begun]);
    assert_eq!(replay.open_children(), [(name("child:child"), child)]);
    replay.push(
        NOW,
        Happened::Step {
            name: name("child:child"),
            outcome: StepOutcome::TimedOut,
            attempts: None,
            expired: None,
            errors: vec![],
        },
    );
    assert!(replay.open_children().is_empty());
}

#[test]
fn a_child_of_an_earlier_run_is_left_until_the_code_asks_for_the_same_execution() {
    let id = |text: &str| crate::id::ExecutionId::parse(text).unwrap();
    let page = |child: &str, left: bool, was_left: bool| Happened::Child {
        name: name("child:map:items[0]"),
        execution: id(child),
        policy: ParentClosePolicy::Terminate,
        left,
        was_left,
    };
    let mut replay = replay([page("old", true, false)]);
    assert!(replay.is_left(&id("old")) && !replay.is_left(&id("new")));
    // This run's page of the same name is another execution.
    replay.push(NOW, page("new", false, false));
    let next: Vec<Happened> = replay.left_to_next().into_iter().map(|entry| entry.what).collect();
    assert_eq!(next, [page("old", true, false), page("new", true, false)]);
    replay.push(NOW, page("old", false, true));
    assert!(!replay.is_left(&id("old")));
}

#[test]
fn a_retry_of_a_child_that_was_refused_forgets_that_its_start_was_awaited() {
    let end = |attempts| Happened::Step {
        name: name("child:a"),
        outcome: StepOutcome::Cancelled,
        attempts,
        expired: None,
        errors: vec![],
    };
    let again = || Happened::Reopened { name: name("child:a"), by: None, input: None };
    let refused = replay([end(Some(1)), fired("start:child:a"), again()]);
    assert!(refused.name_state(&name("start:child:a")).is_fresh());
    assert_eq!(refused.undelivered_outcomes().count(), 0);
    // A child that was started and has failed was told to have started.
    let failed = replay([fired("start:child:a"), end(None), again()]);
    assert!(!failed.name_state(&name("start:child:a")).is_fresh());
    // One that was open has ended with the execution.
    let (execution, policy) = (ExecutionId::parse("a").unwrap(), ParentClosePolicy::Terminate);
    let begun = Happened::Child { name: name("child:a"), execution, policy, left: false, was_left: false };
    let open = replay([begun, fired("start:child:a"), again()]);
    assert!(open.name_state(&name("start:child:a")).is_fresh());
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

fn fired(sleep: &str) -> Happened {
    Happened::Fired { name: name(sleep) }
}

fn captured(text_of: &str, bytes: usize) -> Happened {
    Happened::Captured { name: name(text_of), value: text(&"x".repeat(bytes)) }
}

fn note(kind: &str, of: Option<&str>) -> Happened {
    Happened::Note { kind: kind.to_owned(), name: of.map(name), by: None }
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
    replay.push(NOW, Happened::Reopened { name: name("b"), by: None, input: None });
    assert!(!replay.is_delivered(&name("b")));
    replay.push(NOW, completed("b"));
    assert_eq!(received(&mut replay), ["b"]);
}

#[test]
fn a_turn_whose_event_is_cleared_before_its_wait_is_written_is_overtaken() {
    let waited = |event: &str| Happened::Waited { name: name("wait"), event: Some(event_name(event)) };
    let sent = || [sent("paid", "5"), sent("paid", "6"), sent("other", "7")];
    let cleared = Happened::EventsCleared { name: event_name("paid"), count: 1 };
    let now = journal(sent().into_iter().chain([cleared]));
    for (taken, is_overtaken) in [(Some("paid"), true), (Some("other"), false), (None, false)] {
        let mut replay = replay(sent());
        if let Some(event) = taken {
            replay.push(NOW, waited(event));
        }
        replay.rebuild(&now);
        assert_eq!(replay.is_overtaken(), is_overtaken, "{taken:?}");
        let record = Execution { sealed: None, journal: now.clone(), ..fixture::full(NOW) };
        let mut other = Replay::new(&journal(sent()), &Limits::default());
        if let Some(event) = taken {
            other.push(NOW, waited(event));
        }
        other.merge(&record);
        assert_eq!(other.is_overtaken(), is_overtaken, "{taken:?}");
    }
    // The code has cleared the same events.
    let mut both = replay(sent());
    both.push(NOW, Happened::EventsCleared { name: event_name("paid"), count: 2 });
    both.rebuild(&now);
    assert!(both.is_overtaken() && both.unwritten().next().is_none());
    // What is stored of a wait came before.
    let mut replay = replay(sent().into_iter().chain([waited("paid")]));
    replay.rebuild(&journal(sent().into_iter().chain([waited("paid")])));
    assert!(!replay.is_overtaken());
}

#[test]
fn an_end_by_time_that_an_event_had_come_before_is_withdrawn_with_what_followed_from_it() {
    let until = NOW.plus(Millis::from_secs(10));
    let begun = |text: &str| Happened::Until { name: name(text), until };
    let ended = |text: &str| Happened::Waited { name: name(text), event: None };
    let fresh = |end: Happened| {
        let skipped = Happened::Step {
            name: name("skipped"),
            outcome: StepOutcome::Cancelled,
            attempts: Some(0),
            expired: None,
            errors: vec![],
        };
        [completed("before"), end, captured("since", 1), skipped, completed("beside")]
    };
    let before = [begun("event:paid"), begun("event:paid[1]"), begun("nap")];
    let event = |at| Entry { at, ..journal([sent("paid", "5")]).remove(0) };
    let (last, late) = (event(until.minus(Millis::new(1))), event(until));
    let cases = [
        (ended("event:paid"), &last, true),
        (ended("event:paid[1]"), &last, true),
        (ended("on_failure:event:paid"), &last, false),
        (ended("event:paid"), &late, false),
        (ended("event:other"), &last, false),
        // A look for an event has no time.
        (ended("peek:paid"), &last, false),
        (fired("nap"), &last, true),
        (fired("nap"), &late, false),
        (fired("start:child:a"), &last, false),
    ];
    for (end, other, is_overtaken) in cases {
        let mut replay = replay(before.clone());
        for what in fresh(end.clone()) {
            replay.push(until, what);
        }
        let all = replay.entries();
        let mut now = journal(before.clone());
        now.push(other.clone());
        let mut merged = replay.clone();
        merged.merge(&Execution { sealed: None, journal: now.clone(), ..fixture::full(NOW) });
        replay.rebuild(&now);
        for mut replay in [merged, replay] {
            assert_eq!(replay.is_overtaken(), is_overtaken, "{end:?}");
            if is_overtaken {
                let holds: Vec<_> = replay.take_fresh().into_iter().map(|entry| entry.what).collect();
                assert_eq!(holds, [completed("before"), completed("beside")]);
            } else {
                assert_eq!(replay.entries(), all + 1);
            }
        }
    }
}

#[test]
fn entries_that_are_stored_are_not_fresh_when_the_journal_is_read_again() {
    let mut replay = replay([]);
    replay.push(NOW, completed("a"));
    replay.take_fresh();
    replay.push(NOW, completed("b"));
    replay.put_back();
    replay.rebuild(&journal([sent("paid", "5"), completed("a")]));
    assert_eq!(replay.take_fresh(), journal([completed("b")]));
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
