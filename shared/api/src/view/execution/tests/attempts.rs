//! Attempts at inline steps in views: which run, which were lost, and how often a step was started.

use serde_json::json;
use tickover_core::execution::Turn;
use tickover_core::id::LeaseId;

use super::*;

/// An execution whose turn was claimed this many seconds after its start.
pub(super) fn running(claimed: u64) -> Execution {
    execution(ExecutionState::Running(Turn {
        lease: LeaseId::from_bytes([1; LeaseId::LEN]),
        worker: None,
        claimed_at: later(claimed),
        lease_length: Millis::from_secs(60),
        lease_expires_at: later(claimed + 60),
        shared: false,
        after_loss: false,
        outside: false,
        timed_attempts: vec![],
    }))
}

fn attempt_started(seconds: u64, name: &str, attempt: u32, until: Option<u64>) -> Entry {
    let next_at = until.map(later);
    entry(
        seconds,
        Happened::Attempt {
            name: step(name),
            attempt,
            first_at: NOW,
            error: None,
            next_at,
            progress: None,
            details: None,
            is_ongoing: false,
            errors: vec![],
        },
    )
}

fn failed(seconds: u64, name: &str, attempt: u32, next: u64) -> Entry {
    let (error, next_at) = (Some(Failure::new("net", "down")), Some(later(next)));
    entry(
        seconds,
        Happened::Attempt {
            name: step(name),
            attempt,
            first_at: NOW,
            error,
            next_at,
            progress: None,
            details: None,
            is_ongoing: false,
            errors: vec![],
        },
    )
}

fn ended(seconds: u64, name: &str, attempts: u32) -> Entry {
    let what = Happened::Step {
        name: step(name),
        outcome: StepOutcome::TimedOut,
        attempts: Some(attempts),
        expired: None,
        errors: vec![],
    };
    entry(seconds, what)
}

fn waits(execution: Execution, journal: &[Entry]) -> serde_json::Value {
    seen(execution, Some(journal))["waits_for"].clone()
}

#[test]
fn a_recorded_running_attempt_is_shown_with_its_number_and_timeout() {
    let journal = [
        attempt_started(5, "charge", 1, Some(30)),
        attempt_started(6, "mail", 2, None),
        failed(7, "pack", 1, 90),
    ];
    let expected = json!([
        {"kind": "attempt", "name": "charge", "attempt": 1, "until": "2026-01-01T00:00:30.000Z"},
        {"kind": "attempt", "name": "mail", "attempt": 2},
        {"kind": "retry", "name": "pack", "until": "2026-01-01T00:01:30.000Z"},
    ]);
    assert_eq!(waits(running(5), &journal), expected);
    // The attempt doesn't run in another turn, nor without a turn.
    assert_eq!(waits(running(8), &journal), json!([expected[2]]));
    assert_eq!(waits(pending(), &journal), json!([expected[2]]));
    let over = [attempt_started(5, "charge", 1, Some(30)), ended(6, "charge", 1)];
    assert_eq!(waits(running(5), &over), json!([]));
}

#[test]
fn an_attempt_that_was_lost_counts_in_what_is_shown_of_its_step() {
    let journal = [
        attempt_started(1, "charge", 1, None),
        attempt_started(20, "charge", 1, None),
        failed(21, "charge", 1, 22),
        attempt_started(22, "charge", 2, None),
        attempt_started(40, "charge", 2, None),
        ended(41, "charge", 2),
    ];
    let entries = current(running(40), &journal, later(50));
    let shown: Vec<_> = entries.iter().map(|entry| (entry.kind.as_ref(), entry.attempt)).collect();
    let expected = [
        ("started", None),
        ("step_attempt_started", Some(1)),
        ("step_attempt_lost", Some(1)),
        ("step_attempt_started", Some(2)),
        ("step_attempt_failed", Some(2)),
        ("step_attempt_started", Some(3)),
        ("step_attempt_lost", Some(3)),
        ("step_attempt_started", Some(4)),
        ("turn_started", None),
        ("step_timed_out", None),
    ];
    assert_eq!(shown, expected);
    let end = entries.iter().find(|entry| entry.kind == "step_timed_out").unwrap();
    assert_eq!((end.attempts, end.lost), (Some(4), Some(2)));
    let running = waits(running(40), &journal[..5]);
    assert_eq!(running, json!([{"kind": "attempt", "name": "charge", "attempt": 4}]));
}

#[test]
fn an_attempt_that_failed_and_was_tried_again_at_once_was_not_lost() {
    let journal =
        [attempt_started(1, "charge", 1, None), attempt_started(2, "charge", 2, None), ended(3, "charge", 2)];
    let shown_kinds = kinds(running(1), &journal, later(50));
    assert!(!shown_kinds.contains(&"step_attempt_lost".to_owned()), "{shown_kinds:?}");
}

#[test]
fn attempts_of_a_lost_worker_are_shown_after_the_next_turn_starts() {
    let journal = [
        attempt_started(1, "charge", 1, None),
        attempt_started(1, "mail", 1, Some(20)),
        attempt_started(1, "pack", 1, Some(90)),
    ];
    let lost = |execution| {
        let entries = current(execution, &journal, later(50));
        let lost = entries.into_iter().filter(|entry| entry.kind == "step_attempt_lost");
        lost.map(|entry| (entry.name.unwrap(), entry.at)).collect::<Vec<_>>()
    };
    assert_eq!(lost(running(1)), []);
    // An attempt whose timeout has passed counts as timed out.
    let at = later(30).into();
    assert_eq!(lost(running(30)), [("charge".to_owned(), at), ("pack".to_owned(), at)]);
}

#[test]
fn the_tenth_of_many_comes_after_the_ninth() {
    let names = || [10, 9, 2, 11, 1].map(|index| format!("label[{index}]"));
    let expected = [1, 2, 9, 10, 11].map(|index| format!("label[{index}]"));
    let mut journal: Vec<Entry> = names().iter().map(|name| remote(1, name)).collect();
    journal.extend(names().iter().map(|name| until(2, &format!("nap-{name}"), 3600)));
    let waits = waits(waiting(None), &journal);
    let waits: Vec<_> = waits.as_array().unwrap().iter().map(|wait| wait["name"].as_str().unwrap()).collect();
    assert_eq!(waits[..5], expected);
    assert_eq!(waits[5], "nap-label[1]");

    let outcome = ExecutionOutcome::TimedOut { kind: DeadlineKind::Run };
    let cut_off = current(closed(outcome), &journal, later(20));
    journal.extend(names().iter().map(|name| completed(5, name)));
    let whole = current(pending(), &journal, later(20));
    for (entries, kind) in
        [(&whole, "step_started"), (&whole, "step_completed"), (&cut_off, "step_cancelled")]
    {
        let of_kind = entries.iter().filter(|entry| entry.kind == kind);
        let names: Vec<_> = of_kind.map(|entry| entry.name.clone().unwrap()).collect();
        assert_eq!(names, expected, "{kind}");
    }
}
