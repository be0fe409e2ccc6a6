//! The last day of a deployment, which `CloudWatch` has: its API keeps none.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tickover::client::ClientError;
use tickover::client::aws::Aws;
use tickover_core::id::QueueName;
use tickover_wire::answer::HistoryAnswer;
use tickover_wire::request::HistoryQuery;
use tokio::sync::Mutex;

/// For how long an answer is given again: AWS bills each metric that is read, and there is nothing new before.
const KEPT_FOR: Duration = Duration::from_mins(5);
/// Most queues whose answers are kept.
const QUEUES_MAX: usize = 100;

/// The metrics of one deployment, read with the caller's credentials.
pub(crate) struct Metrics {
    aws: Aws,
    stack: String,
    /// Locked during a call, so that two pages make one.
    kept: Mutex<HashMap<Option<QueueName>, (Instant, HistoryAnswer)>>,
}

impl Metrics {
    pub(super) fn new(aws: Aws, stack: String) -> Self {
        Self { aws, stack, kept: Mutex::default() }
    }

    /// What the local server would answer: the parts of the day from an instant on.
    pub(crate) async fn history(&self, query: &HistoryQuery) -> Result<HistoryAnswer, ClientError> {
        let mut kept = self.kept.lock().await;
        kept.retain(|_, (read_at, _)| read_at.elapsed() < KEPT_FOR);
        let mut answer = if let Some((_, answer)) = kept.get(&query.queue) {
            answer.clone()
        } else {
            let answer = self.aws.history(&self.stack, query.queue.as_ref()).await?;
            if kept.len() < QUEUES_MAX {
                kept.insert(query.queue.clone(), (Instant::now(), answer.clone()));
            }
            answer
        };
        if let Some(from) = query.from {
            answer.parts.retain(|part| part.at.0 >= from.0);
        }
        Ok(answer)
    }
}
