//! schedule: creates a task, or answers with the existing one.

use crate::command::Context;
use crate::decision::{Condition, NewItem, Write};
use crate::due_slot::SlotChange;
use crate::error::{Reject, TakenBy};
use crate::gate::Position;
use crate::gate::line::{self, Move};
use crate::id::BlobId;
use crate::limits::{self, SPAN_MAX};
use crate::parked::Parked;
use crate::payload::{BlobRef, Json, Payload};
use crate::queue::KeyRecord;
use crate::retry::MaxAttempts;
use crate::size;
use crate::task::command::{Schedule, Start};
use crate::task::decision::{Decision, Reply};
use crate::task::due::latest;
use crate::task::transition;
use crate::task::{FORMAT, HeldKey, Outcome, Pending, State, Task};
use crate::time::Timestamp;

use super::unpark;

/// Bytes kept free for data that is added to the record later: a lease, a past attempt, a small result.
const GROWTH_BYTES: usize = 360;
/// Bytes of a start that is reserved later.
const START_BYTES: usize = 60;
/// How long the payloads of a task without a deadline are kept at first. The tick extends this while the task is
/// open.
const OPEN_ENDED: crate::duration::Millis = crate::duration::Millis::from_secs(60 * 86_400);

pub(super) fn decide(existing: Option<&Task>, schedule: &Schedule, context: &Context<'_>) -> Decision {
    match existing {
        Some(task) => repeat(task, schedule, context),
        None => create(schedule, context),
    }
}

/// A repeated request gets the answer of the first one.
fn repeat(task: &Task, schedule: &Schedule, context: &Context<'_>) -> Decision {
    // This call created the task and its answer was lost, so the caller must still learn that the task is new.
    let ours = task.incarnation == schedule.incarnation;
    if !ours && task.fingerprint != schedule.fingerprint {
        // A request with an idempotency key finds the task of that key, which may have another id.
        let by = if task.id == schedule.id { TakenBy::Task } else { TakenBy::Key(task.id.clone()) };
        return Decision::refuse(Some(task), Reject::IdConflict { by, since: task.created_at });
    }
    let reply = Ok(Reply::Scheduled { existed: !ours });
    let is_on_hold = task.parent.is_some() && task.parked.is_paused() && task.ended().is_none();
    if is_on_hold && transition::expired(task, context.now).is_none() {
        // Its execution goes on after a pause, and its journal doesn't have the step yet: so the resume hasn't found it.
        return unpark::unparked(task, SlotChange::KeepOrLower, context, reply);
    }
    let mut decision = Decision::unchanged(task, reply);
    if is_untouched(task) {
        // The task was never claimed. Its hint may be lost, and a second one does no harm.
        decision.effects.push(super::dispatch(task));
    }
    // If a worker was lost before it could record a step's end, the next worker starts that step again. It then
    // waits for a notification that was sent before.
    decision.effects.extend(super::end_notices(task));
    decision
}

fn is_untouched(task: &Task) -> bool {
    task.hint_at().is_some() && task.attempt == 0 && task.history.is_empty() && task.revived_at.is_none()
}

fn create(schedule: &Schedule, context: &Context<'_>) -> Decision {
    let now = context.now;
    let available_at = match schedule.start {
        Start::After(delay) => now.plus(delay),
        Start::At(instant) => instant.max(now),
    };
    if available_at.since(now) > SPAN_MAX {
        return Decision::refuse(None, Reject::field("run_at", "must be at most a year ahead"));
    }
    let reserved = schedule.flow.paced.as_ref().and_then(|paced| paced.start);
    let available_at = reserved.map_or(available_at, |start| start.start_at.max(available_at));
    if available_at.since(now) > SPAN_MAX {
        let reason = "so many tasks of its key wait that its start would be more than a year ahead";
        return Decision::refuse(None, Reject::field("rate", reason));
    }
    let given = Given {
        input: schedule.input.as_ref(),
        labels: schedule.labels.as_ref(),
        blob_ids: schedule.blob_ids,
    };
    let (mut task, new_items) = spill(blank(schedule, available_at, context), &given, context);
    // Flow control shares the space of the policies: a task may have all of one at its greatest size, not of both.
    if task.flow.is_some() {
        let waits_for_start = task.paced().is_some_and(|paced| paced.start.is_none());
        let start = if waits_for_start { START_BYTES } else { 0 };
        let maximum = limits::CONTROL_RECORD_BYTES - GROWTH_BYTES;
        if size::of(&task) + start > maximum {
            // They are only for people.
            task.forget_step();
            task.flow.iter_mut().for_each(|flow| flow.fairness_text.clear());
            // A cron that isn't told looks by itself.
            task.flow.iter_mut().for_each(|flow| flow.cron = None);
        }
        let bytes = size::of(&task) + start;
        if let Err(reject) = limits::check("record_bytes", bytes, maximum) {
            return Decision::refuse(None, reject);
        }
    }
    if task.retry.max_attempts == MaxAttempts::Skip {
        transition::finish(&mut task, Outcome::Skipped, context);
    }
    let mut slot = latest(&task, now, context.limits);
    if schedule.in_line && available_at <= now && task.ended().is_none() && !task.gates().is_empty() {
        task.parked = Parked::InLine(Position { since: available_at, version: task.version });
        // Its attempt will need the earlier slot, which costs nothing now: for an instant, or because it leaves the line.
        let needs_earlier = task.timeouts.limits_attempts() || !line::keeps(task.gates());
        if !(context.limits.moves_cost() && needs_earlier) {
            slot = latest(&task, now, context.limits);
        }
    }
    let timer = crate::due_slot::set_slot(None, slot, &mut task, context);
    let mut writes = vec![Write::put(task.clone(), Condition::Free { now })];
    if let Some(key) = &schedule.key {
        let expires_at = key_expiry(task.deadline_at, available_at, context);
        let record = KeyRecord {
            key: key.digest,
            owner: task.id.clone().into(),
            incarnation: task.incarnation,
            created_at: now,
            nonce: context.nonce,
            expires_at,
        };
        let before = key.replaces.clone().map(Into::into);
        let condition = Condition::SameOrAbsent;
        writes.insert(0, Write::Put { before, after: record.into(), condition });
    }
    let mut effects = match &task.state {
        State::Pending(_) if task.hint_at().is_some() => vec![super::dispatch(&task)],
        State::Pending(_) | State::Running(_) | State::Ended(_) => vec![],
    };
    effects.extend(timer);
    effects.extend(super::end_notices(&task));
    Move::between(None, &task.waiting(), now).add_to(&mut writes, &mut effects);
    let answer = Ok(Reply::Scheduled { existed: false });
    Decision { new_items, writes, effects, ..Decision::of(task, answer) }
}

fn blank(schedule: &Schedule, available_at: Timestamp, context: &Context<'_>) -> Task {
    let deadline_at = schedule.timeouts.schedule_to_close.map(|timeout| context.now.plus(timeout.after));
    let mut task = Task {
        format: FORMAT,
        id: schedule.id.clone(),
        incarnation: schedule.incarnation,
        version: 1,
        nonce: context.nonce,
        queue: schedule.queue.clone(),
        kind: schedule.kind.clone(),
        created_at: context.now,
        fingerprint: schedule.fingerprint,
        key: schedule.key.as_ref().map(|key| HeldKey {
            digest: key.digest,
            expires_at: key_expiry(deadline_at, available_at, context),
        }),
        parent: schedule.parent.clone(),
        trace: schedule.trace,
        input: None,
        labels: None,
        retry: schedule.retry.clone(),
        timeouts: schedule.timeouts,
        flow: (!schedule.flow.is_empty()).then(|| Box::new(schedule.flow.clone())),
        deadline_at,
        attempt: 0,
        losses: 0,
        parked: Parked::No,
        progress: None,
        details: None,
        hinted_at: None,
        revived_at: None,
        by: None,
        history: vec![],
        state: State::Pending(Pending {
            available_at,
            schedule_to_start_at: None,
            hint_later: false,
            since_version: 0,
            unread_since: None,
        }),
        due: None,
    };
    transition::wait_from(&mut task, available_at, context.now);
    task
}

/// The payloads of a request, with the random keys of the blobs that they may need.
pub(super) struct Given<'a> {
    pub(super) input: Option<&'a Json>,
    pub(super) labels: Option<&'a Json>,
    pub(super) blob_ids: [BlobId; 2],
}

/// Stores the input and the labels in the record if they fit. Otherwise the larger one goes to a blob first.
pub(super) fn spill(mut task: Task, given: &Given<'_>, context: &Context<'_>) -> (Task, Vec<NewItem>) {
    let budget = limits::CONTROL_RECORD_BYTES - GROWTH_BYTES;
    let [input_id, labels_id] = given.blob_ids;
    // A payload in an item of its own is one write more. The step's name never causes that.
    let step = task.parent.as_mut().and_then(|parent| parent.step.take());
    let length = |json: Option<&Json>| json.map_or(0, Json::len);
    let space_left = budget.saturating_sub(size::of(&task));
    let both = length(given.input) + length(given.labels) + 16;
    let input_larger = length(given.input) >= length(given.labels);
    let smaller = length(given.input).min(length(given.labels)) + 16;
    let (input_inline, labels_inline) = match (both <= space_left, smaller <= space_left) {
        (true, _) => (true, true),
        (false, true) => (!input_larger, input_larger),
        (false, false) => (false, false),
    };
    let expires_at = payload_expiry(&task, context);
    let mut new_items = Vec::new();
    let mut store = |json: Option<&Json>, inline: bool, id: BlobId| {
        json.cloned().map(|body| {
            if inline {
                return Payload::Inline(body);
            }
            let at = BlobRef { id, bytes: u32::try_from(body.len()).unwrap_or(u32::MAX), expires_at };
            new_items.push(NewItem::Blob { at: at.clone(), body });
            Payload::Blob(at)
        })
    };
    task.input = store(given.input, input_inline, input_id);
    task.labels = store(given.labels, labels_inline, labels_id);
    if let (Some(parent), Some(_)) = (&mut task.parent, &step) {
        parent.step = step;
        if size::of(&task) > budget {
            task.forget_step();
        }
    }
    (task, new_items)
}

/// When an idempotency key's record may be deleted. If its task has a deadline, this is after the deadline.
pub(super) fn key_expiry(
    deadline_at: Option<Timestamp>,
    starts_at: Timestamp,
    context: &Context<'_>,
) -> Timestamp {
    let ends_by = deadline_at.map_or(starts_at, |deadline| deadline.max(starts_at));
    ends_by.plus(context.limits.idempotency).plus(OPEN_ENDED)
}

/// When a task's payloads may be deleted: after its retention, however late the task ends.
pub(super) fn payload_expiry(task: &Task, context: &Context<'_>) -> Timestamp {
    let open_ended = || starts_at(task, context.now).plus(OPEN_ENDED);
    let ends_by = task.deadline_at.map_or_else(open_ended, |at| at.plus(SLACK));
    ends_by.plus(context.limits.kept(task.parent.is_some()))
}

/// The earliest instant at which a worker may run the task: now, or its start.
pub(super) fn starts_at(task: &Task, now: Timestamp) -> Timestamp {
    match &task.state {
        State::Pending(pending) => pending.available_at.max(now),
        State::Running(_) | State::Ended(_) => now,
    }
}

/// A deadline may be recorded late. Payloads must not be deleted because of that.
const SLACK: crate::duration::Millis = crate::duration::Millis::from_secs(7 * 86_400);
