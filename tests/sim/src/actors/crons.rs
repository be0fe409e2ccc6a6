//! What the operator does to crons: pauses, resumes, triggers, changes and deletes them.

use tickover_core::cron::State;
use tickover_core::cron::plan::{Plan, When};
use tickover_core::id::{CronId, EventId, ExecutionId};
use tickover_core::payload::Json;
use tickover_service::crons::CronRequest;

use crate::plan::crons::interval;
use crate::process::Process;
use crate::process::execution::event_name;
use crate::script::EVENTS;

/// Operates on a random cron. Returns whether there is one.
pub(super) async fn operate_on_crons(process: &Process) -> bool {
    let dice = &process.gate.dice;
    let known = known(process);
    let last = u64::try_from(known.len()).unwrap_or(0).checked_sub(1);
    let Some(id) = last.and_then(|last| known.get(usize::try_from(dice.between(0, last)).unwrap_or(0)))
    else {
        return false;
    };
    let (service, _) = process.observed();
    // The checks judge the records, so the operator ignores the answers.
    match dice.between(0, 9) {
        0..=4 => drop(service.trigger_cron(id).await),
        5 | 6 => {
            drop(service.pause_cron(id).await);
            process.sleep(dice.secs(1, 300)).await;
            drop(service.resume_cron(id).await);
        }
        7 | 8 => {
            if let Some(request) = changed(process, id) {
                drop(service.replace_cron(request).await);
            }
        }
        _ => drop(service.delete_cron(id).await),
    }
    true
}

/// A random execution that a cron has started.
pub(super) fn random_run(process: &Process) -> Option<ExecutionId> {
    let crons = process.world.ledger.crons();
    let runs = crons.iter().flat_map(|noted| {
        noted.cron.runs.iter().filter_map(|run| ExecutionId::parse(noted.cron.run_id(&run.occurrence)).ok())
    });
    let mut runs: Vec<ExecutionId> = runs.collect();
    runs.sort_unstable();
    runs.dedup();
    runs.retain(|id| process.world.ledger.execution(id).is_some());
    let last = u64::try_from(runs.len()).unwrap_or(0).checked_sub(1)?;
    runs.get(usize::try_from(process.gate.dice.between(0, last)).unwrap_or(0)).cloned()
}

/// Sends an event with an id to an execution that a cron has started.
pub(super) async fn send_to_run(process: &Process, id: &ExecutionId) {
    let dice = &process.gate.dice;
    let event_id = EventId::parse(format!("id-{}", dice.between(0, 2))).ok();
    let payload = Json::string(&format!("{:x}", dice.roll()));
    drop(process.send_event(id, (event_name(dice.pick(EVENTS)), event_id), payload).await);
}

/// Leaves no cron paused.
pub(super) async fn resume_crons(process: &Process) {
    for id in known(process) {
        let record = process.world.ledger.cron(&id);
        if record.is_some_and(|record| matches!(record.state, State::Paused { .. })) {
            drop(process.observed().0.resume_cron(&id).await);
        }
    }
}

fn known(process: &Process) -> Vec<CronId> {
    let mut known: Vec<CronId> =
        process.world.ledger.crons().into_iter().map(|noted| noted.cron.id).collect();
    known.sort_unstable();
    known.dedup();
    known
}

/// The same cron with another interval.
fn changed(process: &Process, id: &CronId) -> Option<CronRequest> {
    let request = process.world.crons.iter().find(|one| one.id.as_ref() == Some(id))?;
    let when = When::Every(interval(&process.gate.dice)?);
    Some(CronRequest { plan: Plan { when, ..request.plan.clone() }, ..request.clone() })
}
