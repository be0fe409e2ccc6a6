//! Metrics in `CloudWatch`'s embedded format: lines on standard output that `CloudWatch` extracts from the log.
//!
//! `tickover_service::metric` defines the metrics and their names. This module only writes them: to the namespace
//! `Tickover`, with the function's name as a dimension beside each metric's own labels, all of them bounded. Lines are
//! written before an invocation is answered, because Lambda freezes the process after that. They are also written
//! during the invocation, so that a killed process loses few of them.
//!
//! Counters are exact. The format takes 100 values of a histogram in a line, and the recorder keeps no more of each
//! until they are written. If values come faster, the rest are left out. A tick processes the most overdue records
//! first, so the largest values are kept.

use std::io::{self, Write};
use std::time::Duration;

use metrics_cloudwatch_embedded::{Builder, Collector};
use tickover_service::metric;

/// The dimension with the function's name.
const FUNCTION: &str = "function";
/// How often metrics are written during an invocation: with 100 values at a time, a thousand a second.
const EVERY: Duration = Duration::from_millis(100);

/// The process's metrics. If another recorder was installed before, it does nothing; neither does the default.
#[derive(Clone, Copy, Default)]
pub struct Metrics(Option<&'static Collector>);

impl Metrics {
    /// Installs the recorder of this process, for all metrics or only for those of the alarms and the dashboard.
    pub(crate) fn install(function: Option<&str>, all: bool) -> Self {
        if !all {
            metric::record_only_essential();
        }
        let mut builder = Builder::new()
            .cloudwatch_namespace(metric::NAMESPACE)
            .with_auto_flush_writer(EVERY, Lines::default);
        if let Some(function) = function {
            builder = builder.with_dimension(FUNCTION, function.to_owned());
        }
        match builder.init() {
            Ok(collector) => {
                metric::describe();
                Self(Some(collector))
            }
            Err(error) => {
                tracing::warn!(%error, "no metrics");
                Self(None)
            }
        }
    }

    /// Writes what was measured since the last call.
    pub fn flush(self) {
        let Some(collector) = self.0 else { return };
        let mut lines = Lines::default();
        if let Err(error) = collector.flush(&mut lines).and_then(|()| lines.flush()) {
            tracing::warn!(%error, "metrics not written");
        }
    }
}

/// Lines for standard output, all written at once: in pieces, lines of other writers could come between.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().write_all(&std::mem::take(&mut self.0))
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // For the recorder's own flushes: there is no caller that could handle an error.
        drop(self.flush());
    }
}
