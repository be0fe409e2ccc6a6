//! Executions built without commands, for tests of code that stores, reads and shows records. Some of them no sequence
//! of commands could produce.

use std::num::{NonZeroU16, NonZeroU32};

use crate::by::{By, CALLER_BYTES_MAX, Caller, PageOf};
use crate::due::{Due, DueKind};
use crate::duration::Millis;
use crate::execution::journal::{Entry, Happened, Sealed, StepOutcome};
use crate::execution::{
    Admission, Closed, DeadlineKind, Execution, ExecutionOutcome, ExecutionState, ExecutionTimeouts, FORMAT,
    Failing, Held, Parent, ParentClosePolicy, Progress, Ready, Recheck, RunAttempt, Slot, Stuck,
    TimedAttempt, Turn, Waiting,
};
use crate::flow::{CONCURRENCY_MAX, Gated, Pace, Paced, Priority, RATE_MAX, RATE_PERIOD_MAX};
use crate::gate::TEXT_MAX;
use crate::gate::rate::Reservation;
use crate::id::{
    BlobId, EventId, EventName, ExecutionId, Fingerprint, Incarnation, LeaseId, NameError, Nonce,
    OperationId, QueueName, StepName, WorkerName, WorkflowName,
};
use crate::lane::Lane;
use crate::limits::{
    EVENT_ID_MAX, EVENT_NAME_MAX, EXECUTION_ID_MAX, QUEUE_NAME_MAX, SPAN_MAX, STEP_NAME_MAX, WORKER_MAX,
    WORKFLOW_MAX,
};
use crate::parked::Parked;
use crate::payload::{BlobRef, Json, Payload};
use crate::retry::MaxAttempts;
use crate::task::Failure;
use crate::time::Timestamp;
use crate::trace::TraceContext;

/// The execution `order-7`. It is pending, and every field that may be empty is empty.
pub fn pending(now: Timestamp) -> Execution {
    Execution {
        format: FORMAT,
        id: name(ExecutionId::parse("order-7")),
        incarnation: Incarnation::from_bytes([1; 8]),
        version: 1,
        nonce: Nonce::from_bytes([7; 8]),
        workflow: name(WorkflowName::parse("checkout")),
        queue: name(QueueName::parse("mail")),
        created_at: now,
        run: 1,
        repeats: None,
        callbacks: None,
        first_run: None,
        run_started_at: now,
        input: None,
        details: None,
        values: None,
        timeouts: ExecutionTimeouts::default(),
        deadline_at: None,
        run_deadline_at: None,
        parent: None,
        trace: None,
        lane: Lane::default(),
        admission: None,
        wakes: 0,
        idle_turns: 0,
        journal: vec![],
        sealed: None,
        open_steps: 0,
        pending_events: 0,
        attempt: None,
        on_failure: None,
        on_cancel: None,
        undoes: false,
        failing: None,
        cancel_requested: false,
        paused: false,
        kept: None,
        progress: None,
        parked: Parked::No,
        stuck: None,
        hinted_at: None,
        state: ExecutionState::Pending(Ready { available_at: now, hint_later: false }),
        due: Some(Due { at: later(now, 600), kind: DueKind::Backstop, shard: 0 }),
    }
}

/// The same execution with every field set, most of them to their maximum size.
pub fn full(now: Timestamp) -> Execution {
    let error = Failure::new("e".repeat(64), "421 \"try\" ä".repeat(10));
    let outcome = ExecutionOutcome::Failed {
        error: error.clone(),
        step: Some("s".repeat(STEP_NAME_MAX)),
        retries_exhausted: true,
    };
    let blob = blob(u32::MAX, later(now, 9_999));
    Execution {
        id: name(ExecutionId::parse("i".repeat(EXECUTION_ID_MAX))),
        workflow: name(WorkflowName::parse("w".repeat(WORKFLOW_MAX))),
        queue: name(QueueName::parse("q".repeat(QUEUE_NAME_MAX))),
        version: u64::from(u32::MAX),
        run: u32::MAX,
        repeats: Some(u32::MAX),
        first_run: Some(u32::MAX),
        callbacks: Some(u32::MAX),
        input: Some(json(r#"{"to":"ä@b","n":1.50}"#)),
        details: Some(Payload::Blob(blob)),
        values: Some(json(r#"{"stage":[2,1,"packing"]}"#)),
        timeouts: ExecutionTimeouts { execution: Some(SPAN_MAX), run: Some(SPAN_MAX) },
        deadline_at: Some(later(now, 90)),
        run_deadline_at: Some(later(now, 30)),
        parent: Some(parent()),
        trace: TraceContext::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        lane: Lane { priority: Priority::High, tenant: Some(Fingerprint::from_bytes([0xff; 16])) },
        admission: Some(Box::new(admission(now))),
        wakes: 9_999_999_999,
        idle_turns: u32::MAX,
        journal: every_entry(now),
        sealed: Some(Sealed {
            segments: u32::MAX,
            last: Nonce::from_bytes([0xff; 8]),
            entries: u32::MAX,
            completed: Some(u32::MAX),
        }),
        open_steps: u32::MAX,
        pending_events: u32::MAX,
        attempt: Some(RunAttempt {
            number: u32::MAX,
            of: MaxAttempts::Limited(NonZeroU32::MAX),
            overdue: true,
        }),
        on_failure: Some(SPAN_MAX),
        on_cancel: Some(SPAN_MAX),
        undoes: true,
        failing: Some(Failing { outcome, deadline_at: later(now, 5) }),
        cancel_requested: true,
        paused: true,
        kept: Some(later(now, 9_999)),
        progress: Some(Progress { steps: u32::MAX, entries: u32::MAX, to: Some(later(now, 9_999)) }),
        parked: Parked::Paused,
        stuck: Some(Stuck::Unreadable(error)),
        hinted_at: Some(later(now, 1)),
        due: Some(Due { at: later(now, 600), kind: DueKind::Backstop, shard: u16::MAX }),
        ..pending(now)
    }
}

/// Every state of a record, and every outcome.
pub fn every_state(now: Timestamp) -> Vec<ExecutionState> {
    let ended = |outcome| ExecutionState::Ended(Closed { outcome, ..closed(now) });
    let error = Failure::new("card_declined", "no");
    vec![
        ExecutionState::Pending(Ready { available_at: later(now, 2), hint_later: true }),
        running(now),
        waiting(now, u64::MAX),
        ExecutionState::Closing(closed(now)),
        ExecutionState::Ended(closed(now)),
        ended(ExecutionOutcome::Completed { output: None }),
        ended(ExecutionOutcome::Failed { error, step: Some("charge".to_owned()), retries_exhausted: false }),
        ended(ExecutionOutcome::TimedOut { kind: DeadlineKind::Run }),
        ended(ExecutionOutcome::TimedOut { kind: DeadlineKind::Execution }),
        ended(ExecutionOutcome::Cancelled { terminated: true }),
    ]
}

/// The state after a turn was started at `now`, with a lease of one minute.
pub fn running(now: Timestamp) -> ExecutionState {
    let step = name(StepName::parse("charge"));
    ExecutionState::Running(Turn {
        lease: LeaseId::from_bytes([0xff; 16]),
        worker: WorkerName::parse("w".repeat(WORKER_MAX)).ok(),
        claimed_at: now,
        lease_length: Millis::from_secs(60),
        lease_expires_at: later(now, 60),
        shared: false,
        after_loss: false,
        outside: false,
        timed_attempts: vec![TimedAttempt::of(&step, later(now, 30))],
    })
}

/// The state of an execution that has been waiting since `now` and has seen this many wakes.
pub fn waiting(now: Timestamp, seen_wakes: u64) -> ExecutionState {
    ExecutionState::Waiting(Waiting {
        since: now,
        seen_wakes,
        until: Some(later(now, 7_200)),
        hint_later: true,
        recheck: Some(Recheck { at: later(now, 60), after: Millis::from_secs(60) }),
        wake_requested: true,
        events: vec![name(EventName::parse("approved"))],
        has_more_events: true,
    })
}

/// An outcome whose retention ends one day and one millisecond after `now`.
pub fn closed(now: Timestamp) -> Closed {
    let outcome = ExecutionOutcome::Completed { output: Some(json("[1.0]")) };
    let expires_at = later(now, 86_400).plus(Millis::new(1));
    Closed { outcome, ended_at: later(now, 1), expires_at }
}

/// Every kind of journal entry, and every outcome of a step.
pub fn every_entry(now: Timestamp) -> Vec<Entry> {
    let step = |text: &str| name(StepName::parse(text));
    let event = |text: &str| name(EventName::parse(text));
    let outcomes = [
        StepOutcome::Completed { output: Some(json(r#"{"b":1.50,"a":null}"#)) },
        StepOutcome::Completed { output: None },
        StepOutcome::Failed { error: json(r#""no""#) },
        StepOutcome::Exhausted { error: Payload::Blob(blob(300, later(now, 9))) },
        StepOutcome::TimedOut,
        StepOutcome::DeadlineExceeded,
        StepOutcome::Cancelled,
        StepOutcome::ResultExpired,
    ];
    let ends = outcomes.into_iter().enumerate().map(|(number, outcome)| Happened::Step {
        name: step(&format!("charge[{number}]")),
        outcome,
        attempts: (number == 0).then_some(2),
        expired: None,
        errors: vec![],
    });
    let others = [
        Happened::Attempt {
            name: step("mail"),
            attempt: 2,
            first_at: now,
            error: Some(Failure::new("smtp", "later")),
            next_at: Some(later(now, 3)),
            progress: Some(0.25),
            details: None,
            is_ongoing: false,
            errors: vec![],
        },
        Happened::Remote { name: step(&"r".repeat(STEP_NAME_MAX)) },
        Happened::Child {
            name: step("ship"),
            execution: name(ExecutionId::parse("ship-1")),
            policy: ParentClosePolicy::RequestCancel,
            left: false,
            was_left: false,
        },
        Happened::Reopened { name: step("render"), by: None, input: None },
        Happened::Reopened { name: step("render"), by: None, input: Some(json("[1]")) },
        Happened::Captured { name: step("now"), value: json("1.0") },
        Happened::Until { name: step("nap"), until: later(now, 60) },
        Happened::Event {
            name: event(&"e".repeat(EVENT_NAME_MAX)),
            id: EventId::parse("i".repeat(EVENT_ID_MAX)).ok(),
            payload: Some(json("{}")),
        },
        Happened::Waited { name: step("payment"), event: Some(event("paid")) },
        Happened::Waited { name: step("late"), event: None },
        Happened::EventsCleared { name: event("paid"), count: 3 },
        Happened::Patches { names: vec!["faster".to_owned(), "ä b".to_owned()] },
        Happened::Note { kind: "paused".to_owned(), name: None, by: Some(Box::new(by())) },
    ];
    others.into_iter().chain(ends).map(|what| Entry { at: now, what }).collect()
}

/// An operator whose names are at their maximum.
pub fn by() -> By {
    let page = PageOf { operation: name(OperationId::parse("o".repeat(EVENT_ID_MAX))), number: u64::MAX };
    let caller = Caller::new(&"c".repeat(CALLER_BYTES_MAX / 2));
    By { page: Some(page), ..By::caller(caller) }.because(&"r".repeat(CALLER_BYTES_MAX))
}

/// A parent that has this execution as a step in a fan-out.
fn parent() -> Parent {
    Parent {
        execution: name(ExecutionId::parse("p".repeat(EXECUTION_ID_MAX))),
        incarnation: Incarnation::from_bytes([0xff; 8]),
        run: u32::MAX,
        again: 0,
        slot: Some(Slot {
            label: Nonce::from_bytes([0xff; 8]),
            item: u16::MAX,
            place: u16::MAX,
            of: u16::MAX,
        }),
        step: None,
        work: None,
        on_close: ParentClosePolicy::RequestCancel,
    }
}

/// Three keys, places at each, and a start by a rate.
fn admission(now: Timestamp) -> Admission {
    let text = "k".repeat(TEXT_MAX);
    let key = |nth: u8| Fingerprint::from_bytes([nth; 16]);
    let pace = Pace {
        limit: NonZeroU32::new(RATE_MAX).unwrap_or(NonZeroU32::MIN),
        per: RATE_PERIOD_MAX,
        burst: NonZeroU32::new(RATE_MAX).unwrap_or(NonZeroU32::MIN),
    };
    let limit = NonZeroU16::new(CONCURRENCY_MAX).unwrap_or(NonZeroU16::MIN);
    let start = Reservation {
        start_at: later(now, 60),
        planned_at: later(now, 61),
        epoch: now,
        ticket: Some(99_999_998),
    };
    Admission {
        gates: [1, 2, 3].map(|nth| Gated { key: key(nth), limit, text: text.clone() }).to_vec(),
        held: Some(Held { mark: u32::MAX, until_day: 99_999 }),
        paced: Some(Paced { key: key(4), pace, text, start: Some(start), put_off: true }),
        // Only an execution without a parent, which takes more space, has one.
        cron: None,
    }
}

fn blob(bytes: u32, expires_at: Timestamp) -> BlobRef {
    BlobRef { id: BlobId::from_bytes([0xff; 16]), bytes, expires_at }
}

fn later(now: Timestamp, seconds: u64) -> Timestamp {
    now.plus(Millis::from_secs(seconds))
}

fn json(text: &str) -> Payload {
    Payload::Inline(Json::parse(text).unwrap_or_else(|| panic!("not JSON: {text}")))
}

fn name<T>(parsed: Result<T, NameError>) -> T {
    parsed.unwrap_or_else(|error| panic!("invalid name: it {error}"))
}
