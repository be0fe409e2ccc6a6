//! The outside world of the example workflows: it takes time to answer, and each call of a step is recorded.

use std::sync::Arc;

use tickover::{StepInfo, step_info, step_infos};
use tickover_service::ports::Clock as _;

use crate::gate::Gate;
use crate::history::What;
use crate::history::act::{Act, Stage};
use crate::history::execution::Happening;

tokio::task_local! {
    static WAY: OutsideConnection;
}

/// The connection from the steps of one process to the outside world.
#[derive(Clone)]
pub struct OutsideConnection {
    gate: Arc<Gate>,
    call: u64,
}

impl OutsideConnection {
    /// The connection of a process whose engine's decisions are recorded under this call.
    pub const fn new(gate: Arc<Gate>, call: u64) -> Self {
        Self { gate, call }
    }

    /// Runs a worker whose steps use this connection.
    pub async fn scope<F: Future>(self, worker: F) -> F::Output {
        WAY.scope(self, worker).await
    }

    /// A request to the outside world for these steps, with its answer. The process may die or freeze on the way.
    async fn ask(&self, infos: &[StepInfo]) {
        for info in infos {
            self.note(info, Stage::Begins);
        }
        let dice = &self.gate.dice;
        let is_slow = self.gate.world.in_fault_phase() && dice.chance(150);
        let span = if is_slow { dice.millis(3_000, 90_000) } else { dice.millis(0, 2_000) };
        self.gate.pass().await;
        for info in infos {
            self.note(info, Stage::Asks);
        }
        self.gate.clock.sleep_until(self.gate.clock.now().plus(span)).await;
        self.gate.pass().await;
    }

    fn note(&self, info: &StepInfo, stage: Stage) {
        let act = Act {
            call: self.call,
            key: info.idempotency_key.clone(),
            step: info.name.clone(),
            attempt: info.attempt,
            stage,
        };
        self.gate.world.note(self.gate.actor, What::OfExecution(Box::new(Happening::Acted(act))));
    }
}

/// A call of the running step to the outside world. Returns the number of its attempt.
pub(crate) async fn call() -> u32 {
    let Some(info) = step_info() else { return 0 };
    // In an undisturbed run the outside world answers at once.
    if let Ok(way) = WAY.try_with(Clone::clone) {
        way.ask(std::slice::from_ref(&info)).await;
    }
    info.attempt
}

/// The same for all tasks of a batch.
pub(crate) async fn call_for_all() {
    if let Ok(way) = WAY.try_with(Clone::clone) {
        way.ask(&step_infos()).await;
    }
}
