//! What the code that the attributes generate uses. No other code should use it.

use std::num::NonZeroU32;

pub use futures::FutureExt;
pub use futures::future::BoxFuture;
pub use inventory;
pub use tickover_core::batch::Batch;
pub use tickover_core::duration::Millis;
pub use tickover_core::id::QueueName;

use tickover_core::kind::Policy;
use tickover_core::retry::{Delay, Jitter, MaxAttempts, RetryPolicy};

pub use crate::options::asked::Asked;
pub use crate::step::{
    Attempt, BatchAttempt, BatchReturned, Fallible, LinkedStep, StateType, States, only_one, step_of,
};
pub use crate::workflow::boxed;

/// What of a step's options was given although it is equal to its absence.
pub fn given(no_retry: bool) -> Vec<Policy> {
    if no_retry { vec![Policy::Retry] } else { vec![] }
}

/// A retry policy that the attribute has read from a short form. All delays are in milliseconds.
pub fn retry(
    retries: u32,
    delay_ms: u64,
    backoff: f64,
    max_delay_ms: Option<u64>,
    jitter: bool,
    non_retryable: &[&str],
) -> RetryPolicy {
    RetryPolicy {
        max_attempts: MaxAttempts::Limited(NonZeroU32::MIN.saturating_add(retries)),
        delay: Delay::Fixed(Millis::new(delay_ms)),
        backoff,
        max_delay: max_delay_ms.map(Millis::new),
        jitter: if jitter { Jitter::Full } else { Jitter::None },
        non_retryable: non_retryable.iter().map(|code| (*code).to_owned()).collect(),
    }
}
