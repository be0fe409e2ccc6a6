//! The byte budget: a control record stays within one write unit, whatever its data and state. Every step of every
//! scene checks the budget itself. Here everything is at its maximum at once.

use crate::command::Isolation;
use crate::execution::command::{CodeTerms, Command, Ending, ReleaseReason, StartTurn};
use crate::execution::journal::{Entry, Happened};
use crate::execution::{
    Admission, Execution, ExecutionOutcome, ExecutionStatus as Status, ExecutionTimeouts, Progress,
    RunAttempt, Stuck, fixture,
};
use crate::failure::Failure;
use crate::flow::Priority;
use crate::gate::Places;
use crate::gate::rate::Reservation;
use crate::id::{ExecutionId, Fingerprint, Incarnation, QueueName, WorkerName, WorkflowName};
use crate::lane::Lane;
use crate::limits;
use crate::parent::Parent;
use crate::payload::Payload;
use crate::retry::{MaxAttempts, RetryPolicy};
use crate::trace::TraceContext;

use super::fixture::{Plan, Scene, done, event, execution, json, lease, remote, span};

const ALMOST_A_YEAR: &str = "364d 23h 59m 59s 999ms";
const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A JSON string of exactly that many bytes.
fn text(bytes: usize) -> String {
    format!("\"{}\"", "x".repeat(bytes - 2))
}

/// Names, timeouts, parent, input and details, each at its maximum size.
fn largest() -> Plan {
    let mut plan = execution().input(&text(350 * 1024)).details(&text(8 * 1024));
    let start = &mut plan.start;
    start.id = ExecutionId::parse("i".repeat(limits::EXECUTION_ID_MAX)).unwrap();
    start.queue = QueueName::parse("q".repeat(limits::QUEUE_NAME_MAX)).unwrap();
    start.workflow = WorkflowName::parse("w".repeat(limits::WORKFLOW_MAX)).unwrap();
    start.trace = TraceContext::parse(TRACE);
    start.timeouts =
        ExecutionTimeouts { execution: Some(span(ALMOST_A_YEAR)), run: Some(span(ALMOST_A_YEAR)) };
    start.on_failure = Some(span(ALMOST_A_YEAR));
    start.parent = Some(largest_parent());
    start.admission = Some(Box::new(largest_admission()));
    start.lane = Lane { priority: Priority::High, tenant: Some(Fingerprint::from_bytes([255; 16])) };
    plan
}

fn largest_admission() -> Admission {
    let full = fixture::full(super::fixture::t("0s")).admission.unwrap();
    let mut admission = Admission { held: None, ..*full };
    let paced = admission.paced.as_mut().unwrap();
    paced.start = paced.start.map(|start| Reservation { start_at: super::fixture::t("0s"), ..start });
    admission
}

pub(super) fn largest_parent() -> Parent {
    Parent {
        execution: ExecutionId::parse("p".repeat(limits::EXECUTION_ID_MAX)).unwrap(),
        incarnation: Incarnation::from_bytes([255; 8]),
        run: 99_999,
        again: 99,
        // Only remote steps have one.
        slot: None,
        step: None,
        work: None,
        on_close: crate::execution::ParentClosePolicy::RequestCancel,
    }
}

/// The started execution with counters as high as they get.
fn aged(plan: Plan) -> Scene {
    old(plan).edit(|record| {
        record.run = 99_999;
        record.pending_events = 1_000;
    })
}

/// The same in its first run, with the journal that it has started with.
fn old(plan: Plan) -> Scene {
    plan.started().edit(|record| {
        record.version = 999_999_999_999;
        record.wakes = 9_999_999_999;
        record.attempt = Some(RunAttempt { number: 99_999, of: attempts(), overdue: true });
    })
}

fn take(scene: Scene, name: &str) -> Scene {
    let worker = Some(WorkerName::parse("w".repeat(limits::WORKER_MAX)).unwrap());
    let take = StartTurn {
        lease: lease(name),
        worker,
        length: limits::LEASE_RANGE.1,
        incarnation: None,
        again: false,
        isolation: Isolation::Shared,
        outside: false,
        paused: false,
        terms: CodeTerms::default(),
        asks: None,
        places: Some(Places { since: scene.now(), until: suspend_until(), version: scene.record().version }),
        start: scene.record().admission.as_deref().and_then(|one| one.paced.as_ref()?.start),
    };
    scene.apply(&Command::StartTurn(take)).is(Status::Running)
}

fn failure(bytes: usize) -> ExecutionOutcome {
    let error = Failure::new("e".repeat(limits::ERROR_CODE_MAX), "m".repeat(bytes));
    let step = Some("s".repeat(limits::STEP_NAME_MAX));
    ExecutionOutcome::Failed { error, step, retries_exhausted: true }
}

/// Takes the execution through every state. Each step checks the budget.
fn through_every_state(begin: impl Fn() -> Scene) {
    let working = || take(begin(), "a").record_entries("a", vec![done("step", "1"), remote("remote")]);
    let suspended = || {
        working().suspend("a", |suspend| {
            suspend.until = Some(suspend_until());
            suspend.awaits_others = true;
            suspend.events = (0..30)
                .map(|number| event(&format!("{number:e>width$}", width = limits::EVENT_NAME_MAX)))
                .collect();
        })
    };
    let note_progress = |record: &mut Execution| {
        record.progress = Some(Progress { steps: 2_000, entries: 9_999, to: Some(suspend_until()) });
    };
    suspended().edit(note_progress).pause().resume().next_tick();
    begin().pause().resume().pause().terminate().is(Status::Cancelled);
    let later = suspended().pause().send_event_once("go", &"i".repeat(64)).resume().next_tick();
    take(later.pause().resume(), "b").cancel().heartbeat("b").is(Status::Running);
    for bytes in [2, 40, 100, 200] {
        let output = Some(Payload::Inline(json(&text(bytes))));
        let scene = working().close("a", ExecutionOutcome::Completed { output }).closes_later();
        scene.finish().has_ended().restart(vec![done("kept", "1")]).is(Status::Pending);
    }
    for bytes in [0, 60, 240, 10_000] {
        let scene = working().close("a", failure(bytes));
        if scene.record().failing.is_some() {
            let unreadable =
                ReleaseReason::Stuck(Stuck::Unreadable(Failure::new("e".repeat(64), "m".repeat(bytes))));
            let scene = take(scene, "b").record_entries("b", vec![done("refund", "1")]);
            let scene = scene.release_because("b", "364d", unreadable).pause().next_tick().resume();
            let scene = scene.next_tick().terminate().closes_later().next_tick();
            assert!(scene.record().hinted_at.is_some());
            take(working().close("a", failure(bytes)), "b")
                .close("b", failure(bytes))
                .is(Status::Failed)
                .finish();
        }
    }
    for bytes in [0, 60, 240, 10_000] {
        let (scene, events) = with_all_pending(working());
        let retry = RetryPolicy { max_attempts: attempts(), ..RetryPolicy::none() };
        let ending = Ending::FailedRun { outcome: failure(bytes), retry, carried: events };
        take(scene.close_with("a", vec![], ending), "b").wait("b").is(Status::Waiting);
    }
    let input = Some(Payload::Inline(json(&text(100))));
    let (scene, events) = with_all_pending(working());
    let ending = Ending::ContinueAsNew { input, carried: events };
    take(scene.close_with("a", vec![], ending), "b").wait("b").is(Status::Waiting);
}

/// The scene, and events for all that are pending: they go along into the next run.
fn with_all_pending(scene: Scene) -> (Scene, Vec<Entry>) {
    let pending = usize::try_from(scene.record().pending_events).unwrap();
    let what = Happened::Event { name: event("go"), id: None, payload: None };
    let events = vec![Entry { at: super::fixture::t("0s"), what }; pending];
    (scene, events)
}

fn attempts() -> MaxAttempts {
    MaxAttempts::try_from(i64::from(u32::MAX)).unwrap()
}

fn suspend_until() -> crate::time::Timestamp {
    super::fixture::t("300d")
}

#[test]
fn everything_at_its_maximum_at_once_stays_within_the_budget_in_every_state() {
    through_every_state(|| aged(largest()));
    through_every_state(|| aged(largest().input("1").details("{}")));
    through_every_state(|| {
        let mut plan = largest();
        (plan.start.given.input, plan.start.given.details) = (None, None);
        aged(plan)
    });
}

#[test]
fn a_first_event_of_any_size_leaves_space_for_later_data() {
    for bytes in [2, 50, 200] {
        let (name, id) = ("e".repeat(limits::EVENT_NAME_MAX), "i".repeat(limits::EVENT_ID_MAX));
        let with = |plan: Plan| plan.with_event(&name, &id, Some(Payload::Inline(json(&text(bytes)))));
        through_every_state(|| old(with(execution().input(&text(100)))));
        through_every_state(|| old(with(largest())));
    }
}

#[test]
fn published_values_move_aside_where_the_record_has_no_space_for_them() {
    let publish = |plan: Plan, bytes: usize| {
        let scene = take(aged(plan), "a").publish("a", &text(bytes), done("step", "1"));
        scene.record().values.clone().unwrap()
    };
    assert!(matches!(publish(execution(), 200), Payload::Inline(_)));
    assert!(matches!(publish(largest(), 200), Payload::Blob(_)));
    for bytes in [2, 80, 100, 200] {
        through_every_state(|| {
            aged(execution().input(&text(300))).edit(|record| {
                record.values = Some(Payload::Inline(json(&text(bytes))));
            })
        });
    }
}

#[test]
fn a_record_that_waits_has_the_names_of_events_as_far_as_there_is_space_and_says_if_there_are_more() {
    let wait = |scene: Scene, names: usize| {
        let names: Vec<_> = (0..names).map(|number| event(&format!("event-{number}"))).collect();
        let scene = take(scene, "a").suspend("a", |suspend| suspend.events.clone_from(&names));
        let waiting = scene.waiting().clone();
        (waiting.events == names, names.starts_with(&waiting.events), waiting.has_more_events)
    };
    assert_eq!(wait(execution().started(), 5), (true, true, false));
    assert_eq!(wait(execution().started(), 500), (false, true, true));
    assert_eq!(wait(aged(largest()), 0), (true, true, false));
}

#[test]
fn inputs_of_any_size_leave_space_for_later_data() {
    for bytes in (2..700).step_by(23).chain([4 * 1024]) {
        through_every_state(|| aged(execution().input(&text(bytes))));
        through_every_state(|| aged(execution().on_failure("1h").input(&text(bytes)).details(&text(bytes))));
        through_every_state(|| aged(largest().input(&text(bytes)).details(&text(bytes))));
    }
}

#[test]
fn an_input_that_fits_is_inline_and_a_larger_one_is_written_aside() {
    let mut inline = 0;
    for bytes in 2..1_000 {
        let scene = execution().input(&text(bytes)).started();
        match scene.record().input.as_ref().unwrap() {
            Payload::Inline(_) => {
                assert!(inline == 0 || inline == bytes - 1, "inline after a smaller input was a blob");
                inline = bytes;
            }
            Payload::Blob(at) => {
                assert_eq!(at.id, super::fixture::blob("input"));
                assert_eq!(scene.decision().blobs().len(), 1);
            }
        }
    }
    assert!((200..500).contains(&inline), "{inline} bytes are inline");
}

#[test]
fn taking_a_turn_of_a_full_record_needs_no_segment() {
    let mut scene = execution().started().start_turn("a");
    for n in 0..200 {
        scene = scene.record_entries("a", vec![done(&format!("step-{n}"), &text(2 + n % 40))]).wait("a");
        scene = scene.wake().start_turn("a").is(Status::Running);
        assert!(scene.decision().segments().is_empty());
    }
}
