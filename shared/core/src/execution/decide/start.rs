//! start: creates an execution, or returns the existing one.

use crate::command::Context;
use crate::decision::{Condition, Effect, NewItem, Write};
use crate::due::Due;
use crate::due_slot;
use crate::error::{Reject, TakenBy};
use crate::execution::command::{EndedChild, FirstEvent, Given, Start, StartPolicy};
use crate::execution::decision::{Decision, Reply};
use crate::execution::journal::{Entry, Happened};
use crate::execution::size as record_size;
use crate::execution::update::{events_that_left, new_segments, turn, update};
use crate::execution::{
    Execution, ExecutionOutcome, ExecutionState, FORMAT, Ready, append, closing, due, retention,
};
use crate::gate::Position;
use crate::gate::line::Move;
use crate::id::BlobId;
use crate::limits::{self, SPAN_MAX};
use crate::parent::Parent;
use crate::parked::Parked;
use crate::payload::{BlobRef, Json, Payload};
use crate::size;
use crate::time::Timestamp;

use super::restart::run_again;

/// Bytes kept free for fields that are added to the record later: a turn, an outcome, a small result.
const GROWTH_BYTES: usize = 400;

pub(super) fn decide(existing: Option<&Execution>, start: &Start, context: &Context<'_>) -> Decision {
    match existing {
        Some(execution) => repeat(execution, start, context),
        None => create(start, context),
    }
}

/// A start with the id of an existing execution.
fn repeat(execution: &Execution, start: &Start, context: &Context<'_>) -> Decision {
    // This same call created it, and its answer was lost: the caller still learns that it is new.
    let ours = execution.incarnation == start.incarnation;
    // No worker has started a turn of it: its hint may have been lost, and a second one does no harm.
    let is_untouched = execution.is_untouched() || execution.untouched_since().is_some();
    let hint = due::hint_under_way_at(execution).filter(|_| is_untouched);
    let hint = hint.map(|at| turn(execution, at));
    if !ours && let Some(by) = taken_by(execution, start) {
        // The caller may repeat a start whose process died before it had sent the hint. So a refusal sends it too.
        let again = hint.filter(|_| by == TakenBy::Execution);
        let reject = Reject::IdConflict { by, since: execution.created_at };
        let mut decision = Decision::refuse(Some(execution), reject);
        decision.effects.extend(again);
        return decision;
    }
    if let (Some(parent), Some(before)) = (&start.parent, &execution.parent)
        && parent.is_later_than(before)
    {
        return child_again(execution, start, context);
    }
    let reply = Reply::Started { existed: !ours };
    let mut decision = Decision::unchanged(execution, Ok(reply));
    decision.effects.extend(hint);
    // If a parent's worker was lost before it recorded the start of a child, the parent starts the child again. It is
    // about to wait for a notification that was already sent, so it is sent again.
    let is_said = matches!(execution.state, ExecutionState::Ended(_)) && execution.parent == start.parent;
    decision.effects.extend(execution.parent.clone().filter(|_| is_said).map(Effect::NotifyParent));
    decision
}

/// Who has the id, if the start is refused because of it. A child must be one of the same parent and workflow. Any other
/// start is refused if the execution is of another workflow, whatever the policy says.
fn taken_by(execution: &Execution, start: &Start) -> Option<TakenBy> {
    let is_other_workflow = execution.workflow != start.workflow;
    let owner = execution.parent.as_ref();
    let is_owner = |of: &Parent| {
        owner.is_some_and(|owner| (&owner.execution, owner.incarnation) == (&of.execution, of.incarnation))
    };
    let is_anothers = start.parent.as_ref().is_some_and(|of| !is_owner(of));
    match owner {
        Some(owner) if is_anothers => Some(TakenBy::ChildOf(owner.execution.clone())),
        _ if is_other_workflow => Some(TakenBy::OtherWorkflow(execution.workflow.clone())),
        _ if is_anothers || start.policy == StartPolicy::Reject => Some(TakenBy::Execution),
        _ => None,
    }
}

/// A child that the same parent has started before: in an earlier run, or before an operator had it run again.
fn child_again(execution: &Execution, start: &Start, context: &Context<'_>) -> Decision {
    let existed = Ok(Reply::Started { existed: true });
    let mut after = Execution { parent: start.parent.clone(), ..execution.clone() };
    let seen = |version: u64| version == execution.version;
    match (&execution.state, &start.ended) {
        (ExecutionState::Pending(_) | ExecutionState::Running(_) | ExecutionState::Waiting(_), _) => {
            update(execution, after, context, existed)
        }
        (ExecutionState::Ended(_), EndedChild::Kept { seen_version }) if seen(*seen_version) => {
            let mut decision = update(execution, after, context, existed);
            decision.effects.extend(start.parent.clone().map(Effect::NotifyParent));
            decision
        }
        (ExecutionState::Ended(_), EndedChild::Again { seen_version, rerun }) if seen(*seen_version) => {
            after.timeouts = start.timeouts;
            after.on_failure = start.on_failure;
            after.queue.clone_from(&start.queue);
            after.lane = start.lane;
            after.admission.clone_from(&start.admission);
            after.trace = start.trace;
            let mut decision = run_again(execution, after, rerun, Some(&start.given), context);
            if let Ok((_, reply @ Reply::Changed { .. })) = &mut decision.outcome {
                *reply = Reply::Started { existed: true };
            }
            decision
        }
        (ExecutionState::Ended(_) | ExecutionState::Closing(_), _) => Decision::unchanged(execution, existed),
    }
}

fn create(start: &Start, context: &Context<'_>) -> Decision {
    if start.delay > SPAN_MAX {
        return Decision::refuse(None, Reject::field("delay", "must be at most a year"));
    }
    let mut execution = blank(start, context);
    if let Some(event) = &start.event {
        append::append(&mut execution, &[event.sent_at(context.now)]);
    }
    let (mut execution, mut new_items) = spill(execution, &start.given, context);
    let whole = execution.clone();
    let sealed = record_size::fit_new(&mut execution, context);
    let mut writes = retention::extend_blobs(&mut execution, context.now, context.limits);
    new_items.extend(new_segments(&execution, sealed, context));
    // No other start has this incarnation: so the item says nothing of another execution, even if this write is refused.
    new_items.extend(events_that_left(&whole, &execution, context));
    if start.is_fence {
        closing::close(&mut execution, ExecutionOutcome::Cancelled { terminated: true }, context);
    }
    let is_ready =
        matches!(&execution.state, ExecutionState::Pending(ready) if ready.available_at <= context.now);
    if start.in_line && is_ready && !execution.gates().is_empty() {
        execution.parked = Parked::InLine(Position { since: context.now, version: execution.version });
    }
    let mut slot: Option<Due> = due::latest(&execution, context.now, context.limits);
    if execution.parked.in_line().is_some() && context.limits.moves_cost() {
        // Its first turn may keep this one, and leaves the line.
        let farthest = context.now.plus(context.limits.backstop_max);
        let nearer =
            |due| due_slot::probe_slot(due::visible_at(&execution), Due { at: farthest, ..due }, context.now);
        slot = slot.map(|due| if due.at > farthest { nearer(due) } else { due });
    }
    let timer = due_slot::set_slot(None, slot, &mut execution, context);
    let hint = due::hint_under_way_at(&execution);
    let mut effects: Vec<Effect> = hint.map(|at| turn(&execution, at)).into_iter().collect();
    effects.extend(timer);
    writes.push(Write::put(execution.clone(), Condition::Free { now: context.now }));
    Move::between(None, &execution.waiting(), context.now).add_to(&mut writes, &mut effects);
    Decision { new_items, writes, effects, ..Decision::of(execution, Ok(Reply::Started { existed: false })) }
}

impl FirstEvent {
    /// The entry of the journal.
    fn sent_at(&self, at: Timestamp) -> Entry {
        let Self { name, id, payload } = self.clone();
        Entry { at, what: Happened::Event { name, id, payload } }
    }
}

fn blank(start: &Start, context: &Context<'_>) -> Execution {
    let now = context.now;
    let paced = start.admission.as_deref().and_then(|admission| admission.paced.as_ref()?.start);
    let available_at = now.plus(start.delay).max(paced.map_or(now, |start| start.start_at));
    let mut execution = Execution {
        format: FORMAT,
        id: start.id.clone(),
        incarnation: start.incarnation,
        version: 1,
        nonce: context.nonce,
        workflow: start.workflow.clone(),
        queue: start.queue.clone(),
        created_at: now,
        run: 1,
        repeats: None,
        callbacks: None,
        first_run: None,
        run_started_at: available_at,
        input: None,
        details: None,
        values: None,
        timeouts: start.timeouts,
        deadline_at: start.timeouts.execution.map(|timeout| now.plus(timeout)),
        run_deadline_at: start.timeouts.run.map(|timeout| available_at.plus(timeout)),
        parent: start.parent.clone(),
        trace: start.trace,
        lane: start.lane,
        admission: start.admission.clone(),
        wakes: 0,
        idle_turns: 0,
        journal: vec![],
        sealed: None,
        open_steps: 0,
        pending_events: 0,
        attempt: None,
        on_failure: start.on_failure,
        on_cancel: None,
        undoes: false,
        failing: None,
        cancel_requested: false,
        paused: false,
        kept: None,
        progress: None,
        parked: Parked::No,
        stuck: None,
        hinted_at: None,
        state: ExecutionState::Pending(Ready { available_at, hint_later: false }),
        due: None,
    };
    closing::make_pending(&mut execution, available_at, now);
    execution
}

/// Puts input and details into the record if they fit. If they don't, the larger one becomes a blob first.
pub(super) fn spill(
    mut execution: Execution,
    given: &Given,
    context: &Context<'_>,
) -> (Execution, Vec<NewItem>) {
    let budget = limits::CONTROL_RECORD_BYTES - GROWTH_BYTES;
    let [input_id, details_id] = given.blob_ids;
    let length = |json: &Option<Json>| json.as_ref().map_or(0, Json::len);
    let (input, details) = (length(&given.input), length(&given.details));
    let room = budget.saturating_sub(size::of(&execution));
    let (input_inline, details_inline) = match (input + details + 16 <= room, input.min(details) + 16 <= room)
    {
        (true, _) => (true, true),
        (false, true) => (input < details, input >= details),
        (false, false) => (false, false),
    };
    let expires_at = retention::first_expiry(&execution, context.now, context.limits);
    let mut new_items = Vec::new();
    let mut store = |json: &Option<Json>, inline: bool, id: BlobId| {
        json.clone().map(|body| {
            if inline {
                return Payload::Inline(body);
            }
            let at = BlobRef { id, bytes: u32::try_from(body.len()).unwrap_or(u32::MAX), expires_at };
            new_items.push(NewItem::Blob { at: at.clone(), body });
            Payload::Blob(at)
        })
    };
    execution.input = store(&given.input, input_inline, input_id);
    execution.details = store(&given.details, details_inline, details_id);
    execution.kept = (!new_items.is_empty()).then_some(expires_at);
    (execution, new_items)
}
