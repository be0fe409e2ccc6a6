//! Runs that stay in a worker's memory while they are suspended, so that their next turn needs no replay.
//!
//! Such a run goes on as if its turn hadn't ended: as in a long turn, its code gets what has come since. It may do so only
//! if nothing else has happened to the run: the service compares the journal with the record that the run knows
//! (`core/src/execution/replay/continued.rs`). Otherwise, and whenever the run isn't in memory, the code is replayed. So
//! memory that is old, or that was lost, costs time and changes nothing.

use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tickover_core::execution::Execution;
use tickover_core::execution::replay::Merged;
use tickover_core::id::ExecutionId;
use tickover_core::payload::Payload;
use tickover_core::time::Timestamp;
use tickover_service::executions::StartedTurn;

use super::TurnSettings;
use super::drive::{Busy, Driver};
use super::facts::Facts;
use super::need::Need;
use super::state::UndoStage;
use crate::backend::Backend;
use crate::keeper::Keeper;
use crate::registry::Registry;

/// About how many bytes the runs in memory have together, at most. The smallest function has 128 MB, and what the code
/// itself keeps of its results is only estimated.
const BYTES_MAX: usize = 32 * 1_024 * 1_024;

/// The suspended runs in a worker's memory. If there are too many, those are dropped that have waited longest.
pub(crate) struct KeptRuns {
    runs: Mutex<Runs>,
    count_max: usize,
}

#[derive(Default)]
struct Runs {
    /// By the order in which they were suspended.
    by_age: BTreeMap<u64, KeptRun>,
    ages: HashMap<ExecutionId, u64>,
    next: u64,
    bytes: usize,
}

struct KeptRun {
    driver: Box<Driver>,
    bytes: usize,
}

impl Runs {
    fn remove(&mut self, age: u64) -> Option<KeptRun> {
        let run = self.by_age.remove(&age)?;
        self.ages.remove(&run.driver.record.id);
        self.bytes -= run.bytes;
        Some(run)
    }
}

impl KeptRuns {
    pub(crate) fn new(count_max: usize) -> Self {
        Self { runs: Mutex::default(), count_max }
    }

    fn lock(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The record of a run in memory, as it was when it was suspended.
    pub(crate) fn record(&self, id: &ExecutionId) -> Option<Execution> {
        let runs = self.lock();
        let age = runs.ages.get(id)?;
        Some(runs.by_age.get(age)?.driver.record.clone())
    }

    /// The driver of the run that this turn continues, if it is in memory and may go on. Otherwise it is forgotten.
    pub(super) fn resume(
        &self,
        service: &Backend,
        registry: &Registry,
        taken: Box<StartedTurn>,
        settings: &TurnSettings,
    ) -> Result<Box<Driver>, Box<StartedTurn>> {
        let kept = {
            let mut runs = self.lock();
            let age = runs.ages.get(&taken.execution.id).copied();
            age.and_then(|age| runs.remove(age))
        };
        match kept {
            Some(kept) if kept.driver.is_continued_by(&taken) => {
                Ok(Box::new(kept.driver.resumed(service, registry, *taken, settings)))
            }
            kept => {
                forget(kept);
                Err(taken)
            }
        }
    }

    /// Keeps a run whose turn was suspended, if it may go on from there.
    pub(super) fn keep(&self, mut driver: Box<Driver>) {
        if self.count_max == 0 || !driver.can_be_kept() {
            return;
        }
        driver.keeper = Keeper::default();
        driver.receipt = None;
        driver.settings.asked_to_end = None;
        let bytes = driver.bytes();
        let mut runs = self.lock();
        let age = runs.next;
        runs.next += 1;
        let before = runs.ages.insert(driver.record.id.clone(), age);
        let mut gone: Vec<_> = before.and_then(|before| runs.by_age.remove(&before)).into_iter().collect();
        runs.bytes -= gone.iter().map(|run| run.bytes).sum::<usize>();
        runs.bytes += bytes;
        runs.by_age.insert(age, KeptRun { driver, bytes });
        while runs.by_age.len() > self.count_max || runs.bytes > BYTES_MAX {
            let Some(oldest) = runs.by_age.first_key_value().map(|(age, _)| *age) else { break };
            gone.extend(runs.remove(oldest));
        }
        drop(runs);
        forget(gone);
    }
}

/// Drops runs of others: their code may panic when it is dropped, and that isn't this turn's failure.
fn forget(runs: impl IntoIterator<Item = KeptRun>) {
    for run in runs {
        drop(catch_unwind(AssertUnwindSafe(|| drop(run))));
    }
}

impl Driver {
    /// Whether the code rests, and waits for nothing but what the journal will say.
    fn can_be_kept(&self) -> bool {
        let is_at_rest = self.rests() && self.jobs.is_empty() && !self.is_short_of_time;
        let state = self.shared.lock();
        let is_on_its_way = state.undo == UndoStage::NotYet && state.verdict.is_none();
        let is_written = state.replay.unwritten().next().is_none();
        is_at_rest && is_on_its_way && is_written && state.replay.entries() == self.record.entries()
    }

    /// Takes over the record that suspended the turn.
    pub(super) fn suspended(&mut self, record: Execution) {
        // If entries of others are in segments, the number of entries differs, and the run isn't kept.
        let mut state = self.shared.lock();
        state.published.written(&record);
        let _: Merged = state.replay.merge(&record);
        drop(state);
        self.record = record;
    }

    /// About how many bytes the run takes: its entries, and the values in them, which the code may have.
    fn bytes(&self) -> usize {
        let code = self.body.as_ref().map_or(0, |body| size_of_val(&**body));
        let input = self.record.input.as_ref().map_or(0, Payload::bytes);
        let state = self.shared.lock();
        code + input + state.replay.bytes() + state.published.bytes()
    }

    /// Whether the turn has been told what came since this one was suspended.
    fn is_continued_by(&self, taken: &StartedTurn) -> bool {
        let (known, record) = (&self.record, &taken.execution);
        let is_same = (known.incarnation, known.run) == (record.incarnation, record.run);
        let since = taken.since.as_ref().map(Vec::len);
        is_same && since.is_some_and(|since| known.entries() + since == record.entries())
    }

    /// Continues the run in a new turn.
    fn resumed(
        self,
        service: &Backend,
        registry: &Registry,
        taken: StartedTurn,
        settings: &TurnSettings,
    ) -> Self {
        let StartedTurn { execution: record, since, lease, receipt, brought, .. } = taken;
        self.shared.continue_with(service.clone());
        {
            let mut state = self.shared.lock();
            state.replay.append(&since.unwrap_or_default());
            state.facts = Facts::in_turn(service, registry, &record, settings, &self.workflow, &state.replay);
            state.reads_outcomes_first();
            state.is_over = false;
            // What follows for a step is decided anew in each turn.
            for waiting in state.needs.values_mut() {
                if let Need::Inline(inline) = &mut waiting.need {
                    inline.forget_turn();
                }
            }
        }
        Self {
            service: service.clone(),
            settings: settings.clone(),
            lease,
            receipt,
            brought,
            seen_wakes: record.wakes,
            looked_at: record.turn().map_or(Timestamp::EPOCH, |turn| turn.claimed_at),
            record,
            busy: Busy::default(),
            foreign_since: None,
            is_short_of_time: false,
            has_worked: false,
            handled_until: Timestamp::EPOCH,
            ..self
        }
    }
}
