//! The messages of the timers' queue: timers, and requests to continue a sweep or a walk.
//!
//! Like hints, they carry no state. If one is lost, the next tick finds the record. A duplicate has no effect.

use serde::{Deserialize, Serialize};

use crate::decision::Effect;
use crate::id::{CronId, QueueName, RecordId};
use crate::time::Timestamp;

/// The version of the messages' format. Readers refuse every other version.
const FORMAT: u8 = 1;

/// A message of the timers' queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wake {
    /// Read one record.
    Timer(Timer),
    /// Read several records whose instants lie within one second, earliest first.
    Timers(Vec<Timer>),
    /// Sweep one shard.
    Sweep(Sweep),
    /// Send the hints of the parked records of one shard.
    Resume(Resume),
    /// Send timers for the instants of a shard.
    Handover(Handover),
}

/// An instant of a task or execution whose effect users can see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timer {
    #[serde(flatten)]
    pub record: RecordId,
    /// When to read the record.
    pub at: Timestamp,
    /// The due slot for which it was sent. If the record has another due slot when it arrives, another timer or a
    /// tick is responsible, and this timer isn't sent again.
    pub due_at: Timestamp,
}

/// The due slot of a timer that belongs to none: it was sent before a change.
pub const BEFOREHAND: Timestamp = Timestamp::EPOCH;

impl Timer {
    /// Sent before a change whose process may die before it has done what follows: whoever gets the message looks after it.
    pub fn beforehand(record: RecordId, now: Timestamp) -> Self {
        Self { record, at: now, due_at: BEFOREHAND }
    }

    /// Whether it was sent before a change, and belongs to no due slot.
    pub fn is_beforehand(&self) -> bool {
        self.due_at == BEFOREHAND
    }
}

/// Tells a cron that one of its runs has ended, so that the next one starts.
pub(crate) const fn end_of_run(cron: CronId, ended_at: Timestamp) -> Effect {
    Effect::Timer(Timer { record: RecordId::Cron(cron), at: ended_at, due_at: ended_at })
}

/// A shard with more due records than one tick could process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sweep {
    pub shard: u16,
    /// The token of this sweep: it continues only while the tick's record has the same token. A sweep without a
    /// token starts only if no other sweep is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

/// The rest of a tick's slot in one shard, with more instants than the tick sends timers for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handover {
    pub shard: u16,
    pub from: Timestamp,
    /// The end of the slot.
    pub until: Timestamp,
    /// Where to continue in the slot: the store's page token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// A shard of a queue that was resumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    pub queue: QueueName,
    pub shard: u16,
    /// The resuming that it belongs to. A later resuming starts a new walk. Absent in messages of older builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The instant in the due index from which to continue; the beginning if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
}

/// Why a body isn't one of these messages.
#[derive(Debug, thiserror::Error)]
pub enum WakeError {
    /// Not JSON of this shape. The error's text gives the position, never the content.
    #[error("not a timer: {category:?} error at line {line} column {column}", category = .0.classify(), line = .0.line(), column = .0.column())]
    Malformed(#[from] serde_json::Error),
    /// Written in another version.
    #[error("a timer of format {found}, where this build reads {FORMAT}")]
    UnknownFormat {
        /// The version in the message.
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
    /// Reads a message's body. An unknown version is refused before the rest is read.
    pub fn parse(body: &str) -> Result<Self, WakeError> {
        let Envelope { v, wake: serde::de::IgnoredAny } = serde_json::from_str(body)?;
        if v != u64::from(FORMAT) {
            return Err(WakeError::UnknownFormat { found: v });
        }
        Ok(serde_json::from_str::<Envelope<Self>>(body)?.wake)
    }

    pub fn body(&self) -> Result<String, WakeError> {
        Ok(serde_json::to_string(&Envelope { v: u64::from(FORMAT), wake: self })?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{ExecutionId, TaskId};

    /// Messages that deployed builds send to each other.
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
