//! Options that limit and order the starts of tasks and executions.

use anyhow::Context as _;
use tickover_core::duration::Millis;
use tickover_core::id::FlowKey;
use tickover_wire::PriorityWord;
use tickover_wire::request::{Concurrency, Debounce, Rate, Unique};

use crate::argument::{self, Usage};

/// What a task or an execution asks of flow control.
#[derive(clap::Args, Debug, Clone, Default)]
pub(crate) struct FlowArgs {
    /// At most LIMIT tasks and executions of KEY run at once; up to three times
    #[arg(long, value_name = "KEY=LIMIT", value_parser = limit_of_key)]
    concurrency: Vec<Concurrency>,
    /// At most LIMIT tasks and executions of KEY start in each PERIOD, such as `smtp=100/1m`
    #[arg(long, value_name = "KEY=LIMIT/PERIOD", value_parser = rate_of_key)]
    rate: Option<Rate>,
    /// How many of the rate may start at once after a quiet time
    #[arg(long, value_name = "COUNT", requires = "rate")]
    burst: Option<u32>,
    /// Which of the queue start first; remote steps and children have the priority of their execution
    #[arg(long, value_name = "PRIORITY", value_parser = ["high", "normal", "low"])]
    priority: Option<String>,
    /// Those of one such key don't delay those of others
    #[arg(long, value_name = "KEY")]
    fairness_key: Option<String>,
    /// Start no second one beside another one with this key
    #[arg(long, value_name = "KEY", conflicts_with = "debounce")]
    unique: Option<String>,
    /// For how long the key is unique: `open` (until the other one has ended), `waiting` (until a worker has it), or a
    /// duration
    #[arg(long, value_name = "WINDOW", requires = "unique")]
    unique_for: Option<String>,
    /// What happens if another one has the key
    #[arg(long, value_name = "WHAT", requires = "unique", value_parser = ["existing", "replace", "refuse"])]
    on_conflict: Option<String>,
    /// Of a burst with this key, run the last one
    #[arg(long, value_name = "KEY", requires_all = ["debounce_wait", "debounce_at_most"])]
    debounce: Option<String>,
    /// How long it must have been quiet
    #[arg(long, value_name = "DURATION", requires = "debounce")]
    debounce_wait: Option<String>,
    /// How long after the first one it runs at the latest
    #[arg(long, value_name = "DURATION", requires = "debounce")]
    debounce_at_most: Option<String>,
}

impl FlowArgs {
    pub(crate) fn concurrency(&self) -> Option<Vec<Concurrency>> {
        (!self.concurrency.is_empty()).then(|| self.concurrency.clone())
    }

    pub(crate) fn rate(&self) -> anyhow::Result<Option<Rate>> {
        let Some(rate) = &self.rate else { return Ok(None) };
        Ok(Some(Rate { burst: argument::number("rate.burst", self.burst)?, ..rate.clone() }))
    }

    pub(crate) fn priority(&self) -> anyhow::Result<Option<PriorityWord>> {
        argument::field("priority", self.priority.as_deref())
    }

    pub(crate) fn fairness_key(&self) -> anyhow::Result<Option<FlowKey>> {
        argument::field("fairness_key", self.fairness_key.as_deref())
    }

    pub(crate) fn unique(&self) -> anyhow::Result<Option<Unique>> {
        let Some(key) = argument::field("unique.key", self.unique.as_deref())? else { return Ok(None) };
        let window = argument::field("unique.for", self.unique_for.as_deref())?;
        let on_conflict = argument::field("unique.on_conflict", self.on_conflict.as_deref())?;
        Ok(Some(Unique { key, window, on_conflict }))
    }

    pub(crate) fn debounce(&self) -> anyhow::Result<Option<Debounce>> {
        let Some(key) = argument::field("debounce.key", self.debounce.as_deref())? else { return Ok(None) };
        let wait = argument::field("debounce.wait", self.debounce_wait.as_deref())?;
        let at_most = argument::field("debounce.at_most", self.debounce_at_most.as_deref())?;
        let (wait, at_most) =
            wait.zip(at_most).context("--debounce needs --debounce-wait and --debounce-at-most")?;
        let (quiet, latest) = (Millis::from(wait), Millis::from(at_most));
        if latest < quiet {
            let message = format!("--debounce-at-most {latest} is less than --debounce-wait {quiet}");
            return Err(Usage(message).into());
        }
        Ok(Some(Debounce { key, wait, at_most }))
    }
}

/// `KEY=LIMIT`. The key may contain `=`.
fn limit_of_key(text: &str) -> Result<Concurrency, String> {
    let (key, limit) = text.rsplit_once('=').ok_or("expected KEY=LIMIT")?;
    let key = FlowKey::parse(key).map_err(|error| format!("the key {error}"))?;
    Ok(Concurrency { key, limit: count("concurrency.limit", limit)? })
}

/// `KEY=LIMIT/PERIOD`, or `KEY=LIMIT` for one second.
fn rate_of_key(text: &str) -> Result<Rate, String> {
    let (key, rate) = text.rsplit_once('=').ok_or("expected KEY=LIMIT/PERIOD")?;
    let key = FlowKey::parse(key).map_err(|error| format!("the key {error}"))?;
    let (limit, per) = rate.split_once('/').map_or((rate, None), |(limit, per)| (limit, Some(per)));
    let per = argument::field("rate.per", per).map_err(|error| error.to_string())?;
    Ok(Rate { key, limit: count("rate.limit", limit)?, per, burst: None })
}

fn count<T: serde::de::DeserializeOwned>(field: &str, text: &str) -> Result<T, String> {
    let number: u32 = text.parse().map_err(|_| format!("{text:?} isn't a whole number"))?;
    let read = argument::number(field, Some(number)).map_err(|error| error.to_string())?;
    read.ok_or_else(|| format!("{field} is missing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_keys_are_read_as_the_server_reads_them() {
        let written = |text| limit_of_key(text).map(|read| serde_json::to_string(&read).unwrap());
        assert_eq!(written("customer=7=5").unwrap(), r#"{"key":"customer=7","limit":5}"#);
        for (text, problem) in
            [("customer-7", "expected KEY=LIMIT"), ("c=0", "from 1 to 1000"), ("=5", "empty")]
        {
            let refused = written(text).unwrap_err();
            assert!(refused.contains(problem), "{text}: {refused}");
        }
        let rate = |text| rate_of_key(text).map(|read| serde_json::to_string(&read).unwrap());
        assert_eq!(rate("smtp=100/1m").unwrap(), r#"{"key":"smtp","limit":100,"per":"1m"}"#);
        assert_eq!(rate("smtp=100").unwrap(), r#"{"key":"smtp","limit":100}"#);
        assert!(rate("smtp=100/25h").unwrap_err().contains("rate.per"));
    }
}
