//! The AWS emulator that `cargo xtask test` starts: its address, and clients for it.
//!
//! All tests share one emulator, at the same time. A test makes unique names with [`unique`] and never deletes
//! resources that it did not make.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::config::Credentials;
use tickover_lambda::https_client;

/// The variable in which `cargo xtask test` passes the emulator's address.
const ENDPOINT: &str = "TICKOVER_TEST_ENDPOINT";

/// The variable in which `cargo xtask test` passes the judge's address.
const JUDGE: &str = "TICKOVER_TEST_JUDGE";

/// The region of all resources in the emulator.
pub const REGION: &str = "us-east-1";

/// The emulator's address, such as `http://127.0.0.1:43210`.
///
/// # Panics
///
/// If the tests weren't started by `cargo xtask test`.
pub fn endpoint() -> String {
    match std::env::var(ENDPOINT) {
        Ok(endpoint) => endpoint,
        Err(error) => panic!("{ENDPOINT}: {error}. This test needs the AWS emulator: run `cargo xtask test`"),
    }
}

/// The emulator's address for functions. There each call is judged by the policies of the function's role in the templates,
/// so the function must say which one it is: its session token is its name as it would be deployed.
///
/// # Panics
///
/// As [`endpoint`] does.
pub fn judge() -> String {
    match std::env::var(JUDGE) {
        Ok(judge) => judge,
        Err(error) => panic!("{JUDGE}: {error}. This test needs the judge: run `cargo xtask test`"),
    }
}

/// An SDK configuration for the emulator, which accepts any credentials.
///
/// # Panics
///
/// As [`endpoint`] does.
pub async fn aws_config() -> SdkConfig {
    aws_config::defaults(BehaviorVersion::latest())
        .http_client(https_client())
        .endpoint_url(endpoint())
        .region(Region::new(REGION))
        .credentials_provider(Credentials::new("test", "test", None, None, "tickover-tests"))
        .load()
        .await
}

/// A name for a table or queue that no other test has, not even one of an earlier run: `prefix-0123456789abcdef`.
pub fn unique(prefix: &str) -> String {
    // The random seeds of the standard library's hash maps avoid another dependency.
    format!("{prefix}-{:016x}", RandomState::new().build_hasher().finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_and_keep_their_prefix() {
        let names = [unique("queue"), unique("queue")];
        assert_ne!(names[0], names[1]);
        assert!(names.iter().all(|name| name.starts_with("queue-") && name.len() == 22), "{names:?}");
    }

    #[tokio::test]
    async fn the_emulator_answers_through_both_sdks() {
        let config = aws_config().await;
        let tables = aws_sdk_dynamodb::Client::new(&config).list_tables().send().await;
        tables.expect("DynamoDB lists its tables");

        let name = unique("emulator");
        let queue = aws_sdk_sqs::Client::new(&config).create_queue().queue_name(&name).send().await;
        let url = queue.expect("SQS creates a queue").queue_url.unwrap_or_default();
        assert!(url.ends_with(&name), "{url}");
    }
}
