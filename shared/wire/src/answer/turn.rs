//! Answers to workers that run workflows. They carry records, journal entries and the like as those are stored: see
//! `docs/workers.md`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tickover_core::id::{ExecutionId, StepName, WorkflowName};

use super::Problem;
use crate::verbatim::present;
use crate::{Instant, LeaseToken, Verbatim};

/// Work that the caller has leased.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkAnswer {
    /// Tasks.
    pub tasks: Vec<WorkTaskView>,
    /// Turns of workflows.
    pub turns: Vec<WorkTurnView>,
    /// Executions that begin once a request says what limits their begin. They come back within a second.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<AskedLimitsView>,
    /// The limits of the deployment that a turn must keep.
    pub limits: TurnLimitsView,
}

/// A task that the caller has leased.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkTaskView {
    /// The record as it is stored.
    pub task: Verbatim,
    /// Its input as it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub input: Option<Verbatim>,
    /// The last details of the progress that an earlier attempt reported.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub details: Option<Verbatim>,
    /// The token for the worker's reports.
    pub lease: LeaseToken,
    /// When the lease expires.
    pub lease_expires_at: Instant,
    /// When the attempt must have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<Instant>,
    /// Whether it may have killed another worker.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
}

/// A turn that the caller has leased.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkTurnView {
    /// The record as it is stored, with the last entries of the run's journal.
    pub execution: Verbatim,
    /// The entries before those, as they are stored. Absent if there are none, or if they don't fit into the answer: then
    /// the worker reads them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Vec<Verbatim>>,
    /// The input of the run as it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub input: Option<Verbatim>,
    /// The token for the calls of the turn.
    pub lease: LeaseToken,
    /// The outcomes of open steps and children that have ended. Absent if they couldn't be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcomes: Option<Vec<OutcomeView>>,
    /// Large payloads that the journal and the outcomes point to, by their ids: as many as fit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub payloads: BTreeMap<String, Verbatim>,
    /// Whether it may have killed another worker.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
}

/// An execution about whose limits the worker is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AskedLimitsView {
    /// Its id.
    pub execution: ExecutionId,
    /// Its workflow.
    pub workflow: WorkflowName,
    /// Its input as it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub input: Option<Verbatim>,
}

/// Limits of a deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TurnLimitsView {
    /// The largest payload, in bytes.
    pub payload_bytes: u32,
    /// Most entries in the journal of a run.
    pub journal_entries: u32,
    /// Most steps that are waited for together.
    pub fan_out: u32,
    /// Most events that wait to be taken.
    pub pending_events: u32,
    /// Most steps and children that are open.
    pub open_steps: u32,
    /// Whether records keep the trace that they belong to.
    pub carry_trace: bool,
}

/// How a step or child has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct OutcomeView {
    /// Its name in the run.
    pub name: StepName,
    /// Its end, as it is stored: `outcome`, `expired`, `attempts` and `ended_at`.
    pub end: Verbatim,
}

/// What a worker has asked about its turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TurnAnswer {
    /// The record as it is stored.
    pub execution: Verbatim,
    /// The journal from the entry that was asked for, as much as fits. After a suspension that something has prevented:
    /// from its first entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<Vec<Verbatim>>,
    /// The outcomes of those that have ended, in the order of their ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outcomes: Vec<OutcomeView>,
    /// The payloads that exist, by their ids.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub payloads: BTreeMap<String, Verbatim>,
}

/// What was started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TurnStartAnswer {
    /// The steps that exist now, and those that are refused.
    pub steps: Vec<StartedView>,
    /// The children that exist now, and those that are refused.
    pub children: Vec<StartedView>,
    /// Why the others weren't started. The same call may start them later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<Problem>,
}

/// A step or child that exists now, or is refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StartedView {
    /// Its name in the run.
    pub name: StepName,
    /// Why it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Problem>,
}

/// The steps are ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TurnCancelAnswer {}

/// Where a payload is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TurnPayloadAnswer {
    /// The payload as entries have it: itself if it is small, or a pointer to it.
    pub payload: Verbatim,
}
