//! Whether the server is well.

use tickover_service::Service;
use tickover_wire::answer::{Health, HealthAnswer};

use crate::answer::Answer;
use crate::problem::Problem;

/// That the server answers. It asks nothing of the store: whoever restarts servers that don't answer shouldn't because a
/// table throttles. Of records that couldn't be read at the start it tells the names.
pub fn health(service: &Service) -> Result<Answer, Problem> {
    let unreadable = service.unreadable();
    let status = if unreadable.is_empty() { Health::Ok } else { Health::Degraded };
    Answer::ok(&HealthAnswer { status: status.into(), unreadable })
}
