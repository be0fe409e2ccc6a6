//! Crons: in a share of the seeds, clients create some, of every overlap, whose runs are tasks or executions.

use std::num::NonZeroU32;

use tickover_core::cron::plan::{Interval, Missed, Overlap, Plan, When};
use tickover_core::duration::Millis;
use tickover_core::id::CronId;
use tickover_core::payload::Json;
use tickover_service::crons::{CronRequest, CronWork};
use tickover_service::executions::StartRequest;

use super::{Job, JobRequest, START, queue, request};
use crate::dice::Dice;
use crate::hardship::Hardship;
use crate::script::Script;

/// Of a thousand seeds, in so many there are crons.
const SEEDS: u64 = 250;
/// How the ids of all crons begin, and so those of their runs.
pub const PREFIX: &str = "cron-";

/// The jobs of a seed.
pub(super) fn jobs(seed: u64, storm: Millis, hardship: &Hardship) -> Vec<Job> {
    let dice = Dice::new(seed, "crons");
    // An older build can't process the records of the newer one, and others have no workers for more.
    let has_no_workers = hardship.is_busy || hardship.concurrency.is_some();
    if !dice.chance(SEEDS) || hardship.two_builds || has_no_workers {
        return vec![];
    }
    (0..dice.between(1, 3)).filter_map(|number| job(&dice, number, storm)).collect()
}

fn job(dice: &Dice, number: u64, storm: Millis) -> Option<Job> {
    let at = START.plus(dice.millis(0, storm.as_u64() / 2));
    let client = u8::try_from(dice.between(0, 1)).unwrap_or(0);
    let request = cron(dice, number)?;
    Some(Job { at, client, request: JobRequest::Cron(Box::new(request)), repeats: dice.between(0, 1) })
}

fn cron(dice: &Dice, number: u64) -> Option<CronRequest> {
    let work = if dice.chance(500) { of_tasks(dice)? } else { of_executions(dice)? };
    // Each run of a script may take an hour.
    let most = if matches!(work, CronWork::Task(..)) { 8 } else { 3 };
    let plan = Plan {
        when: When::Every(interval(dice)?),
        overlap: dice.pick(OVERLAPS),
        missed: dice.pick([Missed::Skip, Missed::RunOnce]),
        jitter: dice.pick([Millis::ZERO, Millis::ZERO, Millis::from_secs(10)]),
        max_runs: NonZeroU32::new(u32::try_from(dice.between(2, most)).ok()?),
    };
    let id = CronId::parse(format!("{PREFIX}{number}")).ok()?;
    Some(CronRequest { id: Some(id), work, template: None, plan, paused: None })
}

/// Every overlap; those in which the next run waits for the last one more often.
const OVERLAPS: [Overlap; 8] = [
    Overlap::Skip,
    Overlap::BufferOne,
    Overlap::BufferOne,
    Overlap::BufferAll,
    Overlap::BufferAll,
    Overlap::AllowAll,
    Overlap::CancelOther,
    Overlap::TerminateOther,
];

/// An interval between two runs.
pub fn interval(dice: &Dice) -> Option<Interval> {
    Interval::new(Millis::from_secs(dice.pick([7, 20, 60, 240, 600]))).ok()
}

fn of_tasks(dice: &Dice) -> Option<CronWork> {
    let mut task = request(dice);
    (task.id, task.idempotency_key) = (None, None);
    let input = task.input.as_ref()?.as_str();
    let given = format!(r#"{{"queue":"{}","kind":"{}","input":{input}}}"#, task.queue, task.kind);
    Some(CronWork::Task(Box::new(task), Json::parse(given)?))
}

fn of_executions(dice: &Dice) -> Option<CronWork> {
    let script = if dice.chance(400) { Script::of(dice.roll(), false) } else { Script::short(dice.roll()) };
    let workflow = super::execution::workflow();
    let input = script.input();
    let given = format!(r#"{{"workflow":"{workflow}","input":{}}}"#, input.as_str());
    let start = StartRequest {
        on_failure: script.on_failure.map(|one| one.budget),
        input: Some(input),
        ..StartRequest::new(workflow, queue(dice))
    };
    Some(CronWork::Execution(Box::new(start), Json::parse(given)?))
}
