//! The reference of a remote step or child to the execution that it belongs to.

use serde::{Deserialize, Serialize};

use crate::id::{ExecutionId, Incarnation, Nonce, StepName};

/// The execution to notify when a task or an execution ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    #[serde(rename = "e")]
    pub execution: ExecutionId,
    /// The parent's incarnation. An execution with the same id and another incarnation isn't notified.
    #[serde(rename = "i")]
    pub incarnation: Incarnation,
    /// The parent's run. A later run isn't notified either.
    #[serde(rename = "r")]
    pub run: u32,
    /// How many times an operator had had this child run again by then, in that run.
    #[serde(rename = "a", default, skip_serializing_if = "is_zero")]
    pub again: u32,
    /// The name of the remote step. Kept while the task's record has space for it: only people and logs read it.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepName>,
    /// The run whose work the remote step repeats, if a rerun has asked for it.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub work: Option<u32>,
    /// Its slot in a join, if the parent waits for many together. Only the last one to end notifies the parent.
    #[serde(rename = "j", default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<Slot>,
    /// What happens to a child execution when its parent closes. A remote step is always cancelled then.
    #[serde(rename = "c", default, skip_serializing_if = "ParentClosePolicy::is_default")]
    pub on_close: ParentClosePolicy,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires this signature")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A slot in a join item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// The fan-out: a digest of its label.
    #[serde(rename = "l")]
    pub label: Nonce,
    /// The index of the join item. Each has up to [`JOIN_MAX`](crate::execution::journal::JOIN_MAX) slots.
    #[serde(rename = "n")]
    pub item: u16,
    /// The index of the slot in that item, from 0.
    #[serde(rename = "p")]
    pub place: u16,
    /// The number of slots of that item.
    #[serde(rename = "o")]
    pub of: u16,
}

/// What happens to a child execution when its parent closes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParentClosePolicy {
    /// It continues.
    #[default]
    Abandon,
    /// It is asked to cancel.
    RequestCancel,
    /// It is ended at once.
    Terminate,
}

impl ParentClosePolicy {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires this signature")]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
