//! A task's life as callers of the HTTP interface see it: each test shows a promise, most of them one feature row of
//! `features.toml`.

mod clock;
mod deadlines;
mod identity;
mod leases;
mod limits;
mod retries;
mod standalone;
mod steep;
mod timeouts;

use serde_json::Value;

/// How the attempts ended, in order; `running` for the present one.
fn outcomes(task: &Value) -> Vec<&str> {
    let attempts = task["attempts"].as_array().map(Vec::as_slice).unwrap_or_default();
    attempts.iter().map(|attempt| attempt["outcome"].as_str().unwrap_or("running")).collect()
}
