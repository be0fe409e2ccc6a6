//! What a running step can ask about itself.

use std::future::Future;
use std::sync::Arc;

use tokio::sync::watch;

tokio::task_local! {
    static INFO: StepInfo;
}

/// The attempt that is running.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StepInfo {
    /// The same for all attempts of this step in this run and different from every other step's: for outside
    /// services that take such a key, so that an attempt that is repeated has one effect.
    pub idempotency_key: String,
    /// Counts from 1.
    pub attempt: u32,
    /// The step's name in the run.
    pub name: String,
    /// The trace that the work belongs to, as in a `traceparent` header: for calls to others, and for spans of one's
    /// own. `None` where traces aren't carried, or nobody named one.
    pub traceparent: Option<String>,
    /// How far an earlier attempt said it had come, from 0 to 1; see [`StepInfo::heartbeat`].
    pub progress: Option<f64>,
    pub(crate) pulse: Pulse,
}

/// What an attempt says of how far it has come, and who listens.
#[derive(Clone, Debug)]
pub(crate) struct Pulse(Arc<watch::Sender<Option<f64>>>);

/// What is known of the step that calls this. `None` outside of a step, and in what a step has spawned.
pub fn step_info() -> Option<StepInfo> {
    INFO.try_with(Clone::clone).ok()
}

impl StepInfo {
    /// Says how far the step has come, from 0 to 1; what lies outside counts as the nearer of the two. The next attempt
    /// finds it in [`StepInfo::progress`], and can go on from there.
    ///
    /// A remote step's worker sends it along with its signs of life, at most every ten seconds, and people see it where
    /// they look at the step's task. Of a step in place it is written down with the attempt's failure: what an attempt
    /// said that was lost with its worker is lost as well.
    ///
    /// ```
    /// use tickover::prelude::*;
    ///
    /// #[tickover::step(retry = "fixed(3, 10s)")]
    /// async fn import(rows: u32) -> Result<u32> {
    ///     let info = step_info().ok_or_else(|| Error::new("no_step", "it runs elsewhere"))?;
    ///     // Where the attempt before this one came to.
    ///     let done = info.progress.map_or(0, |part| (part * f64::from(rows)) as u32);
    ///     for row in done..rows {
    ///         // … the row is imported …
    ///         info.heartbeat(f64::from(row + 1) / f64::from(rows));
    ///     }
    ///     Ok(rows - done)
    /// }
    /// ```
    pub fn heartbeat(&self, progress: f64) {
        if !progress.is_nan() {
            self.pulse.0.send_replace(Some(progress.clamp(0.0, 1.0)));
        }
    }

    /// Runs an attempt that is told this about itself.
    pub(crate) async fn scope<F: Future>(self, attempt: F) -> F::Output {
        INFO.scope(self, attempt).await
    }
}

impl Pulse {
    /// What was told last.
    pub(crate) fn told(&self) -> Option<f64> {
        *self.0.borrow()
    }

    /// Hears of what is told from now on.
    pub(crate) fn listen(&self) -> watch::Receiver<Option<f64>> {
        self.0.subscribe()
    }
}

impl Default for Pulse {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_step_sees_itself_and_nobody_else_does() {
        let (key, name) = ("k".to_owned(), "charge".to_owned());
        let (traceparent, progress, pulse) = (None, Some(0.5), Pulse::default());
        let info = StepInfo { idempotency_key: key, attempt: 2, name, traceparent, progress, pulse };
        let seen = info.clone().scope(async { step_info() }).await.unwrap();
        assert_eq!((seen.idempotency_key.as_str(), seen.attempt), ("k", 2));
        assert_eq!((seen.name.as_str(), seen.progress), (info.name.as_str(), Some(0.5)));
        for (said, told) in [(0.75, 0.75), (f64::NAN, 0.75), (7.0, 1.0), (-1.0, 0.0)] {
            seen.heartbeat(said);
            assert_eq!(info.pulse.told(), Some(told));
        }
        assert!(step_info().is_none());
    }
}
