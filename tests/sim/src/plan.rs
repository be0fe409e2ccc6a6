//! The input of a run: how long faults are injected, under which limits, and which tasks and executions are started
//! when.

mod calm;
pub mod crons;
pub mod execution;
mod limits;
mod priorities;
mod rates;
pub mod single;
pub mod sizes;
mod story;

use std::collections::BTreeMap;

use tickover_core::duration::Millis;
use tickover_core::id::{ExecutionId, QueueName, TaskId, TaskKind};
use tickover_core::limits::Limits;
use tickover_core::payload::Json;
use tickover_core::retry::{Delay, MaxAttempts, RetryPolicy};
use tickover_core::task::command::Start;
use tickover_core::time::Timestamp;
use tickover_core::timeout::{AttemptTimeout, LifeTimeout, OnTimeout, Timeouts};
use tickover_service::crons::CronRequest;
use tickover_service::executions::StartRequest;
use tickover_service::tasks::schedule::ScheduleRequest;

use self::execution::SendEventBody;
use super::dice::Dice;
use super::fault_plan::FaultPlan;
use super::flows::story::Story;
use super::hardship::{ALWAYS, Hardship};

/// 2026-01-01T00:00:00Z: when every run begins.
pub const START: Timestamp = Timestamp::from_millis(1_767_225_600_000);
/// The queues on which tasks are scheduled.
pub const QUEUES: [&str; 2] = ["red", "blue"];
/// The input of a task that kills the process that runs it.
pub const DEADLY: &str = "deadly";
/// The input of a task that succeeds and kills no process.
pub const HARMLESS: &str = "harmless";
/// The input of a task that takes most of an invocation.
pub const SLOW: &str = "slow";
/// Entries of a page: few, so that a handful of tasks already needs several pages.
const PAGE: usize = 4;
/// A queue for executions alone, where queues are kept busy.
pub const GREEN: &str = "green";
/// Ids that are used repeatedly.
const NAMES: [&str; 3] = ["a", "b", "c"];
const KEYS: [&str; 2] = ["k-1", "k-2"];

/// Of so many seeds, one may have `SQLite` beside the memory store.
const SQLITE_EACH: u64 = 10;

/// Of a thousand seeds, in so many the operator starts operations on many records.
const OPERATIONS: u64 = 300;

/// A run before it begins.
#[derive(Clone, Debug)]
pub struct Plan {
    pub faults: FaultPlan,
    /// Conditions that last longer than one call.
    pub hardship: Hardship,
    /// The end of the fault phase.
    pub faults_until: Timestamp,
    pub limits: Limits,
    /// How many processes work on tasks.
    pub workers: u8,
    /// The calls of clients, in order of time.
    pub jobs: Vec<Job>,
    /// The most entries in a page of the due index.
    pub page: usize,
    /// How many records that are due at one instant exist from the beginning.
    pub flood: usize,
    /// The executions of example workflows. If there are any, the run has no other work, and workers run the SDK.
    pub stories: BTreeMap<ExecutionId, Story>,
    /// Whether the operator starts operations on many records at once.
    pub has_operations: bool,
    /// Whether hints of high and of low priority wait apart from the others.
    pub has_classes: bool,
    /// Whether the records are in `SQLite` as well, and both stores must always answer alike.
    pub has_sqlite: bool,
}

/// A call that a client makes.
#[derive(Clone, Debug)]
pub struct Job {
    pub at: Timestamp,
    pub client: u8,
    pub request: JobRequest,
    /// How often the call is repeated although it succeeded.
    pub repeats: u64,
}

/// The request of a client.
#[derive(Clone, Debug)]
pub enum JobRequest {
    /// Schedule these tasks: several are one batch.
    Schedule(Vec<ScheduleRequest>),
    /// Start this execution.
    Start(Box<StartRequest>),
    /// Start these executions, all at once.
    StartTogether(Vec<StartRequest>),
    /// Send an event to an execution.
    SendEvent(SendEventBody),
    /// Create this cron.
    Cron(Box<CronRequest>),
}

/// More losses of one task, or turns of one execution in a row, than the faults cause.
const FAR_FROM_POISON: u32 = 20;

impl Plan {
    /// A seed's plan. If a bug is switched on, the run should find it.
    pub fn of(seed: u64) -> Self {
        let dice = Dice::new(seed, "plan");
        let storm = dice.secs(8 * 60, 40 * 60);
        let limits = Limits {
            retention: Millis::from_secs(dice.pick([60, 60, 240, 600, 1_200])),
            backstop: Millis::from_secs(dice.pick([60, 60, 180, 600])),
            backstop_max: Millis::from_secs(dice.pick([1_800, 3_600])),
            idempotency: Millis::from_secs(dice.pick([300, 900])),
            losses: u32::try_from(dice.between(0, 3)).unwrap_or(3),
            due_shards: u16::try_from(dice.between(1, 3)).unwrap_or(1),
            ..Limits::default()
        };
        let hardship = Hardship::of(seed, START);
        let limits =
            if hardship.kills { Limits { losses: Limits::default().losses, ..limits } } else { limits };
        let limits = if hardship.is_busy {
            // The deployed values: they determine how soon a lost hint is found.
            let Limits { backstop, backstop_max, .. } = Limits::default();
            Limits { backstop, backstop_max, ..limits }
        } else {
            limits
        };
        let stories = story::stories(seed, &hardship);
        // A story has to end as without faults, so faults must not make it or one of its steps count as poison.
        let limits = if stories.is_empty() {
            limits
        } else {
            Limits { losses: FAR_FROM_POISON, idle_turns: FAR_FROM_POISON, ..limits }
        };
        let mut jobs: Vec<Job> = (0..dice.between(4, 14)).map(|_| job(&dice, storm)).collect();
        jobs.extend(execution::jobs(seed, storm, hardship.is_busy));
        if hardship.kills {
            jobs.extend(batches(&dice, storm, [DEADLY, HARMLESS]));
            jobs.extend(execution::together(seed, storm));
        }
        if hardship.sleeps_lost {
            jobs.extend(execution::sleepers(seed, storm));
        }
        if hardship.concurrency.is_some() {
            jobs.extend(batches(&dice, storm, [SLOW, SLOW]));
        }
        if !stories.is_empty() {
            jobs = story::jobs(seed, storm, &stories);
        }
        let single = if stories.is_empty() { single::jobs(seed, storm) } else { vec![] };
        let crons = if stories.is_empty() { crons::jobs(seed, storm, &hardship) } else { vec![] };
        // A process may be late with the task of its key or its cron for longer than it is frozen once.
        let is_kept = single.is_empty() && crons.is_empty();
        let retention = if is_kept { limits.retention } else { single::RETENTION };
        let limits = Limits { retention, ..limits };
        jobs.extend(single);
        jobs.extend(crons);
        limits::add(seed, &mut jobs);
        rates::add(seed, &mut jobs);
        let has_classes = priorities::add(seed, &mut jobs);
        jobs.sort_by_key(|job| job.at);
        let workers = u8::try_from(dice.between(2, 3)).unwrap_or(2);
        let faults = hardship.faults(FaultPlan::of(seed));
        // Where expired items are deleted at random, the stores would differ.
        let has_sqlite = seed.is_multiple_of(SQLITE_EACH) && [0, ALWAYS].contains(&hardship.reaped);
        let has_operations = stories.is_empty() && Dice::new(seed, "operations").chance(OPERATIONS);
        let faults_until = START.plus(storm).max(hardship.over_at().unwrap_or(START));
        Self {
            faults,
            hardship,
            faults_until,
            limits,
            workers,
            jobs,
            page: PAGE,
            flood: 0,
            stories,
            has_operations,
            has_classes,
            has_sqlite,
        }
    }

    /// Whether workers run example workflows with the SDK's own engine.
    pub fn runs_flows(&self) -> bool {
        !self.stories.is_empty()
    }

    /// The crons that clients create.
    pub fn crons(&self) -> Vec<CronRequest> {
        let crons = self.jobs.iter().filter_map(|job| match &job.request {
            JobRequest::Cron(request) => Some((**request).clone()),
            JobRequest::Schedule(_)
            | JobRequest::Start(_)
            | JobRequest::StartTogether(_)
            | JobRequest::SendEvent(_) => None,
        });
        crons.collect()
    }

    /// Whether clients create crons.
    pub fn has_crons(&self) -> bool {
        !self.crons().is_empty()
    }

    /// Whether nothing fails: then due work is done within seconds, and not only by the next tick.
    pub fn is_fair(&self) -> bool {
        self.faults.is_fair() && self.hardship.is_mild()
    }

    /// By then, whatever was lost has been found, and everything has ended.
    pub fn ends_by(&self) -> Timestamp {
        let waits = self.limits.backstop_max.saturating_mul(2);
        self.faults_until.plus(waits).plus(Millis::from_secs(6 * 3_600))
    }
}

fn job(dice: &Dice, storm: Millis) -> Job {
    let at = START.plus(dice.millis(0, storm.as_u64() * 3 / 4));
    // Much work is scheduled on the minute: at the same time as ticks.
    let at = if dice.chance(300) { next_minute(at) } else { at };
    let client = u8::try_from(dice.between(0, 1)).unwrap_or(0);
    let count = if dice.chance(150) { dice.between(2, 4) } else { 1 };
    let requests = (0..count).map(|_| request(dice)).collect();
    let repeats = if dice.chance(150) { dice.between(1, 2) } else { 0 };
    Job { at, client, request: JobRequest::Schedule(requests), repeats }
}

/// Tasks that are received together, one of them with another input.
fn batches(dice: &Dice, storm: Millis, [other, usual]: [&str; 2]) -> Vec<Job> {
    let job = |at: Timestamp| {
        let queue = queue(dice);
        let calm = |input: &str| ScheduleRequest {
            id: None,
            idempotency_key: None,
            queue: queue.clone(),
            kind: kind(),
            input: Some(Json::string(input)),
            labels: None,
            retry: RetryPolicy::none(),
            flow: tickover_core::flow::FlowRequest::default(),
            timeouts: Timeouts::default(),
            start: Start::After(Millis::ZERO),
            trace: None,
            asked: tickover_service::tasks::schedule::Asked::default(),
        };
        let count = dice.between(3, 9);
        let odd_one = dice.between(0, count);
        let input = |nth| if nth == odd_one { other } else { usual };
        let request = JobRequest::Schedule((0..=count).map(|nth| calm(input(nth))).collect());
        Job { at, client: 0, request, repeats: 0 }
    };
    (0..dice.between(1, 3)).map(|_| job(START.plus(dice.millis(0, storm.as_u64() / 2)))).collect()
}

/// The first full minute after an instant.
pub fn next_minute(now: Timestamp) -> Timestamp {
    Timestamp::from_millis((now.as_millis().div_euclid(60_000) + 1) * 60_000)
}

fn request(dice: &Dice) -> ScheduleRequest {
    let id = dice.chance(700).then(|| dice.pick(NAMES));
    let idempotency_key = dice.chance(150).then(|| dice.pick(KEYS).to_owned());
    let size = dice.pick([0, 5, 20, 300, 3_000]);
    ScheduleRequest {
        id: id.and_then(|id| TaskId::parse(id).ok()),
        idempotency_key,
        queue: queue(dice),
        kind: kind(),
        input: Some(text(usize::try_from(size).unwrap_or(0))),
        labels: if dice.chance(200) { Json::parse(r#"{"team":"blue","cost_centre":"12345"}"#) } else { None },
        retry: retry(dice),
        flow: tickover_core::flow::FlowRequest::default(),
        timeouts: timeouts(dice),
        start: start(dice),
        trace: None,
        asked: tickover_service::tasks::schedule::Asked::default(),
    }
}

fn start(dice: &Dice) -> Start {
    let delay = match dice.between(0, 9) {
        0..=5 => Millis::ZERO,
        6 | 7 => dice.millis(1, 180_000),
        // Further ahead than a queue's longest delay.
        _ => dice.millis(901_000, 1_500_000),
    };
    Start::After(delay)
}

fn retry(dice: &Dice) -> RetryPolicy {
    let retries = u32::try_from(dice.between(0, 4)).unwrap_or(0);
    let delay = dice.pick([Millis::ZERO, Millis::from_secs(1), Millis::from_secs(20), Millis::from_secs(90)]);
    let policy = match dice.between(0, 4) {
        0 => RetryPolicy::none(),
        1 => RetryPolicy::exponential(retries, delay),
        2 => RetryPolicy {
            delay: Delay::Listed(vec![Millis::from_secs(1), delay]),
            ..RetryPolicy::fixed(retries, delay)
        },
        _ => RetryPolicy::fixed(retries, delay),
    };
    if dice.chance(20) {
        return RetryPolicy { max_attempts: MaxAttempts::Skip, ..policy };
    }
    RetryPolicy { non_retryable: vec!["fatal".to_owned()], ..policy }
}

fn timeouts(dice: &Dice) -> Timeouts {
    let on_timeout =
        || dice.pick([OnTimeout::Retry, OnTimeout::Retry, OnTimeout::Terminal, OnTimeout::Cancel]);
    let attempt = |after: Millis| AttemptTimeout { after, on_timeout: on_timeout() };
    let whole = LifeTimeout { after: dice.millis(2_000, 900_000), is_error: dice.chance(850) };
    Timeouts {
        schedule_to_close: dice.chance(450).then_some(whole),
        schedule_to_start: dice.chance(200).then(|| attempt(dice.millis(3_000, 400_000))),
        heartbeat: dice.chance(250).then(|| attempt(dice.millis(2_000, 60_000))),
        start_to_close: dice.chance(300).then(|| attempt(dice.millis(1_000, 120_000))),
    }
}

fn queue(dice: &Dice) -> QueueName {
    super::world::queue(dice.pick(QUEUES))
}

/// The kind of all tasks.
///
/// # Panics
///
/// If the constant isn't a valid kind.
#[expect(clippy::expect_used, reason = "our own constant")]
pub fn kind() -> TaskKind {
    TaskKind::parse("work").expect("a kind")
}

/// A JSON string of so many characters.
pub fn text(length: usize) -> Json {
    Json::string(&"x".repeat(length))
}
