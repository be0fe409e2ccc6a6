//! What a call can end in when it isn't answered.

use tickover_core::decision::Refusal;
use tickover_core::error::Reject;
use tickover_core::execution::command::Undone;
use tickover_core::id::QueueName;

use crate::ports::{QueueError, StoreError};

/// Why a call has no result.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ServiceError {
    /// The rules say no.
    #[error(transparent)]
    Rejected(#[from] Reject),
    /// Others kept changing the record. Nothing of this call was written; repeating it is safe.
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
    },
    /// A record this build can't read. It was left alone.
    #[error("a stored record can't be read: {reason}")]
    Corrupt {
        /// For the log.
        reason: String,
    },
}

impl ServiceError {
    /// Whether the same call may well succeed later.
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Contended | Self::Throttled | Self::Unavailable { .. } => true,
            Self::Rejected(_) | Self::Corrupt { .. } => false,
        }
    }

    /// What a turn is given back for that can't go on because of this: what passes by itself says nothing about the
    /// execution, and what doesn't must not go on for ever.
    pub const fn undone(&self) -> Undone {
        if self.is_retryable() { Undone::ByWorker } else { Undone::ByCode }
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
            StoreError::Unavailable { reason } => Self::Unavailable { reason },
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
            QueueError::Unavailable { reason } => Self::Unavailable { reason },
        }
    }
}

/// The refusal of a queue that doesn't exist.
pub(crate) fn unknown_queue(queue: &QueueName) -> ServiceError {
    ServiceError::Rejected(Reject::UnknownQueue { queue: queue.to_string() })
}
