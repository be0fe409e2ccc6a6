//! The transport to a service in the same process. It calls the same operations as the HTTP server.

use async_trait::async_trait;
use tickover_api::calls::{self, executions};
use tickover_api::{Answer, Problem, audit};
#[cfg(any(feature = "aws", feature = "lambda"))]
use tickover_core::by::By;
use tickover_core::duration::Millis;
use tickover_core::id::ExecutionId;
#[cfg(any(feature = "aws", feature = "lambda"))]
use tickover_service::config::ProcessEnvironment;
use tickover_service::to_end::to_end;
use tickover_service::transact::Prepared;
use tickover_service::{Service, ServiceError};

#[cfg(any(feature = "aws", feature = "lambda"))]
use super::Client;
use super::ClientError;
use super::call::{Call, Route, Transport};

/// A transport without a network.
pub(super) struct Direct {
    service: Service,
}

impl Direct {
    pub(super) const fn new(service: Service) -> Self {
        Self { service }
    }

    async fn answer(service: &Service, call: &Call) -> Result<Answer, Problem> {
        let (body, query) = (call.body.as_bytes(), call.query.as_slice());
        match &call.route {
            Route::Health => calls::health(service),

            Route::Schedule => calls::schedule(service, body).await,
            Route::Task(id) => calls::describe(service, id.as_str()).await,
            Route::Tasks => calls::list(service, query).await,
            Route::CancelTask(id) => calls::cancel(service, id.as_str(), body).await,
            Route::RetryTask(id) => calls::retry(service, id.as_str(), body).await,

            Route::Claim(queue) => calls::claim(service, queue.as_str(), body).await,
            Route::Heartbeat(id) => calls::heartbeat(service, id.as_str(), body).await,
            Route::Complete(id) => calls::complete(service, id.as_str(), body).await,
            Route::Fail(id) => calls::fail(service, id.as_str(), body).await,
            Route::Release(id) => calls::release(service, id.as_str(), body).await,

            Route::CreateCallback(id) => calls::callback_of_attempt(service, id.as_str(), body).await,
            Route::CompleteCallback(token) => calls::complete_callback(service, token, body).await,
            Route::FailCallback(token) => calls::fail_callback(service, token, body).await,
            Route::CallbackHeartbeat(token) => calls::callback_heartbeat(service, token, body).await,

            Route::Queues => calls::queues(service).await,
            Route::Queue(queue) => calls::queue(service, queue.as_str()).await,
            Route::PauseQueue(queue) => calls::pause(service, queue.as_str(), body).await,
            Route::ResumeQueue(queue) => calls::resume(service, queue.as_str(), body).await,

            Route::Kinds(queue) => calls::kinds(service, queue.as_str()).await,
            Route::Kind(queue, kind) => calls::kind(service, queue.as_str(), kind.as_str()).await,
            Route::SetKind(queue, kind) => {
                calls::set_kind(service, queue.as_str(), kind.as_str(), body).await
            }
            Route::DeleteKind(queue, kind) => {
                calls::delete_kind(service, queue.as_str(), kind.as_str()).await
            }

            Route::Start => executions::start(service, body).await,
            Route::Execution(id) => executions::describe(service, id.as_str(), query).await,
            Route::Executions => executions::list(service, query).await,
            Route::Workflows => executions::workflows(service).await,
            Route::Timeline(id) => executions::timeline_of(service, id.as_str(), query).await,
            Route::Runs(id) => executions::runs(service, id.as_str(), query).await,
            Route::Export(id) => executions::export(service, id.as_str(), query).await,
            Route::Cancel(id) => executions::cancel(service, id.as_str(), body).await,
            Route::Terminate(id) => executions::terminate(service, id.as_str(), body).await,
            Route::Pause(id) => executions::pause(service, id.as_str(), body).await,
            Route::Resume(id) => executions::resume(service, id.as_str(), body).await,
            Route::Restart(id) => executions::restart(service, id.as_str(), body).await,
            Route::Rerun(id) => executions::rerun(service, id.as_str(), body).await,
            Route::RetryStep(id, step) => {
                executions::retry_step(service, id.as_str(), step.as_str(), body).await
            }
            Route::Events(id) => executions::events(service, id.as_str(), query).await,
            Route::SendEvent(id, name) => {
                executions::send_event(service, id.as_str(), name.as_str(), body).await
            }
            Route::ClearEvents(id, name) => {
                executions::clear_events(service, id.as_str(), name.as_str()).await
            }

            Route::CreateCron => calls::create_cron(service, body).await,
            Route::ReplaceCron(id) => calls::replace_cron(service, id.as_str(), body).await,
            Route::Cron(id) => calls::cron(service, id.as_str()).await,
            Route::Crons => calls::crons(service, query).await,
            Route::PauseCron(id) => calls::pause_cron(service, id.as_str(), body).await,
            Route::ResumeCron(id) => calls::resume_cron(service, id.as_str(), body).await,
            Route::TriggerCron(id) => calls::trigger_cron(service, id.as_str(), body).await,
            Route::DeleteCron(id) => calls::delete_cron(service, id.as_str()).await,

            Route::Limit(key) => calls::limit(service, key).await,
            Route::SetLimit(key) => calls::set_limit(service, key, body).await,
            Route::UnsetLimit(key) => calls::unset_limit(service, key).await,
            Route::ResetRate(key) => calls::reset_rate(service, key).await,
            Route::ReleasePlace(key, holder) => calls::release_place(service, key, holder).await,

            Route::StartOperation => calls::start_operation(service, body).await,
            Route::Operation(id) => calls::operation(service, id.as_str()).await,
            Route::Operations => calls::operations(service, query).await,
            Route::StopOperation(id) => calls::stop_operation(service, id.as_str(), body).await,
        }
    }
}

#[async_trait]
impl Transport for Direct {
    fn place(&self) -> String {
        "direct".to_owned()
    }

    async fn send(&self, call: Call) -> Result<Vec<u8>, ClientError> {
        // Of a claim whose caller has gone, nobody would get the tasks.
        let ends = call.changes && !matches!(call.route, Route::Claim(_));
        let service = self.service.clone();
        let answer = async move {
            let (method, path) = call.route.address();
            let answer = Box::pin(Self::answer(&service, &call));
            audit::direct(&service, method, &path, answer).await
        };
        let answer = if ends { to_end(answer).await } else { answer.await };
        Ok(answer?.text().into())
    }

    async fn prepare(&self, body: &str) -> Result<Prepared<ExecutionId>, ClientError> {
        Ok(executions::prepare(&self.service, body.as_bytes()).await?)
    }

    async fn announce(&self, prepared: Prepared<ExecutionId>) -> Result<(), ClientError> {
        let service = self.service.clone();
        to_end(async move { service.announce(prepared).await }).await;
        Ok(())
    }

    async fn sleep(&self, span: Millis) {
        self.service.clock().sleep_until(self.service.now().plus(span)).await;
    }
}

/// A client whose operators' calls are those of this process.
#[cfg(any(feature = "aws", feature = "lambda"))]
pub(crate) fn of_process(service: Service) -> Client {
    service.called_by(By::caller(ProcessEnvironment::from_env().caller())).into()
}

impl From<ServiceError> for ClientError {
    fn from(error: ServiceError) -> Self {
        Problem::from(error).into()
    }
}

/// The problem that callers over HTTP get.
impl From<Problem> for ClientError {
    fn from(problem: Problem) -> Self {
        Self::Refused(Box::new(problem.answer().clone()))
    }
}
