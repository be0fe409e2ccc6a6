//! Where a worker's work comes from, and where its results go: the service in its own process, or that of another process
//! over HTTP.
//!
//! Owns which calls the engine needs, and nothing of what they do. The calls have the names that the service gives them.

mod calls;
#[cfg(feature = "client-local")]
mod error;
#[cfg(feature = "client-local")]
mod remote;
#[cfg(feature = "client-local")]
mod task;
#[cfg(feature = "client-local")]
mod turn;
#[cfg(feature = "client-local")]
mod work;

use std::sync::Arc;

use tickover_core::duration::Millis;
use tickover_core::execution::command::{Cleanup, Close, Record, ReleaseReason, Suspend};
use tickover_core::execution::journal::Entry;
use tickover_core::execution::values::Values;
use tickover_core::execution::{Execution, ExecutionStatus};
use tickover_core::failure::Failure;
use tickover_core::id::{EventId, EventName, ExecutionId, Incarnation, LeaseId, QueueName, StepName, TaskId};
use tickover_core::limits::Limits;
use tickover_core::payload::{Json, Payload};
use tickover_core::time::Timestamp;
use tickover_core::trace::TraceContext;
use tickover_service::callbacks::Callback;
use tickover_service::claim::{Arrived, ClaimRequest, FoundWork, Suspect, WorkElsewhere};
use tickover_service::executions::{NamedEnd, SentEvent, StartedTurn, StartedWork, Suspended, ToStart, Work};
use tickover_service::ports::Clock;
use tickover_service::tasks::work::{Beat, Renewed};
use tickover_service::{Service, ServiceError};

use calls::Calls;
#[cfg(feature = "client-local")]
pub(crate) use remote::Remote;

type Called<T> = Result<T, ServiceError>;

/// What a worker works for. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Backend {
    place: Place,
    calls: Calls,
}

#[derive(Clone)]
enum Place {
    /// The service in this process.
    Here(Service),
    /// That of another process.
    #[cfg(feature = "client-local")]
    There(Remote),
}

impl From<Service> for Backend {
    fn from(service: Service) -> Self {
        Self { place: Place::Here(service), calls: Calls::default() }
    }
}

#[cfg(feature = "client-local")]
impl From<Remote> for Backend {
    fn from(remote: Remote) -> Self {
        Self { place: Place::There(remote), calls: Calls::default() }
    }
}

/// Calls that both have, or for which another process needs none: then the answer `elsewhere` stands behind the call. A call
/// that may be cut only reads, or waits.
macro_rules! calls {
    (may_be_cut: $cut:literal;
        $($(#[doc = $text:literal])* $name:ident($($given:ident: $type:ty),*) -> $answer:ty
        $(, elsewhere $elsewhere:expr)?;)*) => {
        impl Backend {
            $($(#[doc = $text])*
            pub(crate) async fn $name(&self, $($given: $type),*) -> $answer {
                let _call = if $cut { None } else { Some(self.calls.begin().await) };
                match &self.place {
                    Place::Here(service) => service.$name($($given),*).await,
                    #[cfg(feature = "client-local")]
                    Place::There(remote) => there!(remote.$name($($given),*) $(, $elsewhere)?),
                }
            })*
        }
    };
}

#[cfg(feature = "client-local")]
macro_rules! there {
    ($remote:ident.$name:ident($($given:ident),*)) => { Box::pin($remote.$name($($given),*)).await };
    ($remote:ident.$name:ident($($given:ident),*), $elsewhere:expr) => {{
        let _: &Remote = $remote;
        $elsewhere
    }};
}

calls! {
    may_be_cut: true;
    open_queue(queue: &QueueName) -> Called<()>, elsewhere Ok(());
    // The work of another process comes leased: see [`Backend::work_elsewhere`]. There is nothing before that.
    arrivals(queue: &QueueName, request: &ClaimRequest) -> Called<Arrived>, elsewhere Ok(Arrived::default());
    work_apart(
        queue: &QueueName,
        request: &ClaimRequest,
        knows: &(dyn Fn(&str) -> bool + Send + Sync)
    ) -> Called<FoundWork>;
    values_of(execution: &Execution) -> Called<Values>;
    record_of_turn(execution: &Execution, lease: LeaseId) -> Called<Execution>;
    journal_of(execution: &Execution) -> Called<Vec<Entry>>;
    read_turn(turn: StartedTurn, known: Option<&Execution>) -> Called<StartedTurn>;
    outcomes(
        execution: &Execution,
        remote: &[StepName],
        children: Vec<(StepName, ExecutionId)>
    ) -> Called<Vec<NamedEnd>>;
    /// Another process's service finds them itself when it closes the run.
    still_open(execution: &Execution, children: Vec<Entry>) -> Called<Vec<Entry>>, elsewhere Ok(vec![]);
    store_payload(json: Json) -> Called<Payload>;
    open(payload: &Payload) -> Called<Json>;
    /// Another process's service reads them when it makes a token.
    renew_callback_secrets() -> (), elsewhere ();
    callback_of_wait(
        execution: &ExecutionId,
        incarnation: Incarnation,
        event: EventName,
        expires_at: Timestamp
    ) -> Called<Callback>;
}

calls! {
    may_be_cut: false;
    work_among(
        queue: &QueueName,
        arrived: Arrived,
        request: &ClaimRequest,
        knows: &(dyn Fn(&str) -> bool + Send + Sync)
    ) -> Called<FoundWork>, elsewhere Ok(FoundWork::default());
    batch_among(
        queue: &QueueName,
        arrived: Arrived,
        request: &ClaimRequest,
        knows: &(dyn Fn(&str) -> bool + Send + Sync)
    ) -> Called<FoundWork>, elsewhere Ok(FoundWork::default());
    give_back_arrived(queue: &QueueName, arrived: Arrived) -> (), elsewhere ();
    take_suspect(
        queue: &QueueName,
        suspect: &Suspect,
        request: &ClaimRequest
    ) -> Called<Option<Work>>, elsewhere Ok(None);
    record_progress(execution: &Execution, record: Record) -> Called<Execution>;
    suspend_turn(execution: &Execution, suspend: Suspend) -> Called<Suspended>;
    close_turn(execution: &Execution, close: Close) -> Called<Execution>;
    heartbeat_turn(
        execution: &Execution,
        lease: LeaseId,
        brought: (Vec<Entry>, Option<Payload>),
        receipt: Option<&str>
    ) -> Called<Execution>;
    release_turn(
        execution: &Execution,
        lease: LeaseId,
        after: Millis,
        reason: ReleaseReason,
        cleanup: Option<Cleanup>
    ) -> Called<()>;
    /// Another process's service deletes the message with the turn's last write.
    done_with(queue: &QueueName, receipt: &str) -> (), elsewhere ();
    start_work(execution: &Execution, work: ToStart) -> StartedWork;
    cancel_remote(execution: &Execution, names: &[StepName]) -> Called<()>;
    /// Without a lease, nothing can be ended in another process. The claims of such steps find that their execution is over.
    end_started(execution: &Execution, begun: &[Entry]) -> Called<()>, elsewhere Ok(());
    beat(id: &TaskId, lease: &str, beat: Beat) -> Called<Renewed>;
}

impl Backend {
    /// The service, if it is in this process.
    pub(crate) const fn here(&self) -> Option<&Service> {
        match &self.place {
            Place::Here(service) => Some(service),
            #[cfg(feature = "client-local")]
            Place::There(_) => None,
        }
    }

    /// The same for the calls of this turn.
    #[cfg_attr(
        not(feature = "client-local"),
        expect(unused_variables, reason = "the service here needs no lease")
    )]
    pub(crate) fn of_turn(&self, execution: &Execution, lease: LeaseId, receipt: Option<&str>) -> Self {
        let place = match &self.place {
            Place::Here(service) => Place::Here(service.clone()),
            #[cfg(feature = "client-local")]
            Place::There(remote) => Place::There(remote.of_turn(execution, lease, receipt)),
        };
        Self { place, calls: self.calls.clone() }
    }

    /// Claims work of another process. `None` if the service is in this process: then messages arrive first, and work is
    /// claimed among them.
    #[cfg_attr(
        not(feature = "client-local"),
        expect(unused_variables, clippy::unused_async, reason = "without HTTP there is no other process")
    )]
    pub(crate) async fn work_elsewhere(
        &self,
        queue: &QueueName,
        request: &ClaimRequest,
        alone: bool,
    ) -> Option<Called<WorkElsewhere>> {
        match &self.place {
            Place::Here(_) => None,
            #[cfg(feature = "client-local")]
            Place::There(remote) => Some(Box::pin(remote.work(queue, request, alone)).await),
        }
    }

    /// Waits until the calls under way that change something have ended. Until the guard is dropped, none begins.
    pub(crate) async fn between_calls(&self) -> impl Sized + use<> {
        self.calls.pause().await
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        match &self.place {
            Place::Here(service) => service.clock(),
            #[cfg(feature = "client-local")]
            Place::There(remote) => remote.clock(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock().now()
    }

    pub(crate) fn limits(&self) -> Limits {
        match &self.place {
            Place::Here(service) => service.limits().clone(),
            #[cfg(feature = "client-local")]
            Place::There(remote) => remote.limits(),
        }
    }

    /// The trace, if the system carries traces.
    pub(crate) fn carried(&self, trace: Option<TraceContext>) -> Option<TraceContext> {
        trace.filter(|_| self.limits().carry_trace)
    }

    pub(crate) async fn complete(&self, id: &TaskId, lease: &str, output: Option<Json>) -> Called<()> {
        let _call = self.calls.begin().await;
        match &self.place {
            Place::Here(service) => service.complete(id, lease, output).await.map(drop),
            #[cfg(feature = "client-local")]
            Place::There(remote) => remote.complete(id, lease, output).await,
        }
    }

    pub(crate) async fn fail(&self, id: &TaskId, lease: &str, error: Failure, retryable: bool) -> Called<()> {
        let _call = self.calls.begin().await;
        match &self.place {
            Place::Here(service) => service.fail(id, lease, error, retryable).await.map(drop),
            #[cfg(feature = "client-local")]
            Place::There(remote) => remote.fail(id, lease, error, retryable).await,
        }
    }

    pub(crate) async fn release(&self, id: &TaskId, lease: &str) -> Called<()> {
        let _call = self.calls.begin().await;
        match &self.place {
            Place::Here(service) => service.release(id, lease).await.map(drop),
            #[cfg(feature = "client-local")]
            Place::There(remote) => remote.release(id, lease).await,
        }
    }

    pub(crate) async fn send_event(
        &self,
        id: &ExecutionId,
        name: EventName,
        event_id: EventId,
        payload: Json,
        trace: Option<TraceContext>,
    ) -> Called<()> {
        let _call = self.calls.begin().await;
        match &self.place {
            Place::Here(service) => {
                let sent = service.send_event_traced(
                    id,
                    SentEvent { name, id: Some(event_id), payload: Some(payload) },
                    trace,
                );
                sent.await.map(drop)
            }
            #[cfg(feature = "client-local")]
            Place::There(remote) => remote.send_event(id, name, event_id, payload, trace).await,
        }
    }

    pub(crate) async fn cancel_execution(&self, id: &ExecutionId) -> Called<()> {
        let _call = self.calls.begin().await;
        match &self.place {
            Place::Here(service) => service.cancel_execution(id).await.map(drop),
            #[cfg(feature = "client-local")]
            Place::There(remote) => remote.cancel_execution(id).await,
        }
    }

    pub(crate) async fn terminate(&self, id: &ExecutionId) -> Called<()> {
        let _call = self.calls.begin().await;
        match &self.place {
            Place::Here(service) => service.terminate(id).await.map(drop),
            #[cfg(feature = "client-local")]
            Place::There(remote) => remote.terminate(id).await,
        }
    }

    /// The status of an execution. `None` if there is none.
    pub(crate) async fn status_of(&self, id: &ExecutionId) -> Called<Option<ExecutionStatus>> {
        match &self.place {
            Place::Here(service) => Ok(service.execution(id).await?.map(|found| found.execution.status())),
            #[cfg(feature = "client-local")]
            Place::There(remote) => remote.status_of(id).await,
        }
    }
}
