//! Drift: what is remembered of the run and the code never asks for, because it was changed.
//!
//! Once the code has heard of all that has happened it has used each name that is remembered, or it isn't the code that
//! was run before: a step that was given another name would run again. That is known before anything new begins.

use tickover_core::execution::journal::{DRIFT, Happened};
use tickover_core::id::StepName;
use tickover_core::task;
use tickover_core::time::Timestamp;
use tickover_service::telemetry::field;

use super::drive::Driver;
use super::state::Verdict;
use crate::options::OnDrift;

/// Names that are told of one run.
const TOLD: usize = 20;

impl Driver {
    /// Looks for drift when the code has come to where it goes on for the first time in this turn. Whether the run
    /// stops for it.
    pub(super) fn look_for_drift(&mut self, now: Timestamp) -> bool {
        if std::mem::replace(&mut self.is_through, true) {
            return false;
        }
        let unused: Vec<StepName> = {
            let state = self.shared.lock();
            state.replay.unused().filter(|name| state.is_of_this_code(name)).cloned().collect()
        };
        self.tell_drift(&unused, now);
        if unused.is_empty() || self.workflow.options.on_drift == OnDrift::GoOn {
            return false;
        }
        let names: Vec<String> = unused.iter().take(TOLD).map(|name| format!("`{name}`")).collect();
        let text = format!(
            "the code doesn't ask for what is remembered of {}: it isn't the code that ran before",
            names.join(", ")
        );
        self.shared.lock().verdict = Some(Verdict::Unreadable(task::Failure::new(DRIFT, text)));
        true
    }

    /// The same where the code has ended: also of what was kept from an earlier run.
    pub(super) fn look_for_leftovers(&self) {
        let unused: Vec<StepName> = {
            let state = self.shared.lock();
            state.replay.unclaimed().filter(|name| state.is_of_this_code(name)).cloned().collect()
        };
        self.tell_drift(&unused, self.service.now());
    }

    /// Names what isn't used, once each, in the log and in the run's timeline.
    fn tell_drift(&self, unused: &[StepName], now: Timestamp) {
        let mut state = self.shared.lock();
        let fresh: Vec<_> = unused.iter().filter(|name| !state.replay.is_noted(name)).take(TOLD).collect();
        for name in fresh {
            tracing::warn!(
                { field::EXECUTION_ID } = %self.record.id, workflow = %self.record.workflow, step = %name,
                "the code doesn't ask for a result that is remembered: was it changed?"
            );
            state.replay.push(now, Happened::Note { kind: DRIFT.to_owned(), name: Some(name.clone()) });
        }
    }
}
