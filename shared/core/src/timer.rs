//! What travels through the queue of timers: when to look at a task again, and parts of a sweep.
//!
//! Like hints they only help. One that is lost leaves its task to the next tick; one too many finds nothing to do.

use serde::{Deserialize, Serialize};

use crate::id::{QueueName, RecordId};
use crate::time::Timestamp;

/// The version of the messages' format. Readers refuse another one.
const FORMAT: u8 = 1;

/// A message of the queue of timers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wake {
    /// Look at one record.
    Timer(Timer),
    /// Look at several records whose instants lie within a second, earliest first.
    Timers(Vec<Timer>),
    /// Sweep one shard.
    Sweep(Sweep),
    /// Send the hints of what is parked in one shard.
    Resume(Resume),
    /// Hand a shard's instants to timers.
    Handover(Handover),
}

/// An instant of a task or execution that somebody will see pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timer {
    /// Whose.
    #[serde(flatten)]
    pub record: RecordId,
    /// When to look.
    pub at: Timestamp,
    /// The place in the due index that it stands for. If the task lies elsewhere by then, another timer or a tick
    /// stands for it, and this one isn't sent on.
    pub due_at: Timestamp,
}

/// A shard with more in it than one tick could do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sweep {
    /// Which.
    pub shard: u16,
    /// The token of this sweep: it goes on only while the ticks' record has the same. Without one, the sweep begins
    /// only if no other is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

/// A part of a tick's slot, in one shard, that holds more instants than the tick hands over itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handover {
    /// Which shard.
    pub shard: u16,
    /// From when.
    pub from: Timestamp,
    /// The end of the slot.
    pub until: Timestamp,
    /// Where in it to go on, as the store says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// A shard of a queue that was resumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    /// The queue.
    pub queue: QueueName,
    /// Which shard.
    pub shard: u16,
    /// The resuming that it belongs to: a later one walks anew. Older builds don't say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// From which place in the due index on; all of it if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
}

/// Why a message isn't one of these.
#[derive(Debug, thiserror::Error)]
pub enum WakeError {
    /// Not JSON of this shape. The text of the error says where, not what.
    #[error("not a timer: {category:?} error at line {line} column {column}", category = .0.classify(), line = .0.line(), column = .0.column())]
    Malformed(#[from] serde_json::Error),
    /// Written by another version.
    #[error("a timer of format {found}, where this build reads {FORMAT}")]
    UnknownFormat {
        /// The version it claims.
        found: u64,
    },
}

#[derive(Serialize, Deserialize)]
struct Envelope<T> {
    v: u64,
    #[serde(flatten)]
    wake: T,
}

impl Wake {
    /// Reads a message's body; an unknown version is refused before anything else is looked at.
    pub fn parse(body: &str) -> Result<Self, WakeError> {
        let Envelope { v, wake: serde::de::IgnoredAny } = serde_json::from_str(body)?;
        if v != u64::from(FORMAT) {
            return Err(WakeError::UnknownFormat { found: v });
        }
        Ok(serde_json::from_str::<Envelope<Self>>(body)?.wake)
    }

    /// The message's body.
    pub fn body(&self) -> Result<String, WakeError> {
        Ok(serde_json::to_string(&Envelope { v: u64::from(FORMAT), wake: self })?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{ExecutionId, TaskId};

    /// What deployed builds send each other.
    const TIMER: &str = r#"{"v":1,"timer":{"task":"t-1","at":1767225600250,"due_at":1767225590000}}"#;
    const TURN_TIMER: &str =
        r#"{"v":1,"timer":{"execution":"e-1","at":1767225600250,"due_at":1767225590000}}"#;
    const TIMERS: &str = r#"{"v":1,"timers":[{"task":"t-1","at":1767225600250,"due_at":1767225590000}]}"#;
    const SWEEP: &str = r#"{"v":1,"sweep":{"shard":12}}"#;
    const NEXT_SWEEP: &str = r#"{"v":1,"sweep":{"shard":12,"since":1767225590000}}"#;
    const HANDOVER: &str =
        r#"{"v":1,"handover":{"shard":12,"from":1767225590000,"until":1767225600250,"cursor":"abc"}}"#;

    const RESUME: &str = r#"{"v":1,"resume":{"queue":"mail","shard":7}}"#;
    const RESUME_FROM: &str = r#"{"v":1,"resume":{"queue":"mail","shard":7,"from":0}}"#;
    const RESUME_SINCE: &str =
        r#"{"v":1,"resume":{"queue":"mail","shard":7,"since":1767225590000,"from":0}}"#;

    fn resume(since: Option<Timestamp>, from: Option<Timestamp>) -> Wake {
        Wake::Resume(Resume { queue: QueueName::parse("mail").unwrap(), shard: 7, since, from })
    }

    #[test]
    fn messages_are_written_and_read_as_they_always_were() {
        let timer = Timer {
            record: RecordId::Task(TaskId::parse("t-1").unwrap()),
            at: Timestamp::from_millis(1_767_225_600_250),
            due_at: Timestamp::from_millis(1_767_225_590_000),
        };
        let record = RecordId::Execution(ExecutionId::parse("e-1").unwrap());
        let other = Timer { record, ..timer.clone() };
        let (from, until) = (timer.due_at, timer.at);
        let handover = Handover { shard: 12, from, until, cursor: Some("abc".to_owned()) };
        let cases = [
            (Wake::Timers(vec![timer.clone()]), TIMERS),
            (Wake::Timer(timer), TIMER),
            (Wake::Timer(other), TURN_TIMER),
            (Wake::Sweep(Sweep { shard: 12, since: None }), SWEEP),
            (Wake::Sweep(Sweep { shard: 12, since: Some(from) }), NEXT_SWEEP),
            (Wake::Handover(handover), HANDOVER),
            (resume(None, None), RESUME),
            (resume(None, Some(Timestamp::EPOCH)), RESUME_FROM),
            (resume(Some(from), Some(Timestamp::EPOCH)), RESUME_SINCE),
        ];
        for (wake, text) in cases {
            assert_eq!(wake.body().unwrap(), text);
            assert_eq!(Wake::parse(text).unwrap(), wake);
        }
    }

    #[test]
    fn another_version_is_refused_by_name_and_anything_else_without_its_text() {
        let newer = Wake::parse(r#"{"v":2,"alarm":{"secret":1}}"#).unwrap_err();
        assert_eq!(newer.to_string(), "a timer of format 2, where this build reads 1");
        for text in
            ["", "{}", r#"{"v":1}"#, r#"{"v":1,"secret":{}}"#, r#"{"v":1,"timer":{"task":"secret secret"}}"#]
        {
            let error = Wake::parse(text).unwrap_err().to_string();
            assert!(error.starts_with("not a timer: ") && !error.contains("secret"), "{error}");
        }
    }
}
