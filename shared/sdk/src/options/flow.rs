//! Builds what a step or a task asks of flow control. Each function checks its values, and says which one is wrong.

use std::fmt::Display;
use std::num::{NonZeroU16, NonZeroU32};

use tickover_core::duration::{Millis, ZeroRule};
use tickover_core::flow::{
    CONCURRENCY_KEYS_MAX, CONCURRENCY_MAX, Concurrency, Debounce, FlowRequest, OnConflict, RATE_MAX,
    RATE_PERIOD_MAX, REQUIRES_MAX, Rate, SHARDS_MAX, Shards, Unique, UniqueWindow, WINDOW_MAX,
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
    flow.concurrency.push(Concurrency { key: given, limit, shards: Shards::ONE });
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
    flow.rate = Some(Rate { key, limit, per, burst, shards: Shards::ONE });
    Ok(())
}

/// For the rate that was given before.
pub(crate) fn burst(flow: &mut FlowRequest, burst: u32) -> Checked<()> {
    let Some(rate) = &mut flow.rate else { return Err("burst: it needs a rate before it".to_owned()) };
    let burst = count("burst: it", burst, rate.limit.get())?;
    check_share("burst: it", burst.get(), rate.shards)?;
    rate.burst = burst;
    Ok(())
}

/// For the limit and the rate that were given before for this key.
pub(crate) fn shards(flow: &mut FlowRequest, given: impl Display, count: u8) -> Checked<()> {
    let given = key("shards", given)?;
    let shards = Shards::new(count)
        .ok_or_else(|| format!("shards: there are 1 to {SHARDS_MAX} of them, not {count}"))?;
    let limited = flow.concurrency.iter_mut().find(|asked| asked.key == given);
    let paced = flow.rate.as_mut().filter(|rate| rate.key == given);
    if limited.is_none() && paced.is_none() {
        return Err(format!("shards: it needs a limit or a rate of the key {:?} before it", given.as_str()));
    }
    if let Some(asked) = limited {
        check_share("concurrency: its limit", asked.limit.get().into(), shards)?;
        asked.shards = shards;
    }
    if let Some(rate) = paced {
        check_share("rate: its limit", rate.limit.get(), shards)?;
        // One for each shard, if no burst was given.
        rate.burst = if rate.burst == NonZeroU32::MIN { shards.into() } else { rate.burst };
        check_share("burst: it", rate.burst.get(), shards)?;
        rate.shards = shards;
    }
    Ok(())
}

fn check_share(what: &str, whole: u32, shards: Shards) -> Checked<()> {
    if shards.divides(whole) {
        return Ok(());
    }
    Err(format!("{what} must be a multiple of the {shards} shards, not {whole}"))
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
    fn the_limit_and_the_rate_of_a_key_are_divided_among_its_shards() {
        let mut flow = FlowRequest::default();
        concurrency(&mut flow, "smtp", 50).unwrap();
        concurrency(&mut flow, "customer-7", 5).unwrap();
        rate(&mut flow, "smtp", 1_000, "1s").unwrap();
        assert_eq!(shards(&mut flow, "smtp", 10), Ok(()));
        let counts: Vec<_> = flow.concurrency.iter().map(|asked| asked.shards.get()).collect();
        assert_eq!(counts, [10, 1]);
        assert_eq!(flow.rate.as_ref().map(|rate| (rate.shards.get(), rate.burst.get())), Some((10, 10)));
        assert_eq!(burst(&mut flow, 20), Ok(()));
        let refused = burst(&mut flow, 25).unwrap_err();
        assert_eq!(refused, "burst: it must be a multiple of the 10 shards, not 25");
        for (key, count, problem) in [
            ("customer-7", 2, "concurrency: its limit must be a multiple of the 2 shards, not 5"),
            ("smtp", 21, "shards: there are 1 to 20 of them, not 21"),
            ("smtp", 0, "shards: there are 1 to 20 of them, not 0"),
            ("other", 2, "shards: it needs a limit or a rate of the key \"other\" before it"),
        ] {
            assert_eq!(shards(&mut flow, key, count).unwrap_err(), problem);
        }
    }

    #[test]
    fn a_bound_below_its_wait_is_refused() {
        let refused = debounce(&mut FlowRequest::default(), "a", "10s", "9s").unwrap_err();
        assert_eq!(refused, "debounce: its bound must be at least the wait of 10s, not 9s");
    }
}
