//! What operators do to executions.

use tickover_core::execution::Execution;
use tickover_service::operate::CancelReply;
use tickover_service::{Service, ServiceError};

use super::{answer, view};
use crate::answer::Answer;
use crate::body::{self, Empty};
use crate::parse::{self, RERUN_FIELDS};
use crate::problem::Problem;
use crate::view::{ExecutionCancelAnswer, ExecutionChangeAnswer};

/// Asks an execution to end: its code stops at its next step, or it ends at once where nothing runs.
pub async fn cancel(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = parse::execution_id("id", id)?;
    nothing(body)?;
    ended(service, service.cancel_execution(&id).await)
}

/// Ends an execution at once.
pub async fn terminate(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = parse::execution_id("id", id)?;
    nothing(body)?;
    ended(service, service.terminate(&id).await)
}

/// Lets an execution begin nothing new; its deadlines keep running.
pub async fn pause(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = parse::execution_id("id", id)?;
    nothing(body)?;
    changed(service, service.pause(&id).await)
}

/// Lets a paused execution go on.
pub async fn resume(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = parse::execution_id("id", id)?;
    nothing(body)?;
    changed(service, service.resume(&id).await)
}

/// Begins a new run of an execution that has ended.
pub async fn restart(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = parse::execution_id("id", id)?;
    nothing(body)?;
    answer(service, service.restart(&id).await)
}

/// The same, with results of the last run.
pub async fn rerun(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = parse::execution_id("id", id)?;
    let rerun = parse::rerun(&body::object(body, RERUN_FIELDS, Empty::IsObject)?)?;
    answer(service, service.rerun(&id, &rerun.steps, rerun.preserve).await)
}

/// Has a step run again in the same run, after the execution failed by it.
pub async fn retry_step(service: &Service, id: &str, step: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = parse::execution_id("id", id)?;
    let step = parse::step_name("name", step)?;
    nothing(body)?;
    answer(service, service.retry_step(&id, step).await)
}

fn nothing(body: &[u8]) -> Result<(), Problem> {
    body::object(body, &[], Empty::IsObject)?;
    Ok(())
}

fn ended(
    service: &Service,
    ended: Result<(Execution, CancelReply), ServiceError>,
) -> Result<Answer, Problem> {
    let (execution, reply) = ended?;
    let outcome = match reply {
        CancelReply::Cancelled => "cancelled",
        CancelReply::Requested => "requested",
        CancelReply::AlreadyFinished => "already_finished",
    };
    Answer::ok(&ExecutionCancelAnswer { execution: view(service, execution), outcome })
}

fn changed(service: &Service, changed: Result<(Execution, bool), ServiceError>) -> Result<Answer, Problem> {
    let (execution, changed) = changed?;
    Answer::ok(&ExecutionChangeAnswer { execution: view(service, execution), changed })
}
