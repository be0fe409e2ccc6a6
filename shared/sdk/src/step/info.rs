//! What a running step can read about itself.

use std::future::Future;
use std::sync::Arc;

use tokio::sync::watch;

tokio::task_local! {
    static INFO: Infos;
}

/// What an attempt knows about itself: an entry for each of its tasks.
#[derive(Clone, Debug)]
struct Infos {
    tasks: Vec<StepInfo>,
    is_batch: bool,
}

/// The running attempt.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StepInfo {
    /// The key is the same for all attempts of this step in this run, and different for every other step. Pass it to
    /// services that accept an idempotency key, so that a repeated attempt has one effect.
    pub idempotency_key: String,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The step's name in the run.
    pub name: String,
    /// The trace that the work belongs to, as in a `traceparent` header: for calls to other services and for your own
    /// spans. `None` if traces aren't carried, or if the start named none.
    pub traceparent: Option<String>,
    /// The last progress that an earlier attempt reported, from 0 to 1; see [`StepInfo::heartbeat`].
    pub progress: Option<f64>,
    pub(crate) progress_sender: ProgressSender,
}

/// The progress that an attempt reports, with its receivers.
#[derive(Clone, Debug)]
pub(crate) struct ProgressSender(Arc<watch::Sender<Option<f64>>>);

/// Information about the step that calls this function. `None` outside of a step, in tasks that a step has spawned, and
/// in a step with a batch: see [`step_infos`].
pub fn step_info() -> Option<StepInfo> {
    let alone = |infos: &Infos| infos.tasks.first().filter(|_| !infos.is_batch).cloned();
    INFO.try_with(alone).ok().flatten()
}

/// Information about the tasks of the batch that calls this function, in the order of its inputs. One entry in a step
/// without a batch, and none outside of a step and in tasks that a step has spawned.
///
/// ```
/// use tickover::prelude::*;
/// use tickover::step_infos;
///
/// #[tickover::step(remote, batch(50, within = "2s"))]
/// async fn send(mails: Vec<String>) -> Vec<Result<String>> {
///     // Each mail with its own key, so that a repeated attempt sends it once.
///     let keyed = mails.iter().zip(step_infos());
///     keyed.map(|(mail, info)| Ok(format!("{mail} as {}", info.idempotency_key))).collect()
/// }
/// ```
pub fn step_infos() -> Vec<StepInfo> {
    INFO.try_with(|infos| infos.tasks.clone()).unwrap_or_default()
}

impl StepInfo {
    /// Reports the step's progress, from 0 to 1. Values outside this range are set to 0 or 1. The next attempt finds it
    /// in [`StepInfo::progress`] and can continue from there.
    ///
    /// A remote step's worker sends the progress with its heartbeats, at most every ten seconds, and it is shown with
    /// the step's task. The progress of an inline step is stored when its attempt fails. If the worker is lost, the
    /// progress of that attempt is lost too.
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
            self.progress_sender.0.send_replace(Some(progress.clamp(0.0, 1.0)));
        }
    }

    /// Runs an attempt for which [`step_info`] returns this.
    pub(crate) async fn scope<F: Future>(self, attempt: F) -> F::Output {
        INFO.scope(Infos { tasks: vec![self], is_batch: false }, attempt).await
    }

    /// Runs an attempt for which [`step_infos`] returns these.
    pub(crate) async fn scope_batch<F: Future>(tasks: Vec<Self>, attempt: F) -> F::Output {
        INFO.scope(Infos { tasks, is_batch: true }, attempt).await
    }
}

impl ProgressSender {
    /// The last reported progress.
    pub(crate) fn last(&self) -> Option<f64> {
        *self.0.borrow()
    }

    /// A receiver of later reports.
    pub(crate) fn listen(&self) -> watch::Receiver<Option<f64>> {
        self.0.subscribe()
    }
}

impl Default for ProgressSender {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_a_step_sees_its_own_information() {
        let (key, name) = ("k".to_owned(), "charge".to_owned());
        let (traceparent, progress, progress_sender) = (None, Some(0.5), ProgressSender::default());
        let info =
            StepInfo { idempotency_key: key, attempt: 2, name, traceparent, progress, progress_sender };
        let seen = info.clone().scope(async { step_info() }).await.unwrap();
        assert_eq!((seen.idempotency_key.as_str(), seen.attempt), ("k", 2));
        assert_eq!((seen.name.as_str(), seen.progress), (info.name.as_str(), Some(0.5)));
        for (reported, expected) in [(0.75, 0.75), (f64::NAN, 0.75), (7.0, 1.0), (-1.0, 0.0)] {
            seen.heartbeat(reported);
            assert_eq!(info.progress_sender.last(), Some(expected));
        }
        assert!(step_info().is_none());
    }
}
