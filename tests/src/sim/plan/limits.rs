//! Concurrency limits: in a share of the seeds, most tasks have a key or two.

use std::num::NonZeroU16;

use tickover_core::flow::{Concurrency, FlowRequest, Priority};
use tickover_core::id::FlowKey;

use super::{Job, JobRequest};
use crate::sim::dice::Dice;

/// Of a thousand seeds, in so many tasks have keys.
const SEEDS: u64 = 300;
/// The keys. The limit of each is the same for all tasks of a run.
const KEYS: [&str; 2] = ["customer", "smtp"];

/// Gives tasks their keys.
pub(super) fn add(seed: u64, jobs: &mut [Job]) {
    let dice = Dice::new(seed, "limits");
    if !dice.chance(SEEDS) {
        return;
    }
    let limits = KEYS.map(|_| u16::try_from(dice.between(1, 3)).unwrap_or(1));
    for job in jobs {
        let JobRequest::Schedule(requests) = &mut job.request else { continue };
        for request in requests {
            let asked = KEYS.iter().zip(limits).filter(|_| dice.chance(600)).filter_map(|(key, limit)| {
                Some(Concurrency { key: FlowKey::parse(*key).ok()?, limit: NonZeroU16::new(limit)? })
            });
            let concurrency: Vec<Concurrency> = asked.collect();
            let priority = dice.pick([Priority::High, Priority::Normal, Priority::Normal, Priority::Low]);
            request.flow = FlowRequest { concurrency, priority, ..FlowRequest::default() };
        }
    }
}
