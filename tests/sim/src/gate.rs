//! The connection from a process to the world: it is slow, and most of the faults of a process happen in it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tickover_core::decision::Write;
use tickover_core::duration::Millis;
use tickover_core::execution::{Execution, ExecutionState};
use tickover_core::id::{ExecutionId, QueueName};
use tickover_core::record::Record;
use tickover_core::timer::Wake;
use tokio::sync::Notify;

use super::bugs;
use super::clock::SimClock;
use super::dice::Dice;
use super::fault_plan::FaultPlan;
use super::history::{Actor, Fault, MultiWrite};
use super::world::World;

/// How long a call waits for a service that is unreachable.
const TIMEOUT: Millis = Millis::from_secs(1);
/// Of a thousand calls between two writes that belong together, so many kill the process, where deaths are aimed.
const AIMED: u64 = 120;
/// A token of a sweep that is no older than this has just been written.
const JUST_NOW: Millis = Millis::from_secs(5);

/// Why a call to the world is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Unavailable,
    Throttled,
}

/// Which service a call is to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteService {
    Table,
    Queues,
}

/// The connection between one process and the world.
pub struct Gate {
    pub world: Arc<World>,
    /// The actor whose process it is.
    pub actor: Actor,
    pub clock: Arc<SimClock>,
    /// The process's random numbers.
    pub dice: Dice,
    crashed: Notify,
    is_dead: AtomicBool,
    /// Whether a call is in progress whose caller may leave.
    is_called: AtomicBool,
    left: Notify,
    /// The executions that it is closing, as far as its calls show.
    closing: Mutex<BTreeSet<ExecutionId>>,
    /// Whether it has sent timers and not yet recorded that, or has recorded that it passes a shard on and not yet sent
    /// the message.
    handing_over: AtomicBool,
}

impl Gate {
    /// The gate of a process in its `life`th life.
    pub fn new(world: Arc<World>, actor: Actor, life: u32) -> Self {
        let dice = Dice::new(world.seed, &format!("{actor} {life}"));
        // The service corrects its clock by the times in AWS's answers: this is the remaining error.
        let ahead =
            bugs::ahead(world.bug, actor).unwrap_or_else(|| ahead(&dice, world.faults().ahead_max_ms));
        let clock = Arc::new(SimClock::new(Arc::clone(&world.clock), ahead));
        let no = || AtomicBool::new(false);
        Self {
            world,
            actor,
            clock,
            dice,
            crashed: Notify::new(),
            is_dead: no(),
            is_called: no(),
            left: Notify::new(),
            closing: Mutex::default(),
            handing_over: no(),
        }
    }

    /// The way of a request out, or of an answer back. If the process dies on it, it never arrives.
    pub async fn pass(&self) {
        self.stop_if_dead().await;
        let faults = self.world.faults();
        if self.dice.chance(faults.jump) {
            let ahead = ahead(&self.dice, faults.ahead_max_ms);
            self.clock.jump(ahead);
            self.world.fault(self.actor, Fault::ClockJumped(ahead));
        }
        if faults.latency_ms > 0 {
            let latency = self.dice.millis(0, faults.latency_ms);
            self.sleep(latency).await;
        }
        if self.dice.chance(faults.freeze) {
            let span = self.dice.secs(10, 400);
            self.world.fault(self.actor, Fault::Frozen(span));
            self.clock.freeze(span);
        }
        self.clock.thaw().await;
        let is_doomed = self.world.is_runaway() || self.world.must_die_now(self.actor);
        if is_doomed || self.dice.chance(faults.crash) {
            self.die().await;
        }
        if let Some(midst) = self.midst().filter(|_| self.dice.chance(AIMED)) {
            self.world.fault(self.actor, Fault::DiedMidway(midst));
            self.die().await;
        }
        self.stop_if_dead().await;
        if self.is_called.load(Ordering::Relaxed) && self.world.leaves_now(&self.dice) {
            self.is_called.store(false, Ordering::Relaxed);
            self.world.fault(self.actor, Fault::CallerLeft);
            self.left.notify_one();
            tokio::task::yield_now().await;
        }
    }

    /// A call may go on whose caller is gone. In a dead process nothing does.
    async fn stop_if_dead(&self) {
        if self.is_dead.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    }

    /// Waits for a call whose caller may leave. `None` if it has left.
    pub async fn until_left<T>(&self, call: impl Future<Output = T>) -> Option<T> {
        self.is_called.store(true, Ordering::Relaxed);
        let answer = tokio::select! {
            biased;
            () = self.left.notified() => None,
            answer = call => Some(answer),
        };
        self.is_called.store(false, Ordering::Relaxed);
        answer
    }

    /// The unfinished operation of the process, where deaths are aimed at those.
    fn midst(&self) -> Option<MultiWrite> {
        if !self.world.hardship.aimed || !self.world.in_fault_phase() {
            return None;
        }
        if !self.closing.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            return Some(MultiWrite::Closing);
        }
        self.handing_over.load(Ordering::Relaxed).then_some(MultiWrite::HandingOver)
    }

    /// Observes the writes of the process.
    pub fn wrote(&self, writes: &[Write]) {
        for write in writes {
            match write {
                Write::Put { after: Record::Execution(after), .. } => self.saw(after),
                Write::Put { after: Record::Tick(record), .. } => {
                    // With a new token, the message that carries it is still to come.
                    let now = tickover_service::ports::Clock::now(&*self.clock);
                    let is_handed_on = record.fanned.values().any(|token| now.since(*token) < JUST_NOW);
                    self.handing_over.store(is_handed_on, Ordering::Relaxed);
                }
                Write::Put { .. }
                | Write::Rearm { .. }
                | Write::Wake { .. }
                | Write::PutWaiter { .. }
                | Write::DeleteWaiter { .. }
                | Write::Extend { .. } => {}
            }
        }
    }

    /// Observes that the process has read an execution. It closes each one that it finds closing.
    pub fn saw(&self, execution: &Execution) {
        let mut closing = self.closing.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(execution.state, ExecutionState::Closing(_)) {
            closing.insert(execution.id.clone());
        } else {
            closing.remove(&execution.id);
        }
    }

    /// Observes a message that the process sends. A tick sends timers before it records that, and records that it
    /// passes a shard on before it sends that.
    pub fn sends(&self, queue: &QueueName, body: &str) {
        if matches!(self.actor, Actor::Ticker(_)) && *queue == QueueName::timers() {
            let is_sweep = matches!(Wake::parse(body), Ok(Wake::Sweep(_)));
            self.handing_over.store(!is_sweep, Ordering::Relaxed);
            if !is_sweep {
                bugs::record_timers_first(&self.world, self.actor);
            }
        }
    }

    /// If the service is unreachable, waits for the timeout, because there is no error before it.
    pub async fn wait_if_unreachable(&self, far: RemoteService) -> bool {
        let hardship = self.world.hardship;
        let away = match far {
            RemoteService::Table => hardship.table_away,
            RemoteService::Queues => hardship.queues_away,
        };
        if !self.world.is_within(away) {
            return false;
        }
        self.world.fault(self.actor, Fault::Away);
        self.sleep(TIMEOUT).await;
        true
    }

    /// Whether a request is refused before it has an effect.
    pub fn refusal(&self) -> Option<Refusal> {
        let faults = self.world.faults();
        if self.dice.chance(faults.unavailable) {
            self.world.fault(self.actor, Fault::Unavailable);
            return Some(Refusal::Unavailable);
        }
        if self.dice.chance(faults.throttle) {
            self.world.fault(self.actor, Fault::Throttled);
            return Some(Refusal::Throttled);
        }
        None
    }

    /// Whether the answer to a call that had its effect is lost on its way back.
    pub fn loses_answer(&self) -> bool {
        let lost = self.dice.chance(self.world.faults().lost_answer);
        if lost {
            self.world.fault(self.actor, Fault::LostAnswer);
        }
        lost
    }

    /// Whether the process runs the older of two builds.
    pub fn is_older(&self) -> bool {
        is_older(self.actor) && self.world.hardship.two_builds && self.world.in_fault_phase()
    }

    /// Whether this kind of fault happens now.
    pub fn fault_happens(&self, kind: impl Fn(FaultPlan) -> u64) -> bool {
        self.dice.chance(kind(self.world.faults()))
    }

    /// After a write: the process dies here if this is the write after which it does.
    pub async fn dies_after_write(&self) {
        if self.world.dies_after_write(self.actor) {
            self.die().await;
        }
    }

    /// The process dies, with all its calls in flight.
    pub async fn die(&self) {
        self.is_dead.store(true, Ordering::Relaxed);
        self.crashed.notify_one();
        std::future::pending::<()>().await;
    }

    /// Returns when the process has died.
    pub async fn crashed(&self) {
        self.crashed.notified().await;
    }

    /// Waits by the world's clock.
    pub async fn sleep(&self, span: Millis) {
        use tickover_service::ports::Clock as _;
        self.world.clock.sleep_until(self.world.now().plus(span)).await;
    }
}

/// The actors that run the older build while there are two: one of each kind.
pub const fn is_older(actor: Actor) -> bool {
    matches!(actor, Actor::Worker(1) | Actor::Ticker(1) | Actor::Timers(1))
}

/// How far a clock is ahead, up to this much either way.
fn ahead(dice: &Dice, most_ms: i64) -> i64 {
    let span = u64::try_from(most_ms).unwrap_or(0);
    i64::try_from(dice.between(0, 2 * span)).unwrap_or(0) - most_ms
}
