//! The loads whose keys are counted: lives of tasks, and executions of one workflow, a number of them each second.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use tickover_core::decision::Write;
use tickover_core::duration::Millis;
use tickover_core::execution::ExecutionOutcome;
use tickover_core::execution::command::{Cleanup, Close, Ending};
use tickover_core::execution::journal::{Entry, Happened, StepOutcome};
use tickover_core::id::{ExecutionId, StepName, WorkflowName};
use tickover_core::limits::Limits;
use tickover_core::task::Failure;
use tickover_core::timeout::{AttemptTimeout, OnTimeout};
use tickover_service::executions::{StartRequest, Work as Taken};
use tickover_service::memory::{MemoryQueue, MemoryStore, Queues};
use tickover_service::ports::Clock as _;
use tickover_service::system::SystemIds;
use tickover_service::{Ports, Service};

use super::{Hottest, Keys};
use crate::scene::{LeapClock, claim_request, queue_name, request};

/// Messages received from a queue at once.
const BATCH: usize = 10;
/// One in this many fails.
const FAILING: usize = 5;

/// The kind of work in a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Tasks, each scheduled, claimed, and completed or failed for good.
    Tasks,
    /// The same with a timeout of each attempt, which the claim writes into the index.
    TimedTasks,
    /// Executions of one workflow, each with a turn of two steps.
    Executions,
}

/// An amount of work of a kind, a fifth of which fails.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub work: Work,
    pub count: usize,
    pub per_second: usize,
    /// The number of shards of the due index.
    pub due_shards: u16,
}

/// Runs a load in virtual time; returns the hottest keys.
///
/// # Errors
///
/// If the service refuses a call.
pub async fn run(load: Load) -> Result<Vec<Hottest>> {
    let (keys, clock) = (Keys::default(), Arc::new(LeapClock::default()));
    for from in (0..load.count).step_by(load.per_second) {
        // A new store each second, because ended records would only fill the memory. So the record of the queue is
        // written once a second, where a deployment writes it once a minute.
        keys.forget_records();
        let service = service(&keys, &clock, load.due_shards);
        let numbers: Vec<usize> = (from..load.count.min(from + load.per_second)).collect();
        for batch in numbers.chunks(BATCH) {
            match load.work {
                Work::Tasks => tasks(&service, batch, false).await?,
                Work::TimedTasks => tasks(&service, batch, true).await?,
                Work::Executions => executions(&service, batch).await?,
            }
        }
        clock.advance(Millis::from_secs(1));
    }
    Ok(keys.hottest())
}

fn service(keys: &Keys, clock: &Arc<LeapClock>, due_shards: u16) -> Service {
    let (counted, at) = (keys.clone(), Arc::clone(clock));
    let store = MemoryStore::watched(Box::new(move |writes: &[Write]| counted.count(writes, at.now())));
    let queue = MemoryQueue::new(clock.clone(), Queues::OnOpen);
    let ports = Ports {
        store: Arc::new(store),
        queue: Arc::new(queue),
        clock: clock.clone(),
        ids: Arc::new(SystemIds),
    };
    Service::new(ports, Limits { due_shards, ..Limits::default() })
}

async fn tasks(service: &Service, numbers: &[usize], timed: bool) -> Result<()> {
    for number in numbers {
        let mut request = request("work", Some(&format!("task-{number}")), Some("{\"to\":\"ada\"}"));
        let timeout = AttemptTimeout { after: Millis::from_secs(60), on_timeout: OnTimeout::Retry };
        request.timeouts.start_to_close = timed.then_some(timeout);
        service.schedule(request).await?;
    }
    let claimed = service.claim(&queue_name("work"), &claim_request(numbers.len())).await?;
    ensure!(claimed.len() == numbers.len(), "{} of {} were claimed", claimed.len(), numbers.len());
    for (task, number) in claimed.iter().zip(numbers) {
        let (id, lease) = (&task.task.id, &task.token);
        if number % FAILING == 0 {
            service.fail(id, lease, Failure::new("smtp", "no such address"), false).await?;
        } else {
            service.complete(id, lease, None).await?;
        }
    }
    Ok(())
}

async fn executions(service: &Service, numbers: &[usize]) -> Result<()> {
    let queue = queue_name("flows");
    for number in numbers {
        let id = Some(ExecutionId::parse(format!("order-{number}"))?);
        let request =
            StartRequest { id, ..StartRequest::new(WorkflowName::parse("checkout")?, queue.clone()) };
        service.start(request).await?;
    }
    for number in numbers {
        let taken = service.next_work(&queue, &claim_request(1)).await?.pop().context("a turn")?;
        let Taken::Turn(turn) = taken else { anyhow::bail!("received a task, and expected a turn") };
        let steps = [1, 2].map(|step| -> Result<Entry> {
            let (name, outcome) =
                (StepName::parse(format!("step-{step}"))?, StepOutcome::Completed { output: None });
            Ok(Entry {
                at: service.now(),
                what: Happened::Step { name, outcome, attempts: Some(1), expired: None, errors: vec![] },
            })
        });
        let [first, second] = steps;
        let execution =
            service.record_turn(&turn.execution, turn.lease, vec![first?], Cleanup::default()).await?;
        let outcome = if number % FAILING == 0 {
            let error = Failure::new("card", "declined");
            ExecutionOutcome::Failed { error, step: None, retries_exhausted: false }
        } else {
            ExecutionOutcome::Completed { output: None }
        };
        let ending = Ending::Outcome(outcome);
        let close = Close {
            lease: turn.lease,
            entries: vec![second?],
            ending,
            cleanup: Cleanup::default(),
            values: None,
        };
        service.close_turn(&execution, close).await?;
    }
    Ok(())
}
