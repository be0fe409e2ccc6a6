//! Executions as answers describe them. Payloads stay the text they came as; fields that are new to this build are
//! ignored.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tickover_core::execution::ExecutionStatus;
use tickover_core::time::Timestamp;

use crate::client::{instant, present};
use crate::task::{Failure, Next};

/// `{"execution": …}`, not yet looked into, with what some calls say besides.
#[derive(Debug, Deserialize)]
pub(crate) struct Single {
    execution: Box<RawValue>,
    /// What became of a cancellation.
    pub(super) outcome: Option<String>,
    /// Whether a call changed anything.
    pub(super) changed: Option<bool>,
}

impl Single {
    /// The execution as it came.
    pub(crate) fn json(&self) -> &str {
        self.execution.get()
    }

    /// The execution, read.
    pub(crate) fn execution(&self) -> anyhow::Result<Execution> {
        Ok(serde_json::from_str(self.execution.get())?)
    }
}

/// A page of a list.
#[derive(Debug, Deserialize)]
pub(super) struct Page {
    /// The executions as they came.
    pub(super) executions: Vec<Box<RawValue>>,
    /// Where the next page begins; absent on the last one.
    pub(super) cursor: Option<String>,
}

/// How an event was taken.
#[derive(Debug, Deserialize)]
pub(super) struct EventSent {
    /// Whether one with its id had been offered before.
    #[serde(default)]
    pub(super) duplicate: bool,
    /// Events that wait now.
    pub(super) pending: u32,
}

/// A page of the events that wait, as they came.
#[derive(Debug, Deserialize)]
#[expect(clippy::struct_field_names, reason = "they are the answer's")]
pub(super) struct Events {
    /// Oldest first.
    pub(super) events: Vec<Box<RawValue>>,
    /// How many of each name there are on all pages.
    #[serde(default)]
    pub(super) counts: BTreeMap<String, u32>,
    /// Where the next page begins.
    pub(super) cursor: Option<String>,
}

/// An event that waits.
#[derive(Debug, Deserialize)]
pub(super) struct Event {
    /// Its name.
    pub(super) name: String,
    /// Its own id.
    #[serde(rename = "event_id")]
    pub(super) id: Option<String>,
    /// When it was offered.
    #[serde(default, deserialize_with = "instant")]
    pub(super) offered_at: Option<Timestamp>,
    /// What came with it.
    #[serde(default, deserialize_with = "present")]
    pub(super) payload: Option<Box<RawValue>>,
}

/// How many events were thrown away.
#[derive(Debug, Deserialize)]
pub(super) struct EventsCleared {
    /// So many.
    pub(super) drained: u32,
}

/// What happened.
#[derive(Debug, Deserialize)]
pub(super) struct Timeline {
    /// In the order of time: each with `at` and `kind`, and whatever else applies.
    pub(super) entries: Vec<Map<String, Value>>,
}

/// An execution with everything an answer says of it. What doesn't apply is absent.
#[derive(Debug, Deserialize)]
pub(crate) struct Execution {
    /// Its id.
    pub(super) id: String,
    /// Which code it runs.
    pub(super) workflow: String,
    /// Where workers find it.
    pub(super) queue: String,
    /// Where it stands.
    #[serde(deserialize_with = "status")]
    pub(super) status: ExecutionStatus,
    /// The number of its run.
    #[serde(default)]
    pub(super) run: u32,
    /// When it was started.
    #[serde(default, deserialize_with = "instant")]
    pub(super) created_at: Option<Timestamp>,
    /// When this run was begun.
    #[serde(default, deserialize_with = "instant")]
    pub(super) run_started_at: Option<Timestamp>,
    /// From when a worker may take it.
    #[serde(default, deserialize_with = "instant")]
    pub(super) available_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, deserialize_with = "instant")]
    pub(super) ended_at: Option<Timestamp>,
    /// The time that all runs have.
    #[serde(rename = "execution_timeout")]
    pub(super) timeout: Option<String>,
    /// When it must have ended.
    #[serde(default, deserialize_with = "instant")]
    pub(super) deadline_at: Option<Timestamp>,
    /// The time that a run has.
    pub(super) run_timeout: Option<String>,
    /// When this run must have ended.
    #[serde(default, deserialize_with = "instant")]
    pub(super) run_deadline_at: Option<Timestamp>,
    /// The time that its own code has after a failure.
    pub(super) on_failure_timeout: Option<String>,
    /// Who has it.
    pub(super) worker: Option<String>,
    /// When its turn was taken.
    #[serde(default, deserialize_with = "instant")]
    pub(super) claimed_at: Option<Timestamp>,
    /// Until when its worker counts as alive.
    #[serde(default, deserialize_with = "instant")]
    pub(super) lease_expires_at: Option<Timestamp>,
    /// Since when it waits.
    #[serde(default, deserialize_with = "instant")]
    pub(super) waiting_since: Option<Timestamp>,
    /// What it waits for.
    #[serde(default)]
    pub(super) waits_for: Vec<Wait>,
    /// Events that wait for it.
    #[serde(default)]
    pub(super) pending_events: u32,
    /// Whether somebody asked to cancel it.
    #[serde(default)]
    pub(super) cancel_requested: bool,
    /// Whether what it left open is being ended.
    #[serde(default)]
    pub(super) closing: bool,
    /// Why no worker can go on.
    pub(super) stuck: Option<Failure>,
    /// The failure its own code is dealing with.
    pub(super) failing: Option<Failing>,
    /// The deadline that ended it.
    pub(super) timeout_kind: Option<String>,
    /// Why it failed.
    pub(super) error: Option<Failure>,
    /// What that goes back to.
    pub(super) cause: Option<Cause>,
    /// The run's input.
    #[serde(default, deserialize_with = "present")]
    pub(super) input: Option<Box<RawValue>>,
    /// Its result.
    #[serde(default, deserialize_with = "present")]
    pub(super) output: Option<Box<RawValue>>,
    /// Its memo.
    #[serde(default, deserialize_with = "present")]
    pub(super) memo: Option<Box<RawValue>>,
    /// The execution it is a child of.
    pub(super) parent: Option<Parent>,
    /// Its labels.
    #[serde(default)]
    pub(super) labels: BTreeMap<String, String>,
    /// What happens next by itself.
    pub(super) next: Option<Next>,
}

/// Something begun that isn't over.
#[derive(Debug, Deserialize)]
pub(super) struct Wait {
    /// What sort: `step`, `child`, `timer`, `attempt`, `retry` or `event`.
    pub(super) kind: String,
    /// Its name in the run.
    pub(super) name: Option<String>,
    /// The task that a step is.
    pub(super) task: Option<String>,
    /// The execution that a child is.
    pub(super) execution: Option<String>,
    /// The number of an attempt that runs.
    pub(super) attempt: Option<u32>,
    /// Until when.
    #[serde(default, deserialize_with = "instant")]
    pub(super) until: Option<Timestamp>,
}

/// A failure that is being dealt with.
#[derive(Debug, Deserialize)]
pub(super) struct Failing {
    /// What went wrong.
    pub(super) error: Option<Failure>,
    /// By when that must be done.
    #[serde(default, deserialize_with = "instant")]
    pub(super) deadline_at: Option<Timestamp>,
}

/// What an end without a result goes back to.
#[derive(Debug, Deserialize)]
pub(super) struct Cause {
    /// `step`, `workflow`, `timeout`, `cancelled` or `terminated`.
    pub(super) category: String,
    /// The step.
    pub(super) step: Option<String>,
    /// Whether the step had used up its attempts.
    #[serde(default)]
    pub(super) retries_exhausted: bool,
}

/// The execution of which another is a part.
#[derive(Debug, Deserialize)]
pub(super) struct Parent {
    /// Its id.
    pub(super) id: String,
    /// Its run.
    pub(super) run: u32,
}

fn status<'de, D: Deserializer<'de>>(value: D) -> Result<ExecutionStatus, D::Error> {
    let name = String::deserialize(value)?;
    ExecutionStatus::parse(&name)
        .ok_or_else(|| serde::de::Error::custom(format!("unknown status {name}: a newer server?")))
}
