//! One execution, its clock, its segments, and all random values, with names that are readable in tests.
//!
//! A scene writes each decision as a store would, and checks what must hold for every decision.

mod check;
mod scene;
mod seen;

use crate::duration::Millis;
use crate::execution::command::{FirstEvent, Given, Start, StartPolicy};
use crate::execution::journal::{Entry, Happened, StepOutcome};
use crate::execution::{Admission, ExecutionTimeouts};
use crate::id::{EventId, EventName, ExecutionId, Incarnation, QueueName, StepName, WorkflowName};
use crate::limits::Limits;
use crate::parent::{Parent, ParentClosePolicy};
use crate::payload::{BlobRef, Payload};

pub(super) use crate::task::decide::tests::fixture::{
    BUSY, EMPTY, Items, blob, claimed_up_to, gated, json, lease, span, t,
};
pub(super) use check::Ledger;
pub(super) use scene::{Scene, failure};

/// An execution to be started. It has no timeouts and no `on_failure` code unless a test sets them.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) start: Start,
    pub(super) limits: Limits,
}

pub(super) fn execution() -> Plan {
    let start = Start {
        id: ExecutionId::parse("order-7").unwrap(),
        incarnation: Incarnation::from_bytes([1; 8]),
        workflow: WorkflowName::parse("order-fulfilment").unwrap(),
        queue: QueueName::parse("orders").unwrap(),
        timeouts: ExecutionTimeouts::default(),
        on_failure: None,
        delay: Millis::ZERO,
        parent: None,
        trace: None,
        lane: crate::lane::Lane::default(),
        admission: None,
        policy: StartPolicy::UseExisting,
        ended: crate::execution::command::EndedChild::Found,
        in_line: false,
        given: Given { input: None, details: None, blob_ids: [blob("input"), blob("details")] },
        event: None,
        is_fence: false,
    };
    Plan { start, limits: Limits::default() }
}

impl Plan {
    /// The timeout over all runs.
    pub(super) fn deadline(mut self, text: &str) -> Self {
        self.start.timeouts.execution = Some(span(text));
        self
    }

    pub(super) fn run_deadline(mut self, text: &str) -> Self {
        self.start.timeouts.run = Some(span(text));
        self
    }

    /// It has `on_failure` code, with this timeout.
    pub(super) fn on_failure(mut self, text: &str) -> Self {
        self.start.on_failure = Some(span(text));
        self
    }

    pub(super) fn starting_in(mut self, text: &str) -> Self {
        self.start.delay = span(text);
        self
    }

    pub(super) fn child(mut self) -> Self {
        self.start.parent = Some(parent());
        self
    }

    pub(super) fn input(mut self, text: &str) -> Self {
        self.start.given.input = Some(json(text));
        self
    }

    pub(super) fn details(mut self, text: &str) -> Self {
        self.start.given.details = Some(json(text));
        self
    }

    /// It starts with this event.
    pub(super) fn with_event(mut self, name: &str, id: &str, payload: Option<Payload>) -> Self {
        self.start.event = Some(FirstEvent { name: event(name), id: Some(event_id(id)), payload });
        self
    }

    pub(super) fn policy(mut self, policy: StartPolicy) -> Self {
        self.start.policy = policy;
        self
    }

    /// It needs a place at keys with these limits.
    pub(super) fn needing(mut self, limits: &[u16]) -> Self {
        let gates = limits.iter().enumerate().map(|(nth, limit)| gated(nth, *limit)).collect();
        self.start.admission = Some(Box::new(Admission { gates, ..Admission::default() }));
        self
    }

    /// It begins in the line of a key.
    pub(super) fn in_line(mut self) -> Self {
        self.start.in_line = true;
        self
    }

    pub(super) fn limited(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// The scene after its start.
    pub(super) fn started(self) -> Scene {
        Scene::of(self).start_repeated()
    }
}

pub(super) fn parent() -> Parent {
    let execution = ExecutionId::parse("order-6").unwrap();
    Parent {
        execution,
        incarnation: Incarnation::from_bytes([4; 8]),
        run: 1,
        again: 0,
        slot: None,
        step: None,
        work: None,
        on_close: crate::execution::ParentClosePolicy::default(),
    }
}

// ---- entries

pub(super) fn entry(what: Happened) -> Entry {
    Entry { at: t("0s"), what }
}

pub(super) fn name(text: &str) -> StepName {
    StepName::parse(text).unwrap()
}

pub(super) fn event(text: &str) -> EventName {
    EventName::parse(text).unwrap()
}

pub(super) fn event_id(text: &str) -> EventId {
    EventId::parse(text).unwrap()
}

/// An inline step that ended with this output.
pub(super) fn done(text: &str, output: &str) -> Entry {
    let outcome = StepOutcome::Completed { output: Some(Payload::Inline(json(output))) };
    entry(Happened::Step { name: name(text), outcome, attempts: Some(1), expired: None, errors: vec![] })
}

/// An inline step whose result is a blob.
pub(super) fn done_aside(text: &str, at: BlobRef) -> Entry {
    let outcome = StepOutcome::Completed { output: Some(Payload::Blob(at)) };
    entry(Happened::Step { name: name(text), outcome, attempts: Some(1), expired: None, errors: vec![] })
}

/// The start of a remote step.
pub(super) fn remote(text: &str) -> Entry {
    entry(Happened::Remote { name: name(text) })
}

/// The start of a child.
pub(super) fn child(text: &str) -> Entry {
    let execution = ExecutionId::parse(text).unwrap();
    entry(Happened::Child {
        name: name(text),
        execution,
        policy: ParentClosePolicy::RequestCancel,
        left: false,
        was_left: false,
    })
}

/// The end of a remote step or a child.
pub(super) fn ended(text: &str) -> Entry {
    let outcome = StepOutcome::Completed { output: None };
    entry(Happened::Step { name: name(text), outcome, attempts: None, expired: None, errors: vec![] })
}

/// The end of a remote step for which the code no longer waited.
pub(super) fn cancelled(text: &str) -> Entry {
    let (name, outcome) = (name(text), StepOutcome::Cancelled);
    entry(Happened::Step { name, outcome, attempts: None, expired: None, errors: vec![] })
}

/// The end of a wait by an event of that name.
pub(super) fn waited(text: &str, of: &str) -> Entry {
    entry(Happened::Waited { name: name(text), event: Some(event(of)) })
}

/// An attempt that is recorded before it runs. It times out at this instant after the beginning.
pub(super) fn begun(text: &str, until: &str) -> Entry {
    let (first_at, next_at) = (t("0s"), Some(t(until)));
    entry(Happened::Attempt {
        name: name(text),
        attempt: 1,
        first_at,
        error: None,
        next_at,
        progress: None,
        details: None,
        is_ongoing: false,
        errors: vec![],
    })
}

/// The end of a step by its own timeout.
pub(super) fn ends_attempt(text: &str) -> Entry {
    entry(Happened::Step {
        name: name(text),
        outcome: StepOutcome::TimedOut,
        attempts: Some(1),
        expired: None,
        errors: vec![],
    })
}
