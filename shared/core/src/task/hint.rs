//! The message that a task is ready for a worker. It is only a hint: the record in the table decides.

use serde::{Deserialize, Serialize};

use crate::flow::Flow;
use crate::lane::Lane;
use crate::parked::Parked;
use crate::task::{FORMAT, Task};

/// A hint's body: a copy of the record, so that a claim needs no read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hint {
    /// Version of the format.
    pub v: u8,
    /// The record, with its id, incarnation and version.
    pub task: Task,
}

impl From<serde_json::Error> for HintError {
    fn from(error: serde_json::Error) -> Self {
        Self::Malformed(error)
    }
}

/// Why a body isn't a hint.
#[derive(Debug, thiserror::Error)]
pub enum HintError {
    /// Not JSON of this shape. The error's text gives the position, never the content, because a body may contain
    /// anything.
    #[error("not a hint: {category:?} error at line {line} column {column}", category = .0.classify(), line = .0.line(), column = .0.column())]
    Malformed(serde_json::Error),
    /// Written in another version.
    #[error("a hint of format {found}, where this build reads {FORMAT}")]
    UnknownFormat {
        /// The version in the message.
        found: u64,
    },
}

impl Hint {
    pub fn of(task: &Task) -> Self {
        Self { v: FORMAT, task: task.clone() }
    }

    /// Reads a message's body. An unknown version is refused as such, whatever else is in it.
    pub fn parse(body: &str) -> Result<Self, HintError> {
        match serde_json::from_str(body) {
            Ok(Self { v: FORMAT, task }) if task.format == FORMAT => Ok(Self { v: FORMAT, task }),
            Ok(Self { v: FORMAT, task }) => Err(HintError::UnknownFormat { found: task.format.into() }),
            Ok(Self { v, .. }) => Err(HintError::UnknownFormat { found: v.into() }),
            Err(error) => Err(unknown_format(body).unwrap_or(HintError::Malformed(error))),
        }
    }

    /// Where a message stands in its queue. One that is no hint asks for no order.
    pub fn lane_of(body: &str) -> Lane {
        #[derive(Deserialize)]
        struct Ordered {
            #[serde(default)]
            task: Option<OfTask>,
            #[serde(default)]
            turn: Option<OfTurn>,
        }
        #[derive(Deserialize)]
        struct OfTask {
            #[serde(rename = "fl", default)]
            flow: Option<Box<Flow>>,
            #[serde(rename = "prk", default)]
            parked: Parked,
        }
        #[derive(Deserialize)]
        struct OfTurn {
            #[serde(rename = "ln", default)]
            lane: Lane,
        }
        let Ok(Ordered { task, turn }) = serde_json::from_str(body) else { return Lane::default() };
        let of_task =
            |task: OfTask| task.flow.map(|flow| flow.lane()).unwrap_or_default().called_from(task.parked);
        task.map(of_task).or(turn.map(|turn| turn.lane)).unwrap_or_default()
    }

    pub fn body(&self) -> Result<String, HintError> {
        Ok(serde_json::to_string(self)?)
    }
}

/// The error for a hint of another version, of which nothing but the version can be read.
fn unknown_format(body: &str) -> Option<HintError> {
    #[derive(Deserialize)]
    struct Envelope {
        v: u64,
    }
    let Envelope { v } = serde_json::from_str(body).ok()?;
    (v != u64::from(FORMAT)).then_some(HintError::UnknownFormat { found: v })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::duration::Millis;
    use crate::limits::Limits;
    use crate::parked::Parked;
    use crate::retry::{Jitter, RetryPolicy};
    use crate::task::decide::tests::fixture::{BUSY, Scene, t, task};
    use crate::timeout::OnTimeout::{Cancel, Retry, Terminal};

    /// Written once. From then on, deployed builds send this to each other.
    const GOLDEN: &str = include_str!("../../golden/hint-v1.json");

    /// The hint of a record in which every field is set.
    fn full() -> Hint {
        let mut plan = task()
            .attempts(5)
            .delays(&["1s", "5s"])
            .non_retryable("bad_address")
            .deadline("1d")
            .start_within("10m", Retry)
            .close_within("30m", Terminal)
            .heartbeats("1h", Cancel)
            .input(r#"{"amount":1.50}"#)
            .labels(&format!("{{\"note\":\"{}\"}}", "x".repeat(600)))
            .keyed();
        plan.schedule.retry = RetryPolicy {
            max_delay: Some(Millis::from_secs(60)),
            jitter: Jitter::Full,
            ..plan.schedule.retry
        };
        let scene = plan.scheduled().at("1s").claim("a").fail_with("a", "broken", "on fire");
        let scene = scene.at("10s").claim("b").release("b").claim("c").progress("c", 0.5).cancel();
        Hint::of(
            scene
                .edit(|task| {
                    task.losses = 1;
                    task.revived_at = Some(t("1s"));
                    task.hinted_at = Some(t("2s"));
                    task.parked = Parked::Paused;
                    if let crate::task::State::Running(running) = &mut task.state {
                        running.shared = true;
                    }
                })
                .record(),
        )
    }

    #[test]
    fn a_full_hint_is_written_and_read_exactly_as_it_always_was() {
        let hint = full();
        assert_eq!(hint.body().unwrap(), GOLDEN.trim_end());
        assert_eq!(Hint::parse(GOLDEN).unwrap(), hint);
    }

    #[test]
    fn the_golden_hint_lacks_no_field() {
        let golden: serde_json::Value = serde_json::from_str(GOLDEN).unwrap();
        let keys: Vec<_> = golden["task"].as_object().unwrap().keys().map(String::as_str).collect();
        let all = "att dl due fp hin id in inc k key lab los n non prk pro q ret rev st t0 tim v ver";
        assert_eq!(keys, all.split(' ').collect::<Vec<_>>());
        let running: Vec<_> = golden["task"]["st"]["r"].as_object().unwrap().keys().collect();
        assert_eq!(running, ["c", "d", "h", "l", "m", "r", "s", "w", "x", "z"]);
    }

    #[test]
    fn every_state_is_written_as_it_always_was() {
        let json = |scene: &Scene| serde_json::to_string(&scene.record().state).unwrap();
        let ended = |outcome: &str| {
            let (at, until) = (t("0s").as_millis(), t("0s").plus(Limits::default().retention).as_millis());
            format!(r#"{{"e":{{"o":{outcome},"e":{at},"x":{until}}}}}"#)
        };
        let at = t("0s").as_millis();
        assert_eq!(json(&task().scheduled()), format!(r#"{{"p":{{"a":{at}}}}}"#));
        let later = task().starting_in("1h").start_within("1m", Retry).scheduled();
        let (a, s) = (at + 3_600_000, at + 3_660_000);
        assert_eq!(json(&later), format!(r#"{{"p":{{"a":{a},"s":{s},"l":true}}}}"#));
        let running = || task().scheduled().claim("a");
        assert_eq!(json(&running().complete_with("a", "[1]")), ended(r#"{"c":{"o":{"j":"[1]"}}}"#));
        let failed = running().fail_with("a", "broken", "on fire");
        assert_eq!(json(&failed), ended(r#"{"f":{"x":{"c":"broken","m":"on fire"}}}"#));
        assert_eq!(json(&running().cancel_by_force()), ended(r#"{"z":{}}"#));
        assert_eq!(json(&task().attempts(0).scheduled()), ended(r#""s""#));
        let timed_out = task().deadline("1s").scheduled().at("1s").tick_seeing(BUSY);
        let expected = r#"{"e":{"o":{"t":{"k":"c","x":{"c":"timed_out","m":"the task's deadline passed"#;
        assert!(json(&timed_out).starts_with(expected), "{}", json(&timed_out));
        for scene in [failed, later, timed_out, running().complete("a")] {
            let hint = Hint::of(scene.record());
            assert_eq!(Hint::parse(&hint.body().unwrap()).unwrap(), hint);
        }
    }

    #[test]
    fn an_unknown_version_is_refused_before_the_rest_is_read() {
        let newer = GOLDEN.replacen("\"v\":1", "\"v\":2", 1);
        assert!(matches!(Hint::parse(&newer), Err(HintError::UnknownFormat { found: 2 })));
        let error = Hint::parse(r#"{"v":300,"payload":"of a shape nobody knows yet"}"#).unwrap_err();
        assert_eq!(error.to_string(), "a hint of format 300, where this build reads 1");
    }

    #[test]
    fn an_error_never_repeats_the_content_of_the_message() {
        let error = Hint::parse("\"a secret\"").unwrap_err().to_string();
        assert!(error.contains("line 1") && !error.contains("secret"), "{error}");
    }

    #[test]
    fn a_text_that_is_no_hint_is_refused() {
        for body in ["", "{}", "[]", r#"{"v":"1"}"#, r#"{"v":1}"#, r#"{"v":1,"task":{}}"#, &GOLDEN[..99]] {
            assert!(matches!(Hint::parse(body), Err(HintError::Malformed(_))), "{body}");
        }
    }
}
