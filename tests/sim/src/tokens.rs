//! What has left the system: the tokens of callbacks, which somebody without credentials has.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tickover_core::duration::Millis;
use tickover_core::id::{EventName, ExecutionId, Incarnation};
use tickover_core::time::Timestamp;
use tokio::sync::Notify;

/// A token that somebody has got.
#[derive(Clone, Debug)]
pub struct Given {
    pub execution: ExecutionId,
    /// The execution's incarnation among those that had this id.
    pub incarnation: Incarnation,
    pub event: EventName,
    pub token: String,
    pub expires_at: Timestamp,
    /// The longest time between two reports, if that counts.
    pub heartbeat: Option<Millis>,
}

/// The tokens that nobody has looked at.
#[derive(Debug, Default)]
pub struct Outside {
    state: Mutex<State>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct State {
    known: BTreeSet<String>,
    waiting: VecDeque<Given>,
}

impl Outside {
    /// Somebody gets a token; the same token counts once.
    pub fn give(&self, given: Given) {
        let mut state = self.state();
        if state.known.insert(given.token.clone()) {
            state.waiting.push_back(given);
            self.arrived.notify_one();
        }
    }

    /// The next token.
    pub async fn next(&self) -> Given {
        loop {
            let first = self.state().waiting.pop_front();
            match first {
                Some(given) => return given,
                None => self.arrived.notified().await,
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
