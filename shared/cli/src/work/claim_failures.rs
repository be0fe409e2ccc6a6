//! Failed claims: how long to wait, and what to print once.

use std::time::Duration;

use tickover::client::ClientError;
use tickover_core::id::QueueName;

use crate::show::say;

use super::backoff;

/// Time between claims from a queue that doesn't exist yet.
const NO_QUEUE_YET: Duration = Duration::from_secs(1);

/// The message that was printed since a claim was last answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Said {
    #[default]
    Nothing,
    NoQueue,
    Unreachable,
}

/// The claims that failed since the last answered one.
#[derive(Debug, Default)]
pub(super) struct ClaimFailures {
    failures: u32,
    said: Said,
}

impl ClaimFailures {
    /// Records that a claim was answered.
    pub(super) fn answered(&mut self) {
        if self.said == Said::Unreachable {
            say("the server answers again");
        }
        *self = Self::default();
    }

    /// How long to wait after this failure, or the error if a retry can't help.
    pub(super) fn failed(&mut self, error: ClientError, queue: &QueueName) -> Result<Duration, ClientError> {
        let pause = if error.code() == Some("unknown_queue") {
            if self.turn_to(Said::NoQueue) {
                say(&format!("no task was ever scheduled on queue {queue}: waiting for the first one"));
            }
            NO_QUEUE_YET
        } else if error.is_transient() {
            let pause = backoff::delay(self.failures, &error);
            if self.turn_to(Said::Unreachable) {
                say(&format!("{error}; trying again"));
            }
            pause
        } else {
            return Err(error);
        };
        self.failures = self.failures.saturating_add(1);
        Ok(pause)
    }

    /// Whether this message is new since the last answered claim.
    fn turn_to(&mut self, what: Said) -> bool {
        let is_new = self.said != what;
        self.said = what;
        is_new
    }
}
