//! Claims and reports of workers.

use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::limits;
use tickover_core::queue::PROVIDES_MAX;
use tickover_core::task::Failure;
use tickover_service::claim::ClaimRequest;
use tickover_wire::request as wire;
use tickover_wire::{ClaimCount, FailureCode};

/// The service's request. A claim without a lease gets the deployment's default.
pub(crate) fn claim(given: wire::ClaimRequest, default_lease: Millis) -> Result<ClaimRequest, Reject> {
    let provides = given.provides.unwrap_or_default();
    limits::check("provides", provides.len(), PROVIDES_MAX)?;
    Ok(ClaimRequest {
        worker: given.worker,
        max: given.max.map_or(1, |ClaimCount(max)| max),
        lease: given.lease.map_or(default_lease, Into::into),
        wait: given.wait.map(Into::into).unwrap_or_default(),
        provides,
    })
}

/// An error, and whether it is retryable.
pub(crate) fn failure(given: wire::FailError) -> (Failure, bool) {
    let FailureCode(code) = given.code;
    (Failure::new(code, given.message.unwrap_or_default()), given.retryable.unwrap_or(true))
}
