//! How an invocation ends. A caller that gets an answer won't repeat the call. A caller that gets an error may repeat
//! it, and Lambda itself repeats asynchronous invocations that fail. So errors are only for cases in which a repetition
//! can help, or which are our own fault.

use lambda_runtime::Diagnostic;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tickover_api::{Answer, Problem};

/// Statuses from here on are not the caller's fault.
const SERVER_ERRORS: u16 = 500;

/// An invocation that failed. The caller gets it as `errorType` and `errorMessage`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Failure {
    /// Stable; the `errorType`.
    pub code: &'static str,
    pub message: String,
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self { code: problem.code(), message: problem.detail().to_owned() }
    }
}

impl From<Failure> for Diagnostic {
    fn from(failure: Failure) -> Self {
        Self { error_type: failure.code.to_owned(), error_message: failure.message }
    }
}

/// The answer to a direct invocation.
///
/// A rejection is an answer too, as a problem document: repeating the call would change nothing. Only a failure that
/// may succeed later, or that is our own fault, is an error of the invocation.
pub fn of(outcome: Result<Answer, Problem>) -> Result<Box<RawValue>, Failure> {
    match outcome {
        Ok(answer) => Ok(answer.body),
        Err(problem) if problem.is_retryable() || problem.status() >= SERVER_ERRORS => Err(problem.into()),
        Err(problem) => json(problem.answer()),
    }
}

/// An answer with any other JSON.
pub fn json(answer: &impl Serialize) -> Result<Box<RawValue>, Failure> {
    // Our own types always serialise.
    to_raw_value(answer).map_err(|error| Failure { code: "internal", message: error.to_string() })
}

#[cfg(test)]
mod tests {
    use tickover_core::error::Reject;
    use tickover_service::ServiceError;

    use super::*;

    #[test]
    fn a_refusal_is_an_answer_and_trouble_is_an_error() {
        let refused = of(Err(Reject::LeaseLost.into())).unwrap();
        assert!(
            refused.get().contains(r#""status":409"#) && refused.get().contains(r#""code":"lease_lost""#)
        );

        let corrupt = ServiceError::Corrupt { reason: "x".to_owned() };
        for (error, code) in [(ServiceError::Throttled, "throttled"), (corrupt, "corrupt_record")] {
            assert_eq!(of(Err(error.into())).unwrap_err().code, code);
        }
    }
}
