//! The plan of a cron: its instants, and the rules for occurrences that overlap or are too late.
//!
//! All of it is arithmetic on instants that are arguments.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use super::expression::CronExpression;
use crate::duration::Millis;
use crate::id::Incarnation;
use crate::limits::SPAN_MAX;
use crate::policy::PolicyError;
use crate::retry::spread;
use crate::time::Timestamp;

const SECOND: Millis = Millis::from_secs(1);
/// Jitter ends before the next occurrence, so that occurrences keep their order.
const APART: Millis = Millis::new(1);

/// When a cron starts runs, and by which rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Its instants.
    #[serde(rename = "w")]
    pub when: When,
    /// The rule for an occurrence while an earlier run is still open.
    #[serde(rename = "o", default, skip_serializing_if = "is_default")]
    pub overlap: Overlap,
    /// The rule for occurrences that were missed.
    #[serde(rename = "m", default, skip_serializing_if = "is_default")]
    pub missed: Missed,
    /// The longest time by which jitter delays an occurrence, spread evenly; zero for none.
    #[serde(rename = "j", default, skip_serializing_if = "is_default")]
    pub jitter: Millis,
    /// How many planned occurrences are started in all.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub max_runs: Option<NonZeroU32>,
}

/// The instants at which a cron starts runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum When {
    /// The instants that a cron expression matches.
    #[serde(rename = "c")]
    Cron(Box<CronExpression>),
    /// Each this long after the previous one, counted from when the cron was created.
    #[serde(rename = "e")]
    Every(Interval),
}

/// A number of whole seconds, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Millis", into = "Millis")]
pub struct Interval(Millis);

/// The rule for an occurrence while an earlier run is still open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Overlap {
    /// It is skipped.
    #[default]
    #[serde(rename = "s")]
    Skip,
    /// It waits for the end of the open run, unless another occurrence already waits.
    #[serde(rename = "b")]
    BufferOne,
    /// It waits for the end of the open run and of those that wait before it.
    #[serde(rename = "q")]
    BufferAll,
    /// It starts in parallel.
    #[serde(rename = "a")]
    AllowAll,
    /// The open run is asked to cancel. The occurrence starts once that run has ended.
    #[serde(rename = "c")]
    CancelOther,
    /// The open run is terminated, and the occurrence starts.
    #[serde(rename = "t")]
    TerminateOther,
}

impl Overlap {
    /// Whether an occurrence may wait for the end of an earlier run.
    pub const fn waits(self) -> bool {
        match self {
            Self::BufferOne | Self::BufferAll | Self::CancelOther => true,
            Self::Skip | Self::AllowAll | Self::TerminateOther => false,
        }
    }
}

/// The rule for occurrences that were missed because the system wasn't running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Missed {
    /// They are skipped.
    #[default]
    #[serde(rename = "s")]
    Skip,
    /// The last of them is started late, instead of all of them.
    #[serde(rename = "o")]
    RunOnce,
}

/// The next occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Next {
    /// Its instant in whole seconds. The occurrence's name is derived from it.
    #[serde(rename = "a")]
    pub at: Timestamp,
    /// When it starts: its instant plus its jitter.
    #[serde(rename = "f")]
    pub starts_at: Timestamp,
}

impl Interval {
    /// Checks that the length is whole seconds, at least one, at most a year.
    pub fn new(span: Millis) -> Result<Self, PolicyError> {
        let whole = span.as_u64().is_multiple_of(SECOND.as_u64());
        if span < SECOND || span > SPAN_MAX || !whole {
            let expected = "a number of whole seconds, from 1s to 365d";
            return Err(PolicyError::new("every", expected, &span.to_string()));
        }
        Ok(Self(span))
    }

    pub const fn span(self) -> Millis {
        self.0
    }
}

impl TryFrom<Millis> for Interval {
    type Error = PolicyError;

    fn try_from(span: Millis) -> Result<Self, PolicyError> {
        Self::new(span)
    }
}

impl From<Interval> for Millis {
    fn from(interval: Interval) -> Self {
        interval.0
    }
}

impl When {
    /// The first occurrence after `instant`. Intervals are counted from `anchor`, which isn't an occurrence itself.
    pub fn after(&self, instant: Timestamp, anchor: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Cron(cron) => cron.after(instant),
            Self::Every(interval) => {
                let passed = instant.since(anchor).as_u64() / interval.0.as_u64();
                let next = anchor.plus(interval.0.saturating_mul(passed + 1));
                (next > instant).then_some(next)
            }
        }
    }

    /// The last occurrence that isn't after `instant`.
    pub fn at_or_before(&self, instant: Timestamp, anchor: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Cron(cron) => cron.at_or_before(instant),
            Self::Every(interval) => {
                let passed = instant.since(anchor).as_u64() / interval.0.as_u64();
                (passed > 0).then(|| anchor.plus(interval.0.saturating_mul(passed)))
            }
        }
    }
}

impl Plan {
    /// The first occurrence after `instant`, with the jitter that depends on `seed` and its instant.
    pub fn next_after(&self, instant: Timestamp, anchor: Timestamp, seed: Incarnation) -> Option<Next> {
        let at = self.when.after(instant, anchor)?;
        Some(self.with_jitter(at, anchor, seed))
    }

    /// The last occurrence whose start isn't after `instant`.
    pub fn started_by(&self, instant: Timestamp, anchor: Timestamp, seed: Incarnation) -> Option<Next> {
        let last = self.when.at_or_before(instant, anchor)?;
        let next = self.with_jitter(last, anchor, seed);
        if next.starts_at <= instant {
            return Some(next);
        }
        // Jitter can't have delayed the previous one beyond this one.
        let before = self.when.at_or_before(last.minus(APART), anchor)?;
        Some(self.with_jitter(before, anchor, seed))
    }

    fn with_jitter(&self, at: Timestamp, anchor: Timestamp, seed: Incarnation) -> Next {
        if self.jitter.is_zero() {
            return Next { at, starts_at: at };
        }
        let space_left =
            self.when.after(at, anchor).map_or(self.jitter, |next| next.since(at).saturating_sub(APART));
        let bits = u64::from_be_bytes(*seed.as_bytes()) ^ at.as_millis().cast_unsigned();
        Next { at, starts_at: at.plus(spread(self.jitter.min(space_left), 1, bits)) }
    }

    /// Checks the limits of the values that callers choose.
    pub fn check(&self) -> Result<(), PolicyError> {
        if self.jitter > SPAN_MAX {
            let expected = format!("a duration of at most {SPAN_MAX}");
            return Err(PolicyError::new("jitter", expected, &self.jitter.to_string()));
        }
        Ok(())
    }
}

impl Overlap {
    /// Every policy, in the order of lists for people.
    pub const ALL: [Self; 6] = [
        Self::Skip,
        Self::BufferOne,
        Self::BufferAll,
        Self::AllowAll,
        Self::CancelOther,
        Self::TerminateOther,
    ];

    /// The name that callers use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::BufferOne => "buffer_one",
            Self::BufferAll => "buffer_all",
            Self::AllowAll => "allow_all",
            Self::CancelOther => "cancel_other",
            Self::TerminateOther => "terminate_other",
        }
    }

    /// The policy with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.as_str() == name)
    }
}

impl Missed {
    /// Every policy, in the order of lists for people.
    pub const ALL: [Self; 2] = [Self::Skip, Self::RunOnce];

    /// The name that callers use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::RunOnce => "run_once",
        }
    }

    /// The policy with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.as_str() == name)
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
