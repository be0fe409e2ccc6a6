//! A report on the wait of an execution: whether it is still open, and the event that ends it.

use tickover_core::error::Reject;
use tickover_core::execution::Execution;
use tickover_core::execution::command::{Bound, Command, SendEvent};
use tickover_core::execution::decision::Reply;
use tickover_core::execution::journal::{Entry, Happened, is_wait_for, pending_events};
use tickover_core::id::{EventId, EventName, ExecutionId, Incarnation};
use tickover_core::payload::Json;
use tickover_core::time::Timestamp;

use super::{Report, heartbeat_pause, prefix};
use crate::contention::Tries;
use crate::drive::{CONFLICT_WAIT, Known};
use crate::error::ServiceError;
use crate::service::Service;

/// What a report finds.
enum Found {
    /// The wait has ended, or there was none.
    Over,
    /// A heartbeat wouldn't change anything now.
    Fresh,
    /// A wait takes what is sent before this instant; a wait that hasn't begun has none.
    Open(Option<Timestamp>),
}

impl Service {
    /// Sends the event that the wait takes. Returns whether the wait was open.
    pub(super) async fn end_wait(
        &self,
        id: &ExecutionId,
        incarnation: Incarnation,
        event: EventName,
        report: Report,
    ) -> Result<bool, ServiceError> {
        let is_heartbeat = report == Report::Heartbeat;
        let json = payload_of(report)?;
        let event_id = if is_heartbeat { None } else { EventId::parse(event.as_str()).ok() };
        let mut kept = None;
        let mut tries = Tries::default();
        loop {
            let Some(execution) = self.load_execution(id).await? else { return Ok(false) };
            if !is_of_run(&execution, incarnation, &event) {
                return Ok(false);
            }
            if self.has_result(&execution, &event).await? {
                return Ok(false);
            }
            let shown = since_the_wait(&execution, &event);
            let whole = if shown.is_none() { self.about(&execution, &event).await? } else { vec![] };
            let before = match found(shown.unwrap_or(&whole), &event, is_heartbeat, self.now()) {
                Found::Over => return Ok(false),
                Found::Fresh => return Ok(true),
                Found::Open(before) => before,
            };
            self.check_payload(Some(&json))?;
            if kept.is_none() {
                kept = Some(self.store_payload(json.clone()).await?);
            }
            let sent = SendEvent {
                name: event.clone(),
                id: event_id.clone(),
                payload: kept.clone(),
                known: false,
                seen: execution.stage(),
                trace: None,
                // What was found is true of this record only.
                bound: Some(Bound { version: execution.version, before }),
            };
            let record = Known::Record(Box::new(execution));
            let decision = self.drive_execution(id, record, &Command::SendEvent(sent)).await?;
            if let (_, Reply::EventSent { duplicate }) = decision.outcome? {
                return Ok(!duplicate);
            }
            self.once_more_soon(&mut tries, CONFLICT_WAIT).await?;
        }
    }

    /// Whether the result of this callback has come: it counts once. The record shows it, or an item says so.
    async fn has_result(&self, execution: &Execution, event: &EventName) -> Result<bool, ServiceError> {
        if execution.journal.iter().any(|entry| is_result(entry, event)) {
            return Ok(true);
        }
        self.is_known(execution, EventId::parse(event.as_str()).ok().as_ref()).await
    }
}

/// The entries of the journal since the last wait for this event began, if the record has them all: then nobody with a token
/// makes us read a long journal.
fn since_the_wait<'a>(execution: &'a Execution, event: &EventName) -> Option<&'a [Entry]> {
    if execution.sealed.is_none() {
        return Some(&execution.journal);
    }
    last_wait(&execution.journal, event)?;
    let begins =
        |entry: &Entry| matches!(&entry.what, Happened::Until { name, .. } if is_wait_for(name, event));
    execution.journal.get(execution.journal.iter().rposition(begins)?..)
}

fn is_result(entry: &Entry, event: &EventName) -> bool {
    matches!(&entry.what, Happened::Event { id: Some(_), name, .. } if name == event)
}

fn found(journal: &[Entry], event: &EventName, is_heartbeat: bool, now: Timestamp) -> Found {
    let is_this = |entry: &Entry| matches!(&entry.what, Happened::Event { name, .. } if name == event);
    let taken_next = pending_events(journal).into_iter().find(|entry| is_this(entry)).map(|entry| entry.at);
    let Some(Wait { begun_at, until, has_ended }) = last_wait(journal, event) else {
        return if is_heartbeat && taken_next.is_some() { Found::Fresh } else { Found::Open(None) };
    };
    if has_ended {
        // By the clock of the worker that has recorded it. This one may be behind.
        return Found::Over;
    }
    match taken_next.filter(|at| *at < until) {
        // The wait takes the one before, and another wait follows.
        Some(_) if is_heartbeat => Found::Fresh,
        Some(_) => Found::Open(None),
        None if until <= now => Found::Over,
        None if is_heartbeat && now < begun_at.plus(heartbeat_pause(until.since(begun_at))) => Found::Fresh,
        None => Found::Open(Some(until)),
    }
}

/// A wait that hasn't taken an event.
struct Wait {
    begun_at: Timestamp,
    until: Timestamp,
    /// Whether it has ended without one.
    has_ended: bool,
}

/// The last wait for this event. `None` if it has taken one, and the next one hasn't begun.
fn last_wait(journal: &[Entry], event: &EventName) -> Option<Wait> {
    let (mut last, mut name) = (None, None);
    for entry in journal {
        if let Happened::Until { name: wait, until } = &entry.what
            && is_wait_for(wait, event)
        {
            (last, name) = (Some(Wait { begun_at: entry.at, until: *until, has_ended: false }), Some(wait));
        } else if let Happened::Waited { name: wait, event } = &entry.what
            && name == Some(wait)
        {
            last = last.filter(|_| event.is_none()).map(|wait| Wait { has_ended: true, ..wait });
        }
    }
    last
}

/// Whether the event is one of the execution's current run, or of the run whose callbacks that has kept.
fn is_of_run(execution: &Execution, incarnation: Incarnation, event: &EventName) -> bool {
    execution.incarnation == incarnation
        && execution.closed().is_none()
        && event.as_str().starts_with(&prefix(execution.run_of_callbacks()))
}

/// What a workflow's code reads.
fn payload_of(report: Report) -> Result<Json, Reject> {
    let text = match report {
        Report::Complete(None) => r#"{"output":null}"#.to_owned(),
        Report::Complete(Some(output)) => format!("{{\"output\":{}}}", output.as_str()),
        Report::Fail { error, retryable: _ } => {
            serde_json::json!({"error": {"code": error.code, "message": error.message}}).to_string()
        }
        Report::Heartbeat => r#"{"alive":{}}"#.to_owned(),
    };
    Json::parse(text).ok_or_else(|| Reject::field("output", "expected JSON"))
}
