//! Claims of another process's work.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{MutexGuard, PoisonError};

use tickover_core::execution::Execution;
use tickover_core::execution::journal::Entry;
use tickover_core::execution::replay::is_continued;
use tickover_core::flow::FlowRequest;
use tickover_core::id::{ExecutionId, QueueName, WorkflowName};
use tickover_core::limits::CLAIM_MAX;
use tickover_core::task::Task;
use tickover_service::claim::{ClaimRequest, ClaimedTask, FoundWork, WorkElsewhere};
use tickover_service::executions::{StartedTurn, Work};
use tickover_service::lease::LeaseToken as Token;
use tickover_service::{Asks, ServiceError, WorkflowTerms};
use tickover_wire::answer::{AskedLimitsView, OutcomeView, WorkAnswer, WorkTaskView, WorkTurnView};
use tickover_wire::request::{BeginLimits, WorkRequest, WorkerWorkflow};
use tickover_wire::{Attempts, ClaimCount, LeaseToken, Verbatim};

use super::Called;
use super::error::service_error;
use super::remote::{Remote, parsed, stored};

/// About how many executions may have said their limits and not begun. If they are more, they are asked about again.
const ASKED_MAX: usize = 1_000;

impl Remote {
    /// Claims work of a queue. The call isn't repeated here: work whose answer is lost comes back when its lease ends.
    pub(super) async fn work(
        &self,
        queue: &QueueName,
        request: &ClaimRequest,
        alone: bool,
    ) -> Called<WorkElsewhere> {
        let request = self.request(queue, request, alone)?;
        let answer = self.line.api.claim_work(queue, &request).await;
        let lost = tickover_core::error::Reject::LeaseLost;
        match &answer {
            Ok(_) => self.announced().insert(queue.clone()),
            Err(_) => self.announced().remove(queue),
        };
        let WorkAnswer { tasks, turns, asks, limits } =
            answer.map_err(|error| service_error(error, &lost))?;
        self.note_limits(&limits);
        let mut found = WorkElsewhere::default();
        for view in tasks {
            let alone = view.alone;
            match task(view) {
                Ok(claimed) => add(&mut found, alone, Work::Task(Box::new(claimed))),
                // Its lease ends, and others of the answer don't wait for that.
                Err(error) => tracing::warn!(%error, "a claimed task can't be read"),
            }
        }
        for view in turns {
            let alone = view.alone;
            match Box::pin(self.started(view)).await {
                Ok(started) => {
                    self.asked().remove(&started.execution.id);
                    add(&mut found, alone, Work::Turn(Box::new(started)));
                }
                Err(error) => tracing::warn!(%error, "a claimed turn can't be read"),
            }
        }
        self.answer_asks(asks);
        Ok(found)
    }

    fn request(&self, queue: &QueueName, request: &ClaimRequest, alone: bool) -> Called<WorkRequest> {
        let ClaimRequest { worker, max, lease, wait, provides } = request.clone();
        let asked = self.asked().clone();
        let limits = asked.into_iter().map(|(execution, flow)| {
            let flow = stored(&flow)?;
            Ok(BeginLimits { execution, flow })
        });
        let limits: Vec<BeginLimits> = limits.collect::<Called<_>>()?;
        let is_known = self.announced().contains(queue);
        let workflow = |(name, terms): (&WorkflowName, &WorkflowTerms)| WorkerWorkflow {
            name: name.clone(),
            announce: (!is_known && self.line.routes.get(name) == Some(queue)).then_some(true),
            execution_timeout: terms.code.timeouts.execution.map(Into::into),
            run_timeout: terms.code.timeouts.run.map(Into::into),
            on_failure_timeout: terms.code.on_failure.map(Into::into),
            max_attempts: terms.code.attempts.map(Attempts),
            limits: terms.asks.is_some().then_some(true),
        };
        Ok(WorkRequest {
            worker,
            version: self.line.settings.version.clone(),
            max: Some(ClaimCount(max.clamp(1, CLAIM_MAX))),
            lease: Some(lease.into()),
            wait: Some(wait.into()),
            provides: (!provides.is_empty()).then_some(provides),
            kinds: Some(self.line.kinds.clone()),
            workflows: Some(self.line.terms.iter().map(workflow).collect()),
            alone: alone.then_some(true),
            limits: (!limits.is_empty()).then_some(limits),
        })
    }

    fn announced(&self) -> MutexGuard<'_, BTreeSet<QueueName>> {
        self.line.announced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn asked(&self) -> MutexGuard<'_, BTreeMap<ExecutionId, FlowRequest>> {
        self.line.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what limits the begin of these executions, for the next claim.
    fn answer_asks(&self, asks: Vec<AskedLimitsView>) {
        let mut asked = self.asked();
        if asked.len() > ASKED_MAX {
            asked.clear();
        }
        for AskedLimitsView { execution, workflow, input } in asks {
            let code = self.line.terms.get(&workflow).and_then(|terms| terms.asks.as_ref());
            let flow = match (code, input) {
                (Some(Asks::Code(code)), Some(Verbatim(input))) => code(&input),
                (Some(Asks::Code(_) | Asks::Elsewhere(_)) | None, _) => None,
            };
            asked.insert(execution, flow.unwrap_or_default());
        }
    }

    /// A claimed turn, with its journal.
    async fn started(&self, view: WorkTurnView) -> Called<StartedTurn> {
        let WorkTurnView { execution, sealed, input, lease, outcomes, payloads, alone: _ } = view;
        let execution: Execution = parsed(&execution)?;
        let Some(Token { lease, receipt, .. }) = Token::decode(&lease.0) else {
            return Err(ServiceError::Corrupt { reason: "a turn without a lease".to_owned() });
        };
        self.know_all(payloads);
        let input = input.map(|Verbatim(input)| input);
        let mut outcomes =
            outcomes.map(|all| all.iter().map(named_end).collect::<Called<_>>()).transpose()?;
        let sealed = sealed.map(|all| all.iter().map(parsed).collect::<Called<Vec<Entry>>>()).transpose()?;
        let before = execution.entries() - execution.journal.len();
        let journal = match sealed {
            Some(mut sealed) if sealed.len() == before => {
                sealed.extend(execution.journal.iter().cloned());
                sealed
            }
            _ if before == 0 => execution.journal.clone(),
            _ => vec![],
        };
        let brought = outcomes.take();
        let turn = StartedTurn { execution, journal, since: None, input, lease, receipt, brought };
        let known = (self.line.kept)(&turn.execution.id);
        if let Some(since) = known.and_then(|known| since(&known, &turn)) {
            return Ok(StartedTurn { since: Some(since), ..turn });
        }
        if turn.journal.len() == turn.execution.entries() {
            return Ok(turn);
        }
        self.of_turn(&turn.execution, turn.lease, turn.receipt.as_deref()).read_turn(turn, None).await
    }

    /// Reads the journal of a turn that is replayed, if its claim hasn't brought all of it.
    pub(super) async fn read_turn(&self, turn: StartedTurn, _: Option<&Execution>) -> Called<StartedTurn> {
        let mut turn = StartedTurn { since: None, ..turn };
        if turn.journal.len() < turn.execution.entries() {
            turn.journal = Box::pin(self.journal_of(&turn.execution)).await?;
        }
        Ok(turn)
    }

    pub(super) async fn work_apart(
        &self,
        queue: &QueueName,
        request: &ClaimRequest,
        _: &(dyn Fn(&str) -> bool + Send + Sync),
    ) -> Called<FoundWork> {
        let WorkElsewhere { mut work, alone, .. } = Box::pin(self.work(queue, request, true)).await?;
        work.extend(alone);
        Ok(FoundWork { work, ..FoundWork::default() })
    }
}

fn add(found: &mut WorkElsewhere, alone: bool, work: Work) {
    if alone {
        found.alone = Some(work);
    } else {
        found.work.push(work);
    }
}

fn task(view: WorkTaskView) -> Called<ClaimedTask> {
    let WorkTaskView { task, input, details, lease, lease_expires_at, deadline_at, alone: _ } = view;
    let LeaseToken(token) = lease;
    let task: Task = parsed(&task)?;
    let json = |payload: Option<Verbatim>| payload.map(|Verbatim(json)| json);
    let (lease_expires_at, deadline_at) = (lease_expires_at.into(), deadline_at.map(Into::into));
    Ok(ClaimedTask { task, input: json(input), details: json(details), token, lease_expires_at, deadline_at })
}

pub(super) fn named_end(
    OutcomeView { name, end }: &OutcomeView,
) -> Called<tickover_service::executions::NamedEnd> {
    Ok((name.clone(), parsed(end)?))
}

/// What the journal has more than a run in memory knows, if the run may go on from there. The last entries suffice.
fn since(known: &Execution, turn: &StartedTurn) -> Option<Vec<Entry>> {
    let entries = if turn.journal.is_empty() { &turn.execution.journal } else { &turn.journal };
    let first = turn.execution.entries().checked_sub(entries.len())?;
    let from = known.entries().checked_sub(first)?;
    let since = entries.get(from..)?.to_vec();
    let common = known.journal.len().min(from);
    let (theirs, ours) = (entries.get(from - common..from)?, known.journal.iter().rev().take(common));
    let is_beginning = theirs.iter().rev().eq(ours);
    (is_beginning && is_continued(known, &turn.execution, &since)).then_some(since)
}
