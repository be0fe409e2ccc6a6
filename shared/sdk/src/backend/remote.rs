//! The connection of a worker to the service of another process.
//!
//! A call that gets no answer is sent again, with growing pauses, for about as long as a lease lasts: the service may be
//! restarted at any time. Each call can be repeated.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use serde::de::DeserializeOwned;
use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::execution::Execution;
use tickover_core::flow::FlowRequest;
use tickover_core::id::{BlobId, ExecutionId, LeaseId, QueueName, TaskKind, WorkflowName};
use tickover_core::limits::Limits;
use tickover_core::payload::Json;
use tickover_service::lease::LeaseToken as Token;
use tickover_service::ports::Clock;
use tickover_service::system::SystemClock;
use tickover_service::{KeptRecords, ServiceError, WorkflowTerms};
use tickover_wire::answer::TurnLimitsView;
use tickover_wire::{LeaseToken, Verbatim};

use super::Called;
use super::error::{is_passing, service_error};
use crate::client::{Api, Client, ClientError, Http};
use crate::registry::Registry;
use crate::worker::WorkerSettings;

/// The pause before a call is sent again. It doubles each time.
const PAUSE: Millis = Millis::new(100);
const PAUSE_MAX: Millis = Millis::from_secs(5);
/// How many bytes of large payloads are kept.
const PAYLOADS_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The service of another process. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Remote {
    pub(super) line: Arc<Line>,
    /// The turn whose calls these are.
    turn: Option<Arc<(ExecutionId, LeaseToken)>>,
}

/// What all calls share.
pub(super) struct Line {
    pub(super) api: Api,
    pub(super) settings: WorkerSettings,
    pub(super) terms: BTreeMap<WorkflowName, WorkflowTerms>,
    pub(super) kinds: Vec<TaskKind>,
    /// The workflows that starts without a queue find by this worker, with their queues.
    pub(super) routes: tickover_service::queues::routes::Routes,
    pub(super) kept: KeptRecords,
    /// What limits the begin of executions that the service has asked about.
    pub(super) asked: Mutex<BTreeMap<ExecutionId, FlowRequest>>,
    /// The queues of which the service knows the workflows: a claim has said them, and none has failed since.
    pub(super) announced: Mutex<BTreeSet<QueueName>>,
    clock: Arc<dyn Clock>,
    limits: RwLock<Limits>,
    payloads: Mutex<Payloads>,
}

/// Large payloads. They never change.
#[derive(Default)]
struct Payloads {
    texts: HashMap<BlobId, Json>,
    bytes: usize,
}

impl Remote {
    pub(crate) fn new(http: Http, registry: &Registry, settings: &WorkerSettings, kept: KeptRecords) -> Self {
        let kinds = registry.steps().filter_map(|step| TaskKind::parse(step.kind).ok());
        let line = Line {
            // Its own tries wait longer.
            api: Client::from(http.tries(1)).api().clone(),
            settings: settings.clone(),
            terms: registry.terms(),
            kinds: kinds.collect(),
            routes: registry.routes(&settings.queues),
            kept,
            asked: Mutex::default(),
            announced: Mutex::default(),
            clock: Arc::new(SystemClock),
            limits: RwLock::default(),
            payloads: Mutex::default(),
        };
        Self { line: Arc::new(line), turn: None }
    }

    pub(super) fn of_turn(&self, execution: &Execution, lease: LeaseId, receipt: Option<&str>) -> Self {
        let receipt = receipt.map(str::to_owned);
        let token = Token { incarnation: execution.incarnation, lease, receipt }.encode();
        let turn = Some(Arc::new((execution.id.clone(), LeaseToken(token))));
        Self { line: Arc::clone(&self.line), turn }
    }

    /// The turn whose calls these are: its execution, and its lease.
    pub(super) fn turn(&self) -> Called<(&ExecutionId, LeaseToken)> {
        let turn = self.turn.as_deref().ok_or(Reject::TurnLost)?;
        Ok((&turn.0, turn.1.clone()))
    }

    pub(super) fn clock(&self) -> &Arc<dyn Clock> {
        &self.line.clock
    }

    pub(super) fn limits(&self) -> Limits {
        self.line.limits.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn note_limits(&self, told: &TurnLimitsView) {
        let count = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
        let limits = Limits {
            payload_bytes: count(told.payload_bytes),
            journal_entries: count(told.journal_entries),
            fan_out: count(told.fan_out),
            pending_events: count(told.pending_events),
            open_steps: count(told.open_steps),
            carry_trace: told.carry_trace,
            ..Limits::default()
        };
        *self.line.limits.write().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    /// Makes a call of a turn, again and again if its answer doesn't come.
    pub(super) async fn call<A, F>(&self, call: impl Fn() -> F + Send) -> Called<A>
    where
        F: Future<Output = Result<A, ClientError>> + Send,
    {
        self.patiently(&Reject::TurnLost, call).await
    }

    /// The same for any call. `lost` is the refusal of a lease that is lost.
    pub(super) async fn patiently<A, F>(&self, lost: &Reject, call: impl Fn() -> F + Send) -> Called<A>
    where
        F: Future<Output = Result<A, ClientError>> + Send,
    {
        let clock = self.clock();
        let until = clock.now().plus(self.line.settings.lease);
        let mut pause = PAUSE;
        loop {
            match call().await {
                Err(error) if is_passing(&error) && clock.now().plus(pause) < until => {
                    tracing::debug!(%error, "a call is sent again");
                    clock.sleep_until(clock.now().plus(pause)).await;
                    pause = pause.saturating_mul(2).min(PAUSE_MAX);
                }
                answer => return answer.map_err(|error| service_error(error, lost)),
            }
        }
    }

    fn payloads(&self) -> MutexGuard<'_, Payloads> {
        self.line.payloads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn known(&self, id: BlobId) -> Option<Json> {
        self.payloads().texts.get(&id).cloned()
    }

    pub(super) fn know(&self, id: BlobId, json: Json) {
        let mut payloads = self.payloads();
        if payloads.bytes + json.len() > PAYLOADS_BYTES_MAX {
            *payloads = Payloads::default();
        }
        payloads.bytes += json.len();
        if let Some(before) = payloads.texts.insert(id, json) {
            payloads.bytes -= before.len();
        }
    }

    pub(super) fn know_all(&self, payloads: BTreeMap<String, Verbatim>) {
        for (id, Verbatim(json)) in payloads {
            if let Ok(id) = BlobId::try_from(id) {
                self.know(id, json);
            }
        }
    }
}

/// Something in its stored form.
pub(super) fn parsed<T: DeserializeOwned>(Verbatim(json): &Verbatim) -> Called<T> {
    serde_json::from_str(json.as_str()).map_err(|error| ServiceError::Corrupt { reason: error.to_string() })
}

/// The same, to be sent.
pub(super) fn stored<T: serde::Serialize>(part: &T) -> Called<Verbatim> {
    let text = serde_json::to_string(part).ok().and_then(Json::parse);
    text.map(Verbatim)
        .ok_or_else(|| ServiceError::Corrupt { reason: "a value can't be written as JSON".to_owned() })
}

pub(super) fn all_stored<T: serde::Serialize>(parts: &[T]) -> Called<Option<Vec<Verbatim>>> {
    if parts.is_empty() {
        return Ok(None);
    }
    parts.iter().map(stored).collect::<Called<_>>().map(Some)
}
