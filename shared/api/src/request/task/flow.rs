//! What a task or an execution asks of flow control: the rules across fields.

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
        cron: None,
    })
}

/// What limits the start of an execution.
pub(in crate::request) fn of_start(given: &wire::StartRequest) -> Result<FlowRequest, Reject> {
    if given.unique.is_some() && given.debounce.is_some() {
        return Err(wire::contradiction("debounce", "unique"));
    }
    Ok(FlowRequest {
        concurrency: concurrency(given.concurrency.as_deref().unwrap_or_default())?,
        rate: given.rate.as_ref().map(rate).transpose()?,
        unique: given.unique.as_ref().map(unique),
        debounce: given.debounce.as_ref().map(debounce).transpose()?,
        ..FlowRequest::default()
    })
}

/// Of two limits for one key, the later one counts.
fn concurrency(given: &[wire::Concurrency]) -> Result<Vec<Concurrency>, Reject> {
    limits::check("concurrency", given.len(), CONCURRENCY_KEYS_MAX)?;
    let mut asked: Vec<Concurrency> = Vec::new();
    for wire::Concurrency { key, limit: ConcurrencyLimit(limit) } in given {
        let limit = u16::try_from(*limit).ok().and_then(NonZeroU16::new);
        let limit = limit.ok_or(Reject::field("concurrency.limit", "must be 1 to 1,000"))?;
        asked.retain(|earlier| earlier.key != *key);
        asked.push(Concurrency { key: key.clone(), limit });
    }
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(fields: &Value) -> Result<FlowRequest, Reject> {
        let mut body = json!({"queue": "q", "kind": "k"});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let raw = serde_json::value::to_raw_value(&body).unwrap();
        flow(&tickover_wire::read::value("body", &raw)?)
    }

    fn refused(fields: &Value) -> String {
        read(fields).unwrap_err().to_string()
    }

    #[test]
    fn a_request_without_flow_control_asks_for_nothing() {
        assert_eq!(read(&json!({})).unwrap(), FlowRequest::default());
        assert_eq!(read(&json!({"priority": "normal"})).unwrap(), FlowRequest::default());
    }

    #[test]
    fn of_two_limits_for_one_key_the_later_one_counts() {
        let limits = json!({"concurrency": [{"key": "a", "limit": 1}, {"key": "b", "limit": 2}, {"key": "a", "limit": 3}]});
        let read = read(&limits).unwrap().concurrency;
        let read: Vec<_> = read.iter().map(|asked| (asked.key.as_str(), asked.limit.get())).collect();
        assert_eq!(read, [("b", 2), ("a", 3)]);
    }

    #[test]
    fn a_rate_is_a_second_long_and_has_no_burst_unless_it_says_so() {
        let rate = |fields| read(&json!({"rate": fields})).unwrap().rate.unwrap();
        let short = rate(json!({"key": "smtp", "limit": 100}));
        assert_eq!((short.per, short.burst.get()), (Millis::from_secs(1), 1));
        let long = rate(json!({"key": "smtp", "limit": 100, "per": "1m", "burst": 20}));
        assert_eq!((long.per, long.burst.get()), (Millis::from_secs(60), 20));
    }

    #[test]
    fn what_is_out_of_bounds_is_refused_by_its_field() {
        let key = |bytes: usize| json!({"fairness_key": "k".repeat(bytes)});
        assert!(read(&key(256)).is_ok());
        for (fields, field) in [
            (key(257), "fairness_key"),
            (json!({"concurrency": [{"key": "a", "limit": 0}]}), "limit"),
            (json!({"concurrency": [{"key": "a", "limit": -1}]}), "limit"),
            (json!({"concurrency": [{"key": "a", "limit": 1_001}]}), "limit"),
            (json!({"rate": {"key": "a", "limit": 5, "burst": 6}}), "rate.burst"),
            (json!({"debounce": {"key": "a", "wait": "10s"}}), "at_most"),
            (json!({"debounce": {"key": "a", "wait": "10s", "at_most": "9s"}}), "debounce.at_most"),
            (json!({"debounce": {"key": "a", "wait": "0s", "at_most": "9s"}}), "wait"),
            (json!({"unique": {"key": "a", "for": "31d"}}), "for"),
            (json!({"unique": {"key": "a", "for": "ever"}}), "for"),
            (json!({"requires": ["a gpu"]}), "requires"),
            (json!({"priority": "urgent"}), "priority"),
        ] {
            let refusal = refused(&fields);
            assert!(refusal.contains(field), "{fields}: {refusal}");
        }
        // The document counts entries, and so does the server.
        for distinct in [4, 1] {
            let entry = |number: u32| json!({"key": (number % distinct).to_string(), "limit": 1});
            let limits = json!({"concurrency": (0..4).map(entry).collect::<Vec<_>>()});
            assert!(matches!(read(&limits), Err(Reject::LimitExceeded { maximum: 3, .. })), "{distinct}");
        }
    }

    #[test]
    fn a_task_is_either_unique_or_debounced() {
        let both = json!({"unique": {"key": "a"}, "debounce": {"key": "a", "wait": "1s", "at_most": "2s"}});
        assert!(refused(&both).contains("unique"));
    }
}
