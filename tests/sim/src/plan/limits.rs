//! Concurrency limits: in a share of the seeds, most tasks and some executions have a key or two.

use std::num::NonZeroU16;

use tickover_core::flow::{Concurrency, Priority};
use tickover_core::id::FlowKey;

use tickover_service::crons::CronWork;

use super::{Job, JobRequest};
use crate::dice::Dice;

/// Of a thousand seeds, in so many tasks have keys.
const SEEDS: u64 = 300;
/// Of a thousand of these, in so many executions have them as well.
const WITH_EXECUTIONS: u64 = 600;
/// The keys. The limit of each is the same for all tasks of a run.
const KEYS: [&str; 2] = ["customer", "smtp"];

/// Gives tasks their keys.
pub(super) fn add(seed: u64, jobs: &mut [Job]) {
    let dice = Dice::new(seed, "limits");
    if !dice.chance(SEEDS) {
        return;
    }
    let limits = KEYS.map(|_| u16::try_from(dice.between(1, 3)).unwrap_or(1));
    let keys = |dice: &Dice, chance| -> Vec<Concurrency> {
        let asked = KEYS.iter().zip(limits).filter(|_| dice.chance(chance));
        let asked = asked.filter_map(|(key, limit)| {
            Some(Concurrency { key: FlowKey::parse(*key).ok()?, limit: NonZeroU16::new(limit)? })
        });
        asked.collect()
    };
    let of_executions = Dice::new(seed, "limits of executions");
    let has_executions = of_executions.chance(WITH_EXECUTIONS);
    for job in jobs {
        let requests = match &mut job.request {
            JobRequest::Schedule(requests) => requests,
            JobRequest::Start(start) if has_executions => {
                start.flow.concurrency = keys(&of_executions, 700);
                continue;
            }
            JobRequest::StartTogether(starts) if has_executions => {
                for start in starts {
                    start.flow.concurrency = keys(&of_executions, 700);
                }
                continue;
            }
            JobRequest::Cron(cron) => {
                match &mut cron.work {
                    CronWork::Task(task, _) => task.flow.concurrency = keys(&dice, 600),
                    CronWork::Execution(start, _) if has_executions => {
                        start.flow.concurrency = keys(&of_executions, 700);
                    }
                    CronWork::Execution(..) => {}
                }
                continue;
            }
            JobRequest::Start(_) | JobRequest::StartTogether(_) | JobRequest::SendEvent(_) => continue,
        };
        for request in requests {
            request.flow.concurrency = keys(&dice, 600);
            let priority = dice.pick([Priority::High, Priority::Normal, Priority::Normal, Priority::Low]);
            if request.flow.priority == Priority::Normal {
                request.flow.priority = priority;
            }
        }
    }
}
