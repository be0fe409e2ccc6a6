//! The whole of Tickover inside one process, for local development, tests and small installations: no network, no
//! Docker, no AWS account. [`Local`] is the system; its records are in `tickover-sqlite`.

mod http;
pub mod local;
mod metrics;
mod time;

/// Checking, compacting and copying the file of a local system.
pub mod data {
    pub use tickover_sqlite::{BackupError, Findings, OpenError, backup, check, compact};
}

pub use http::{Bounds, HostName, HostNameError, serve};
pub use local::{Local, LocalError, Storage};
pub use time::Ticks;
