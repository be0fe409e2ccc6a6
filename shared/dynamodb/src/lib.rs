//! The store port on `DynamoDB`: one table, every write conditional, every unit of capacity counted.
//!
//! Commands never reach this crate. It turns the writes of a decision into requests, and answers back into records and
//! typed errors. It decides nothing about a task, reads no clock and builds no client: the caller that builds the
//! client sets its timeouts and the SDK's own retries.

pub mod error;
pub mod indexed;
pub mod store;
pub mod table;
pub mod usage;

mod attribute;
mod commit;
mod expression;
mod item;
mod join;
mod journal;
mod key;
mod page;
mod read;
#[cfg(test)]
mod scripted;
mod write;

pub use error::TableError;
pub use store::DynamoStore;
pub use table::Table;
pub use usage::Usage;
