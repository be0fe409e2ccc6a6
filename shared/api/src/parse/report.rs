//! What workers report.

use tickover_core::error::Reject;
use tickover_core::id::TaskId;
use tickover_core::payload::Json;
use tickover_core::task::Failure;

use super::{Object, task_id};

/// The fields of complete.
pub(crate) const COMPLETE_FIELDS: &[&str] = &["lease", "output"];
/// The fields of an entry of a batch of completions.
pub(crate) const COMPLETE_ENTRY_FIELDS: &[&str] = &["id", "lease", "output"];
/// The fields of fail.
pub(crate) const FAIL_FIELDS: &[&str] = &["lease", "error"];
/// The fields of the error in fail.
pub(crate) const ERROR_FIELDS: &[&str] = &["code", "message", "retryable"];
/// The fields of heartbeat.
pub(crate) const HEARTBEAT_FIELDS: &[&str] = &["lease", "progress"];
/// The fields of release.
pub(crate) const RELEASE_FIELDS: &[&str] = &["lease"];

/// A result.
pub(crate) struct Completion {
    pub(crate) lease: String,
    pub(crate) output: Option<Json>,
}

/// A result among others.
pub(crate) struct CompleteEntry {
    pub(crate) id: TaskId,
    pub(crate) completion: Completion,
}

/// An error.
pub(crate) struct FailReport {
    pub(crate) lease: String,
    pub(crate) error: Failure,
    pub(crate) retryable: bool,
}

/// A sign of life.
pub(crate) struct SignOfLife {
    pub(crate) lease: String,
    pub(crate) progress: Option<f64>,
}

fn lease(object: &Object<'_>) -> Result<String, Reject> {
    let field = object.require("lease", "the token that the claim gave")?;
    let text = field.text()?;
    if text.is_empty() {
        return Err(field.wrong("the token that the claim gave"));
    }
    Ok(text)
}

pub(crate) fn complete(object: &Object<'_>) -> Result<Completion, Reject> {
    let output = object.get_with_null("output").map(|field| field.payload());
    Ok(Completion { lease: lease(object)?, output })
}

pub(crate) fn complete_entry(object: &Object<'_>) -> Result<CompleteEntry, Reject> {
    let id = object.require("id", "the task's id")?;
    Ok(CompleteEntry { id: task_id(id.path(), &id.text()?)?, completion: complete(object)? })
}

pub(crate) fn fail(object: &Object<'_>) -> Result<FailReport, Reject> {
    let lease = lease(object)?;
    let error = object.require("error", "an object {code, message, retryable}")?.object(ERROR_FIELDS)?;
    let code = error.require("code", "what sort of error it is")?;
    let text = code.text()?;
    if text.is_empty() {
        return Err(code.refuse("must not be empty"));
    }
    let message = error.get("message").map_or(Ok(String::new()), |field| field.text())?;
    let retryable = error.get("retryable").map_or(Ok(true), |field| field.boolean())?;
    Ok(FailReport { lease, error: Failure::new(text, message), retryable })
}

pub(crate) fn heartbeat(object: &Object<'_>) -> Result<SignOfLife, Reject> {
    const PROGRESS: &str = "a number from 0 to 1";
    let lease = lease(object)?;
    let Some(field) = object.get("progress") else { return Ok(SignOfLife { lease, progress: None }) };
    let progress = field.number(PROGRESS)?;
    if !(0.0..=1.0).contains(&progress) {
        return Err(field.wrong(PROGRESS));
    }
    Ok(SignOfLife { lease, progress: Some(progress) })
}

pub(crate) fn release(object: &Object<'_>) -> Result<String, Reject> {
    lease(object)
}
