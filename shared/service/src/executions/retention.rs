//! Extends the retention of what an execution's record points to: its segments, and payloads in items of their own.

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tickover_core::decision::{Expiring, Write};
use tickover_core::execution::journal::{Entry, Sealed, Segment, SegmentKey};
use tickover_core::execution::{Execution, Progress};
use tickover_core::payload::{BlobRef, Payload};
use tickover_core::time::Timestamp;

use super::close::{Progressed, index, progress_of};
use crate::error::ServiceError;
use crate::ports::StoreError;
use crate::service::Service;

/// Items extended before the progress is recorded.
const PAGE: usize = 256;
/// How many of these are extended at the same time.
const AT_ONCE: usize = 32;

/// An item whose retention must be extended, and the index of its journal entry. A segment has the index of its first
/// entry; payloads of the record outside its journal have index 0.
struct Kept {
    entry: usize,
    keep: Write,
}

impl Service {
    /// Extends the retention of everything that a record points to until `to`. Returns the record after that, and how
    /// far the call came. It starts where the last call stopped, and does at least one page, more while there is time.
    pub(super) async fn extend_retention(
        &self,
        mut execution: Execution,
        to: Timestamp,
        stop_at: Timestamp,
    ) -> Result<(Execution, Progressed), ServiceError> {
        loop {
            let begun = execution.progress.and_then(|progress| progress.to).filter(|begun| *begun >= to);
            let before = progress_of(&execution);
            let from = if begun.is_some() { before.entries } else { 0 };
            let to = begun.unwrap_or(to);
            let (parts, entries) = self.items_of(&execution, to).await?;
            let left: Vec<Kept> = parts.into_iter().filter(|part| part.entry >= index(from)).collect();
            let page = left.len().min(PAGE);
            let kept: Vec<_> = left[..page].iter().map(|part| self.extend_item(part)).collect();
            stream::iter(kept).buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await?;
            let seen = left.get(page).map_or(entries, |next| next.entry);
            let seen = u32::try_from(seen).unwrap_or(u32::MAX);
            let progress = Progress { entries: seen, to: Some(to), ..before };
            let Some(noted) = self.note_progress(&execution, progress).await? else {
                // The execution has moved on, or another call has come further: the next call starts again.
                return Ok((execution, Progressed::Overtaken));
            };
            execution = noted;
            if execution.kept.is_none_or(|kept| kept >= to) {
                return Ok((execution, Progressed::Done));
            }
            if self.now() >= stop_at {
                return Ok((execution, Progressed::OutOfTime));
            }
        }
    }

    async fn extend_item(&self, part: &Kept) -> Result<(), ServiceError> {
        let keep = std::slice::from_ref(&part.keep);
        Ok(self.with_retries(|| self.ports.store.commit(keep)).await?)
    }

    /// The items that may be deleted before `to`, oldest first, and how many entries the journal has.
    async fn items_of(
        &self,
        execution: &Execution,
        to: Timestamp,
    ) -> Result<(Vec<Kept>, usize), ServiceError> {
        let is_short = |at: &&BlobRef| at.expires_at < to;
        let payload = |payload: &Payload, entry| {
            let at = payload.blob().filter(is_short)?;
            let keep = Write::Extend { item: Expiring::Blob(at.id), expires_at: to };
            Some(Kept { entry, keep })
        };
        let own = [&execution.input, &execution.details, &execution.values].into_iter().map(Option::as_ref);
        let own = own.chain([execution.output()]);
        let mut parts: Vec<Kept> = own.flatten().filter_map(|own| payload(own, 0)).collect();
        let mut entries = 0;
        let mut add = |parts: &mut Vec<Kept>, more: &[Entry]| {
            for entry in more {
                parts.extend(entry.payload().and_then(|held| payload(held, entries)));
                entries += 1;
            }
            entries
        };
        let mut first = 0;
        for (key, segment) in self.chain_of(execution).await? {
            let keep = Write::Extend { item: Expiring::Segment(execution.id.clone(), key), expires_at: to };
            parts.push(Kept { entry: first, keep });
            first = add(&mut parts, &segment.entries);
        }
        let entries = add(&mut parts, &execution.journal);
        Ok((parts, entries))
    }

    /// A run's whole journal: the sealed segments, then the entries in the record.
    pub async fn journal_of(&self, execution: &Execution) -> Result<Vec<Entry>, ServiceError> {
        let mut journal = self.sealed_of(execution).await?;
        journal.extend(execution.journal.iter().cloned());
        Ok(journal)
    }

    /// What a run's journal has more than when its record was as it is `known`. Only the segments since are read. `None` if a
    /// worker that knows that much must replay the whole journal.
    pub(super) async fn journal_since(
        &self,
        execution: &Execution,
        known: &Execution,
    ) -> Result<Option<Vec<Entry>>, ServiceError> {
        let last = |of: &Execution| of.sealed.map(|sealed| sealed.last);
        let segments = if last(execution) == last(known) {
            vec![]
        } else {
            self.segments_after(execution, known.sealed).await?
        };
        // Those of another run don't fit either.
        let Ok(chain) = chain(execution, known.sealed, segments) else { return Ok(None) };
        let sealed = chain.into_iter().flat_map(|(_, segment)| segment.entries);
        let mut since = sealed.chain(execution.journal.iter().cloned());
        let is_beginning = known.journal.iter().all(|entry| since.next().as_ref() == Some(entry));
        let since: Vec<Entry> = since.collect();
        Ok((is_beginning && self.rules.is_continued(known, execution, &since)).then_some(since))
    }

    /// The entries of all segments of a run.
    pub(crate) async fn sealed_of(&self, execution: &Execution) -> Result<Vec<Entry>, ServiceError> {
        let chain = self.chain_of(execution).await?;
        Ok(chain.into_iter().flat_map(|(_, segment)| segment.entries).collect())
    }

    /// Those of the segments after the ones that are known; `None` if these aren't the beginning of that run's.
    pub(crate) async fn sealed_since(
        &self,
        execution: &Execution,
        known: Sealed,
    ) -> Result<Option<Vec<Entry>>, ServiceError> {
        let segments = self.segments_after(execution, Some(known)).await?;
        let Ok(chain) = chain(execution, Some(known), segments) else { return Ok(None) };
        Ok(Some(chain.into_iter().flat_map(|(_, segment)| segment.entries).collect()))
    }

    async fn chain_of(&self, execution: &Execution) -> Result<Vec<(SegmentKey, Segment)>, ServiceError> {
        if execution.sealed.is_none() {
            return Ok(vec![]);
        }
        let (id, run) = (&execution.id, execution.run);
        let segments = self.segments_after(execution, None).await?;
        chain(execution, None, segments).map_err(|number| {
            let reason = format!("segment {number} of run {run} of execution {id} is missing");
            StoreError::Corrupt { reason }.into()
        })
    }

    async fn segments_after(
        &self,
        execution: &Execution,
        known: Option<Sealed>,
    ) -> Result<Vec<(SegmentKey, Segment)>, ServiceError> {
        let (id, incarnation, run) = (&execution.id, execution.incarnation, execution.run);
        let after = known.map_or(0, |known| known.segments);
        Ok(self.with_retries(|| self.ports.store.segments(id, incarnation, run, after)).await?)
    }
}

/// Those of a run's segments, which are in the order of their numbers, that the record points to and that come after those
/// that are known; or the number of the one that is missing.
pub(super) fn chain(
    execution: &Execution,
    known: Option<Sealed>,
    segments: Vec<(SegmentKey, Segment)>,
) -> Result<Vec<(SegmentKey, Segment)>, u32> {
    let [last, first] = [execution.sealed, known].map(|at| at.map(|at| (at.segments, at.last)));
    let mut chain = Vec::new();
    let mut next = last;
    for (key, segment) in segments.into_iter().rev() {
        if next != first && next == Some((key.number, key.mark)) {
            next = segment.before.map(|before| (key.number.saturating_sub(1), before));
            chain.push((key, segment));
        }
    }
    if next != first {
        return Err(next.map_or(0, |(number, _)| number));
    }
    chain.reverse();
    Ok(chain)
}
