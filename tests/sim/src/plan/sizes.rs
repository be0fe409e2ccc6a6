//! Plans of executions that are larger than those of others: with very many children, and with very many events.

use tickover_core::duration::Millis;
use tickover_core::id::ExecutionId;
use tickover_core::payload::Json;
use tickover_service::executions::StartRequest;

use super::execution::{Content, SendEventBody, workflow};
use super::{Job, JobRequest, Plan, QUEUES, START};
use crate::dice::Dice;
use crate::hardship::Hardship;
use crate::script::{EVENTS, Script};
use crate::world::queue;

/// How many events one execution gets.
pub const SENT: u64 = 500;
/// Within this time.
const WITHIN_MS: u64 = 90_000;

impl Plan {
    /// One execution that has very many children, and one that gets very many events.
    pub fn large(seed: u64) -> Self {
        let dice = Dice::new(seed, "sizes");
        let start = |id: &str, script: &Script| {
            let request = StartRequest {
                id: ExecutionId::parse(id).ok(),
                input: Some(script.input()),
                ..StartRequest::new(workflow(), queue(dice.pick(QUEUES)))
            };
            Job { at: START, client: 0, request: JobRequest::Start(Box::new(request)), repeats: 0 }
        };
        let mut jobs = vec![start("wide", &Script::wide(seed)), start("eventful", &Script::eventful(seed))];
        let to = ExecutionId::parse("eventful").ok();
        jobs.extend(to.iter().flat_map(|to| (0..SENT).map(|number| event(&dice, to, number))));
        jobs.sort_by_key(|job| job.at);
        let hardship = Hardship { is_calm: true, ..Hardship::default() };
        Self { hardship, jobs, ..Self::calm(seed, Hardship::default()) }
    }
}

fn event(dice: &Dice, to: &ExecutionId, number: u64) -> Job {
    let content = Content::Same(Json::string(&format!("{number} {}", "x".repeat(dice.pick([0, 20, 200])))));
    let sent = SendEventBody { to: to.clone(), event: EVENTS[0], id: None, asks: false, content };
    let at = START.plus(Millis::from_secs(1)).plus(dice.millis(0, WITHIN_MS));
    Job { at, client: 1, request: JobRequest::SendEvent(sent), repeats: 0 }
}
