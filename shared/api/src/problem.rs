//! All answers that aren't a success, as problem details (RFC 9457) with a stable `code`.
//!
//! This module maps rejections and failures to codes and statuses. Details for operators only (why a store can't be
//! reached, what is wrong with a record) are logged here and are not part of the answer.

use std::borrow::Cow;

use tickover_core::error::{Reject, TakenBy};
use tickover_service::ServiceError;
use tickover_wire::answer as wire;

/// Seconds after which a caller should repeat a call.
const RETRY_AFTER_SECS: u16 = 1;

/// Why a call has no result: the answer to the caller, and the part of it that may be logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    answer: Box<wire::Problem>,
    code: &'static str,
    /// What was expected of the field, without the value that was found.
    expected: Option<Box<str>>,
}

impl Problem {
    /// A problem of a server that isn't one of the calls' problems.
    pub fn new(status: u16, code: &'static str, title: &'static str, detail: impl Into<String>) -> Self {
        let answer = wire::Problem {
            uri: format!("urn:problem-type:tickover:{code}"),
            title: Cow::Borrowed(title),
            status,
            detail: detail.into(),
            code: Cow::Borrowed(code),
            ..wire::Problem::default()
        };
        Self { answer: Box::new(answer), code, expected: None }
    }

    /// The problem of an unknown path.
    pub(crate) fn no_route() -> Self {
        Self::new(
            404,
            "not_found",
            "Not found",
            "there is nothing at this path; /openapi.json lists all paths",
        )
    }

    /// The answer to the caller.
    pub fn answer(&self) -> &wire::Problem {
        &self.answer
    }

    /// The HTTP status.
    pub fn status(&self) -> u16 {
        self.answer.status
    }

    /// The stable code.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// What happened, for the caller. It may quote values that the caller sent.
    pub fn detail(&self) -> &str {
        &self.answer.detail
    }

    /// What happened, without values that the caller sent. For an invalid request: the field, and what was expected of
    /// it.
    pub fn for_logs(&self) -> String {
        match (&self.answer.field, &self.expected) {
            (Some(field), Some(expected)) => {
                // The names after the first one may be the caller's, such as a label's name.
                let name = field.split(['.', '[']).next().unwrap_or_default();
                format!("{name}: {expected}")
            }
            _ => self.answer.detail.clone(),
        }
    }

    /// Whether the same call may succeed later: throttling, contention, or an outage.
    pub fn is_retryable(&self) -> bool {
        self.answer.retry_after.is_some()
    }

    /// The same problem, marked as retryable.
    #[must_use]
    pub fn later(mut self) -> Self {
        self.answer.retry_after = Some(RETRY_AFTER_SECS);
        self
    }

    pub(crate) fn corrupt(reason: &str) -> Self {
        let remedy = "left unchanged; if another build wrote it, deploy that build here too";
        tracing::error!(reason, remedy, "a stored record can't be read");
        Self::new(500, "corrupt_record", "Corrupt record", "a stored record can't be read; it is unchanged")
    }

    /// The store has no index of executions of all workflows.
    pub(crate) fn no_index() -> Self {
        let detail = "this deployment has no list of all executions, so it can't count them; with TICKOVER_LISTS=all it has one, for one write more for each execution";
        Self::new(501, "not_kept", "Not kept", detail)
    }

    /// The store keeps no history.
    pub(crate) fn no_history() -> Self {
        let detail = "this deployment keeps no history itself: its metrics are in CloudWatch, from where `tickover --stack NAME history` and its dashboard read them";
        Self::new(501, "not_kept", "Not kept", detail)
    }

    fn unavailable(error: &ServiceError) -> Self {
        tickover_service::warn_unless_logged!(error; %error, "a call failed: unavailable");
        let detail = "temporarily unavailable; repeating the call is safe";
        Self::new(503, "unavailable", "Unavailable", detail).later()
    }
}

/// The problems that only the HTTP transport has.
#[cfg(feature = "http")]
impl Problem {
    pub(crate) fn wrong_method() -> Self {
        let detail = "this path doesn't allow this method; the Allow header lists the allowed ones";
        Self::new(405, "method_not_allowed", "Method not allowed", detail)
    }

    pub(crate) fn foreign_route() -> Self {
        let detail = "this is an operator's call, and it came by a route that isn't the call's own: send the path as \
            /openapi.json has it";
        Self::new(403, "foreign_route", "Forbidden", detail)
    }

    pub(crate) fn wrong_media_type(found: &str) -> Self {
        let detail = format!("the request must be sent with content-type: application/json, not as {found}");
        Self::new(415, "unsupported_media_type", "Unsupported media type", detail)
    }

    /// A panic in a handler. The answer has no details of it.
    pub(crate) fn internal() -> Self {
        let detail = "internal error; it is not known whether the call took effect";
        Self::new(500, "internal", "Internal error", detail)
    }
}

/// A number for people. If it doesn't fit, the largest `u32` is shown instead.
fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl From<Reject> for Problem {
    fn from(reject: Reject) -> Self {
        let (status, title) = match &reject {
            Reject::InvalidRequest { .. } => (400, "Invalid request"),
            Reject::NotFound | Reject::NoExecution | Reject::NoCron | Reject::NoOperation => {
                (404, "Not found")
            }
            Reject::UnknownQueue { .. } | Reject::NoRoute { .. } => (404, "Unknown queue"),
            Reject::UnknownStep { .. } => (404, "Unknown step"),
            Reject::UnknownValue { .. } => (404, "Unknown value"),
            Reject::LeaseLost | Reject::TurnLost => (409, "Lease lost"),
            Reject::DeadlineExceeded { .. } | Reject::ExecutionDeadline { .. } => (409, "Deadline exceeded"),
            Reject::AlreadyTerminal { .. } | Reject::ExecutionClosed { .. } | Reject::EndedLater => {
                (409, "Already finished")
            }
            Reject::NotTerminal { .. } | Reject::ExecutionOpen { .. } => (409, "Not finished"),
            Reject::IdConflict { .. } => (409, "Id in use"),
            Reject::NotUnique { .. } => (409, "Not unique"),
            Reject::UnknownCallback => (404, "Unknown callback"),
            Reject::Unanswered => (409, "Not answered"),
            Reject::CallbacksOff => (409, "Callbacks are off"),
            Reject::LimitExceeded { .. } => (413, "Limit exceeded"),
            Reject::Elsewhere { .. } => (409, "Refused"),
        };
        let mut problem = Self::new(status, reject.code(), title, reject.to_string());
        match reject {
            Reject::InvalidRequest { field, expected, .. } => {
                problem.answer.field = Some(field);
                problem.expected = Some(expected.into());
            }
            Reject::LimitExceeded { limit, value, maximum } => {
                problem.answer.limit = Some(Cow::Borrowed(limit));
                problem.answer.value = Some(count(value));
                problem.answer.maximum = Some(count(maximum));
            }
            Reject::IdConflict { by, since } => {
                problem.answer.since = Some(since.into());
                problem.answer.task = match by {
                    TakenBy::Key(task) => Some(task),
                    TakenBy::Execution
                    | TakenBy::OtherWorkflow(_)
                    | TakenBy::ChildOf(_)
                    | TakenBy::Task
                    | TakenBy::Cron
                    | TakenBy::Operation => None,
                };
            }
            Reject::NotFound
            | Reject::NoExecution
            | Reject::NoCron
            | Reject::NoOperation
            | Reject::EndedLater
            | Reject::UnknownQueue { .. }
            | Reject::NoRoute { .. }
            | Reject::UnknownStep { .. }
            | Reject::UnknownValue { .. }
            | Reject::LeaseLost
            | Reject::TurnLost
            | Reject::DeadlineExceeded { .. }
            | Reject::ExecutionDeadline { .. }
            | Reject::AlreadyTerminal { .. }
            | Reject::ExecutionClosed { .. }
            | Reject::NotTerminal { .. }
            | Reject::ExecutionOpen { .. }
            | Reject::NotUnique { .. }
            | Reject::Unanswered
            | Reject::UnknownCallback
            | Reject::CallbacksOff
            | Reject::Elsewhere { .. } => {}
        }
        problem
    }
}

impl From<ServiceError> for Problem {
    fn from(error: ServiceError) -> Self {
        let detail = error.to_string();
        match error {
            ServiceError::Rejected(reject) => reject.into(),
            ServiceError::Contended => Self::new(503, "contended", "Contended", detail).later(),
            ServiceError::Throttled => Self::new(429, "throttled", "Too many requests", detail).later(),
            ServiceError::Unavailable { .. } => Self::unavailable(&error),
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

    fn taken(by: TakenBy) -> Reject {
        Reject::IdConflict { by, since: tickover_core::time::Timestamp::from_millis(1_767_225_600_000) }
    }

    #[test]
    fn a_conflict_of_ids_says_what_has_the_id_and_since_when() {
        let shown = |by| serde_json::to_value(Problem::from(taken(by)).answer()).unwrap();
        let since = "2026-01-01T00:00:00.000Z";
        let same = shown(TakenBy::Execution);
        assert_eq!((&same["since"], &same["task"]), (&since.into(), &serde_json::Value::Null));
        assert_eq!(same["detail"], format!("there is already an execution with this id, since {since}"));
        let key = shown(TakenBy::Key(tickover_core::id::TaskId::parse("mail-7").unwrap()));
        assert_eq!((&key["since"], &key["task"]), (&since.into(), &"mail-7".into()));
    }

    #[test]
    fn a_log_has_what_was_expected_and_not_what_was_sent() {
        for (field, expected, logged) in [
            ("labels.hunter2", "expected a string", "labels: expected a string"),
            ("retry.delay[2]", "expected a duration", "retry: expected a duration"),
            ("error.hunter2", "unknown field", "error: unknown field"),
            ("body", "expected a JSON object", "body: expected a JSON object"),
        ] {
            let refused = Reject::instead_of(field, expected, "the string `hunter2`");
            assert_eq!(refused.to_string(), format!("{field}: {expected}, found the string `hunter2`"));
            assert_eq!(Problem::from(refused).for_logs(), logged);
        }
        let limit = Reject::LimitExceeded { limit: "batch", value: 7, maximum: 5 };
        assert_eq!(Problem::from(limit).for_logs(), "batch: 7 is more than the maximum of 5");
    }

    #[test]
    fn only_what_may_succeed_later_is_retryable_and_says_when() {
        let reason = || "secret.internal:8000 refused".to_owned();
        for (error, status, code, retryable) in [
            (ServiceError::Throttled, 429, "throttled", true),
            (ServiceError::Contended, 503, "contended", true),
            (ServiceError::unavailable(reason()), 503, "unavailable", true),
            (ServiceError::Corrupt { reason: reason() }, 500, "corrupt_record", false),
            (taken(TakenBy::Task).into(), 409, "id_conflict", false),
        ] {
            let problem = of(error);
            assert_eq!((problem.status(), problem.code()), (status, code));
            assert_eq!(problem.is_retryable(), retryable, "{code}");
            assert!(
                !serde_json::to_string(problem.answer()).unwrap().contains("secret"),
                "{code} leaks its reason"
            );
        }
    }

    #[test]
    fn extension_members_are_beside_the_standard_ones() {
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
        assert_eq!(serde_json::to_value(Problem::from(limit).answer()).unwrap(), expected);
        let field = Problem::from(Reject::field("retry.delay", "expected a duration"));
        assert_eq!(field.answer().field.as_deref(), Some("retry.delay"));
    }
}
