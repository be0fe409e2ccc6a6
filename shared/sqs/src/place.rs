//! One queue of SQS: that of a name, or one of its class queues.

use std::borrow::Cow;
use std::error::Error;

use aws_sdk_sqs::config::http::HttpResponse;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use tickover_core::flow::Priority;
use tickover_core::id::QueueName;
use tickover_service::ports::QueueError;

use crate::error::{classify, is_denied, is_no_queue};

/// Where messages of a class are.
pub(crate) struct Place<'a> {
    pub(crate) queue: &'a QueueName,
    pub(crate) class: Priority,
    pub(crate) url: Cow<'a, str>,
}

impl Place<'_> {
    /// The error of a failed call. That a class queue isn't there is no trouble: few queues have any. A role that may not
    /// use them is from before there were any.
    pub(crate) fn failed<E>(&self, error: &SdkError<E, HttpResponse>) -> QueueError
    where
        E: ProvideErrorMetadata + Error + 'static,
    {
        match self.class {
            Priority::High | Priority::Low if is_no_queue(error) => unknown(self.queue),
            Priority::High | Priority::Low if is_denied(error) => {
                tracing::debug!(queue = %self.queue, class = %self.class, "no permission for this class queue, if it exists");
                unknown(self.queue)
            }
            Priority::High | Priority::Normal | Priority::Low => classify(self.queue.as_str(), error),
        }
    }
}

pub(crate) fn unknown(queue: &QueueName) -> QueueError {
    QueueError::Unknown { queue: queue.to_string() }
}
