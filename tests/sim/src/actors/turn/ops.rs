//! The operations of a script. Each acts on what the journal says about it.

use std::num::{NonZeroU16, NonZeroU32};

use tickover_core::duration::Millis;
use tickover_core::execution::journal::{ANSWER_PREFIX, Entry, Happened, StepOutcome, pending_events};
use tickover_core::execution::{Execution, ExecutionTimeouts, Parent, ParentClosePolicy, Slot};
use tickover_core::flow::{Concurrency, FlowRequest, Priority, Rate};
use tickover_core::id::{EventId, EventName, ExecutionId, FlowKey, Nonce, StepName};
use tickover_core::payload::Json;
use tickover_core::retry::RetryPolicy;
use tickover_core::task::Failure;
use tickover_core::time::Timestamp;
use tickover_core::timeout::{AttemptTimeout, LifeTimeout, OnTimeout, Timeouts};
use tickover_service::executions::{RemoteStep, StartRequest};

use super::{Behaviour, Block, Flow, RunningTurn, Stop, step};
use crate::dice::Dice;
use crate::history::execution::Done;
use crate::plan::QUEUES;
use crate::plan::execution::{kind, workflow};
use crate::process::execution::event_name;
use crate::script::Op;
use crate::world::{Build, queue};

/// Of a thousand remote steps and children, so many are limited.
const LIMITED: u64 = 300;

impl RunningTurn<'_> {
    pub(super) async fn op(&mut self, number: usize, op: Op) -> Result<Flow, Stop> {
        let name = self.name_of(number);
        if self.has_ended(&name) {
            let last = self.last(&name);
            let failed = matches!(last, Some(Happened::Step { outcome: StepOutcome::Exhausted { .. }, .. }));
            return Ok(if failed { Flow::Failed(name) } else { Flow::Next });
        }
        match op {
            Op::Step { failures, pause, size, exhausts } => {
                // After an operator has reopened it, it succeeds.
                let again =
                    |entry: &Entry| matches!(&entry.what, Happened::Reopened { name: of, .. } if *of == name);
                let exhausts = exhausts && !self.journal.iter().any(again);
                let size = (!exhausts).then_some(size);
                self.step(name, failures, pause, size).await
            }
            Op::Timed(within) => self.timed(name, within).await,
            Op::Sleep(span) => Ok(self.sleep(name, span)),
            Op::Wait { event, timeout } => self.wait(name, event_name(event), timeout).await,
            Op::Callback { within, heartbeat } => self.callback(name, within, heartbeat).await,
            Op::Remote { count, joined, needed } => self.remote(number, count, (joined, needed)).await,
            Op::AllChildren => Ok(self.all_children()),
            Op::Child { policy, awaited } => self.child(number, name, policy, awaited).await,
        }
    }

    /// The name of an operation in this worker's code. A wrong deployment has renamed one, and the code that repairs it
    /// goes on with what either has begun.
    fn name_of(&self, number: usize) -> StepName {
        let (own, (old, new)) = (step(&format!("s{number}")), self.script.renamed());
        let is_renamed = match self.process.world.build() {
            Build::First => false,
            Build::Wrong => true,
            Build::Repaired => self.last(&new).is_some(),
        };
        if is_renamed && own == old { new } else { own }
    }

    /// Whether the execution is paused or cancelled, so that nothing new may start.
    pub(super) fn held(&self) -> Option<Flow> {
        self.execution.paused.then(|| Flow::Blocked(Block::default()))
    }

    pub(super) async fn step(
        &mut self,
        name: StepName,
        failures: u32,
        pause: Millis,
        size: Option<usize>,
    ) -> Result<Flow, Stop> {
        let now = self.process.now();
        let (mut attempt, mut begun_at) = (1, now);
        if let Some(Happened::Attempt { attempt: last, first_at, next_at, .. }) = self.last(&name) {
            if let Some(next_at) = next_at.filter(|at| *at > now) {
                return Ok(Block::until(next_at));
            }
            (attempt, begun_at) = (last + 1, *first_at);
        }
        if let Some(held) = self.held() {
            return Ok(held);
        }
        if !self.fresh.is_empty() && self.behaviour == Behaviour::Careful {
            self.record().await?;
        }
        self.maybe_fall_silent()?;
        self.did(Done::Began(name.clone()));
        self.work().await?;
        if attempt <= failures {
            let next_at = self.process.now().plus(pause);
            let error = Some(Failure::new("broken", "for now"));
            let (first_at, at, progress) = (begun_at, Some(next_at), None);
            self.push(Happened::Attempt {
                name,
                attempt,
                first_at,
                error,
                next_at: at,
                progress,
                details: None,
                is_ongoing: false,
                errors: vec![],
            });
            return Ok(Block::until(next_at));
        }
        let dice = &self.process.gate.dice;
        let output = Json::string(&format!("{:x} {}", dice.roll(), "x".repeat(size.unwrap_or(0))));
        let output = self.process.keep(output).await?;
        let outcome = match size {
            Some(_) => StepOutcome::Completed { output: Some(output) },
            None => StepOutcome::Exhausted { error: output },
        };
        self.push(Happened::Step {
            name: name.clone(),
            outcome,
            attempts: Some(attempt),
            expired: None,
            errors: vec![],
        });
        if self.behaviour == Behaviour::Careful {
            self.record().await?;
        }
        Ok(if size.is_some() { Flow::Next } else { Flow::Failed(name) })
    }

    /// A step's body: it takes time.
    pub(super) async fn work(&mut self) -> Result<(), Stop> {
        let dice = &self.process.gate.dice;
        let lease = self.execution.turn().map_or(Millis::ZERO, |turn| turn.lease_length);
        if !self.process.world.in_fault_phase() || !dice.chance(300) {
            self.process.work_for(3_000).await;
            return Ok(());
        }
        if self.behaviour == Behaviour::Slow {
            self.process.sleep(lease.saturating_add(dice.millis(0, 60_000))).await;
            return Ok(());
        }
        for _ in 0..dice.between(1, 3) {
            self.process.sleep(Millis::new(lease.as_u64() / 3)).await;
            self.renew().await?;
        }
        Ok(())
    }

    fn sleep(&mut self, name: StepName, span: Millis) -> Flow {
        let until = self.until(name, span);
        if until <= self.process.now() { Flow::Next } else { Block::until(until) }
    }

    /// When a sleep or wait ends. It is fixed when the run first reaches it.
    fn until(&mut self, name: StepName, span: Millis) -> Timestamp {
        if let Some(Happened::Until { until, .. }) = self.last(&name) {
            return *until;
        }
        let until = self.process.now().plus(span);
        self.push(Happened::Until { name, until });
        until
    }

    pub(super) async fn wait(
        &mut self,
        name: StepName,
        event: EventName,
        timeout: Option<Millis>,
    ) -> Result<Flow, Stop> {
        let until = timeout.map(|span| self.until(name.clone(), span));
        if let Some(held) = self.held() {
            return Ok(held);
        }
        let free = pending_events(&self.journal);
        let first = free.into_iter().find_map(|entry| {
            let Happened::Event { name, payload, id, .. } = &entry.what else { return None };
            (*name == event).then(|| (payload.clone(), id.clone()))
        });
        match first {
            Some((payload, id)) => {
                let payload = match &payload {
                    Some(payload) => self.process.open(payload).await?.as_str().to_owned(),
                    None => String::new(),
                };
                self.did(Done::Took { wait: name.clone(), event: event.clone(), payload });
                self.push(Happened::Waited { name, event: Some(event) });
                self.answer(id).await?;
            }
            None if until.is_some_and(|until| until <= self.process.now()) => {
                self.push(Happened::Waited { name, event: None });
            }
            None => return Ok(Flow::Blocked(Block { until, others: false, event: true })),
        }
        Ok(Flow::Next)
    }

    /// Answers an event, if its sender can ask for that and the script does so.
    async fn answer(&mut self, id: Option<EventId>) -> Result<(), Stop> {
        let Some(id) = id.filter(|_| self.script.answers) else { return Ok(()) };
        let name = step(&format!("{ANSWER_PREFIX}{id}"));
        if self.last(&name).is_none() {
            let answer = Json::string(&format!("{:x}", self.process.gate.dice.roll()));
            let value = self.process.keep(answer).await?;
            self.push(Happened::Captured { name, value });
        }
        Ok(())
    }

    async fn remote(
        &mut self,
        number: usize,
        count: u16,
        (joined, needed): (bool, bool),
    ) -> Result<Flow, Stop> {
        let names: Vec<StepName> = (0..count).map(|place| step(&format!("s{number}[{place}]"))).collect();
        let is_new = |name: &&StepName| matches!(self.last(name), None | Some(Happened::Reopened { .. }));
        let unknown: Vec<StepName> = names.iter().filter(is_new).cloned().collect();
        if !unknown.is_empty() {
            if let Some(held) = self.held() {
                return Ok(held);
            }
            // Other processes can see a started step. So the entries that led to it are recorded before.
            if !self.fresh.is_empty() {
                self.record().await?;
            }
            self.maybe_fall_silent()?;
            let again = unknown.iter().filter(|name| self.last(name).is_some()).cloned().collect();
            let label = Nonce::from_bytes([u8::try_from(number).unwrap_or(0); Nonce::LEN]);
            // In a run that begins with another run's results, some steps may have ended already: they never mark their
            // place.
            let (places, count) = (self.script.places, u16::try_from(unknown.len()).unwrap_or(0));
            let slot = |place: u16| Slot {
                label,
                item: place / places,
                place: place % places,
                of: places.min(count - place / places * places),
            };
            let steps = (0..)
                .zip(&unknown)
                .map(|(place, name)| self.remote_step(name.clone(), joined.then(|| slot(place))));
            let mut steps: Vec<RemoteStep> = steps.collect();
            if self.process.world.hardship.is_calm {
                for step in &mut steps {
                    (step.timeouts, step.flow.rate) = (Timeouts::default(), None);
                }
            }
            self.process.start_remote(&self.turn, &self.execution, steps, again).await?;
            for name in unknown {
                self.push(Happened::Remote { name });
            }
        }
        let failed = names.iter().find(|name| needed && self.has_failed(name)).cloned();
        if let Some(failed) = failed {
            return Ok(Flow::Failed(failed));
        }
        let open = names.iter().any(|name| !self.has_ended(name));
        Ok(if open { Flow::Blocked(Block { others: true, ..Block::default() }) } else { Flow::Next })
    }

    /// Gives the same step each time that it is started.
    fn remote_step(&self, name: StepName, slot: Option<Slot>) -> RemoteStep {
        let dice = Dice::new(self.script.seed, name.as_str());
        let limit = Dice::new(self.script.seed, &format!("limit of {name}"));
        let limit = limit.chance(400).then(|| LifeTimeout { after: limit.secs(1, 100), is_error: true });
        let more = Dice::new(self.script.seed, &format!("more of {name}"));
        let timeout = |chance| {
            let after = more.secs(20, 120);
            more.chance(chance).then_some(AttemptTimeout { after, on_timeout: OnTimeout::Retry })
        };
        let priority = more.pick([Priority::High, Priority::Normal, Priority::Normal, Priority::Low]);
        let fairness = more.chance(200).then(|| FlowKey::parse(more.pick(["ada", "bob"])).ok()).flatten();
        RemoteStep {
            kind: kind(),
            queue: queue(dice.pick(QUEUES)),
            input: Some(Json::string(name.as_str())),
            retry: RetryPolicy::fixed(dice.pick([0, 1, 3]), dice.millis(0, 10_000)),
            flow: FlowRequest { priority, fairness, ..limits(self.script.seed, name.as_str()) },
            timeouts: Timeouts {
                schedule_to_close: limit,
                schedule_to_start: timeout(300),
                start_to_close: timeout(200),
                heartbeat: timeout(200),
            },
            given: vec![],
            slot,
            name,
            any_queue: false,
            at_most: None,
        }
    }

    fn all_children(&self) -> Flow {
        let is_open =
            |entry: &Entry| matches!(&entry.what, Happened::Child { name, .. } if !self.has_ended(name));
        let others = self.journal.iter().any(is_open);
        if others { Flow::Blocked(Block { others, ..Block::default() }) } else { Flow::Next }
    }

    async fn child(
        &mut self,
        number: usize,
        name: StepName,
        policy: ParentClosePolicy,
        awaited: bool,
    ) -> Result<Flow, Stop> {
        let is_reopened =
            |entry: &&Entry| matches!(&entry.what, Happened::Reopened { name: of, .. } if *of == name);
        let again = u32::try_from(self.journal.iter().filter(is_reopened).count()).unwrap_or(u32::MAX);
        if matches!(self.last(&name), None | Some(Happened::Reopened { .. })) {
            if let Some(held) = self.held() {
                return Ok(held);
            }
            if !self.fresh.is_empty() {
                self.record().await?;
            }
            self.maybe_fall_silent()?;
            let id = child_id(&self.execution, number);
            let script = self.script.child(number);
            let dice = Dice::new(script.seed, "child");
            let parent = Parent {
                execution: self.execution.id.clone(),
                incarnation: self.execution.incarnation,
                run: self.execution.run,
                again,
                slot: None,
                step: None,
                work: None,
                on_close: policy,
            };
            let mut flow = limits(script.seed, "child");
            if self.process.world.hardship.is_calm {
                flow.rate = None;
            }
            let request = StartRequest {
                id: Some(id.clone()),
                input: Some(script.input()),
                timeouts: ExecutionTimeouts {
                    execution: dice
                        .chance(300)
                        .then(|| dice.secs(5, 900))
                        .filter(|_| !self.process.world.hardship.is_calm),
                    run: None,
                },
                parent: Some(parent),
                flow: Box::new(flow),
                ..StartRequest::new(workflow(), self.execution.queue.clone())
            };
            let is_same_work = self.execution.repeats.is_some() || again > 0;
            self.process.start_child(request, is_same_work).await?;
            let is_left = |entry: &Entry| matches!(&entry.what, Happened::Child { execution, left: true, .. } if *execution == id);
            let was_left = self.journal.iter().any(is_left);
            self.push(Happened::Child { name, execution: id, policy, left: false, was_left });
            // It hasn't ended as far as this turn knows.
        } else if self.has_ended(&name) {
            return Ok(Flow::Next);
        }
        Ok(if awaited { Flow::Blocked(Block { others: true, ..Block::default() }) } else { Flow::Next })
    }
}

/// What limits a remote step or a child, in a share of the executions. The limit of each key is always the same.
fn limits(seed: u64, of: &str) -> FlowRequest {
    let dice = Dice::new(seed, &format!("limits of {of}"));
    if !dice.chance(LIMITED) {
        return FlowRequest::default();
    }
    let kind = if of == "child" { "children" } else { "far" };
    let key = |name: &str| FlowKey::parse(format!("{kind}-{name}")).ok();
    let keys = [("narrow", 1, 700), ("wide", 3, 500)];
    let keys = keys.into_iter().filter(|(_, _, chance)| dice.chance(*chance));
    let concurrency = keys
        .filter_map(|(name, limit, _)| Some(Concurrency { key: key(name)?, limit: NonZeroU16::new(limit)? }));
    let concurrency = concurrency.collect();
    let each = NonZeroU32::MIN;
    let rate = key("paced").filter(|_| dice.chance(400));
    let rate = rate.map(|key| Rate { key, limit: each, per: Millis::from_secs(10), burst: each });
    FlowRequest { concurrency, rate, ..FlowRequest::default() }
}

/// The id of the child that the run's operation of this number starts. Every other one is that of earlier runs too.
#[expect(clippy::expect_used, reason = "the id contains only letters, digits and base64url characters")]
fn child_id(execution: &Execution, number: usize) -> ExecutionId {
    let run = if number.is_multiple_of(2) { execution.work() } else { 1 };
    let id = format!("c-{}-{run}-{number}", execution.incarnation);
    ExecutionId::parse(id).expect("an id")
}
