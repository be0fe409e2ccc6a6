//! Cold starts: from the start of the process until it asks for the first event. The process uses no network in
//! between.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tickover_tests::runtime_api::Function;
use tokio::process::Command;

use super::{Built, FUNCTIONS, rounded};

/// Starts of each function. The functions alternate, so that other load on the machine affects all of them.
const ROUNDS: usize = 25;

/// The times of a function's starts.
pub(crate) struct Starts {
    pub(crate) name: &'static str,
    /// Ascending.
    times: Vec<Duration>,
    /// Its shortest start, as a multiple of the empty function's shortest: other load on the machine is in neither.
    pub(crate) ratio: f64,
}

impl Starts {
    pub(crate) fn line(&self) -> Value {
        let ms = |time: Duration| rounded(time.as_secs_f64() * 1_000.0);
        json!({
            "name": "cold-start",
            "function": self.name,
            "least_ms": ms(self.times[0]),
            "median_ms": ms(self.times[self.times.len() / 2]),
            "ratio": rounded(self.ratio),
        })
    }
}

/// All functions, the empty one first.
pub(crate) async fn all(built: &Built) -> Result<Vec<Starts>> {
    let mut files = vec![("empty", built.function("empty"))];
    files.extend(FUNCTIONS.map(|name| (name, built.function(name))));
    let mut times = vec![Vec::with_capacity(ROUNDS); files.len()];
    for _ in 0..ROUNDS {
        for (times, (name, file)) in times.iter_mut().zip(&files) {
            times.push(once(name, file).await?);
        }
    }
    let mut empty = None;
    let starts = files.into_iter().zip(times).map(|((name, _), mut times)| {
        times.sort_unstable();
        let empty = *empty.get_or_insert(times[0]);
        Starts { name, ratio: times[0].as_secs_f64() / empty.as_secs_f64(), times }
    });
    Ok(starts.collect())
}

async fn once(name: &str, file: &Path) -> Result<Duration> {
    let queue = |name: &str| format!("http://127.0.0.1:1/000000000000/{name}");
    let (queues, timers) = (format!("emails={}", queue("emails")), queue("timers"));
    let environment = [
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:1"),
        ("TICKOVER_TABLE", "tickover"),
        ("TICKOVER_QUEUES", queues.as_str()),
        ("TICKOVER_TIMERS", timers.as_str()),
    ];
    let begun = Instant::now();
    let function = Function::from_command(Command::new(file), name, &environment).await?;
    let error = function.init_error().await;
    let took = begun.elapsed();
    ensure!(error.is_none(), "{name} doesn't start: {error:?}");
    Ok(took)
}
