//! Policies of a task in words.

use tickover_core::retry::{Delay, Jitter, MaxAttempts, RetryPolicy};
use tickover_wire::answer::{TaskView, TimeoutView};
use tickover_wire::request::{OnTimeout, Retry};

/// The retry policy in one line; absent if it allows no retry, or if this tool doesn't know its form.
pub(crate) fn retry(task: &TaskView) -> Option<String> {
    let given: Retry = task.retry.as_ref()?.read().ok()?;
    let policy = RetryPolicy::try_from(given).ok()?;
    let attempts = match policy.max_attempts {
        MaxAttempts::Skip => return None,
        MaxAttempts::Limited(limit) if limit.get() == 1 => return None,
        MaxAttempts::Limited(limit) => format!("{limit} attempts"),
        MaxAttempts::Unlimited => "any number of attempts".to_owned(),
    };
    let delay = match &policy.delay {
        Delay::Fixed(delay) => format!("delay {delay}"),
        Delay::Listed(delays) => {
            let delays: Vec<_> = delays.iter().map(ToString::to_string).collect();
            format!("delays {}", delays.join(", "))
        }
    };
    let grows = (policy.backoff - 1.0).abs() > f64::EPSILON;
    let codes = policy.non_retryable.join(", ");
    let parts = [
        Some(attempts),
        Some(delay),
        grows.then(|| format!("backoff {}", policy.backoff)),
        policy.max_delay.map(|delay| format!("at most {delay}")),
        (policy.jitter == Jitter::Full).then(|| "full jitter".to_owned()),
        (!codes.is_empty()).then(|| format!("not after {codes}")),
    ];
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join("; "))
}

/// The names of its timeouts with their lengths and effects.
pub(crate) fn timeouts(task: &TaskView) -> Vec<(&'static str, String)> {
    let Some(timeouts) = &task.timeouts else { return Vec::new() };
    let all = [
        ("ends within", &timeouts.schedule_to_close),
        ("starts within", &timeouts.schedule_to_start),
        ("closes within", &timeouts.start_to_close),
        ("heartbeat every", &timeouts.heartbeat),
    ];
    let shown = |(name, timeout): (_, &Option<TimeoutView>)| Some((name, length(timeout.as_ref()?)));
    all.into_iter().filter_map(shown).collect()
}

fn length(timeout: &TimeoutView) -> String {
    let TimeoutView { after, on_timeout, error_on_timeout } = timeout;
    let retried = if *on_timeout == OnTimeout::Retry { ", retried" } else { "" };
    let cancelled = if *error_on_timeout { "" } else { ", then cancelled" };
    format!("{after}{retried}{cancelled}")
}
