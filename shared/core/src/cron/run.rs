//! A cron's runs, their ids and their states.

use serde::{Deserialize, Serialize};

use crate::id::{CronId, ExecutionId, NameError, QueueName, TaskId, TaskKind, WorkflowName};
use crate::policy::PolicyError;
use crate::time::Timestamp;

/// The text in a template that the occurrence's name replaces. Every template must contain it.
pub const PLACEHOLDER: &str = "{occurrence}";
/// Longest template, in bytes.
pub const TEMPLATE_MAX: usize = 72;
/// An occurrence's name of the maximum length.
const LONGEST_NAME: &str = "20260131T120000.250Z";

/// Identifies a run of a cron: its instant, and whether it was triggered by a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Occurrence {
    /// The instant of the plan, in whole seconds, or the instant of the request.
    #[serde(rename = "a")]
    pub at: Timestamp,
    /// Whether a request triggered it, outside of the plan.
    #[serde(rename = "m", default, skip_serializing_if = "std::ops::Not::not")]
    pub manual: bool,
}

impl Occurrence {
    pub const fn planned(at: Timestamp) -> Self {
        Self { at, manual: false }
    }

    /// Its name, unique within the cron: `20260131T120000Z` if planned, `20260131T120000.250Z` if triggered.
    pub fn name(&self) -> String {
        let mut text = self.at.to_rfc3339();
        text.retain(|c| !matches!(c, '-' | ':'));
        if self.manual { text } else { text.replace(".000Z", "Z") }
    }
}

/// What each occurrence starts. The request itself is a separate JSON payload.
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
        #[serde(rename = "w")]
        workflow: WorkflowName,
    },
}

/// The template of the ids of a cron's runs: a text with `{occurrence}` in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IdTemplate(String);

impl IdTemplate {
    /// Reads a template for runs of this kind. The result must be a valid id for every occurrence.
    pub fn parse(text: &str, target: &Target) -> Result<Self, PolicyError> {
        if !text.contains(PLACEHOLDER) {
            let expected = format!("an id that contains {PLACEHOLDER}, so that every run has its own id");
            return Err(PolicyError::new("id", expected, text));
        }
        if text.len() > TEMPLATE_MAX {
            let expected = format!("a template of at most {TEMPLATE_MAX} bytes");
            return Err(PolicyError::new("id", expected, text));
        }
        let template = Self(text.to_owned());
        template.check(target)?;
        Ok(template)
    }

    /// The template of a cron without one: its id, a hyphen, the occurrence.
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

    /// Checks that the longest id made from it is valid.
    pub fn check(&self, target: &Target) -> Result<(), PolicyError> {
        let longest = self.0.replace(PLACEHOLDER, LONGEST_NAME);
        let checked = match target {
            Target::Task { .. } => TaskId::parse(longest).map(|_| ()),
            Target::Execution { .. } => ExecutionId::parse(longest).map(|_| ()),
        };
        let refuse = |error: NameError| {
            let of = format!("a template whose ids with an occurrence of {}", LONGEST_NAME.len());
            PolicyError::new("id", format!("{of} characters {error}"), &self.0)
        };
        checked.map_err(refuse)
    }
}

/// A run in a cron's record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    #[serde(flatten)]
    pub occurrence: Occurrence,
    #[serde(rename = "s")]
    pub state: RunState,
}

/// The state of a run, as far as its cron follows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunState {
    /// To be started. Written before the start, and kept until the start is known to have happened.
    #[serde(rename = "s")]
    Starting,
    /// Started, and not known to have ended.
    #[serde(rename = "o")]
    Open,
    /// As `Open`, but being stopped because of a later run.
    #[serde(rename = "x")]
    Stopping(Stop),
    /// Started. The cron no longer checks whether it has ended.
    #[serde(rename = "d")]
    Done,
    /// Never started.
    #[serde(rename = "k")]
    Skipped(Skip),
    /// Never started, because the request was refused with this stable code.
    #[serde(rename = "f")]
    Refused(String),
}

/// How a run is stopped because of a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stop {
    /// It is asked to cancel.
    #[serde(rename = "c")]
    Cancel,
    /// It is terminated.
    #[serde(rename = "t")]
    Terminate,
}

/// Why an occurrence was never started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Skip {
    /// An earlier run was open.
    #[serde(rename = "o")]
    Overlap,
    /// It was found too late. Other occurrences before it may have been missed with it.
    #[serde(rename = "m")]
    Missed,
    /// The maximum number of occurrences waits already.
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

    /// Whether it was started, as far as is known.
    pub const fn was_started(&self) -> bool {
        match self {
            Self::Open | Self::Stopping(_) | Self::Done => true,
            Self::Starting | Self::Skipped(_) | Self::Refused(_) => false,
        }
    }

    /// Whether it was started and the cron waits for its end.
    pub const fn is_open(&self) -> bool {
        match self {
            Self::Open | Self::Stopping(_) => true,
            Self::Starting | Self::Done | Self::Skipped(_) | Self::Refused(_) => false,
        }
    }

    /// How it is being stopped, if it is.
    pub const fn stop(&self) -> Option<Stop> {
        match self {
            Self::Stopping(stop) => Some(*stop),
            Self::Starting | Self::Open | Self::Done | Self::Skipped(_) | Self::Refused(_) => None,
        }
    }
}

impl Skip {
    /// The name in answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Overlap => "overlap",
            Self::Missed => "missed",
            Self::Full => "buffer_full",
            Self::Dropped => "dropped",
        }
    }
}
