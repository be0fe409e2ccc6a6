//! Who has changed a record.

use serde::{Deserialize, Serialize};
use tickover_core::id::OperationId;

/// The operator whose call has changed a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ByView {
    /// The caller, as the server knows it: the principal of IAM, the subject of a token, or a word such as `local`; absent if
    /// that isn't known. For what an operation did, whoever started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// The operation on many records that did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationId>,
    /// Why, as the caller has said. Of a long one beside a caller's long name, only the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// For people.
impl std::fmt::Display for ByView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.caller, &self.operation) {
            (Some(caller), Some(operation)) => write!(f, "{caller}, operation {operation}")?,
            (Some(caller), None) => f.write_str(caller)?,
            (None, Some(operation)) => write!(f, "operation {operation}")?,
            (None, None) => f.write_str("unknown")?,
        }
        self.reason.as_ref().map_or(Ok(()), |reason| write!(f, " ({reason})"))
    }
}
