//! The queue port over Amazon SQS.
//!
//! It owns the requests to SQS and the reading of its answers: batches, whole seconds, error codes. It never reads or
//! logs the content of a message, and knows nothing of tasks.

mod batch;
mod class;
mod error;
mod message;
mod place;
mod queue;
mod setup;

pub use class::{receipt_of, split_receipt};
pub use queue::SqsQueue;
pub use setup::create_queue;
