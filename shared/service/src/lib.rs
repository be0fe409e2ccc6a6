//! Carries out commands: the ports to the outside, and the one loop between them and the rules of the core.
//!
//! A request becomes a command. The core decides it on the current record, and the loop commits the decision under that
//! record's condition. This crate never decides what happens to a task, and it knows neither `DynamoDB` nor SQS nor
//! HTTP.

pub mod callbacks;
pub mod claim;
pub mod condition;
pub mod config;
pub mod cost;
pub mod crons;
pub mod cursor;
pub mod drive;
pub mod error;
pub mod executions;
pub mod flow;
pub mod gates;
pub mod history;
pub mod lease;
pub mod memory;
pub mod metric;
pub mod operations;
pub mod overview;
pub mod ports;
pub mod queues;
pub mod skew;
pub mod stop;
pub mod system;
pub mod tasks;
pub mod telemetry;
pub mod tick;
pub mod timers;
pub mod to_end;
pub mod transact;
pub mod waits;

mod canonical;
mod contention;
mod live_leases;
mod notify;
mod service;

pub use error::ServiceError;
pub use service::{Asks, CodeAsks, KeptRecords, Ports, Rules, Service, WorkflowTerms};
