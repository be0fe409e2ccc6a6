//! Where a worker's work comes from, and where its results go: the service in its own process, or that of another process
//! over HTTP.
//!
//! Owns which calls the engine needs, and nothing of what they do. The calls have the names that the service gives them.

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

#[cfg(feature = "client-local")]
pub(crate) use remote::Remote;

type Called<T> = Result<T, ServiceError>;

/// What a worker works for. Cheap to clone.
#[derive(Clone)]
pub(crate) enum Backend {
    /// The service in this process.
    Here(Service),
    /// That of another process.
    #[cfg(feature = "client-local")]
    There(Remote),
}

impl From<Service> for Backend {
    fn from(service: Service) -> Self {
        Self::Here(service)
    }
}

/// Calls that both have, or for which another process needs none: then the answer `elsewhere` stands behind the call.
macro_rules! calls {
    ($($(#[doc = $text:literal])* $name:ident($($given:ident: $type:ty),*) -> $answer:ty
        $(, elsewhere $elsewhere:expr)?;)*) => {
        impl Backend {
            $($(#[doc = $text])*
            pub(crate) async fn $name(&self, $($given: $type),*) -> $answer {
                match self {
                    Self::Here(service) => service.$name($($given),*).await,
                    #[cfg(feature = "client-local")]
                    Self::There(remote) => there!(remote.$name($($given),*) $(, $elsewhere)?),
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
    open_queue(queue: &QueueName) -> Called<()>, elsewhere Ok(());
    // The work of another process comes leased: see [`Backend::work_elsewhere`]. There is nothing before that.
    arrivals(queue: &QueueName, request: &ClaimRequest) -> Called<Arrived>, elsewhere Ok(Arrived::default());
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
    work_apart(
        queue: &QueueName,
        request: &ClaimRequest,
        knows: &(dyn Fn(&str) -> bool + Send + Sync)
    ) -> Called<FoundWork>;
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
    values_of(execution: &Execution) -> Called<Values>;
    release_turn(
        execution: &Execution,
        lease: LeaseId,
        after: Millis,
        reason: ReleaseReason,
        cleanup: Option<Cleanup>
    ) -> Called<()>;
    /// Another process's service deletes the message with the turn's last write.
    done_with(queue: &QueueName, receipt: &str) -> (), elsewhere ();
    record_of_turn(execution: &Execution, lease: LeaseId) -> Called<Execution>;
    journal_of(execution: &Execution) -> Called<Vec<Entry>>;
    read_turn(turn: StartedTurn, known: Option<&Execution>) -> Called<StartedTurn>;
    start_work(execution: &Execution, work: ToStart) -> StartedWork;
    cancel_remote(execution: &Execution, names: &[StepName]) -> Called<()>;
    outcomes(
        execution: &Execution,
        remote: &[StepName],
        children: Vec<(StepName, ExecutionId)>
    ) -> Called<Vec<NamedEnd>>;
    /// Another process's service finds them itself when it closes the run.
    still_open(execution: &Execution, children: Vec<Entry>) -> Called<Vec<Entry>>, elsewhere Ok(vec![]);
    /// Without a lease, nothing can be ended in another process. The claims of such steps find that their execution is over.
    end_started(execution: &Execution, begun: &[Entry]) -> Called<()>, elsewhere Ok(());
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
    beat(id: &TaskId, lease: &str, beat: Beat) -> Called<Renewed>;
}

impl Backend {
    /// The service, if it is in this process.
    #[cfg(any(feature = "lambda", feature = "test"))]
    pub(crate) const fn here(&self) -> Option<&Service> {
        match self {
            Self::Here(service) => Some(service),
            #[cfg(feature = "client-local")]
            Self::There(_) => None,
        }
    }

    /// The same for the calls of this turn.
    #[cfg_attr(
        not(feature = "client-local"),
        expect(unused_variables, reason = "the service here needs no lease")
    )]
    pub(crate) fn of_turn(&self, execution: &Execution, lease: LeaseId, receipt: Option<&str>) -> Self {
        match self {
            Self::Here(service) => Self::Here(service.clone()),
            #[cfg(feature = "client-local")]
            Self::There(remote) => Self::There(remote.of_turn(execution, lease, receipt)),
        }
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
        match self {
            Self::Here(_) => None,
            #[cfg(feature = "client-local")]
            Self::There(remote) => Some(Box::pin(remote.work(queue, request, alone)).await),
        }
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        match self {
            Self::Here(service) => service.clock(),
            #[cfg(feature = "client-local")]
            Self::There(remote) => remote.clock(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock().now()
    }

    pub(crate) fn limits(&self) -> Limits {
        match self {
            Self::Here(service) => service.limits().clone(),
            #[cfg(feature = "client-local")]
            Self::There(remote) => remote.limits(),
        }
    }

    /// The trace, if the system carries traces.
    pub(crate) fn carried(&self, trace: Option<TraceContext>) -> Option<TraceContext> {
        trace.filter(|_| self.limits().carry_trace)
    }

    pub(crate) async fn complete(&self, id: &TaskId, lease: &str, output: Option<Json>) -> Called<()> {
        match self {
            Self::Here(service) => service.complete(id, lease, output).await.map(drop),
            #[cfg(feature = "client-local")]
            Self::There(remote) => remote.complete(id, lease, output).await,
        }
    }

    pub(crate) async fn fail(&self, id: &TaskId, lease: &str, error: Failure, retryable: bool) -> Called<()> {
        match self {
            Self::Here(service) => service.fail(id, lease, error, retryable).await.map(drop),
            #[cfg(feature = "client-local")]
            Self::There(remote) => remote.fail(id, lease, error, retryable).await,
        }
    }

    pub(crate) async fn release(&self, id: &TaskId, lease: &str) -> Called<()> {
        match self {
            Self::Here(service) => service.release(id, lease).await.map(drop),
            #[cfg(feature = "client-local")]
            Self::There(remote) => remote.release(id, lease).await,
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
        match self {
            Self::Here(service) => {
                let sent = service.send_event_traced(
                    id,
                    SentEvent { name, id: Some(event_id), payload: Some(payload) },
                    trace,
                );
                sent.await.map(drop)
            }
            #[cfg(feature = "client-local")]
            Self::There(remote) => remote.send_event(id, name, event_id, payload, trace).await,
        }
    }

    pub(crate) async fn cancel_execution(&self, id: &ExecutionId) -> Called<()> {
        match self {
            Self::Here(service) => service.cancel_execution(id).await.map(drop),
            #[cfg(feature = "client-local")]
            Self::There(remote) => remote.cancel_execution(id).await,
        }
    }

    pub(crate) async fn terminate(&self, id: &ExecutionId) -> Called<()> {
        match self {
            Self::Here(service) => service.terminate(id).await.map(drop),
            #[cfg(feature = "client-local")]
            Self::There(remote) => remote.terminate(id).await,
        }
    }

    /// The status of an execution. `None` if there is none.
    pub(crate) async fn status_of(&self, id: &ExecutionId) -> Called<Option<ExecutionStatus>> {
        match self {
            Self::Here(service) => Ok(service.execution(id).await?.map(|found| found.execution.status())),
            #[cfg(feature = "client-local")]
            Self::There(remote) => remote.status_of(id).await,
        }
    }
}
