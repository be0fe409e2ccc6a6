//! Logs and counts the results of a cron's runs, once they are written.
//!
//! A run that was triggered by a call is reported like any other: it is started or refused.

use tickover_core::cron::Cron;
use tickover_core::cron::run::{Occurrence, RunState, Skip};
use tickover_core::time::Timestamp;

use crate::metric;
use crate::telemetry::field;

/// The result of an occurrence.
#[derive(Clone, Copy)]
enum OccurrenceResult {
    Started,
    Skipped(Skip),
    Refused,
}

impl OccurrenceResult {
    fn of(state: &RunState) -> Option<Self> {
        match state {
            RunState::Starting => None,
            RunState::Open | RunState::Stopping(_) | RunState::Done => Some(Self::Started),
            RunState::Skipped(why) => Some(Self::Skipped(*why)),
            RunState::Refused(_) => Some(Self::Refused),
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Skipped(why) => why.as_str(),
            Self::Refused => "refused",
        }
    }
}

/// Reports the results that a write has added.
pub(crate) fn report(before: Option<&Cron>, after: &Cron, now: Timestamp) {
    for run in &after.runs {
        let Some(came) = OccurrenceResult::of(&run.state) else { continue };
        if had_result(before, &run.occurrence) {
            continue;
        }
        metric::occurrence(came.as_str());
        log(after, &run.occurrence, came, now);
    }
}

/// Whether the occurrence had a result before: a later change only concerns its end.
fn had_result(before: Option<&Cron>, occurrence: &Occurrence) -> bool {
    let runs = before.map_or(&[][..], |before| before.runs.as_slice());
    runs.iter().any(|run| run.occurrence == *occurrence && OccurrenceResult::of(&run.state).is_some())
}

fn log(record: &Cron, occurrence: &Occurrence, came: OccurrenceResult, now: Timestamp) {
    macro_rules! line {
        ($level:expr, $text:expr) => {
            tracing::event!(
                $level,
                cron = %record.id,
                run = %record.run_id(occurrence),
                { field::OUTCOME } = came.as_str(),
                { field::LATENESS_MS } = now.since(occurrence.at).as_u64(),
                $text
            )
        };
    }
    match came {
        OccurrenceResult::Started => line!(tracing::Level::INFO, "run started"),
        OccurrenceResult::Skipped(Skip::Overlap | Skip::Dropped) => {
            line!(tracing::Level::INFO, "run skipped");
        }
        // No tick ran in time to start it, or more occurrences come than can be processed.
        OccurrenceResult::Skipped(Skip::Missed | Skip::Full) => line!(tracing::Level::WARN, "run skipped"),
        // The reason is logged on another line, with the code.
        OccurrenceResult::Refused => {}
    }
}
