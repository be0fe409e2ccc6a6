//! The SDK's transport: gets the request that the SDK would have sent, and returns the answer that it would have
//! received. It handles HTTP (target, status, body) and chooses the thread of the call. `dispatch` handles the
//! operations.

use std::fmt;
use std::sync::Arc;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use dynoxide::Database;
use tokio::sync::Semaphore;

use super::dispatch::{self, Answer};
use super::request_queue::RequestQueue;

const TARGET_HEADER: &str = "x-amz-target";
const CONTENT_TYPE: &str = "application/x-amz-json-1.0";

/// How many requests may occupy a blocking thread at once. The engine runs one at a time, and the second is parsed
/// meanwhile. More would only block threads of a pool that other code needs too.
const TURNS: usize = 2;

/// Where a request runs.
pub(super) enum Placement {
    /// On the thread of one of the callers. Right if no request waits for a disk: moving to another thread and back
    /// costs about as much as the request.
    Inline { line: RequestQueue<Result<HttpResponse, ConnectorError>> },
    /// On one of Tokio's blocking threads, in the order of arrival: a write waits for the disk.
    BlockingThread {
        /// The permits to run now.
        turns: Arc<Semaphore>,
    },
}

impl Placement {
    pub(super) fn inline() -> Self {
        Self::Inline { line: RequestQueue::new() }
    }

    pub(super) fn blocking_thread() -> Self {
        Self::BlockingThread { turns: Arc::new(Semaphore::new(TURNS)) }
    }
}

/// Returns the same connector for all timeout settings: a call can't be stopped half way, so a timeout would only hide
/// that it still takes effect.
#[derive(Debug)]
pub(super) struct InProcess {
    connector: SharedHttpConnector,
}

impl InProcess {
    pub(super) fn new(database: Database, placement: Placement) -> Self {
        Self { connector: SharedHttpConnector::new(Connector { database, placement }) }
    }
}

impl HttpClient for InProcess {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        self.connector.clone()
    }
}

struct Connector {
    database: Database,
    placement: Placement,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        match &self.placement {
            Placement::Inline { line } => {
                let database = self.database.clone();
                HttpConnectorFuture::new(line.request(move || respond(&database, &request)))
            }
            Placement::BlockingThread { turns } => HttpConnectorFuture::new(respond_on_blocking_thread(
                self.database.clone(),
                Arc::clone(turns),
                request,
            )),
        }
    }
}

async fn respond_on_blocking_thread(
    database: Database,
    turns: Arc<Semaphore>,
    request: HttpRequest,
) -> Result<HttpResponse, ConnectorError> {
    let turn = turns.acquire_owned().await.map_err(|closed| ConnectorError::other(closed.into(), None))?;
    let responded = tokio::task::spawn_blocking(move || {
        // Moved here so that a call whose future is dropped keeps its permit while it runs.
        let _turn = turn;
        respond(&database, &request)
    });
    responded.await.map_err(|interrupted| ConnectorError::other(interrupted.into(), None))?
}

fn respond(database: &Database, request: &HttpRequest) -> Result<HttpResponse, ConnectorError> {
    let body = request.body().bytes().ok_or_else(|| ConnectorError::user(StreamingBody.into()))?;
    let target = request.headers().get(TARGET_HEADER).unwrap_or_default();
    let Answer { status, body } = dispatch::answer(database, target, body);

    let status = StatusCode::try_from(status).map_err(|bad| ConnectorError::other(bad.into(), None))?;
    let mut response = HttpResponse::new(status, SdkBody::from(body));
    response.headers_mut().insert("content-type", CONTENT_TYPE);
    Ok(response)
}

/// `DynamoDB` has no streaming operations, so the SDK never sends a streaming body.
#[derive(Debug, thiserror::Error)]
#[error("a request with a streaming body is not a DynamoDB request")]
struct StreamingBody;
