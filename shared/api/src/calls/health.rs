//! Whether the server is well.

use tickover_service::Service;

use crate::answer::Answer;
use crate::problem::Problem;
use crate::view::HealthAnswer;

/// That the server answers. It asks nothing of the store: whoever restarts servers that don't answer shouldn't because a
/// table throttles. Of records that couldn't be read at the start it tells the names.
pub fn health(service: &Service) -> Result<Answer, Problem> {
    let unreadable = service.unreadable();
    let status = if unreadable.is_empty() { "ok" } else { "degraded" };
    Answer::ok(&HealthAnswer { status, unreadable })
}
