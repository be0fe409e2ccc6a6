//! The history of each execution, taken from the history of the run.

use std::collections::{BTreeMap, HashMap};

use tickover_core::execution::Execution;
use tickover_core::execution::due::attempt_timeout_at;
use tickover_core::execution::journal::{Entry, Segment, SegmentKey};
use tickover_core::id::{ExecutionId, Incarnation, Nonce};
use tickover_core::task::Task;
use tickover_core::time::{Timestamp, earliest};

use crate::Run;
use crate::history::What;
use crate::history::execution::{Change, Happening, Ruling, ScriptAction};

/// A change of a record.
pub(in crate::checks) struct Step<'a> {
    /// Its number in the history.
    pub(in crate::checks) number: usize,
    /// When it was applied, by the world's clock.
    pub(in crate::checks) at: Timestamp,
    /// The record before; absent where the execution is new.
    pub(in crate::checks) before: Option<&'a Execution>,
    /// The record of the execution that had this id before a new one.
    pub(in crate::checks) replaced: Option<&'a Execution>,
    /// The record after.
    pub(in crate::checks) after: &'a Execution,
    /// The decision behind the write; absent where the record was only woken, or only its due slot moved.
    pub(in crate::checks) ruling: Option<&'a Ruling>,
    /// The run's whole journal after the write; absent where a segment of it is missing.
    pub(in crate::checks) journal: Option<Vec<&'a Entry>>,
}

impl Step<'_> {
    /// Whether there was no decision: the record was woken, or its due slot moved.
    pub(in crate::checks) fn is_undecided(&self) -> bool {
        self.before.is_some_and(|before| before.version == self.after.version)
    }
}

/// For each task's id: when it changed, and whether it had ended then.
pub(super) type Ends<'a> = HashMap<&'a str, Vec<(usize, Timestamp, bool)>>;

/// All executions, each from its creation to its end.
pub(in crate::checks) struct Stories<'a> {
    by_execution: BTreeMap<Incarnation, Vec<Step<'a>>>,
    /// The actions of scripts, with their numbers in the history.
    pub(in crate::checks) deeds: Vec<(usize, Timestamp, &'a ScriptAction)>,
    /// For each task's id: when it changed, and whether it had ended then.
    pub(in crate::checks) tasks: Ends<'a>,
}

impl<'a> Stories<'a> {
    /// The stories of a run.
    pub(in crate::checks) fn of(run: &'a Run) -> Self {
        let (mut rulings, mut segments) = (HashMap::new(), BTreeMap::new());
        let mut by_execution: BTreeMap<_, Vec<Step<'a>>> = BTreeMap::new();
        let (mut deeds, mut tasks) = (Vec::new(), Ends::new());
        for (number, event) in run.events.iter().enumerate() {
            let happening = match &event.what {
                What::OfExecution(happening) => &**happening,
                What::Stored(stored) => {
                    let ended = ended(&stored.after);
                    tasks.entry(stored.after.id.as_str()).or_default().push((number, event.at, ended));
                    continue;
                }
                What::Called { .. }
                | What::Answered { .. }
                | What::Decided(_)
                | What::Message { .. }
                | What::Fault(_) => continue,
            };
            match happening {
                Happening::Decided(ruling) => drop(rulings.insert(ruling.nonce, &**ruling)),
                Happening::Sealed { key, segment } => drop(segments.insert(*key, segment)),
                Happening::Did(deed) => deeds.push((number, event.at, deed)),
                Happening::Joined { .. } | Happening::Acted(_) => {}
                Happening::Stored(change) => {
                    let step = step((number, event.at), change, &rulings, &segments);
                    by_execution.entry(change.after.incarnation).or_default().push(step);
                }
            }
        }
        Self { by_execution, deeds, tasks }
    }

    /// Every step of every execution.
    pub(in crate::checks) fn steps(&self) -> impl Iterator<Item = &Step<'a>> {
        self.by_execution.values().flatten()
    }

    /// The executions' steps, one execution after the other.
    pub(in crate::checks) fn executions(&self) -> impl Iterator<Item = &[Step<'a>]> {
        self.by_execution.values().map(Vec::as_slice)
    }

    /// The steps of one execution.
    pub(in crate::checks) fn execution(&self, incarnation: Incarnation) -> &[Step<'a>] {
        self.by_execution.get(&incarnation).map_or(&[], Vec::as_slice)
    }

    /// The steps of the last execution that had this id before then.
    pub(in crate::checks) fn latest(&self, id: &ExecutionId, before: usize) -> Option<&[Step<'a>]> {
        let first = |steps: &&[Step<'a>]| steps.first().map(|step| step.number);
        let of_id = |steps: &&[Step<'a>]| steps.first().is_some_and(|step| step.after.id == *id);
        let all = self.executions().filter(of_id).filter(|steps| first(steps) < Some(before));
        all.max_by_key(first)
    }
}

fn ended(task: &Task) -> bool {
    task.ended().is_some()
}

fn step<'a>(
    (number, at): (usize, Timestamp),
    change: &'a Change,
    rulings: &HashMap<Nonce, &'a Ruling>,
    segments: &BTreeMap<SegmentKey, &'a Segment>,
) -> Step<'a> {
    let after = &change.after;
    let same = |before: &&Execution| before.incarnation == after.incarnation;
    let before = change.before.as_ref().filter(same);
    let replaced = change.before.as_ref().filter(|before| !same(before));
    let undecided = before.is_some_and(|before| before.version == after.version);
    let ruling = if undecided { None } else { rulings.get(&after.nonce).copied() };
    Step { number, at, before, replaced, after, ruling, journal: journal(after, segments) }
}

/// A run's whole journal, by the segments that the record points to.
fn journal<'a>(
    execution: &'a Execution,
    segments: &BTreeMap<SegmentKey, &'a Segment>,
) -> Option<Vec<&'a Entry>> {
    let mut chain = Vec::new();
    if let Some(sealed) = execution.sealed {
        let mut mark = sealed.last;
        for number in (1..=sealed.segments).rev() {
            let key = SegmentKey { incarnation: execution.incarnation, run: execution.run, number, mark };
            let segment = segments.get(&key)?;
            mark = segment.before.unwrap_or(mark);
            chain.push(segment);
        }
    }
    let sealed = chain.into_iter().rev().flat_map(|segment| &segment.entries);
    Some(sealed.chain(&execution.journal).collect())
}

/// The earliest instant of this record that must be noticed: a deadline, or the timeout of an attempt.
pub(in crate::checks) fn watched_instant(execution: &Execution) -> Option<Timestamp> {
    earliest([visible_instant(execution), attempt_timeout_at(execution)])
}

/// The earliest deadline of this record that a user can see.
pub(in crate::checks) fn visible_instant(execution: &Execution) -> Option<Timestamp> {
    if execution.closed().is_some() {
        return None;
    }
    match &execution.failing {
        Some(failing) => Some(failing.deadline_at),
        None => earliest([execution.deadline_at, execution.counting_run_deadline()]),
    }
}
