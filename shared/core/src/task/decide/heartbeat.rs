//! heartbeat: the worker is alive, which extends the lease, or the work is, which restarts the heartbeat timeout, or
//! both. No other instant moves.
//!
//! It may bring details for the next attempt. They are in the record if there is space for them until the task ends, and
//! in a blob otherwise.

use crate::command::Context;
use crate::decision::NewItem;
use crate::due_slot::SlotChange;
use crate::error::Reject;
use crate::gate::{CLOCKS, Places};
use crate::limits::{self, DETAILS_MAX};
use crate::parked::Parked;
use crate::payload::{BlobRef, Json, Payload};
use crate::task::command::Heartbeat;
use crate::task::decision::{Decision, Reply};
use crate::task::transition;
use crate::task::{Running, State, Task};

use super::LeaseStatus;
use super::schedule::payload_expiry;

/// The size of a pointer to a blob in the record.
const BLOB_REF_BYTES: usize = 48;

pub(super) fn decide(task: &Task, heartbeat: &Heartbeat, context: &Context<'_>) -> Decision {
    let expired = transition::expire(task, context);
    let current = expired.as_ref().unwrap_or(task);
    let reject = match super::lease_status(current, &heartbeat.lease) {
        LeaseStatus::Current(running) => return record(task, running, heartbeat, context),
        LeaseStatus::Closed(_) => match current.ended() {
            Some(_) => Reject::AlreadyTerminal { status: current.status() },
            None => Reject::LeaseLost,
        },
        LeaseStatus::Refused(reject) => reject,
    };
    super::refuse_expired(task, expired, reject, context)
}

fn record(task: &Task, running: &Running, heartbeat: &Heartbeat, context: &Context<'_>) -> Decision {
    let now = context.now;
    let lease_expires_at = lease_end(task, running, heartbeat, context);
    let mut after = task.clone();
    after.progress = heartbeat.progress.or(task.progress);
    after.state = State::Running(Running {
        lease_expires_at,
        heartbeat_at: if heartbeat.sign_of.is_of_work() {
            task.timeouts.heartbeat.map(|timeout| now.plus(timeout.after))
        } else {
            running.heartbeat_at
        },
        ..running.clone()
    });
    let mut new_items = vec![];
    if let Some(details) = &heartbeat.details {
        match add_details(&mut after, details, heartbeat, context) {
            Ok(blob) => new_items.extend(blob),
            Err(reject) => return Decision::refuse(Some(task), reject),
        }
    }
    // Its lease had ended, and a claim found no place for the next attempt.
    let comes_back = task.waits_in_line() && lease_expires_at > now;
    let slot = if comes_back { SlotChange::KeepOrLower } else { SlotChange::Keep };
    if comes_back {
        after.parked = Parked::No;
    }
    let decision = super::update_in_slot(task, after, slot, context, Ok(Reply::Extended));
    Decision { new_items, ..decision }
}

fn lease_end(
    task: &Task,
    running: &Running,
    heartbeat: &Heartbeat,
    context: &Context<'_>,
) -> crate::time::Timestamp {
    if !heartbeat.sign_of.extends_lease() {
        return running.lease_expires_at;
    }
    let renewed =
        transition::lease_end(context.now, running.lease_length, running.start_to_close_at, task.deadline_at);
    // A lease never outlives the places that the attempt has.
    // Whoever brought it to a line gave up the places of earlier versions.
    let counts = |places: &Places| !task.waits_in_line() || places.version == task.version;
    match heartbeat.places.filter(counts) {
        Some(places) => renewed.min(places.until.minus(CLOCKS)),
        None if task.gates().is_empty() => renewed,
        None => running.lease_expires_at,
    }
}

/// Stores the details, so that every later attempt gets them. Returns their blob, if they need one.
fn add_details(
    task: &mut Task,
    details: &Json,
    heartbeat: &Heartbeat,
    context: &Context<'_>,
) -> Result<Option<NewItem>, Reject> {
    let space = transition::space_for_details(task);
    if details.len() <= space {
        task.details = Some(Payload::Inline(details.clone()));
        return Ok(None);
    }
    limits::check("details", details.len(), if space < BLOB_REF_BYTES { space } else { DETAILS_MAX })?;
    let bytes = u32::try_from(details.len()).unwrap_or(u32::MAX);
    let at = BlobRef { id: heartbeat.blob_id, bytes, expires_at: payload_expiry(task, context) };
    task.details = Some(Payload::Blob(at.clone()));
    Ok(Some(NewItem::Blob { at, body: details.clone() }))
}
