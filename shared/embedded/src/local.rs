//! The whole system in one process: storage, queue, HTTP interface and tick.
//!
//! The queue is lost when the process ends, so at the start a hint is sent for every live task. Otherwise there is no
//! difference from a deployment: the same adapter writes the same records under the same conditions.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tickover_core::limits::Limits;
use tickover_dynamodb::{DynamoStore, Table, TableError};
use tickover_service::memory::{MemoryQueue, Queues};
use tickover_service::ports::Clock;
use tickover_service::system::{SystemClock, SystemIds};
use tickover_service::{Ports, Service, ServiceError};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::dynamodb::Embedded;
use crate::http::{self, Bounds, HostName};
use crate::metrics;
use crate::time::{Ticks, fire_forever, tick_forever};

const TABLE: &str = "tickover";
/// How often items whose time to live has passed are deleted.
const SWEEP_EVERY: Duration = Duration::from_hours(1);
/// How long the server waits for running requests at its end. Long polls are cut off.
const GRACE: Duration = Duration::from_secs(3);

/// Where a local system stores its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    /// In memory: the data is lost at the end.
    Memory,
    /// In this file and the journal beside it.
    File(PathBuf),
}

/// Why a local system could not start or continue.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// The folder for the data can't be created.
    #[error("the folder of {path:?} can't be made")]
    Folder { path: PathBuf, source: std::io::Error },
    /// Another process has the data open. Two processes would not see each other's writes.
    #[error("{path:?} is in use by another process")]
    InUse { path: PathBuf },
    /// The database can't be opened.
    #[error("the data can't be opened")]
    Database(#[from] crate::dynamodb::Error),
    /// The table can't be created, or the table there isn't Tickover's.
    #[error("the table can't be set up")]
    Table(#[from] TableError),
    /// The stored records can't be read.
    #[error("the stored tasks can't be read")]
    Service(#[from] ServiceError),
    /// The server stopped.
    #[error("the server failed")]
    Server(#[from] std::io::Error),
}

/// A whole system in this process.
#[derive(Clone)]
pub struct Local {
    service: Service,
    store: Arc<DynamoStore>,
    queue: Arc<MemoryQueue>,
    database: Embedded,
    allowed: Vec<HostName>,
    bounds: Bounds,
    /// Locked as long as the data is open. The system releases it however the process ends.
    _lock: Option<Arc<File>>,
}

impl Local {
    /// Opens the storage, creates what is missing, and sends a hint for every live task.
    pub async fn open(storage: &Storage, limits: Limits) -> Result<Self, LocalError> {
        let (database, lock) = match storage {
            Storage::Memory => (Embedded::memory()?, None),
            Storage::File(path) => {
                let (database, lock) = open_file(path).await?;
                (database, Some(Arc::new(lock)))
            }
        };
        Table::new(TABLE).create(&database.client()).await?;
        let store = Arc::new(DynamoStore::new(database.client(), TABLE));
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let queue = Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen));
        let ports = Ports { store: store.clone(), queue: queue.clone(), clock, ids: Arc::new(SystemIds) };
        let service = Service::new(ports, limits);
        service.open_remembered().await?;
        let hinted = service.hint_all().await?;
        tracing::debug!(hinted, "hints sent for live tasks");
        let (allowed, bounds) = (vec![], Bounds::default());
        Ok(Self { service, store, queue, database, allowed, bounds, _lock: lock })
    }

    /// Also answers callers that use one of these names or addresses, beside those of this machine.
    #[must_use]
    pub fn allow_hosts(mut self, hosts: impl IntoIterator<Item = HostName>) -> Self {
        self.allowed.extend(hosts);
        self
    }

    /// Sets the bounds for callers.
    #[must_use]
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.bounds = bounds;
        self
    }

    /// The service, for calls without HTTP.
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// The store, to read the capacity that it consumed.
    pub fn store(&self) -> &DynamoStore {
        &self.store
    }

    /// Serves HTTP, runs ticks and handles timers until `stop` resolves.
    pub async fn serve(
        self,
        listener: TcpListener,
        ticks: Ticks,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), LocalError> {
        let router = tickover_api::router(self.service.clone()).merge(metrics::router(self.service.clone()));
        let (stopping, stopped) = tokio::sync::watch::channel(false);
        let server = http::serve(listener, router, self.allowed, self.bounds, stopped);
        // Dropping the set when this call returns ends all of it.
        let mut beside = JoinSet::new();
        beside.spawn(tick_forever(self.service.clone(), ticks));
        beside.spawn(fire_forever(self.service.clone(), Arc::clone(&self.queue)));
        beside.spawn(sweep_forever(self.database.clone()));
        beside.spawn(metrics::keep_forever());
        let mut server = tokio::spawn(server);
        let ended = tokio::select! {
            ended = &mut server => ended,
            () = stop => {
                stopping.send_replace(true);
                if let Ok(ended) = tokio::time::timeout(GRACE, &mut server).await {
                    ended
                } else {
                    server.abort();
                    Ok(())
                }
            }
        };
        ended.map_err(|error| LocalError::Server(std::io::Error::other(error)))
    }
}

async fn sweep_forever(database: Embedded) {
    let mut interval = tokio::time::interval(SWEEP_EVERY);
    loop {
        interval.tick().await;
        match database.sweep_ttl().await {
            Ok(deleted) => tracing::debug!(deleted, "expired items deleted"),
            Err(error) => tracing::warn!(%error, "expired items not deleted"),
        }
    }
}

/// Opening reads the disk, so it runs on a blocking thread.
async fn open_file(path: &Path) -> Result<(Embedded, File), LocalError> {
    let path = path.to_owned();
    let opened = tokio::task::spawn_blocking(move || {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder)
                .map_err(|source| LocalError::Folder { path: path.clone(), source })?;
        }
        let mut beside = path.clone().into_os_string();
        beside.push(".lock");
        let lock = File::options().create(true).truncate(false).write(true).open(beside)?;
        match lock.try_lock() {
            Ok(()) => Ok((Embedded::file(&path)?, lock)),
            Err(TryLockError::WouldBlock) => Err(LocalError::InUse { path }),
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    });
    opened.await.map_err(|error| LocalError::Server(std::io::Error::other(error)))?
}
