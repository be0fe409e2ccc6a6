//! What a task asks of flow control: the rules across fields.

use std::num::{NonZeroU16, NonZeroU32};

use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::flow::{
    CONCURRENCY_KEYS_MAX, Concurrency, Debounce, FlowRequest, REQUIRES_MAX, Rate, Unique,
};
use tickover_core::limits;
use tickover_wire::request as wire;
use tickover_wire::{ConcurrencyLimit, RateLimit};

/// How long a rate's period is if the request gives none.
const PERIOD: Millis = Millis::from_secs(1);

pub(super) fn flow(given: &wire::ScheduleRequest) -> Result<FlowRequest, Reject> {
    let requires = given.requires.clone().unwrap_or_default();
    limits::check("requires", requires.len(), REQUIRES_MAX)?;
    if given.unique.is_some() && given.debounce.is_some() {
        return Err(wire::contradiction("debounce", "unique"));
    }
    Ok(FlowRequest {
        concurrency: concurrency(given.concurrency.as_deref().unwrap_or_default())?,
        rate: given.rate.as_ref().map(rate).transpose()?,
        priority: given.priority.map(|word| word.0).unwrap_or_default(),
        fairness: given.fairness_key.clone(),
        unique: given.unique.as_ref().map(unique),
        debounce: given.debounce.as_ref().map(debounce).transpose()?,
        requires,
    })
}

/// Of two limits for one key, the later one counts.
fn concurrency(given: &[wire::Concurrency]) -> Result<Vec<Concurrency>, Reject> {
    let mut asked: Vec<Concurrency> = Vec::new();
    for wire::Concurrency { key, limit: ConcurrencyLimit(limit) } in given {
        let limit = u16::try_from(*limit).ok().and_then(NonZeroU16::new);
        let limit = limit.ok_or(Reject::field("concurrency.limit", "must be 1 to 1,000"))?;
        asked.retain(|earlier| earlier.key != *key);
        asked.push(Concurrency { key: key.clone(), limit });
    }
    limits::check("concurrency", asked.len(), CONCURRENCY_KEYS_MAX)?;
    Ok(asked)
}

fn rate(given: &wire::Rate) -> Result<Rate, Reject> {
    let count = |field, RateLimit(count): RateLimit| {
        let count = u32::try_from(count).ok().and_then(NonZeroU32::new);
        count.ok_or(Reject::field(field, "must be 1 to 1,000,000"))
    };
    let limit = count("rate.limit", given.limit)?;
    let burst = given.burst.map_or(Ok(NonZeroU32::MIN), |burst| count("rate.burst", burst))?;
    if burst > limit {
        return Err(Reject::instead_of("rate.burst", "expected at most `rate.limit`", burst.to_string()));
    }
    let per = given.per.map_or(PERIOD, Millis::from);
    Ok(Rate { key: given.key.clone(), limit, per, burst })
}

fn unique(given: &wire::Unique) -> Unique {
    Unique {
        key: given.key.clone(),
        window: given.window.map(|window| window.0).unwrap_or_default(),
        on_conflict: given.on_conflict.map(|word| word.0).unwrap_or_default(),
    }
}

fn debounce(given: &wire::Debounce) -> Result<Debounce, Reject> {
    let (wait, at_most) = (Millis::from(given.wait), Millis::from(given.at_most));
    if at_most < wait {
        return Err(Reject::instead_of(
            "debounce.at_most",
            "expected at least `debounce.wait`",
            at_most.to_string(),
        ));
    }
    Ok(Debounce { key: given.key.clone(), wait, at_most })
}
