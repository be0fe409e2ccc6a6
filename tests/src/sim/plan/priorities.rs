//! Priorities and tenants: in a share of the seeds, tasks have them, and hints of each priority wait in a queue of their
//! own.

use tickover_core::flow::Priority;
use tickover_core::id::FlowKey;

use super::{Job, JobRequest};
use crate::sim::dice::Dice;

/// Of a thousand seeds, in so many tasks have priorities.
const SEEDS: u64 = 250;

/// Gives tasks their priorities. Returns whether this seed has any.
pub(super) fn add(seed: u64, jobs: &mut [Job]) -> bool {
    let dice = Dice::new(seed, "priorities");
    if !dice.chance(SEEDS) {
        return false;
    }
    for job in jobs {
        let JobRequest::Schedule(requests) = &mut job.request else { continue };
        for request in requests {
            request.flow.priority = dice.pick(Priority::ALL);
            request.flow.fairness = FlowKey::parse(dice.pick(["ada", "bob", "eve"])).ok();
        }
    }
    true
}
