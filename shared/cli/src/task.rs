//! A task as answers describe it.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use tickover_core::retry::MaxAttempts;
use tickover_core::task::Status;
use tickover_core::time::Timestamp;

use crate::client::{Attempt, instant, present};

/// A task with everything an answer says of it. Instants that don't apply are absent.
#[derive(Debug, Deserialize)]
pub(crate) struct Task {
    /// Its id.
    pub(crate) id: String,
    /// Where workers find it.
    pub(crate) queue: String,
    /// What sort of work it is.
    pub(crate) kind: String,
    /// Where it stands.
    #[serde(deserialize_with = "status")]
    pub(crate) status: Status,
    /// Attempts used, the running one included; lost and released ones don't count.
    #[serde(default)]
    pub(crate) attempt: u32,
    /// How many there may be.
    #[serde(default)]
    pub(crate) max_attempts: MaxAttempts,
    /// When it was scheduled.
    #[serde(default, deserialize_with = "instant")]
    pub(crate) created_at: Option<Timestamp>,
    /// From when a worker may have it.
    #[serde(default, deserialize_with = "instant")]
    pub(crate) available_at: Option<Timestamp>,
    /// When it ends, whatever attempts are left.
    #[serde(default, deserialize_with = "instant")]
    pub(crate) deadline_at: Option<Timestamp>,
    /// Until when a worker must have claimed this attempt.
    #[serde(default, deserialize_with = "instant")]
    pub(crate) schedule_to_start_at: Option<Timestamp>,
    /// Until when the running attempt must have ended.
    #[serde(default, deserialize_with = "instant")]
    pub(crate) start_to_close_at: Option<Timestamp>,
    /// Until when the worker's next sign of life must have come.
    #[serde(default, deserialize_with = "instant")]
    pub(crate) heartbeat_at: Option<Timestamp>,
    /// Until when the worker counts as alive.
    #[serde(default, deserialize_with = "instant")]
    pub(crate) lease_expires_at: Option<Timestamp>,
    /// The timeout that ended it.
    pub(crate) timeout_kind: Option<String>,
    /// Its input.
    #[serde(default, deserialize_with = "present")]
    pub(crate) input: Option<Box<RawValue>>,
    /// Its result.
    #[serde(default, deserialize_with = "present")]
    pub(crate) output: Option<Box<RawValue>>,
    /// The error it ended with.
    pub(crate) error: Option<Failure>,
    /// Its last attempts, oldest first.
    #[serde(default)]
    pub(crate) attempts: Vec<Attempt>,
    /// How far the running attempt says it is, from 0 to 1.
    pub(crate) progress: Option<f64>,
    /// Its labels.
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
    /// What happens next by itself.
    pub(crate) next: Option<Next>,
}

/// An error.
#[derive(Debug, Deserialize)]
pub(crate) struct Failure {
    /// What sort of error.
    pub(crate) code: String,
    /// For people.
    #[serde(default)]
    pub(crate) message: String,
}

/// What happens next by itself.
#[derive(Debug, Deserialize)]
pub(crate) struct Next {
    /// What.
    pub(crate) what: String,
    /// When; absent where it is up to others.
    #[serde(default, deserialize_with = "instant")]
    pub(crate) at: Option<Timestamp>,
}

impl Task {
    /// The attempt that runs.
    pub(crate) fn current(&self) -> Option<&Attempt> {
        self.attempts.iter().rev().find(|attempt| attempt.ended_at.is_none())
    }

    /// The last attempt that ended.
    pub(crate) fn last_ended(&self) -> Option<&Attempt> {
        self.attempts.iter().rev().find(|attempt| attempt.ended_at.is_some())
    }

    /// The last error of any attempt, and the attempt.
    pub(crate) fn last_error(&self) -> Option<(&Attempt, &Failure)> {
        self.attempts.iter().rev().find_map(|attempt| attempt.error.as_ref().map(|error| (attempt, error)))
    }

    /// How many attempts there may still be after the ones used; `None` without a limit.
    pub(crate) fn attempts_left(&self) -> Option<u32> {
        match self.max_attempts {
            MaxAttempts::Skip => Some(0),
            MaxAttempts::Limited(limit) => Some(limit.get().saturating_sub(self.attempt)),
            MaxAttempts::Unlimited => None,
        }
    }
}

impl Failure {
    /// Code and message in one line.
    pub(crate) fn line(&self) -> String {
        // A message is often a whole standard error, of which the end says most.
        let last = self.message.lines().map(str::trim).rfind(|line| !line.is_empty());
        match last {
            Some(last) => format!("{}: {last}", self.code),
            None => self.code.clone(),
        }
    }
}

fn status<'de, D: Deserializer<'de>>(value: D) -> Result<Status, D::Error> {
    let name = String::deserialize(value)?;
    Status::parse(&name)
        .ok_or_else(|| serde::de::Error::custom(format!("unknown status {name}: a newer server?")))
}
