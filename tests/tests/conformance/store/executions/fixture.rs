//! Executions built without the rules: a store accepts any record.

use tickover_core::decision::{Condition, Write};
use tickover_core::execution::{Closed, Execution, ExecutionState, Parent, ParentClosePolicy, Slot, fixture};
use tickover_core::id::{ExecutionId, Incarnation, Nonce, StepName, WorkflowName};
use tickover_service::ports::StoreError;

use crate::store::fixture::{NOW, World, parsed, present};

impl World {
    /// A pending execution without further options.
    pub(super) fn execution(&self, id: &str) -> Execution {
        let (incarnation, nonce) = (self.incarnation(), self.nonce());
        Execution { id: execution_id(id), incarnation, nonce, ..fixture::pending(NOW) }
    }

    /// An execution with every field set.
    pub(super) fn full_execution(&self, id: &str) -> Execution {
        let Execution { id, incarnation, version, nonce, workflow, due, .. } = self.execution(id);
        Execution { id, incarnation, version, nonce, workflow, due, ..fixture::full(NOW) }
    }

    pub(super) fn incarnation(&self) -> Incarnation {
        Incarnation::from_bytes(*self.nonce().as_bytes())
    }

    /// The next version of a record, with a new nonce.
    pub(super) fn next_version(&self, before: &Execution) -> Execution {
        Execution { version: before.version + 1, nonce: self.nonce(), ..before.clone() }
    }

    /// Writes a new execution.
    pub(super) async fn start(&self, execution: Execution) -> Result<Execution, StoreError> {
        let write = Write::put(execution.clone(), Condition::Free { now: NOW });
        self.store.commit(&[write]).await?;
        Ok(execution)
    }

    /// Writes an execution without further options.
    pub(super) async fn started(&self, id: &str) -> Result<Execution, StoreError> {
        self.start(self.execution(id)).await
    }

    /// Writes the next version of a record.
    pub(super) async fn update(&self, before: &Execution, after: &Execution) -> Result<(), StoreError> {
        self.store.commit(&[updating(before, after)]).await
    }

    /// The record with a new state, written.
    pub(super) async fn turned(
        &self,
        before: &Execution,
        state: ExecutionState,
    ) -> Result<Execution, StoreError> {
        let after = Execution { state, ..self.next_version(before) };
        self.update(before, &after).await?;
        Ok(after)
    }

    /// A record that has ended, written.
    pub(super) async fn ended(&self, before: &Execution) -> Result<Execution, StoreError> {
        let after =
            Execution { state: ExecutionState::Ended(closed()), due: None, ..self.next_version(before) };
        self.update(before, &after).await?;
        Ok(after)
    }

    /// The record as the store has it.
    pub(super) async fn found(&self, execution: &Execution) -> Result<Execution, StoreError> {
        Ok(present(self.store.execution(&execution.id).await?))
    }
}

/// An update with no condition except that the record is unchanged.
pub(super) fn updating(before: &Execution, after: &Execution) -> Write {
    Write::replace(before.clone(), after.clone(), Condition::UNCHANGED)
}

pub(super) fn wake(execution: &Execution) -> Write {
    Write::Wake { id: execution.id.clone(), incarnation: execution.incarnation }
}

pub(super) fn execution_id(text: &str) -> ExecutionId {
    parsed(ExecutionId::parse(text))
}

pub(super) fn workflow(text: &str) -> WorkflowName {
    parsed(WorkflowName::parse(text))
}

pub(super) fn step(text: &str) -> StepName {
    parsed(StepName::parse(text))
}

/// The first run of an execution as a parent.
pub(super) fn parent_of(id: &str, incarnation: Incarnation) -> Parent {
    Parent {
        execution: execution_id(id),
        incarnation,
        run: 1,
        again: 0,
        slot: None,
        step: None,
        work: None,
        on_close: ParentClosePolicy::default(),
    }
}

pub(super) fn slot(place: u16) -> Slot {
    Slot { label: Nonce::from_bytes([4; 8]), item: 0, place, of: 100 }
}

/// An outcome whose retention ends long after every case.
pub(super) fn closed() -> Closed {
    fixture::closed(NOW)
}

pub(super) fn running() -> ExecutionState {
    fixture::running(NOW)
}

/// The state of a waiting execution that has seen so many wakes.
pub(super) fn waiting(seen_wakes: u64) -> ExecutionState {
    fixture::waiting(NOW, seen_wakes)
}

/// The record in a conflict.
pub(super) fn conflicting<T: std::fmt::Debug>(result: Result<T, StoreError>) -> Option<Execution> {
    match result {
        Err(StoreError::Conflict { current }) => {
            current.and_then(|current| Execution::try_from(current).ok())
        }
        other => panic!("not a conflict: {other:?}"),
    }
}
