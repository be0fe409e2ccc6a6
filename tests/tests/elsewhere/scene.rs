//! A local system behind a line that counts requests and loses answers, and workers at the other end of it.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;
use tickover::client::Http;
use tickover::{Client, Millis, Registry, Worker, WorkerSettings};
use tickover_core::limits::Limits;
use tickover_embedded::{Local, Storage, Ticks};
use tickover_service::Service;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// A test that takes longer has failed.
pub(crate) const LIMIT: Duration = Duration::from_mins(2);
const BODY_MAX: usize = 16 * 1024 * 1024;

/// The line between workers and the system.
#[derive(Default)]
pub(crate) struct Line {
    /// The paths of the calls that had an effect or an answer, in order: claims without work aren't among them.
    calls: Mutex<Vec<String>>,
    /// Whether the first answer to each call of a turn or task is lost.
    pub(crate) loses: AtomicBool,
    asked: Mutex<HashSet<String>>,
    /// How many calls are answered; all if it is zero. The next one is carried out and never answered.
    pub(crate) answers: AtomicUsize,
    pub(crate) is_cut: Notify,
}

impl Line {
    pub(crate) fn calls(&self) -> Vec<String> {
        lock(&self.calls).clone()
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes a call on, and notes or loses its answer.
async fn pass(State(line): State<Arc<Line>>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let is_a_workers = path.contains("/turn") || path.contains("/work/") || path.contains("/tasks/");
    if !is_a_workers {
        return next.run(request).await;
    }
    let (head, body) = request.into_parts();
    let body = to_bytes(body, BODY_MAX).await.unwrap();
    let asked = format!("{path} {}", String::from_utf8_lossy(&body));
    let path = if asked.contains("\"from\"") { format!("{path}?journal") } else { path };
    let answer = next.run(Request::from_parts(head, Body::from(body))).await;
    let (head, body) = answer.into_parts();
    let body = to_bytes(body, BODY_MAX).await.unwrap();
    let is_claim = path.ends_with("/claim");
    let is_empty =
        |answer: &Value| ["tasks", "turns"].iter().all(|work| answer[work] == serde_json::json!([]));
    if is_claim && is_empty(&serde_json::from_slice(&body).unwrap_or_default()) {
        return Response::from_parts(head, Body::from(body));
    }
    let count = {
        let mut calls = lock(&line.calls);
        calls.push(path);
        calls.len()
    };
    let answers = line.answers.load(Ordering::SeqCst);
    if answers > 0 && count > answers {
        line.is_cut.notify_one();
        std::future::pending::<()>().await;
    }
    if line.loses.load(Ordering::SeqCst) && !is_claim && lock(&line.asked).insert(asked) {
        return (StatusCode::BAD_GATEWAY, "lost").into_response();
    }
    Response::from_parts(head, Body::from(body))
}

/// A system in a process of its own: all of it ends at once.
pub(crate) struct System {
    runtime: Runtime,
    pub(crate) service: Service,
    pub(crate) address: SocketAddr,
    pub(crate) line: Arc<Line>,
}

impl System {
    pub(crate) fn new() -> Self {
        Self::open(Storage::Memory, "127.0.0.1:0".to_owned())
    }

    pub(crate) fn open(storage: Storage, address: String) -> Self {
        let runtime = Runtime::new().unwrap();
        let line = Arc::new(Line::default());
        let passing = Arc::clone(&line);
        let (service, address) = runtime.block_on(async move {
            // What the process before had open is closed in the background.
            let local = loop {
                match Local::open(&storage, Limits::default()).await {
                    Ok(local) => break local,
                    Err(_) => tokio::task::yield_now().await,
                }
            };
            let listener = loop {
                match TcpListener::bind(&address).await {
                    Ok(listener) => break listener,
                    Err(_) => tokio::task::yield_now().await,
                }
            };
            let (service, address) = (local.service().clone(), listener.local_addr().unwrap());
            let router = tickover_api::router(service.clone()).layer(from_fn_with_state(passing, pass));
            tokio::spawn(async move { axum::serve(listener, router).await });
            // Its tick and its timers; nobody calls this address.
            let own = TcpListener::bind("127.0.0.1:0").await.unwrap();
            tokio::spawn(local.serve(own, Ticks::default(), std::future::pending()));
            (service, address)
        });
        Self { runtime, service, address, line }
    }

    pub(crate) fn in_file(path: PathBuf, address: String) -> Self {
        Self::open(Storage::File(path), address)
    }

    pub(crate) fn client(&self) -> Client {
        Client::from(self.service.clone())
    }

    pub(crate) fn kill(self) {
        let Self { runtime, service, .. } = self;
        drop(service);
        runtime.shutdown_background();
    }
}

/// The settings of the tests' workers: a dead one is replaced after a second.
pub(crate) fn settings() -> WorkerSettings {
    WorkerSettings {
        lease: Millis::from_secs(1),
        wait: Millis::from_secs(1),
        grace: Millis::ZERO,
        ..WorkerSettings::default()
    }
}

/// A worker at the other end of the line. It dies when this is aborted.
pub(crate) fn worker(address: SocketAddr, registry: Registry, settings: WorkerSettings) -> JoinHandle<()> {
    let http = Http::new(&format!("http://{address}")).unwrap();
    let worker = Worker::over_http(http, registry, settings).unwrap();
    tokio::spawn(async move { worker.run(std::future::pending()).await })
}

/// Whatever takes longer than a test may take has failed.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future).await.unwrap()
}
