//! create and replace: give a cron its definition.

use super::write_record;
use crate::command::Context;
use crate::cron::command::Definition;
use crate::cron::decision::{Decision, Reply};
use crate::cron::due_slot::KEPT_FOR;
use crate::cron::run::{IdTemplate, RunState, Skip};
use crate::cron::{Cron, FORMAT, State};
use crate::decision::NewItem;
use crate::error::{Reject, TakenBy};
use crate::id::Incarnation;
use crate::limits::CONTROL_RECORD_BYTES;
use crate::payload::{BlobRef, Json, Payload};
use crate::size;
use crate::time::Timestamp;

/// Bytes kept free for data that is added to the record later: the runs in it, the occurrences that wait, and its
/// due slot.
const GROWTH_BYTES: usize = 330;
pub(super) fn create(record: Option<&Cron>, definition: &Definition, context: &Context<'_>) -> Decision {
    // This call created the cron and its answer was lost, so the caller must still learn that the cron is new.
    let ours = record.is_some_and(|record| record.incarnation == definition.incarnation);
    match record.filter(|record| !record.is_deleted()) {
        Some(record) if ours => Decision::unchanged(record, Ok(Reply::Created { existed: false })),
        Some(record) if record.fingerprint == definition.fingerprint => {
            Decision::unchanged(record, Ok(Reply::Created { existed: true }))
        }
        Some(record) => {
            let reject = Reject::IdConflict { by: TakenBy::Cron, since: record.created_at };
            Decision::refuse(Some(record), reject)
        }
        None => create_record(record, definition, context),
    }
}

pub(super) fn replace(record: Option<&Cron>, definition: &Definition, context: &Context<'_>) -> Decision {
    let Some(current) = record.filter(|record| !record.is_deleted()) else {
        return create_record(record, definition, context);
    };
    if current.incarnation == definition.incarnation {
        return Decision::unchanged(current, Ok(Reply::Created { existed: false }));
    }
    let paused = definition.paused.unwrap_or(matches!(current.state, State::Paused { .. }));
    if current.starting_runs().next().is_some() {
        // They were recorded for the old request, and with ids of the old template.
        return Decision::unchanged(current, Ok(Reply::StartFirst));
    }
    let fresh = match blank(definition, current.incarnation, context) {
        Ok(fresh) => fresh,
        Err(reject) => return Decision::refuse(Some(current), reject),
    };
    let mut after = current.clone();
    if current.fingerprint != definition.fingerprint {
        redefine(&mut after, &fresh.0, context);
    }
    set_paused(&mut after, paused, context.now);
    let mut decision = write_record(Some(current), after, Reply::Created { existed: true }, context);
    if current.fingerprint != definition.fingerprint {
        decision.new_items = fresh.1;
    }
    decision
}

fn create_record(deleted: Option<&Cron>, definition: &Definition, context: &Context<'_>) -> Decision {
    let (mut after, new_items) = match blank(definition, definition.incarnation, context) {
        Ok(made) => made,
        Err(reject) => return Decision::refuse(None, reject),
    };
    set_paused(&mut after, definition.paused == Some(true), context.now);
    let mut decision = write_record(deleted, after, Reply::Created { existed: false }, context);
    decision.new_items = new_items;
    decision
}

/// A new cron, and its payload if that needs an item of its own.
fn blank(
    definition: &Definition,
    incarnation: Incarnation,
    context: &Context<'_>,
) -> Result<(Cron, Vec<NewItem>), Reject> {
    definition.plan.check()?;
    let template = definition.template.clone().unwrap_or_else(|| IdTemplate::of(&definition.id));
    template.check(&definition.target)?;
    let anchor = Timestamp::from_millis(context.now.as_millis().div_euclid(1_000) * 1_000);
    let next = definition.plan.next_after(context.now, anchor, incarnation);
    let next = next.ok_or_else(|| Reject::instead_of("cron", "expected an instant in the future", "none"))?;
    let mut made = Cron {
        format: FORMAT,
        id: definition.id.clone(),
        incarnation,
        version: 1,
        nonce: context.nonce,
        created_at: context.now,
        fingerprint: definition.fingerprint,
        target: definition.target.clone(),
        template: definition.template.clone(),
        request: Payload::Inline(Json::string("")),
        plan: definition.plan.clone(),
        anchor,
        state: State::Active(next),
        started: 0,
        waiting: None,
        runs: vec![],
        by: context.by.cloned().map(Box::new),
        due: None,
    };
    let new_items = place_request(&mut made, definition, context);
    Ok((made, new_items))
}

fn place_request(made: &mut Cron, definition: &Definition, context: &Context<'_>) -> Vec<NewItem> {
    let space_left = (CONTROL_RECORD_BYTES - GROWTH_BYTES).saturating_sub(size::of(made));
    let body = definition.request.clone();
    if body.len() <= space_left {
        made.request = Payload::Inline(body);
        return vec![];
    }
    let bytes = u32::try_from(body.len()).unwrap_or(u32::MAX);
    let at = BlobRef { id: definition.blob_id, bytes, expires_at: context.now.plus(KEPT_FOR) };
    made.request = Payload::Blob(at.clone());
    vec![NewItem::Blob { at, body }]
}

/// Gives a cron a new definition. Its history stays.
fn redefine(after: &mut Cron, fresh: &Cron, context: &Context<'_>) {
    let same_runs = after.target == fresh.target && after.template == fresh.template;
    if !same_runs {
        // The open runs have another target or other ids, so the new runs can't overlap them.
        for run in after.runs.iter_mut().filter(|run| run.state.is_live()) {
            run.state = RunState::Done;
        }
    }
    let same_instants = after.plan.when == fresh.plan.when;
    if !same_instants {
        after.anchor = fresh.anchor;
    }
    if !same_instants || !same_runs {
        super::operate::drop_waiting(after, Skip::Dropped);
    }
    after.fingerprint = fresh.fingerprint;
    after.target = fresh.target.clone();
    after.template.clone_from(&fresh.template);
    after.request = fresh.request.clone();
    let same_plan = after.plan == fresh.plan;
    after.plan = fresh.plan.clone();
    match &after.state {
        State::Active(_) | State::Finished { .. } if same_plan => {}
        State::Active(_) | State::Finished { .. } => super::operate::continue_after(after, context.now),
        State::Paused { .. } | State::Deleted { .. } => {}
    }
}

fn set_paused(after: &mut Cron, paused: bool, now: Timestamp) {
    match (&after.state, paused) {
        (State::Active(_), true) => super::operate::stop_planning(after, now),
        (State::Paused { .. }, false) => super::operate::continue_after(after, now),
        (State::Active(_) | State::Finished { .. } | State::Deleted { .. }, _)
        | (State::Paused { .. }, true) => {}
    }
}
