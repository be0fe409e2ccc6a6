//! A request for work.

use tickover_core::duration::{Millis, ZeroRule};
use tickover_core::error::Reject;
use tickover_core::id::WorkerName;
use tickover_core::limits::{CLAIM_MAX, LEASE_RANGE, WAIT_MAX};
use tickover_service::claim::ClaimRequest;

use super::{Field, Object};

/// All fields of the request, the same for a queue and for a single task.
pub(crate) const CLAIM_FIELDS: &[&str] = &["worker", "max", "lease", "wait"];

/// Reads the request; the lease is the deployment's where none is asked for.
pub(crate) fn claim(object: &Object<'_>, default_lease: Millis) -> Result<ClaimRequest, Reject> {
    let lease =
        |field: Field<'_>| field.span_within(field.span(ZeroRule::Reject)?, LEASE_RANGE.0, LEASE_RANGE.1);
    let wait = |field: Field<'_>| field.span_within(field.span(ZeroRule::Allow)?, Millis::ZERO, WAIT_MAX);
    Ok(ClaimRequest {
        worker: object.get("worker").map(|field| field.name(WorkerName::parse)).transpose()?,
        max: object.get("max").map_or(Ok(1), |field| field.integer(1, CLAIM_MAX))?,
        lease: object.get("lease").map_or(Ok(default_lease), lease)?,
        wait: object.get("wait").map_or(Ok(Millis::ZERO), wait)?,
    })
}
