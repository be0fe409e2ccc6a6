//! Problems: the answers of calls that fail.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use tickover_core::id::TaskId;

use crate::Instant;

/// Why a call has no result: problem details (RFC 9457) with a stable `code`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Problem {
    /// A URI for the kind of problem: `urn:problem-type:tickover:` and the code.
    #[serde(rename = "type", default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub uri: String,
    /// The kind of problem in words, the same for every occurrence.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required, value_type = String))]
    pub title: Cow<'static, str>,
    /// The HTTP status.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub status: u16,
    /// This occurrence in words, for people.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub detail: String,
    /// The kind of problem, for programs. It is stable.
    #[cfg_attr(feature = "schema", schema(value_type = String, example = "invalid_request"))]
    pub code: Cow<'static, str>,
    /// `invalid_request`: the field that is wrong, as a path such as `retry.delay[2]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// `limit_exceeded`: the limit's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub limit: Option<Cow<'static, str>>,
    /// `limit_exceeded`: the requested value, in the limit's unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<u32>,
    /// `limit_exceeded`: the allowed value, in the limit's unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum: Option<u32>,
    /// `id_conflict`: when the record that has the id or the idempotency key was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Instant>,
    /// `id_conflict` of an idempotency key: the task that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The call can be repeated safely after this many seconds, and may then succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u16>,
}
