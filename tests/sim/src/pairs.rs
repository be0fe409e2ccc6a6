//! Which features of the product met in the lives of which records: the matrix of pairs.
//!
//! A pair of features has met if one record had both in its life. To the life of an execution belong its remote steps.

mod feature;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use tickover_core::duration::Millis;
use tickover_core::execution::command::{Command as OnExecution, Ending as RunEnding};
use tickover_core::execution::journal::{Happened, UNDO_PREFIX, answered_event};
use tickover_core::execution::{Execution, ExecutionOutcome, ParentClosePolicy, Stuck};
use tickover_core::flow::Priority;
use tickover_core::id::{Incarnation, OperationId, RecordId};
use tickover_core::parked::Parked;
use tickover_core::task::command::{Command as OnTask, Start};
use tickover_core::task::{Ending, Outcome, Task};

use super::Run;
use super::checks::execution::callbacks::{awaited, is_reserved};
use super::checks::operations;
use super::history::execution::{Asked, Done, Happening, Operation as Operated, ScriptAction};
use super::history::{Answer, Note, Request, What};
use super::plan::crons;
use super::plan::single::KeyUse;

pub use feature::Feature;

/// The features of one record, and who it is a part of.
#[derive(Default)]
struct Life {
    features: BTreeSet<Feature>,
    parent: Option<Incarnation>,
}

type Lives = BTreeMap<Incarnation, Life>;

/// How many runs of the simulation had each pair.
#[derive(Clone, Debug, Default)]
pub struct Pairs(BTreeMap<(Feature, Feature), u32>);

/// The pairs that met in a run, each in the order of the matrix.
pub fn met_in(run: &Run) -> BTreeSet<(Feature, Feature)> {
    let mut met = BTreeSet::new();
    for features in lives(run) {
        for one in &features {
            met.extend(features.iter().filter(|other| *other > one).map(|other| (*one, *other)));
        }
    }
    met
}

impl Pairs {
    /// Counts the pairs of a run.
    pub fn add(&mut self, run: &Run) {
        for pair in met_in(run) {
            *self.0.entry(pair).or_default() += 1;
        }
    }

    /// In how many runs these two met.
    pub fn count(&self, one: Feature, other: Feature) -> u32 {
        self.0.get(&(one.min(other), one.max(other))).copied().unwrap_or_default()
    }

    /// The pairs that never met, and could have.
    pub fn unmet(&self) -> Vec<(Feature, Feature)> {
        let all = Feature::ALL
            .iter()
            .enumerate()
            .flat_map(|(number, one)| Feature::ALL.iter().skip(number + 1).map(move |other| (*one, *other)));
        all.filter(|(one, other)| self.count(*one, *other) == 0 && !one.never_meets(*other)).collect()
    }
}

/// The matrix: a row for each feature, with the number of runs in which it met each feature before it.
impl fmt::Display for Pairs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, row) in Feature::ALL.iter().enumerate() {
            write!(formatter, "{:>2} {:<32}", number + 1, row.name())?;
            for column in Feature::ALL.iter().take(number) {
                write!(formatter, " {:>4}", self.count(*row, *column))?;
            }
            writeln!(formatter)?;
        }
        Ok(())
    }
}

/// The features of each record's life.
fn lives(run: &Run) -> Vec<BTreeSet<Feature>> {
    let (mut tasks, mut executions) = (Lives::new(), Lives::new());
    for event in &run.events {
        match &event.what {
            What::Stored(stored) => {
                let life = tasks.entry(stored.after.incarnation).or_default();
                life.features.extend(of_task(&stored.after));
                life.parent = stored.after.parent.as_ref().map(|parent| parent.incarnation);
            }
            What::Decided(decided) => {
                if let OnTask::Schedule(schedule) = &decided.command {
                    let is_later = schedule.start != Start::After(Millis::ZERO);
                    let features = &mut tasks.entry(schedule.incarnation).or_default().features;
                    features.extend(is_later.then_some(Feature::Delay));
                    continue;
                }
                let Some(seen) = decided.seen.as_deref().filter(|_| decided.outcome.is_ok()) else {
                    continue;
                };
                let done = match &decided.command {
                    OnTask::Retry(_) if seen.ended().is_some() && seen.parent.is_some() => {
                        Some(Feature::RemoteRetry)
                    }
                    OnTask::Retry(_) if seen.ended().is_some() => Some(Feature::OperatorRetry),
                    OnTask::Cancel { force: true } if seen.ended().is_none() => Some(Feature::Terminated),
                    OnTask::Cancel { force: false } if seen.ended().is_none() => Some(Feature::Cancelled),
                    _ => None,
                };
                let has_another = matches!(&decided.command, OnTask::Retry(Some(_)) if done.is_some());
                let features = &mut tasks.entry(seen.incarnation).or_default().features;
                features.extend(done.into_iter().chain(has_another.then_some(Feature::ChangedInput)));
            }
            What::OfExecution(happening) => match &**happening {
                Happening::Stored(change) => {
                    let life = executions.entry(change.after.incarnation).or_default();
                    life.features.extend(of_execution(change.before.as_ref(), &change.after));
                }
                Happening::Decided(ruling) => {
                    if let OnExecution::Start(start) = &ruling.command {
                        let features = &mut executions.entry(start.incarnation).or_default().features;
                        features.extend((start.delay > Millis::ZERO).then_some(Feature::Delay));
                        features.extend(start.event.as_ref().map(|_| Feature::FirstEvent));
                        continue;
                    }
                    let Some(seen) = ruling.seen.as_deref().filter(|_| ruling.outcome.is_ok()) else {
                        continue;
                    };
                    let features = &mut executions.entry(seen.incarnation).or_default().features;
                    features.extend(of_command(seen, &ruling.command));
                    let built = run.plan.hardship.wrong_build.is_some_and(|span| {
                        matches!(ruling.command, OnExecution::StartTurn(_))
                            && seen.created_at < span.from
                            && span.from <= event.at
                    });
                    features.extend(built.then_some(Feature::Deployment));
                }
                Happening::Did(ScriptAction { turn, what: Done::WentOn { .. } }) => {
                    executions.entry(turn.incarnation).or_default().features.insert(Feature::Kept);
                }
                _ => {}
            },
            _ => {}
        }
    }
    add_by_calls(run, &mut tasks, &mut executions);
    for life in tasks.values() {
        if let Some(parent) = life.parent.and_then(|parent| executions.get_mut(&parent)) {
            parent.features.extend(&life.features);
        }
    }
    tasks.into_values().chain(executions.into_values()).map(|life| life.features).collect()
}

/// What is told from the call that did it: tasks that were claimed together, and what an operator's call has changed.
fn add_by_calls(run: &Run, tasks: &mut Lives, executions: &mut Lives) {
    let resumed = operations::resumed(run);
    let mut calls: BTreeMap<u64, Vec<Feature>> = BTreeMap::new();
    let of_call = |calls: &BTreeMap<u64, Vec<Feature>>, call| calls.get(&call).cloned().unwrap_or_default();
    for (number, event) in run.events.iter().enumerate() {
        match &event.what {
            What::Called { call, request } => {
                // What goes on with an operation that had been over.
                let resumed = resumed.iter().filter(|(_, at)| *at < number).map(|(id, _)| id);
                let features = of_request(request, &resumed.collect::<Vec<_>>());
                if !features.is_empty() {
                    calls.insert(*call, features);
                }
            }
            What::Answered { call, answer: Answer::Claimed(held) } => {
                let features = of_call(&calls, *call);
                for one in held.iter().filter(|_| features.contains(&Feature::Batch)) {
                    tasks.entry(one.incarnation).or_default().features.insert(Feature::Batch);
                }
            }
            What::Decided(decided) => {
                let Some(seen) = decided.seen.as_ref().filter(|_| decided.outcome.is_ok()) else { continue };
                let features = of_call(&calls, decided.call).into_iter();
                let bulk = features.filter(|one| matches!(one, Feature::Bulk | Feature::BulkAgain));
                tasks.entry(seen.incarnation).or_default().features.extend(bulk);
            }
            What::OfExecution(happening) => {
                let Happening::Decided(ruling) = &**happening else { continue };
                let Some(seen) = ruling.seen.as_ref().filter(|_| ruling.outcome.is_ok()) else { continue };
                let features = of_call(&calls, ruling.call).into_iter();
                let life = executions.entry(seen.incarnation).or_default();
                life.features.extend(features.filter(|one| *one != Feature::Batch));
            }
            What::Answered { .. } | What::Stored(_) | What::Message { .. } | What::Fault(_) => {}
        }
    }
}

/// What a call makes of the records that it changes. These operations go on although they were over.
fn of_request(request: &Request, resumed: &[&OperationId]) -> Vec<Feature> {
    match request {
        Request::ClaimTogether(..) => vec![Feature::Batch],
        Request::Fire(Note::Timers(timers)) => {
            let operations = timers.iter().filter_map(|timer| match &timer.record {
                RecordId::Operation(id) => Some(id),
                _ => None,
            });
            let again = |id| resumed.contains(&id).then_some(Feature::BulkAgain);
            operations.flat_map(|id| std::iter::once(Feature::Bulk).chain(again(id))).collect()
        }
        Request::OfExecution(Asked::Operate(_, Operated::Rerun(again))) if again.from.is_some() => {
            vec![Feature::RerunFrom]
        }
        _ => vec![],
    }
}

fn of_task(after: &Task) -> BTreeSet<Feature> {
    let ending = |is: fn(&Ending) -> bool| after.history.last().is_some_and(|past| is(&past.ending));
    let timeouts = &after.timeouts;
    let flow = after.flow.as_deref();
    let slot = after.parent.as_ref().is_some_and(|parent| parent.slot.is_some());
    let has_blob =
        [&after.input, &after.labels].into_iter().flatten().any(|payload| payload.blob().is_some());
    let found = [
        (Feature::Retry, after.attempt > 1),
        (Feature::Deadline, timeouts.schedule_to_close.is_some()),
        (Feature::StartTimeout, timeouts.schedule_to_start.is_some()),
        (Feature::AttemptTimeout, timeouts.start_to_close.is_some()),
        (Feature::HeartbeatTimeout, timeouts.heartbeat.is_some()),
        (
            Feature::TimedOut,
            after.ended().is_some_and(|ended| matches!(ended.outcome, Outcome::TimedOut { .. })),
        ),
        (Feature::Gate, !after.gates().is_empty()),
        (Feature::Gates, after.gates().len() > 1),
        (Feature::Line, after.parked.in_line().is_some()),
        (Feature::RunsInLine, after.running().is_some() && after.parked.in_line().is_some()),
        (Feature::Rate, after.paced().is_some()),
        (Feature::PutOff, after.paced().is_some_and(|paced| paced.put_off)),
        (Feature::Ranked, flow.is_some_and(|flow| flow.priority != Priority::Normal)),
        (Feature::Fairness, flow.is_some_and(|flow| flow.fairness.is_some())),
        (Feature::Remote, after.parent.is_some()),
        (Feature::Join, slot),
        (Feature::Lost, ending(|ending| matches!(ending, Ending::Lost))),
        (Feature::QueuePause, after.parked == Parked::Paused),
        (Feature::Blob, has_blob),
        (Feature::Unique, matches!(KeyUse::of(&after.kind), Some(KeyUse::Open | KeyUse::Waiting))),
        (Feature::Debounce, KeyUse::of(&after.kind) == Some(KeyUse::Burst)),
        (Feature::CronRun, after.id.as_str().starts_with(crons::PREFIX)),
    ];
    found.into_iter().filter_map(|(feature, has)| has.then_some(feature)).collect()
}

fn of_execution(before: Option<&Execution>, after: &Execution) -> BTreeSet<Feature> {
    let paced = after.admission.as_deref().and_then(|admission| admission.paced.as_ref());
    let handled = after.failing.as_ref().map(|failing| &failing.outcome);
    let is_cancelled = |outcome: &ExecutionOutcome| matches!(outcome, ExecutionOutcome::Cancelled { .. });
    let outcome = after.closed().map(|closed| &closed.outcome);
    let was_lost = before.and_then(Execution::turn).is_some()
        && after
            .turn()
            .is_none_or(|turn| before.and_then(Execution::turn).is_some_and(|old| old.lease != turn.lease))
        && after.idle_turns > 0
        && after.closed().is_none();
    let has_blob =
        after.journal.iter().any(|entry| entry.payload().is_some_and(|value| value.blob().is_some()));
    let mut found: BTreeSet<Feature> = [
        (Feature::Deadline, after.deadline_at.is_some() || after.run_deadline_at.is_some()),
        (Feature::TimedOut, matches!(outcome.or(handled), Some(ExecutionOutcome::TimedOut { .. }))),
        (Feature::Gate, !after.gates().is_empty()),
        (Feature::Gates, after.gates().len() > 1),
        (Feature::Line, after.parked.in_line().is_some()),
        (Feature::Rate, paced.is_some()),
        (Feature::PutOff, paced.is_some_and(|paced| paced.put_off)),
        (Feature::Ranked, after.lane.priority != Priority::Normal),
        (Feature::Fairness, after.lane.tenant.is_some()),
        (Feature::Lost, was_lost),
        (Feature::QueuePause, after.parked == Parked::Paused),
        (Feature::Blob, has_blob),
        (Feature::Sealed, after.sealed.is_some()),
        (Feature::Published, after.values.is_some()),
        (Feature::IsChild, after.parent.is_some()),
        (Feature::RunRetry, after.attempt.is_some_and(|attempt| attempt.number > 1)),
        (Feature::OnFailure, handled.is_some_and(ExecutionOutcome::is_failure)),
        (Feature::OnCancel, handled.is_some_and(is_cancelled)),
        (Feature::Paused, after.paused),
        (Feature::Drift, matches!(after.stuck, Some(Stuck::Unreadable(_)))),
        (Feature::Unique, matches!(KeyUse::of_execution(after), Some(KeyUse::Open | KeyUse::Waiting))),
        (Feature::Debounce, KeyUse::of_execution(after) == Some(KeyUse::Burst)),
        (Feature::CronRun, after.id.as_str().starts_with(crons::PREFIX)),
    ]
    .into_iter()
    .filter_map(|(feature, has)| has.then_some(feature))
    .collect();
    found.extend(after.journal.iter().flat_map(|entry| of_entry(&entry.what)));
    found
}

fn of_entry(what: &Happened) -> Vec<Feature> {
    match what {
        Happened::Attempt { error: Some(_), .. } => vec![Feature::Retry],
        Happened::Attempt { error: None, .. } => vec![Feature::TimedAttempt],
        Happened::Step { name, .. } if name.as_str().starts_with(UNDO_PREFIX) => vec![Feature::Undo],
        Happened::Remote { .. } => vec![Feature::Remote],
        Happened::Child { policy, .. } => vec![match policy {
            ParentClosePolicy::Abandon => Feature::Abandoned,
            ParentClosePolicy::RequestCancel => Feature::AskedToStop,
            ParentClosePolicy::Terminate => Feature::EndedChild,
        }],
        Happened::Until { .. } | Happened::Waited { .. } if awaited(what).is_some() => {
            vec![Feature::Callback]
        }
        Happened::Event { name, .. } if is_reserved(name) => vec![Feature::Reported],
        Happened::Until { .. } | Happened::Fired { .. } => vec![Feature::Sleep],
        Happened::Waited { .. } => vec![Feature::Wait],
        Happened::Event { id: Some(_), .. } => vec![Feature::Event, Feature::EventId],
        Happened::Captured { name, .. } if answered_event(name).is_some() => vec![Feature::Answered],
        Happened::Event { id: None, .. } => vec![Feature::Event],
        Happened::Reopened { by: Some(by), .. } | Happened::Note { by: Some(by), .. }
            if by.reason.is_some() =>
        {
            vec![Feature::Reason]
        }
        Happened::Step { .. }
        | Happened::Reopened { .. }
        | Happened::Captured { .. }
        | Happened::EventsCleared { .. }
        | Happened::Patches { .. }
        | Happened::Note { .. } => vec![],
    }
}

/// What a command that took effect says.
fn of_command(seen: &Execution, command: &OnExecution) -> Vec<Feature> {
    let is_open = seen.closed().is_none();
    match command {
        OnExecution::Cancel if is_open => vec![Feature::Cancelled],
        OnExecution::Terminate if is_open => vec![Feature::Terminated],
        OnExecution::Close(close) if matches!(close.ending, RunEnding::ContinueAsNew { .. }) => {
            vec![Feature::NextRun]
        }
        OnExecution::Restart(rerun) if !is_open && rerun.given.is_some() => {
            vec![Feature::Rerun, Feature::OtherInput]
        }
        OnExecution::Restart(rerun) if !is_open && rerun.preserved.is_empty() => vec![Feature::Restart],
        OnExecution::Restart(_) if !is_open => vec![Feature::Rerun],
        // The scripts number remote steps.
        OnExecution::RetryStep { name, .. } if !is_open && name.as_str().ends_with(']') => {
            vec![Feature::RetryStep, Feature::RemoteAgain]
        }
        OnExecution::RetryStep { .. } if !is_open => vec![Feature::RetryStep],
        _ => vec![],
    }
}
