//! What a timeline says that the execution's view doesn't.

use std::collections::BTreeSet;

use tickover_core::execution::journal::UNDO_PREFIX;
use tickover_core::time::Timestamp;
use tickover_wire::answer::TimelineEntryView;

use super::moment;

/// The names of stored results that the code doesn't ask for, from the timeline.
pub(super) fn unused(timeline: &[TimelineEntryView]) -> BTreeSet<String> {
    timeline.iter().filter(|entry| entry.kind == "drift").filter_map(|entry| entry.name.clone()).collect()
}

/// What an operator did last, from the timeline.
pub(super) fn operated(timeline: &[TimelineEntryView], now: Timestamp) -> Option<String> {
    let last = timeline.iter().rfind(|entry| entry.by.is_some())?;
    let by = last.by.as_ref()?;
    Some(format!("Operated last: {} by {by}, {}.", last.kind.replace('_', " "), moment(last.at, now)))
}

/// The undo steps that have ended without being done, from the timeline.
pub(super) fn not_undone(timeline: &[TimelineEntryView]) -> BTreeSet<String> {
    let mut ended = BTreeSet::new();
    for entry in timeline {
        let Some(name) = entry.name.as_ref().filter(|name| name.contains(UNDO_PREFIX)) else { continue };
        match entry.kind.as_str() {
            "step_failed"
            | "step_exhausted"
            | "step_timed_out"
            | "step_deadline_exceeded"
            | "step_cancelled" => {
                ended.insert(name.clone());
            }
            "step_completed" | "step_reopened" => drop(ended.remove(name)),
            _ => {}
        }
    }
    ended
}
