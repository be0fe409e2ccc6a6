//! Operations on many executions or tasks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tickover_core::id::OperationId;

use super::ByView;
use crate::verbatim::present;
use crate::word::words;
use crate::{Cursor, Instant, OpenAction, OpenOperationStatus, Verbatim};

words! {
    /// The status of an operation.
    OperationStatus {
        /// Not all of its pages are done.
        Running = "running",
        /// It was stopped, and its last page isn't counted yet.
        Stopping = "stopping",
        /// All records were found and handled.
        Completed = "completed",
        /// It was stopped before its end.
        Stopped = "stopped",
        /// It could not go on.
        Failed = "failed",
    }
}

/// An operation. Its counts are those of the pages that are done. If its process was cut off within a page, the page is
/// done again: what had been changed counts as changed, as far as it still matches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct OperationView {
    /// Its id.
    pub id: OperationId,
    /// What it does with each record.
    pub action: OpenAction,
    /// Whether it only counts.
    pub dry_run: bool,
    /// Its status.
    pub status: OpenOperationStatus,
    /// When it was asked for. It leaves alone what started or ended later.
    pub created_at: Instant,
    /// Who asked for it, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<ByView>,
    /// Who stopped it, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<ByView>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Instant>,
    /// When it may be deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Instant>,
    /// How many records there are: as many as the listed ids, or as the request has counted; absent if it hasn't.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Records that it was for, of the pages that are done.
    pub matched: u64,
    /// Those that it changed.
    pub changed: u64,
    /// Those that were as wanted already, or were left alone.
    pub unchanged: u64,
    /// Those for which the action was refused, by the code of the error. Listed ids without a record are `not_found` here,
    /// and aren't in `matched`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, u64>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The executions that were asked for. Lists leave out a request that is too large for the record.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub executions: Option<Verbatim>,
    /// The tasks that were asked for, in the same way.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub tasks: Option<Verbatim>,
    /// The event, in the same way.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub event: Option<Verbatim>,
}

/// An operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct OperationAnswer {
    /// The operation.
    pub operation: OperationView,
}

/// A page of operations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct OperationsAnswer {
    /// The operations, latest first.
    pub operations: Vec<OperationView>,
    /// The cursor of the next page; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
}

/// An operation that was to be stopped, or to go on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct OperationChangeAnswer {
    /// The operation.
    pub operation: OperationView,
    /// Whether the call has changed it.
    pub changed: bool,
}
