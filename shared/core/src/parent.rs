//! What a remote step or child knows of the execution that it belongs to.

use serde::{Deserialize, Serialize};

use crate::id::{ExecutionId, Incarnation, Nonce};

/// Whom a task or an execution tells of its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// The execution.
    #[serde(rename = "e")]
    pub execution: ExecutionId,
    /// Its incarnation: another one of the same id isn't told.
    #[serde(rename = "i")]
    pub incarnation: Incarnation,
    /// Its run: a later one isn't told either.
    #[serde(rename = "r")]
    pub run: u32,
    /// Its place in a join, if many are waited for together: only the last one of them tells.
    #[serde(rename = "j", default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<Slot>,
    /// What becomes of a child execution when its parent closes. A remote step always ends then.
    #[serde(rename = "c", default, skip_serializing_if = "ParentClosePolicy::is_default")]
    pub on_close: ParentClosePolicy,
}

/// A place in a join item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// The fan-out: a digest of its label.
    #[serde(rename = "l")]
    pub label: Nonce,
    /// Which of its join items, each of up to [`JOIN_MAX`](crate::execution::journal::JOIN_MAX).
    #[serde(rename = "n")]
    pub item: u16,
    /// Which place of that item, from 0.
    #[serde(rename = "p")]
    pub place: u16,
    /// How many places that item has.
    #[serde(rename = "o")]
    pub of: u16,
}

/// What becomes of a child execution when its parent closes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParentClosePolicy {
    /// It goes on by itself.
    #[default]
    Abandon,
    /// It is asked to cancel.
    RequestCancel,
    /// It is ended at once.
    Terminate,
}

impl ParentClosePolicy {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
