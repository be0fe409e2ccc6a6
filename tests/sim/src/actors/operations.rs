//! The operator's operations on many records at once: of all kinds, over a workflow or listed ids, some of them stopped.

use tickover_core::id::{ExecutionId, OperationId, TaskId};
use tickover_core::operation::Action;
use tickover_core::payload::Json;
use tickover_service::operations::{Details, EventToSend, OperationRequest, Selection};
use tickover_service::ports::{ExecutionFilter, TaskFilter};

use crate::dice::Dice;
use crate::plan::execution::workflow;
use crate::process::Process;
use crate::process::execution::event_name;
use crate::progress::Progress;
use crate::script::EVENTS;

/// Starts an operation, sometimes twice, and sometimes stops it, and has it go on.
pub(super) async fn operate_on_many(process: &Process, progress: &Progress) {
    let dice = &process.gate.dice;
    let Some(request) = request(dice, progress) else { return };
    let (service, _) = process.observed();
    // The checks judge the records, so the operator ignores the answers.
    drop(service.start_operation(request.clone()).await);
    if dice.chance(200) {
        drop(service.start_operation(request.clone()).await);
    }
    let Some(id) = request.id.filter(|_| dice.chance(700)) else { return };
    let within = dice.pick([300, 2_000, 20_000]);
    process.sleep(dice.millis(0, within)).await;
    drop(service.stop_operation(&id).await);
    if dice.chance(800) {
        process.sleep(dice.millis(0, 40_000)).await;
        drop(service.resume_operation(&id).await);
    }
}

fn request(dice: &Dice, progress: &Progress) -> Option<OperationRequest> {
    let of_tasks = dice.chance(300);
    let action = match dice.between(0, 9) {
        3 if !of_tasks => Action::RetryStep,
        4 if !of_tasks => Action::Restart,
        5 => Action::Cancel,
        6 => Action::Terminate,
        7.. if !of_tasks => Action::SendEvent,
        _ => Action::Retry,
    };
    let selection = if of_tasks {
        let ids = listed(dice, progress.known_tasks(), |name| TaskId::parse(name).ok());
        Selection::Tasks { filter: TaskFilter::default(), ids }
    } else if dice.chance(400) {
        let filter = ExecutionFilter { workflow: Some(workflow()), ..ExecutionFilter::default() };
        Selection::Executions { filter, ids: vec![] }
    } else {
        let ids = listed(dice, progress.known_executions(), |name| ExecutionId::parse(name).ok());
        Selection::Executions { filter: ExecutionFilter::default(), ids }
    };
    let payload = Some(Json::string(&format!("{:x}", dice.roll())));
    let event = EventToSend { name: event_name(dice.pick(EVENTS)), payload };
    let event = (action == Action::SendEvent).then_some(event);
    let id = Some(OperationId::parse(format!("o-{:x}", dice.roll())).ok()?);
    let (dry_run, details) = (dice.chance(100), Details { selection, event });
    Some(OperationRequest { id, action, dry_run, total: None, details })
}

/// Most of the known ids, sometimes among so many absent ones that they are several pages.
fn listed<I: Clone + Ord>(dice: &Dice, mut known: Vec<I>, parse: impl Fn(String) -> Option<I>) -> Vec<I> {
    known.sort_unstable();
    known.dedup();
    known.retain(|_| dice.chance(800));
    let absent = if dice.chance(400) { dice.between(100, 250) } else { 1 };
    let mut ids: Vec<I> = (0..absent).filter_map(|number| parse(format!("absent-{number}"))).collect();
    for id in known {
        let last = u64::try_from(ids.len()).unwrap_or(0);
        ids.insert(usize::try_from(dice.between(0, last)).unwrap_or(0), id);
    }
    ids
}
