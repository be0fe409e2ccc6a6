//! The calls of operators on executions.

use tickover_core::execution::Execution;
use tickover_service::tasks::operate::CancelReply;
use tickover_service::{Service, ServiceError};

use tickover_wire::OpenEnum;
use tickover_wire::answer::{ExecutionCancelAnswer, ExecutionChangeAnswer};
use tickover_wire::request::RetryStepRequest;

use super::{answer, inline};
use crate::answer::Answer;
use crate::calls::operate::outcome;
use crate::problem::Problem;
use crate::{body, name, request};

/// Cancels an execution: its code stops at its next step, and its undo steps run. If no code runs and nothing has to be
/// undone, it ends at once.
pub async fn cancel(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = name::execution_id(id)?;
    body::read_nothing(body)?;
    ended(service, service.cancel_execution(&id).await)
}

/// Ends an execution at once.
pub async fn terminate(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = name::execution_id(id)?;
    body::read_nothing(body)?;
    ended(service, service.terminate(&id).await)
}

/// Pauses an execution: it starts nothing new, and its deadlines still apply.
pub async fn pause(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = name::execution_id(id)?;
    body::read_nothing(body)?;
    changed(service, service.pause(&id).await)
}

/// Resumes a paused execution.
pub async fn resume(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = name::execution_id(id)?;
    body::read_nothing(body)?;
    changed(service, service.resume(&id).await)
}

/// Starts a new run of an execution that has ended.
pub async fn restart(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = name::execution_id(id)?;
    body::read_nothing(body)?;
    answer(service, service.restart(&id).await)
}

/// Starts a new run that keeps results of the last run.
pub async fn rerun(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = name::execution_id(id)?;
    let again = request::rerun(body::read_or_empty(body)?);
    answer(service, service.rerun_as(&id, again).await)
}

/// Runs a step again in the same run, after the execution failed because of it.
pub async fn retry_step(service: &Service, id: &str, step: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = name::execution_id(id)?;
    let step = name::step(step)?;
    let RetryStepRequest { input } = body::read_or_empty(body)?;
    let retried = match request::payload(input) {
        Some(input) => service.retry_step_with(&id, step, input).await,
        None => service.retry_step(&id, step).await,
    };
    answer(service, retried)
}

fn ended(
    service: &Service,
    ended: Result<(Execution, CancelReply), ServiceError>,
) -> Result<Answer, Problem> {
    let (execution, reply) = ended?;
    let outcome = OpenEnum::Known(outcome(reply));
    Answer::ok(&ExecutionCancelAnswer { execution: inline(service, execution), outcome })
}

fn changed(service: &Service, changed: Result<(Execution, bool), ServiceError>) -> Result<Answer, Problem> {
    let (execution, changed) = changed?;
    Answer::ok(&ExecutionChangeAnswer { execution: inline(service, execution), changed })
}
