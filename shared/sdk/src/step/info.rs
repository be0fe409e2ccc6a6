//! What a running step can read about itself.

use std::future::Future;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tickover_core::limits;
use tickover_core::payload::Json;
use tokio::sync::watch;

use crate::codec;
use crate::error::{Error, Result};

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
    /// services that accept an idempotency key, so that a repeated attempt has one effect. If a rerun or `retry_step` repeats
    /// a step because it failed, it has the same key again; a step that a rerun names has a new one.
    pub idempotency_key: String,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The step's name in the run.
    pub name: String,
    /// The trace that the work belongs to, as in a `traceparent` header: for calls to other services and for your own
    /// spans. `None` if traces aren't carried, or if the start named none.
    pub traceparent: Option<String>,
    /// The last progress that an earlier attempt reported, from 0 to 1; see [`StepInfo::heartbeat`]. An earlier attempt
    /// may also have left [details](StepInfo::details).
    pub progress: Option<f64>,
    pub(crate) progress_sender: ProgressSender,
}

/// What an attempt reports while it runs, with its receivers, and the details that an earlier attempt left.
#[derive(Clone, Debug)]
pub(crate) struct ProgressSender {
    beats: Arc<watch::Sender<Beat>>,
    earlier_details: Option<Json>,
}

/// All reports of an attempt until now. Each report is a sign of life, even if it repeats the values of the last one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Beat {
    /// The number of reports.
    pub(crate) number: u64,
    /// The last progress that this attempt reported.
    pub(crate) progress: Option<f64>,
    /// The last details that this attempt reported.
    pub(crate) details: Option<Json>,
}

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
    /// Reports the step's progress, from 0 to 1, and that its code is alive. Values outside this range are set to 0 or
    /// 1. The next attempt finds it in [`StepInfo::progress`] and can continue from there.
    ///
    /// A step with a `heartbeat` timeout must report at least once in that time: here, by [`StepInfo::beat`] or by
    /// [`StepInfo::heartbeat_with`]. The worker sends no sign of life for the code.
    ///
    /// Calls are cheap: a remote step's worker sends at most one report in each third of the `heartbeat` timeout, or each
    /// ten seconds without one. It sends the last values, and they are shown with the step's task. The values of an
    /// inline step are stored with the next write of its execution, which is at the latest the next renewal of its lease.
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
        let progress = (!progress.is_nan()).then(|| progress.clamp(0.0, 1.0));
        self.progress_sender.report(progress, None);
    }

    /// Reports that the step's code is alive, without a value; see [`StepInfo::heartbeat`].
    pub fn beat(&self) {
        self.progress_sender.report(None, None);
    }

    /// Reports details of the step's progress, and that its code is alive; see [`StepInfo::heartbeat`]. The next attempt
    /// finds them with [`StepInfo::details`] and can continue from there. They replace earlier details.
    ///
    /// # Errors
    /// If the details have no form in JSON, or more than 512 bytes in it (`limit_exceeded`). Nothing is reported then.
    ///
    /// ```
    /// use tickover::prelude::*;
    ///
    /// #[tickover::step(remote, heartbeat = "30s", retry = "fixed(3, 10s)")]
    /// async fn copy(files: Vec<String>) -> Result<()> {
    ///     let info = step_info().ok_or_else(|| Error::new("no_step", "it runs elsewhere"))?;
    ///     // The last file that an earlier attempt copied.
    ///     let copied: Option<String> = info.details()?;
    ///     let left = files.iter().skip_while(|file| copied.as_ref().is_some_and(|copied| *file != copied));
    ///     for file in left {
    ///         // … the file is copied …
    ///         info.heartbeat_with(file)?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn heartbeat_with<T: Serialize + ?Sized>(&self, details: &T) -> Result<()> {
        let details = codec::encode(details)?;
        limits::check("details", details.len(), limits::DETAILS_MAX)
            .map_err(|reject| Error::new(reject.code(), reject.to_string()))?;
        self.progress_sender.report(None, Some(details));
        Ok(())
    }

    /// Reads the last details that an earlier attempt reported with [`StepInfo::heartbeat_with`]. `None` if there are
    /// none.
    ///
    /// # Errors
    /// If they aren't of the type `T`.
    pub fn details<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        let details = self.progress_sender.earlier_details.as_ref();
        Ok(details.map(codec::decode).transpose()?)
    }

    /// Runs an attempt for which [`step_info`] returns this.
    pub(crate) async fn scope<F: Future>(self, attempt: F) -> F::Output {
        Self::run(Infos { tasks: vec![self], is_batch: false }, attempt).await
    }

    /// Runs an attempt for which [`step_infos`] returns these.
    pub(crate) async fn scope_batch<F: Future>(tasks: Vec<Self>, attempt: F) -> F::Output {
        Self::run(Infos { tasks, is_batch: true }, attempt).await
    }

    async fn run<F: Future>(infos: Infos, attempt: F) -> F::Output {
        #[cfg(feature = "test")]
        let _running = running::Running::begin();
        INFO.scope(infos, attempt).await
    }
}

/// The attempts that were begun on this thread and run: a test waits in real time only if there are any.
#[cfg(feature = "test")]
pub(crate) mod running {
    use std::sync::Arc;

    thread_local! {
        static BEGUN_HERE: Arc<()> = Arc::default();
    }

    /// How many there are.
    pub(crate) fn count() -> usize {
        BEGUN_HERE.with(Arc::strong_count) - 1
    }

    /// One of them, until it is dropped: on any thread, since a runtime moves its tasks.
    pub(super) struct Running {
        _begun: Arc<()>,
    }

    impl Running {
        pub(super) fn begin() -> Self {
            Self { _begun: BEGUN_HERE.with(Arc::clone) }
        }
    }
}

impl ProgressSender {
    /// A sender for an attempt after one that has left these details.
    pub(crate) fn after(earlier_details: Option<Json>) -> Self {
        Self { earlier_details, ..Self::default() }
    }

    fn report(&self, progress: Option<f64>, details: Option<Json>) {
        self.beats.send_modify(|beat| {
            beat.number += 1;
            beat.progress = progress.or(beat.progress);
            beat.details = details.or_else(|| beat.details.take());
        });
    }

    /// Everything that this attempt has reported until now.
    pub(crate) fn last_beat(&self) -> Beat {
        self.beats.borrow().clone()
    }

    /// A receiver of later reports. Each report wakes it, even if its values are those of the last one.
    pub(crate) fn listen(&self) -> watch::Receiver<Beat> {
        self.beats.subscribe()
    }
}

impl Default for ProgressSender {
    fn default() -> Self {
        Self { beats: Arc::new(watch::Sender::new(Beat::default())), earlier_details: None }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::task::{Context, Waker};

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
            assert_eq!(info.progress_sender.last_beat().progress, Some(expected));
        }
        assert!(step_info().is_none());
    }

    fn info(earlier_details: Option<&str>) -> StepInfo {
        StepInfo {
            idempotency_key: "k".to_owned(),
            attempt: 1,
            name: "copy".to_owned(),
            traceparent: None,
            progress: None,
            progress_sender: ProgressSender::after(earlier_details.and_then(Json::parse)),
        }
    }

    #[test]
    fn each_report_wakes_the_receiver_even_if_it_says_nothing_new() {
        let info = info(None);
        let mut receiver = info.progress_sender.listen();
        assert!(!receiver.has_changed().unwrap());
        let reports: [&dyn Fn(); 5] = [
            &|| info.beat(),
            &|| info.heartbeat(0.5),
            &|| info.heartbeat(0.5),
            &|| info.heartbeat_with(&["a"]).unwrap(),
            &|| info.beat(),
        ];
        for (number, report) in (1..).zip(reports) {
            report();
            assert!(receiver.has_changed().unwrap(), "{number}");
            assert_eq!(receiver.borrow_and_update().number, number);
        }
        let last = info.progress_sender.last_beat();
        assert_eq!((last.progress, last.details.as_ref().map(Json::as_str)), (Some(0.5), Some(r#"["a"]"#)));
    }

    #[test]
    fn details_have_at_most_512_bytes_and_are_read_by_their_type() {
        let info = info(Some(r#"{"processed":120}"#));
        let details: Option<std::collections::BTreeMap<String, u32>> = info.details().unwrap();
        assert_eq!(details.unwrap()["processed"], 120);
        assert!(info.details::<u32>().is_err());
        info.heartbeat_with(&"x".repeat(510)).unwrap();
        let refused = info.heartbeat_with(&"x".repeat(511)).unwrap_err();
        assert_eq!(refused.code(), "limit_exceeded");
        assert_eq!(info.progress_sender.last_beat().number, 1);
        assert_eq!(
            super::StepInfo { progress_sender: ProgressSender::default(), ..info }.details::<u32>().unwrap(),
            None
        );
    }

    #[cfg(feature = "test")]
    #[test]
    fn an_attempt_that_ends_on_another_thread_no_longer_runs() {
        let mut attempt = Box::pin(info(None).scope(pending::<()>()));
        let mut context = Context::from_waker(Waker::noop());
        assert!(attempt.as_mut().poll(&mut context).is_pending());
        assert_eq!(running::count(), 1);
        let elsewhere = std::thread::spawn(move || {
            drop(attempt);
            running::count()
        });
        assert_eq!(elsewhere.join().unwrap(), 0);
        assert_eq!(running::count(), 0);
    }
}
