//! Executions as callers of the HTTP interface see them: each test shows a promise, most of them one feature row of
//! `features.toml`. The tests run the code manually: a worker's turn is a few calls of the service.
#![expect(clippy::expect_used, reason = "a test's helpers may fail it")]

mod answers;
mod deadlines;
mod describe;
mod events;
mod limits;
mod lists;
mod operate;
mod paused;
mod remote;
mod repeated_reports;
mod runs;
mod start;
mod timeline;
mod values;
mod worker;
