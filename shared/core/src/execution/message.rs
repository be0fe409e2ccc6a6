//! The hint of an execution whose next turn may start.

use serde::{Deserialize, Serialize};

use crate::execution::{Execution, FORMAT};
use crate::id::{ExecutionId, Incarnation};
use crate::lane::Lane;
use crate::task::hint::HintError;
use crate::time::Timestamp;

/// A turn's hint. It carries no copy of the record, because a turn reads the record anyway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnHint {
    /// Version of the format.
    pub v: u8,
    /// The execution.
    pub turn: HintedTurn,
}

/// The execution that a hint is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HintedTurn {
    pub id: ExecutionId,
    /// The execution's incarnation. The hint doesn't apply to another execution that has the id by now.
    pub inc: Incarnation,
    /// When it was to arrive. Its receiver then knows that messages which were to arrive earlier have been received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Where it stands in its queue, also if it is sent once more.
    #[serde(rename = "ln", default, skip_serializing_if = "Lane::is_plain")]
    pub lane: Lane,
}

impl TurnHint {
    pub fn of(execution: &Execution) -> Self {
        let (id, inc, lane) = (execution.id.clone(), execution.incarnation, execution.lane());
        Self { v: FORMAT, turn: HintedTurn { id, inc, at: None, lane } }
    }

    /// The same hint, to arrive at this instant.
    #[must_use]
    pub fn arriving(mut self, at: Timestamp) -> Self {
        self.turn.at = Some(at);
        self
    }

    /// Whether a message's body is a turn's hint, of any version.
    pub fn is_turn_hint(body: &str) -> bool {
        #[derive(Deserialize)]
        struct Marked {
            #[serde(rename = "turn")]
            _turn: serde::de::IgnoredAny,
        }
        serde_json::from_str::<Marked>(body).is_ok()
    }

    /// Reads a message's body. An unknown version is refused before anything else is read.
    pub fn parse(body: &str) -> Result<Self, HintError> {
        #[derive(Deserialize)]
        struct Envelope {
            v: u64,
        }
        let envelope: Envelope = serde_json::from_str(body)?;
        if envelope.v != u64::from(FORMAT) {
            return Err(HintError::UnknownFormat { found: envelope.v });
        }
        Ok(serde_json::from_str(body)?)
    }

    pub fn body(&self) -> Result<String, HintError> {
        Ok(serde_json::to_string(self)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::Priority;
    use crate::task::hint::Hint;

    /// The body that deployed builds send to each other.
    const GOLDEN: &str = r#"{"v":1,"turn":{"id":"order-7","inc":"BwcHBwcHBwc"}}"#;

    #[test]
    fn a_hint_is_written_and_read_as_it_always_was() {
        let id = ExecutionId::parse("order-7").unwrap();
        let inc = Incarnation::from_bytes([7; 8]);
        let hint = TurnHint { v: FORMAT, turn: HintedTurn { id, inc, at: None, lane: Lane::default() } };
        assert_eq!(hint.body().unwrap(), GOLDEN);
        assert_eq!(TurnHint::parse(GOLDEN).unwrap(), hint);
        assert!(TurnHint::is_turn_hint(GOLDEN));
    }

    #[test]
    fn a_hint_says_when_it_was_to_arrive() {
        let hint = TurnHint::parse(GOLDEN).unwrap().arriving(Timestamp::from_millis(1_767_225_600_250));
        let body = r#"{"v":1,"turn":{"id":"order-7","inc":"BwcHBwcHBwc","at":1767225600250}}"#;
        assert_eq!(hint.body().unwrap(), body);
        assert_eq!(TurnHint::parse(body).unwrap(), hint);
    }

    #[test]
    fn a_hint_says_where_it_stands_in_its_queue_also_when_it_is_sent_once_more() {
        let lane = Lane { priority: Priority::Low, tenant: None };
        let hint = TurnHint::parse(GOLDEN).unwrap();
        assert_eq!(Hint::lane_of(&hint.body().unwrap()), Lane::default());
        let hint = TurnHint { turn: HintedTurn { lane, ..hint.turn }, ..hint };
        let body = r#"{"v":1,"turn":{"id":"order-7","inc":"BwcHBwcHBwc","ln":{"p":"l"}}}"#;
        assert_eq!(hint.body().unwrap(), body);
        assert_eq!((TurnHint::parse(body).unwrap(), Hint::lane_of(body)), (hint, lane));
    }

    #[test]
    fn other_messages_and_versions_are_told_apart() {
        let newer = GOLDEN.replace("\"v\":1", "\"v\":2");
        assert!(TurnHint::is_turn_hint(&newer));
        assert!(matches!(TurnHint::parse(&newer), Err(HintError::UnknownFormat { found: 2 })));
        for other in ["", "{}", r#"{"v":1,"task":{}}"#] {
            assert!(!TurnHint::is_turn_hint(other) && TurnHint::parse(other).is_err(), "{other}");
        }
    }
}
