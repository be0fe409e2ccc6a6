//! Crons.

use serde::{Deserialize, Serialize};
use tickover_core::id::CronId;

use crate::{
    CronText, Duration, DurationMilliseconds, DurationSeconds, Interval, IntervalMilliseconds,
    IntervalSeconds, MissedWord, OverlapWord, RunCount, Verbatim,
};

/// A request for a cron: `cron` or `every`, and `task` or `execution`.
///
/// Each duration may also be given under its name with `_seconds` or `_ms`, as a whole number in that unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CronRequest {
    /// Its id; at random if none is given. The same request again under one id finds the cron.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<CronId>,
    /// Five fields (minute, hour, day of month, month, day of week), or six with seconds first: `*`, `*/step`, or
    /// numbers, ranges and stepped ranges separated by commas. Months and days of week have names, `JAN` and `SUN` to
    /// `SAT`; days of month `L`, `15W` and `LW`, days of week `FRIL` and `MON#2`. Or `@hourly`, `@daily`, `@weekly`,
    /// `@monthly`, `@yearly`. At most 80 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron: Option<CronText>,
    /// By whose clocks `cron` is read: an IANA name, `UTC` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// Instead of `cron`: whole seconds from one occurrence to the next, counted from now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<Interval>,
    /// `every` in whole seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every_seconds: Option<IntervalSeconds>,
    /// `every` in whole milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every_ms: Option<IntervalMilliseconds>,
    /// The task that each occurrence is. In its `id`, `{occurrence}` stands for the occurrence's instant, such as
    /// `20260131T120000Z`; without one it is the cron's id, a hyphen, and that.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<super::ScheduleRequest>))]
    pub task: Option<Verbatim>,
    /// The execution that each occurrence is, instead of `task`; its `id` as there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<super::StartRequest>))]
    pub execution: Option<Verbatim>,
    /// What becomes of an occurrence while an earlier run is open: `skip` (default), `buffer_one`, `buffer_all`,
    /// `allow_all`, `cancel_other` or `terminate_other`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap: Option<OverlapWord>,
    /// What becomes of occurrences that nobody saw within five minutes: `skip` (default), or `run_once` for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<MissedWord>,
    /// How much later than its instant an occurrence may start, at most; never as late as the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Duration>,
    /// `jitter` in whole seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_seconds: Option<DurationSeconds>,
    /// `jitter` in whole milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_ms: Option<DurationMilliseconds>,
    /// How many planned occurrences are started in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_runs: Option<RunCount>,
    /// Whether it is paused. When a cron is replaced and nothing is said, it stays as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
}
