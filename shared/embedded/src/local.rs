//! The whole system in one process: storage, queue, HTTP interface and tick.
//!
//! The queue forgets when the process ends. It finds pending tasks in the store; all else is sent again at the start.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tickover_core::limits::Limits;
use tickover_service::callbacks::Secrets;
use tickover_service::memory::MemoryQueue;
use tickover_service::ports::Clock;
use tickover_service::system::{SystemClock, SystemIds};
use tickover_service::warn_unless_logged;
use tickover_service::{Ports, Service, ServiceError};
use tickover_sqlite::{OpenError, SqliteStore};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::http::{self, Bounds, HostName};
use crate::metrics;
use crate::time::{Ticks, fire_forever, tick_forever};

/// Hints of each queue that are kept in memory, about a kilobyte each; others are read from the store when their time
/// comes.
const HINTS_KEPT: u64 = 2_000;
/// How often the history is added to.
const HISTORY_EVERY: Duration = Duration::from_mins(1);
/// How often expired records are deleted.
const SWEEP_EVERY: Duration = Duration::from_mins(1);

/// Where a local system keeps its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    /// Nowhere: it is forgotten at the end.
    Memory,
    /// In this file, and the log beside it.
    File(PathBuf),
}

/// Why a local system could not start or go on.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// The database can't be opened.
    #[error("the data can't be opened")]
    Database(#[from] OpenError),
    /// The file can be opened, but not all of it can be read.
    #[error(
        "{path:?} can't be read as a whole: see `tickover data check`, and restore a copy of it ({reason})"
    )]
    Unreadable {
        path: PathBuf,
        /// For people; never parsed.
        reason: String,
    },
    /// What is stored can't be read.
    #[error("the stored tasks can't be read")]
    Service(#[from] ServiceError),
    /// The server stopped.
    #[error("the server failed")]
    Server(#[from] std::io::Error),
}

/// A system in this process.
#[derive(Clone)]
pub struct Local {
    service: Service,
    store: Arc<SqliteStore>,
    queue: Arc<MemoryQueue>,
    allowed: Vec<HostName>,
    bounds: Bounds,
}

impl Local {
    /// Opens the storage, and makes what is missing.
    pub async fn open(storage: &Storage, limits: Limits) -> Result<Self, LocalError> {
        let store = Arc::new(match storage {
            Storage::Memory => SqliteStore::memory()?,
            Storage::File(path) => open_file(path.clone()).await?,
        });
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let unreadable = |error| match (error, storage) {
            (ServiceError::Corrupt { reason }, Storage::File(path)) => {
                LocalError::Unreadable { path: path.clone(), reason }
            }
            (error, _) => LocalError::Service(error),
        };
        let queue = MemoryQueue::over(store.clone(), HINTS_KEPT, clock.clone());
        let queue = Arc::new(queue.map_err(|error| unreadable(error.into()))?);
        // The lock of the file proves that no other process has it.
        let limits = Limits { alone_since: Some(clock.now()), ..limits };
        let ports = Ports { store: store.clone(), queue: queue.clone(), clock, ids: Arc::new(SystemIds) };
        let service = Service::new(ports, limits);
        service.open_remembered().await.map_err(unreadable)?;
        let (allowed, bounds) = (vec![], Bounds::default());
        Ok(Self { service, store, queue, allowed, bounds })
    }

    /// Answers callers that know it by one of these names or addresses, beside those that name this machine.
    #[must_use]
    pub fn allow_hosts(mut self, hosts: impl IntoIterator<Item = HostName>) -> Self {
        self.allowed.extend(hosts);
        self
    }

    /// Gives callbacks this address, or else the one at which the server listens. What signs them is kept with the data.
    #[must_use]
    pub fn callbacks_at(mut self, url: Option<&str>, listening: SocketAddr) -> Self {
        let own = url.map_or_else(|| own_url(listening, self.allowed.first()), str::to_owned);
        self.service = self.service.with_callbacks(Secrets::Own, Some(&own));
        self
    }

    /// Bounds silent callers like this.
    #[must_use]
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.bounds = bounds;
        self
    }

    /// The service, for calls without HTTP.
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// Serves HTTP, ticks and takes timers until `stop` resolves.
    pub async fn serve(
        self,
        listener: TcpListener,
        ticks: Ticks,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), LocalError> {
        let router = tickover_api::router(self.service.clone())
            .merge(metrics::router(self.service.clone(), Arc::clone(&self.store)))
            .merge(tickover_dashboard::router(tickover_dashboard::Settings::default()));
        // All of it ends with this call.
        let mut background = JoinSet::new();
        background.spawn(tick_forever(self.service.clone(), ticks));
        background.spawn(fire_forever(self.service.clone(), Arc::clone(&self.queue)));
        background.spawn(hint_all(self.service.clone()));
        background.spawn(sweep_forever(self.service.clone(), Arc::clone(&self.store)));
        background.spawn(keep_history_forever(self.service.clone()));
        background.spawn(metrics::keep_forever());
        Ok(http::serve(listener, router, self.allowed, self.bounds, stop).await?)
    }
}

/// An address at which callers reach the server: by the name that it answers to, if it listens for other machines.
fn own_url(listening: SocketAddr, name: Option<&HostName>) -> String {
    let (ip, port) = (listening.ip(), listening.port());
    match name.filter(|_| !ip.is_loopback()) {
        Some(name) => format!("http://{name}:{port}"),
        None if ip.is_unspecified() => {
            format!("http://{}", SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
        }
        None => format!("http://{listening}"),
    }
}

/// Sends what the queue forgot when the last process ended, while the server answers already.
async fn hint_all(service: Service) {
    match service.hint_all().await {
        Ok(hinted) => tracing::debug!(hinted, "messages of the last process sent again"),
        Err(error) => tracing::error!(%error, "not all messages sent again: the tick finds the others"),
    }
}

async fn sweep_forever(service: Service, store: Arc<SqliteStore>) {
    let mut interval = tokio::time::interval(SWEEP_EVERY);
    loop {
        interval.tick().await;
        match store.delete_expired(service.now()).await {
            Ok(deleted) => tracing::debug!(deleted, "expired records deleted"),
            Err(error) => warn_unless_logged!(error; %error, "expired records not deleted"),
        }
    }
}

async fn keep_history_forever(service: Service) {
    let mut interval = tokio::time::interval(HISTORY_EVERY);
    loop {
        interval.tick().await;
        if let Err(error) = service.keep_history().await {
            warn_unless_logged!(error; %error, "the history of the last minute isn't kept");
        }
    }
}

/// Opening touches the disk, so it isn't done on this thread.
async fn open_file(path: PathBuf) -> Result<SqliteStore, LocalError> {
    let opened = tokio::task::spawn_blocking(move || SqliteStore::file(&path)).await;
    Ok(opened.map_err(|error| LocalError::Server(std::io::Error::other(error)))??)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_callbacks_is_one_that_the_server_answers_to() {
        let name = "box.example.com".parse::<HostName>().unwrap();
        for (listening, name, expected) in [
            ("127.0.0.1:7070", None, "http://127.0.0.1:7070"),
            ("[::1]:7070", None, "http://[::1]:7070"),
            ("0.0.0.0:80", None, "http://127.0.0.1:80"),
            ("0.0.0.0:80", Some(&name), "http://box.example.com:80"),
            ("127.0.0.1:80", Some(&name), "http://127.0.0.1:80"),
        ] {
            assert_eq!(own_url(listening.parse().unwrap(), name), expected);
        }
    }
}
