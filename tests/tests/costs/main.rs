//! What each operation costs, by the `ConsumedCapacity` of the database in this process.

mod executions;
mod hot_keys;
mod limits;
mod maps;
mod operations;
mod tasks;
mod windows;
