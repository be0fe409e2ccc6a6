//! The service: its ports, its settings, and the random ids that it makes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tickover_core::batch::BatchKey;
use tickover_core::by::{By, Caller};
use tickover_core::command::Context;
use tickover_core::cron::{self, Cron};
use tickover_core::duration::Millis;
use tickover_core::execution::command::CodeTerms;
use tickover_core::execution::journal::{Entry, Happened};
use tickover_core::execution::replay::{is_continued, what_holds};
use tickover_core::execution::{self, Execution};
use tickover_core::flow::FlowRequest;
use tickover_core::gate;
use tickover_core::id::{
    BlobId, ExecutionId, Incarnation, LeaseId, Nonce, OperationId, Owner, StepName, TaskId, WorkerVersion,
    WorkflowName,
};
use tickover_core::limits::Limits;
use tickover_core::payload::Json;
use tickover_core::task::{self, Task};
use tickover_core::time::Timestamp;
use tickover_core::trace::TraceContext;

use crate::callbacks::Settings;
use crate::contention::Turns;
use crate::executions::Waiters;
use crate::gates::Section;
use crate::notify::Notifications;
use crate::overview::Kept;
use crate::ports::{Clock, Ids, Queue, Store};
use crate::queues::QueueCache;
use crate::queues::workers::Seen;

/// The ports: store, queue, clock and random numbers.
#[derive(Clone)]
pub struct Ports {
    pub store: Arc<dyn Store>,
    pub queue: Arc<dyn Queue>,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
}

/// Decides what a command does to a record. Every deployment uses the core's rules; a test may replace those of tasks,
/// executions or crons.
pub trait Rules: Send + Sync {
    /// As [`task::decide`].
    fn decide_task(
        &self,
        task: Option<&Task>,
        command: &task::Command,
        context: &Context<'_>,
    ) -> task::Decision {
        task::decide(task, command, context)
    }

    /// As [`execution::decide`].
    fn decide_execution(
        &self,
        execution: Option<&Execution>,
        command: &execution::Command,
        context: &Context<'_>,
    ) -> execution::Decision {
        execution::decide(execution, command, context)
    }

    /// As [`cron::decide`].
    fn decide_cron(
        &self,
        cron: Option<&Cron>,
        command: &cron::Command,
        context: &Context<'_>,
    ) -> cron::Decision {
        cron::decide(cron, command, context)
    }

    /// As [`Task::batch_key`].
    fn batch_key(&self, task: &Task) -> BatchKey {
        task.batch_key()
    }

    /// Whether what a turn writes is overtaken by the entries of its journal from the place `seen` on, as [`what_holds`]
    /// says.
    fn is_overtaken(&self, entries: &[Entry], journal: &[Entry], seen: usize) -> bool {
        let until_of = |of: &StepName| {
            journal.iter().chain(entries).rev().find_map(|entry| match &entry.what {
                Happened::Until { name, until } if name == of => Some(*until),
                _ => None,
            })
        };
        what_holds(entries, until_of, journal.get(seen..).unwrap_or_default()).is_some()
    }

    /// As [`is_continued`].
    fn is_continued(&self, known: &Execution, record: &Execution, since: &[Entry]) -> bool {
        is_continued(known, record, since)
    }

    /// As [`gate::clear`].
    fn clear_places(&self, gate: &mut gate::Gate, now: Timestamp) {
        gate::clear(gate, now);
    }

    /// As [`gate::take`].
    fn take_place(&self, gate: &mut gate::Gate, take: &gate::Take, now: Timestamp) -> gate::Taken {
        gate::take(gate, take, now)
    }

    /// As [`gate::free`].
    fn free_place(&self, gate: &mut gate::Gate, owner: &Owner, incarnation: Incarnation, before: u64) {
        gate::free(gate, owner, incarnation, before);
    }

    /// As [`gate::withdraw`].
    fn withdraw_place(&self, gate: &mut gate::Gate, owner: &Owner, incarnation: Incarnation, before: u64) {
        gate::withdraw(gate, owner, incarnation, before);
    }

    /// As [`gate::offer`].
    fn offer_places(
        &self,
        gate: &mut gate::Gate,
        candidates: &[gate::Candidate],
        now: Timestamp,
    ) -> Vec<gate::Waiter> {
        gate::offer(gate, candidates, now)
    }

    /// As [`gate::reserve_start`].
    fn reserve_start(
        &self,
        gate: &mut gate::Gate,
        asked: &gate::AskedStart,
        first: bool,
        now: Timestamp,
    ) -> gate::Reservation {
        gate::reserve_start(gate, asked, first, now)
    }
}

/// The rules of the core.
struct CoreRules;

impl Rules for CoreRules {}

/// What a workflow's code asks of flow control for an input. `None` if the input doesn't fit.
pub type CodeAsks = Arc<dyn Fn(&Json) -> Option<FlowRequest> + Send + Sync>;

/// How it is known what a workflow's code asks of flow control.
#[derive(Clone)]
pub enum Asks {
    /// This process has the code.
    Code(CodeAsks),
    /// A worker elsewhere has it, and has said it for these executions.
    Elsewhere(Arc<BTreeMap<ExecutionId, FlowRequest>>),
}

/// The record of an execution as it was when this process has suspended its last turn, if the run is still in memory.
pub type KeptRecords = Arc<dyn Fn(&ExecutionId) -> Option<Execution> + Send + Sync>;

/// What a process with a workflow's code knows of its executions.
#[derive(Clone)]
pub struct WorkflowTerms {
    pub code: CodeTerms,
    /// `None` if it asks nothing of flow control.
    pub asks: Option<Asks>,
}

/// All operations of Tickover. Cheap to clone.
#[derive(Clone)]
pub struct Service {
    pub(crate) ports: Ports,
    pub(crate) limits: Arc<Limits>,
    pub(crate) queues: Arc<QueueCache>,
    pub(crate) seen: Arc<Seen>,
    pub(crate) rules: Arc<dyn Rules>,
    pub(crate) notifications: Arc<Notifications>,
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) unreadable: Arc<Mutex<Vec<String>>>,
    pub(crate) terms: Arc<BTreeMap<WorkflowName, WorkflowTerms>>,
    pub(crate) kept: Option<KeptRecords>,
    pub(crate) callbacks: Arc<Settings>,
    pub(crate) turns: Arc<Turns>,
    /// Where the last look at all lines had to stop.
    pub(crate) stopped_at: Arc<Mutex<Option<Section>>>,
    pub(crate) overview: Arc<Kept>,
    pub(crate) by: Option<Arc<By>>,
    pub(crate) version: Option<WorkerVersion>,
}

impl Service {
    pub fn new(ports: Ports, limits: Limits) -> Self {
        let queues = Arc::new(QueueCache::default());
        Self {
            ports,
            limits: Arc::new(limits),
            queues,
            seen: Arc::default(),
            rules: Arc::new(CoreRules),
            notifications: Arc::default(),
            waiters: Arc::default(),
            unreadable: Arc::default(),
            terms: Arc::default(),
            kept: None,
            callbacks: Arc::default(),
            turns: Arc::default(),
            stopped_at: Arc::default(),
            overview: Arc::default(),
            by: None,
            version: None,
        }
    }

    /// The same service with other rules. Tests use this to put in a bug and see whether they catch it.
    #[must_use]
    pub fn with_rules(self, rules: Arc<dyn Rules>) -> Self {
        Self { rules, ..self }
    }

    /// The same service for a process that has the code of these workflows. The code's timeouts and settings apply to
    /// executions that were started without the code, see [`CodeTerms`].
    #[must_use]
    pub fn with_terms(self, terms: BTreeMap<WorkflowName, WorkflowTerms>) -> Self {
        Self { terms: Arc::new(terms), ..self }
    }

    /// The same service for a worker that keeps runs in memory: their turns start with what is new in the journal.
    #[must_use]
    pub fn with_kept(self, kept: KeptRecords) -> Self {
        Self { kept: Some(kept), ..self }
    }

    /// The same service for an operator's call: the records that the call changes say whose it was.
    #[must_use]
    pub fn called_by(self, by: By) -> Self {
        Self { by: Some(Arc::new(by)), ..self }
    }

    /// The same service for a worker whose code has this version.
    #[must_use]
    pub fn with_version(self, version: Option<WorkerVersion>) -> Self {
        Self { version, ..self }
    }

    /// The same service for a call whose caller says why: the records that it changes say so too.
    #[must_use]
    pub fn because(self, reason: &str) -> Self {
        let by = self.by.as_deref().cloned().unwrap_or_default();
        self.called_by(by.because(reason))
    }

    /// Why its caller calls, if that was said.
    pub(crate) fn reason(&self) -> Option<Box<str>> {
        self.by.as_ref()?.reason.clone()
    }

    /// The caller for whom it works.
    pub fn caller(&self) -> Option<Caller> {
        self.by.as_ref()?.caller.clone()
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    pub fn now(&self) -> Timestamp {
        self.ports.clock.now()
    }

    /// What is left of a wait of this length, which ends then: nothing, if the clock was set back meanwhile.
    pub(crate) fn left(&self, until: Timestamp, wait: Millis) -> Millis {
        let left = until.since(self.now());
        if left > wait { Millis::ZERO } else { left }
    }

    /// Why the store refuses writes now, as [`StoreTraits::trouble`](crate::ports::StoreTraits::trouble) says.
    pub fn trouble(&self) -> Option<String> {
        self.ports.store.traits().trouble.map(str::to_owned)
    }

    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.ports.clock
    }

    fn random<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.ports.ids.fill(&mut bytes);
        bytes
    }

    pub(crate) fn shuffle<T>(&self, things: &mut [T]) {
        for end in (2..=things.len()).rev() {
            let bits = usize::try_from(u32::from_be_bytes(self.random())).unwrap_or(0);
            things.swap(end - 1, bits % end);
        }
    }

    pub(crate) fn new_nonce(&self) -> Nonce {
        Nonce::from_bytes(self.random())
    }

    pub(crate) fn new_incarnation(&self) -> Incarnation {
        Incarnation::from_bytes(self.random())
    }

    pub(crate) fn new_lease(&self) -> LeaseId {
        LeaseId::from_bytes(self.random())
    }

    pub(crate) fn new_blob_id(&self) -> BlobId {
        BlobId::from_bytes(self.random())
    }

    /// A random task id: 128 bits in hexadecimal.
    pub(crate) fn new_task_id(&self) -> TaskId {
        let text = format!("{:032x}", u128::from_be_bytes(self.random()));
        #[expect(clippy::expect_used, reason = "hexadecimal digits are allowed in every id")]
        TaskId::parse(text).expect("hexadecimal is a name")
    }

    pub(crate) fn new_execution_id(&self) -> ExecutionId {
        let text = format!("{:032x}", u128::from_be_bytes(self.random()));
        #[expect(clippy::expect_used, reason = "hexadecimal digits are allowed in every id")]
        ExecutionId::parse(text).expect("hexadecimal is a name")
    }

    pub(crate) fn new_operation_id(&self) -> OperationId {
        let text = format!("{:032x}", u128::from_be_bytes(self.random()));
        #[expect(clippy::expect_used, reason = "hexadecimal digits are allowed in every id")]
        OperationId::parse(text).expect("hexadecimal is a name")
    }

    /// The trace, if this deployment carries traces; else `None`, even if a record still has a trace.
    pub fn carried(&self, trace: Option<TraceContext>) -> Option<TraceContext> {
        trace.filter(|_| self.limits.carry_trace)
    }

    /// Waits for a random time below a bound that doubles with each try, because others use the same record or store.
    pub(crate) async fn back_off(&self, tries: u32, base: Millis) {
        let bound = base.as_u64().saturating_mul(1 << tries.min(6)).max(1);
        let wait = u64::from_be_bytes(self.random()) % (bound + 1);
        self.ports.clock.sleep_until(self.now().plus(Millis::new(wait))).await;
    }
}
