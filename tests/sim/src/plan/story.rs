//! When which executions of example workflows are started, and when the events that they wait for are sent.

use std::collections::BTreeMap;

use tickover_core::duration::Millis;
use tickover_core::execution::ExecutionTimeouts;
use tickover_core::id::ExecutionId;

use super::execution::{Content, SendEventBody};
use super::{Job, JobRequest, START, next_minute};
use crate::dice::Dice;
use crate::flows::story::{Awaited, Story};
use crate::hardship::Hardship;

/// In so many of a thousand seeds, workers run the SDK's engine instead of scripts.
const OFTEN: u64 = 75;

/// The executions of a seed, if it is one of those.
pub(super) fn stories(seed: u64, hardship: &Hardship) -> BTreeMap<ExecutionId, Story> {
    let dice = Dice::new(seed, "stories");
    let mut stories = BTreeMap::new();
    let has_other_workers = hardship.has_good_workers() || hardship.concurrency.is_some();
    if has_other_workers || !dice.chance(OFTEN) {
        return stories;
    }
    for number in 0..dice.between(3, 6) {
        let story = Story::of(&dice);
        stories.extend(ExecutionId::parse(format!("f{number}")).ok().map(|id| (id, story)));
    }
    stories
}

/// The clients' calls for them.
pub(super) fn jobs(seed: u64, storm: Millis, stories: &BTreeMap<ExecutionId, Story>) -> Vec<Job> {
    let dice = Dice::new(seed, "stories' jobs");
    let mut jobs = Vec::new();
    for (id, story) in stories {
        let at = START.plus(dice.millis(0, storm.as_u64() * 3 / 4));
        let at = if dice.chance(300) { next_minute(at) } else { at };
        let mut request = story.request(id);
        if dice.chance(100) {
            let execution = Some(dice.secs(5, 900));
            request.timeouts = ExecutionTimeouts { execution, ..request.timeouts };
        }
        let mut job = |at, request, repeats| {
            let client = u8::try_from(dice.between(0, 1)).unwrap_or(0);
            jobs.push(Job { at, client, request, repeats });
        };
        let repeats = u64::from(!story.is_only_once() && dice.chance(250));
        job(at, JobRequest::Start(Box::new(request)), repeats);
        for Awaited { event, id: event_id, payload, within } in story.events() {
            let (to, content) = (id.clone(), Content::Same(payload));
            let offering = SendEventBody { to, event, id: event_id, asks: false, content };
            job(at.plus(dice.millis(0, within.as_u64())), JobRequest::SendEvent(offering), 0);
        }
    }
    jobs
}
