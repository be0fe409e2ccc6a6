//! Failed claims: how long to wait, and what to print once.

use std::time::Duration;

use tickover::client::ClientError;
use tickover_core::id::QueueName;

use crate::show::say;
use crate::system::Place;

use super::backoff;

/// Time between claims from a queue that doesn't exist yet.
const NO_QUEUE_YET: Duration = Duration::from_secs(1);

/// The message that was printed since a claim was last answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LastMessage {
    #[default]
    Nothing,
    NoQueue,
    Unreachable,
}

/// The claims that failed since the last answered one.
#[derive(Debug, Default)]
pub(super) struct ClaimFailures {
    failures: u32,
    last_message: LastMessage,
}

impl ClaimFailures {
    /// Records that a claim was answered.
    pub(super) fn answered(&mut self) {
        if self.last_message == LastMessage::Unreachable {
            say("the server answers again");
        }
        *self = Self::default();
    }

    /// How long to wait after this failure, or the error if a retry can't help.
    pub(super) fn failed(
        &mut self,
        error: ClientError,
        queue: &QueueName,
        place: &Place,
    ) -> Result<Duration, ClientError> {
        let pause = if error.code() == Some("unknown_queue") {
            if self.set_message(LastMessage::NoQueue) {
                say(&place.no_queue(queue));
            }
            NO_QUEUE_YET
        } else if error.is_transient() {
            let pause = backoff::delay(self.failures, &error);
            if self.set_message(LastMessage::Unreachable) {
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
    fn set_message(&mut self, what: LastMessage) -> bool {
        let is_new = self.last_message != what;
        self.last_message = what;
        is_new
    }
}
