//! Priorities and tenants: in a share of the seeds, tasks have them, and hints of each priority wait in a queue of their
//! own.

use tickover_core::flow::Priority;
use tickover_core::id::FlowKey;

use tickover_service::crons::CronWork;

use super::{Job, JobRequest};
use crate::dice::Dice;

/// Of a thousand seeds, in so many tasks have priorities.
const SEEDS: u64 = 250;

/// Gives tasks their priorities. Returns whether this seed has any.
pub(super) fn add(seed: u64, jobs: &mut [Job]) -> bool {
    let dice = Dice::new(seed, "priorities");
    if !dice.chance(SEEDS) {
        return false;
    }
    for job in jobs {
        let requests: &mut [_] = match &mut job.request {
            JobRequest::Schedule(requests) => requests,
            JobRequest::Cron(cron) => match &mut cron.work {
                CronWork::Task(task, _) => std::slice::from_mut(&mut **task),
                CronWork::Execution(..) => continue,
            },
            JobRequest::Start(_) | JobRequest::StartTogether(_) | JobRequest::SendEvent(_) => continue,
        };
        for request in requests {
            request.flow.priority = dice.pick(Priority::ALL);
            request.flow.fairness = FlowKey::parse(dice.pick(["ada", "bob", "eve"])).ok();
        }
    }
    true
}
