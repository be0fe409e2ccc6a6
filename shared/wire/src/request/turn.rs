//! Requests of workers that run workflows. They carry records, journal entries and the like as those are stored: see
//! `docs/workers.md`.

use serde::{Deserialize, Serialize};
use tickover_core::id::{
    Capability, EventName, ExecutionId, StepName, TaskKind, WorkerName, WorkerVersion, WorkflowName,
};

use crate::verbatim::present;
use crate::{Attempts, ClaimCount, Duration, Instant, Lease, LeaseToken, RunTimeout, Verbatim, Wait};

/// A request for work: tasks and turns of workflows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkRequest {
    /// The worker's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerName>,
    /// The version of the worker's code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<WorkerVersion>,
    /// How many pieces of work, at most; 1 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<ClaimCount>,
    /// How long the leases last without a heartbeat: 1 s to 12 h, 60 s by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
    /// How long to wait for the first piece: at most 20 s, not at all by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<Wait>,
    /// What the worker provides, as in a claim of tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(max_items = 32))]
    pub provides: Option<Vec<Capability>>,
    /// The kinds of tasks that the worker has code for. Tasks of others are left to other workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<TaskKind>>,
    /// The workflows that the worker has code for. The worker also gets turns of others, which it releases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflows: Option<Vec<WorkerWorkflow>>,
    /// Whether it may get one piece of work that may have killed another worker. It then asks for no other one until that
    /// has ended. `false` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alone: Option<bool>,
    /// What limits the begin of executions that earlier answers have asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Vec<BeginLimits>>,
}

/// A workflow that a worker has code for. What it says of limits counts where the start said nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkerWorkflow {
    /// Its name.
    pub name: WorkflowName,
    /// Whether starts that name no queue go to this queue. `false` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub announce: Option<bool>,
    /// The time limit of all runs of an execution together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_timeout: Option<RunTimeout>,
    /// The time limit of each run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_timeout: Option<RunTimeout>,
    /// The time limit of its failure handler, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure_timeout: Option<RunTimeout>,
    /// How many attempts a run has, if a failed one is run again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<Attempts>,
    /// Whether its code limits the begin of executions. Then answers ask about those whose start said nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<bool>,
}

/// What limits the begin of an execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BeginLimits {
    /// The execution's id.
    pub execution: ExecutionId,
    /// Flow control as it is stored: `{}` for none.
    pub flow: Verbatim,
}

/// What a turn has done. At most one of `heartbeat`, `suspend`, `close` and `release` is given. With none of them, the turn
/// goes on.
///
/// The call can be repeated: entries that the journal has already aren't added again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TurnWriteRequest {
    /// The token that the claim gave.
    pub lease: LeaseToken,
    /// `ver` of the record that the worker knows.
    pub seen_version: u64,
    /// How many entries the run's journal had with that record.
    pub seen_entries: u32,
    /// New entries as they are stored, oldest first, of at most 16 KiB each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries: Option<Vec<Verbatim>>,
    /// All values that the execution publishes, if the code has published others since: a payload as it is stored, of an
    /// object with an array of version, instant in milliseconds and value by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Verbatim>,
    /// How long the code for a failure may take, if the workflow has such code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure_timeout: Option<RunTimeout>,
    /// How long the code for a cancellation may take, if the workflow has such code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_cancel_timeout: Option<RunTimeout>,
    /// Whether the code has something to undo if it ends early. `false` by default. With `release`: if neither this nor one of
    /// the two time limits is given, it may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undoes: Option<bool>,
    /// All attempts with a timeout that run in the turn, as they are stored. By default those that the entries start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timed_attempts: Option<Vec<Verbatim>>,
    /// Whether the lease is extended too. `false` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat: Option<bool>,
    /// The turn ends, because the code waits, unless something has happened that the worker hasn't seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<TurnSuspension>,
    /// The run ends: its ending, as `{"outcome": …}`, `{"failed_run": …}` or `{"continue_as_new": …}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub close: Option<Verbatim>,
    /// The turn is given back. Entries aren't written then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<TurnRelease>,
}

/// Why a turn is suspended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TurnSuspension {
    /// `wak` of the record with which the worker last read outcomes.
    pub seen_wakes: u64,
    /// When the code can go on by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Instant>,
    /// Whether it waits for remote steps or children. `false` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub awaits_others: Option<bool>,
    /// The events that it waits for without a timeout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<EventName>>,
}

/// A turn that is given back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TurnRelease {
    /// How long until another worker may start a turn: not at all by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Duration>,
    /// `by_worker` (default), `by_code`, or an object `panicked` or `stuck`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub reason: Option<Verbatim>,
}

/// What a worker wants to know about its turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TurnReadRequest {
    /// The token that the claim gave.
    pub lease: LeaseToken,
    /// The journal from this entry on, counted from 0: as much as fits into an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u32>,
    /// Remote steps whose outcomes are read. All of them were started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<StepName>>,
    /// Executions whose outcomes are read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children: Option<Vec<AwaitedExecution>>,
    /// Large payloads, by the ids that entries have: at most 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(max_items = 100))]
    pub payloads: Option<Vec<String>>,
}

/// An execution that a turn waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AwaitedExecution {
    /// Its name in the run: `child:` and more for a child of it.
    pub name: StepName,
    /// Its id.
    pub execution: ExecutionId,
}

/// What a turn starts. What exists already stays as it is, so the call can be repeated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TurnStartRequest {
    /// The token that the claim gave.
    pub lease: LeaseToken,
    /// Remote steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<Verbatim>>,
    /// The steps among them that an operator has had run again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again: Option<Vec<StepName>>,
    /// Those among these that an operator has given an input, which is in the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with_input: Option<Vec<StepName>>,
    /// Children.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children: Option<Vec<Verbatim>>,
}

/// Remote steps that a turn no longer waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TurnCancelRequest {
    /// The token that the claim gave.
    pub lease: LeaseToken,
    /// Their names.
    pub steps: Vec<StepName>,
}

/// A large payload of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TurnPayloadRequest {
    /// The token that the claim gave.
    pub lease: LeaseToken,
    /// Any JSON, at most 350 KiB and 64 levels deep. It is kept as it is.
    pub payload: Verbatim,
}

/// A request for the token with which a wait of a turn ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TurnCallbackRequest {
    /// The token that the claim gave.
    pub lease: LeaseToken,
    /// The event that the wait takes.
    pub event: EventName,
    /// Until when the token is valid.
    pub expires_at: Instant,
}
