//! Executions made by hand: a store takes any record, whatever the rules would make of it.

use tickover_core::decision::Write;
use tickover_core::due::{Due, DueKind};
use tickover_core::duration::Millis;
use tickover_core::execution::journal::{Entry, Happened, Sealed, StepOutcome};
use tickover_core::execution::{
    Closed, DeadlineKind, Execution, ExecutionOutcome, ExecutionState, ExecutionTimeouts, FORMAT, Failing,
    Parent, ParentClosePolicy, Ready, Recheck, Slot, Stuck, Turn, Waiting,
};
use tickover_core::id::{
    EventId, EventName, ExecutionId, Fingerprint, Incarnation, LeaseId, StepName, WorkerName, WorkflowName,
};
use tickover_core::payload::{BlobRef, Payload};
use tickover_core::task::Failure;

use super::super::fixture::{NOW, SHARD, World, json, later, parsed, present, queue};
use crate::ports::{Current, StoreError};

impl World {
    /// An execution that asks for nothing in particular and waits for a worker.
    pub(super) fn execution(&self, id: &str) -> Execution {
        Execution {
            format: FORMAT,
            id: execution_id(id),
            incarnation: self.incarnation(),
            version: 1,
            nonce: self.nonce(),
            workflow: workflow("checkout"),
            queue: queue("mail"),
            created_at: NOW,
            fingerprint: Fingerprint::from_bytes([9; 16]),
            run: 1,
            run_started_at: NOW,
            input: None,
            details: None,
            timeouts: ExecutionTimeouts::default(),
            deadline_at: None,
            run_deadline_at: None,
            parent: None,
            trace: None,
            wakes: 0,
            idle_turns: 0,
            journal: vec![],
            sealed: None,
            open_steps: 0,
            pending_events: 0,
            on_failure: None,
            failing: None,
            cancel_requested: false,
            paused: false,
            kept: None,
            progress: None,
            parked: false,
            stuck: None,
            hinted_at: None,
            state: ExecutionState::Pending(Ready { available_at: NOW, hint_later: false }),
            due: Some(Due { at: later(600), kind: DueKind::Backstop, shard: SHARD }),
        }
    }

    /// One that has all that a record can have.
    pub(super) fn full_execution(&self, id: &str) -> Execution {
        let error = Failure::new("smtp", "421 \"try\" äg");
        let outcome = ExecutionOutcome::Failed { error: error.clone(), step: None, retries_exhausted: true };
        let blob = BlobRef { id: self.blob_id(), bytes: 7_000, expires_at: later(9_999) };
        let parent = Parent { slot: Some(slot(3)), ..parent_of("above", self.incarnation()) };
        Execution {
            input: Some(Payload::Inline(json(r#"{"to":"ä@b","n":1.50}"#))),
            details: Some(Payload::Blob(blob)),
            timeouts: ExecutionTimeouts {
                execution: Some(Millis::from_secs(90)),
                run: Some(Millis::from_secs(30)),
            },
            deadline_at: Some(later(90)),
            run_deadline_at: Some(later(30)),
            parent: Some(parent),
            wakes: 3,
            idle_turns: 2,
            journal: every_entry(),
            sealed: Some(Sealed { segments: 2, last: self.nonce(), entries: 12 }),
            open_steps: 4,
            pending_events: 1,
            on_failure: Some(Millis::from_secs(5)),
            failing: Some(Failing { outcome, deadline_at: later(5) }),
            cancel_requested: true,
            paused: true,
            stuck: Some(Stuck::Unreadable(error)),
            hinted_at: Some(later(1)),
            ..self.execution(id)
        }
    }

    pub(super) fn incarnation(&self) -> Incarnation {
        Incarnation::from_bytes(*self.nonce().as_bytes())
    }

    /// The next version of a record by a decision of its own.
    pub(super) fn next_version(&self, before: &Execution) -> Execution {
        Execution { version: before.version + 1, nonce: self.nonce(), ..before.clone() }
    }

    /// Writes a new execution.
    pub(super) async fn start(&self, execution: Execution) -> Result<Execution, StoreError> {
        let write = Write::CreateExecution { execution: Box::new(execution.clone()), now: NOW };
        self.store.commit(&[write]).await?;
        Ok(execution)
    }

    /// Writes a plain execution.
    pub(super) async fn started(&self, id: &str) -> Result<Execution, StoreError> {
        self.start(self.execution(id)).await
    }

    /// Writes what a record becomes.
    pub(super) async fn update(&self, before: &Execution, after: &Execution) -> Result<(), StoreError> {
        self.store.commit(&[updating(before, after)]).await
    }

    /// The record with a new state, written.
    pub(super) async fn turned(
        &self,
        before: &Execution,
        state: ExecutionState,
    ) -> Result<Execution, StoreError> {
        let after = Execution { state, ..self.next_version(before) };
        self.update(before, &after).await?;
        Ok(after)
    }

    /// A record that has ended, written.
    pub(super) async fn ended(&self, before: &Execution) -> Result<Execution, StoreError> {
        let after =
            Execution { state: ExecutionState::Ended(closed()), due: None, ..self.next_version(before) };
        self.update(before, &after).await?;
        Ok(after)
    }

    /// The record as the store has it.
    pub(super) async fn found(&self, execution: &Execution) -> Result<Execution, StoreError> {
        Ok(present(self.store.execution(&execution.id).await?))
    }
}

/// An update under no other condition than that the record is still the same.
pub(super) fn updating(before: &Execution, after: &Execution) -> Write {
    let (before, after) = (Box::new(before.clone()), Box::new(after.clone()));
    Write::UpdateExecution { before, after, due_no_later_than: None, wakes: None }
}

pub(super) fn wake(execution: &Execution) -> Write {
    Write::Wake { id: execution.id.clone(), incarnation: execution.incarnation }
}

pub(super) fn execution_id(text: &str) -> ExecutionId {
    parsed(ExecutionId::parse(text))
}

pub(super) fn workflow(text: &str) -> WorkflowName {
    parsed(WorkflowName::parse(text))
}

pub(super) fn step(text: &str) -> StepName {
    parsed(StepName::parse(text))
}

/// The first run of an execution as the parent of something.
pub(super) fn parent_of(id: &str, incarnation: Incarnation) -> Parent {
    Parent {
        execution: execution_id(id),
        incarnation,
        run: 1,
        slot: None,
        on_close: ParentClosePolicy::default(),
    }
}

pub(super) fn slot(place: u16) -> Slot {
    Slot { label: tickover_core::id::Nonce::from_bytes([4; 8]), item: 0, place, of: 100 }
}

/// An outcome whose retention ends long after everything.
pub(super) fn closed() -> Closed {
    let output = Some(Payload::Inline(json("[1.0]")));
    let outcome = ExecutionOutcome::Completed { output };
    Closed { outcome, ended_at: later(1), expires_at: later(86_400).plus(Millis::new(1)) }
}

pub(super) fn running() -> ExecutionState {
    ExecutionState::Running(Turn {
        lease: LeaseId::from_bytes([6; 16]),
        worker: WorkerName::parse("worker-1").ok(),
        claimed_at: NOW,
        lease_length: Millis::from_secs(60),
        lease_expires_at: later(60),
        shared: false,
        under_way: vec![],
    })
}

/// A record asleep that has seen so many wakes.
pub(super) fn waiting(seen_wakes: u64) -> ExecutionState {
    ExecutionState::Waiting(Waiting {
        since: NOW,
        seen_wakes,
        until: Some(later(7_200)),
        hint_later: true,
        recheck: Some(Recheck { at: later(60), after: Millis::from_secs(60) }),
        stirred: true,
    })
}

/// Each state that a record can be in.
pub(super) fn every_state() -> Vec<ExecutionState> {
    let ended = |outcome| ExecutionState::Ended(Closed { outcome, ..closed() });
    let error = Failure::new("card_declined", "no");
    vec![
        ExecutionState::Pending(Ready { available_at: later(2), hint_later: true }),
        running(),
        waiting(0),
        ExecutionState::Closing(closed()),
        ExecutionState::Ended(closed()),
        ended(ExecutionOutcome::Completed { output: None }),
        ended(ExecutionOutcome::Failed { error, step: Some("charge".to_owned()), retries_exhausted: false }),
        ended(ExecutionOutcome::TimedOut { kind: DeadlineKind::Run }),
        ended(ExecutionOutcome::TimedOut { kind: DeadlineKind::Execution }),
        ended(ExecutionOutcome::Cancelled { terminated: true }),
    ]
}

/// Each thing that can happen in a run, and each way that a step can end.
pub(super) fn every_entry() -> Vec<Entry> {
    let inline = |text| Payload::Inline(json(text));
    let event = |text| parsed(EventName::parse(text));
    let blob =
        BlobRef { id: tickover_core::id::BlobId::from_bytes([3; 16]), bytes: 300, expires_at: later(9) };
    let outcomes = [
        StepOutcome::Completed { output: Some(inline(r#"{"b":1.50,"a":null}"#)) },
        StepOutcome::Completed { output: None },
        StepOutcome::Failed { error: inline(r#""no""#) },
        StepOutcome::Exhausted { error: Payload::Blob(blob) },
        StepOutcome::TimedOut,
        StepOutcome::DeadlineExceeded,
        StepOutcome::Cancelled,
        StepOutcome::ResultExpired,
    ];
    let ends = outcomes.into_iter().enumerate().map(|(number, outcome)| Happened::Step {
        name: step(&format!("charge[{number}]")),
        outcome,
        attempts: (number == 0).then_some(2),
    });
    let others = [
        Happened::Attempt {
            name: step("mail"),
            attempt: 2,
            first_at: NOW,
            error: Some(Failure::new("smtp", "later")),
            next_at: Some(later(3)),
            progress: Some(0.25),
        },
        Happened::Remote { name: step("render") },
        Happened::Child {
            name: step("ship"),
            execution: execution_id("ship-1"),
            policy: ParentClosePolicy::RequestCancel,
        },
        Happened::Reopened { name: step("render") },
        Happened::Captured { name: step("now"), value: inline("1.0") },
        Happened::Until { name: step("nap"), until: later(60) },
        Happened::Event { name: event("paid"), id: EventId::parse("e-1").ok(), payload: Some(inline("{}")) },
        Happened::Waited { name: step("payment"), event: Some(event("paid")) },
        Happened::Waited { name: step("late"), event: None },
        Happened::Drained { name: event("paid"), count: 3 },
        Happened::Patches { names: vec!["faster".to_owned(), "ä b".to_owned()] },
        Happened::Note { kind: "paused".to_owned(), name: None },
    ];
    others.into_iter().chain(ends).map(|what| Entry { at: NOW, what }).collect()
}

/// The record that a conflict comes with.
pub(super) fn conflicting<T: std::fmt::Debug>(result: Result<T, StoreError>) -> Option<Execution> {
    match result {
        Err(StoreError::Conflict { current }) => current.and_then(Current::execution).map(|current| *current),
        other => panic!("not a conflict: {other:?}"),
    }
}
