//! Adds entries to a journal: checks the limits, and moves entries into segments when the record is full.

use crate::command::Context;
use crate::error::Reject;
use crate::execution::Execution;
use crate::execution::journal::{
    Entry, Happened, RunEnd, SEGMENT_BYTES, Sealed, Segment, SegmentKey, completed_steps,
};
use crate::limits;

/// The kind of the note about a turn whose worker was lost, or didn't report the timeout of an attempt.
pub(super) const TURN_LOST: &str = "turn_lost";

/// Adds entries within the limits. If this fails, the caller must send fewer, or end the run.
pub(super) fn record(
    execution: &mut Execution,
    entries: &[Entry],
    context: &Context<'_>,
) -> Result<(), Reject> {
    append(execution, entries);
    if entries.is_empty() {
        return Ok(());
    }
    let limits = context.limits;
    limits::check("journal_entries", execution.entries(), limits.journal_entries)?;
    let grows = |steps: u32| usize::try_from(steps).unwrap_or(usize::MAX);
    if entries.iter().any(|entry| open_change(entry) > 0) {
        limits::check("open_steps", grows(execution.open_steps), limits.open_steps)?;
    }
    if entries.iter().any(|entry| matches!(entry.what, Happened::Event { .. })) {
        limits::check("pending_events", grows(execution.pending_events), limits.pending_events)?;
    }
    Ok(())
}

/// Adds entries without checking the limits: what ends a run must always be recorded.
pub(super) fn append(execution: &mut Execution, entries: &[Entry]) {
    for entry in entries {
        execution.open_steps = execution.open_steps.saturating_add_signed(open_change(entry));
        execution.pending_events = execution.pending_events.saturating_add_signed(pending_change(entry));
    }
    execution.journal.extend_from_slice(entries);
}

/// Adds a note, which only the timeline shows, with the operator whose call it is.
pub(super) fn note(execution: &mut Execution, kind: &str, context: &Context<'_>) {
    let by = context.by.cloned().map(Box::new);
    let what = Happened::Note { kind: kind.to_owned(), name: None, by };
    execution.journal.push(Entry { at: context.now, what });
}

impl Execution {
    /// How many entries the run's journal has, those in segments included.
    pub fn entries(&self) -> usize {
        let sealed = self.sealed.map_or(0, |sealed| sealed.entries);
        usize::try_from(sealed).unwrap_or(usize::MAX).saturating_add(self.journal.len())
    }

    /// How many steps and children of this run have ended with a result. `None` if its journal has segments of a build
    /// that didn't count them.
    pub fn completed_steps(&self) -> Option<u32> {
        let sealed = self.sealed.map_or(Some(0), |sealed| sealed.completed)?;
        Some(sealed.saturating_add(completed_steps(&self.journal)))
    }
}

/// How an entry changes the number of open remote steps and children. The end of an inline step has its number of
/// attempts. The end of a remote step has none, because its task counts them.
const fn open_change(entry: &Entry) -> i32 {
    match &entry.what {
        Happened::Remote { .. } | Happened::Child { was_left: false, .. } => 1,
        Happened::Step { attempts: None, .. } => -1,
        Happened::Child { was_left: true, .. }
        | Happened::Step { attempts: Some(_), .. }
        | Happened::Attempt { .. }
        | Happened::Reopened { .. }
        | Happened::Captured { .. }
        | Happened::Until { .. }
        | Happened::Fired { .. }
        | Happened::Event { .. }
        | Happened::Waited { .. }
        | Happened::EventsCleared { .. }
        | Happened::Patches { .. }
        | Happened::Note { .. } => 0,
    }
}

/// How an entry changes the number of pending events.
fn pending_change(entry: &Entry) -> i32 {
    match &entry.what {
        Happened::Event { .. } => 1,
        Happened::Waited { event: Some(_), .. } => -1,
        Happened::EventsCleared { count, .. } => i32::try_from(*count).map_or(i32::MIN, |count| -count),
        Happened::Waited { event: None, .. }
        | Happened::Remote { .. }
        | Happened::Child { .. }
        | Happened::Step { .. }
        | Happened::Attempt { .. }
        | Happened::Reopened { .. }
        | Happened::Captured { .. }
        | Happened::Until { .. }
        | Happened::Fired { .. }
        | Happened::Patches { .. }
        | Happened::Note { .. } => 0,
    }
}

/// Moves the entries of the record but the last `stay` into segments. No reader takes these segments for part of the journal until the
/// record that points to them is written.
pub(super) fn seal(
    execution: &mut Execution,
    stay: u32,
    context: &Context<'_>,
) -> Vec<(SegmentKey, Segment)> {
    let leave = execution.journal.len().saturating_sub(usize::try_from(stay).unwrap_or(usize::MAX));
    let parts = segments_of(execution.journal.drain(..leave).collect());
    parts.into_iter().map(|entries| segment(execution, entries, context)).collect()
}

/// The segments with the rest of a run's journal and, in the last of them, how the run ended. Without them nobody could
/// show the run once the next one has started: the record has only the current run.
pub(super) fn seal_run(execution: &Execution, context: &Context<'_>) -> Vec<(SegmentKey, Segment)> {
    let mut record = execution.clone();
    let mut segments = seal(&mut record, 0, context);
    let (key, mut last) = segments.pop().unwrap_or_else(|| segment(&mut record, vec![], context));
    let continued_at = record.closed().is_none().then_some(context.now);
    // What no reader of an earlier run needs.
    record.details = None;
    record.values = None;
    record.due = None;
    record.hinted_at = None;
    record.progress = None;
    last.end = Some(Box::new(RunEnd { record, continued_at, retried_at: None }));
    segments.push((key, last));
    segments
}

/// The next segment, to which the record then points.
fn segment(execution: &mut Execution, entries: Vec<Entry>, context: &Context<'_>) -> (SegmentKey, Segment) {
    let number = execution.sealed.map_or(0, |sealed| sealed.segments) + 1;
    let before = execution.sealed.map(|sealed| sealed.last);
    let count = u32::try_from(entries.len()).unwrap_or(u32::MAX);
    let known = execution.sealed.map_or(0, |sealed| sealed.entries);
    let completed = execution.sealed.map_or(Some(0), |sealed| sealed.completed);
    execution.sealed = Some(Sealed {
        segments: number,
        last: context.nonce,
        entries: known.saturating_add(count),
        completed: completed.map(|known| known.saturating_add(completed_steps(&entries))),
    });
    let (incarnation, run) = (execution.incarnation, execution.run);
    let key = SegmentKey { incarnation, run, number, mark: context.nonce };
    (key, Segment { before, entries, end: None })
}

/// Splits entries into groups that each fit into an item.
fn segments_of(entries: Vec<Entry>) -> Vec<Vec<Entry>> {
    let mut parts: Vec<Vec<Entry>> = Vec::new();
    let mut space = 0;
    for entry in entries {
        // Serialising an entry can't fail: its maps have string keys.
        let bytes = serde_json::to_vec(&entry).map_or(0, |json| json.len() + 1);
        match parts.last_mut() {
            Some(part) if bytes <= space => part.push(entry),
            Some(_) | None => {
                parts.push(vec![entry]);
                space = SEGMENT_BYTES;
            }
        }
        space = space.saturating_sub(bytes);
    }
    parts
}
