//! The store of one machine: the service's `Store` port over `SQLite`, in a file or in memory.
//!
//! # Durability
//! A commit is acknowledged after its transaction is in the write-ahead log (`FILE-wal`) and that file was synced. A
//! process that is killed loses nothing it acknowledged, and neither does a machine that loses power, as far as its
//! disk honours a sync. The log is a part of the database: move both files together, and copy them with [`backup`].
//!
//! # Group commit
//! One thread writes. It takes all commits that are waiting, runs each commit's conditions and writes in one
//! transaction, syncs once, and answers all of them. While it syncs, the next group gathers. Readers have connections
//! of their own; they see what has been synced.
//!
//! The conditions are the service's (`tickover_service::condition`). This crate stores records; it never decides.

mod backlog;
mod check;
mod checkpoint;
mod commit;
mod copy;
mod error;
mod expiry;
mod file;
mod find;
mod history;
mod mark;
mod part;
mod read;
mod record;
mod schema;
mod store;
mod trouble;
mod writer;

pub use check::{Findings, check};
pub use copy::{BackupError, backup, compact};
pub use error::OpenError;
pub use store::SqliteStore;
