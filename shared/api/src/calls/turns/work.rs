//! Claims of work for programs that run workflows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::execution::ExecutionTimeouts;
use tickover_core::execution::command::CodeTerms;
use tickover_core::flow::FlowRequest;
use tickover_core::id::{ExecutionId, QueueName, WorkflowName};
use tickover_core::limits::Limits;
use tickover_service::claim::{ClaimedTask, WorkElsewhere};
use tickover_service::executions::{StartedTurn, Work};
use tickover_service::lease::LeaseToken;
use tickover_service::queues::routes::Routes;
use tickover_service::{Asks, Service, WorkflowTerms};
use tickover_wire::answer::{AskedLimitsView, TurnLimitsView, WorkAnswer, WorkTaskView, WorkTurnView};
use tickover_wire::request::{self as wire, WorkRequest, WorkerWorkflow};
use tickover_wire::{Attempts, Instant, Verbatim};

use super::{BROUGHT_BYTES, fitting, outcomes, parsed, stored, texts};
use crate::answer::Answer;
use crate::problem::Problem;
use crate::{body, name, request};

/// Claims up to `max` tasks and turns of a queue. Waits up to `wait` for the first one.
pub async fn claim(service: &Service, queue: &str, body: &[u8]) -> Result<Answer, Problem> {
    let queue = name::queue(queue)?;
    let WorkRequest { worker, version, max, lease, wait, provides, kinds, workflows, alone, limits } =
        body::read_or_empty(body)?;
    let given = wire::ClaimRequest { worker, max, lease, wait, provides, ..Default::default() };
    let (request, _) = request::claim(given, service.limits().lease)?;
    let workflows = workflows.unwrap_or_default();
    let asked = asked(limits.unwrap_or_default())?;
    service.open_queue(&queue).await?;
    announce(service, &queue, &workflows).await?;
    let service = service.clone().with_version(version).with_terms(terms(workflows, &asked));
    let kinds: BTreeSet<String> = kinds.unwrap_or_default().iter().map(ToString::to_string).collect();
    let knows = |kind: &str| kinds.contains(kind);
    let found = service.work_elsewhere(&queue, &request, &knows, alone == Some(true)).await?;
    answer(&service, found).await
}

async fn announce(service: &Service, queue: &QueueName, workflows: &[WorkerWorkflow]) -> Result<(), Problem> {
    let announced = workflows.iter().filter(|workflow| workflow.announce == Some(true));
    let routes: Routes = announced.map(|workflow| (workflow.name.clone(), queue.clone())).collect();
    if !routes.is_empty() {
        service.announce_routes(&routes).await?;
    }
    Ok(())
}

fn asked(limits: Vec<wire::BeginLimits>) -> Result<Arc<BTreeMap<ExecutionId, FlowRequest>>, Reject> {
    let read = |(nth, one): (usize, wire::BeginLimits)| {
        let flow: FlowRequest = parsed(&format!("limits[{nth}].flow"), &one.flow)?;
        tickover_service::executions::check_flow(&flow)
            .map_err(|reject| reject.under(&format!("limits[{nth}]")))?;
        Ok((one.execution, flow))
    };
    Ok(Arc::new(limits.into_iter().enumerate().map(read).collect::<Result<_, Reject>>()?))
}

fn terms(
    workflows: Vec<WorkerWorkflow>,
    asked: &Arc<BTreeMap<ExecutionId, FlowRequest>>,
) -> BTreeMap<WorkflowName, WorkflowTerms> {
    let of = |workflow: WorkerWorkflow| {
        let code = CodeTerms {
            timeouts: ExecutionTimeouts {
                execution: workflow.execution_timeout.map(Millis::from),
                run: workflow.run_timeout.map(Millis::from),
            },
            on_failure: workflow.on_failure_timeout.map(Millis::from),
            attempts: workflow.max_attempts.map(|Attempts(attempts)| attempts),
        };
        let asks = (workflow.limits == Some(true)).then(|| Asks::Elsewhere(Arc::clone(asked)));
        (workflow.name, WorkflowTerms { code, asks })
    };
    workflows.into_iter().map(of).collect()
}

async fn answer(service: &Service, found: WorkElsewhere) -> Result<Answer, Problem> {
    let (mut tasks, mut turns, mut left) = (vec![], vec![], BROUGHT_BYTES);
    let work = found.work.into_iter().map(|work| (work, false));
    for (work, alone) in work.chain(found.alone.map(|work| (work, true))) {
        match work {
            Work::Task(claimed) => tasks.push(task(*claimed, alone)?),
            Work::Turn(started) => turns.push(turn(service, *started, alone, &mut left).await?),
        }
    }
    let asks = found.asks.into_iter().map(|(execution, input)| AskedLimitsView {
        execution: execution.id,
        workflow: execution.workflow,
        input: input.map(Verbatim),
    });
    Answer::ok(&WorkAnswer { tasks, turns, asks: asks.collect(), limits: limits(service.limits()) })
}

fn task(claimed: ClaimedTask, alone: bool) -> Result<WorkTaskView, Problem> {
    let ClaimedTask { task, input, details, token, lease_expires_at, deadline_at } = claimed;
    Ok(WorkTaskView {
        task: stored(&task)?,
        input: input.map(Verbatim),
        details: details.map(Verbatim),
        lease: tickover_wire::LeaseToken(token),
        lease_expires_at: lease_expires_at.into(),
        deadline_at: deadline_at.map(Instant),
        alone,
    })
}

async fn turn(
    service: &Service,
    started: StartedTurn,
    alone: bool,
    left: &mut usize,
) -> Result<WorkTurnView, Problem> {
    let brought = service.brought_with(&started, *left / 2).await;
    let StartedTurn { execution, journal, input, lease, receipt, since: _, brought: _ } = started;
    let before = journal.len().saturating_sub(execution.journal.len());
    let before = journal.get(..before).unwrap_or_default();
    let sealed = fitting(before, left)?;
    let payloads = texts(brought.payloads);
    *left = left.saturating_sub(payloads.values().map(|json| json.0.len()).sum());
    let token = LeaseToken { incarnation: execution.incarnation, lease, receipt };
    Ok(WorkTurnView {
        execution: stored(&execution)?,
        sealed: (!sealed.is_empty() && sealed.len() == before.len()).then_some(sealed),
        input: input.map(Verbatim),
        lease: tickover_wire::LeaseToken(token.encode()),
        outcomes: brought.outcomes.map(outcomes).transpose()?,
        payloads,
        alone,
    })
}

fn limits(limits: &Limits) -> TurnLimitsView {
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    TurnLimitsView {
        payload_bytes: count(limits.payload_bytes),
        journal_entries: count(limits.journal_entries),
        fan_out: count(limits.fan_out),
        pending_events: count(limits.pending_events),
        open_steps: count(limits.open_steps),
        carry_trace: limits.carry_trace,
    }
}
