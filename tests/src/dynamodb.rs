//! `DynamoDB` in this process, for tests of its adapter: an ordinary SDK client whose HTTP connector calls an engine
//! (`dynoxide`, `DynamoDB`'s semantics on `SQLite`) instead of opening a socket.
//!
//! Each request is atomic, and reads see every write acknowledged before them. Unlike on AWS, an index is never stale
//! and a transaction never conflicts with another. `connector` moves bytes, `dispatch` maps an operation's name to the
//! engine's call.

mod connector;
mod dispatch;
#[cfg(test)]
mod tests;

use std::fmt;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Config, Region, StalledStreamProtectionConfig};
use dynoxide::{Database, DynoxideError};

use connector::Connector;

/// A host that can't exist (RFC 2606), should a request ever escape the connector.
const ENDPOINT: &str = "http://dynamodb.invalid";

/// An empty database in memory, and the client that talks to it. Clones share the database.
#[derive(Clone)]
pub struct LocalDynamo {
    database: Database,
    client: Client,
}

impl LocalDynamo {
    pub fn memory() -> Result<Self, DynoxideError> {
        let database = Database::memory()?;
        let config = Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static("us-east-1"))
            .endpoint_url(ENDPOINT)
            .http_client(Connector::new(database.clone()))
            // Nobody checks a signature here.
            .allow_no_auth()
            // Nothing in this process is transient or stalls the way a network does.
            .retry_config(RetryConfig::disabled())
            .timeout_config(TimeoutConfig::disabled())
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .idempotency_token_provider(dispatch::NO_TOKEN)
            .build();
        Ok(Self { database, client: Client::from_conf(config) })
    }

    /// A client for this database. An operation that the engine lacks fails with `UnknownOperationException`.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The status and the body of the answer to a request, whose target names the operation.
    pub(crate) fn answer(&self, target: &str, body: &[u8]) -> (u16, Vec<u8>) {
        let answer = dispatch::answer(&self.database, target, body);
        (answer.status, answer.body)
    }

    /// Deletes every item whose time to live has passed, and returns how many. AWS does this by itself.
    pub fn sweep_ttl(&self) -> Result<usize, DynoxideError> {
        self.database.sweep_ttl()
    }
}

impl fmt::Debug for LocalDynamo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalDynamo").finish_non_exhaustive()
    }
}
