//! The HTTP side of the Runtime API: three routes that a function calls, and one by which it reports a failed start.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::oneshot::error::RecvError;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::FunctionError;
use crate::emulator::REGION;

/// The largest answer that Lambda accepts.
const ANSWER_BYTES_MAX: usize = 6 * 1024 * 1024;

type Answer = Result<Value, FunctionError>;

/// The API of one sandbox, on its own port.
#[derive(Debug)]
pub(super) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An event on its way to the function.
#[derive(Debug)]
struct Event {
    id: String,
    body: String,
    deadline_ms: u128,
}

#[derive(Debug)]
struct Shared {
    function_arn: String,
    events: mpsc::UnboundedSender<Event>,
    /// The function's requests for the next event wait here.
    queue: tokio::sync::Mutex<mpsc::UnboundedReceiver<Event>>,
    /// The callers that wait, by the id of their event.
    waiting: Mutex<Waiting>,
    /// `None` while the function starts.
    init: watch::Sender<Option<Result<(), FunctionError>>>,
}

#[derive(Debug, Default)]
struct Waiting {
    ids_used: u64,
    answers: HashMap<String, oneshot::Sender<Answer>>,
}

impl Server {
    pub(super) async fn start(function_name: &str) -> Result<Self> {
        let (events, queue) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            function_arn: format!("arn:aws:lambda:{REGION}:000000000000:function:{function_name}"),
            events,
            queue: tokio::sync::Mutex::new(queue),
            waiting: Mutex::default(),
            init: watch::Sender::new(None),
        });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("no free port")?;
        let address = listener.local_addr()?;
        let serving = axum::serve(listener, router(Arc::clone(&shared))).into_future();
        // The server ends only when it is aborted.
        let task = tokio::spawn(async move { drop(serving.await) });
        Ok(Self { address, shared, task })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Queues the event. The answer arrives on the channel, which closes only with the server.
    pub(super) async fn queue_event(&self, event: &Value, limit: Duration) -> Result<Answer, RecvError> {
        let (sender, answer) = oneshot::channel();
        let id = self.shared.expect_answer(sender);
        let deadline_ms = since_epoch().saturating_add(limit).as_millis();
        // `shared` holds the receiving half, so the channel is never closed.
        drop(self.shared.events.send(Event { id, body: event.to_string(), deadline_ms }));
        answer.await
    }

    /// Waits until the function has asked for an event, or has reported that it can't start.
    pub(super) async fn init(&self) -> Result<(), FunctionError> {
        let mut init = self.shared.init.subscribe();
        let known = init.wait_for(Option::is_some).await;
        known.ok().and_then(|known| known.clone()).unwrap_or(Ok(()))
    }
}

impl Shared {
    fn expect_answer(&self, sender: oneshot::Sender<Answer>) -> String {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.ids_used += 1;
        let id = format!("00000000-0000-4000-8000-{:012x}", waiting.ids_used);
        waiting.answers.insert(id.clone(), sender);
        id
    }

    /// Lambda accepts one answer for each event, and refuses any other.
    fn answer(&self, id: &str, answer: Answer) -> StatusCode {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        match waiting.answers.remove(id) {
            Some(sender) => {
                // An error means that the test has stopped waiting.
                drop(sender.send(answer));
                StatusCode::ACCEPTED
            }
            None => StatusCode::BAD_REQUEST,
        }
    }
}

fn router(shared: Arc<Shared>) -> Router {
    let routes = Router::new()
        .route("/invocation/next", get(next))
        .route("/invocation/{id}/response", post(response))
        .route("/invocation/{id}/error", post(error))
        .route("/init/error", post(init_error))
        .layer(DefaultBodyLimit::max(ANSWER_BYTES_MAX))
        .with_state(shared);
    Router::new().nest("/2018-06-01/runtime", routes)
}

async fn next(State(shared): State<Arc<Shared>>) -> Response {
    shared.init.send_if_modified(|init| init.is_none() && init.replace(Ok(())).is_none());
    let Some(event) = shared.queue.lock().await.recv().await else {
        return StatusCode::GONE.into_response();
    };
    let trace = "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Parent=9a9197af755a6419;Sampled=0";
    let headers = [
        (CONTENT_TYPE.as_str(), "application/json".to_owned()),
        ("Lambda-Runtime-Aws-Request-Id", event.id),
        ("Lambda-Runtime-Deadline-Ms", event.deadline_ms.to_string()),
        ("Lambda-Runtime-Invoked-Function-Arn", shared.function_arn.clone()),
        ("Lambda-Runtime-Trace-Id", trace.to_owned()),
    ];
    (headers, event.body).into_response()
}

async fn response(State(shared): State<Arc<Shared>>, Path(id): Path<String>, body: Bytes) -> StatusCode {
    let answer = serde_json::from_slice(&body)
        .map_err(|error| FunctionError::new("Runtime.InvalidResponse", format!("no JSON: {error}")));
    shared.answer(&id, answer)
}

async fn error(State(shared): State<Arc<Shared>>, Path(id): Path<String>, body: Bytes) -> StatusCode {
    shared.answer(&id, Err(reported(&body)))
}

async fn init_error(State(shared): State<Arc<Shared>>, body: Bytes) -> StatusCode {
    shared.init.send_replace(Some(Err(reported(&body))));
    StatusCode::ACCEPTED
}

fn reported(body: &[u8]) -> FunctionError {
    serde_json::from_slice(body)
        .unwrap_or_else(|_| FunctionError::new("Runtime.Unknown", String::from_utf8_lossy(body)))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the SDK and the function compare this deadline with the real clock"
)]
fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
