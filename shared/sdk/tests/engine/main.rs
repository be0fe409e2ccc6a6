//! The engine: what a workflow's code may rely on, whatever happens to its workers.

#![expect(clippy::unwrap_used, reason = "a workflow of a test that can't continue is a failed test")]

mod alone;
mod attempts;
mod combine;
mod durable;
mod endings;
mod events;
mod executions;
mod fencing;
mod inline;
mod neglect;
mod orphans;
mod progress;
mod remote;
mod sagas;
mod scene;
mod states;
mod strange;
mod thin;
mod time;
mod trace;
mod trouble;
