//! `DynamoDB` in this process: an ordinary SDK client whose HTTP connector calls an engine (`dynoxide`, which has
//! `DynamoDB`'s semantics on `SQLite`) instead of opening a socket.
//!
//! This module opens the database, configures the SDK and sweeps expired items. It must never interpret what is stored:
//! `connector` passes bytes, `dispatch` maps an operation's name to the engine's call, and the rest is `DynamoDB`'s
//! contract.
//!
//! # Durability
//! A file database keeps its journal in write-ahead mode and leaves `SQLite`'s `synchronous` at its default, `FULL`. So
//! before a write is acknowledged, its transaction is in the `-wal` file beside the database, and that file has been
//! synced. A process killed with `SIGKILL` loses no acknowledged write: the kernel has the bytes, and opening the
//! database again replays the log. A machine that loses power loses none either, if its disk honours a sync. The `-wal`
//! file is part of the database: copy, move or delete both together.
//!
//! # Concurrency
//! The engine runs one request at a time behind one lock. Each request is atomic, and reads see every write
//! acknowledged before them. Indexes are updated in the same transaction. So, unlike on AWS, an index is never stale
//! and a transaction never conflicts with another.
//!
//! Only one process may use a file at a time. A second process can open it, but the engine caches table definitions,
//! and a request that waits five seconds for the other process's lock fails.

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

/// A host that can't exist (RFC 2606), in case a request ever bypasses the connector.
const ENDPOINT: &str = "http://dynamodb.invalid";

/// An embedded database and the client for it.
///
/// Clones share the database. It closes, and merges its journal into the file, when the last `Embedded` and the last
/// [`Client`] are dropped. Durability doesn't depend on that.
#[derive(Clone)]
pub struct Embedded {
    database: Database,
    client: Client,
}

/// Why an embedded database could not be opened or swept. Requests never return this: they fail with the SDK's own
/// typed errors.
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
    /// The engine accepts only UTF-8 paths.
    #[error("the path of the database, {path:?}, is not UTF-8")]
    PathNotUtf8 {
        /// The path, made absolute.
        path: PathBuf,
    },
    /// The engine or `SQLite` failed: a missing folder, a missing permission, not a database, a file written by a newer
    /// engine, a full disk.
    #[error("the embedded database failed")]
    Engine(#[from] DynoxideError),
    /// A sweep stopped before its end, because it panicked or because the runtime shut down. Items that it had already
    /// deleted stay deleted.
    #[error("the sweep of expired items was interrupted")]
    SweepInterrupted(#[source] tokio::task::JoinError),
}

impl Embedded {
    /// Opens an empty database in memory. Its data is lost with its last clone.
    ///
    /// Requests run on the threads of their callers: they take tens of microseconds and never wait for a disk.
    pub fn memory() -> Result<Self, Error> {
        Ok(Self::new(Database::memory()?, Placement::inline()))
    }

    /// Opens the database in `path`. Creates the file, but not its folder, if it is missing.
    ///
    /// It blocks while it opens, for up to 30 seconds if another process has locked the file. Requests run on Tokio's
    /// blocking threads, so the client needs a Tokio runtime.
    pub fn file(path: &Path) -> Result<Self, Error> {
        // The engine passes the path to SQLite, for which "", ":memory:" and "file:…?mode=memory" are databases that
        // aren't stored. An absolute path is none of them.
        let absolute = std::path::absolute(path)
            .map_err(|source| Error::UnresolvedPath { path: path.to_owned(), source })?;
        let Some(utf8) = absolute.to_str() else {
            return Err(Error::PathNotUtf8 { path: absolute });
        };
        Ok(Self::new(Database::new(utf8)?, Placement::blocking_thread()))
    }

    /// A client for this database. Creating one is cheap, and all clients are equal.
    ///
    /// An operation that the engine doesn't have fails with the code `UnknownOperationException`. There are no retries:
    /// a failure here has a cause that a second attempt doesn't change. As with a network, dropping a call's future
    /// doesn't undo it: the write may still happen.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Deletes every item whose time to live has passed, in all tables that have it enabled, and returns how many. AWS
    /// does this itself; here it has to be called.
    ///
    /// The sweep works in pages of 25 items, and waiting requests run in between. It needs a Tokio runtime for both
    /// kinds of database.
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
            // No signature is checked here, and hashing each body for one costs more than many of the requests. It also
            // needs no credentials.
            .allow_no_auth()
            // In this process there are no transient faults and no delays of a network.
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
