//! `DynamoDB` in this process: an ordinary SDK client whose HTTP connector calls an engine
//! (`dynoxide`, `DynamoDB`'s semantics on `SQLite`) instead of opening a socket.
//!
//! This module owns opening the database, the SDK's configuration and the sweep of expired items.
//! It must never interpret what is stored: `connector` moves bytes, `dispatch` maps an operation's
//! name to the engine's call, and everything else is `DynamoDB`'s contract.
//!
//! # Durability
//! A file database keeps its journal in write-ahead mode and leaves `SQLite`'s `synchronous` at its
//! default, `FULL`. So before a write is acknowledged, its transaction is in the `-wal` file beside
//! the database and that file has been synced. A process killed with `SIGKILL` loses nothing it
//! acknowledged (the kernel has the bytes; opening again replays the log), and neither does a
//! machine that loses power, as far as its disk honours a sync. The `-wal` file is part of the
//! database: copy, move or delete both together.
//!
//! # Concurrency
//! The engine runs one request at a time behind one lock; each request is atomic, and reads see
//! every write acknowledged before them. Indexes are updated in the same transaction, so unlike on
//! AWS an index is never stale and a transaction never conflicts with another.
//!
//! One process owns a file at a time. A second one opening it is not refused, but the engine caches
//! table definitions, and a request that waits five seconds for the other's lock fails.

mod connector;
mod dispatch;
mod request_queue;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Config, Region, StalledStreamProtectionConfig};
use dynoxide::{Database, DynoxideError};

use connector::{InProcess, Placement};

/// A host that can't exist (RFC 2606), should a request ever escape the connector.
const ENDPOINT: &str = "http://dynamodb.invalid";

/// An embedded database and the client that talks to it.
///
/// Clones share the database. It closes, and folds its journal into the file, when the last
/// `Embedded` and the last [`Client`] are gone; nothing depends on that having happened.
#[derive(Clone)]
pub struct Embedded {
    database: Database,
    client: Client,
}

/// Why an embedded database could not be opened or swept. Requests never answer with this: they
/// fail with the SDK's own typed errors.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The path can't be made absolute, for instance because it is empty.
    #[error("the path of the database, {path:?}, cannot be resolved")]
    UnresolvedPath {
        /// The path as given.
        path: PathBuf,
        source: std::io::Error,
    },
    /// The engine takes paths as UTF-8 only.
    #[error("the path of the database, {path:?}, is not UTF-8")]
    PathNotUtf8 {
        /// The path, made absolute.
        path: PathBuf,
    },
    /// The engine refused, or `SQLite` failed: no such folder, no permission, not a database, a
    /// file written by a newer engine, a full disk.
    #[error("the embedded database failed")]
    Engine(#[from] DynoxideError),
    /// A sweep was stopped part of the way, because it panicked or because the runtime shut down.
    /// What it had deleted by then stays deleted.
    #[error("the sweep of expired items was interrupted")]
    SweepInterrupted(#[source] tokio::task::JoinError),
}

impl Embedded {
    /// Opens an empty database that lives in memory and is forgotten with its last clone.
    ///
    /// Requests run on the threads of their callers: they take tens of microseconds and never wait on a disk.
    pub fn memory() -> Result<Self, Error> {
        Ok(Self::new(Database::memory()?, Placement::inline()))
    }

    /// Opens the database in `path`, creating the file (not its folder) if there is none.
    ///
    /// Blocks while it opens, as long as 30 seconds if another process holds the file. Requests
    /// run on Tokio's blocking threads, so the client needs a Tokio runtime.
    pub fn file(path: &Path) -> Result<Self, Error> {
        // The engine hands the path to SQLite, to which "", ":memory:" and "file:…?mode=memory"
        // are databases that forget everything. An absolute path can be none of them.
        let absolute = std::path::absolute(path)
            .map_err(|source| Error::UnresolvedPath { path: path.to_owned(), source })?;
        let Some(utf8) = absolute.to_str() else {
            return Err(Error::PathNotUtf8 { path: absolute });
        };
        Ok(Self::new(Database::new(utf8)?, Placement::blocking_thread()))
    }

    /// A client for this database; cheap, and as good as any other.
    ///
    /// An operation the engine doesn't have fails with the code `UnknownOperationException`. There
    /// are no retries: what fails here fails for a reason that a second attempt does not change.
    /// As on a network, dropping a call's future does not undo it: the write may still happen.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Deletes every item whose time to live has passed, in all tables that have it enabled, and
    /// returns how many. AWS does this by itself; here it has to be called.
    ///
    /// The sweep works in pages of 25 items and lets waiting requests in between them. It needs a
    /// Tokio runtime, whichever kind of database this is.
    pub async fn sweep_ttl(&self) -> Result<usize, Error> {
        let database = self.database.clone();
        let swept = tokio::task::spawn_blocking(move || database.sweep_ttl()).await;
        Ok(swept.map_err(Error::SweepInterrupted)??)
    }

    fn new(database: Database, placement: Placement) -> Self {
        let config = Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static("us-east-1"))
            .endpoint_url(ENDPOINT)
            .http_client(InProcess::new(database.clone(), placement))
            // Nobody checks a signature here, and hashing every body for one costs more than
            // many of the requests themselves. It also leaves no credentials to configure.
            .allow_no_auth()
            // Nothing in this process is transient or stalls the way a network does.
            .retry_config(RetryConfig::disabled())
            .timeout_config(TimeoutConfig::disabled())
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .idempotency_token_provider(dispatch::NO_TOKEN)
            .build();
        Self { database, client: Client::from_conf(config) }
    }
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded").finish_non_exhaustive()
    }
}
