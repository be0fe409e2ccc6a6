//! From the start of the process to a handler's answer: the common part of every function's `main`.

use std::process::ExitCode;

use lambda_runtime::{LambdaEvent, service_fn};
use serde_json::value::RawValue;
use tickover_core::time::Timestamp;

use crate::answer::Failure;
use crate::boot::{self, App, BootError};
use crate::event::Event;
use crate::init_error;

#[derive(Clone, Debug)]
pub struct Invocation {
    pub event: Event,
    /// When Lambda kills the function if it hasn't answered.
    pub deadline_at: Timestamp,
}

impl From<LambdaEvent<Box<RawValue>>> for Invocation {
    fn from(event: LambdaEvent<Box<RawValue>>) -> Self {
        let deadline_at = Timestamp::from_millis(i64::try_from(event.context.deadline).unwrap_or(i64::MAX));
        Self { event: Event::read(event.payload), deadline_at }
    }
}

/// The cold start. If it fails, every problem is logged and reported to Lambda, and the process should end.
pub async fn prepare() -> Result<App, BootError> {
    let booted = boot::app_in_lambda().await;
    if let Err(error) = &booted {
        tracing::error!(code = error.code(), %error, "the function can't start");
        init_error::report(error).await;
    }
    booted
}

/// Starts the function and serves until its sandbox ends. An invalid environment ends it at once: every problem is
/// logged and reported to Lambda, and the exit status isn't zero.
pub async fn start<S, F>(serve: S) -> ExitCode
where
    S: FnOnce(App) -> F,
    F: Future<Output = Result<(), lambda_runtime::Error>>,
{
    let Ok(app) = prepare().await else { return ExitCode::FAILURE };
    match serve(app).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error, "the runtime ended");
            ExitCode::FAILURE
        }
    }
}

/// Passes each event to the handler, and writes the metrics before the answer is sent. The runtime turns panics into
/// errors of the invocation. The metrics until then are written with the next invocation's.
pub async fn serve<H, F>(app: App, handle: H) -> Result<(), lambda_runtime::Error>
where
    H: Fn(App, Invocation) -> F,
    F: Future<Output = Result<Box<RawValue>, Failure>>,
{
    // Events are read as raw JSON: the runtime then parses nothing, and can't log an event that it can't parse.
    let metrics = app.metrics;
    let service = service_fn(|event: LambdaEvent<Box<RawValue>>| {
        // The future is large: on the heap it needn't be moved.
        let answer = Box::pin(handle(app.clone(), event.into()));
        async move {
            let answer = answer.await;
            metrics.flush();
            answer
        }
    });
    lambda_runtime::run(service).await
}
