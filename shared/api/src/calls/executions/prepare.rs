//! A start as part of a transaction of the caller.

use tickover_core::id::ExecutionId;
use tickover_service::Service;
use tickover_service::transact::Prepared;

use crate::problem::Problem;
use crate::{body, request};

/// The writes that start an execution, and the messages to send after they are committed. The body is that of
/// [`start`](super::start).
pub async fn prepare(service: &Service, body: &[u8]) -> Result<Prepared<ExecutionId>, Problem> {
    Ok(service.prepare_start(request::start(body::read(body)?)?).await?)
}
