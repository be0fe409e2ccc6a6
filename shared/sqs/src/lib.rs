//! The queue port over Amazon SQS.
//!
//! It owns what SQS is told and how its answers read: batches, whole seconds, error codes. It never looks into a
//! message, never logs one, and knows nothing of tasks.

mod batch;
mod error;
mod message;
mod queue;
mod setup;

pub use queue::SqsQueue;
pub use setup::create_queue;
