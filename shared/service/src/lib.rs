//! Carries decisions out: the ports to the world, and the one loop between them and the rules in the core.
//!
//! A call comes in as a request, becomes a command, is decided by the core on the record as it stands, and is
//! committed under that record's condition. This crate never decides what happens to a task, and it knows
//! neither `DynamoDB` nor SQS nor HTTP.

pub mod claim;
pub mod condition;
pub mod config;
pub mod cost;
pub mod crons;
pub mod cursor;
pub mod drive;
pub mod error;
pub mod executions;
pub mod lease;
pub mod memory;
pub mod metric;
pub mod ports;
pub mod queues;
pub mod skew;
pub mod system;
pub mod tasks;
pub mod telemetry;
pub mod tick;
pub mod timers;
pub mod transact;

mod live_leases;
mod notify;
mod service;

pub use error::ServiceError;
pub use service::{Ports, Rules, Service};
