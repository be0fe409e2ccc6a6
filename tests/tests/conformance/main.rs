//! One suite for all stores (`store/`) and one for all queues (`queue/`), and the adapters that they run on: `memory`,
//! `sqlite`, `dynamodb` and `sqs`, each with what only that adapter can be asked.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests are tests")]

mod dynamodb;
mod memory;
mod queue;
mod sqlite;
mod sqs;
mod store;
