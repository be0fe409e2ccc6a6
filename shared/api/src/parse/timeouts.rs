//! A task's timeouts and their names: ours, the same with a unit in the name, and Steep's.

use tickover_core::duration::{Millis, ZeroRule};
use tickover_core::error::Reject;
use tickover_core::policy::TimeoutPolicy;
use tickover_core::timeout::{AttemptTimeout, LifeTimeout, OnTimeout, Timeouts};

use super::{Field, Object};

/// What an attempt's timeouts may do.
pub(crate) const ON_TIMEOUTS: [(&str, OnTimeout); 2] =
    [("retry", OnTimeout::Retry), ("terminal", OnTimeout::Terminal)];
/// What `timeout` may be about.
pub(crate) const TIMEOUT_SCOPES: [(&str, Scope); 2] =
    [("global", Scope::Global), ("per_attempt", Scope::PerAttempt)];

/// What `timeout` is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The whole life, from scheduling.
    Global,
    /// Each attempt, from its claim; final.
    PerAttempt,
}

/// A duration with the field it was given in.
pub(super) struct Span<'a> {
    pub(super) field: Field<'a>,
    pub(super) length: Millis,
}

/// Reads all timeouts of a task.
pub(super) fn timeouts(object: &Object<'_>) -> Result<Timeouts, Reject> {
    let native = native(object)?;
    let steep = steep(object)?;
    let only_one = |native: Option<&str>, steep: &str| match native.filter(|_| object.get(steep).is_some()) {
        Some(native) => Err(contradiction(steep, native)),
        None => Ok(()),
    };
    let close_name = if native.scope == Scope::PerAttempt { "timeout" } else { "start_to_close_timeout" };
    only_one(native.timeouts.schedule_to_close.map(|_| "timeout"), "deadline")?;
    only_one(native.timeouts.start_to_close.map(|_| close_name), "maxRuntime")?;
    only_one(native.timeouts.heartbeat.map(|_| "heartbeat_timeout"), "maxInactivity")?;
    Ok(Timeouts {
        schedule_to_close: native.timeouts.schedule_to_close.or(steep.schedule_to_close),
        schedule_to_start: native.timeouts.schedule_to_start,
        heartbeat: native.timeouts.heartbeat.or(steep.heartbeat),
        start_to_close: native.timeouts.start_to_close.or(steep.start_to_close),
    })
}

struct Native {
    timeouts: Timeouts,
    scope: Scope,
}

fn native(object: &Object<'_>) -> Result<Native, Reject> {
    let scope = scope(object)?;
    let asked = object.get("on_timeout");
    let asked_for = asked.as_ref().map(|field| field.word(&ON_TIMEOUTS)).transpose()?;
    let is_error = object.get("error_on_timeout").map_or(Ok(true), |field| field.boolean())?;
    let behave = |on_timeout| if is_error { on_timeout } else { OnTimeout::Cancel };
    let per_attempt = behave(asked_for.unwrap_or_default());
    let attempt = |name| {
        let span = span(object, name, ZeroRule::Reject)?;
        Ok(span.map(|span| AttemptTimeout { after: span.length, on_timeout: per_attempt }))
    };
    let mut timeouts = Timeouts {
        schedule_to_close: None,
        schedule_to_start: attempt("schedule_to_start_timeout")?,
        heartbeat: attempt("heartbeat_timeout")?,
        start_to_close: attempt("start_to_close_timeout")?,
    };
    let whole = span(object, "timeout", ZeroRule::Reject)?;
    match (scope, whole) {
        (Scope::Global, whole) => {
            timeouts.schedule_to_close = whole.map(|span| LifeTimeout { after: span.length, is_error });
        }
        (Scope::PerAttempt, None) => {
            return Err(Reject::field(
                "timeout_scope",
                "expected a timeout beside it: \"per_attempt\" says what timeout means",
            ));
        }
        (Scope::PerAttempt, Some(span)) => {
            if timeouts.start_to_close.is_some() {
                return Err(contradiction(span.field.path(), "start_to_close_timeout"));
            }
            if let Some(asked) = asked.filter(|_| asked_for == Some(OnTimeout::Retry)) {
                let problem = "a timeout with timeout_scope \"per_attempt\" is final; \
                               for one that is retried give start_to_close_timeout instead";
                return Err(asked.refuse(problem));
            }
            let on_timeout = behave(OnTimeout::Terminal);
            timeouts.start_to_close = Some(AttemptTimeout { after: span.length, on_timeout });
        }
    }
    Ok(Native { timeouts, scope })
}

fn scope(object: &Object<'_>) -> Result<Scope, Reject> {
    object.get("timeout_scope").map_or(Ok(Scope::Global), |field| field.word(&TIMEOUT_SCOPES))
}

/// Steep's policies: `deadline` over all, the other two per attempt and retried only if they are errors.
fn steep(object: &Object<'_>) -> Result<Timeouts, Reject> {
    let policy = |name| {
        let Some(field) = object.get(name) else { return Ok(None) };
        let policy = field.policy(TimeoutPolicy::from_json)?;
        field.within_a_year(policy.timeout)?;
        Ok(Some(policy))
    };
    let per_attempt = |policy: TimeoutPolicy| AttemptTimeout {
        after: policy.timeout,
        on_timeout: if policy.error_on_timeout { OnTimeout::Retry } else { OnTimeout::Cancel },
    };
    let whole =
        |policy: TimeoutPolicy| LifeTimeout { after: policy.timeout, is_error: policy.error_on_timeout };
    Ok(Timeouts {
        schedule_to_close: policy("deadline")?.map(whole),
        schedule_to_start: None,
        heartbeat: policy("maxInactivity")?.map(per_attempt),
        start_to_close: policy("maxRuntime")?.map(per_attempt),
    })
}

/// A duration under its plain name, or under one that says its unit.
pub(super) fn duration(object: &Object<'_>, name: &str, zero: ZeroRule) -> Result<Option<Millis>, Reject> {
    Ok(span(object, name, zero)?.map(|span| span.length))
}

/// The same, with the field it was given in.
pub(super) fn span<'a>(object: &Object<'a>, name: &str, zero: ZeroRule) -> Result<Option<Span<'a>>, Reject> {
    let mut found: Option<Span<'a>> = None;
    for (suffix, unit_ms) in [("", None), ("_seconds", Some(1_000)), ("_ms", Some(1))] {
        let Some(field) = object.get(&format!("{name}{suffix}")) else { continue };
        if let Some(earlier) = found {
            return Err(contradiction(field.path(), earlier.field.path()));
        }
        let length = match unit_ms {
            None => field.span(zero)?,
            Some(unit_ms) => field.span_in(unit_ms, zero)?,
        };
        found = Some(Span { field, length });
    }
    Ok(found)
}

/// The refusal of a field beside another that says the same thing.
pub(super) fn contradiction(field: &str, other: &str) -> Reject {
    Reject::field(field, format!("expected only one of {other} and {field}, found both"))
}

#[cfg(test)]
mod tests;
