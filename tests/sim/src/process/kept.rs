//! Suspended runs in a process's memory. The next turn of one reads only what has come since, and adds that to what the
//! process knows. The memory ends with its process, and may be of a turn that is long past.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tickover_core::execution::Execution;
use tickover_core::execution::journal::Entry;
use tickover_core::id::ExecutionId;
use tickover_core::payload::Json;
use tickover_service::executions::StartedTurn;

/// The runs by their execution's id.
#[derive(Default)]
pub struct KeptRuns(Mutex<BTreeMap<ExecutionId, KeptRun>>);

struct KeptRun {
    record: Execution,
    journal: Vec<Entry>,
    input: Json,
}

impl KeptRuns {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ExecutionId, KeptRun>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The record of a run, as it was when it was suspended.
    pub(super) fn record(&self, id: &ExecutionId) -> Option<Execution> {
        self.lock().get(id).map(|run| run.record.clone())
    }

    /// Keeps a run that was suspended with this record, unless others have written to it meanwhile.
    pub fn keep(&self, record: Execution, journal: Vec<Entry>, input: Json) {
        if journal.len() == record.entries() {
            self.lock().insert(record.id.clone(), KeptRun { record, journal, input });
        }
    }

    /// Gives a turn that has read only what came since the whole journal and the input. Returns how many entries were known;
    /// `None` if the memory isn't that of which the turn was told.
    pub fn complete(&self, turn: &mut StartedTurn) -> Option<usize> {
        let since = turn.since.clone()?;
        let runs = self.lock();
        let run = runs.get(&turn.execution.id)?;
        let is_same =
            (run.record.incarnation, run.record.run) == (turn.execution.incarnation, turn.execution.run);
        let known = run.journal.len();
        if !is_same || known + since.len() != turn.execution.entries() {
            return None;
        }
        turn.journal = [&run.journal[..], &since].concat();
        turn.input = Some(run.input.clone());
        Some(known)
    }
}
