//! The errors of a call.

use tickover_core::decision::Refusal;
use tickover_core::error::Reject;
use tickover_core::execution::command::ReleaseReason;
use tickover_core::id::QueueName;

use crate::ports::{QueueError, StoreError};

/// Why a call has no result.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ServiceError {
    /// The rules refuse the command.
    #[error(transparent)]
    Rejected(#[from] Reject),
    /// Other writers kept changing the record. This call wrote nothing; repeating it is safe.
    #[error("others kept changing the record; try again")]
    Contended,
    /// The store or a queue is throttling; repeating the call later is safe.
    #[error("too much at once; try again later")]
    Throttled,
    /// The store or a queue can't be reached; repeating the call is safe.
    #[error("temporarily unavailable: {reason}")]
    Unavailable {
        /// For the log.
        reason: String,
        /// As in [`StoreError::Unavailable`].
        is_logged: bool,
    },
    /// A record that this build can't read. It wasn't changed.
    #[error("a stored record can't be read: {reason}")]
    Corrupt {
        /// For the log.
        reason: String,
    },
}

impl ServiceError {
    /// Whether the same call may succeed later.
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Contended | Self::Throttled | Self::Unavailable { .. } => true,
            Self::Rejected(_) | Self::Corrupt { .. } => false,
        }
    }

    /// A failure that passes by itself.
    pub fn unavailable(reason: impl Into<String>) -> Self {
        Self::Unavailable { reason: reason.into(), is_logged: false }
    }

    /// Whether the log has the cause already. See [`warn_unless_logged!`](crate::warn_unless_logged).
    pub const fn is_logged(&self) -> bool {
        matches!(self, Self::Unavailable { is_logged: true, .. })
    }

    /// Why a turn that stops with this error is given back. An error that passes by itself says nothing about the
    /// execution; with any other, the execution must not be retried for ever.
    pub const fn undone(&self) -> ReleaseReason {
        if self.is_retryable() { ReleaseReason::ByWorker } else { ReleaseReason::ByCode }
    }
}

impl<R> From<Refusal<R>> for ServiceError {
    fn from(refusal: Refusal<R>) -> Self {
        Self::Rejected(refusal.reject)
    }
}

impl From<StoreError> for ServiceError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Conflict { .. } => Self::Contended,
            StoreError::Throttled => Self::Throttled,
            StoreError::Unavailable { reason, is_logged } => Self::Unavailable { reason, is_logged },
            StoreError::Corrupt { reason } => Self::Corrupt { reason },
            StoreError::BadCursor => Self::Rejected(Reject::field(
                "cursor",
                "expected the cursor of an earlier answer to the same question",
            )),
        }
    }
}

impl From<QueueError> for ServiceError {
    fn from(error: QueueError) -> Self {
        match error {
            QueueError::Unknown { queue } => Self::Rejected(Reject::UnknownQueue { queue }),
            QueueError::Throttled => Self::Throttled,
            QueueError::StaleReceipt => Self::Rejected(Reject::LeaseLost),
            QueueError::Unavailable { reason } => Self::unavailable(reason),
        }
    }
}

/// The error for a queue that doesn't exist.
pub(crate) fn unknown_queue(queue: &QueueName) -> ServiceError {
    ServiceError::Rejected(Reject::UnknownQueue { queue: queue.to_string() })
}
