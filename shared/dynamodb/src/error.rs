//! Errors, classified by the SDK's types and error codes, never by a message's text.

use aws_sdk_dynamodb::Error as SdkServiceError;
use aws_sdk_dynamodb::error::{BuildError, ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::types::CancellationReason;
use tickover_service::ports::StoreError;

use crate::item::Item;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// A table of this name exists, but with another schema. It wasn't changed.
    #[error("the table {table} exists and isn't Tickover's: {difference}")]
    Mismatch {
        table: String,
        /// What was expected and what was found.
        difference: String,
    },
    /// It was still being created when the timeout passed. Trying again is safe.
    #[error("the table {table} is not ready yet")]
    NotReady { table: String },
    /// `DynamoDB` refused, or could not be reached.
    #[error("{action} the table {table} failed: {reason}")]
    Failed {
        action: &'static str,
        table: String,
        /// For the log; never parsed.
        reason: String,
    },
}

/// Why a request failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Its condition failed; the item on which it failed, if there is one.
    Condition(Option<Item>),
    /// The whole transaction was cancelled, with a reason for each write.
    Cancelled(Vec<CancellationReason>),
    Store(StoreError),
}

impl Failure {
    /// For requests without a condition.
    pub(crate) fn into_store_error(self) -> StoreError {
        match self {
            Self::Store(error) => error,
            Self::Condition(_) | Self::Cancelled(_) => StoreError::Conflict { current: None },
        }
    }
}

impl<E> From<SdkError<E>> for Failure
where
    E: std::error::Error + Send + Sync + 'static,
    SdkServiceError: From<E>,
{
    fn from(error: SdkError<E>) -> Self {
        match error {
            SdkError::ServiceError(context) => answered(SdkServiceError::from(context.into_err())),
            // No answer, or an answer that couldn't be parsed: the request may have been carried out or not.
            unanswered => Self::Store(unavailable(chain(&unanswered))),
        }
    }
}

/// An error with its causes, down to "connection refused". Never its debug text, which would contain the answer's body,
/// and with it payloads.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// The failure for an error that `DynamoDB` returned.
fn answered(error: SdkServiceError) -> Failure {
    let code = error.code().unwrap_or("an error without a code").to_owned();
    let text = match error.message() {
        Some(message) => format!("{code}: {message}"),
        None => code.clone(),
    };
    Failure::Store(match error {
        SdkServiceError::ConditionalCheckFailedException(failed) => return Failure::Condition(failed.item),
        SdkServiceError::TransactionCanceledException(cancelled) => {
            return Failure::Cancelled(cancelled.cancellation_reasons.unwrap_or_default());
        }
        // Too many requests at once, or another write of the same item was in progress: the same request, repeated,
        // finds out whether it succeeded.
        SdkServiceError::TransactionConflictException(_)
        | SdkServiceError::ReplicatedWriteConflictException(_)
        | SdkServiceError::ProvisionedThroughputExceededException(_)
        | SdkServiceError::RequestLimitExceeded(_)
        | SdkServiceError::ThrottlingException(_) => StoreError::Throttled,
        SdkServiceError::ResourceNotFoundException(_) => unavailable(format!("{text}; {NO_TABLE}")),
        _ => unavailable(match remedy(&code) {
            Some(remedy) => format!("{text}; {remedy}"),
            None => text,
        }),
    })
}

const NO_TABLE: &str = "there is no such table in this account and region: correct TICKOVER_TABLE, or deploy the stack \
     that creates the table";

/// What an operator can do about a refusal that doesn't pass by itself.
fn remedy(code: &str) -> Option<&'static str> {
    match code {
        "AccessDeniedException" => Some(
            "the caller's role may not do this: allow it for the table and its indexes, as infra/core.yaml does",
        ),
        "ExpiredTokenException"
        | "IncompleteSignature"
        | "InvalidSignatureException"
        | "MissingAuthenticationToken"
        | "MissingAuthenticationTokenException"
        | "UnrecognizedClientException" => Some(
            "the credentials are wrong or no longer valid: renew them, and see that this machine's clock is right",
        ),
        // Only this build makes the requests, so the table is wrong.
        "ValidationException" => Some(
            "the table has other keys or indexes than this build asks for: TICKOVER_TABLE must name a table of \
             Tickover's, brought up to date by deploying its stack",
        ),
        _ => None,
    }
}

/// A request that could not even be built: a bug in this crate.
pub(crate) fn unbuildable(error: &BuildError) -> StoreError {
    unavailable(error.to_string())
}

/// The error for a request that may succeed later.
pub(crate) fn unavailable(reason: String) -> StoreError {
    StoreError::Unavailable { reason, is_logged: false }
}

#[cfg(test)]
mod tests;
