//! Rates: in a share of the seeds, most tasks and many executions start by the rate of one key.

use std::num::NonZeroU32;

use tickover_core::flow::Rate;
use tickover_core::id::FlowKey;

use tickover_service::crons::CronWork;

use super::{Job, JobRequest};
use crate::dice::Dice;

/// Of a thousand seeds, in so many tasks have a rate.
const SEEDS: u64 = 300;
/// Of a thousand tasks of such a seed, so many have it.
const TASKS: u64 = 700;
/// Of a thousand executions, so many.
const EXECUTIONS: u64 = 400;
const KEY: &str = "smtp";

/// Gives tasks the rate of the run.
pub(super) fn add(seed: u64, jobs: &mut [Job]) {
    let dice = Dice::new(seed, "rates");
    if !dice.chance(SEEDS) {
        return;
    }
    let limit = dice.between(1, 4);
    let burst = dice.between(1, limit);
    let per = dice.millis(5_000, 240_000);
    let whole = |number: u64| NonZeroU32::new(u32::try_from(number).unwrap_or(1));
    let (Ok(key), Some(limit), Some(burst)) = (FlowKey::parse(KEY), whole(limit), whole(burst)) else {
        return;
    };
    let rate = Rate { key, limit, per, burst };
    let of_executions = Dice::new(seed, "rates of executions");
    for job in jobs {
        match &mut job.request {
            JobRequest::Schedule(requests) => {
                for request in requests.iter_mut().filter(|_| dice.chance(TASKS)) {
                    request.flow.rate = Some(rate.clone());
                }
            }
            JobRequest::Start(start) if of_executions.chance(EXECUTIONS) => {
                start.flow.rate = Some(rate.clone());
            }
            JobRequest::Cron(cron) if dice.chance(TASKS) => match &mut cron.work {
                CronWork::Task(task, _) => task.flow.rate = Some(rate.clone()),
                CronWork::Execution(start, _) => start.flow.rate = Some(rate.clone()),
            },
            JobRequest::Cron(_)
            | JobRequest::Start(_)
            | JobRequest::StartTogether(_)
            | JobRequest::SendEvent(_) => {}
        }
    }
}
