//! The journal of a run. The latest entry of a name is the state of that step, sleep or wait.
//!
//! The newest entries are in the control record, so that the fence and the result are one conditional write. When the
//! record would exceed its budget, its entries are sealed: they are written into a segment, an immutable item that the
//! next version of the record points to. Segments form a chain, in which each names the one before it. So a segment of
//! a refused write is never read as part of the journal.

mod fate;
mod name;
mod open;

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::by::By;
use crate::duration::Millis;
use crate::execution::Execution;
use crate::failure::Failure;
use crate::id::{EventId, EventName, ExecutionId, Incarnation, Nonce, StepName};
use crate::parent::ParentClosePolicy;
use crate::payload::{Json, Payload};
use crate::time::Timestamp;
use crate::timeout::Expired;

pub use fate::{Fate, fate_of};
pub use name::{
    ANSWER_PREFIX, CALLBACK_PREFIX, CHILD_PREFIX, END_PREFIX, EVENT_PREFIX, ON_CANCEL_PREFIX,
    ON_FAILURE_PREFIX, PAGE_PREFIX, PAGE_WORKFLOW, START_PREFIX, UNDO_PREFIX, answered_event, awaited_event,
    child_of_start, handler_of, is_after_failure, is_of_handler, is_own_child, is_page, is_start_of_child,
    is_wait_for, own_part, start_of_child,
};
pub use open::{cancelled_after, open_steps};

/// Slots in one join item: as many as fit into one write unit.
pub const JOIN_MAX: u16 = 100;
/// The kind of the note that follows the entries which a rerun kept from the run before.
pub const RESTARTED: &str = "restarted";
/// The kind of the note about an operator's end of an execution.
pub const TERMINATED: &str = "terminated";
/// The kind of the note about an operator's resume.
pub const RESUMED: &str = "resumed";
/// The kind of the note with which a run starts that is a retry of the run before.
pub const RETRIED: &str = "retried";
/// The kind of a note that names a journal entry which the code doesn't ask for.
pub const DRIFT: &str = "drift";
/// The kind of the note that a turn has stopped the code because of a cancellation. The code receives no outcome that the
/// journal has after it, but the undo steps do.
pub const STOPPED: &str = "code_stopped";
/// Maximum bytes of entries in a segment, as JSON.
pub const SEGMENT_BYTES: usize = 256 * 1024;

/// Which segments a journal has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    /// How many segments there are; the last one has this number.
    #[serde(rename = "n")]
    pub segments: u32,
    /// The mark of the last one: with its number, this is its key.
    #[serde(rename = "l")]
    pub last: Nonce,
    /// How many entries the segments have together.
    #[serde(rename = "c")]
    pub entries: u32,
    /// How many of them are ends of steps and children with a result. Absent if an older build wrote a segment.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub completed: Option<u32>,
}

/// The key of a segment within its execution's partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SegmentKey {
    pub incarnation: Incarnation,
    pub run: u32,
    /// Its number, from 1.
    pub number: u32,
    /// The nonce of the decision that wrote it: no other decision can write this key.
    pub mark: Nonce,
}

/// Journal entries in an item of their own, which never changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// The mark of the segment before it in the same run; absent in the first.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Nonce>,
    /// Oldest first.
    #[serde(rename = "e")]
    pub entries: Vec<Entry>,
    /// How the run ended. Only the last segment of a run has it, and only if another run followed.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Box<RunEnd>>,
}

/// A run that another one followed. The record of the execution no longer knows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunEnd {
    /// The record when the run was over: with its outcome, if an operator started the next run. Its journal is in the
    /// run's segments, all of it.
    #[serde(rename = "r")]
    pub record: Execution,
    /// When its code continued in the next run, if it did.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub continued_at: Option<Timestamp>,
    /// When the next run starts, if that is a retry of this one.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub retried_at: Option<Timestamp>,
}

/// A journal entry: something that happened in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// When it happened. The end of a remote step or child is recorded when a turn reads it, with the instant at which
    /// it ended: so it may be earlier than that of the entry before.
    #[serde(rename = "t")]
    pub at: Timestamp,
    #[serde(flatten)]
    pub what: Happened,
}

/// What a journal entry records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Happened {
    /// An attempt of an inline step that is recorded before it runs (a step with a `timeout` over all attempts, with a
    /// `heartbeat`, or that is `at_most_once`), or that failed and will be retried.
    #[serde(rename = "a")]
    Attempt {
        #[serde(rename = "n")]
        name: StepName,
        #[serde(rename = "i")]
        attempt: u32,
        /// When the step first started: its timeout over all attempts counts from here.
        #[serde(rename = "f")]
        first_at: Timestamp,
        /// The failure; absent if the attempt is recorded before it runs.
        #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
        error: Option<Failure>,
        /// After a failure: when the next attempt may start. Before the attempt runs: when it times out.
        #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
        next_at: Option<Timestamp>,
        /// The last progress that this attempt, or one before it, has reported: from 0 to 1.
        #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
        progress: Option<f64>,
        /// The last details that it, or one before it, has reported with a heartbeat.
        #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
        details: Option<Json>,
        /// Whether the attempt had begun before: only what it has reported is new.
        #[serde(rename = "g", default, skip_serializing_if = "std::ops::Not::not")]
        is_ongoing: bool,
        /// The attempts that failed before it and have no entry of their own.
        #[serde(rename = "e", default, skip_serializing_if = "Vec::is_empty")]
        errors: Vec<FailedAttempt>,
    },
    /// A remote step was started: a task whose id follows from the execution, its run and this name.
    #[serde(rename = "r")]
    Remote {
        #[serde(rename = "n")]
        name: StepName,
    },
    /// A child execution was started.
    #[serde(rename = "k")]
    Child {
        /// The name under which the code waits for it.
        #[serde(rename = "n")]
        name: StepName,
        #[serde(rename = "e")]
        execution: ExecutionId,
        /// What happens to the child when this execution closes.
        #[serde(rename = "p", default)]
        policy: ParentClosePolicy,
        /// Whether an earlier run started it, and this run's code hasn't asked for it. It only ends with the execution.
        #[serde(rename = "l", default, skip_serializing_if = "std::ops::Not::not")]
        left: bool,
        /// Whether it is one that an earlier run had left: it counts as open already.
        #[serde(rename = "o", default, skip_serializing_if = "std::ops::Not::not")]
        was_left: bool,
    },
    /// A step, remote step or child has ended. Its outcome is final.
    #[serde(rename = "s")]
    Step {
        #[serde(rename = "n")]
        name: StepName,
        #[serde(rename = "o")]
        outcome: StepOutcome,
        /// How many attempts it took; absent for a remote step or child.
        #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
        attempts: Option<u32>,
        /// The time limit that ended it, if one did.
        #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
        expired: Option<Expired>,
        /// The failed attempts of an inline step that have no entry of their own.
        #[serde(rename = "e", default, skip_serializing_if = "Vec::is_empty")]
        errors: Vec<FailedAttempt>,
    },
    /// An operator has a step run again: its earlier entries no longer count.
    #[serde(rename = "o")]
    Reopened {
        #[serde(rename = "n")]
        name: StepName,
        /// Who.
        #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
        by: Option<Box<By>>,
        /// The input with which a remote step runs from now on, in place of the code's.
        #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
        input: Option<Payload>,
    },
    /// A captured value: the time, an id, or the value of a closure.
    #[serde(rename = "c")]
    Captured {
        #[serde(rename = "n")]
        name: StepName,
        #[serde(rename = "o")]
        value: Payload,
    },
    /// A sleep or a wait with a timeout was started. This entry fixes its end.
    #[serde(rename = "u")]
    Until {
        /// The name of the sleep or wait.
        #[serde(rename = "n")]
        name: StepName,
        #[serde(rename = "u")]
        until: Timestamp,
    },
    /// A sleep or timeout has ended because its instant came.
    #[serde(rename = "f")]
    Fired {
        /// The name of the sleep or timeout.
        #[serde(rename = "n")]
        name: StepName,
    },
    /// An event was sent.
    #[serde(rename = "e")]
    Event {
        #[serde(rename = "n")]
        name: EventName,
        #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
        id: Option<EventId>,
        #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
        payload: Option<Payload>,
    },
    /// A wait has ended: with the oldest event of a name that no wait had taken, or because it timed out.
    #[serde(rename = "w")]
    Waited {
        /// The name of the wait.
        #[serde(rename = "n")]
        name: StepName,
        /// The name of the event that was taken; absent if the wait timed out.
        #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
        event: Option<EventName>,
    },
    /// All pending events of a name were cleared.
    #[serde(rename = "d")]
    EventsCleared {
        #[serde(rename = "n")]
        name: EventName,
        #[serde(rename = "c")]
        count: u32,
    },
    /// The patches that the code had when the run's first turn started.
    #[serde(rename = "p")]
    Patches {
        #[serde(rename = "n")]
        names: Vec<String>,
    },
    /// A note that only the timeline shows: an operator's call, or a task or child that was ended at the close.
    #[serde(rename = "m")]
    Note {
        /// A stable name: `cancel_requested`, `paused`, `resumed`, `task_cancelled`, `child_terminated`, ….
        #[serde(rename = "k")]
        kind: String,
        /// The step it concerns.
        #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
        name: Option<StepName>,
        /// Whose call it was, if it was an operator's.
        #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
        by: Option<Box<By>>,
    },
}

/// An attempt that failed and was followed by another one in the same turn, so that it needed no entry of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedAttempt {
    #[serde(rename = "t")]
    pub at: Timestamp,
    #[serde(rename = "i")]
    pub attempt: u32,
    /// Its message is cut.
    #[serde(rename = "x")]
    pub error: Failure,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepOutcome {
    #[serde(rename = "c")]
    Completed {
        #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
        output: Option<Payload>,
    },
    /// With its own error, as JSON. It isn't retried.
    #[serde(rename = "f")]
    Failed {
        /// The error as the step's own type serialises it, or a [`Failure`].
        #[serde(rename = "x")]
        error: Payload,
    },
    /// Its attempts are used up.
    #[serde(rename = "r")]
    Exhausted {
        #[serde(rename = "x")]
        error: Payload,
    },
    /// Its own timeout passed.
    #[serde(rename = "t")]
    TimedOut,
    /// The deadline of the execution or run would pass before the next attempt could start.
    #[serde(rename = "d")]
    DeadlineExceeded,
    #[serde(rename = "z")]
    Cancelled,
    /// Its outcome is unknown: the record of its task or child was deleted before a turn read it.
    #[serde(rename = "e")]
    ResultExpired,
}

impl StepOutcome {
    /// The result or error, if it has one.
    pub const fn payload(&self) -> Option<&Payload> {
        match self {
            Self::Completed { output } => output.as_ref(),
            Self::Failed { error } | Self::Exhausted { error } => Some(error),
            Self::TimedOut | Self::DeadlineExceeded | Self::Cancelled | Self::ResultExpired => None,
        }
    }

    /// The name that answers and metrics use.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Completed { .. } => "completed",
            Self::Failed { .. } => "failed",
            Self::Exhausted { .. } => "retries_exhausted",
            Self::TimedOut => "timed_out",
            Self::DeadlineExceeded => "deadline_exceeded",
            Self::Cancelled => "cancelled",
            Self::ResultExpired => "result_expired",
        }
    }
}

/// The code of a [`Failure`] that carries a remote step's own error: its message is that error, as JSON.
pub const TYPED_ERROR: &str = "step_error";

/// The first interval after which a waiting execution rechecks its remote steps and children. Each further interval is
/// four times as long. It is as long as the first probe of a lost hint, so that a wait keeps the due slot of the turn
/// before it: a sooner recheck would move the slot, which costs two index writes for each wait.
pub const RECHECK_AFTER: Millis = Millis::from_secs(600);
/// The longest that this interval grows.
pub const RECHECK_MAX: Millis = Millis::from_secs(3600);

/// The events of a journal that no wait has taken, oldest first. Each wait that ended with an event took the oldest one
/// of its name that had come by then. So did a clear, which counts no event that came later.
pub fn pending_events(entries: &[Entry]) -> Vec<&Entry> {
    let mut pending: BTreeMap<&EventName, VecDeque<usize>> = BTreeMap::new();
    for (place, entry) in entries.iter().enumerate() {
        match &entry.what {
            Happened::Event { name, .. } => pending.entry(name).or_default().push_back(place),
            Happened::Waited { event: Some(name), .. } => {
                pending.entry(name).or_default().pop_front();
            }
            Happened::EventsCleared { name, count } => {
                let events = pending.entry(name).or_default();
                let count = usize::try_from(*count).unwrap_or(usize::MAX).min(events.len());
                events.drain(..count);
            }
            Happened::Attempt { .. }
            | Happened::Remote { .. }
            | Happened::Child { .. }
            | Happened::Step { .. }
            | Happened::Reopened { .. }
            | Happened::Captured { .. }
            | Happened::Until { .. }
            | Happened::Fired { .. }
            | Happened::Waited { event: None, .. }
            | Happened::Patches { .. }
            | Happened::Note { .. } => {}
        }
    }
    let mut places: Vec<usize> = pending.into_values().flatten().collect();
    places.sort_unstable();
    places.into_iter().filter_map(|place| entries.get(place)).collect()
}

impl Happened {
    /// The name whose outcome this entry is. The code receives outcomes one at a time, in the order of the journal. A
    /// captured value that the code has at once isn't one of them.
    pub fn outcome_of(&self) -> Option<&StepName> {
        match self {
            Self::Step { name, .. } | Self::Fired { name } | Self::Waited { name, .. } => Some(name),
            Self::Captured { name, value } => (!value.is_at_once()).then_some(name),
            Self::Attempt { .. }
            | Self::Remote { .. }
            | Self::Child { .. }
            | Self::Reopened { .. }
            | Self::Until { .. }
            | Self::Event { .. }
            | Self::EventsCleared { .. }
            | Self::Patches { .. }
            | Self::Note { .. } => None,
        }
    }
}

impl Entry {
    /// The operator's call that it records, if it records one.
    pub fn by(&self) -> Option<&By> {
        let (Happened::Reopened { by, .. } | Happened::Note { by, .. }) = &self.what else { return None };
        by.as_deref()
    }

    /// Whether it is the event with this id.
    pub fn is_event(&self, event: &EventId) -> bool {
        matches!(&self.what, Happened::Event { id: Some(id), .. } if id == event)
    }

    /// Its payload, if it has one.
    pub const fn payload(&self) -> Option<&Payload> {
        match &self.what {
            Happened::Step { outcome, .. } => outcome.payload(),
            Happened::Captured { value, .. } => Some(value),
            Happened::Event { payload, .. } | Happened::Reopened { input: payload, .. } => payload.as_ref(),
            Happened::Attempt { .. }
            | Happened::Remote { .. }
            | Happened::Child { .. }
            | Happened::Until { .. }
            | Happened::Fired { .. }
            | Happened::Waited { .. }
            | Happened::EventsCleared { .. }
            | Happened::Patches { .. }
            | Happened::Note { .. } => None,
        }
    }

    /// The same, to be changed.
    pub const fn payload_mut(&mut self) -> Option<&mut Payload> {
        match &mut self.what {
            Happened::Step { outcome, .. } => match outcome {
                StepOutcome::Completed { output } => output.as_mut(),
                StepOutcome::Failed { error } | StepOutcome::Exhausted { error } => Some(error),
                StepOutcome::TimedOut
                | StepOutcome::DeadlineExceeded
                | StepOutcome::Cancelled
                | StepOutcome::ResultExpired => None,
            },
            Happened::Captured { value, .. } => Some(value),
            Happened::Event { payload, .. } | Happened::Reopened { input: payload, .. } => payload.as_mut(),
            Happened::Attempt { .. }
            | Happened::Remote { .. }
            | Happened::Child { .. }
            | Happened::Until { .. }
            | Happened::Fired { .. }
            | Happened::Waited { .. }
            | Happened::EventsCleared { .. }
            | Happened::Patches { .. }
            | Happened::Note { .. } => None,
        }
    }
}

/// How many of these entries are ends of steps and children with a result.
pub fn completed_steps(entries: &[Entry]) -> u32 {
    let is_result =
        |entry: &&Entry| matches!(entry.what, Happened::Step { outcome: StepOutcome::Completed { .. }, .. });
    u32::try_from(entries.iter().filter(is_result).count()).unwrap_or(u32::MAX)
}
