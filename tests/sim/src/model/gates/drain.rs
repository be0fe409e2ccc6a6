//! What comes of a state in which nothing happens, once ticks come and nothing more goes wrong.

use stateright::Model as _;

use super::process::Process;
use super::record::Status;
use super::{GateProtocol, GateState, GateStep};

/// After so many ticks all have come, whatever has happened.
const TICKS: usize = 1;
/// If a worker was lost: its lease is over before the last one.
const TICKS_AFTER_A_LOSS: usize = 2;
/// Most steps between two ticks.
const STEPS: usize = 400;

impl GateProtocol {
    /// Whether all tasks come to their ends.
    pub(super) fn drains(&self, state: &GateState) -> bool {
        let mut state = self.settle(state.clone());
        for _ in 0..if state.faults.losses > 0 { TICKS_AFTER_A_LOSS } else { TICKS } {
            state.now = u8::try_from(self.plan.instants.len()).unwrap_or(u8::MAX).max(state.now + 1);
            if state.tasks.iter().any(|work| work.items != 0) {
                state.begin(Process::tick(), None);
            }
            state = self.settle(state);
        }
        state.tasks.iter().all(|work| work.status == Status::Ended)
    }

    /// Goes on until nothing happens any more. Attempts end when there is nothing else.
    fn settle(&self, mut state: GateState) -> GateState {
        for _ in 0..STEPS {
            let now = self.now(&state);
            let is_running =
                |(_, work): &(u8, &super::Work)| matches!(work.status, Status::Running { lost: false, .. });
            let comes_again = |(_, work): &(u8, &super::Work)| {
                let is_by_message = matches!(work.status, Status::Running { position: None, lost: true, .. });
                is_by_message && work.is_lost(now)
            };
            let busy = state.slots.iter().position(|slot| slot.does != Process::Idle);
            let next = if let Some(at) = busy {
                GateStep::Go(at)
            } else if !state.messages.is_empty() {
                GateStep::Receive(0)
            } else if let Some((task, _)) = (0..).zip(&state.tasks).find(is_running) {
                GateStep::End(task, false)
            } else if let Some((task, _)) = (0..).zip(&state.tasks).find(comes_again) {
                GateStep::Reappear(task)
            } else if let Some((task, _)) =
                (0..).zip(&state.tasks).find(|(_, work)| work.status == Status::Unscheduled)
            {
                GateStep::Schedule(task)
            } else {
                break;
            };
            let Some(after) = self.next_state(&state, next) else { break };
            state = after;
        }
        state
    }
}
