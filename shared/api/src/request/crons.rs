//! What a request for a cron looks like.

use utoipa::ToSchema;

use super::{Duration, Interval, Missed, Overlap, ScheduleRequest, StartRequest};

/// A request for a cron: `cron` or `every`, and `task` or `execution`.
///
/// Each duration may also be given under its name with `_seconds` or `_ms`, as a whole number in that unit.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CronRequest {
    /// Its id; at random if none is given. The same request again under one id finds the cron.
    pub id: Option<String>,
    /// Five fields (minute, hour, day of month, month, day of week), or six with seconds first: `*`, `*/step`, or
    /// numbers, ranges and stepped ranges separated by commas. Months and days of week have names, `JAN` and `SUN` to
    /// `SAT`; days of month `L`, `15W` and `LW`, days of week `FRIL` and `MON#2`. Or `@hourly`, `@daily`, `@weekly`,
    /// `@monthly`, `@yearly`. At most 80 bytes.
    #[schema(examples("0 9 * * MON-FRI"))]
    pub cron: Option<String>,
    /// By whose clocks `cron` is read: an IANA name, `UTC` by default.
    #[schema(examples("Europe/Berlin"))]
    pub time_zone: Option<String>,
    /// Instead of `cron`: whole seconds from one occurrence to the next, counted from now.
    pub every: Option<Interval>,
    /// `every` in whole seconds.
    pub every_seconds: Option<u64>,
    /// `every` in whole milliseconds.
    pub every_ms: Option<u64>,
    /// The task that each occurrence is. In its `id`, `{occurrence}` stands for the occurrence's instant, such as
    /// `20260131T120000Z`; without one it is the cron's id, a hyphen, and that.
    pub task: Option<Box<ScheduleRequest>>,
    /// The execution that each occurrence is, instead of `task`; its `id` as there.
    pub execution: Option<Box<StartRequest>>,
    /// What becomes of an occurrence while an earlier run is open: `skip` (default), `buffer_one`, `buffer_all`,
    /// `allow_all`, `cancel_other` or `terminate_other`.
    pub overlap: Option<Overlap>,
    /// What becomes of occurrences that nobody saw within five minutes: `skip` (default), or `run_once` for all.
    pub missed: Option<Missed>,
    /// How much later than its instant an occurrence may start, at most; never as late as the next one.
    pub jitter: Option<Duration>,
    /// `jitter` in whole seconds.
    pub jitter_seconds: Option<u64>,
    /// `jitter` in whole milliseconds.
    pub jitter_ms: Option<u64>,
    /// How many planned occurrences are started in all.
    pub max_runs: Option<u32>,
    /// Whether it is paused. When a cron is replaced and nothing is said, it stays as it is.
    pub paused: Option<bool>,
}
