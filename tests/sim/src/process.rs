//! One process: a service with a slow and unreliable connection to the world. Every call and every decision is
//! recorded.

pub mod execution;
pub mod kept;

use std::sync::Arc;

use async_trait::async_trait;
use futures::FutureExt as _;
use tickover_core::batch::BatchKey;
use tickover_core::command::Context;
use tickover_core::cron::{self, Cron};
use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::execution::journal::Entry;
use tickover_core::execution::{Command as ExecutionCommand, Decision as ExecutionDecision, Execution};
use tickover_core::gate;
use tickover_core::id::{Incarnation, Owner, QueueName, TaskId};
use tickover_core::payload::Json;
use tickover_core::task::{self, Task};
use tickover_core::time::Timestamp;
use tickover_service::callbacks::{SecretKeeper, Secrets};
use tickover_service::claim::{ClaimRequest, ClaimedTask, Together};
use tickover_service::lease::LeaseToken;
use tickover_service::ports::{Clock as _, Received};
use tickover_service::tasks::schedule::{ScheduleRequest, Scheduled};
use tickover_service::tasks::work::Beat;
use tickover_service::tick::TickReport;
use tickover_service::to_end::to_end;
use tickover_service::{Ports, Rules, Service, ServiceError};

use super::bugs::{self, Bug};
use super::classes::Classes;
use super::gate::Gate;
use super::history::execution::{Happening, Ruling};
use super::history::{Actor, Answer, Decided, Fault, Held, Made, Note, Report, Request, What};
use super::queue::SimQueue;
use super::store::SimStore;
use super::world::World;
use kept::KeptRuns;

/// How long a tick runs at most.
const TICK_BUDGET: Millis = Millis::from_secs(50);
/// How soon another process takes the place of one that has died, where nothing else goes wrong.
const SOON: Millis = Millis::from_secs(1);

/// The secret that signs tokens, which a deployment keeps outside of the table.
#[derive(Debug)]
struct Deployed;

#[async_trait]
impl SecretKeeper for Deployed {
    async fn read(&self) -> Result<String, ServiceError> {
        Ok("a secret of thirty-two characters".to_owned())
    }
}

/// A process, from its start to its end or death.
#[derive(Clone)]
pub struct Process {
    pub world: Arc<World>,
    pub gate: Arc<Gate>,
    /// Its queues, for actors that read them directly.
    pub queue: Arc<SimQueue>,
    /// What its workers remember of runs.
    pub kept: Arc<KeptRuns>,
    service: Service,
}

/// Runs a process until the run ends, and restarts it whenever it dies.
pub async fn keep_alive(world: &Arc<World>, actor: Actor, run: impl AsyncFn(Process)) {
    for life in 0.. {
        let gate = Arc::new(Gate::new(Arc::clone(world), actor, life));
        let process = Process::new(Arc::clone(world), Arc::clone(&gate));
        tokio::select! {
            biased;
            () = gate.crashed() => {}
            () = run(process) => return,
        }
        let restart = if world.hardship.is_calm { SOON } else { gate.dice.millis(100, 60_000) };
        world.fault(actor, Fault::Crashed(restart));
        gate.sleep(restart).await;
    }
}

impl Process {
    fn new(world: Arc<World>, gate: Arc<Gate>) -> Self {
        let queue = Arc::new(SimQueue(Arc::clone(&gate), Classes::default()));
        let ports = Ports {
            store: Arc::new(SimStore(Arc::clone(&gate))),
            queue: Arc::clone(&queue) as _,
            clock: Arc::clone(&gate.clock) as _,
            ids: Arc::new(super::dice::Dice::new(gate.dice.roll(), "ids")),
        };
        let service = Service::new(ports, world.limits.clone());
        let service = service.with_callbacks(Secrets::Kept(Arc::new(Deployed)), None);
        let kept = Arc::new(KeptRuns::default());
        let known = Arc::clone(&kept);
        let service = service.with_kept(Arc::new(move |id| known.record(id)));
        Self { world, gate, queue, kept, service }
    }

    /// The time by its own clock.
    pub fn now(&self) -> Timestamp {
        self.gate.clock.now()
    }

    /// Works for a random time, up to this long; where nothing is random, for a second.
    pub async fn work_for(&self, at_most_ms: u64) {
        let span = if self.world.hardship.is_calm { SOON } else { self.gate.dice.millis(1, at_most_ms) };
        self.sleep(span).await;
    }

    /// Waits by its own clock.
    pub async fn sleep(&self, span: Millis) {
        self.sleep_until(self.now().plus(span)).await;
    }

    /// Waits by its own clock.
    pub async fn sleep_until(&self, instant: Timestamp) {
        self.gate.clock.sleep_until(instant).await;
    }

    /// Schedules tasks; there is one result for each.
    pub async fn schedule(&self, mut requests: Vec<ScheduleRequest>) -> Result<Vec<Made>, ServiceError> {
        let request = Request::Schedule(requests.iter().map(|request| request.id.clone()).collect());
        let made = self.call(
            request,
            |results: &Vec<_>| answered(results),
            async |service| match requests.len() {
                1 => Ok(vec![service.schedule(requests.remove(0)).await]),
                _ => service.schedule_batch(requests).await,
            },
        );
        let made = made.await?.into_iter().map(|one| one.map(|one| made_of(&one)));
        made.collect()
    }

    /// Claims tasks from a queue.
    pub async fn claim(
        &self,
        queue: &QueueName,
        request: &ClaimRequest,
    ) -> Result<Vec<(ClaimedTask, Held)>, ServiceError> {
        let asked = Request::Claim(queue.clone());
        let claimed = |tasks: &Vec<ClaimedTask>| Answer::Claimed(tasks.iter().filter_map(held).collect());
        let tasks = self.call(asked, claimed, async |service| service.claim(queue, request).await).await?;
        Ok(tasks.into_iter().filter_map(with_held).collect())
    }

    /// Claims tasks of one kind and tenant, and waits for more of them.
    pub async fn claim_together(
        &self,
        queue: &QueueName,
        request: &ClaimRequest,
        fill: Millis,
    ) -> Result<Vec<(ClaimedTask, Held)>, ServiceError> {
        let asked = Request::ClaimTogether(queue.clone(), fill);
        let claimed = |tasks: &Vec<ClaimedTask>| Answer::Claimed(tasks.iter().filter_map(held).collect());
        let together = Together { same_key: true, fill };
        let claim = async |service: Service| service.claim_together(queue, request, together).await;
        let tasks = self.call(asked, claimed, claim).await?;
        Ok(tasks.into_iter().filter_map(with_held).collect())
    }

    /// Claims one task.
    pub async fn claim_by_id(
        &self,
        id: &TaskId,
        request: &ClaimRequest,
    ) -> Result<Option<(ClaimedTask, Held)>, ServiceError> {
        let asked = Request::ClaimById(id.clone());
        let claimed = |task: &Option<ClaimedTask>| Answer::Claimed(task.iter().filter_map(held).collect());
        let task = self.call(asked, claimed, async |service| service.claim_by_id(id, request).await).await?;
        Ok(task.and_then(with_held))
    }

    /// Reports on a claimed task.
    pub async fn report(&self, held: &Held, report: Report) -> Result<(), ServiceError> {
        let asked = Request::Report(held.clone(), report.clone());
        let (id, token) = (&held.task, held.token.as_str());
        let carry_out = async |service: Service| {
            let closed = match report {
                Report::Heartbeat(sign_of) => {
                    let renewed = service.beat(id, token, Beat { sign_of, ..Beat::default() }).await?;
                    return Ok(Answer::Renewed { lease_expires_at: renewed.lease_expires_at });
                }
                Report::Complete(output) => service.complete(id, token, Some(output)).await?,
                Report::Fail { error, retryable } => service.fail(id, token, error, retryable).await?,
                Report::Release => service.release(id, token).await?,
            };
            Ok(Answer::Closed { duplicate: closed.duplicate })
        };
        self.call(asked, Answer::clone, carry_out).await.map(drop)
    }

    pub async fn cancel(&self, id: &TaskId, force: bool) -> Result<(), ServiceError> {
        let asked = Request::Cancel(id.clone());
        self.call(asked, |_| Answer::Done, async |service| service.cancel(id, force).await).await.map(drop)
    }

    pub async fn retry(&self, id: &TaskId) -> Result<(), ServiceError> {
        let asked = Request::Retry(id.clone());
        self.call(asked, |_| Answer::Done, async |service| service.retry(id).await).await.map(drop)
    }

    /// The same with another input.
    pub async fn retry_with(&self, id: &TaskId, input: Json) -> Result<(), ServiceError> {
        let asked = Request::Retry(id.clone());
        let retry = async |service: Service| service.retry_with(id, input).await;
        self.call(asked, |_| Answer::Done, retry).await.map(drop)
    }

    /// Pauses or resumes a queue.
    pub async fn pause(&self, queue: &QueueName, paused: bool) -> Result<(), ServiceError> {
        let asked = Request::Pause(queue.clone(), paused);
        let pause = async |service: Service| service.pause_queue(queue, paused).await;
        self.call(asked, |_| Answer::Done, pause).await.map(drop)
    }

    /// Runs the tick.
    pub async fn tick(&self, scheduled_at: Timestamp) -> Result<TickReport, ServiceError> {
        let stop_at = self.now().plus(TICK_BUDGET);
        let tick = async |service: Service| service.tick(scheduled_at, stop_at).await;
        self.call(Request::Tick(scheduled_at), |report| Answer::Ticked(*report), tick).await
    }

    /// Processes a message of the queue of timers; returns whether the message is to be deleted.
    pub async fn fire(&self, message: &Received) -> bool {
        let stop_at = self.now().plus(TICK_BUDGET);
        let asked = Request::Fire(Note::of(&message.body));
        let fire = async |service: Service| {
            Ok(match service.fire(message, stop_at).await {
                Ok(fired) => Answer::Fired(fired),
                Err(error) => Answer::NotFired(error.to_string()),
            })
        };
        let answer = self.call(asked, Answer::clone, fire).await;
        matches!(answer, Ok(Answer::Fired(_)))
    }

    /// Makes a call whose caller may leave: as in a deployment, the call runs to its end all the same. `None` if the caller
    /// has left.
    pub async fn until_left<T: Send + 'static>(
        &self,
        call: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let call = if self.world.bug == Some(Bug::CallsCut) { call.boxed() } else { to_end(call).boxed() };
        self.gate.until_left(call).await
    }

    /// The service itself, for an engine that makes its own calls. All decisions in them are recorded under one call,
    /// whose number is returned as well.
    pub fn observed(&self) -> (Service, u64) {
        let call = self.world.next_call();
        let rules = Observed { world: Arc::clone(&self.world), actor: self.gate.actor, call };
        (self.service.clone().with_rules(Arc::new(rules)), call)
    }

    /// A call, recorded with its answer and with every decision made for it.
    async fn call<T>(
        &self,
        request: Request,
        answer: impl FnOnce(&T) -> Answer,
        carry_out: impl AsyncFnOnce(Service) -> Result<T, ServiceError>,
    ) -> Result<T, ServiceError> {
        let call = self.world.next_call();
        let actor = self.gate.actor;
        self.world.note(actor, What::Called { call, request });
        let rules = Observed { world: Arc::clone(&self.world), actor, call };
        let result = carry_out(self.service.clone().with_rules(Arc::new(rules))).await;
        let answer = match &result {
            Ok(value) => answer(value),
            Err(error) => Answer::Failed(error.clone()),
        };
        self.world.note(actor, What::Answered { call, answer });
        result
    }
}

/// The rules, with each decision recorded. A bug is applied underneath.
struct Observed {
    world: Arc<World>,
    actor: Actor,
    call: u64,
}

impl Rules for Observed {
    fn decide_task(
        &self,
        task: Option<&Task>,
        command: &task::Command,
        context: &Context<'_>,
    ) -> task::Decision {
        if self.world.is_runaway() {
            // A loop without end at one instant may never make a call, so it is stopped here.
            return task::Decision::refuse(task, Reject::NotFound);
        }
        let mut decision = bugs::decide(&self.world, self.actor, task, command, context);
        bugs::untold(self.world.bug, &mut decision.effects);
        let decided = Decided {
            call: self.call,
            now: context.now,
            nonce: context.nonce,
            seen: task.cloned().map(Box::new),
            command: command.clone(),
            outcome: decision.reply().cloned().map_err(Clone::clone),
            effects: decision.effects.clone(),
        };
        self.world.note(self.actor, What::Decided(Box::new(decided)));
        decision
    }

    fn decide_execution(
        &self,
        execution: Option<&Execution>,
        command: &ExecutionCommand,
        context: &Context<'_>,
    ) -> ExecutionDecision {
        if self.world.is_runaway() {
            return ExecutionDecision::refuse(execution, Reject::NoExecution);
        }
        let mut decision = bugs::decide_execution(&self.world, execution, command, context);
        bugs::untold(self.world.bug, &mut decision.effects);
        let ruling = Ruling {
            call: self.call,
            now: context.now,
            nonce: context.nonce,
            seen: execution.cloned().map(Box::new),
            command: command.clone(),
            outcome: decision.reply().cloned().map_err(Clone::clone),
            effects: decision.effects.clone(),
        };
        self.world.note(self.actor, What::OfExecution(Box::new(Happening::Decided(Box::new(ruling)))));
        decision
    }

    fn is_continued(&self, known: &Execution, record: &Execution, since: &[Entry]) -> bool {
        bugs::is_continued(self.world.bug, known, record, since)
    }

    fn decide_cron(
        &self,
        cron: Option<&Cron>,
        command: &cron::Command,
        context: &Context<'_>,
    ) -> cron::Decision {
        bugs::decide_cron(self.world.bug, cron, command, context)
    }

    fn batch_key(&self, task: &Task) -> BatchKey {
        bugs::batch_key(self.world.bug, task)
    }

    fn clear_places(&self, gate: &mut gate::Gate, now: Timestamp) {
        bugs::clear_places(self.world.bug, gate, now);
    }

    fn take_place(&self, gate: &mut gate::Gate, take: &gate::Take, now: Timestamp) -> gate::Taken {
        bugs::take_place(self.world.bug, gate, take, now)
    }

    fn free_place(&self, gate: &mut gate::Gate, owner: &Owner, incarnation: Incarnation, before: u64) {
        bugs::free_place(self.world.bug, gate, owner, incarnation, before);
    }

    fn withdraw_place(&self, gate: &mut gate::Gate, owner: &Owner, incarnation: Incarnation, before: u64) {
        bugs::withdraw_place(self.world.bug, gate, owner, incarnation, before);
    }

    fn offer_places(
        &self,
        gate: &mut gate::Gate,
        candidates: &[gate::Candidate],
        now: Timestamp,
    ) -> Vec<gate::Waiter> {
        bugs::offer_places(&self.world, gate, candidates, now)
    }

    fn reserve_start(
        &self,
        gate: &mut gate::Gate,
        asked: &gate::AskedStart,
        first: bool,
        now: Timestamp,
    ) -> gate::Reservation {
        bugs::reserve_start(self.world.bug, gate, asked, first, now)
    }
}

fn answered(results: &[Result<Scheduled, ServiceError>]) -> Answer {
    Answer::Scheduled(results.iter().map(|one| one.as_ref().map(made_of).map_err(Clone::clone)).collect())
}

fn made_of(scheduled: &Scheduled) -> Made {
    let task = &scheduled.task;
    Made { task: task.id.clone(), incarnation: task.incarnation, existed: scheduled.existed }
}

fn held(claimed: &ClaimedTask) -> Option<Held> {
    let LeaseToken { incarnation, lease, .. } = LeaseToken::decode(&claimed.token)?;
    Some(Held { task: claimed.task.id.clone(), incarnation, lease, token: claimed.token.clone() })
}

fn with_held(claimed: ClaimedTask) -> Option<(ClaimedTask, Held)> {
    let held = held(&claimed)?;
    Some((claimed, held))
}
