//! What must hold of deletion: no item is deleted that a record still needs, and every item that no record needs is
//! deleted in the end.

use std::collections::BTreeMap;

use tickover_core::duration::Millis;
use tickover_core::execution::journal::{Entry, Segment, SegmentKey};
use tickover_core::execution::{Execution, ExecutionOutcome};
use tickover_core::id::{ExecutionId, RecordId, TaskId};
use tickover_core::payload::{BlobRef, Payload};
use tickover_core::task::Task;
use tickover_core::time::Timestamp;
use tickover_service::memory::store::Item;

use crate::Run;
use crate::history::execution::Happening;
use crate::history::{Deleted, Fault, What};
use crate::trace;
use crate::violation::{Invariant, Violation};

/// No item may be kept longer than this without need: first expiries are not as far ahead.
const LONGEST: Millis = Millis::from_days(800);

/// The records at some point of the history.
#[derive(Default)]
struct StoredRecords<'a> {
    tasks: BTreeMap<&'a TaskId, &'a Task>,
    executions: BTreeMap<&'a ExecutionId, &'a Execution>,
    segments: BTreeMap<SegmentKey, &'a Segment>,
}

pub(super) fn of_run(run: &Run) -> Vec<Violation> {
    let mut records = StoredRecords::default();
    let mut found = Vec::new();
    for event in &run.events {
        match &event.what {
            What::Stored(stored) => drop(records.tasks.insert(&stored.after.id, &stored.after)),
            What::OfExecution(happening) => match &**happening {
                Happening::Stored(change) => {
                    records.executions.insert(&change.after.id, &change.after);
                }
                Happening::Sealed { key, segment } => drop(records.segments.insert(*key, segment)),
                Happening::Decided(_)
                | Happening::Joined { .. }
                | Happening::Did(_)
                | Happening::Acted(_) => {}
            },
            What::Fault(Fault::Deleted(deleted)) => {
                let needed = records.needs(*deleted, event.at);
                found.extend(needed.map(|what| Violation::new(Invariant::Expiry, event.at, what)));
            }
            What::Called { .. }
            | What::Answered { .. }
            | What::Decided(_)
            | What::Message { .. }
            | What::Fault(_) => {}
        }
    }
    found.extend(StoredRecords::items_never_deleted(run));
    found
}

impl<'a> StoredRecords<'a> {
    /// An error, if a record still needs the deleted item.
    fn needs(&self, deleted: Deleted, now: Timestamp) -> Option<String> {
        let executions = || self.executions.values().filter(|execution| !execution.is_gone(now));
        let (what, of) = match deleted {
            Deleted::Blob(id) => {
                let mut tasks = self.tasks.values().filter(|task| !task.is_gone(now));
                let task = tasks.find(|task| task.blobs().any(|blob| blob.id == id));
                let execution = || executions().find(|one| self.blobs(one).iter().any(|blob| blob.id == id));
                let of = task.map(|task| trace::brief(task));
                ("a payload", of.or_else(|| execution().map(|one| trace::execution::brief(one))))
            }
            Deleted::Segment(key) => {
                let of = executions().find(|one| self.chain(one).iter().any(|(part, _)| *part == key));
                ("a segment", of.map(|one| trace::execution::brief(one)))
            }
            Deleted::Record | Deleted::Join | Deleted::Key => return None,
        };
        of.map(|of| format!("{what} was deleted of {of}"))
    }

    /// Items that would never be deleted although no open record needs them.
    fn items_never_deleted(run: &Run) -> Vec<Violation> {
        let by = run.ended_at.plus(LONGEST);
        let stays =
            run.world.ledger.store.expiries().into_iter().filter(|(_, at)| at.is_none_or(|at| at > by));
        if run.plan.hardship.reaped == 0 {
            return vec![];
        }
        let what = stays.filter_map(|(item, _)| match item {
            Item::Blob(id) => Some(format!("the payload {id}")),
            Item::Segment(id, key) => Some(format!("segment {} of run {} of {id}", key.number, key.run)),
            Item::Join(join) => Some(format!("a join item of {}", join.0)),
            Item::Waiter(gate, _) => Some(format!("a task that waits at gate {gate}")),
            Item::Record(RecordId::Key(_)) => Some("an idempotency key".to_owned()),
            Item::Record(RecordId::Operation(id)) => Some(format!("operation {id}")),
            Item::Record(RecordId::Gate(id)) => Some(format!("gate {id}")),
            Item::Record(_) => None,
        });
        what.map(|what| Violation::new(Invariant::Expiry, run.ended_at, format!("{what} is never deleted")))
            .collect()
    }

    /// Every payload item to which an execution or its journal points.
    fn blobs(&self, execution: &'a Execution) -> Vec<&'a BlobRef> {
        let output = execution.closed().and_then(|closed| match &closed.outcome {
            ExecutionOutcome::Completed { output } => output.as_ref(),
            ExecutionOutcome::Failed { .. }
            | ExecutionOutcome::TimedOut { .. }
            | ExecutionOutcome::Cancelled { .. } => None,
        });
        let own = [execution.input.as_ref(), execution.details.as_ref(), output].into_iter().flatten();
        let sealed = self.chain(execution).into_iter().flat_map(|(_, segment)| &segment.entries);
        let entries = sealed.chain(&execution.journal).filter_map(Entry::payload);
        own.chain(entries).filter_map(Payload::blob).collect()
    }

    /// The segments of an execution's journal.
    fn chain(&self, execution: &Execution) -> Vec<(SegmentKey, &'a Segment)> {
        let mut chain = Vec::new();
        let Some(sealed) = execution.sealed else { return chain };
        let mut mark = sealed.last;
        for number in (1..=sealed.segments).rev() {
            let key = SegmentKey { incarnation: execution.incarnation, run: execution.run, number, mark };
            let Some(segment) = self.segments.get(&key) else { return chain };
            mark = segment.before.unwrap_or(mark);
            chain.push((key, *segment));
        }
        chain
    }
}
