//! What SQS's refusals mean to the queue port, by code and kind. Texts are for the log only.

use std::error::Error;

use aws_sdk_sqs::config::http::HttpResponse;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use tickover_service::ports::QueueError;

/// There is no queue at this URL. The long forms are the codes of SQS's older protocol, which it still sends in a
/// header that the SDK prefers.
const NO_QUEUE: &[&str] = &["AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist", "InvalidAddress"];

/// The receipt is none, or none any more. SQS reports a message that is gone as an invalid parameter.
const BAD_RECEIPT: &[&str] = &[
    "AWS.SimpleQueueService.MessageNotInflight",
    "InvalidIdFormat",
    "InvalidParameterValue",
    "InvalidParameterValueException",
    "MessageNotInflight",
    "ReceiptHandleIsInvalid",
];

/// Too much at once. `OverLimit` is too many messages in flight, which ends by itself as well.
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

const TOO_MANY_REQUESTS: u16 = 429;

/// What a failed call means. `queue` is the name that the caller knows.
pub(crate) fn classify<E>(queue: &str, error: &SdkError<E, HttpResponse>) -> QueueError
where
    E: ProvideErrorMetadata + Error + 'static,
{
    let code = error.code().unwrap_or_default();
    let status = error.raw_response().map(|response| response.status().as_u16());
    if NO_QUEUE.contains(&code) {
        QueueError::Unknown { queue: queue.to_owned() }
    } else if THROTTLED.contains(&code) || status == Some(TOO_MANY_REQUESTS) {
        QueueError::Throttled
    } else {
        QueueError::Unavailable { reason: reason(error) }
    }
}

/// As [`classify`], for the calls that take a receipt.
pub(crate) fn classify_with_receipt<E>(queue: &str, error: &SdkError<E, HttpResponse>) -> QueueError
where
    E: ProvideErrorMetadata + Error + 'static,
{
    if error.code().is_some_and(|code| BAD_RECEIPT.contains(&code)) {
        return QueueError::StaleReceipt;
    }
    classify(queue, error)
}

/// What an entry of a batch failed with.
pub(crate) fn classify_entry(code: &str, message: Option<&str>) -> QueueError {
    if THROTTLED.contains(&code) {
        return QueueError::Throttled;
    }
    QueueError::Unavailable { reason: format!("{code}: {}", message.unwrap_or("no message")) }
}

/// An answer that SQS doesn't give.
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
