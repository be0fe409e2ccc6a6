//! Builds what a step or a task asks of flow control. Each function checks its values, and says which one is wrong.

use std::fmt::Display;
use std::num::{NonZeroU16, NonZeroU32};

use tickover_core::duration::{Millis, ZeroRule};
use tickover_core::flow::{
    CONCURRENCY_KEYS_MAX, CONCURRENCY_MAX, Concurrency, Debounce, FlowRequest, OnConflict, RATE_MAX,
    RATE_PERIOD_MAX, REQUIRES_MAX, Rate, Unique, UniqueWindow, WINDOW_MAX,
};
use tickover_core::id::{Capability, FlowKey};

use crate::options::IntoMillis;

type Checked<T> = Result<T, String>;

fn key(option: &str, key: impl Display) -> Checked<FlowKey> {
    FlowKey::parse(key.to_string()).map_err(|error| format!("{option}: its key {error}"))
}

fn span(option: &str, span: impl IntoMillis, longest: Millis) -> Checked<Millis> {
    match span.into_millis(ZeroRule::Reject) {
        Ok(span) if span > longest => Err(format!("{option}: it can be at most {longest}, not {span}")),
        Ok(span) => Ok(span),
        Err(error) => Err(format!("{option}: {error}")),
    }
}

/// Of two limits for one key, the later one counts.
pub(crate) fn concurrency(flow: &mut FlowRequest, given: impl Display, limit: u16) -> Checked<()> {
    let given = key("concurrency", given)?;
    let Some(limit) = NonZeroU16::new(limit).filter(|limit| limit.get() <= CONCURRENCY_MAX) else {
        return Err(format!("concurrency: its limit must be 1 to {CONCURRENCY_MAX}, not {limit}"));
    };
    flow.concurrency.retain(|earlier| earlier.key != given);
    if flow.concurrency.len() == CONCURRENCY_KEYS_MAX {
        return Err(format!("concurrency: there can be at most {CONCURRENCY_KEYS_MAX} keys"));
    }
    flow.concurrency.push(Concurrency { key: given, limit });
    Ok(())
}

pub(crate) fn rate(
    flow: &mut FlowRequest,
    given: impl Display,
    limit: u32,
    per: impl IntoMillis,
) -> Checked<()> {
    let limit = count("rate: its limit", limit, RATE_MAX)?;
    let per = span("rate", per, RATE_PERIOD_MAX)?;
    let (key, burst) = (key("rate", given)?, NonZeroU32::MIN);
    flow.rate = Some(Rate { key, limit, per, burst });
    Ok(())
}

/// For the rate that was given before.
pub(crate) fn burst(flow: &mut FlowRequest, burst: u32) -> Checked<()> {
    let Some(rate) = &mut flow.rate else { return Err("burst: it needs a rate before it".to_owned()) };
    rate.burst = count("burst: it", burst, rate.limit.get())?;
    Ok(())
}

fn count(what: &str, count: u32, most: u32) -> Checked<NonZeroU32> {
    let checked = NonZeroU32::new(count).filter(|count| count.get() <= most);
    checked.ok_or_else(|| format!("{what} must be 1 to {most}, not {count}"))
}

pub(crate) fn fairness(flow: &mut FlowRequest, given: impl Display) -> Checked<()> {
    flow.fairness = Some(key("fairness_key", given)?);
    Ok(())
}

pub(crate) fn requires<N: Into<String>>(
    flow: &mut FlowRequest,
    names: impl IntoIterator<Item = N>,
) -> Checked<()> {
    for name in names {
        let name = Capability::parse(name).map_err(|error| format!("requires: a name {error}"))?;
        if !flow.requires.contains(&name) {
            flow.requires.push(name);
        }
    }
    if flow.requires.len() > REQUIRES_MAX {
        return Err(format!("requires: there can be at most {REQUIRES_MAX} names"));
    }
    Ok(())
}

pub(crate) fn unique(
    flow: &mut FlowRequest,
    given: impl Display,
    window: UniqueWindow,
    on_conflict: OnConflict,
) -> Checked<()> {
    if let UniqueWindow::For(span) = window
        && (span.is_zero() || span > WINDOW_MAX)
    {
        return Err(format!("unique: its time must be above zero and at most {WINDOW_MAX}, not {span}"));
    }
    flow.unique = Some(Unique { key: key("unique", given)?, window, on_conflict });
    Ok(())
}

pub(crate) fn debounce(
    flow: &mut FlowRequest,
    given: impl Display,
    wait: impl IntoMillis,
    at_most: impl IntoMillis,
) -> Checked<()> {
    let (wait, at_most) = (span("debounce", wait, WINDOW_MAX)?, span("debounce", at_most, WINDOW_MAX)?);
    if at_most < wait {
        return Err(format!("debounce: its bound must be at least the wait of {wait}, not {at_most}"));
    }
    flow.debounce = Some(Debounce { key: key("debounce", given)?, wait, at_most });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_limits_for_a_key_the_later_one_counts_and_a_fourth_key_is_refused() {
        let mut flow = FlowRequest::default();
        for (given, limit) in [("a", 1), ("b", 2), ("a", 3), ("c", 1_000)] {
            concurrency(&mut flow, given, limit).unwrap();
        }
        let limits: Vec<_> =
            flow.concurrency.iter().map(|asked| (asked.key.as_str(), asked.limit.get())).collect();
        assert_eq!(limits, [("b", 2), ("a", 3), ("c", 1_000)]);
        assert_eq!(concurrency(&mut flow, "d", 1).unwrap_err(), "concurrency: there can be at most 3 keys");
    }

    #[test]
    fn limits_of_zero_and_above_the_maximum_are_refused() {
        let refused = |limit| concurrency(&mut FlowRequest::default(), "a", limit).unwrap_err();
        assert_eq!(refused(0), "concurrency: its limit must be 1 to 1000, not 0");
        assert_eq!(refused(1_001), "concurrency: its limit must be 1 to 1000, not 1001");
        let refused = |limit, per| rate(&mut FlowRequest::default(), "a", limit, per).unwrap_err();
        assert_eq!(refused(0, "1m"), "rate: its limit must be 1 to 1000000, not 0");
        assert_eq!(refused(1, "25h"), "rate: it can be at most 1d, not 1d 1h");
    }

    #[test]
    fn a_key_has_1_to_256_bytes() {
        let given = |bytes: usize| fairness(&mut FlowRequest::default(), "k".repeat(bytes));
        assert_eq!(given(256), Ok(()));
        assert!(given(257).unwrap_err().starts_with("fairness_key: its key must be at most 256"));
        assert_eq!(given(0).unwrap_err(), "fairness_key: its key must not be empty");
    }

    #[test]
    fn a_burst_is_at_most_the_limit_of_its_rate() {
        let mut flow = FlowRequest::default();
        assert_eq!(burst(&mut flow, 1).unwrap_err(), "burst: it needs a rate before it");
        rate(&mut flow, "smtp", 100, "1m").unwrap();
        assert_eq!(burst(&mut flow, 100), Ok(()));
        assert_eq!(burst(&mut flow, 101).unwrap_err(), "burst: it must be 1 to 100, not 101");
    }

    #[test]
    fn a_bound_below_its_wait_is_refused() {
        let refused = debounce(&mut FlowRequest::default(), "a", "10s", "9s").unwrap_err();
        assert_eq!(refused, "debounce: its bound must be at least the wait of 10s, not 9s");
    }
}
