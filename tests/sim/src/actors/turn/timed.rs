//! A step whose timeout is recorded before it starts. The timeout fires even if the worker is lost or never checks it.

use tickover_core::duration::Millis;
use tickover_core::execution::journal::{Happened, StepOutcome};
use tickover_core::id::StepName;

use super::{Behaviour, Flow, RunningTurn, Stop};
use crate::history::execution::Done;

impl RunningTurn<'_> {
    /// Its body doesn't check the time. Whether it was too late is decided when it is done, unless another process has
    /// recorded that before.
    pub(super) async fn timed(&mut self, name: StepName, within: Millis) -> Result<Flow, Stop> {
        let now = self.process.now();
        let begun_at = match self.last(&name) {
            Some(Happened::Attempt { first_at, .. }) => *first_at,
            Some(_) | None => now,
        };
        if let Some(held) = self.held() {
            return Ok(held);
        }
        let timeout_at = begun_at.plus(within);
        if now < timeout_at {
            let (attempt, first_at, next_at) = (1, begun_at, Some(timeout_at));
            let (error, progress, begun) = (None, None, name.clone());
            self.push(Happened::Attempt {
                name: begun,
                attempt,
                first_at,
                error,
                next_at,
                progress,
                details: None,
                is_ongoing: false,
                errors: vec![],
            });
            self.record().await?;
            self.maybe_fall_silent()?;
            self.did(Done::Began(name.clone()));
            self.work().await?;
        }
        let in_time = self.process.now() < timeout_at;
        let outcome = if in_time { StepOutcome::Completed { output: None } } else { StepOutcome::TimedOut };
        self.push(Happened::Step { name, outcome, attempts: Some(1), expired: None, errors: vec![] });
        if self.behaviour == Behaviour::Careful {
            self.record().await?;
        }
        Ok(Flow::Next)
    }
}
