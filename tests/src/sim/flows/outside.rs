//! The outside world of the example workflows: it takes its time to answer, and what a step asks of it is noted.

use std::sync::Arc;

use tickover::{StepInfo, step_info};
use tickover_service::ports::Clock as _;

use crate::sim::gate::Gate;
use crate::sim::history::What;
use crate::sim::history::act::{Act, Stage};
use crate::sim::history::execution::Happening;

tokio::task_local! {
    static WAY: Way;
}

/// The way from the steps of one process to the outside.
#[derive(Clone)]
pub struct Way {
    gate: Arc<Gate>,
    call: u64,
}

impl Way {
    /// The way of a process whose engine's decisions are noted as of this call.
    pub const fn new(gate: Arc<Gate>, call: u64) -> Self {
        Self { gate, call }
    }

    /// Runs what the steps run in.
    pub async fn scope<F: Future>(self, worker: F) -> F::Output {
        WAY.scope(self, worker).await
    }

    /// A request to the outside, with its answer. The process may die or freeze on the way.
    async fn ask(&self, info: &StepInfo) {
        self.note(info, Stage::Begins);
        let dice = &self.gate.dice;
        let is_slow = self.gate.world.is_stormy() && dice.chance(150);
        let span = if is_slow { dice.millis(3_000, 90_000) } else { dice.millis(0, 2_000) };
        self.gate.pass().await;
        self.note(info, Stage::Asks);
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

/// The step that is running asks something of the outside. Which of its attempts it is.
pub(crate) async fn call() -> u32 {
    let Some(info) = step_info() else { return 0 };
    // In an undisturbed run the outside answers at once.
    if let Ok(way) = WAY.try_with(Clone::clone) {
        way.ask(&info).await;
    }
    info.attempt
}
