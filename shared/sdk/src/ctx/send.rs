//! Calls to other executions, as steps: events, the cancellation of a child, and its status.

use std::fmt::Display;
use std::future::{Future, ready};
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt as _, TryFutureExt as _};
use serde::Serialize;
use tickover_core::error::Reject;
use tickover_core::execution::ExecutionStatus;
use tickover_core::id::{EventId, EventName, ExecutionId};
use tickover_core::payload::Json;
use tickover_service::executions::SentEvent;
use tickover_service::{Service, ServiceError};

use super::Ctx;
use super::child::StartedChild;
use super::step::Stored;
use crate::codec;
use crate::error::Failure;
use crate::step::{Step, StepError, step};
use crate::turn::shared::Shared;

/// The retry policy if the service doesn't answer.
const RETRY: &str = "exponential(6, 1s)";

/// A step that sends an event. The event's id is derived from the run and the step's name. So the event is stored once,
/// however often sending is retried.
pub(super) fn send(
    shared: &Arc<Shared>,
    name: String,
    execution: String,
    event: String,
    payload: &impl Serialize,
) -> Step<Result<(), Failure>, Failure> {
    let (id, trace) = {
        let state = shared.lock();
        (state.facts.identity(&name), state.facts.trace)
    };
    let request = read(execution, event, id, payload);
    calling(shared, name, move |service| {
        let request = request.clone();
        async move {
            let (execution, event, id, payload) = match request {
                Ok(request) => request,
                Err(refused) => return Ok(Err(refused)),
            };
            let event = SentEvent { name: event, id: Some(id), payload: Some(payload) };
            let sent = service.send_event_traced(&execution, event, trace);
            sent.await.map(|_| Ok(()))
        }
    })
}

/// A step that calls the service. A refusal is final. What may succeed later is retried.
fn calling<T, F>(
    shared: &Arc<Shared>,
    name: String,
    call: impl Fn(Service) -> F + Send + Sync + 'static,
) -> Step<Result<T, Failure>, Failure>
where
    F: Future<Output = Result<Result<T, Failure>, ServiceError>> + Send + 'static,
{
    let service = shared.service().clone();
    let attempt = move || {
        let called = call(service.clone());
        async move {
            match called.await {
                Ok(answer) => Ok(answer),
                Err(ServiceError::Rejected(reject)) => {
                    Ok(Err(Failure::new(reject.code(), reject.to_string())))
                }
                Err(error) => Err(Failure::new("unavailable", error.to_string())),
            }
        }
    };
    step(name, attempt).retry(RETRY)
}

impl<O: Stored> StartedChild<O> {
    /// Asks the child to end, as a step of this name, as an operator's cancel does: its code stops where it waits, and its
    /// undo steps run. The future is ready when the request is stored. A child that has ended stays as it is.
    ///
    /// ```
    /// # use tickover::prelude::*;
    /// # #[tickover::workflow]
    /// # async fn parcel(ctx: Ctx, number: u32) -> Result<u32> { ctx.sleep("transport", "30d").await?; Ok(number) }
    /// #[tickover::workflow]
    /// async fn order(ctx: Ctx, number: u32) -> Result<bool> {
    ///     let child = ctx.child(&parcel, number).start().await?;
    ///     ctx.sleep("patience", "1h").await?;
    ///     if child.status("look").await?.is_live() {
    ///         child.cancel("call-it-off").await?;
    ///     }
    ///     Ok(matches!(child.result().await, Err(StepError::Cancelled { .. })))
    /// }
    /// # assert!(tickover::test::outcome((order, parcel), &order, 7));
    /// ```
    pub fn cancel(&self, name: impl Into<String>) -> BoxFuture<'static, Result<(), StepError<Failure>>> {
        self.call(name.into(), |service, id| async move { service.cancel_execution(&id).await.map(drop) })
    }

    /// The child's status, as a step of this name: each replay sees what this call has seen.
    pub fn status(
        &self,
        name: impl Into<String>,
    ) -> BoxFuture<'static, Result<ExecutionStatus, StepError<Failure>>> {
        self.call(name.into(), |service, id| async move {
            let found = service.execution(&id).await?;
            Ok(found.ok_or(Reject::NoExecution)?.execution.status())
        })
    }

    fn call<T: Stored, F>(
        &self,
        name: String,
        call: impl Fn(Service, ExecutionId) -> F + Send + Sync + 'static,
    ) -> BoxFuture<'static, Result<T, StepError<Failure>>>
    where
        F: Future<Output = Result<T, ServiceError>> + Send + 'static,
    {
        let id = match ExecutionId::parse(self.id()) {
            Ok(id) => id,
            Err(problem) => {
                return ready(Err(StepError::Invalid { step: name, problem: problem.to_string() })).boxed();
            }
        };
        let calling =
            calling(&self.shared, name.clone(), move |service| call(service, id.clone()).map_ok(Ok));
        let called = Ctx::new(Arc::clone(&self.shared)).step(calling);
        async move { called.await?.map_err(|error| StepError::Failed { step: name, error }) }.boxed()
    }
}

fn read(
    execution: String,
    event: String,
    id: String,
    payload: &impl Serialize,
) -> Result<(ExecutionId, EventName, EventId, Json), Failure> {
    let payload = codec::encode(payload).map_err(|problem| refusal("payload", problem))?;
    let execution = ExecutionId::parse(execution).map_err(|problem| refusal("id", problem))?;
    let event = EventName::parse(event).map_err(|problem| refusal("event", problem))?;
    let id = EventId::parse(id).map_err(|problem| refusal("event_id", problem))?;
    Ok((execution, event, id, payload))
}

fn refusal(what: &str, problem: impl Display) -> Failure {
    Failure::new("invalid_request", format!("{what}: {problem}"))
}
