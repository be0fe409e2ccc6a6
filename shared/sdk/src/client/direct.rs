//! The transport to a service in the same process. It calls the same operations as the HTTP server.

use async_trait::async_trait;
use tickover_api::calls::{self, executions};
use tickover_api::{Problem, audit};
#[cfg(any(feature = "aws", feature = "lambda"))]
use tickover_core::by::By;
use tickover_core::duration::Millis;
use tickover_core::id::ExecutionId;
#[cfg(any(feature = "aws", feature = "lambda"))]
use tickover_service::config::ProcessEnvironment;
use tickover_service::to_end::to_end;
use tickover_service::transact::Prepared;
use tickover_service::{Service, ServiceError};
use tickover_wire::Route;

#[cfg(any(feature = "aws", feature = "lambda"))]
use super::Client;
use super::ClientError;
use super::call::{Call, Transport};

/// A transport without a network.
pub(super) struct Direct {
    service: Service,
}

impl Direct {
    pub(super) const fn new(service: Service) -> Self {
        Self { service }
    }
}

#[async_trait]
impl Transport for Direct {
    fn place(&self) -> String {
        "direct".to_owned()
    }

    async fn send(&self, call: Call) -> Result<Vec<u8>, ClientError> {
        // Of a claim whose caller has gone, nobody would get the tasks.
        let ends = call.route.changes() && !matches!(call.route, Route::Claim | Route::ClaimWork);
        let service = self.service.clone();
        let answer = async move {
            let Call { route, names, query, body, .. } = &call;
            let answer = calls::answer(&service, *route, names, query, body.as_bytes().into());
            audit::direct(&service, *route, (names, query), Box::pin(answer)).await
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
