//! Crons.

use serde::{Deserialize, Serialize};
use tickover_core::id::CronId;

use crate::{CronText, Duration, Interval, MissedWord, OverlapWord, RunCount, Verbatim};

/// A request for a cron: `cron` or `every`, and `task` or `execution`.
///
/// Each duration may also be given under its name with `_seconds` or `_ms`, as a whole number in that unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CronRequest {
    /// Its id; random by default. A repeated request with this id returns the cron.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<CronId>,
    /// Five fields (minute, hour, day of month, month, day of week), or six with seconds first: `*`, `*/step`, or
    /// numbers, ranges and stepped ranges separated by commas. Months and days of week have names, `JAN` and `SUN` to
    /// `SAT`; days of month `L`, `15W` and `LW`, days of week `FRIL` and `MON#2`. Or `@hourly`, `@daily`, `@weekly`,
    /// `@monthly`, `@yearly`. At most 80 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron: Option<CronText>,
    /// The time zone of `cron`: an IANA name, `UTC` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// Instead of `cron`: whole seconds from one occurrence to the next, counted from now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<Interval>,
    /// The task that each occurrence starts. In its `id`, the occurrence's instant, such as `20260131T120000Z`,
    /// replaces `{occurrence}`. The default `id` is the cron's id, a hyphen, and this instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<crate::schema::CronTask>))]
    pub task: Option<Verbatim>,
    /// The execution that each occurrence starts, instead of `task`. Its `id` has the same form.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<crate::schema::CronExecution>))]
    pub execution: Option<Verbatim>,
    /// What happens to an occurrence while an earlier run is open: `skip` (default), `buffer_one`, `buffer_all`,
    /// `allow_all`, `cancel_other` or `terminate_other`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap: Option<OverlapWord>,
    /// What happens to occurrences that no tick started within five minutes: `skip` (default), or `run_once`, which
    /// starts one run for all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<MissedWord>,
    /// The longest random delay of an occurrence's start. An occurrence always starts before the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Duration>,
    /// How many planned occurrences start in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_runs: Option<RunCount>,
    /// Whether it is paused: `false` by default. Without this field, a replaced cron stays as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
}
