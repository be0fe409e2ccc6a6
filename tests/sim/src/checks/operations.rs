//! What must hold of operations on many records: each ends, does what it was asked for and nothing twice, leaves alone
//! what ended after it was recorded, and stops when it is told to.

mod untouched;

use std::collections::{BTreeMap, BTreeSet};

use tickover_core::duration::Millis;
use tickover_core::execution::Execution;
use tickover_core::execution::command::{Command, SendEvent};
use tickover_core::execution::decision::Reply;
use tickover_core::id::{Incarnation, Nonce, OperationId, RecordId};
use tickover_core::operation::{HowEnded, Operation};
use tickover_core::task::command::Command as TaskCommand;
use tickover_core::time::Timestamp;

use crate::Run;
use crate::fault_plan::SKEW;
use crate::history::execution::Happening;
use crate::history::{Event, Fate, Fault, Note, Request, What};
use crate::violation::{Invariant, Violation};

/// A late write is applied so much later than it was decided on, at most.
const LATE: Millis = Millis::from_secs(10);
/// How long after the faults an operation may last: until the tick finds it twice, once for a lost message.
const FOUND_WITHIN: Millis = Millis::from_secs(10 * 60);

/// All violations, in no order.
pub(super) fn of_run(run: &Run) -> Vec<Violation> {
    let operations = Operations::of(run);
    let mut found = Vec::new();
    for records in operations.records.values() {
        found.extend(it_ends(run, records));
        found.extend(its_counts_add_up(run, records));
        found.extend(a_stopped_one_ends_with_its_page(run, records));
        found.extend(untouched::it_leaves_nothing_out(run, records));
    }
    found.extend(operations.it_changes_what_it_may());
    found
}

/// The records of an operation in order, each after how many events.
type Records = Vec<(usize, Operation)>;

/// What the operations of a run did.
struct Operations<'a> {
    run: &'a Run,
    records: BTreeMap<OperationId, Records>,
    /// For each call that carries one out: which one, and after how many events the call began.
    calls: BTreeMap<u64, (OperationId, usize)>,
}

/// A decision of an operation.
struct Deed<'a> {
    call: u64,
    operation: &'a OperationId,
    began: usize,
    what: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// A new run or a new attempt of a record that had ended.
    Again {
        ended_at: Timestamp,
    },
    Event,
    Other,
}

impl<'a> Operations<'a> {
    fn of(run: &'a Run) -> Self {
        let mut records: BTreeMap<OperationId, Records> = BTreeMap::new();
        for (number, operation) in run.world.ledger.operations() {
            records.entry(operation.id.clone()).or_default().push((number, operation));
        }
        let mut calls = BTreeMap::new();
        for (number, event) in run.events.iter().enumerate() {
            let What::Called { call, request: Request::Fire(Note::Timers(timers)) } = &event.what else {
                continue;
            };
            if let [RecordId::Operation(id)] =
                timers.iter().map(|timer| &timer.record).collect::<Vec<_>>()[..]
            {
                calls.insert(*call, (id.clone(), number));
            }
        }
        Self { run, records, calls }
    }

    /// The changes that operations made, with the nonce of each.
    fn decisions(&self) -> BTreeMap<Nonce, Deed<'_>> {
        let mut deeds = BTreeMap::new();
        for event in &self.run.events {
            let (call, nonce, what) = match &event.what {
                What::Decided(decided) => {
                    let ended = decided.seen.as_ref().and_then(|task| task.ended());
                    let what = match (&decided.command, ended) {
                        (TaskCommand::Retry(_), Some(ended)) => Kind::Again { ended_at: ended.ended_at },
                        _ => Kind::Other,
                    };
                    (decided.call, decided.nonce, what)
                }
                What::OfExecution(happening) => {
                    let Happening::Decided(ruling) = &**happening else { continue };
                    let closed = ruling.seen.as_deref().and_then(Execution::closed);
                    let what = match (&ruling.command, closed) {
                        (Command::Restart(_) | Command::RetryStep { .. }, Some(closed)) => {
                            Kind::Again { ended_at: closed.ended_at }
                        }
                        (Command::SendEvent(SendEvent { id: Some(_), .. }), _)
                            if ruling.outcome == Ok(Reply::EventSent { duplicate: false }) =>
                        {
                            Kind::Event
                        }
                        _ => Kind::Other,
                    };
                    (ruling.call, ruling.nonce, what)
                }
                _ => continue,
            };
            let Some((operation, began)) = self.calls.get(&call) else { continue };
            deeds.insert(nonce, Deed { call, operation, began: *began, what });
        }
        deeds
    }

    fn it_changes_what_it_may(&self) -> Vec<Violation> {
        let mut deeds = self.decisions();
        let mut found = Vec::new();
        let mut done: BTreeMap<(&OperationId, RecordId, Incarnation, bool), u32> = BTreeMap::new();
        for event in &self.run.events {
            let Some((record, incarnation, nonce)) = change(event) else { continue };
            // A tick that moves a record's due slot keeps its nonce.
            let Some(deed) = deeds.remove(&nonce) else { continue };
            let Some(records) = self.records.get(deed.operation) else { continue };
            let Some((_, first)) = records.first() else { continue };
            let mut wrong = |what: String| {
                let what = format!("operation {} {what} {record} (call #{})", deed.operation, deed.call);
                found.push(Violation::new(Invariant::Operations, event.at, what));
            };
            if first.dry_run {
                wrong("only counts, and changed".to_owned());
            }
            // A process that had read the record before it was stopped finishes its page.
            let was = records.iter().rfind(|(number, _)| *number < deed.began);
            if was.is_some_and(|(_, one)| is_stopped(one)) {
                wrong("was stopped, and later changed".to_owned());
            }
            let is_event = match deed.what {
                Kind::Other => continue,
                Kind::Event => true,
                Kind::Again { ended_at } => {
                    if ended_at > first.created_at {
                        wrong(format!("of {:?} started again what ended later,", first.created_at));
                    }
                    false
                }
            };
            let times = done.entry((deed.operation, record.clone(), incarnation, is_event)).or_default();
            *times += 1;
            // Clocks differ: what ends within that after the operation was recorded may seem to have ended before it.
            let is_skewed = match deed.what {
                Kind::Again { ended_at } => ended_at.plus(SKEW).plus(LATE) > first.created_at,
                Kind::Event | Kind::Other => false,
            };
            if *times > 1 && !is_skewed {
                wrong(format!("did the same {times} times with"));
            }
        }
        found
    }
}

/// The record that an event changed, its incarnation, and the nonce of the decision.
fn change(event: &Event) -> Option<(RecordId, Incarnation, Nonce)> {
    if let Some(stored) = event.what.task_change() {
        let task = &stored.after;
        return Some((task.id.clone().into(), task.incarnation, task.nonce));
    }
    let execution = &event.what.execution_change()?.after;
    Some((execution.id.clone().into(), execution.incarnation, execution.nonce))
}

fn is_stopped(operation: &Operation) -> bool {
    operation.end.as_ref().is_some_and(|end| end.how == HowEnded::Stopped)
}

fn violation(at: Timestamp, operation: &Operation, what: &str) -> Violation {
    Violation::new(Invariant::Operations, at, format!("operation {} {what}: {operation:?}", operation.id))
}

fn it_ends(run: &Run, records: &Records) -> Option<Violation> {
    let (_, last) = records.last()?;
    let Some(end) = &last.end else { return Some(violation(run.ended_at, last, "never ended")) };
    let since = run.world.faults_until().max(last.created_at);
    let is_late = |since: Timestamp| end.at > since.plus(FOUND_WITHIN);
    let is_failed = matches!(end.how, HowEnded::Failed { .. });
    let wrong = if last.due.is_some() {
        "has ended and is due"
    } else if is_failed {
        "failed"
    } else if is_late(since) && last_refused(run, &last.id, end.at).is_none_or(is_late) {
        "ended too late"
    } else {
        return None;
    };
    Some(violation(end.at, last, wrong))
}

/// When the function with a message of this operation was last not invoked before its end, because others took all that
/// the concurrency limit allows: its message becomes visible again only later.
fn last_refused(run: &Run, operation: &OperationId, end: Timestamp) -> Option<Timestamp> {
    let (mut have_it, mut refused) = (BTreeSet::new(), None);
    for event in run.events.iter().take_while(|event| event.at <= end) {
        match &event.what {
            What::Message { fate: Fate::Received, note: Note::Timers(timers), .. } => {
                let is_it = |record: &RecordId| matches!(record, RecordId::Operation(id) if id == operation);
                if timers.iter().any(|timer| is_it(&timer.record)) {
                    have_it.insert(event.actor);
                }
            }
            What::Called { .. } => {
                have_it.remove(&event.actor);
            }
            What::Fault(Fault::NotInvoked) if have_it.remove(&event.actor) => refused = Some(event.at),
            _ => {}
        }
    }
    refused
}

fn its_counts_add_up(run: &Run, records: &Records) -> Option<Violation> {
    let (_, last) = records.last()?;
    let counts = &last.counts;
    let refused: u64 = counts.refused.values().sum();
    let done = counts.changed + counts.unchanged;
    // Listed ids without a record are refused, and match nothing.
    let fits = if last.dry_run { done == 0 } else { (done..=done + refused).contains(&counts.matched) };
    (!fits).then(|| violation(run.ended_at, last, "has counts that don't add up"))
}

/// Unless an operator has it go on.
fn a_stopped_one_ends_with_its_page(run: &Run, records: &Records) -> Option<Violation> {
    let (at, (_, stopped)) = records.iter().enumerate().find(|(_, (_, one))| is_stopped(one))?;
    let later = records.iter().skip(at).take_while(|(_, one)| one.end.is_some());
    let (_, last) = later.last()?;
    let goes_on = last.end != stopped.end || last.pages > stopped.pages + 1;
    goes_on.then(|| violation(run.ended_at, last, "was stopped, and went on"))
}

/// When an operator had each operation go on that was over: after how many events.
pub(crate) fn resumed(run: &Run) -> Vec<(OperationId, usize)> {
    let mut over: BTreeMap<OperationId, bool> = BTreeMap::new();
    let mut found = Vec::new();
    for (number, operation) in run.world.ledger.operations() {
        let is_over = operation.end.is_some();
        if over.insert(operation.id.clone(), is_over) == Some(true) && !is_over {
            found.push((operation.id, number));
        }
    }
    found
}
