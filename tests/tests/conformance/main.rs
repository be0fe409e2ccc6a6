//! One suite for all stores (`store/`) and one for all queues (`queue/`), and the adapters that run them: `memory`,
//! `dynamodb` and `sqs`, each with the tests that apply to it alone.

mod dynamodb;
mod memory;
mod queue;
mod sqs;
mod store;
