//! Answers of the API. Payloads stay the text they came as; fields that are new to this build are ignored.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use tickover_core::id::{TaskId, TaskKind};
use tickover_core::time::Timestamp;

use crate::task::Task;

/// `{"task": …}`, not yet looked into.
#[derive(Debug, Deserialize)]
pub(crate) struct Single {
    task: Box<RawValue>,
}

impl Single {
    /// The task as it came.
    pub(crate) fn json(&self) -> &str {
        self.task.get()
    }

    /// The task, read.
    pub(crate) fn task(&self) -> anyhow::Result<Task> {
        Ok(serde_json::from_str(self.task.get())?)
    }
}

/// A page of a list.
#[derive(Debug, Deserialize)]
pub(crate) struct Page {
    /// The tasks as they came.
    pub(crate) tasks: Vec<Box<RawValue>>,
    /// Where the next page begins; absent on the last one.
    pub(crate) cursor: Option<String>,
}

/// What became of a cancellation.
#[derive(Debug, Deserialize)]
pub(crate) struct Cancelled {
    /// `cancelled`, `requested` or `already_finished`.
    pub(crate) outcome: String,
    /// Where the task stands now.
    pub(crate) task: Task,
}

/// What a claim brought.
#[derive(Debug, Deserialize)]
pub(super) struct Claimed {
    pub(super) tasks: Vec<ClaimedTask>,
}

/// A task in our hands.
#[derive(Debug, Deserialize)]
pub(crate) struct ClaimedTask {
    /// Its id.
    pub(crate) id: TaskId,
    /// What sort of work it is.
    pub(crate) kind: TaskKind,
    /// Its input as it was written, `null` included; `None` if it has none.
    #[serde(default, deserialize_with = "present")]
    pub(crate) input: Option<Box<RawValue>>,
    /// The number of this attempt, from 1.
    pub(crate) attempt: u32,
    /// The trace that it belongs to, if the server carries traces.
    pub(crate) traceparent: Option<String>,
    /// The token to report with.
    pub(crate) lease: String,
    /// By when the attempt must be done, as the server wrote it.
    pub(crate) deadline_at: Option<String>,
    /// What was left until then when the server answered.
    pub(crate) remaining_ms: Option<u64>,
}

/// A lease renewed.
#[derive(Debug, Deserialize)]
pub(crate) struct Renewed {
    /// What was left until the attempt's deadline when the server answered.
    pub(crate) remaining_ms: Option<u64>,
    /// Whether somebody wants the task cancelled.
    #[serde(default)]
    pub(crate) cancel_requested: bool,
}

/// An attempt closed.
#[derive(Debug, Deserialize)]
pub(crate) struct Closed {
    /// Where the task stands now.
    pub(crate) task: Task,
}

/// An attempt that is over.
#[derive(Debug, Deserialize)]
pub(crate) struct Attempt {
    /// Its number.
    #[serde(rename = "attempt")]
    pub(crate) number: u32,
    /// Who had it.
    pub(crate) worker: Option<String>,
    /// When it was claimed.
    #[serde(default, deserialize_with = "instant")]
    pub(crate) claimed_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, deserialize_with = "instant")]
    pub(crate) ended_at: Option<Timestamp>,
    /// How it ended; absent while it runs.
    pub(crate) outcome: Option<String>,
    /// What went wrong.
    pub(crate) error: Option<crate::task::Failure>,
}

/// Keeps a JSON `null` apart from nothing at all.
pub(crate) fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(value).map(Some)
}

/// Reads RFC 3339.
pub(crate) fn instant<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Timestamp>, D::Error> {
    let text = String::deserialize(value)?;
    let instant = Timestamp::parse_rfc3339(&text);
    instant.map(Some).ok_or_else(|| serde::de::Error::custom(format!("not an instant: {text}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_kept_verbatim_and_null_is_not_nothing() {
        let task = |input: &str| {
            let text =
                format!(r#"{{"id":"a","kind":"k",{input}"attempt":1,"lease":"l","lease_expires_at":"x"}}"#);
            serde_json::from_str::<ClaimedTask>(&text).unwrap().input.map(|input| input.get().to_owned())
        };
        assert_eq!(task(""), None);
        assert_eq!(task(r#""input":null,"#), Some("null".to_owned()));
        assert_eq!(task(r#""input":{"b": 1.50},"#), Some(r#"{"b": 1.50}"#.to_owned()));
    }
}
