//! An execution as a client sees it.

use tickover_core::execution::{Execution, ExecutionState, ExecutionStatus, Stuck};
use tickover_core::id::ExecutionId;
use tickover_core::payload::{Json, Payload};
use tickover_core::time::Timestamp;
use tickover_service::executions::Described;

use super::Outcome;
use crate::error::Failure;

/// An execution as it stood when it was asked for. Lists and operators' calls leave out payloads that are large.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Its id, the same for all its runs.
    pub id: ExecutionId,
    /// Which code it runs.
    pub workflow: String,
    /// Where workers find it.
    pub queue: String,
    /// Where it stands.
    pub status: ExecutionStatus,
    /// Number of the run, from 1: continuing as new, a restart and a rerun begin another one.
    pub run: u32,
    /// When it was started.
    pub created_at: Timestamp,
    /// When this run was begun.
    pub run_started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// When it must have ended, whatever the number of runs.
    pub deadline_at: Option<Timestamp>,
    /// When this run must have ended.
    pub run_deadline_at: Option<Timestamp>,
    /// While waiting: when it goes on by itself.
    pub wakes_at: Option<Timestamp>,
    /// Remote steps and children that were begun and haven't ended.
    pub open_steps: u32,
    /// Events that nobody has taken yet.
    pub pending_events: u32,
    /// Whether somebody asked to cancel it.
    pub cancel_requested: bool,
    /// Why no worker can go on with it: `unknown_workflow` or `unreadable_result`.
    pub stuck: Option<Failure>,
    /// How it ended, if it has.
    pub outcome: Option<Outcome>,
    /// The run's input.
    pub input: Option<Json>,
    /// Its labels, an object of strings.
    pub labels: Option<Json>,
    /// Its memo.
    pub memo: Option<Json>,
}

impl Description {
    /// Whether it still goes on.
    pub fn is_live(&self) -> bool {
        self.status.is_live()
    }

    pub(super) fn of(described: Described) -> Self {
        let Described { execution, input, labels, memo, output } = described;
        Self { input, labels, memo, ..Self::of_record(&execution, output.as_ref()) }
    }

    /// What the record itself says; payloads that lie elsewhere are left out.
    pub(super) fn of_record(execution: &Execution, output: Option<&Json>) -> Self {
        let closed = execution.closed();
        Self {
            id: execution.id.clone(),
            workflow: execution.workflow.to_string(),
            queue: execution.queue.to_string(),
            status: execution.status(),
            run: execution.run,
            created_at: execution.created_at,
            run_started_at: execution.run_started_at,
            ended_at: closed.map(|closed| closed.ended_at),
            deadline_at: execution.deadline_at,
            run_deadline_at: execution.run_deadline_at,
            wakes_at: wakes_at(&execution.state),
            open_steps: execution.open_steps,
            pending_events: execution.pending_events,
            cancel_requested: execution.cancel_requested,
            stuck: execution.stuck.as_ref().map(stuck),
            outcome: closed.map(|closed| Outcome::of(&closed.outcome, output)),
            input: inline(execution.input.as_ref()),
            labels: None,
            memo: None,
        }
    }
}

fn inline(payload: Option<&Payload>) -> Option<Json> {
    match payload? {
        Payload::Inline(json) => Some(json.clone()),
        Payload::Blob(_) => None,
    }
}

const fn wakes_at(state: &ExecutionState) -> Option<Timestamp> {
    match state {
        ExecutionState::Waiting(waiting) => waiting.until,
        ExecutionState::Pending(_)
        | ExecutionState::Running(_)
        | ExecutionState::Closing(_)
        | ExecutionState::Ended(_) => None,
    }
}

fn stuck(stuck: &Stuck) -> Failure {
    match stuck {
        Stuck::UnknownWorkflow { tries } => {
            let message = format!("no worker that took it knows its workflow; tried so far: {tries}");
            Failure::new("unknown_workflow", message)
        }
        Stuck::Unreadable(failure) => Failure::new(failure.code.as_str(), failure.message.as_str()),
        Stuck::Code { failure, tries } => {
            Failure::new(failure.code.as_str(), format!("{}; tried so far: {tries}", failure.message))
        }
    }
}
