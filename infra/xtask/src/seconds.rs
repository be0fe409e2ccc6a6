//! How long parts of a command took, and the table of them at its end.

use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

/// The time since an instant, and the time that processors have spent on child processes that have ended since then.
pub(crate) struct Stopwatch {
    started_at: Instant,
    processors_before: Duration,
}

/// What a part took.
#[derive(Clone, Copy)]
pub(crate) struct Took {
    pub(crate) clock: Duration,
    pub(crate) processors: Duration,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self { started_at: Instant::now(), processors_before: of_children() }
    }

    pub(crate) fn took(&self) -> Took {
        let processors = of_children().saturating_sub(self.processors_before);
        Took { clock: self.started_at.elapsed(), processors }
    }
}

impl Took {
    /// A line of a table: seconds by the clock, of processors, and a name.
    pub(crate) fn row(self, name: &str) -> String {
        line(&[self.clock, self.processors], name)
    }
}

/// Zero if the system doesn't know it.
fn of_children() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return Duration::ZERO };
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Duration::from_micros(u64::try_from(micros).unwrap_or_default())
}

/// Lines with right-aligned seconds, tenths of them, before a name.
pub(crate) fn line(seconds: &[Duration], name: &str) -> String {
    let columns = seconds.iter().map(|one| format!("{:9.1}", one.as_secs_f64()));
    columns.chain([format!("  {name}")]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_seconds_one_below_the_other() {
        let short = line(&[Duration::from_millis(1_260), Duration::ZERO], "fmt");
        let long = line(&[Duration::from_secs(1_000), Duration::from_millis(2_000_040)], "test");
        assert_eq!([short.as_str(), long.as_str()], ["      1.3      0.0  fmt", "   1000.0   2000.0  test"]);
    }

    #[test]
    fn the_processor_time_of_a_child_counts_once_it_has_ended() {
        let watch = Stopwatch::start();
        let mut count = std::process::Command::new("sh");
        count.args(["-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"]);
        assert!(count.status().unwrap().success());
        let took = watch.took();
        assert!(took.processors > Duration::ZERO && took.clock > Duration::ZERO);
    }
}
