//! A task's timeouts under all their names: our own, the same with a unit in the name, and those of Steep.

use tickover_core::error::Reject;
use tickover_core::timeout::{self, AttemptTimeout, LifeTimeout, Timeouts};
use tickover_wire::request::{OnTimeout, ScheduleRequest, SteepTimeout, TimeoutScope, contradiction};
use tickover_wire::{Timeout, Word};

/// All timeouts of a task.
pub(super) fn timeouts(given: &ScheduleRequest) -> Result<Timeouts, Reject> {
    let native = native(given)?;
    let scope = scope(given);
    let only_one = |native: Option<&str>, steep: &str, given: &Option<SteepTimeout>| match native {
        Some(native) if given.is_some() => Err(contradiction(steep, native)),
        Some(_) | None => Ok(()),
    };
    let close_name = if scope == TimeoutScope::PerAttempt { "timeout" } else { "start_to_close_timeout" };
    only_one(native.schedule_to_close.map(|_| "timeout"), "deadline", &given.deadline)?;
    only_one(native.start_to_close.map(|_| close_name), "maxRuntime", &given.max_runtime)?;
    only_one(native.heartbeat.map(|_| "heartbeat_timeout"), "maxInactivity", &given.max_inactivity)?;
    Ok(Timeouts {
        schedule_to_close: native
            .schedule_to_close
            .or_else(|| given.deadline.as_ref().map(whole_task_timeout)),
        schedule_to_start: native.schedule_to_start,
        heartbeat: native.heartbeat.or_else(|| given.max_inactivity.as_ref().map(of_an_attempt)),
        start_to_close: native.start_to_close.or_else(|| given.max_runtime.as_ref().map(of_an_attempt)),
    })
}

fn scope(given: &ScheduleRequest) -> TimeoutScope {
    given.timeout_scope.map_or(TimeoutScope::Global, |Word(scope)| scope)
}

fn native(given: &ScheduleRequest) -> Result<Timeouts, Reject> {
    let given_on_timeout = given.on_timeout.map(|Word(on_timeout)| on_timeout);
    let is_error = given.error_on_timeout.unwrap_or(true);
    let on_timeout = match given_on_timeout {
        _ if !is_error => timeout::OnTimeout::Cancel,
        Some(OnTimeout::Retry) | None => timeout::OnTimeout::Retry,
        Some(OnTimeout::Terminal) => timeout::OnTimeout::Terminal,
    };
    let attempt =
        |given: Option<Timeout>| given.map(|after| AttemptTimeout { after: after.into(), on_timeout });
    let mut timeouts = Timeouts {
        schedule_to_close: None,
        schedule_to_start: attempt(given.schedule_to_start_timeout),
        heartbeat: attempt(given.heartbeat_timeout),
        start_to_close: attempt(given.start_to_close_timeout),
    };
    match (scope(given), given.timeout.map(Into::into)) {
        (TimeoutScope::Global, whole) => {
            timeouts.schedule_to_close = whole.map(|after| LifeTimeout { after, is_error });
        }
        (TimeoutScope::PerAttempt, None) => {
            let expected = "expected a timeout beside it: \"per_attempt\" applies to timeout";
            return Err(Reject::field("timeout_scope", expected));
        }
        (TimeoutScope::PerAttempt, Some(_)) if timeouts.start_to_close.is_some() => {
            return Err(contradiction("timeout", "start_to_close_timeout"));
        }
        (TimeoutScope::PerAttempt, Some(_)) if given_on_timeout == Some(OnTimeout::Retry) => {
            let expected = "a timeout with timeout_scope \"per_attempt\" is final; \
                            for one that is retried give start_to_close_timeout instead";
            return Err(Reject::field("on_timeout", expected));
        }
        (TimeoutScope::PerAttempt, Some(after)) => {
            let on_timeout = if is_error { timeout::OnTimeout::Terminal } else { timeout::OnTimeout::Cancel };
            timeouts.start_to_close = Some(AttemptTimeout { after, on_timeout });
        }
    }
    Ok(timeouts)
}

/// The timeout of a whole task, from Steep's `deadline`.
fn whole_task_timeout(given: &SteepTimeout) -> LifeTimeout {
    let (after, is_error) = given.parts();
    LifeTimeout { after: after.into(), is_error }
}

/// The timeout of an attempt, from Steep's other two. A timeout is retried only if it counts as an error.
fn of_an_attempt(given: &SteepTimeout) -> AttemptTimeout {
    let (after, is_error) = given.parts();
    let on_timeout = if is_error { timeout::OnTimeout::Retry } else { timeout::OnTimeout::Cancel };
    AttemptTimeout { after: after.into(), on_timeout }
}

#[cfg(test)]
mod tests;
