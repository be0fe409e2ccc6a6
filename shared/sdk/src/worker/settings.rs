//! The settings of a worker.

use std::collections::BTreeSet;

use tickover_core::duration::Millis;
use tickover_core::id::{Capability, QueueName, WorkerName, WorkerVersion};
use tickover_core::limits::RECEIVE_MAX;

use crate::options::Place;
use crate::registry::Registry;
use crate::turn::TurnSettings;

/// The settings of a worker. The defaults suit a process that runs permanently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerSettings {
    /// The worker's name in lists; none by default.
    pub name: Option<WorkerName>,
    /// The version of its code in the list of workers; none by default.
    pub version: Option<WorkerVersion>,
    /// The queues that it takes work from; by default, those that its workflows and steps name.
    pub queues: Vec<QueueName>,
    /// What it provides, such as `gpu`: it gets no task that requires anything else.
    pub provides: Vec<Capability>,
    /// How many turns and tasks of each queue run at once.
    pub concurrency: usize,
    /// How many turns and tasks one claim may return, 1 to 100. From a queue in SQS it returns at most 10.
    pub batch: usize,
    /// How long a claim waits for work, at most 20 s.
    pub wait: Millis,
    /// The pause after a claim that returned nothing.
    pub interval: Millis,
    /// The length of its leases: how long it counts as alive without a heartbeat.
    pub lease: Millis,
    /// The time between the heartbeats by which it extends its leases; by default a third of a lease. Zero: it sends
    /// none, and nothing may run longer than a lease. They say that the worker is alive. That a step's work is alive, the
    /// step's code says itself: see [`StepInfo::heartbeat`](crate::StepInfo::heartbeat).
    pub heartbeat: Option<Millis>,
    /// How long it continues after it was stopped. What has ended in a turn by then is written.
    pub grace: Millis,
    /// Waits before an inline step's next attempt of up to this length are spent in the worker.
    pub in_place: Millis,
    /// How many suspended runs stay in its memory at most, together with what their code holds: their next turn begins where
    /// the last one ended. Code that isn't in memory any more is replayed. Zero: each turn replays.
    pub kept_runs: usize,
    /// How long a workflow's code may await a future that isn't of its context.
    pub foreign_wait_max: Millis,
}

impl Default for WorkerSettings {
    fn default() -> Self {
        let turn = TurnSettings::default();
        Self {
            name: None,
            version: None,
            queues: vec![],
            provides: vec![],
            concurrency: 50,
            batch: RECEIVE_MAX,
            wait: Millis::from_secs(20),
            interval: Millis::ZERO,
            lease: Millis::from_secs(60),
            heartbeat: None,
            grace: Millis::from_secs(20),
            in_place: turn.in_place,
            kept_runs: 1_000,
            foreign_wait_max: turn.foreign_wait_max,
        }
    }
}

impl WorkerSettings {
    /// Adds the queues that the registry's workflows and steps name, if none are set.
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
        self.batch = self.batch.clamp(1, RECEIVE_MAX);
        self.concurrency = self.concurrency.max(1);
        self
    }

    /// The time between the heartbeats by which it extends its leases. `None` if it sends none.
    pub(super) fn heartbeat_interval(&self) -> Option<Millis> {
        let third = Millis::new((self.lease.as_u64() / 3).max(1));
        Some(self.heartbeat.unwrap_or(third)).filter(|interval| !interval.is_zero())
    }

    pub(super) fn turn(&self) -> TurnSettings {
        TurnSettings {
            limit_at: None,
            asked_to_end: None,
            foreign_wait_max: self.foreign_wait_max,
            in_place: self.in_place,
            heartbeat: self.heartbeat,
        }
    }
}
