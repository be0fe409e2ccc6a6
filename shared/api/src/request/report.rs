//! Claims and reports of workers.

use tickover_core::batch::{CLAIM_WAIT_MAX, fill_max};
use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::limits;
use tickover_core::queue::PROVIDES_MAX;
use tickover_core::task::Failure;
use tickover_service::claim::{ClaimRequest, Together};
use tickover_wire::request as wire;
use tickover_wire::{ClaimCount, FailureCode};

/// The service's request, and what its tasks have in common. A claim without a lease gets the deployment's default.
pub(crate) fn claim(
    given: wire::ClaimRequest,
    default_lease: Millis,
) -> Result<(ClaimRequest, Together), Reject> {
    let provides = given.provides.unwrap_or_default();
    limits::check("provides", provides.len(), PROVIDES_MAX)?;
    let request = ClaimRequest {
        worker: given.worker,
        max: given.max.map_or(1, |ClaimCount(max)| max),
        lease: given.lease.map_or(default_lease, Into::into),
        wait: given.wait.map(Into::into).unwrap_or_default(),
        provides,
    };
    let fill = given.fill.map(Millis::from).unwrap_or_default();
    let most = fill_max(request.lease);
    if fill > most {
        let message = format!("must be at most half of the lease, {most}, not {fill}");
        return Err(Reject::field("fill", message));
    }
    if request.wait.saturating_add(fill) > CLAIM_WAIT_MAX {
        let message =
            format!("must be at most {CLAIM_WAIT_MAX} together with `wait`, {}, not {fill}", request.wait);
        return Err(Reject::field("fill", message));
    }
    Ok((request, Together { same_key: given.same_key.unwrap_or_default(), fill }))
}

/// An error, and whether it is retryable.
pub(crate) fn failure(given: wire::FailError) -> (Failure, bool) {
    let FailureCode(code) = given.code;
    (Failure::new(code, given.message.unwrap_or_default()), given.retryable.unwrap_or(true))
}
