//! When which executions are started, and which events they are sent.

use tickover_core::duration::Millis;
use tickover_core::execution::ExecutionTimeouts;
use tickover_core::execution::command::StartPolicy;
use tickover_core::id::{EventId, ExecutionId, TaskKind, WorkflowName};
use tickover_core::limits::QUEUE_DELAY_MAX;
use tickover_core::payload::Json;
use tickover_core::time::Timestamp;
use tickover_service::executions::{SentEvent, StartRequest};

use super::{GREEN, Job, JobRequest, QUEUES, START, next_minute, text};
use crate::dice::Dice;
use crate::process::execution::event_name;
use crate::script::{EVENTS, Op, Script};
use crate::world::queue;

/// Scripts among which one that sleeps long is sought.
const TRIES: u32 = 200;
/// Ids that are used repeatedly.
const NAMES: [&str; 3] = ["x", "y", "z"];

/// An event to send.
#[derive(Clone, Debug)]
pub struct SendEventBody {
    pub to: ExecutionId,
    pub event: &'static str,
    pub id: Option<EventId>,
    /// Whether its sender waits for the answer, if it has an id.
    pub asks: bool,
    pub content: Content,
}

/// The payload of an event.
#[derive(Clone, Debug)]
pub enum Content {
    /// A text with a prefix that is different for each call.
    Unique(String),
    /// Exactly this.
    Same(Json),
}

/// A seed's calls about executions.
pub(super) fn jobs(seed: u64, storm: Millis, is_busy: bool) -> Vec<Job> {
    let dice = Dice::new(seed, "executions");
    let first_events = Dice::new(seed, "first events");
    let mut jobs = Vec::new();
    for number in 0..dice.between(1, 4) {
        let at = START.plus(dice.millis(0, storm.as_u64() * 3 / 4));
        let at = if dice.chance(300) { next_minute(at) } else { at };
        let id = if dice.chance(600) { dice.pick(NAMES).to_owned() } else { format!("e-{number}") };
        let Ok(id) = ExecutionId::parse(id) else { continue };
        let event = first_events.chance(300).then(|| first_event(&first_events));
        let start = StartRequest { event, ..start(&dice, id.clone(), is_busy) };
        jobs.push(job(&dice, at, JobRequest::Start(Box::new(start))));
        // Some executions get many events within seconds, while a turn runs.
        let (most, within) = if dice.chance(250) { (10, 15_000) } else { (4, 400_000) };
        for number in 0..dice.between(0, most) {
            let at = at.plus(dice.millis(0, within));
            jobs.push(job(&dice, at, JobRequest::SendEvent(offering(&dice, &id, number))));
        }
    }
    jobs
}

/// Executions whose turns are received together. One of them kills the process that runs its turn.
pub(super) fn together(seed: u64, storm: Millis) -> Vec<Job> {
    let dice = Dice::new(seed, "executions together");
    let batch = |number: u64| {
        let at = START.plus(dice.millis(0, storm.as_u64() / 2));
        let queue = queue(dice.pick(QUEUES));
        let count = dice.between(3, 9);
        let deadly = dice.between(0, count);
        let one = |nth| {
            let seed = dice.roll();
            let script = if nth == deadly { Script::deadly(seed) } else { Script::short(seed) };
            StartRequest {
                id: ExecutionId::parse(format!("t-{number}-{nth}")).ok(),
                input: Some(script.input()),
                ..StartRequest::new(workflow(), queue.clone())
            }
        };
        let request = JobRequest::StartTogether((0..=count).map(one).collect());
        Job { at, client: 0, request, repeats: 0 }
    };
    (0..dice.between(1, 2)).map(batch).collect()
}

/// Executions whose code sleeps for longer than a queue can delay a message.
pub(super) fn sleepers(seed: u64, storm: Millis) -> Vec<Job> {
    let dice = Dice::new(seed, "sleepers");
    let sleeps_long = |script: &Script| {
        script.ops.iter().any(|op| matches!(op, Op::Sleep(span) if *span > QUEUE_DELAY_MAX))
    };
    let one = |number: u64| {
        let mut scripts = (0..TRIES).map(|_| Script::of(dice.roll(), false));
        let request = StartRequest {
            id: ExecutionId::parse(format!("z-{number}")).ok(),
            input: Some(scripts.find(sleeps_long)?.input()),
            ..StartRequest::new(workflow(), queue(dice.pick(QUEUES)))
        };
        let at = START.plus(dice.millis(0, storm.as_u64()));
        Some(Job { at, client: 0, request: JobRequest::Start(Box::new(request)), repeats: 0 })
    };
    (0..dice.between(1, 4)).filter_map(one).collect()
}

fn job(dice: &Dice, at: Timestamp, request: JobRequest) -> Job {
    let client = u8::try_from(dice.between(0, 1)).unwrap_or(0);
    let repeats = if dice.chance(250) { dice.between(1, 2) } else { 0 };
    Job { at, client, request, repeats }
}

pub(super) fn start(dice: &Dice, id: ExecutionId, is_busy: bool) -> StartRequest {
    let script = Script::of(dice.roll(), false);
    let size = dice.pick([0, 0, 30, 300, 2_000]);
    let memo = (size > 0).then(|| text(size));
    let delay = match dice.between(0, 9) {
        0..=6 => Millis::ZERO,
        7 | 8 => dice.millis(1, 120_000),
        _ => dice.millis(901_000, 1_200_000),
    };
    StartRequest {
        id: Some(id),
        input: Some(script.input()),
        memo,
        timeouts: ExecutionTimeouts {
            execution: dice.chance(450).then(|| dice.millis(2_000, 1_500_000)),
            run: dice.chance(250).then(|| dice.millis(2_000, 900_000)),
        },
        on_failure: script.on_failure.filter(|_| dice.chance(500)).map(|one| one.budget),
        delay,
        policy: if dice.chance(250) { StartPolicy::Reject } else { StartPolicy::UseExisting },
        labels: if dice.chance(150) { Json::parse(r#"{"team":"green"}"#) } else { None },
        ..StartRequest::new(workflow(), queue(if is_busy { GREEN } else { dice.pick(QUEUES) }))
    }
}

/// An event that comes with a start.
fn first_event(dice: &Dice) -> SentEvent {
    let id = dice.chance(600).then(|| EventId::parse(format!("id-{}", dice.between(0, 2))).ok());
    let padding = "x".repeat(dice.pick([0, 100, 2_000]));
    let payload = Json::string(&format!("first-{:x} {padding}", dice.roll()));
    SentEvent { name: event_name(dice.pick(EVENTS)), id: id.flatten(), payload: Some(payload) }
}

fn offering(dice: &Dice, to: &ExecutionId, number: u64) -> SendEventBody {
    let id = dice.chance(600).then(|| format!("id-{}", dice.between(0, 2)));
    let padding = "x".repeat(dice.pick([0, 0, 100, 400]));
    SendEventBody {
        to: to.clone(),
        event: dice.pick(EVENTS),
        id: id.and_then(|id| EventId::parse(id).ok()),
        asks: number.is_multiple_of(2),
        content: Content::Unique(format!("{number}-{:x} {padding}", dice.roll())),
    }
}

/// The workflow of all executions.
///
/// # Panics
///
/// If the constant isn't a valid workflow name.
#[expect(clippy::expect_used, reason = "our own constant")]
pub fn workflow() -> WorkflowName {
    WorkflowName::parse("script").expect("a workflow's name")
}

/// The kind of all remote steps.
///
/// # Panics
///
/// If the constant isn't a valid kind.
#[expect(clippy::expect_used, reason = "our own constant")]
pub fn kind() -> TaskKind {
    TaskKind::parse("step").expect("a kind")
}
