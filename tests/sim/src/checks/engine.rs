//! What must hold of workflows that the SDK's own engine runs: its calls to the outside world, and its outcomes.

use std::collections::BTreeMap;

use serde_json::Value;
use tickover_core::execution;
use tickover_core::execution::decision::StartTurnReply;
use tickover_core::execution::journal::{Happened, StepOutcome};
use tickover_core::execution::{Closed, ExecutionOutcome};
use tickover_core::id::Incarnation;
use tickover_core::payload::Payload;
use tickover_core::task::command::Command;
use tickover_core::task::decision::{ClaimReply, Reply};
use tickover_core::time::Timestamp;
use tickover_service::executions::idempotency_key;

use super::execution::{Step, Stories as Executions};
use super::lines::SLOW_MS;
use super::story::Stories as Tasks;
use crate::Run;
use crate::fault_plan::SKEW;
use crate::history::act::{Act, Place, Stage};
use crate::history::execution::Happening;
use crate::history::{Event, What};
use crate::trace::clock;
use crate::trace::execution::brief;
use crate::violation::{Invariant, Violation};

/// The parts of the history that matter here.
struct Past<'a> {
    tasks: &'a Tasks<'a>,
    executions: &'a Executions<'a>,
    run: &'a Run,
}

pub(super) fn of_run(tasks: &Tasks<'_>, executions: &Executions<'_>, run: &Run) -> Vec<Violation> {
    if !run.plan.runs_flows() {
        return vec![];
    }
    let past = Past { tasks, executions, run };
    let mut found = Vec::new();
    for (number, event, act) in acts(run).filter(|(.., act)| act.stage == Stage::Begins) {
        let wrong = match act.place() {
            Some(Place::Turn { incarnation, run, name, .. }) => {
                past.a_turn_may_begin(number, event, act, (incarnation, run, &name))
            }
            Some(Place::Task(_)) => past.a_task_may_begin(number, event, act),
            None => Some("it has no execution".to_owned()),
        };
        found.extend(wrong.map(|what| Violation::new(Invariant::Engine, event.at, format!("{act}: {what}"))));
    }
    found.extend(past.each_step_asks_once());
    found.extend(executions.executions().filter_map(|steps| past.ends_as_without_faults(steps)));
    found
}

fn acts(run: &Run) -> impl Iterator<Item = (usize, &Event, &Act)> {
    run.events.iter().enumerate().filter_map(|(number, event)| {
        let What::OfExecution(happening) = &event.what else { return None };
        let Happening::Acted(act) = &**happening else { return None };
        Some((number, event, act))
    })
}

impl Past<'_> {
    fn a_turn_may_begin(
        &self,
        number: usize,
        event: &Event,
        act: &Act,
        (incarnation, run, name): (Incarnation, u32, &str),
    ) -> Option<String> {
        let steps = self.executions.execution(incarnation);
        let until_now = || steps.iter().rev().skip_while(|step| step.number > number);
        let Some(taken) = until_now().find(|step| took(step, act.call)) else {
            return Some("its process never had a turn".to_owned());
        };
        let lease = taken.after.turn().map(|turn| turn.lease);
        let held = |step: &&Step<'_>| step.after.turn().map(|turn| turn.lease) == lease;
        // The record as this turn wrote it last; it knows nothing of other turns' writes.
        let known = until_now().find(held)?;
        let expires_at = known.after.turn()?.lease_expires_at;
        if known.after.repeats.unwrap_or(known.after.run) != run {
            return Some(format!("its turn was of run {}", known.after.run));
        }
        let has_result = known.journal.as_ref()?.iter().rev().find_map(|entry| {
            let (Happened::Step { name: of, .. } | Happened::Reopened { name: of, .. }) = &entry.what else {
                return None;
            };
            (of.as_str() == name).then_some(matches!(entry.what, Happened::Step { .. }))
        });
        if has_result == Some(true) {
            return Some("it starts, and the journal has its result".to_owned());
        }
        too_late(event, expires_at)
    }

    fn a_task_may_begin(&self, number: usize, event: &Event, act: &Act) -> Option<String> {
        let claim_of = |steps: &'_ [super::story::Step<'_>]| {
            steps.iter().rposition(|step| {
                let is_claim = step.decided.is_some_and(|decided| {
                    decided.call == act.call
                        && matches!(decided.command, Command::Claim(_))
                        && decided.outcome == Ok(Reply::Claim(ClaimReply::Claimed))
                });
                is_claim && step.number <= number
            })
        };
        // The tasks that runs have scheduled for the same work have one key.
        let has_key = |steps: &&[super::story::Step<'_>]| {
            steps.first().is_some_and(|step| idempotency_key(step.after).as_str() == act.key)
        };
        let of_key = self.tasks.tasks().filter(has_key);
        let claims = of_key.filter_map(|steps| claim_of(steps).map(|nth| (steps, &steps[nth])));
        let Some((steps, claimed)) = claims.max_by_key(|(_, claimed)| claimed.number) else {
            return Some("its process never claimed it".to_owned());
        };
        let lease = claimed.after.running().map(|running| running.lease);
        let held = |step: &&super::story::Step<'_>| {
            step.number < number && step.after.running().map(|running| running.lease) == lease
        };
        let expires_at = steps.iter().rfind(held)?.after.running()?.lease_expires_at;
        too_late(event, expires_at)
    }

    /// Where nothing fails, no attempt makes its call twice. With ways that are slow, senders of events may write between a
    /// turn's read and its write until its lease is over.
    fn each_step_asks_once(&self) -> Vec<Violation> {
        if !self.run.plan.is_fair() || self.run.plan.faults.latency_ms >= SLOW_MS {
            return vec![];
        }
        let mut times: BTreeMap<(&str, u32, u32), u32> = BTreeMap::new();
        // A rerun repeats what failed under the same key.
        let run_at = |number: usize, act: &Act| match act.place() {
            Some(Place::Turn { incarnation, .. }) => {
                let steps = self.executions.execution(incarnation).iter();
                steps.rev().find(|step| step.number <= number).map_or(0, |step| step.after.run)
            }
            // The tasks that runs have scheduled for the same work have one key.
            Some(Place::Task(_)) => {
                let firsts = self.tasks.tasks().filter_map(|steps| steps.first());
                let of_key = firsts.filter(|first| idempotency_key(first.after).as_str() == act.key);
                let before = of_key.filter(|first| first.number <= number);
                before
                    .filter_map(|first| first.after.parent.as_ref())
                    .map(|parent| parent.run)
                    .max()
                    .unwrap_or(0)
            }
            None => 0,
        };
        let asks = acts(self.run).filter(|(.., act)| act.stage == Stage::Asks);
        let again = asks.filter(|(number, _, act)| {
            let times = times.entry((&act.key, act.attempt, run_at(*number, act))).or_default();
            *times += 1;
            *times > 1
        });
        let what = |act: &Act| format!("{act}: for the second time, and nothing had failed");
        again.map(|(_, event, act)| Violation::new(Invariant::Engine, event.at, what(act))).collect()
    }

    fn ends_as_without_faults(&self, steps: &[Step<'_>]) -> Option<Violation> {
        let (before, last) = (steps.iter().rfind(|step| step.after.closed().is_none()), steps.last()?);
        let closed = last.after.closed()?;
        let wrong = match &closed.outcome {
            ExecutionOutcome::Completed { output } => {
                let story = self.run.plan.stories.get(&last.after.id)?;
                let (is, expected) = (self.value(output.as_ref()), story.undisturbed());
                (is != expected)
                    .then(|| format!("it ended with {is}, and without faults it ends with {expected}"))
            }
            ExecutionOutcome::Failed { error, .. } => {
                let may = before.is_some_and(|before| self.may_fail(before, last, closed));
                (!may).then(|| format!("it failed: {}: {}", error.code, error.message))
            }
            // Other checks cover cancels and deadlines.
            ExecutionOutcome::TimedOut { .. } | ExecutionOutcome::Cancelled { .. } => None,
        };
        wrong.map(|what| Violation::new(Invariant::Engine, last.at, format!("{}: {what}", brief(last.after))))
    }

    fn value(&self, output: Option<&Payload>) -> Value {
        let text = match output {
            None => None,
            Some(Payload::Inline(json)) => Some(json.clone()),
            Some(Payload::Blob(at)) => self.run.world.ledger.blob(&at.id),
        };
        text.and_then(|json| serde_json::from_str(json.as_str()).ok()).unwrap_or(Value::Null)
    }

    /// Whether the failure has a cause: a timeout, a child that didn't complete, or an earlier execution with the same
    /// id, whose children have the same ids.
    fn may_fail(&self, before: &Step<'_>, last: &Step<'_>, closed: &Closed) -> bool {
        let failing = before.after.failing.as_ref();
        let handled_too_late = failing.is_some_and(|failing| failing.deadline_at <= closed.ended_at);
        let journal = last.journal.as_deref().unwrap_or_default();
        let step_too_late = journal
            .iter()
            .any(|entry| matches!(&entry.what, Happened::Step { outcome: StepOutcome::TimedOut, .. }));
        let child_ended_otherwise = self.executions.executions().any(|steps| {
            let Some(last_of_child) = steps.last() else { return false };
            let parent = last_of_child.after.parent.as_ref();
            parent.is_some_and(|parent| parent.incarnation == last.after.incarnation)
                && !matches!(
                    last_of_child.after.closed().map(|closed| &closed.outcome),
                    Some(ExecutionOutcome::Completed { .. })
                )
        });
        let is_second = self.executions.executions().any(|steps| {
            steps.first().is_some_and(|first| first.after.id == last.after.id && first.number < before.number)
                && steps.first().map(|first| first.after.incarnation) != Some(last.after.incarnation)
        });
        handled_too_late || step_too_late || child_ended_otherwise || is_second
    }
}

/// Whether this write started a turn of this process.
fn took(step: &Step<'_>, call: u64) -> bool {
    step.ruling.is_some_and(|ruling| {
        ruling.call == call
            && matches!(ruling.command, execution::Command::StartTurn(_))
            && matches!(ruling.outcome, Ok(execution::Reply::StartTurn(StartTurnReply::Started)))
    })
}

/// An error, if the step started after the lease ended.
fn too_late(event: &Event, expires_at: Timestamp) -> Option<String> {
    let late = event.at > expires_at.plus(SKEW);
    late.then(|| format!("it starts, and its lease had ended at {}", clock(expires_at)))
}
