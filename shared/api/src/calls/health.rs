//! The health check.

use tickover_service::Service;
use tickover_wire::answer::{Health, HealthAnswer};

use crate::answer::Answer;
use crate::problem::Problem;

/// Answers as soon as the server does. It doesn't read the store: a throttled table must not make a supervisor restart
/// the server. It lists the names of records that couldn't be read at the start, and says why a local server's disk
/// refuses writes.
pub fn health(service: &Service) -> Result<Answer, Problem> {
    let unreadable = service.unreadable();
    let storage = service.trouble();
    let is_well = unreadable.is_empty() && storage.is_none();
    let status = if is_well { Health::Ok } else { Health::Degraded };
    Answer::ok(&HealthAnswer { status: status.into(), unreadable, storage })
}
