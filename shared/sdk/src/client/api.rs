//! The calls of the HTTP API, one method each.

mod callbacks;
mod crons;
mod executions;
mod kinds;
mod limits;
mod operations;
mod queues;
mod tasks;
mod turns;
mod workers;

use std::sync::Arc;

use serde::de::DeserializeOwned;
use tickover_core::duration::Millis;
use tickover_core::id::ExecutionId;
use tickover_service::transact::Prepared;
use tickover_wire::Route;
use tickover_wire::answer::HealthAnswer;
use tickover_wire::read;
use tickover_wire::request::StartRequest;

use super::ClientError;
use super::call::{Call, Transport, body_of};

/// The calls of the HTTP API, one method each, with the API's own requests and answers ([`wire`](crate::client::wire)).
/// For tools, and for workers that this crate doesn't run. Programs that start executions or schedule tasks are shorter
/// with the methods of [`Client`](crate::Client) and of its handles, which make these calls.
///
/// If the answer to an idempotent call is lost, the call is repeated a few times.
#[derive(Clone)]
pub struct Api {
    transport: Arc<dyn Transport>,
    /// Why its calls are made.
    reason: Option<Arc<str>>,
}

impl Api {
    #[cfg(any(feature = "direct", feature = "client-local"))]
    pub(super) fn new(transport: impl Transport + 'static) -> Self {
        Self { transport: Arc::new(transport), reason: None }
    }

    /// The target of the calls, for people.
    pub(super) fn place(&self) -> String {
        self.transport.place()
    }

    /// Whether the system answers, and which records it couldn't read when it started.
    ///
    /// ```no_run
    /// # async fn example(client: tickover::Client) -> std::result::Result<(), Box<dyn std::error::Error>> {
    /// println!("the server is {}", client.api().health().await?.status);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn health(&self) -> Result<HealthAnswer, ClientError> {
        self.ask(Call::of(Route::Health, [])).await
    }

    pub(super) fn because(&self, reason: &str) -> Self {
        Self { reason: Some(reason.into()), ..self.clone() }
    }

    pub(super) async fn prepare(&self, request: &StartRequest) -> Result<Prepared<ExecutionId>, ClientError> {
        self.transport.prepare(&body_of(request)?).await
    }

    pub(super) async fn announce(&self, prepared: Prepared<ExecutionId>) -> Result<(), ClientError> {
        self.transport.announce(prepared).await
    }

    pub(super) async fn sleep(&self, span: Millis) {
        self.transport.sleep(span).await;
    }

    async fn ask<A: DeserializeOwned>(&self, call: Call) -> Result<A, ClientError> {
        let reason = self.reason.as_deref().filter(|_| call.route.takes_reason());
        let mut call = call;
        call.query.extend(reason.map(|reason| ("reason".to_owned(), reason.to_owned())));
        Ok(read::answer(&self.transport.send(call).await?)?)
    }
}

impl std::fmt::Debug for Api {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Api").field(&self.place()).finish()
    }
}
