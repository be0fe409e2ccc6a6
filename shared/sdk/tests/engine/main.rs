//! The engine: what a workflow's code may rely on, whatever happens to its workers.

#![expect(clippy::unwrap_used, reason = "a workflow of a test that can't continue is a failed test")]

mod attempts;
mod batch_deaths;
mod batches;
mod beats;
mod cancellations;
mod combine;
mod durable;
mod endings;
mod events;
mod executions;
mod expired_results;
mod faulty_code;
mod fencing;
mod guide_tables;
mod inline;
mod isolation;
mod kept;
mod limits;
mod orphans;
mod pauses;
mod progress;
mod remote;
mod run_retries;
mod sagas;
mod scene;
mod schedule_to_start;
mod silence;
mod smallest;
mod states;
mod time;
mod trace;
mod unavailable;
mod windows;
