//! Concurrency limits by key.

use std::num::NonZeroU16;

use tickover_core::error::Reject;
use tickover_core::id::FlowKey;
use tickover_service::Service;

use tickover_wire::ConcurrencyLimit;
use tickover_wire::answer::{LimitAnswer, LimitsAnswer};
use tickover_wire::request::LimitRequest;

use crate::answer::Answer;
use crate::problem::Problem;
use crate::{body, name, view};

/// A key's limit, who has its places and who waits.
pub async fn limit(service: &Service, key: &str) -> Result<Answer, Problem> {
    answer(service.limit(&parsed(key)?).await?)
}

/// The keys at which something waits.
pub async fn limits(service: &Service) -> Result<Answer, Problem> {
    let (found, more) = service.full_keys().await?;
    Answer::ok(&LimitsAnswer { limits: found.into_iter().map(view::limit).collect(), more })
}

/// Sets a key's limit, whatever requests ask for.
pub async fn set_limit(service: &Service, key: &str, body: &[u8]) -> Result<Answer, Problem> {
    let key = parsed(key)?;
    let LimitRequest { limit: ConcurrencyLimit(limit) } = body::read(body)?;
    let limit = u16::try_from(limit).ok().and_then(NonZeroU16::new);
    let limit = limit.ok_or(Reject::field("limit", "must be 1 to 1,000"))?;
    answer(service.set_limit(&key, Some(limit)).await?)
}

/// Gives a key's limit back to the requests.
pub async fn unset_limit(service: &Service, key: &str) -> Result<Answer, Problem> {
    answer(service.set_limit(&parsed(key)?, None).await?)
}

/// Takes its place at a key from a task or an execution.
pub async fn release_place(service: &Service, key: &str, holder: &str) -> Result<Answer, Problem> {
    answer(service.release_place(&parsed(key)?, &name::owner(holder)?).await?)
}

/// Forgets all starts by a key's rate.
pub async fn reset_rate(service: &Service, key: &str) -> Result<Answer, Problem> {
    answer(service.reset_rate(&parsed(key)?).await?)
}

/// A key as it is in a path: see [`FlowKey::to_path`].
fn parsed(key: &str) -> Result<FlowKey, Reject> {
    FlowKey::from_path(key).map_err(|error| error.refused("key"))
}

fn answer(found: tickover_service::gates::LimitView) -> Result<Answer, Problem> {
    Answer::ok(&LimitAnswer { limit: view::limit(found) })
}
