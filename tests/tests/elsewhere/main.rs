//! Workers that run workflows for the system of another process, over HTTP: what they do is the same as beside the
//! service, also if answers are lost, workers die, or the system is restarted.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod answers;
mod bad_input;
mod deaths;
mod flows;
mod life;
mod limits;
mod requests;
mod scene;
