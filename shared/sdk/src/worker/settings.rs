//! How a worker works.

use std::collections::BTreeSet;

use tickover_core::duration::Millis;
use tickover_core::id::{QueueName, WorkerName};
use tickover_core::limits::CLAIM_MAX;

use crate::options::Place;
use crate::registry::Registry;
use crate::turn::TurnSettings;

/// How a worker works. The default is what suits a process that runs all the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerSettings {
    /// Whose name stands in lists; nobody's by default.
    pub name: Option<WorkerName>,
    /// The queues it takes work from; by default those that its workflows and steps name.
    pub queues: Vec<QueueName>,
    /// Pieces of work at once from each queue.
    pub concurrency: usize,
    /// Most pieces of work taken with one call, 1 to 10.
    pub batch: usize,
    /// How long a call waits for work, at most 20 s.
    pub wait: Millis,
    /// The pause after a call that brought nothing.
    pub interval: Millis,
    /// How long it counts as alive without a word.
    pub lease: Millis,
    /// Whether it renews its leases, each after a third of its length. Without it, nothing may take longer than a
    /// lease. The heartbeats that a remote step asks for are sent in any case.
    pub heartbeat: bool,
    /// How long it goes on when told to stop.
    pub grace: Millis,
    /// Waits before an inline step's next attempt up to this long are spent by the worker.
    pub in_place: Millis,
    /// How long a workflow's code may await what isn't its context's.
    pub foreign_wait_max: Millis,
}

impl Default for WorkerSettings {
    fn default() -> Self {
        let turn = TurnSettings::default();
        Self {
            name: None,
            queues: vec![],
            concurrency: 50,
            batch: CLAIM_MAX,
            wait: Millis::from_secs(20),
            interval: Millis::ZERO,
            lease: Millis::from_secs(60),
            heartbeat: true,
            grace: Millis::from_secs(20),
            in_place: turn.in_place,
            foreign_wait_max: turn.foreign_wait_max,
        }
    }
}

impl WorkerSettings {
    /// The same with the queues that the registry's workflows and steps name, if none are set.
    pub(super) fn with_queues_of(mut self, registry: &Registry) -> Self {
        if self.queues.is_empty() {
            let mut queues = BTreeSet::new();
            queues
                .extend(registry.workflows().filter_map(|known| QueueName::parse(known.options.queue).ok()));
            queues.extend(registry.steps().filter_map(|step| match &step.options.place {
                Place::Remote { queue } => queue.clone(),
                Place::Inline => None,
            }));
            self.queues = queues.into_iter().collect();
        }
        self.batch = self.batch.clamp(1, CLAIM_MAX);
        self.concurrency = self.concurrency.max(1);
        self
    }

    pub(super) fn turn(&self) -> TurnSettings {
        TurnSettings {
            limit_at: None,
            foreign_wait_max: self.foreign_wait_max,
            in_place: self.in_place,
            heartbeats: self.heartbeat,
        }
    }
}
