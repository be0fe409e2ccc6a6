//! What a workflow's code waits for: what has to happen before one of its futures can go on.

use std::sync::Arc;
use std::task::Waker;

use futures::future::{AbortHandle, BoxFuture};
use tickover_core::execution::ParentClosePolicy;
use tickover_core::execution::journal::Happened;
use tickover_core::execution::replay::StepPolicy;
use tickover_core::id::{EventName, StepName};
use tickover_core::payload::Json;
use tickover_core::task;
use tickover_core::time::Timestamp;
use tickover_service::executions::{RemoteStep, StartRequest};

use crate::step::StepInfo;

/// Something that the code waits for.
pub(crate) struct Waiting {
    pub(crate) need: Need,
    /// Where its end stands, once the code has come past that.
    pub(super) ended: Option<Rank>,
    /// In which poll of the body it was last polled.
    pub(super) polled_in: u64,
    /// The waker of an executor within the code, such as one of many futures that it joins: it has to be told.
    pub(super) waker: Option<Waker>,
}

/// Where something stands among what has ended and isn't taken: in the journal's order, and
/// behind that what the code looked past, in the order in which it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    /// When it last stood back, by number; 0 if it never did.
    pub(super) stood_back: u64,
    /// Its place in the journal's order.
    pub(super) place: u64,
}

/// What has to happen before a future of the code can go on.
pub(crate) enum Need {
    /// A value is put where the journal can point to it, and remembered under the name.
    Keep { name: StepName, value: Option<Json> },
    /// An inline step runs.
    Inline(Box<Inline>),
    /// A remote step is begun.
    Remote(Box<RemoteStep>),
    /// A child is begun; if `started` is a name, that is all that is waited for, and stands for it.
    Child { name: StepName, start: Box<StartRequest>, policy: ParentClosePolicy, started: Option<StepName> },
    /// A remote step or child that was begun ends.
    Outcome { name: StepName },
    /// Another execution ends that tells nobody here: it is looked at now and then.
    Elsewhere { name: StepName, since: Timestamp, look_at: Timestamp },
    /// An instant comes.
    Timer { name: StepName, until: Timestamp },
    /// An event comes, or the instant until which it is waited for.
    Event { name: StepName, event: EventName, until: Option<Timestamp> },
}

impl Need {
    /// The inline step that it is, if it is one.
    pub(crate) const fn inline(&self) -> Option<&Inline> {
        match self {
            Self::Inline(inline) => Some(inline),
            Self::Keep { .. }
            | Self::Remote(_)
            | Self::Child { .. }
            | Self::Outcome { .. }
            | Self::Elsewhere { .. }
            | Self::Timer { .. }
            | Self::Event { .. } => None,
        }
    }

    /// What it is called in the journal.
    pub(crate) const fn name(&self) -> &StepName {
        match self {
            Self::Inline(inline) => &inline.name,
            Self::Remote(step) => &step.name,
            Self::Child { started: Some(name), .. }
            | Self::Keep { name, .. }
            | Self::Child { name, .. }
            | Self::Outcome { name }
            | Self::Elsewhere { name, .. }
            | Self::Timer { name, .. }
            | Self::Event { name, .. } => name,
        }
    }

    /// The remote step or child that was begun for it, if it is one.
    pub(crate) const fn begun(&self) -> Option<&StepName> {
        match self {
            Self::Outcome { name } => Some(name),
            Self::Keep { .. }
            | Self::Inline(_)
            | Self::Remote(_)
            | Self::Child { .. }
            | Self::Elsewhere { .. }
            | Self::Timer { .. }
            | Self::Event { .. } => None,
        }
    }

    /// When it comes by itself, or there is something to do about it.
    pub(crate) const fn instant(&self) -> Option<Timestamp> {
        match self {
            Self::Timer { until, .. } => Some(*until),
            Self::Event { until, .. } => *until,
            Self::Elsewhere { look_at, .. } => Some(*look_at),
            Self::Inline(inline) => inline.next_at(),
            Self::Keep { .. } | Self::Remote(_) | Self::Child { .. } | Self::Outcome { .. } => None,
        }
    }
}

/// An inline step that is to run.
pub(crate) struct Inline {
    pub(crate) name: StepName,
    /// As its author calls it.
    pub(crate) shown: String,
    pub(crate) policy: StepPolicy,
    /// Whether an attempt is written down before it runs.
    pub(crate) noted_first: bool,
    pub(crate) runner: Runner,
    pub(crate) stage: Stage,
    /// How far the last attempt that told said it had come.
    pub(crate) progress: Option<f64>,
    /// The last failure that another attempt follows here, as long as no entry says so.
    pub(crate) unwritten: Option<Failed>,
}

/// An attempt that failed and is followed by another one.
#[derive(Clone)]
pub(crate) struct Failed {
    pub(crate) attempt: u32,
    pub(crate) first_at: Timestamp,
    pub(crate) error: task::Failure,
    /// When the next one may begin.
    pub(crate) at: Timestamp,
    /// How far it said it had come, or one before it.
    pub(crate) progress: Option<f64>,
}

impl Failed {
    /// The entry that says so.
    pub(crate) fn entry(self, name: StepName) -> Happened {
        let Self { attempt, first_at, error, at, progress } = self;
        Happened::Attempt { name, attempt, first_at, error: Some(error), next_at: Some(at), progress }
    }
}

impl Inline {
    /// When its next attempt may begin, if it waits for one.
    pub(crate) const fn next_at(&self) -> Option<Timestamp> {
        match &self.stage {
            Stage::Retry { at, .. } => Some(*at),
            Stage::Unknown | Stage::Due { .. } | Stage::Running(_) | Stage::Ended => None,
        }
    }
}

/// Where an inline step stands within the turn.
pub(crate) enum Stage {
    /// As the journal says.
    Unknown,
    /// To run once all that has happened before is stored.
    Due { attempt: u32, first_at: Timestamp },
    /// Running.
    Running(AbortHandle),
    /// An attempt failed; the next one may begin at an instant.
    Retry { attempt: u32, first_at: Timestamp, error: task::Failure, at: Timestamp, in_place: bool },
    /// Ended: the code hasn't looked yet.
    Ended,
}

/// An attempt of an inline step, without its types.
pub(crate) type Runner = Arc<dyn Fn(StepInfo) -> BoxFuture<'static, Attempted> + Send + Sync>;

/// How an attempt ended.
#[derive(Debug)]
pub(crate) enum Attempted {
    /// With a result.
    Done(Json),
    /// With an error.
    Failed { error: Json, failure: task::Failure },
    /// With something that no other attempt would change: what it gave can't be written.
    Unwritable(task::Failure),
}
