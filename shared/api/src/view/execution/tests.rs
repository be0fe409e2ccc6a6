mod attempts;

use tickover_core::duration::Millis;
use tickover_core::execution::journal::{Happened, StepOutcome};
use tickover_core::execution::{
    Closed, DeadlineKind, ExecutionOutcome, ExecutionTimeouts, Parent, ParentClosePolicy, Ready, Waiting,
    fixture,
};
use tickover_core::id::{EventName, ExecutionId, Incarnation, QueueName, StepName, WorkflowName};
use tickover_core::payload::{Json, Payload};
use tickover_core::task::Failure;

use serde_json::json;
use tickover_service::executions::Run;
use tickover_wire::answer::TimelineEntryView;

use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_767_225_600_000);

fn later(seconds: u64) -> Timestamp {
    NOW.plus(Millis::from_secs(seconds))
}

fn execution(state: ExecutionState) -> Execution {
    Execution {
        workflow: WorkflowName::parse("orders").unwrap(),
        queue: QueueName::parse("workflows").unwrap(),
        details: Some(Payload::Inline(Json::parse(r#"{"labels":{"a":"b"},"memo":[1.0]}"#).unwrap())),
        timeouts: ExecutionTimeouts {
            execution: Some(Millis::from_secs(5400)),
            run: Some(Millis::from_secs(60)),
        },
        deadline_at: Some(later(5400)),
        run_deadline_at: Some(later(60)),
        state,
        due: None,
        ..fixture::pending(NOW)
    }
}

fn pending() -> Execution {
    execution(ExecutionState::Pending(Ready { available_at: NOW, hint_later: false }))
}

fn waiting(until: Option<Timestamp>) -> Execution {
    execution(ExecutionState::Waiting(Waiting {
        since: NOW,
        seen_wakes: 0,
        until,
        hint_later: false,
        recheck: None,
        wake_requested: false,
        events: vec![],
        has_more_events: false,
    }))
}

fn closed(outcome: ExecutionOutcome) -> Execution {
    execution(ExecutionState::Ended(Closed { outcome, ended_at: later(9), expires_at: later(99) }))
}

fn seen(execution: Execution, journal: Option<&[Entry]>) -> serde_json::Value {
    let view = super::execution(&Described::inline(execution), journal, NOW);
    serde_json::to_value(&view).unwrap()
}

fn step(name: &str) -> StepName {
    StepName::parse(name).unwrap()
}

fn entry(seconds: u64, what: Happened) -> Entry {
    Entry { at: later(seconds), what }
}

fn remote(seconds: u64, name: &str) -> Entry {
    entry(seconds, Happened::Remote { name: step(name) })
}

fn completed(seconds: u64, name: &str) -> Entry {
    let outcome = StepOutcome::Completed { output: Some(Payload::Inline(Json::string("done"))) };
    entry(
        seconds,
        Happened::Step { name: step(name), outcome, attempts: None, expired: None, errors: vec![] },
    )
}

fn until(seconds: u64, name: &str, end: u64) -> Entry {
    entry(seconds, Happened::Until { name: step(name), until: later(end) })
}

#[test]
fn both_timeouts_are_shown_as_durations_and_as_instants() {
    let shown = seen(pending(), None);
    assert_eq!((&shown["execution_timeout"], &shown["run_timeout"]), (&"1h 30m".into(), &"1m".into()));
    assert_eq!(shown["deadline_at"], "2026-01-01T01:30:00.000Z");
    assert_eq!(shown["run_deadline_at"], "2026-01-01T00:01:00.000Z");
    assert_eq!(shown["next"], serde_json::json!({"what": "run_timeout", "at": "2026-01-01T00:01:00.000Z"}));
    assert_eq!((&shown["labels"]["a"], &shown["memo"]), (&"b".into(), &serde_json::json!([1.0])));
}

#[test]
fn open_steps_timers_and_children_are_the_waits() {
    let child = Happened::Child {
        name: step("ship"),
        execution: ExecutionId::parse("ship-7").unwrap(),
        policy: ParentClosePolicy::Terminate,
        left: false,
        was_left: false,
    };
    let journal = [
        remote(0, "label[0]"),
        remote(0, "label[1]"),
        completed(1, "label[0]"),
        entry(1, child),
        until(0, "nap", 0),
        until(1, "settle", 3600),
    ];
    let shown = seen(waiting(Some(later(3600))), Some(&journal));
    let waits = shown["waits_for"].as_array().unwrap();
    let kinds: Vec<_> = waits.iter().map(|wait| (wait["kind"].clone(), wait["name"].clone())).collect();
    let expected = [("step", "label[1]"), ("timer", "settle"), ("child", "ship")];
    assert_eq!(kinds, expected.map(|(kind, name)| (kind.into(), name.into())));
    assert_eq!(waits[1]["until"], "2026-01-01T01:00:00.000Z");
    assert_eq!(waits[2]["execution"], "ship-7");
    assert!(waits[0]["task"].as_str().unwrap().starts_with("s-"));
}

#[test]
fn a_wait_without_timeout_is_a_wait_for_an_event() {
    let shown = seen(waiting(None), Some(&[]));
    assert_eq!(shown["waits_for"], serde_json::json!([{"kind": "event"}]));
    assert_eq!(seen(pending(), Some(&[]))["waits_for"], serde_json::json!([]));
}

#[test]
fn each_end_has_its_cause() {
    let failed = |step: Option<&str>| ExecutionOutcome::Failed {
        error: Failure::new("payment", "declined"),
        step: step.map(str::to_owned),
        retries_exhausted: step.is_some(),
    };
    for (outcome, status, cause) in [
        (
            failed(Some("charge")),
            "failed",
            serde_json::json!({"category": "step", "step": "charge", "retries_exhausted": true}),
        ),
        (failed(None), "failed", serde_json::json!({"category": "workflow"})),
        (
            ExecutionOutcome::TimedOut { kind: DeadlineKind::Run },
            "timed_out",
            serde_json::json!({"category": "timeout", "kind": "run"}),
        ),
        (
            ExecutionOutcome::Cancelled { terminated: false },
            "cancelled",
            serde_json::json!({"category": "cancelled"}),
        ),
        (
            ExecutionOutcome::Cancelled { terminated: true },
            "cancelled",
            serde_json::json!({"category": "terminated"}),
        ),
    ] {
        let shown = seen(closed(outcome), None);
        assert_eq!((&shown["status"], &shown["cause"]), (&status.into(), &cause));
        assert_eq!(shown["next"]["what"], "deleted");
    }
    let shown = seen(closed(failed(Some("charge"))), None);
    assert_eq!(shown["error"], serde_json::json!({"code": "payment", "message": "declined"}));
}

/// The timeline of the current run.
fn current(execution: Execution, journal: &[Entry], now: Timestamp) -> Vec<TimelineEntryView> {
    timeline(&Described::inline(execution), &Run { end: None, journal: journal.to_vec() }, now)
}

fn kinds(execution: Execution, journal: &[Entry], now: Timestamp) -> Vec<String> {
    let entries = current(execution, journal, now);
    entries.into_iter().map(|entry| entry.kind).collect()
}

#[test]
fn a_parked_run_waits_for_its_events_beside_all_else_and_they_have_names() {
    let mut parked = waiting(Some(later(60)));
    let ExecutionState::Waiting(state) = &mut parked.state else { panic!("{parked:?}") };
    state.events = ["approved", "tickover.cb.1.bank"].map(|name| EventName::parse(name).unwrap()).to_vec();
    let journal = [until(1, "expiry", 60), until(1, "event:shipped[1]", 50)];
    let expiry = json!({"kind": "timer", "name": "expiry", "until": Instant(later(60))});
    let shipped =
        json!({"kind": "timer", "name": "event:shipped[1]", "event": "shipped", "until": Instant(later(50))});
    let approved = json!({"kind": "event", "event": "approved"});
    let bank = json!({"kind": "event", "event": "tickover.cb.1.bank", "callback": "bank"});
    let mut expected = vec![shipped, expiry, approved, bank];
    assert_eq!(seen(parked.clone(), Some(&journal))["waits_for"], json!(expected));
    let entries = current(parked.clone(), &journal, later(20));
    let awaited = entries.iter().filter(|entry| entry.kind == "event_awaited");
    assert_eq!(
        awaited.map(|entry| entry.event.as_ref().unwrap().as_str()).collect::<Vec<_>>(),
        ["approved", "tickover.cb.1.bank"]
    );
    let ExecutionState::Waiting(state) = &mut parked.state else { panic!("{parked:?}") };
    state.has_more_events = true;
    expected.push(json!({"kind": "event"}));
    assert_eq!(seen(parked, Some(&journal))["waits_for"], json!(expected));
}

#[test]
fn an_open_wait_without_timeout_is_in_the_timeline() {
    assert_eq!(kinds(waiting(None), &[], later(20)), ["started", "event_awaited"]);
    assert_eq!(kinds(waiting(Some(later(60))), &[], later(20)), ["started"]);
    assert_eq!(kinds(waiting(None), &[remote(1, "label")], later(20)), ["started", "step_started"]);
}

#[test]
fn a_fan_out_is_announced_once_and_its_steps_have_durations() {
    let journal = [remote(1, "label[0]"), remote(1, "label[1]"), remote(2, "pack"), completed(5, "label[1]")];
    let entries = current(pending(), &journal, later(9));
    let kinds: Vec<_> = entries.iter().map(|entry| entry.kind.as_str()).collect();
    let expected =
        ["started", "fan_out_started", "step_started", "step_started", "step_started", "step_completed"];
    assert_eq!(kinds, expected);
    assert_eq!((entries[1].name.as_deref(), entries[1].count), (Some("label"), Some(2)));
    assert_eq!(entries[5].duration_ms, Some(4_000));
    assert_eq!(entries[0].deadline_at, Some(later(5400).into()));
    assert_eq!(entries[0].run_deadline_at, Some(later(60).into()));
}

#[test]
fn a_timer_fires_at_its_instant_unless_its_wait_ended_before() {
    let name = EventName::parse("shipped").unwrap();
    let offered = Happened::Event { name: name.clone(), id: None, payload: None };
    let taken = Happened::Waited { name: step("shipped"), event: Some(name) };
    let fired = entry(4, Happened::Fired { name: step("nap") });
    let journal = [until(1, "nap", 4), fired, until(5, "shipped", 8), entry(6, offered), entry(7, taken)];
    let expected = ["started", "timer_started", "timer_fired", "timer_started", "event_sent", "wait_ended"];
    assert_eq!(kinds(pending(), &journal, later(20)), expected);
    assert_eq!(kinds(pending(), &journal[..1], later(3)), ["started", "timer_started"]);
}

#[test]
fn a_later_run_shows_its_own_beginning_and_the_end_closes_the_timeline() {
    let parent = Parent {
        execution: ExecutionId::parse("parent").unwrap(),
        incarnation: Incarnation::from_bytes([2; Incarnation::LEN]),
        run: 3,
        again: 0,
        slot: None,
        step: None,
        work: None,
        on_close: tickover_core::execution::ParentClosePolicy::default(),
    };
    let outcome = ExecutionOutcome::TimedOut { kind: DeadlineKind::Execution };
    let second = Execution { run: 2, run_started_at: later(3), parent: Some(parent), ..closed(outcome) };
    assert_eq!(seen(second.clone(), None)["parent"], serde_json::json!({"id": "parent", "run": 3}));
    let note =
        entry(9, Happened::Note { kind: "step_cancelled".to_owned(), name: Some(step("pack")), by: None });
    let expected = ["started", "run_continued", "run_started", "step_cancelled", "execution_timed_out"];
    assert_eq!(kinds(second.clone(), std::slice::from_ref(&note), later(20)), expected);
    let restarted = entry(3, Happened::Note { kind: "restarted".to_owned(), name: None, by: None });
    let expected = ["started", "run_started", "restarted", "step_cancelled", "execution_timed_out"];
    assert_eq!(kinds(second, &[restarted, note], later(20)), expected);
}

#[test]
fn an_earlier_run_ends_with_its_outcome_or_where_the_next_one_continues() {
    let second = |record| Execution { run: 2, run_started_at: later(3), ..record };
    let failed = second(closed(ExecutionOutcome::TimedOut { kind: DeadlineKind::Run }));
    let begins = ["started", "run_continued", "run_started"];
    for (record, continued_at, status, ends) in [
        (failed, None, "timed_out", vec!["execution_timed_out"]),
        (second(attempts::running(4)), Some(later(9)), "continued", vec!["turn_started", "run_continued"]),
    ] {
        let end = RunEnd { record: record.clone(), continued_at, retried_at: None };
        let shown = run(&end);
        assert_eq!((shown.run, shown.status.as_str(), shown.ended_at), (2, status, later(9).into()));
        let run = Run { end: Some(end), journal: vec![] };
        let entries = timeline(&Described::inline(record), &run, later(20));
        let told: Vec<_> = entries.iter().map(|entry| entry.kind.as_str()).collect();
        assert_eq!(told, [&begins[..], &ends].concat());
        assert_eq!(entries.last().map(|last| last.at), Some(later(9).into()));
    }
}

#[test]
fn work_that_ended_with_an_execution_is_listed_before_its_end() {
    let child = |name: &str, policy| {
        let execution = ExecutionId::parse(name).unwrap();
        entry(1, Happened::Child { name: step(name), execution, policy, left: false, was_left: false })
    };
    let journal = [
        remote(1, "label"),
        child("audit", ParentClosePolicy::Abandon),
        child("ship", ParentClosePolicy::Terminate),
        until(2, "settle", 3600),
    ];
    let outcome = ExecutionOutcome::TimedOut { kind: DeadlineKind::Run };
    let told = kinds(closed(outcome), &journal, later(20));
    let expected = ["child_abandoned", "step_cancelled", "child_terminated", "timer_cancelled"];
    assert_eq!(told[5..9], expected);
    assert_eq!(told[9], "execution_timed_out");
}

#[test]
fn the_start_of_a_child_is_shown_once_under_the_childs_name() {
    let child = Happened::Child {
        name: step("child:t"),
        execution: ExecutionId::parse("t").unwrap(),
        policy: ParentClosePolicy::Abandon,
        left: false,
        was_left: false,
    };
    let started = |name: &str| entry(1, Happened::Fired { name: step(name) });
    let journal = [entry(1, child), started("start:child:t"), started("on_failure:start:child:t")];
    assert_eq!(kinds(pending(), &journal, later(9)), ["started", "child_started"]);
}

#[test]
fn an_end_by_a_clock_that_is_behind_is_not_shown_before_its_start() {
    let entries = current(pending(), &[remote(5, "label"), completed(4, "label")], later(9));
    let kinds: Vec<_> = entries.iter().map(|entry| entry.kind.as_str()).collect();
    assert_eq!(kinds, ["started", "step_started", "step_completed"]);
    assert_eq!(entries[2].duration_ms, Some(0));
}
