//! A wait that somebody ends with a token. Its names are those of the SDK: what is kept of them, and which reports are
//! too late, follows from the names.

use std::collections::VecDeque;

use tickover_core::duration::Millis;
use tickover_core::execution::journal::Happened;
use tickover_core::id::{EventName, StepName};
use tickover_core::payload::{Json, Payload};
use tickover_core::time::Timestamp;
use tickover_service::callbacks::event_of;

use super::{Flow, RunningTurn, Stop, step};
use crate::tokens::Given;

impl RunningTurn<'_> {
    pub(super) async fn callback(
        &mut self,
        name: StepName,
        within: Millis,
        heartbeat: Option<Millis>,
    ) -> Result<Flow, Stop> {
        let Some(event) = event_of(self.execution.run_of_callbacks(), name.as_str()) else {
            return Ok(Flow::Next);
        };
        let captured = step(&format!("callback:{name}"));
        let known = match self.last(&captured) {
            Some(Happened::Captured { value: Payload::Inline(json), .. }) => Some(instant(json)),
            _ => None,
        };
        let asked_at = known.unwrap_or_else(|| self.process.now());
        if known.is_none() {
            if let Some(held) = self.held() {
                return Ok(held);
            }
            let value = Payload::Inline(Json::string(&asked_at.as_millis().to_string()));
            self.push(Happened::Captured { name: captured, value });
        }
        let expires_at = asked_at.plus(within);
        // Somebody has it from now on, even if nothing of this turn is ever recorded.
        let token = self.process.token(&self.execution, event.clone(), expires_at).await?;
        let (execution, incarnation) = (self.execution.id.clone(), self.execution.incarnation);
        let given = Given { execution, incarnation, event: event.clone(), token, expires_at, heartbeat };
        self.process.world.outside.give(given);
        for number in 0.. {
            let wait = step(&match number {
                0 => format!("event:{event}"),
                _ => format!("event:{event}[{number}]"),
            });
            if !self.has_ended(&wait) {
                let left = expires_at.since(self.process.now());
                let span = heartbeat.map_or(left, |heartbeat| heartbeat.min(left));
                match self.wait(wait.clone(), event.clone(), Some(span)).await? {
                    Flow::Next if self.has_ended(&wait) => {}
                    stops => return Ok(stops),
                }
            }
            match self.taken(&wait, &event) {
                Some(payload) if self.is_alive(&payload).await? => {}
                Some(_) | None => break,
            }
        }
        Ok(Flow::Next)
    }

    /// The payload of the event that a wait took; `None` if the wait timed out.
    fn taken(&self, wait: &StepName, event: &EventName) -> Option<Payload> {
        let mut pending = VecDeque::new();
        for entry in &self.journal {
            match &entry.what {
                Happened::Event { name, payload, .. } if name == event => pending.push_back(payload),
                Happened::Waited { name, event: Some(of) } if of == event => {
                    let taken = pending.pop_front();
                    if name == wait {
                        return taken?.clone();
                    }
                }
                _ => {}
            }
        }
        None
    }

    async fn is_alive(&self, payload: &Payload) -> Result<bool, Stop> {
        Ok(self.process.open(payload).await?.as_str().contains("alive"))
    }
}

fn instant(json: &Json) -> Timestamp {
    let text: String = serde_json::from_str(json.as_str()).unwrap_or_default();
    Timestamp::from_millis(text.parse().unwrap_or(0))
}
