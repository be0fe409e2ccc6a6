//! What a run remembers, entry by entry. The latest entry of a name says where that step, sleep or wait stands.
//!
//! The youngest entries lie in the control record, so that the fence and the result are one conditional write. When
//! the record would grow past its budget, they are sealed: written into a segment, an immutable item that the next
//! version of the record points to. Segments form a chain, each naming the one before it, so that a segment of a
//! write that was refused is never taken for a part of the journal.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::duration::Millis;
use crate::failure::Failure;
use crate::id::{EventId, EventName, ExecutionId, Incarnation, Nonce, StepName};
use crate::parent::ParentClosePolicy;
use crate::payload::Payload;
use crate::time::Timestamp;

/// Places of one join item: one write unit holds as many.
pub const JOIN_MAX: u16 = 100;
/// The word of the note after what a rerun kept of the run before.
pub const RESTARTED: &str = "restarted";
/// The word of a note that names something which is remembered and which the code doesn't ask for.
pub const DRIFT: &str = "drift";
/// Most bytes of entries in a segment, as JSON.
pub const SEGMENT_BYTES: usize = 256 * 1024;

/// The sealed part of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    /// How many segments it has; the last one has this number.
    #[serde(rename = "n")]
    pub segments: u32,
    /// The mark of the last one, with its number its key.
    #[serde(rename = "l")]
    pub last: Nonce,
    /// How many entries they hold together.
    #[serde(rename = "c")]
    pub entries: u32,
}

/// Where a segment lies, within its execution's partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SegmentKey {
    /// The execution's incarnation.
    pub incarnation: Incarnation,
    /// The run.
    pub run: u32,
    /// Its number, from 1.
    pub number: u32,
    /// The mark of the decision that wrote it: nobody else can have the key.
    pub mark: Nonce,
}

/// A sealed part of a journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// The mark of the one before it, of the same run; absent in the first.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Nonce>,
    /// Its entries, oldest first.
    #[serde(rename = "e")]
    pub entries: Vec<Entry>,
}

/// What the names of steps begin with that undo others after a run's code has failed: `undo:refund`.
pub const UNDO_PREFIX: &str = "undo:";

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// When.
    #[serde(rename = "t")]
    pub at: Timestamp,
    /// What.
    #[serde(flatten)]
    pub what: Happened,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Happened {
    /// An inline step's attempt that is remembered before it runs (`at_most_once`, `durable_timeout`), or that
    /// failed and will be followed by another one.
    #[serde(rename = "a")]
    Attempt {
        /// The step.
        #[serde(rename = "n")]
        name: StepName,
        /// The attempt.
        #[serde(rename = "i")]
        attempt: u32,
        /// When the step was first begun: its timeout over all attempts counts from here.
        #[serde(rename = "f")]
        first_at: Timestamp,
        /// What went wrong; absent before it runs.
        #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
        error: Option<Failure>,
        /// When the next attempt may begin; before it runs, when its own time is over.
        #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
        next_at: Option<Timestamp>,
        /// How far the one that failed, or one before it, said it had come, from 0 to 1.
        #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
        progress: Option<f64>,
    },
    /// A remote step was begun: a task of its own, whose id follows from the execution, its run and this name.
    #[serde(rename = "r")]
    Remote {
        /// The step.
        #[serde(rename = "n")]
        name: StepName,
    },
    /// A child execution was begun.
    #[serde(rename = "k")]
    Child {
        /// The step that stands for it.
        #[serde(rename = "n")]
        name: StepName,
        /// The child.
        #[serde(rename = "e")]
        execution: ExecutionId,
        /// What becomes of it when this execution closes.
        #[serde(rename = "p", default)]
        policy: ParentClosePolicy,
    },
    /// A step, remote step or child has ended: its result, for good.
    #[serde(rename = "s")]
    Step {
        /// The step.
        #[serde(rename = "n")]
        name: StepName,
        /// How it ended.
        #[serde(rename = "o")]
        outcome: StepOutcome,
        /// Attempts it took.
        #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
        attempts: Option<u32>,
    },
    /// An operator has a step run again: what was remembered of it no longer counts.
    #[serde(rename = "o")]
    Reopened {
        /// The step.
        #[serde(rename = "n")]
        name: StepName,
    },
    /// A value that was captured: the time, an id, whatever a closure gave.
    #[serde(rename = "c")]
    Captured {
        /// Its name.
        #[serde(rename = "n")]
        name: StepName,
        /// The value.
        #[serde(rename = "o")]
        value: Payload,
    },
    /// A sleep was begun, or a wait with a timeout; its end is fixed here.
    #[serde(rename = "u")]
    Until {
        /// The sleep's or wait's name.
        #[serde(rename = "n")]
        name: StepName,
        /// When it ends.
        #[serde(rename = "u")]
        until: Timestamp,
    },
    /// A sleep or a time limit has ended because its instant came.
    #[serde(rename = "f")]
    Fired {
        /// The sleep's or time limit's name.
        #[serde(rename = "n")]
        name: StepName,
    },
    /// An event was offered.
    #[serde(rename = "e")]
    Event {
        /// Its name.
        #[serde(rename = "n")]
        name: EventName,
        /// Its own id.
        #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
        id: Option<EventId>,
        /// What came with it.
        #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
        payload: Option<Payload>,
    },
    /// A wait has ended: with the oldest event of a name that nobody had taken, or without.
    #[serde(rename = "w")]
    Waited {
        /// The wait.
        #[serde(rename = "n")]
        name: StepName,
        /// The event's name if one was taken; absent if the wait timed out.
        #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
        event: Option<EventName>,
    },
    /// All waiting events of a name were thrown away.
    #[serde(rename = "d")]
    EventsCleared {
        /// The name.
        #[serde(rename = "n")]
        name: EventName,
        /// How many.
        #[serde(rename = "c")]
        count: u32,
    },
    /// The patches that the code had when the run first began: [`Happened`] of the first claim.
    #[serde(rename = "p")]
    Patches {
        /// Their names.
        #[serde(rename = "n")]
        names: Vec<String>,
    },
    /// Something that only the timeline shows: an operator's call, what was ended at the close.
    #[serde(rename = "m")]
    Note {
        /// A stable word: `cancel_requested`, `paused`, `resumed`, `task_cancelled`, `child_terminated`, ….
        #[serde(rename = "k")]
        kind: String,
        /// The step it concerns.
        #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
        name: Option<StepName>,
    },
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepOutcome {
    /// With a result.
    #[serde(rename = "c")]
    Completed {
        /// The result.
        #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
        output: Option<Payload>,
    },
    /// With its own error, as JSON; not tried again.
    #[serde(rename = "f")]
    Failed {
        /// The error as the step's own type serialises it, or a [`Failure`].
        #[serde(rename = "x")]
        error: Payload,
    },
    /// Its attempts are used up.
    #[serde(rename = "r")]
    Exhausted {
        /// The last error.
        #[serde(rename = "x")]
        error: Payload,
    },
    /// Its own time ran out.
    #[serde(rename = "t")]
    TimedOut,
    /// Its execution's or run's time would run out before it could be tried again.
    #[serde(rename = "d")]
    DeadlineExceeded,
    /// It was cancelled.
    #[serde(rename = "z")]
    Cancelled,
    /// It is not known how it ended: what its task or child had kept of that was deleted before anybody looked.
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

/// The shape in which a remote step of a workflow reports its error: any JSON in a [`Failure`]'s message is its own.
pub const TYPED_ERROR: &str = "step_error";

/// First wait of an execution before it looks for itself at what it waits for; then four times as long.
pub const RECHECK_AFTER: Millis = Millis::from_secs(60);
/// The longest that wait grows.
pub const RECHECK_MAX: Millis = Millis::from_secs(3600);

/// The events of a journal that nobody has taken, oldest first: each wait that ended with an event took the oldest
/// of its name, and so did those who threw some away.
pub fn pending_events(entries: &[Entry]) -> Vec<&Entry> {
    let mut taken: BTreeMap<&EventName, u32> = BTreeMap::new();
    for entry in entries {
        match &entry.what {
            Happened::Waited { event: Some(name), .. } => *taken.entry(name).or_default() += 1,
            Happened::EventsCleared { name, count } => *taken.entry(name).or_default() += count,
            Happened::Attempt { .. }
            | Happened::Remote { .. }
            | Happened::Child { .. }
            | Happened::Step { .. }
            | Happened::Reopened { .. }
            | Happened::Captured { .. }
            | Happened::Until { .. }
            | Happened::Fired { .. }
            | Happened::Event { .. }
            | Happened::Waited { event: None, .. }
            | Happened::Patches { .. }
            | Happened::Note { .. } => {}
        }
    }
    let mut free = Vec::new();
    for entry in entries {
        let Happened::Event { name, .. } = &entry.what else { continue };
        match taken.get_mut(name) {
            Some(count) if *count > 0 => *count -= 1,
            Some(_) | None => free.push(entry),
        }
    }
    free
}

impl Happened {
    /// The name whose waiting ends with this: the code hears of these one at a time, in the order of the journal.
    /// Not of a captured value that it has at once.
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
    /// The payload it holds, if any.
    pub const fn payload(&self) -> Option<&Payload> {
        match &self.what {
            Happened::Step { outcome, .. } => outcome.payload(),
            Happened::Captured { value, .. } => Some(value),
            Happened::Event { payload, .. } => payload.as_ref(),
            Happened::Attempt { .. }
            | Happened::Remote { .. }
            | Happened::Child { .. }
            | Happened::Reopened { .. }
            | Happened::Until { .. }
            | Happened::Fired { .. }
            | Happened::Waited { .. }
            | Happened::EventsCleared { .. }
            | Happened::Patches { .. }
            | Happened::Note { .. } => None,
        }
    }
}

/// What a journal says of remote steps and children that were begun and haven't ended: the latest word counts.
pub fn open_steps(entries: &[Entry]) -> Vec<&Entry> {
    let mut open: BTreeMap<&StepName, &Entry> = BTreeMap::new();
    for entry in entries {
        match &entry.what {
            Happened::Remote { name } | Happened::Child { name, .. } => {
                open.insert(name, entry);
            }
            Happened::Step { name, .. } | Happened::Reopened { name } => {
                open.remove(name);
            }
            Happened::Attempt { .. }
            | Happened::Captured { .. }
            | Happened::Until { .. }
            | Happened::Fired { .. }
            | Happened::Event { .. }
            | Happened::Waited { .. }
            | Happened::EventsCleared { .. }
            | Happened::Patches { .. }
            | Happened::Note { .. } => {}
        }
    }
    open.into_values().collect()
}
