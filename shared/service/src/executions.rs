//! Executions: started, taken turn by turn, told of what they wait for, and closed.
//!
//! A worker's turn is a series of calls, each with the record as that worker last saw it, so that none of them needs
//! a read. Each is decided on by the core and committed under its condition. A worker that has lost the execution
//! meanwhile is refused by its lease.

mod close;
mod describe;
mod drive;
mod events;
mod notify;
mod operate;
mod orphans;
mod outcome;
mod rebase;
mod remote;
mod retention;
mod start;
#[cfg(test)]
pub(crate) mod tests;
mod turn;
mod waiters;
mod work;

use tickover_core::duration::Millis;
use tickover_core::execution::command::StartPolicy;
use tickover_core::execution::journal::Entry;
use tickover_core::execution::{Execution, ExecutionTimeouts, Parent, Slot};
use tickover_core::id::{ExecutionId, LeaseId, QueueName, StepName, TaskKind, WorkflowName};
use tickover_core::payload::Json;
use tickover_core::retry::RetryPolicy;
use tickover_core::timeout::Timeouts;
use tickover_core::trace::TraceContext;

pub(crate) use close::Look;
pub use describe::Described;
pub(crate) use drive::CALLER_WAITS;
pub use events::{EventSent, PendingEvent, PendingEvents};
pub use outcome::EndedStep;
pub use remote::remote_id;
pub(crate) use waiters::Waiters;
pub use work::Work;

/// A request for a new execution, parsed.
#[derive(Clone, Debug)]
pub struct StartRequest {
    /// Its id; random when absent.
    pub id: Option<ExecutionId>,
    pub workflow: WorkflowName,
    pub queue: QueueName,
    /// Whether the caller named no queue. Then it is the one whose workers say that they have the workflow, if any.
    pub any_queue: bool,
    pub input: Option<Json>,
    /// Labels, a JSON object of strings.
    pub labels: Option<Json>,
    /// Whatever the caller wants to find again with it.
    pub memo: Option<Json>,
    pub timeouts: ExecutionTimeouts,
    /// How long the code that runs after a failure has, where the caller knows that there is one.
    pub on_failure: Option<Millis>,
    pub delay: Millis,
    /// Whom it tells of its end.
    pub parent: Option<Parent>,
    /// The trace that it belongs to; of no account where traces aren't carried.
    pub trace: Option<TraceContext>,
    /// What happens if the id is taken.
    pub policy: StartPolicy,
}

impl StartRequest {
    /// A request with nothing but what every one needs.
    pub fn new(workflow: WorkflowName, queue: QueueName) -> Self {
        Self {
            id: None,
            workflow,
            queue,
            any_queue: false,
            input: None,
            labels: None,
            memo: None,
            timeouts: ExecutionTimeouts::default(),
            on_failure: None,
            delay: Millis::ZERO,
            parent: None,
            trace: None,
            policy: StartPolicy::default(),
        }
    }
}

/// An execution that exists now.
#[derive(Clone, Debug)]
pub struct Started {
    pub execution: Execution,
    pub existed: bool,
}

/// An execution in a worker's hands.
#[derive(Clone, Debug)]
pub struct StartedTurn {
    pub execution: Execution,
    /// The run's whole journal, the sealed part first.
    pub journal: Vec<Entry>,
    /// The run's input.
    pub input: Option<Json>,
    /// The fence of the turn.
    pub lease: LeaseId,
    /// The message that led to it: it stays in flight until the turn ends.
    pub receipt: Option<String>,
}

/// How a suspension was taken.
#[derive(Clone, Debug)]
pub enum Suspended {
    /// The turn is over.
    Done,
    /// Something has happened meanwhile: the turn goes on with this record and this journal.
    GoOn(Box<Execution>, Vec<Entry>),
}

/// A step that runs as a task of its own.
#[derive(Clone, Debug)]
pub struct RemoteStep {
    /// Its name in the run.
    pub name: StepName,
    /// What sort of work it is: by this, a worker finds its handler.
    pub kind: TaskKind,
    pub queue: QueueName,
    pub input: Option<Json>,
    pub retry: RetryPolicy,
    pub timeouts: Timeouts,
    /// Its place among those it is waited for together with.
    pub slot: Option<Slot>,
}
