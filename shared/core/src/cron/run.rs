//! A cron's runs: what each is named, and where it stands.

use serde::{Deserialize, Serialize};

use crate::id::{CronId, ExecutionId, NameError, QueueName, TaskId, TaskKind, WorkflowName};
use crate::policy::PolicyError;
use crate::time::Timestamp;

/// What an id's template must hold: the occurrence goes there.
pub const PLACEHOLDER: &str = "{occurrence}";
/// Longest template, in bytes.
pub const TEMPLATE_MAX: usize = 72;
/// As long as an occurrence's name gets.
const LONGEST_NAME: &str = "20260131T120000.250Z";

/// Which run of a cron: its instant, and whether somebody asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Occurrence {
    /// Its instant: of the plan, in whole seconds, or of the request.
    #[serde(rename = "a")]
    pub at: Timestamp,
    /// Whether it was triggered, out of plan.
    #[serde(rename = "m", default, skip_serializing_if = "std::ops::Not::not")]
    pub manual: bool,
}

impl Occurrence {
    /// A planned one.
    pub const fn planned(at: Timestamp) -> Self {
        Self { at, manual: false }
    }

    /// Its name, unique within the cron: `20260131T120000Z` as planned, `20260131T120000.250Z` by request.
    pub fn name(&self) -> String {
        let mut text = self.at.to_rfc3339();
        text.retain(|c| !matches!(c, '-' | ':'));
        if self.manual { text } else { text.replace(".000Z", "Z") }
    }
}

/// What each occurrence starts; the request itself lies beside it as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    #[serde(rename = "t")]
    Task {
        #[serde(rename = "q")]
        queue: QueueName,
        #[serde(rename = "k")]
        kind: TaskKind,
    },
    #[serde(rename = "e")]
    Execution {
        /// Of which workflow.
        #[serde(rename = "w")]
        workflow: WorkflowName,
    },
}

/// How the ids of a cron's runs are made: a text with `{occurrence}` in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IdTemplate(String);

impl IdTemplate {
    /// Reads a template for runs of this sort. Whatever the occurrence, the id must be one.
    pub fn parse(text: &str, target: &Target) -> Result<Self, PolicyError> {
        if !text.contains(PLACEHOLDER) {
            let expected = format!("an id with {PLACEHOLDER} in it, so that every run has its own");
            return Err(PolicyError::new("id", expected, text));
        }
        if text.len() > TEMPLATE_MAX {
            let expected = format!("a template of ids of at most {TEMPLATE_MAX} bytes");
            return Err(PolicyError::new("id", expected, text));
        }
        let template = Self(text.to_owned());
        template.check(target)?;
        Ok(template)
    }

    /// The template of a cron that has none of its own: its id, a hyphen, the occurrence.
    pub fn of(cron: &CronId) -> Self {
        Self(format!("{cron}-{PLACEHOLDER}"))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id of a run.
    pub fn expand(&self, occurrence: &Occurrence) -> String {
        self.0.replace(PLACEHOLDER, &occurrence.name())
    }

    /// Whether the longest id that can come of it is one.
    pub fn check(&self, target: &Target) -> Result<(), PolicyError> {
        let longest = self.0.replace(PLACEHOLDER, LONGEST_NAME);
        let checked = match target {
            Target::Task { .. } => TaskId::parse(longest).map(|_| ()),
            Target::Execution { .. } => ExecutionId::parse(longest).map(|_| ()),
        };
        let refuse = |error: NameError| {
            let of = format!("a template of ids, which with {} for the occurrence", LONGEST_NAME.len());
            PolicyError::new("id", format!("{of} characters {error}"), &self.0)
        };
        checked.map_err(refuse)
    }
}

/// A run that is remembered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    #[serde(flatten)]
    pub occurrence: Occurrence,
    /// Where it stands.
    #[serde(rename = "s")]
    pub state: RunState,
}

/// Where a run stands, as far as its cron follows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunState {
    /// To be started: written before it is, and so until that is known to have happened.
    #[serde(rename = "s")]
    Starting,
    /// Started, and not known to have ended.
    #[serde(rename = "o")]
    Open,
    /// The same, and it is being stopped for one that comes after it.
    #[serde(rename = "x")]
    Stopping(Stop),
    /// Started. Whether it has ended makes no difference any more.
    #[serde(rename = "d")]
    Done,
    /// Never started.
    #[serde(rename = "k")]
    Skipped(Skip),
    /// Never started, because the request was refused with this stable code.
    #[serde(rename = "f")]
    Refused(String),
}

/// How a run is stopped for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stop {
    /// It is asked to cancel.
    #[serde(rename = "c")]
    Cancel,
    /// It is ended.
    #[serde(rename = "t")]
    Terminate,
}

/// Why an occurrence was never started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Skip {
    /// An earlier run was open.
    #[serde(rename = "o")]
    Overlap,
    /// Nobody saw it in time; others before it may have been missed with it.
    #[serde(rename = "m")]
    Missed,
    /// As many wait already as may.
    #[serde(rename = "f")]
    Full,
    /// It waited when the cron was paused or changed.
    #[serde(rename = "d")]
    Dropped,
}

impl RunState {
    /// Whether the cron still follows it.
    pub const fn is_live(&self) -> bool {
        match self {
            Self::Starting | Self::Open | Self::Stopping(_) => true,
            Self::Done | Self::Skipped(_) | Self::Refused(_) => false,
        }
    }

    /// Whether it was started and its end is waited for.
    pub const fn is_open(&self) -> bool {
        match self {
            Self::Open | Self::Stopping(_) => true,
            Self::Starting | Self::Done | Self::Skipped(_) | Self::Refused(_) => false,
        }
    }

    /// How it is being stopped.
    pub const fn stop(&self) -> Option<Stop> {
        match self {
            Self::Stopping(stop) => Some(*stop),
            Self::Starting | Self::Open | Self::Done | Self::Skipped(_) | Self::Refused(_) => None,
        }
    }
}

impl Skip {
    /// The name that answers use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Overlap => "overlap",
            Self::Missed => "missed",
            Self::Full => "buffer_full",
            Self::Dropped => "dropped",
        }
    }
}
