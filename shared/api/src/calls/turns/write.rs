//! What a turn has done.

use std::collections::BTreeMap;

use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::execution::command::{Cleanup, Close, Record, ReleaseReason, Suspend};
use tickover_core::execution::journal::Entry;
use tickover_core::id::LeaseId;
use tickover_service::Service;
use tickover_service::executions::{Seen, TurnWrite, TurnWritten};
use tickover_wire::answer::TurnAnswer;
use tickover_wire::request::{TurnRelease, TurnSuspension, TurnWriteRequest};

use super::{BROUGHT_BYTES, all_parsed, fitting, parsed, stored, token};
use crate::answer::Answer;
use crate::problem::Problem;
use crate::{body, name};

/// Records what a turn has done, and extends its lease or ends it.
pub async fn write(service: &Service, id: &str, body: &[u8]) -> Result<Answer, Problem> {
    let id = name::execution_id(id)?;
    let request: TurnWriteRequest = body::read(body)?;
    let token = token(&request.lease)?;
    let entries = usize::try_from(request.seen_entries).unwrap_or(usize::MAX);
    let seen = Seen { version: request.seen_version, entries };
    let write = read(request, token.lease)?;
    let TurnWritten { execution, journal } = service.write_turn(&id, &token, seen, write).await?;
    let journal = journal.map(|journal| fitting(&journal, &mut { BROUGHT_BYTES })).transpose()?;
    let (execution, payloads) = (stored(&execution)?, BTreeMap::new());
    Answer::ok(&TurnAnswer { execution, journal, outcomes: vec![], payloads })
}

fn read(request: TurnWriteRequest, lease: LeaseId) -> Result<TurnWrite, Reject> {
    let TurnWriteRequest { heartbeat, suspend, close, release, timed_attempts, entries, .. } = request;
    let ends = [heartbeat == Some(true), suspend.is_some(), close.is_some(), release.is_some()];
    if ends.into_iter().filter(|given| *given).count() > 1 {
        let expected = "expected only one of heartbeat, suspend, close and release";
        return Err(Reject::field("suspend", expected));
    }
    let cleanup = Cleanup {
        on_failure: request.on_failure_timeout.map(Millis::from),
        on_cancel: request.on_cancel_timeout.map(Millis::from),
        undoes: request.undoes.unwrap_or_default(),
    };
    let entries: Vec<Entry> = all_parsed("entries", entries.unwrap_or_default())?;
    let values = request.values.as_ref().map(|values| parsed("values", values)).transpose()?;
    if let Some(suspend) = suspend {
        let TurnSuspension { seen_wakes, until, awaits_others, events } = suspend;
        return Ok(TurnWrite::Suspend(Suspend {
            lease,
            entries,
            seen_version: request.seen_version,
            seen_wakes,
            until: until.map(Into::into),
            awaits_others: awaits_others.unwrap_or_default(),
            events: events.unwrap_or_default(),
            cleanup,
            values,
        }));
    }
    if let Some(close) = close {
        return Ok(TurnWrite::Close(Close {
            lease,
            entries,
            ending: parsed("close", &close)?,
            cleanup,
            values,
        }));
    }
    if let Some(TurnRelease { after, reason }) = release {
        if !entries.is_empty() {
            return Err(Reject::field("release", "can't be given beside entries: record them before"));
        }
        let reason = reason.as_ref().map(|reason| parsed("release.reason", reason)).transpose()?;
        let after = after.map(Millis::from).unwrap_or_default();
        let is_known = request.undoes.is_some() || cleanup != Cleanup::default();
        let (reason, cleanup) = (reason.unwrap_or(ReleaseReason::ByWorker), is_known.then_some(cleanup));
        return Ok(TurnWrite::Release { after, reason, cleanup });
    }
    if heartbeat == Some(true) {
        return Ok(TurnWrite::Heartbeat(entries, values));
    }
    let timed = timed_attempts.map(|timed| all_parsed("timed_attempts", timed)).transpose()?;
    Ok(TurnWrite::Record(Record { lease, entries, cleanup, timed_attempts: timed, values }))
}
