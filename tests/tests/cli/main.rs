//! The command-line tool as people and scripts use it: the real binary, against the real local server.
#![expect(clippy::expect_used, reason = "a test's helpers may fail it")]

mod cron;
mod data;
mod executions;
mod failures;
mod guides;
mod incident;
mod kind;
mod leases;
mod limits;
mod new;
mod operation;
mod operator;
mod results;
mod scene;
mod stopping;
mod time;
mod transports;
mod usage;
