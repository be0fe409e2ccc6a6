//! The bounds of what a worker elsewhere writes and starts. Workers in this process keep them by their types.

use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::execution::command::{Ending, ReleaseReason};
use tickover_core::execution::journal::{DRIFT, Entry, Happened, STOPPED};
use tickover_core::execution::values::{VALUES_MAX, Values};
use tickover_core::execution::{Execution, ExecutionOutcome, ExecutionTimeouts, ParentClosePolicy, Stuck};
use tickover_core::flow::{
    CONCURRENCY_KEYS_MAX, CONCURRENCY_MAX, FlowRequest, RATE_MAX, RATE_PERIOD_MAX, REQUIRES_MAX,
    UniqueWindow, WINDOW_MAX,
};
use tickover_core::id::ExecutionId;
use tickover_core::limits::{self, ERROR_CODE_MAX, JSON_DEPTH_MAX, RUN_TIMEOUT_MIN, SPAN_MAX, STEP_NAME_MAX};
use tickover_core::payload::{Json, Payload};
use tickover_core::policy::PolicyError;
use tickover_core::timeout::Timeouts;

use super::{ToStart, TurnWrite};
use crate::error::ServiceError;
use crate::executions::outcome::READ_MAX;
use crate::executions::turn::INLINE_BYTES;
use crate::executions::{ChildToStart, RemoteStep, StartRequest};
use crate::service::Service;

/// The largest entry, as JSON. Larger results are stored apart, and the entry points to them.
const ENTRY_BYTES_MAX: usize = 16 * 1024;
/// The longest name of a step, in bytes.
const STEP_NAME_BYTES_MAX: usize = 4 * STEP_NAME_MAX;

impl Service {
    /// Refuses entries that aren't a turn's to write, and values that no stored record may have.
    pub(super) fn check_write(&self, write: &TurnWrite) -> Result<(), ServiceError> {
        let (entries, values) = match write {
            TurnWrite::Record(record) => (&record.entries, &record.values),
            TurnWrite::Heartbeat(entries, values) => (entries, values),
            TurnWrite::Suspend(suspend) => {
                limits::check("events", suspend.events.len(), self.limits.open_steps)?;
                (&suspend.entries, &suspend.values)
            }
            TurnWrite::Close(close) => {
                check_ending(&close.ending)?;
                (&close.entries, &close.values)
            }
            TurnWrite::Release { after, reason, cleanup: _ } => {
                check_reason(reason)?;
                return Ok(within("after", *after, Millis::ZERO, SPAN_MAX)?);
            }
        };
        if let Some(Payload::Inline(json)) = values {
            limits::check("values", json.len(), INLINE_BYTES)?;
            if Values::parse(json).is_none_or(|values| values.len() > VALUES_MAX) {
                return Err(Reject::field("values", "must be a document of published values").into());
            }
        }
        limits::check("journal_entries", entries.len(), self.limits.journal_entries)?;
        for (nth, entry) in entries.iter().enumerate() {
            check_entry(&format!("entries[{nth}]"), entry)?;
        }
        Ok(())
    }

    /// Refuses entries of children that end with the execution and aren't its own.
    pub(super) async fn check_children(
        &self,
        execution: &Execution,
        entries: &[Entry],
    ) -> Result<(), ServiceError> {
        let ending: Vec<ExecutionId> = entries
            .iter()
            .filter_map(|entry| match &entry.what {
                Happened::Child { execution, policy, .. } if *policy != ParentClosePolicy::Abandon => {
                    Some(execution.clone())
                }
                _ => None,
            })
            .collect();
        for ids in ending.chunks(READ_MAX) {
            let (found, _unreadable) = self.executions_of(ids).await?;
            let is_own = |id: &ExecutionId| {
                let child = found.iter().find(|child| child.id == *id);
                child.and_then(|child| child.parent.as_ref()).is_some_and(|of| of.is_or_was(execution))
            };
            if !ids.iter().all(is_own) {
                return Err(
                    Reject::field("entries", "have a child that this execution hasn't started").into()
                );
            }
        }
        Ok(())
    }

    pub(super) fn check_work(&self, work: &ToStart) -> Result<(), ServiceError> {
        let ToStart { steps, again, with_input, children } = work;
        for count in [steps.len(), again.len(), with_input.len(), children.len()] {
            limits::check("open_steps", count, self.limits.open_steps)?;
        }
        for (nth, step) in steps.iter().enumerate() {
            check_step(step).map_err(|reject| reject.under(&format!("steps[{nth}]")))?;
        }
        for (nth, child) in children.iter().enumerate() {
            check_child(child).map_err(|reject| reject.under(&format!("children[{nth}]")))?;
        }
        Ok(())
    }
}

fn check_entry(field: &str, entry: &Entry) -> Result<(), Reject> {
    let is_a_turns = match &entry.what {
        Happened::Attempt { .. }
        | Happened::Remote { .. }
        | Happened::Child { .. }
        | Happened::Step { .. }
        | Happened::Captured { .. }
        | Happened::Until { .. }
        | Happened::Fired { .. }
        | Happened::Waited { .. }
        | Happened::Patches { .. } => true,
        Happened::Note { kind, by, .. } => by.is_none() && [DRIFT, STOPPED].contains(&kind.as_str()),
        Happened::Event { .. } | Happened::EventsCleared { .. } | Happened::Reopened { .. } => false,
    };
    if !is_a_turns {
        return Err(Reject::field(field, "expected an entry that a turn writes"));
    }
    // An entry's names and values always serialise.
    let bytes = serde_json::to_string(entry).map_or(0, |text| text.len());
    limits::check("entry_bytes", bytes, ENTRY_BYTES_MAX)?;
    if let Some(Payload::Inline(json)) = entry.payload() {
        check_json(field, json)?;
    }
    if let Happened::Attempt { details: Some(details), .. } = &entry.what {
        limits::check("details", details.len(), limits::DETAILS_MAX)?;
        check_json(field, details)?;
    }
    Ok(())
}

fn check_ending(ending: &Ending) -> Result<(), Reject> {
    let payload = match ending {
        Ending::Outcome(ExecutionOutcome::Completed { output }) => output.as_ref(),
        Ending::ContinueAsNew { input, .. } => input.as_ref(),
        Ending::FailedRun { outcome, retry, .. } => {
            if !outcome.is_failure() {
                return Err(Reject::field("close", "expected the outcome of a run that failed"));
            }
            retry.check().map_err(|error| error.under("retry"))?;
            None
        }
        Ending::Outcome(
            ExecutionOutcome::Failed { .. }
            | ExecutionOutcome::TimedOut { .. }
            | ExecutionOutcome::Cancelled { .. },
        ) => None,
    };
    if let Some(Payload::Inline(json)) = payload {
        limits::check("entry_bytes", json.len(), ENTRY_BYTES_MAX)?;
        check_json("close", json)?;
    }
    if let Ending::Outcome(ExecutionOutcome::Failed { error, step, .. })
    | Ending::FailedRun { outcome: ExecutionOutcome::Failed { error, step, .. }, .. } = ending
    {
        // The core cuts the message.
        limits::check("error_code", error.code.len(), ERROR_CODE_MAX)?;
        limits::check("step", step.as_ref().map_or(0, String::len), STEP_NAME_BYTES_MAX)?;
    }
    Ok(())
}

fn check_reason(reason: &ReleaseReason) -> Result<(), Reject> {
    match reason {
        ReleaseReason::Panicked(failure)
        | ReleaseReason::Stuck(Stuck::Unreadable(failure) | Stuck::Code { failure, .. }) => {
            limits::check("error_code", failure.code.len(), ERROR_CODE_MAX)
        }
        ReleaseReason::ByCode
        | ReleaseReason::ByWorker
        | ReleaseReason::Stuck(Stuck::UnknownWorkflow { .. }) => Ok(()),
    }
}

fn check_json(field: &str, json: &Json) -> Result<(), Reject> {
    limits::check("json_depth", json.depth(), JSON_DEPTH_MAX)?;
    match Json::parse(json.as_str()) {
        Some(_) => Ok(()),
        None => Err(Reject::field(field, "expected a text that is JSON as a payload")),
    }
}

fn check_step(step: &RemoteStep) -> Result<(), Reject> {
    step.retry.check().map_err(|error: PolicyError| error.under("retry"))?;
    if let Some(input) = &step.input {
        check_json("input", input)?;
    }
    let Timeouts { schedule_to_close, schedule_to_start, heartbeat, start_to_close } = step.timeouts;
    let whole = schedule_to_close.map(|whole| whole.after);
    let of_attempts = [schedule_to_start, heartbeat, start_to_close];
    for after in whole.into_iter().chain(of_attempts.into_iter().flatten().map(|timeout| timeout.after)) {
        within("timeouts", after, Millis::new(1), SPAN_MAX)?;
    }
    check_flow(&step.flow)
}

fn check_child(child: &ChildToStart) -> Result<(), Reject> {
    let StartRequest { id, input, timeouts, on_failure, flow, .. } = &*child.start;
    if id.is_none() {
        return Err(Reject::field("start.id", "is missing"));
    }
    if let Some(input) = input {
        check_json("start.input", input)?;
    }
    let ExecutionTimeouts { execution, run } = timeouts;
    for span in [execution, run, on_failure].into_iter().flatten() {
        within("start.timeouts", *span, RUN_TIMEOUT_MIN, SPAN_MAX)?;
    }
    check_flow(flow)
}

/// Refuses flow control that no request may ask for.
pub fn check_flow(flow: &FlowRequest) -> Result<(), Reject> {
    limits::check("concurrency", flow.concurrency.len(), CONCURRENCY_KEYS_MAX)?;
    limits::check("requires", flow.requires.len(), REQUIRES_MAX)?;
    for (nth, asked) in flow.concurrency.iter().enumerate() {
        limits::check("concurrency.limit", asked.limit.get().into(), CONCURRENCY_MAX.into())?;
        if flow.concurrency.iter().take(nth).any(|earlier| earlier.key == asked.key) {
            return Err(Reject::field("flow.concurrency", "has a key twice"));
        }
    }
    if let Some(rate) = &flow.rate {
        let count = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
        limits::check("rate.limit", count(rate.limit.get()), count(RATE_MAX))?;
        limits::check("rate.burst", count(rate.burst.get()), count(rate.limit.get()))?;
        within("flow.rate", rate.per, Millis::new(1), RATE_PERIOD_MAX)?;
    }
    if let Some(UniqueWindow::For(span)) = flow.unique.as_ref().map(|unique| unique.window) {
        within("flow.unique", span, Millis::new(1), WINDOW_MAX)?;
    }
    if let Some(debounce) = &flow.debounce {
        within("flow.debounce", debounce.wait, Millis::new(1), debounce.at_most)?;
        within("flow.debounce", debounce.at_most, debounce.wait, WINDOW_MAX)?;
    }
    Ok(())
}

fn within(field: &str, span: Millis, least: Millis, most: Millis) -> Result<(), Reject> {
    if (least..=most).contains(&span) {
        return Ok(());
    }
    Err(Reject::instead_of(field, format_args!("expected {least} to {most}"), span))
}
