//! The history of the last day.

use tickover_service::Service;
use tickover_service::history::SAMPLE_LENGTH;
use tickover_service::ports::Sample;
use tickover_wire::answer::{HistoryAnswer, HistoryPartView};
use tickover_wire::request::HistoryQuery;
use tickover_wire::{Instant, read};

use crate::answer::Answer;
use crate::problem::Problem;

/// The last day, of all queues or of one. The query is a list of names and values, already percent-decoded.
pub fn history(service: &Service, query: &[(String, String)]) -> Result<Answer, Problem> {
    let HistoryQuery { queue, from } = read::query(query)?;
    let Some(samples) = service.history(queue.as_ref(), from.map(|Instant(at)| at))? else {
        return Err(Problem::no_history());
    };
    let parts = samples.iter().map(part).collect();
    Answer::ok(&HistoryAnswer { every: SAMPLE_LENGTH.into(), parts, note: None })
}

fn part(sample: &Sample) -> HistoryPartView {
    HistoryPartView {
        at: sample.at.into(),
        completed: sample.completed,
        failed: sample.failed,
        late_ms: sample.late.as_u64(),
        depth: sample.depth,
        oldest_ms: sample.oldest.as_u64(),
        running: sample.running,
    }
}
