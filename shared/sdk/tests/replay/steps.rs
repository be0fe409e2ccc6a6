//! The steps and the child that bodies start: the steps take time, fail and are retried.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tickover::Millis;
use tickover::prelude::*;

use crate::tree::{Place, Spec};
use crate::witness::Witness;

/// The input of a step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    /// Its name in the journal.
    name: String,
    seconds: u64,
    fails: u32,
    bytes: usize,
}

#[tickover::step]
pub(crate) async fn work(job: Job) -> Result<String, Failure> {
    let Job { name, seconds, fails, bytes } = job;
    let (witness, info) = (Witness::current(), step_info().unwrap());
    witness.begins(&name, &info.idempotency_key);
    let clock = Arc::clone(witness.service.clock());
    clock.sleep_until(clock.now().plus(Millis::from_secs(seconds))).await;
    if info.attempt <= fails {
        return Err(Failure::new("flaky", witness.make(&name, bytes)));
    }
    witness.is_done(&name);
    Ok(witness.make(&name, bytes))
}

/// A step of this name, with the prefix of the journal's names.
pub(crate) fn job(prefix: &str, name: &str, spec: Spec) -> Step<String> {
    let Spec { seconds, fails, bytes, pause, timeout, place } = spec;
    let job = Job { name: format!("{prefix}{name}"), seconds, fails, bytes };
    let step = work(job).named(name).retry(format!("fixed(2, {pause}s)"));
    let step = match timeout {
        Some(timeout) => step.timeout(Millis::from_secs(timeout)),
        None => step,
    };
    match place {
        Place::Inline => step,
        Place::AtMostOnce => step.at_most_once(),
        Place::Watched => step.heartbeat("1h"),
        Place::Remote => step.remote(),
    }
}

/// A child that takes this many seconds.
#[tickover::workflow("little")]
pub(crate) async fn little(ctx: Ctx, seconds: u64) -> Result<u64> {
    ctx.sleep("s", Millis::from_secs(seconds)).await?;
    Ok(seconds)
}
