//! Callbacks: reports by somebody who has a token and no credentials.

use tickover_service::Service;
use tickover_service::callbacks::Report;
use tickover_wire::LeaseToken;
use tickover_wire::answer::{CallbackAnswer, ReceivedAnswer};
use tickover_wire::request::{CallbackFailure, CallbackRequest, CallbackResult};

use crate::answer::Answer;
use crate::problem::Problem;
use crate::{body, name, request};

/// Makes a token for the attempt that has the lease.
pub async fn callback_of_attempt(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = name::task_id(id)?;
    let CallbackRequest { lease: LeaseToken(lease) } = body::read(body)?;
    let callback = service.callback_of_attempt(&id, &lease).await?;
    let path = format!("/v1/callbacks/{}", callback.token);
    Answer::ok(&CallbackAnswer {
        path,
        url: callback.url,
        token: callback.token,
        expires_at: callback.expires_at.into(),
    })
}

/// Records a result.
pub async fn complete_callback(service: &Service, token: &str, body: &[u8]) -> Result<Answer, Problem> {
    let CallbackResult { output } = body::read(body)?;
    report(service, token, Report::Complete(request::payload(output))).await
}

/// Records an error.
pub async fn fail_callback(service: &Service, token: &str, body: &[u8]) -> Result<Answer, Problem> {
    let CallbackFailure { error } = body::read_failure(body)?;
    let (error, retryable) = request::failure(error);
    report(service, token, Report::Fail { error, retryable }).await
}

/// Records that somebody still works on it.
pub async fn callback_heartbeat(service: &Service, token: &str, body: &[u8]) -> Result<Answer, Problem> {
    body::read_nothing(body)?;
    report(service, token, Report::Heartbeat).await
}

async fn report(service: &Service, token: &str, report: Report) -> Result<Answer, Problem> {
    service.call_back(token, report).await?;
    Answer::ok(&ReceivedAnswer { received: true })
}
