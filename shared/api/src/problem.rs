//! Everything that isn't a success, as problem details (RFC 9457) with a stable `code`.
//!
//! Owns the mapping from refusals and failures to codes and statuses. What only operators should know (why a
//! store can't be reached, what is wrong with a record) is logged here and told to nobody.

use serde::Serialize;
use tickover_core::error::Reject;
use tickover_service::ServiceError;
use utoipa::ToSchema;

/// Seconds after which repeating a call is worth it.
const RETRY_AFTER_SECS: u16 = 1;

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Problem {
    /// A URI for the sort of problem: `urn:problem-type:tickover:` and the code.
    #[serde(rename = "type")]
    #[schema(value_type = String)]
    pub uri: Box<str>,
    /// The sort of problem in words, the same for every occurrence.
    #[schema(value_type = String)]
    pub title: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// This occurrence in words, for people.
    #[schema(value_type = String)]
    pub detail: Box<str>,
    /// The sort of problem for programs: stable.
    #[schema(value_type = String, example = "invalid_request")]
    pub code: &'static str,
    /// `invalid_request`: the field that is wrong, as a path such as `retry.delay[2]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<String>)]
    pub field: Option<Box<str>>,
    /// `limit_exceeded`: the limit's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<String>)]
    pub limit: Option<&'static str>,
    /// `limit_exceeded`: what was asked for, in the limit's unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub value: Option<u32>,
    /// `limit_exceeded`: what is allowed, in the limit's unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub maximum: Option<u32>,
    /// Repeating the call is safe and worth it after this many seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub retry_after: Option<u16>,
}

impl Problem {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// What happened, without what the caller sent: for logs. Of an invalid request that is the field, and what was
    /// expected there; what was found may be anything, and isn't told.
    pub fn told(&self) -> String {
        let Some(field) = &self.field else { return self.detail.to_string() };
        let problem = self.detail.strip_prefix(&**field).and_then(|rest| rest.strip_prefix(": "));
        let ours = |text: &str| ["`", "\"", "'", "found"].iter().filter_map(|mark| text.find(mark)).min();
        let expected = problem.map(|text| text.get(..ours(text).unwrap_or(text.len())).unwrap_or_default());
        let expected = expected.unwrap_or_default().trim_end_matches([' ', ',', ';', ':']);
        // What follows the first name may be one that the caller made, such as a label's.
        let name = field.split(['.', '[']).next().unwrap_or_default();
        let expected = if expected.is_empty() { "expected something else" } else { expected };
        format!("{name}: {expected}")
    }

    /// Whether the same call may succeed later: throttling, contention, or an outage.
    pub fn is_retryable(&self) -> bool {
        self.retry_after.is_some()
    }

    /// A problem of a server's own, beside those of the calls.
    pub fn new(status: u16, code: &'static str, title: &'static str, detail: impl Into<Box<str>>) -> Self {
        Self {
            uri: format!("urn:problem-type:tickover:{code}").into(),
            title,
            status,
            detail: detail.into(),
            code,
            field: None,
            limit: None,
            value: None,
            maximum: None,
            retry_after: None,
        }
    }

    fn later(self) -> Self {
        Self { retry_after: Some(RETRY_AFTER_SECS), ..self }
    }

    pub(crate) fn no_route() -> Self {
        Self::new(
            404,
            "not_found",
            "Not found",
            "there is nothing at this path; /openapi.json lists all there is",
        )
    }

    pub(crate) fn wrong_method() -> Self {
        let detail = "this path doesn't take this method; the Allow header lists those it takes";
        Self::new(405, "method_not_allowed", "Method not allowed", detail)
    }

    pub(crate) fn wrong_media_type(found: &str) -> Self {
        let detail = format!("the request must be sent with content-type: application/json, not as {found}");
        Self::new(415, "unsupported_media_type", "Unsupported media type", detail)
    }

    /// A panic in a handler: nothing of it is told.
    pub(crate) fn internal() -> Self {
        let detail = "something went wrong here; whether the call took effect is not known";
        Self::new(500, "internal", "Internal error", detail)
    }

    pub(crate) fn corrupt(reason: &str) -> Self {
        let remedy = "left alone; if another build wrote it, deploy that one here as well";
        tracing::error!(reason, remedy, "a stored record can't be used");
        Self::new(500, "corrupt_record", "Corrupt record", "a stored record can't be read; it was left alone")
    }

    fn unavailable(reason: &str) -> Self {
        tracing::warn!(reason, "a call failed: unavailable");
        let detail = "temporarily unavailable; repeating the call is safe";
        Self::new(503, "unavailable", "Unavailable", detail).later()
    }
}

/// A number for people: where it doesn't fit, the largest that does says enough.
fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl From<Reject> for Problem {
    fn from(reject: Reject) -> Self {
        let (status, title) = match &reject {
            Reject::InvalidRequest { .. } => (400, "Invalid request"),
            Reject::NotFound | Reject::NoExecution | Reject::NoCron => (404, "Not found"),
            Reject::UnknownQueue { .. } => (404, "Unknown queue"),
            Reject::UnknownStep { .. } => (404, "Unknown step"),
            Reject::LeaseLost | Reject::TurnLost => (409, "Lease lost"),
            Reject::DeadlineExceeded { .. } | Reject::ExecutionDeadline { .. } => (409, "Deadline exceeded"),
            Reject::AlreadyTerminal { .. } | Reject::ExecutionClosed { .. } => (409, "Already finished"),
            Reject::NotTerminal { .. } | Reject::ExecutionOpen { .. } => (409, "Not finished"),
            Reject::IdConflict => (409, "Id in use"),
            Reject::LimitExceeded { .. } => (413, "Limit exceeded"),
        };
        let problem = Self::new(status, reject.code(), title, reject.to_string());
        match reject {
            Reject::InvalidRequest { field, .. } => Self { field: Some(field.into()), ..problem },
            Reject::LimitExceeded { limit, value, maximum } => Self {
                limit: Some(limit),
                value: Some(count(value)),
                maximum: Some(count(maximum)),
                ..problem
            },
            Reject::NotFound
            | Reject::NoExecution
            | Reject::NoCron
            | Reject::UnknownQueue { .. }
            | Reject::UnknownStep { .. }
            | Reject::LeaseLost
            | Reject::TurnLost
            | Reject::DeadlineExceeded { .. }
            | Reject::ExecutionDeadline { .. }
            | Reject::AlreadyTerminal { .. }
            | Reject::ExecutionClosed { .. }
            | Reject::NotTerminal { .. }
            | Reject::ExecutionOpen { .. }
            | Reject::IdConflict => problem,
        }
    }
}

impl From<ServiceError> for Problem {
    fn from(error: ServiceError) -> Self {
        let detail = error.to_string();
        match error {
            ServiceError::Rejected(reject) => reject.into(),
            ServiceError::Contended => Self::new(503, "contended", "Contended", detail).later(),
            ServiceError::Throttled => Self::new(429, "throttled", "Too many requests", detail).later(),
            ServiceError::Unavailable { reason } => Self::unavailable(&reason),
            ServiceError::Corrupt { reason } => Self::corrupt(&reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(error: ServiceError) -> Problem {
        error.into()
    }

    #[test]
    fn a_log_hears_what_was_expected_and_not_what_was_sent() {
        for (field, problem, told) in [
            ("labels.hunter2", "expected a string, found the number `7`", "labels: expected a string"),
            ("retry.delay[2]", "`hunter2` is not a duration: it is empty", "retry: expected something else"),
            (
                "error.hunter2",
                "unknown field; expected only code",
                "error: unknown field; expected only code",
            ),
            ("type", "expected task, fail; found \"hunter2\"", "type: expected task, fail"),
            ("kind", "must consist of A-Z only, not 'h'", "kind: must consist of A-Z only, not"),
            ("body", "expected a JSON object, found nothing", "body: expected a JSON object"),
        ] {
            assert_eq!(Problem::from(Reject::field(field, problem)).told(), told);
        }
        let limit = Reject::LimitExceeded { limit: "batch", value: 7, maximum: 5 };
        assert_eq!(Problem::from(limit).told(), "batch: 7 is more than the maximum of 5");
    }

    #[test]
    fn only_what_may_succeed_later_is_retryable_and_says_when() {
        let reason = || "secret.internal:8000 refused".to_owned();
        for (error, status, code, retryable) in [
            (ServiceError::Throttled, 429, "throttled", true),
            (ServiceError::Contended, 503, "contended", true),
            (ServiceError::Unavailable { reason: reason() }, 503, "unavailable", true),
            (ServiceError::Corrupt { reason: reason() }, 500, "corrupt_record", false),
            (ServiceError::Rejected(Reject::IdConflict), 409, "id_conflict", false),
        ] {
            let problem = of(error);
            assert_eq!((problem.status, problem.code()), (status, code));
            assert_eq!(
                (problem.is_retryable(), problem.retry_after.is_some()),
                (retryable, retryable),
                "{code}"
            );
            assert!(!serde_json::to_string(&problem).unwrap().contains("secret"), "{code} leaks its reason");
        }
    }

    #[test]
    fn extension_members_stand_beside_the_standard_ones() {
        let limit = Reject::LimitExceeded { limit: "json_depth", value: 65, maximum: 64 };
        let expected = serde_json::json!({
            "type": "urn:problem-type:tickover:limit_exceeded",
            "title": "Limit exceeded",
            "status": 413,
            "detail": "json_depth: 65 is more than the maximum of 64",
            "code": "limit_exceeded",
            "limit": "json_depth",
            "value": 65,
            "maximum": 64,
        });
        assert_eq!(serde_json::to_value(Problem::from(limit)).unwrap(), expected);
        let field = Problem::from(Reject::field("retry.delay", "expected a duration"));
        assert_eq!(field.field.as_deref(), Some("retry.delay"));
    }
}
