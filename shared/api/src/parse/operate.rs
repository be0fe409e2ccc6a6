//! What operators ask for.

use tickover_core::error::Reject;

use super::Object;

/// The fields of cancel.
pub(crate) const CANCEL_FIELDS: &[&str] = &["force"];

/// Whether to end the task even while a worker has it.
pub(crate) fn cancel(object: &Object<'_>) -> Result<bool, Reject> {
    object.get("force").map_or(Ok(false), |field| field.boolean())
}
