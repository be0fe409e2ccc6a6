//! A call of the API, and its transport: over HTTP, or directly to the service.

use async_trait::async_trait;
use serde::Serialize;
use tickover_core::duration::Millis;
use tickover_core::id::ExecutionId;
use tickover_service::transact::Prepared;
use tickover_wire::Route;
use tickover_wire::request::pairs;

use super::ClientError;

/// Sends calls to the system.
#[async_trait]
pub(super) trait Transport: Send + Sync {
    /// The target of the calls, for people.
    fn place(&self) -> String;

    /// Sends a call and returns the body of the answer. If the answer is lost, an idempotent call is sent again.
    async fn send(&self, call: Call) -> Result<Vec<u8>, ClientError>;

    /// Returns the writes that start an execution. The body is that of [`Route::Start`].
    async fn prepare(&self, body: &str) -> Result<Prepared<ExecutionId>, ClientError>;

    /// Sends the hints of work that was prepared.
    async fn announce(&self, prepared: Prepared<ExecutionId>) -> Result<(), ClientError>;

    /// Returns after this long.
    async fn sleep(&self, span: Millis);
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) route: Route,
    /// Those in its path, in order.
    pub(super) names: Vec<String>,
    /// Names and values.
    pub(super) query: Vec<(String, String)>,
    /// JSON; empty without one.
    pub(super) body: String,
    /// How long the system may wait before it answers.
    #[cfg_attr(not(feature = "client-local"), expect(dead_code, reason = "only HTTP needs a timeout"))]
    pub(super) wait: Millis,
    /// Whether the call is idempotent.
    #[cfg_attr(not(feature = "client-local"), expect(dead_code, reason = "only networks lose answers"))]
    pub(super) is_repeatable: bool,
}

impl Call {
    /// A call that needs only its path.
    pub(super) fn of<const N: usize>(route: Route, names: [&str; N]) -> Self {
        // A body is declared as JSON, also if it has no fields.
        let body = if ["POST", "PUT"].contains(&route.method()) { "{}" } else { "" };
        Self {
            route,
            names: names.map(str::to_owned).into(),
            query: vec![],
            body: body.to_owned(),
            wait: Millis::ZERO,
            is_repeatable: !route.changes(),
        }
    }

    /// The same, with a query.
    pub(super) fn find<const N: usize>(route: Route, names: [&str; N], query: &impl Serialize) -> Self {
        Self::of(route, names).finding(query)
    }

    /// The same call with a query.
    pub(super) fn finding(self, query: &impl Serialize) -> Self {
        Self { query: pairs(query), ..self }
    }

    /// The same, with a body.
    pub(super) fn with<const N: usize>(
        route: Route,
        names: [&str; N],
        body: &impl Serialize,
    ) -> Result<Self, ClientError> {
        Ok(Self { body: body_of(body)?, ..Self::of(route, names) })
    }

    /// The same, idempotent or not.
    pub(super) fn repeatable(self, is_repeatable: bool) -> Self {
        Self { is_repeatable, ..self }
    }

    /// The same, for which the system may wait this long before it answers.
    pub(super) fn wait(self, wait: Millis) -> Self {
        Self { wait, ..self }
    }
}

/// A request as JSON.
pub(super) fn body_of(request: &impl Serialize) -> Result<String, ClientError> {
    serde_json::to_string(request).map_err(|problem| ClientError::invalid("body", problem))
}
