//! Runs that are retried.

use serde::{Deserialize, Serialize};

use crate::retry::MaxAttempts;

/// The attempt that a run is, if the workflow's code retries failed runs. The policy itself is in the code: the turn that
/// ends a run sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunAttempt {
    /// Number of the attempt, from 1. It starts anew with `continue_as_new`, `restart` and `rerun`.
    #[serde(rename = "n")]
    pub number: u32,
    /// How many attempts the code allows.
    #[serde(rename = "m")]
    pub of: MaxAttempts,
    /// Whether the deadline of this run has passed. The run's next turn ends it, and another run follows.
    #[serde(rename = "o", default, skip_serializing_if = "std::ops::Not::not")]
    pub overdue: bool,
}

impl RunAttempt {
    pub const fn first_of(of: MaxAttempts) -> Self {
        Self { number: 1, of, overdue: false }
    }

    /// Whether another attempt may follow this one.
    pub const fn may_be_retried(&self) -> bool {
        match self.of {
            MaxAttempts::Skip => false,
            MaxAttempts::Limited(limit) => self.number < limit.get(),
            MaxAttempts::Unlimited => true,
        }
    }
}
