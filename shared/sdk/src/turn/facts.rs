//! What a workflow's code can read about its run.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use tickover_core::execution::journal::{ON_CANCEL_PREFIX, ON_FAILURE_PREFIX};
use tickover_core::execution::replay::Replay;
use tickover_core::execution::{Execution, ExecutionOutcome};
use tickover_core::flow::FlowRequest;
use tickover_core::id::{ExecutionId, Fingerprint, Incarnation, QueueName};
use tickover_core::lane::Lane;
use tickover_core::time::{Timestamp, earliest};
use tickover_core::trace::TraceContext;
use tickover_service::flow::own_key;

use super::TurnSettings;
use crate::backend::Backend;
use crate::registry::{ErasedStep, ErasedWorkflow, Registry};
use crate::step::States;

/// What the code can read about the run.
pub(crate) struct Facts {
    pub(crate) execution: ExecutionId,
    pub(crate) run: u32,
    pub(crate) seed: u64,
    pub(crate) incarnation: Incarnation,
    /// The digests of the keys at which the execution has a place.
    pub(crate) own_keys: Vec<Fingerprint>,
    /// Where its messages stand in their queue.
    pub(crate) lane: Lane,
    /// The queue of remote steps that name none.
    pub(crate) queue: QueueName,
    pub(crate) trace: Option<TraceContext>,
    /// The deadline of the run, the execution, or the handler of its failure or cancellation.
    pub(crate) deadline_at: Option<Timestamp>,
    /// When the invocation that the turn runs in ends.
    pub(crate) limit_at: Option<Timestamp>,
    pub(crate) cancelled: bool,
    /// Whether an earlier turn has run code of this run.
    pub(crate) begun: bool,
    /// The number of the run whose work this one repeats, or of this run.
    pub(crate) work: u32,
    /// The number of the run that is in the names of this one's callbacks.
    pub(crate) run_of_callbacks: u32,
    /// The prefix of all names: `on_failure` and `on_cancel` have names of their own.
    pub(crate) prefix: String,
    pub(crate) patches: &'static [&'static str],
    /// Mocks that run instead of the steps of the same kind.
    pub(crate) mocks: Arc<BTreeMap<String, ErasedStep>>,
    /// The states of this worker.
    pub(crate) states: States,
}

impl Facts {
    /// What the code can read in a turn on this record.
    pub(super) fn in_turn(
        service: &Backend,
        registry: &Registry,
        record: &Execution,
        settings: &TurnSettings,
        workflow: &ErasedWorkflow,
        replay: &Replay,
    ) -> Self {
        let facts = Self::of(record, settings.limit_at, workflow.options.patches, replay.reopened());
        Self {
            begun: !replay.is_untouched(),
            trace: service.carried(facts.trace),
            mocks: registry.mocks(),
            states: registry.states().clone(),
            ..facts
        }
    }

    pub(crate) fn of(
        record: &Execution,
        limit_at: Option<Timestamp>,
        patches: &'static [&'static str],
        reopened: u32,
    ) -> Self {
        let handler = record.failing.as_ref().map(|failing| match failing.outcome {
            ExecutionOutcome::Cancelled { .. } => ON_CANCEL_PREFIX,
            ExecutionOutcome::Completed { .. }
            | ExecutionOutcome::Failed { .. }
            | ExecutionOutcome::TimedOut { .. } => ON_FAILURE_PREFIX,
        });
        let prefix = match (handler, reopened) {
            (None, _) => String::new(),
            (Some(handler), 0) => format!("{handler}:"),
            // The steps of a handler for an earlier failure run again for this one.
            (Some(handler), times) => format!("{handler}.{times}:"),
        };
        let seed = u64::from_be_bytes(*record.incarnation.as_bytes());
        let mut facts = Self {
            execution: record.id.clone(),
            run: record.run,
            work: record.work(),
            run_of_callbacks: record.run_of_callbacks(),
            seed,
            incarnation: record.incarnation,
            own_keys: record.gates().iter().map(|gated| gated.key).collect(),
            lane: record.lane,
            queue: record.queue.clone(),
            trace: record.trace,
            deadline_at: None,
            limit_at,
            cancelled: false,
            begun: false,
            prefix,
            patches,
            mocks: Arc::default(),
            states: States::default(),
        };
        facts.update(record);
        facts
    }

    /// Why a step or a child can't ask for places at these keys.
    pub(crate) fn own_key(&self, flow: &FlowRequest) -> Option<String> {
        own_key(&self.own_keys, flow).map(|problem| format!("concurrency: {problem}"))
    }

    /// The prefix of idempotency keys. Only a run that repeats this one's work has the same; a handler does its work for
    /// each failure.
    pub(crate) fn key(&self) -> String {
        let work = if self.prefix.is_empty() { self.work } else { self.run };
        format!("{}:{}:{work}", self.execution, self.incarnation)
    }

    /// The identity to the outside of what has this name in the code that runs now. It is the same in each replay, and in
    /// a run that repeats this one's work.
    pub(crate) fn identity(&self, text: &str) -> String {
        uuid(&self.key(), &format!("{}{text}", self.prefix))
    }

    /// The same, in all runs.
    pub(crate) fn identity_in_all_runs(&self, text: &str) -> String {
        uuid(&format!("{}:{}", self.execution, self.incarnation), &format!("{}{text}", self.prefix))
    }

    /// Updates the fields that other writers may have changed.
    pub(crate) fn update(&mut self, record: &Execution) {
        self.deadline_at = deadline_of(record);
        self.cancelled = record.cancel_requested;
    }
}

/// A UUID that follows from these texts. RFC 9562 defines version 8 for ids with a custom layout.
fn uuid(key: &str, name: &str) -> String {
    let hash = Sha256::new().chain_update(key).chain_update([0]).chain_update(name).finalize();
    let mut bits = hash.iter().take(16).fold(0_u128, |bits, byte| (bits << 8) | u128::from(*byte));
    bits = (bits & !(0xF << 76)) | (8 << 76);
    bits = (bits & !(0b11 << 62)) | (0b10 << 62);
    let hex = format!("{bits:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}

/// The deadline of the code that runs now.
pub(crate) fn deadline_of(record: &Execution) -> Option<Timestamp> {
    match &record.failing {
        Some(failing) => Some(failing.deadline_at),
        None => earliest([record.deadline_at, record.run_deadline_at]),
    }
}
