//! One task from its claim to its report.

use std::sync::Arc;

use tickover_core::duration::Millis;
use tickover_core::task::Status;
use tickover_wire::FailureCode;
use tickover_wire::answer::{ClaimedView, TaskView};
use tickover_wire::request::FailError;
use tokio::time::Instant;

use crate::show::say;

use super::lease::{self, LeaseState, StopReason};
use super::process::{End, Process};
use super::report::Report;
use super::stop::Stop;
use super::tally::Ending;
use super::{Worker, report, result};

/// A task that this worker has claimed.
pub(super) struct Attempt {
    pub(super) worker: Arc<Worker>,
    pub(super) task: ClaimedView,
    /// When the claim's answer arrived: the lease and the deadline count from here.
    pub(super) claimed_at: Instant,
    pub(super) stop: Stop,
}

/// The reason why the wait for the command ended.
enum WaitEnd {
    Ended(End),
    Stopped(StopReason),
    Aborted,
}

impl Attempt {
    /// Runs the command and reports its outcome.
    pub(super) async fn run(self) -> Ending {
        let mut process = match Process::start(&self.worker, &self.task) {
            Ok(process) => process,
            Err(error) => {
                self.release().await;
                return Ending::Unstartable(error);
            }
        };
        let signs = process.signs();
        let mut state = LeaseState::new(&self.worker, &self.task, self.claimed_at);
        let alive = lease::keep(&self.worker, &self.task, &mut state, signs.clone());
        let wait_end = tokio::select! {
            // If the command has ended, that counts first, even if another branch is ready at the same time.
            biased;
            end = process.end() => WaitEnd::Ended(end),
            reason = alive => WaitEnd::Stopped(reason),
            () = self.stop.aborting() => WaitEnd::Aborted,
        };
        if let WaitEnd::Ended(End::Exited(status)) = wait_end {
            let report = result::report(status, &process.stdout(), &process.stderr_tail());
            if let Report::Fail(_) = report {
                let signs = signs.borrow().clone();
                state.send_values(&self.worker, &self.task, &signs).await;
            }
            return self.report(report).await;
        }
        process.terminate(self.worker.grace).await;
        match wait_end {
            WaitEnd::Ended(End::TooLarge) => self.report(Report::Fail(result::too_large())).await,
            WaitEnd::Ended(End::Lost(error)) => self.report(Report::Fail(result::lost(&error))).await,
            WaitEnd::Stopped(StopReason::Cancelled) => self.cancelled().await,
            WaitEnd::Stopped(reason) => self.stopped(&reason),
            WaitEnd::Aborted | WaitEnd::Ended(End::Exited(_)) => self.release().await,
        }
    }

    /// Releases the task without a result, so that another worker can claim it at once.
    pub(super) async fn release(&self) -> Ending {
        match report::send(&self.worker, &self.task, &Report::Release).await {
            Ok(_) => {
                self.say("released", "");
                Ending::Released
            }
            Err(error) => {
                self.say("unrecorded", &format!("it couldn't be released: {error}"));
                Ending::Unrecorded
            }
        }
    }

    async fn report(&self, report: Report) -> Ending {
        let answer = report::send(&self.worker, &self.task, &report).await;
        if let Err(refusal) = &answer
            && let Some(failure) = result::instead_of(&report, refusal)
        {
            return Box::pin(self.report(Report::Fail(failure))).await;
        }
        match (report, answer) {
            (Report::Complete(_), Ok(_)) => {
                self.say("completed", "");
                Ending::Completed
            }
            (Report::Fail(failure), Ok(closed)) => self.failed(&failure, &closed.task),
            (Report::Release, Ok(_)) => Ending::Released,
            (report, Err(error)) => {
                let what =
                    if let Report::Fail(failure) = report { failure.code.0 } else { "its result".to_owned() };
                self.say("unrecorded", &format!("{what} was not recorded: {error}"));
                Ending::Unrecorded
            }
        }
    }

    fn failed(&self, failure: &FailError, task: &TaskView) -> Ending {
        let message = failure.message.as_deref().unwrap_or_default();
        let last = message.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        let then = match (task.status.known(), task.available_at) {
            (Some(Status::Cancelled), _) => "cancelled".to_owned(),
            (Some(Status::Pending), Some(at)) => format!("tried again from {}", at.to_rfc3339()),
            _ => format!("the task is {}", task.status),
        };
        self.say("failed", &format!("{}: {last}; {then}", failure.code.0));
        Ending::Failed
    }

    /// The command was ended because a cancellation was requested. The server ends the task when it gets this report.
    async fn cancelled(&self) -> Ending {
        let message = "ended on request".to_owned();
        let code = FailureCode("cancelled".to_owned());
        let failure = FailError { code, message: Some(message), retryable: Some(false) };
        match report::send(&self.worker, &self.task, &Report::Fail(failure)).await {
            Ok(_) => {
                self.say("cancelled", "");
                Ending::Cancelled
            }
            Err(error) => {
                self.say("unrecorded", &format!("its cancellation was not recorded: {error}"));
                Ending::Unrecorded
            }
        }
    }

    fn stopped(&self, reason: &StopReason) -> Ending {
        let why = match reason {
            StopReason::Cancelled => "cancelled".to_owned(),
            StopReason::Refused(error) => error.clone(),
            StopReason::DeadlinePassed => "its deadline passed".to_owned(),
            StopReason::Silent => "its command gave no sign of life within the heartbeat timeout".to_owned(),
            StopReason::LeaseExpired => "its lease couldn't be extended in time".to_owned(),
        };
        self.say("stopped", &why);
        Ending::Stopped
    }

    /// Prints the one line about this task.
    fn say(&self, ending: &str, detail: &str) {
        let ClaimedView { id, kind, attempt, .. } = &self.task;
        let took = Millis::new(u64::try_from(self.claimed_at.elapsed().as_millis()).unwrap_or(u64::MAX));
        let separator = if detail.is_empty() { "" } else { ": " };
        say(&format!("{ending:<10} {id} ({kind}), attempt {attempt}, {took}{separator}{detail}"));
    }
}
