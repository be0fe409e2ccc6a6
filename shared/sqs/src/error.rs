//! Maps SQS's refusals to the errors of the queue port, by code and kind. Texts are for the log only.

use std::error::Error;

use aws_sdk_sqs::config::http::HttpResponse;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use tickover_service::ports::QueueError;
use tickover_service::telemetry::field::QUEUE_NAME;

/// There is no queue at this URL. The long forms are the codes of SQS's older protocol, which it still sends in a
/// header that the SDK prefers.
const NO_QUEUE: &[&str] = &["AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist", "InvalidAddress"];

/// The receipt is invalid, or no longer valid. SQS reports a deleted message as an invalid parameter.
const BAD_RECEIPT: &[&str] = &[
    "AWS.SimpleQueueService.MessageNotInflight",
    "InvalidIdFormat",
    "InvalidParameterValue",
    "InvalidParameterValueException",
    "MessageNotInflight",
    "ReceiptHandleIsInvalid",
];

/// Too many requests at once. `OverLimit` means too many messages in flight, which passes by itself as well.
const THROTTLED: &[&str] = &[
    "AWS.SimpleQueueService.OverLimit",
    "KMS.ThrottlingException",
    "KmsThrottled",
    "OverLimit",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
];

/// The role in use lacks a permission: for the queue, or for the key that its messages are encrypted with.
const DENIED: &[&str] = &["AccessDenied", "AccessDeniedException"];
const DENIED_KEY: &[&str] = &["KMS.AccessDeniedException", "KmsAccessDenied"];

/// The credentials are unknown or have expired.
const BAD_CREDENTIALS: &[&str] = &[
    "ExpiredToken",
    "ExpiredTokenException",
    "IncompleteSignature",
    "InvalidClientTokenId",
    "InvalidSecurity",
    "InvalidSignatureException",
    "MissingAuthenticationToken",
    "RequestExpired",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
];

const TOO_MANY_REQUESTS: u16 = 429;

/// The error of a failed call. `queue` is the name that the caller knows.
pub(crate) fn classify<E>(queue: &str, error: &SdkError<E, HttpResponse>) -> QueueError
where
    E: ProvideErrorMetadata + Error + 'static,
{
    let code = error.code().unwrap_or_default();
    let status = error.raw_response().map(|response| response.status().as_u16());
    if is_no_queue(error) {
        // The caller only gets the queue's name. The log says what is wrong.
        tracing::error!(
            { QUEUE_NAME } = queue,
            code,
            "SQS has no queue at the URL configured for this name: correct TICKOVER_QUEUES, TICKOVER_QUEUE_URLS, \
             TICKOVER_TIMERS or TICKOVER_EVENTS, or deploy the stack that creates the queue"
        );
        QueueError::Unknown { queue: queue.to_owned() }
    } else if THROTTLED.contains(&code) || status == Some(TOO_MANY_REQUESTS) {
        QueueError::Throttled
    } else {
        let reason = reason(error);
        let reason = match remedy(queue, code) {
            Some(remedy) => format!("{reason}; {remedy}"),
            None => reason,
        };
        QueueError::Unavailable { reason }
    }
}

/// Whether SQS says that there is no such queue.
pub(crate) fn is_no_queue<E>(error: &SdkError<E, HttpResponse>) -> bool
where
    E: ProvideErrorMetadata + Error + 'static,
{
    error.code().is_some_and(|code| NO_QUEUE.contains(&code))
}

/// Whether the caller's role may not use the queue.
pub(crate) fn is_denied<E>(error: &SdkError<E, HttpResponse>) -> bool
where
    E: ProvideErrorMetadata + Error + 'static,
{
    error.code().is_some_and(|code| DENIED.contains(&code))
}

/// What an operator can do about a refusal that doesn't pass by itself.
fn remedy(queue: &str, code: &str) -> Option<String> {
    if DENIED.contains(&code) {
        return Some(format!(
            "the caller's role may not do this with the queue {queue:?}: allow it, as infra/core.yaml does"
        ));
    }
    if DENIED_KEY.contains(&code) {
        return Some(format!(
            "the caller's role may not use the key that the queue {queue:?} is encrypted with: allow it in the \
             key's policy"
        ));
    }
    let advice = "the credentials are wrong or no longer valid: renew them, and see that this machine's clock is right";
    BAD_CREDENTIALS.contains(&code).then(|| advice.to_owned())
}

/// Whether the receipt isn't valid, or no longer.
pub(crate) fn is_bad_receipt<E>(error: &SdkError<E, HttpResponse>) -> bool
where
    E: ProvideErrorMetadata + Error + 'static,
{
    error.code().is_some_and(|code| BAD_RECEIPT.contains(&code))
}

/// The error of a failed entry of a batch.
pub(crate) fn classify_entry(code: &str, message: Option<&str>) -> QueueError {
    if THROTTLED.contains(&code) {
        return QueueError::Throttled;
    }
    QueueError::Unavailable { reason: format!("{code}: {}", message.unwrap_or("no message")) }
}

/// The error for an answer that SQS never gives.
pub(crate) fn unexpected(what: &str) -> QueueError {
    QueueError::Unavailable { reason: format!("unexpected answer: {what}") }
}

/// The code and message of a refusal; else the chain of causes, down to "connection refused".
fn reason<E>(error: &SdkError<E, HttpResponse>) -> String
where
    E: ProvideErrorMetadata + Error + 'static,
{
    if let Some(code) = error.code() {
        return format!("{code}: {}", error.message().unwrap_or("no message"));
    }
    let mut reason = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        reason = format!("{reason}: {error}");
        cause = error.source();
    }
    reason
}
