//! Cancels, retries, pauses and resumes at random during the fault phase. At its end it leaves every queue and
//! execution running.

use std::collections::BTreeSet;

use tickover_core::duration::Millis;
use tickover_core::execution::journal::Happened;
use tickover_core::execution::{Execution, ExecutionOutcome, ExecutionState, Stuck};
use tickover_core::id::{EventId, ExecutionId, StepName, TaskId};
use tickover_core::payload::{Json, Payload};
use tickover_core::task::{Outcome, Task};
use tickover_service::executions::{Again, remote_id};

use super::crons::{operate_on_crons, random_run, resume_crons, send_to_run};
use super::operations::operate_on_many;
use crate::flows::story::Awaited;
use crate::history::execution::Operation;
use crate::plan::next_minute;
use crate::process::Process;
use crate::process::execution::{event_name, step_name};
use crate::progress::Progress;
use crate::script::{EVENTS, STEPS, Script};
use crate::world::queue;

/// Longer than any sleep of an example workflow.
const LONG: Millis = Millis::from_secs(12 * 3_600);

/// Sends random operations until the fault phase is over.
pub async fn operator(process: Process, progress: &Progress) {
    let dice = &process.gate.dice;
    while process.world.in_fault_phase() {
        process.sleep(dice.secs(5, 240)).await;
        if dice.chance(300) {
            on_the_minute(&process).await;
        }
        if process.world.has_operations && dice.chance(300) {
            operate_on_many(&process, progress).await;
            continue;
        }
        if dice.chance(300) && operate_on_crons(&process).await {
            continue;
        }
        let run = if dice.chance(250) { random_run(&process) } else { None };
        if let Some(run) = run.as_ref().filter(|_| dice.chance(300)) {
            send_to_run(&process, run).await;
            continue;
        }
        let known = run.or_else(|| progress.recall_execution(dice));
        if let Some(id) = known.filter(|_| dice.chance(500)) {
            operate_at_random(&process, &id).await;
            continue;
        }
        let task = progress.recall(dice);
        // The checks judge the result, so the operator ignores it.
        match (dice.between(0, 9), task) {
            (0..=2, Some(task)) => drop(process.cancel(&task, dice.chance(400)).await),
            (3..=7, Some(task)) => drop(process.retry(&task).await),
            // Lost hints are found because younger ones are claimed, and nothing is claimed from a paused queue.
            (8, _) if !process.world.hardship.is_busy => {
                let name = queue(dice.pick(process.world.queues()));
                drop(process.pause(&name, true).await);
                process.sleep(dice.secs(1, 300)).await;
                on_the_minute(&process).await;
                drop(process.pause(&name, false).await);
            }
            _ => {}
        }
    }
    for name in process.world.queues() {
        while process.pause(&queue(name), false).await.is_err() {
            process.sleep(dice.secs(1, 5)).await;
        }
    }
    loop {
        process.sleep(dice.secs(20, 40)).await;
        resume_crons(&process).await;
        for id in process.world.ledger.open() {
            unblock(&process, &id).await;
        }
    }
}

/// The checks judge the result here as well.
async fn operate_at_random(process: &Process, id: &ExecutionId) {
    let dice = &process.gate.dice;
    if let Some(story) = process.world.stories.get(id) {
        return operate_on_flow(process, id, story.is_only_once()).await;
    }
    if dice.chance(250) && retry_task(process, id).await {
        return;
    }
    let failed = failed_step(process, id);
    let operation = match dice.between(0, 18) {
        // Mostly, the operator retries a failed step.
        _ if failed.is_some() && dice.chance(900) => {
            Operation::RetryStep(failed.unwrap_or_else(|| step_name(STEPS[0])))
        }
        _ if is_stuck(process, id) && dice.chance(600) => Operation::Resume,
        0 | 1 => Operation::Cancel,
        2 => Operation::Terminate,
        3 | 4 => Operation::Restart,
        5 => Operation::ClearEvents(dice.pick(EVENTS)),
        6 => Operation::Resume,
        7 => Operation::RetryStep(step_name(dice.pick(STEPS))),
        8..=11 => {
            let [step, from] = [dice.chance(400), dice.chance(600)]
                .map(|some| if some { begun_step(process, id) } else { None });
            let input = if dice.chance(400) { input_again(process, id) } else { None };
            let (steps, preserve) = (step.into_iter().collect(), dice.chance(700));
            Operation::Rerun(Box::new(Again { steps, from, preserve, input }))
        }
        _ => {
            drop(process.operate(id, Operation::Pause).await);
            process.sleep(dice.secs(1, 300)).await;
            Operation::Resume
        }
    };
    drop(process.operate(id, operation).await);
}

/// Operations that would change the outcome are rare.
async fn operate_on_flow(process: &Process, id: &ExecutionId, is_only_once: bool) {
    let dice = &process.gate.dice;
    let operation = match dice.between(0, 15) {
        0 => Operation::Cancel,
        1 => Operation::Terminate,
        2 if !is_only_once => Operation::Restart,
        3 | 4 if !is_only_once => {
            let preserve = dice.chance(700);
            Operation::Rerun(Box::new(Again { steps: vec![], from: None, preserve, input: None }))
        }
        _ => {
            drop(process.operate(id, Operation::Pause).await);
            process.sleep(dice.secs(1, 200)).await;
            Operation::Resume
        }
    };
    drop(process.operate(id, operation).await);
}

/// Another input for the same script, which may be a large one.
fn input_again(process: &Process, id: &ExecutionId) -> Option<Json> {
    let execution = process.world.ledger.execution(id)?;
    let input = match execution.input.as_ref()? {
        Payload::Inline(input) => input.clone(),
        Payload::Blob(at) => process.world.ledger.blob(&at.id)?,
    };
    let padding = process.gate.dice.pick([1, 2_000]);
    Some(Script::parse(&input)?.input_with(&"x".repeat(padding)))
}

/// A step that is in the end of its journal.
fn begun_step(process: &Process, id: &ExecutionId) -> Option<StepName> {
    let execution = process.world.ledger.execution(id)?;
    let begun = execution.journal.iter().filter_map(|entry| match &entry.what {
        Happened::Remote { name } | Happened::Child { name, .. } | Happened::Step { name, .. } => Some(name),
        _ => None,
    });
    let begun: Vec<&StepName> = begun.collect();
    let most = u64::try_from(begun.len()).ok()?.checked_sub(1)?;
    let number = process.gate.dice.between(0, most);
    begun.get(usize::try_from(number).ok()?).map(|name| (*name).clone())
}

/// The step by which an execution has failed.
fn failed_step(process: &Process, id: &ExecutionId) -> Option<StepName> {
    let execution = process.world.ledger.execution(id)?;
    let ExecutionOutcome::Failed { step, .. } = &execution.closed()?.outcome else { return None };
    StepName::parse(step.as_deref()?).ok()
}

/// Runs a remote step's task again, whether or not its execution still waits for it. Returns whether one has failed.
async fn retry_task(process: &Process, id: &ExecutionId) -> bool {
    let Some(execution) = process.world.ledger.execution(id) else { return false };
    let remote = execution.journal.iter().filter_map(|entry| match &entry.what {
        Happened::Remote { name } => Some(remote_id(&execution, name)),
        _ => None,
    });
    let failed = |id: &TaskId| {
        let task = process.world.ledger.task(id);
        task.as_ref()
            .and_then(Task::ended)
            .is_some_and(|ended| !matches!(ended.outcome, Outcome::Completed { .. }))
    };
    let Some(task) = remote.into_iter().find(failed) else { return false };
    let dice = &process.gate.dice;
    if dice.chance(400) {
        let input = Json::string(&format!("{:x} {}", dice.roll(), "x".repeat(dice.pick([0, 2_000]))));
        drop(process.retry_with(&task, input).await);
    } else {
        drop(process.retry(&task).await);
    }
    true
}

fn is_stuck(process: &Process, id: &ExecutionId) -> bool {
    let execution = process.world.ledger.execution(id);
    execution.is_some_and(|execution| matches!(execution.stuck, Some(Stuck::Unreadable(_))))
}

/// Continues an execution that no other actor would continue: resumes it, or sends the events that it waits for.
async fn unblock(process: &Process, id: &ExecutionId) {
    let Some(execution) = process.world.ledger.execution(id) else { return };
    if execution.needs_operator() {
        drop(process.operate(id, Operation::Resume).await);
    } else if let Some(story) = process.world.stories.get(id) {
        let events = if waits_for_long(&execution) { story.events() } else { vec![] };
        let known = ids_of_run(process, &execution).await;
        for Awaited { event, id: event_id, payload, .. } in events {
            let ids = event_id.map(|id| [id_in_run(&id, execution.run), id]);
            if ids.iter().flatten().any(|id| known.contains(id)) {
                continue;
            }
            let event_id = ids.map(|[id, _]| id);
            drop(process.send_event(id, (event_name(event), event_id), payload).await);
        }
    } else if process.world.is_awaiting_event(id) && waits_for_ever(&execution) {
        for event in EVENTS {
            let payload = Json::string(&format!("{:x}", process.gate.dice.roll()));
            drop(process.send_event(id, (event_name(event), None), payload).await);
        }
    }
}

/// The ids of the events of a run.
async fn ids_of_run(process: &Process, execution: &Execution) -> BTreeSet<EventId> {
    // Not what the store has: a rerun that came to nothing may have left segments there.
    let journal = process.journal_of(execution).await.unwrap_or_default();
    let ids = journal.into_iter().filter_map(|entry| match entry.what {
        Happened::Event { id, .. } => id,
        _ => None,
    });
    ids.collect()
}

/// An id counts once over all runs, so what a later run is to receive again has another one.
#[expect(clippy::expect_used, reason = "our own id")]
fn id_in_run(id: &EventId, run: u32) -> EventId {
    match run {
        1 => id.clone(),
        _ => EventId::parse(format!("{}-{run}", id.as_str())).expect("an event's id"),
    }
}

/// Whether only an event can wake it before a day has passed.
fn waits_for_long(execution: &Execution) -> bool {
    let ExecutionState::Waiting(waiting) = &execution.state else { return false };
    let by_itself = waiting.since.plus(LONG);
    !waiting.wake_requested
        && waiting.recheck.is_none()
        && waiting.until.is_some_and(|until| until > by_itself)
}

/// Whether only an event can wake it.
fn waits_for_ever(execution: &Execution) -> bool {
    match &execution.state {
        ExecutionState::Waiting(waiting) => {
            !waiting.wake_requested && waiting.until.is_none() && waiting.recheck.is_none()
        }
        ExecutionState::Pending(_)
        | ExecutionState::Running(_)
        | ExecutionState::Closing(_)
        | ExecutionState::Ended(_) => false,
    }
}

/// Operators' scripts often run on the minute, at the same time as ticks.
async fn on_the_minute(process: &Process) {
    let minute = next_minute(process.world.now());
    process.gate.sleep(minute.since(process.world.now())).await;
}
