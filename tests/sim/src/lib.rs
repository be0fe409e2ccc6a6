//! A whole Tickover in virtual time, with every kind of fault: seeded, so that each run can be repeated.
//!
//! The core, the service loop, the memory store and the memory queue are the real ones. Workers, clients, ticks and an
//! operator are processes with services of their own. Their calls to the table and the queues are slow and unreliable,
//! and their clocks differ. Every event is recorded in a history, and after the run the `checks` go through the whole
//! history. In some runs the workers are the SDK's own, with the example workflows. In all others they run scripts,
//! which do more unusual operations than good code would. Nothing in here reads the machine's clock or draws unseeded
//! random numbers.

pub mod actors;
pub mod aws;
pub mod bugs;
pub mod checks;
pub mod classes;
pub mod clock;
pub mod deaths;
pub mod dice;
pub mod fault_plan;
pub mod flood;
pub mod flows;
pub mod gate;
pub mod hardship;
pub mod history;
pub mod ledger;
pub mod model;
pub mod pairs;
pub mod plan;
pub mod process;
pub mod progress;
pub mod queue;
pub mod script;
pub mod search;
pub mod store;
pub mod table;
pub mod tokens;
pub mod trace;
pub mod violation;
pub mod world;

use std::sync::Arc;

use futures::future::LocalBoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};
use tickover_core::duration::Millis;
use tickover_core::time::Timestamp;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use self::bugs::Bug;
// The example workflows import their outside world from `crate::outside`.
use self::flows::outside;
use self::history::{Actor, Event, Fault};
use self::plan::{Job, Plan};
use self::process::keep_alive;
use self::progress::Progress;
use self::violation::Violation;
use self::world::{Background, World};

/// How often the run checks whether all work has ended.
const CHECK_EVERY: Millis = Millis::from_secs(30);
/// How long a run continues after all work has ended, so that late messages and calls are tested too.
const AFTERMATH: Millis = Millis::from_secs(300);

/// A run that is over.
pub struct Run {
    pub seed: u64,
    pub plan: Plan,
    pub events: Vec<Event>,
    pub world: Arc<World>,
    pub ended_at: Timestamp,
}

/// Runs a seed to its end, with a bug or without.
pub fn run(seed: u64, bug: Option<Bug>) -> Run {
    run_plan(seed, Plan::of(seed), bug)
}

/// Runs a plan to its end; the seed determines all random choices.
pub fn run_plan(seed: u64, plan: Plan, bug: Option<Bug>) -> Run {
    let (sender, background) = unbounded_channel();
    let world = Arc::new(World::new(seed, &plan, bug, sender));
    block_on(world.clock.drive(run_processes(&world, &plan, background)));
    let events = world.history.take();
    Run { seed, ended_at: world.now(), plan, events, world }
}

/// Runs a seed and returns the violations.
pub fn check(seed: u64, bug: Option<Bug>) -> Vec<Violation> {
    checks::check(&run(seed, bug))
}

#[expect(clippy::expect_used, reason = "a runtime without input and output always starts")]
fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime").block_on(future)
}

/// Runs all processes until all work has ended.
async fn run_processes(world: &Arc<World>, plan: &Plan, background: UnboundedReceiver<Background>) {
    flood::create_records(world, plan.flood);
    let first = Progress::default();
    let clients = [(of_client(plan, 0), first.sharing_tasks()), (of_client(plan, 1), first)];
    let mut actors: Vec<LocalBoxFuture<'_, ()>> = Vec::new();
    for (number, (jobs, progress)) in (1..).zip(&clients) {
        let client = async |process| actors::client(process, jobs, progress).await;
        actors.push(Box::pin(keep_alive(world, Actor::Client(number), client)));
    }
    let progress = &clients[0].1;
    let is_bounded = plan.hardship.concurrency.is_some();
    for number in 1..=plan.workers {
        if is_bounded {
            actors.push(Box::pin(keep_alive(world, Actor::Batch(number), actors::batch)));
            continue;
        }
        if plan.runs_flows() {
            actors.push(Box::pin(keep_alive(world, Actor::Worker(number), actors::engine)));
            continue;
        }
        let worker = async |process| actors::worker(process, progress).await;
        actors.push(Box::pin(keep_alive(world, Actor::Worker(number), worker)));
    }
    for number in 1..=2 {
        let ticker = async move |process| actors::ticker(process, number == 1).await;
        actors.push(Box::pin(keep_alive(world, Actor::Ticker(number), ticker)));
    }
    for number in 1..=2 {
        actors.push(Box::pin(keep_alive(world, Actor::Timers(number), actors::timers)));
    }
    let operator = async |process| actors::operator(process, progress).await;
    actors.push(Box::pin(keep_alive(world, Actor::Operator, operator)));
    actors.push(Box::pin(keep_alive(world, Actor::Outsider, actors::outsider)));
    if plan.hardship.is_busy {
        actors.push(Box::pin(keep_alive(world, Actor::Filler, actors::filler)));
    }
    if plan.hardship.mortality.is_some() {
        actors.push(Box::pin(actors::redriver(world)));
    }
    if plan.hardship.reaped > 0 {
        actors.push(Box::pin(actors::reaper(world)));
    }
    actors.push(Box::pin(run_background(background)));
    tokio::select! {
        biased;
        () = all_of(actors) => {}
        () = until_all_has_ended(world, plan, &clients) => {}
    }
}

/// Runs all actors. Only those that were woken are polled: mostly one of twenty.
async fn all_of(actors: Vec<LocalBoxFuture<'_, ()>>) {
    let mut running: FuturesUnordered<_> = actors.into_iter().collect();
    while let Some(()) = running.next().await {}
}

fn of_client(plan: &Plan, client: u8) -> Vec<Job> {
    plan.jobs.iter().filter(|job| job.client == client).cloned().collect()
}

/// Calls that complete although no process waits for them: late writes.
async fn run_background(mut arriving: UnboundedReceiver<Background>) {
    let mut under_way = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            Some(()) = under_way.next() => {}
            Some(future) = arriving.recv() => under_way.push(future),
            else => return,
        }
    }
}

async fn until_all_has_ended(world: &World, plan: &Plan, clients: &[(Vec<Job>, Progress)]) {
    wait_until(world, plan.faults_until).await;
    world.fault(Actor::World, Fault::FaultPhaseOver);
    let mut quiet = Millis::ZERO;
    while quiet < AFTERMATH && world.now() < plan.ends_by() && !world.is_runaway() {
        wait_until(world, world.now().plus(CHECK_EVERY)).await;
        let all_made = clients.iter().all(|(jobs, progress)| progress.jobs_done() == jobs.len());
        let all_ended = all_made && world.ledger.all_have_ended();
        quiet = if all_ended { quiet.saturating_add(CHECK_EVERY) } else { Millis::ZERO };
    }
}

async fn wait_until(world: &World, instant: Timestamp) {
    use tickover_service::ports::Clock as _;
    world.clock.sleep_until(instant).await;
}
