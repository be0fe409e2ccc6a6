//! The export of a run: its record and its journal, so that its code can be replayed elsewhere.

use tickover_core::error::Reject;
use tickover_core::execution::Execution;
use tickover_core::execution::journal::Entry;
use tickover_core::id::ExecutionId;
use tickover_core::payload::{Json, Payload};
use tickover_core::time::Timestamp;

use super::events::place_of;
use super::runs::Run;
use crate::error::ServiceError;
use crate::service::Service;

/// How many bytes of payloads a page has at most, apart from its last entry: an answer of a function has at most 6 MB.
const PAGE_BYTES: usize = 2 * 1024 * 1024;
/// How many entries a page has at most.
const PAGE_ENTRIES: usize = 2_000;

/// A part of a run's export.
#[derive(Clone, Debug)]
pub struct ExportedPage {
    pub at: Timestamp,
    /// The record, without journal entries. With payloads, all of them are in it, apart from expired ones.
    pub execution: Execution,
    /// Entries of the journal, oldest first. With payloads, all of them are in it, apart from expired ones; otherwise each
    /// is `null`.
    pub entries: Vec<Entry>,
    /// The cursor of the next page; absent at the end.
    pub next: Option<String>,
}

impl Service {
    /// A page of the export of a run of an execution; without a number, of the current run. Without `payloads`, inputs and results are left out.
    pub async fn export(
        &self,
        id: &ExecutionId,
        run: Option<u32>,
        payloads: bool,
        cursor: Option<&str>,
    ) -> Result<ExportedPage, ServiceError> {
        let Some(execution) = self.load_execution(id).await? else {
            return Err(Reject::NoExecution.into());
        };
        let (mut execution, Run { journal, .. }) = self.run(execution, run).await?;
        let from = cursor.map_or(Ok(0), |cursor| place_of(cursor, execution.run))?;
        let (mut entries, mut bytes) = (vec![], 0);
        for mut entry in journal.iter().skip(from).cloned() {
            if entries.len() >= PAGE_ENTRIES || bytes >= PAGE_BYTES {
                break;
            }
            if let Some(payload) = entry.payload_mut() {
                bytes += self.put_inline(payload, payloads).await?;
            }
            entries.push(entry);
        }
        let end = from.saturating_add(entries.len());
        let next = (end < journal.len()).then(|| format!("{}.{end}", execution.run));
        execution.journal.clear();
        execution.sealed = None;
        // Labels and memo aren't seen by the code, and a replay publishes its values again.
        execution.details = None;
        execution.values = None;
        if let Some(input) = &mut execution.input {
            self.put_inline(input, payloads).await?;
        }
        if let Some(output) = execution.output_mut() {
            self.put_inline(output, payloads).await?;
        }
        Ok(ExportedPage { at: self.now(), execution, entries, next })
    }

    /// Replaces a payload by itself in place of a pointer to it, or by `null`. Returns its size. A pointer stays if its
    /// payload has expired.
    async fn put_inline(&self, payload: &mut Payload, is_wanted: bool) -> Result<usize, ServiceError> {
        let json = if is_wanted { self.payload_if_kept(payload).await? } else { Some(Json::null()) };
        let Some(json) = json else { return Ok(0) };
        let bytes = json.len();
        *payload = Payload::Inline(json);
        Ok(bytes)
    }
}
