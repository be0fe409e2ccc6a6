//! Drift: the journal has results that the code doesn't ask for, because the code was changed.
//!
//! When all outcomes were delivered, the code has used every name in the journal. Otherwise it isn't the code that ran
//! before: a renamed step would run again. So drift is detected before anything new starts.

use tickover_core::execution::journal::{DRIFT, Happened};
use tickover_core::id::StepName;
use tickover_core::task;
use tickover_core::time::Timestamp;
use tickover_service::telemetry::field;

use super::drive::Driver;
use super::state::Verdict;
use crate::options::OnDrift;

/// How many names are reported for one run.
const REPORTED_MAX: usize = 20;

/// The code hasn't asked for these names of the journal.
fn unasked(names: &[StepName]) -> task::Failure {
    let names: Vec<String> = names.iter().take(REPORTED_MAX).map(|name| format!("`{name}`")).collect();
    let text = format!(
        "the code doesn't ask for the stored results of {}: it isn't the code that ran before",
        names.join(", ")
    );
    task::Failure::new(DRIFT, text)
}

impl Driver {
    /// Checks for drift when the replay is complete for the first time in this turn. Returns whether the run stops
    /// because of it.
    pub(super) fn check_drift(&mut self, now: Timestamp) -> bool {
        if std::mem::replace(&mut self.is_replayed, true) {
            return false;
        }
        let unused = self.unused();
        self.report_drift(&unused, now);
        if unused.is_empty() || self.workflow.options.on_drift == OnDrift::GoOn {
            return false;
        }
        self.shared.lock().verdict = Some(Verdict::Unreadable(unasked(&unused), None));
        true
    }

    /// The names in the journal that the code hasn't asked for.
    pub(super) fn unused(&self) -> Vec<StepName> {
        let state = self.shared.lock();
        state.replay.unused().filter(|name| state.is_of_this_code(name)).cloned().collect()
    }

    /// Checks for drift when the code has ended. This includes results that were kept from an earlier run.
    pub(super) fn check_leftovers(&self) {
        let unused: Vec<StepName> = {
            let state = self.shared.lock();
            state.replay.unclaimed().filter(|name| state.is_of_this_code(name)).cloned().collect()
        };
        self.report_drift(&unused, self.service.now());
    }

    /// Reports each unused name once, in the log and in the run's timeline.
    fn report_drift(&self, unused: &[StepName], now: Timestamp) {
        let mut state = self.shared.lock();
        let fresh: Vec<_> =
            unused.iter().filter(|name| !state.replay.is_noted(name)).take(REPORTED_MAX).collect();
        for name in fresh {
            tracing::warn!(
                { field::EXECUTION_ID } = %self.record.id, workflow = %self.record.workflow, step = %name,
                "the code doesn't ask for a stored result: was it changed?"
            );
            state
                .replay
                .push(now, Happened::Note { kind: DRIFT.to_owned(), name: Some(name.clone()), by: None });
        }
    }
}
