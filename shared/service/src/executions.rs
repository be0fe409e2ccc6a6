//! Executions: started, run turn by turn, notified of what they wait for, and closed.
//!
//! A worker's turn is a series of calls, each with the last record that this worker has seen, so that no call needs a
//! read. The core decides each call, and the write has a condition. A worker that has lost its lease meanwhile is
//! refused.

mod answers;
mod begin;
mod children;
mod close;
mod count;
mod describe;
mod drive;
mod elsewhere;
mod ends;
mod events;
mod export;
mod kept;
mod notify;
mod operate;
mod orphans;
mod outcome;
mod rebase;
mod remote;
mod retention;
mod runs;
mod single;
mod start;
#[cfg(test)]
pub(crate) mod tests;
mod turn;
mod values;
mod waiters;
mod work;

use serde::{Deserialize, Serialize};
use tickover_core::duration::Millis;
use tickover_core::execution::command::StartPolicy;
use tickover_core::execution::journal::Entry;
use tickover_core::execution::{Execution, ExecutionTimeouts, Parent, Slot};
use tickover_core::flow::FlowRequest;
use tickover_core::id::{ExecutionId, LeaseId, QueueName, StepName, TaskKind, WorkflowName};
use tickover_core::kind::Policy;
use tickover_core::lane::Lane;
use tickover_core::payload::Json;
use tickover_core::retry::RetryPolicy;
use tickover_core::timeout::Timeouts;
use tickover_core::trace::TraceContext;

pub use begin::{ChildToStart, StartedWork, ToStart};
pub(crate) use close::DueCause;
pub use count::{COUNTED_MAX, ExecutionCounts};
pub use describe::Described;
pub(crate) use describe::ONE_WORKFLOW;
pub(crate) use drive::CALLER_WAITS;
pub use elsewhere::{Brought, NamedEnd, PAYLOADS_MAX, Seen, TurnWrite, TurnWritten, check_flow};
pub use ends::UnrecordedEnds;
pub(crate) use events::blob_of_event;
pub use events::{EventSent, PendingEvent, PendingEvents, SentEvent};
pub use export::ExportedPage;
pub use operate::Again;
pub(crate) use orphans::MayStart;
pub use outcome::EndedStep;
pub use remote::{Begun, idempotency_key, remote_id};
pub use runs::Run;
pub(crate) use waiters::Waiters;
pub use work::Work;

/// A parsed request for a new execution. As JSON, it is that for a child of an execution, whose turn a worker elsewhere runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartRequest {
    /// Its id; random when absent.
    pub id: Option<ExecutionId>,
    pub workflow: WorkflowName,
    pub queue: QueueName,
    /// Whether the caller named no queue. Then the queue is the one whose workers announced the workflow, if any.
    #[serde(skip)]
    pub any_queue: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
    /// Labels, a JSON object of strings.
    #[serde(skip)]
    pub labels: Option<Json>,
    /// Any JSON that the caller stores with the execution.
    #[serde(skip)]
    pub memo: Option<Json>,
    /// The event with which it starts. An execution that has the id, or the key, already gets it instead.
    #[serde(skip)]
    pub event: Option<SentEvent>,
    #[serde(default, skip_serializing_if = "ExecutionTimeouts::is_none")]
    pub timeouts: ExecutionTimeouts,
    /// The timeout of the code that runs after a failure, if the caller knows that there is such code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<Millis>,
    #[serde(skip)]
    pub delay: Millis,
    /// The execution to notify of its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// The trace that it belongs to; ignored where traces aren't carried.
    #[serde(skip)]
    pub trace: Option<TraceContext>,
    /// Where the hints of its turns stand in their queue; see [`lane`](crate::flow::lane).
    #[serde(default, skip_serializing_if = "Lane::is_plain")]
    pub lane: Lane,
    /// What limits its start: `concurrency`, `rate`, `unique` and `debounce`. The others of its fields don't count.
    #[serde(default)]
    pub flow: Box<FlowRequest>,
    /// What happens if the id is taken.
    #[serde(skip)]
    pub policy: StartPolicy,
}

impl StartRequest {
    /// A request with only the required fields.
    pub fn new(workflow: WorkflowName, queue: QueueName) -> Self {
        Self {
            id: None,
            workflow,
            queue,
            any_queue: false,
            input: None,
            labels: None,
            memo: None,
            event: None,
            timeouts: ExecutionTimeouts::default(),
            on_failure: None,
            delay: Millis::ZERO,
            parent: None,
            trace: None,
            lane: Lane::default(),
            flow: Box::default(),
            policy: StartPolicy::default(),
        }
    }
}

/// An execution that exists now, new or found.
#[derive(Clone, Debug)]
pub struct Started {
    pub execution: Execution,
    pub existed: bool,
}

/// A turn that a worker has leased.
#[derive(Clone, Debug)]
pub struct StartedTurn {
    pub execution: Execution,
    /// The run's whole journal, the sealed segments first.
    pub journal: Vec<Entry>,
    /// What the journal has more than what the worker keeps in memory, see [`with_kept`](crate::Service::with_kept). Then
    /// neither the journal nor the input is read.
    pub since: Option<Vec<Entry>>,
    pub input: Option<Json>,
    /// The fence of the turn.
    pub lease: LeaseId,
    /// The message of the turn: it stays in flight until the turn ends.
    pub receipt: Option<String>,
    /// The outcomes of open steps and children that came with a claim of another process's work.
    pub brought: Option<Vec<NamedEnd>>,
}

/// The result of a suspension.
#[derive(Clone, Debug)]
pub enum Suspended {
    /// The turn has ended, with this record.
    Done(Box<Execution>),
    /// The execution was woken meanwhile: the turn continues with this record and this journal.
    Continue(Box<Execution>, Vec<Entry>),
}

/// A step that runs as its own task.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoteStep {
    /// Its name in the run.
    pub name: StepName,
    /// The kind of the task, by which a worker finds its code.
    pub kind: TaskKind,
    pub queue: QueueName,
    /// Whether the step named no queue: then one whose workers provide what it requires goes before `queue`.
    #[serde(default)]
    pub any_queue: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
    #[serde(default)]
    pub retry: RetryPolicy,
    #[serde(default)]
    pub timeouts: Timeouts,
    /// The time that its run and execution have left: its timeout is no longer, whatever the kind's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<Millis>,
    /// What its starts are limited or ordered by.
    #[serde(default)]
    pub flow: FlowRequest,
    /// Policies that were given although they are equal to their absence: the defaults of the kind don't replace them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given: Vec<Policy>,
    /// Its slot in the join, if others are waited for together with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<Slot>,
}
