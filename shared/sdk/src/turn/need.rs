//! What a workflow's code waits for: what has to happen before one of its futures can continue.

use std::sync::Arc;
use std::task::Waker;

use futures::future::{AbortHandle, BoxFuture};
use tickover_core::execution::ParentClosePolicy;
use tickover_core::execution::journal::{FailedAttempt, Happened};
use tickover_core::execution::replay::StepPolicy;
use tickover_core::id::{EventName, StepName};
use tickover_core::payload::Json;
use tickover_core::reported::Reported;
use tickover_core::task;
use tickover_core::time::Timestamp;
use tickover_core::timeout::Expired;
use tickover_service::executions::{RemoteStep, StartRequest};

use crate::step::{ProgressSender, StepInfo};

/// A future of the context that the code waits for.
pub(crate) struct Waiting {
    pub(crate) need: Need,
    /// The position of its end, if its entry was passed in the journal before the code took it.
    pub(super) ended: Option<Rank>,
    /// The number of the body's poll in which it was last polled.
    pub(super) polled_in: u64,
    /// The waker of an executor within the code, such as `join_all`. It has to be called.
    pub(super) waker: Option<Waker>,
}

/// A position among the outcomes that aren't taken yet: first in the journal's order, then those that the code has
/// passed over, in the order in which it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    /// The number of the last time that it was moved back; 0 if it never was.
    pub(super) moved_back: u64,
    /// Its position in the journal.
    pub(super) place: u64,
}

/// What has to happen before a future of the code can continue.
pub(crate) enum Need {
    /// A large captured value is stored outside of the journal, which refers to it under this name.
    Keep { name: StepName, value: Option<Json> },
    /// An inline step runs.
    Inline(Box<Inline>),
    /// A remote step is started.
    Remote(Box<RemoteStep>),
    /// A child is started. With `started`, the code waits only for the start, whose entry has that name.
    Child { name: StepName, start: Box<StartRequest>, policy: ParentClosePolicy, started: Option<StepName> },
    /// A remote step or child that was started ends.
    Outcome { name: StepName },
    /// Another execution ends. It doesn't notify this one, so it is probed periodically.
    Elsewhere { name: StepName, since: Timestamp, probe_at: Timestamp },
    /// An instant passes.
    Timer { name: StepName, until: Timestamp },
    /// An event arrives, or the timeout of the wait passes.
    Event { name: StepName, event: EventName, until: Option<Timestamp> },
}

impl Need {
    /// The inline step, if it is one.
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

    /// Its name in the journal.
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

    /// The name of the remote step or child that was started for it, if there is one.
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

    /// The event, if it waits for one without a timeout.
    pub(crate) const fn event_without_end(&self) -> Option<&EventName> {
        match self {
            Self::Event { event, until: None, .. } => Some(event),
            Self::Keep { .. }
            | Self::Inline(_)
            | Self::Remote(_)
            | Self::Child { .. }
            | Self::Outcome { .. }
            | Self::Elsewhere { .. }
            | Self::Timer { .. }
            | Self::Event { until: Some(_), .. } => None,
        }
    }

    /// The instant at which it ends by itself, or at which the driver has to act.
    pub(crate) const fn instant(&self) -> Option<Timestamp> {
        match self {
            Self::Timer { until, .. } => Some(*until),
            Self::Event { until, .. } => *until,
            Self::Elsewhere { probe_at, .. } => Some(*probe_at),
            Self::Inline(inline) => inline.next_at(),
            Self::Keep { .. } | Self::Remote(_) | Self::Child { .. } | Self::Outcome { .. } => None,
        }
    }
}

/// An inline step that has to run.
pub(crate) struct Inline {
    pub(crate) name: StepName,
    /// The name that the code gave it.
    pub(crate) given_name: String,
    pub(crate) policy: StepPolicy,
    pub(crate) runner: Runner,
    pub(crate) stage: Stage,
    /// What its attempts have reported last.
    pub(crate) reported: Reported,
    /// That this turn has recorded the step's begin.
    pub(crate) recording: Option<Recording>,
    /// The last failed attempt, if it is followed by another one in this turn and isn't recorded.
    pub(crate) unwritten: Option<Failed>,
    /// The failed attempts that no entry has yet: the next one takes them.
    pub(crate) failures: Vec<FailedAttempt>,
}

/// What a turn has recorded of a step before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Recording {
    /// From then on the step, or the attempt of one that is `at_most_once`, counts as timed out.
    pub(crate) timeout_at: Option<Timestamp>,
}

/// A failed attempt that is followed by another one.
#[derive(Clone)]
pub(crate) struct Failed {
    pub(crate) attempt: u32,
    pub(crate) first_at: Timestamp,
    pub(crate) error: task::Failure,
    /// The earliest start of the next attempt.
    pub(crate) at: Timestamp,
    /// What it or an earlier attempt reported last.
    pub(crate) reported: Reported,
    /// The attempts that failed before it and have no entry.
    pub(crate) before: Vec<FailedAttempt>,
}

impl Failed {
    /// Its journal entry.
    pub(crate) fn entry(self, name: StepName) -> Happened {
        let Self { attempt, first_at, error, at, reported: Reported { progress, details }, before: errors } =
            self;
        let (error, next_at) = (Some(error), Some(at));
        let is_ongoing = false;
        Happened::Attempt { name, attempt, first_at, error, next_at, progress, details, is_ongoing, errors }
    }
}

/// Most texts of failed attempts in one entry: the latest.
const FAILURES_MAX: usize = 10;
/// How many bytes their messages have together.
const FAILURES_BYTES: usize = 400;

impl Inline {
    /// From when on another worker may record that the step has timed out, if this turn has recorded that.
    pub(crate) fn watched_until(&self) -> Option<Timestamp> {
        self.recording.and_then(|recording| recording.timeout_at)
    }

    /// Keeps a failed attempt for the step's next entry. The more there are, the shorter are their messages.
    pub(crate) fn note_failure(&mut self, failed: FailedAttempt) {
        self.failures.push(failed);
        let excess = self.failures.len().saturating_sub(FAILURES_MAX);
        self.failures.drain(..excess);
        let bytes = FAILURES_BYTES / self.failures.len().max(1);
        for failed in &mut self.failures {
            failed.error = failed.error.cut(bytes);
        }
    }

    /// The entry of an attempt that is about to run, or that goes on.
    pub(crate) fn in_progress(
        &self,
        attempt: u32,
        first_at: Timestamp,
        errors: Vec<FailedAttempt>,
        is_ongoing: bool,
    ) -> Happened {
        let (name, next_at) = (self.name.clone(), self.watched_until());
        let Reported { progress, details } = self.reported.clone();
        Happened::Attempt {
            name,
            attempt,
            first_at,
            error: None,
            next_at,
            progress,
            details,
            is_ongoing,
            errors,
        }
    }

    /// Forgets what the last turn has decided, unless the step has ended: the journal says what follows.
    pub(super) fn forget_turn(&mut self) {
        if matches!(self.stage, Stage::Ended) {
            return;
        }
        self.stage = Stage::Unknown;
        self.recording = None;
        self.unwritten = None;
        self.failures.clear();
        self.reported = Reported::default();
    }

    /// Notes that the step has ended. Returns the failed attempts that no entry has.
    pub(crate) fn end(&mut self) -> Vec<FailedAttempt> {
        self.stage = Stage::Ended;
        self.unwritten = None;
        std::mem::take(&mut self.failures)
    }

    /// The earliest start of its next attempt, if it waits for one.
    pub(crate) const fn next_at(&self) -> Option<Timestamp> {
        match &self.stage {
            Stage::Retry { at, .. } => Some(*at),
            Stage::Unknown | Stage::Due { .. } | Stage::Running(_) | Stage::Ended => None,
        }
    }
}

/// The state of an inline step within the turn.
pub(crate) enum Stage {
    /// Not decided yet in this turn: the journal says what follows.
    Unknown,
    /// Runs when all earlier entries are stored.
    Due { attempt: u32, first_at: Timestamp, limit: Option<Expired> },
    /// Running.
    Running(Running),
    /// An attempt failed. The next one may start at an instant.
    Retry { attempt: u32, first_at: Timestamp, error: task::Failure, at: Timestamp, in_place: bool },
    /// Ended. The code hasn't received the outcome yet.
    Ended,
}

/// An attempt that runs.
pub(crate) struct Running {
    pub(crate) handle: AbortHandle,
    pub(crate) attempt: u32,
    pub(crate) first_at: Timestamp,
    /// Where it reports to.
    pub(crate) progress_sender: ProgressSender,
}

/// Runs an attempt of an inline step, with JSON instead of its types.
pub(crate) type Runner = Arc<dyn Fn(StepInfo) -> BoxFuture<'static, Attempted> + Send + Sync>;

/// How an attempt ended.
#[derive(Debug)]
pub(crate) enum Attempted {
    /// With a result.
    Done(Json),
    /// With an error.
    Failed { error: Json, failure: task::Failure },
    /// With a failure that isn't retried: the result or error can't be serialised.
    Unwritable(task::Failure),
}
