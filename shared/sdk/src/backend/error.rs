//! The errors of another process's service, as those of a service here.

use tickover_core::error::Reject;
use tickover_service::ServiceError;
use tickover_wire::answer::Problem;

use crate::client::ClientError;

/// The codes of refusals that need no variant of their own.
const CODES: [&str; 11] = [
    "invalid_request",
    "not_found",
    "unknown_step",
    "unknown_queue",
    "deadline_exceeded",
    "already_terminal",
    "not_terminal",
    "id_conflict",
    "not_unique",
    "unknown_callback",
    "callbacks_off",
];
/// The limits that the engine distinguishes.
const LIMITS: [&str; 6] =
    ["details", "payload_bytes", "journal_entries", "open_steps", "pending_events", "fan_out"];

/// Whether the same call is sent again after a pause. Contention is the engine's own matter: it looks at the journal again.
pub(super) fn is_passing(error: &ClientError) -> bool {
    error.is_transient() && error.code() != Some("contended")
}

/// `lost` is the refusal of a lease that is lost.
pub(super) fn service_error(error: ClientError, lost: &Reject) -> ServiceError {
    match error {
        ClientError::Refused(problem) => of_problem(&problem, lost),
        ClientError::Unreadable { reason } => ServiceError::Corrupt { reason },
        error @ (ClientError::Invalid { .. }
        | ClientError::Unavailable { .. }
        | ClientError::Unsigned { .. }
        | ClientError::NotOverHttp { .. }) => ServiceError::unavailable(error.to_string()),
    }
}

pub(super) fn of_problem(problem: &Problem, lost: &Reject) -> ServiceError {
    let detail = || format!("{}: {}", problem.code, problem.detail);
    match &*problem.code {
        "lease_lost" => lost.clone().into(),
        "limit_exceeded" => limit(problem).into(),
        "contended" => ServiceError::Contended,
        "throttled" => ServiceError::Throttled,
        "corrupt_record" => ServiceError::Corrupt { reason: detail() },
        code => match CODES.into_iter().find(|known| *known == code) {
            Some(code) => Reject::Elsewhere { code, detail: problem.detail.clone() }.into(),
            // What a gateway before the service says may pass: its configuration is repaired, or its token renewed.
            None => ServiceError::unavailable(detail()),
        },
    }
}

fn limit(problem: &Problem) -> Reject {
    let asked = problem.limit.as_deref().unwrap_or_default();
    let limit = LIMITS.into_iter().find(|known| *known == asked).unwrap_or("limit");
    let number = |number: Option<u32>| usize::try_from(number.unwrap_or_default()).unwrap_or(usize::MAX);
    Reject::LimitExceeded { limit, value: number(problem.value), maximum: number(problem.maximum) }
}
