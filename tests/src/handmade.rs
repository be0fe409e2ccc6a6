//! Records made by hand, for what is told of records and not of the rules that make them.

use tickover_core::due::{Due, DueKind};
use tickover_core::duration::Millis;
use tickover_core::execution::{Execution, ExecutionState, ExecutionTimeouts, FORMAT, Ready};
use tickover_core::id::{ExecutionId, Fingerprint, Incarnation, NameError, Nonce, QueueName, WorkflowName};
use tickover_core::time::Timestamp;

/// A plain execution of the workflow `w` in the queue `q`, started at that time, in the first shard of the due
/// index; its incarnation and its nonce are made of the number.
pub fn execution(id: &str, number: u64, now: Timestamp) -> Result<Execution, NameError> {
    Ok(Execution {
        format: FORMAT,
        id: ExecutionId::parse(id)?,
        incarnation: Incarnation::from_bytes(number.to_be_bytes()),
        version: 1,
        nonce: Nonce::from_bytes(number.to_be_bytes()),
        workflow: WorkflowName::parse("w")?,
        queue: QueueName::parse("q")?,
        created_at: now,
        fingerprint: Fingerprint::from_bytes([1; 16]),
        run: 1,
        run_started_at: now,
        input: None,
        details: None,
        timeouts: ExecutionTimeouts::default(),
        deadline_at: None,
        run_deadline_at: None,
        parent: None,
        trace: None,
        wakes: 0,
        idle_turns: 0,
        journal: vec![],
        sealed: None,
        open_steps: 0,
        pending_events: 0,
        on_failure: None,
        failing: None,
        cancel_requested: false,
        paused: false,
        kept: None,
        progress: None,
        parked: false,
        stuck: None,
        hinted_at: None,
        state: ExecutionState::Pending(Ready { available_at: now, hint_later: false }),
        due: Some(Due { at: now.plus(Millis::from_secs(600)), kind: DueKind::Backstop, shard: 0 }),
    })
}
