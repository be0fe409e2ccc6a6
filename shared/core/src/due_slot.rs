//! Where a record of any sort lies in the due index, and which timer has to be sent for that. Its own rules say
//! only how late it may lie there and which of its instants users can see.

use crate::command::Context;
use crate::decision::Effect;
use crate::due::{Due, DueKind, TIMER_HORIZON, keep_or_lower, leads_to};
use crate::duration::Millis;
use crate::id::RecordId;
use crate::limits::Limits;
use crate::queue::{QueueView, Standing};
use crate::time::{Timestamp, earliest};
use crate::timer::Timer;

/// Between the two looks at a queue that seems to have lost a hint.
const RECHECK_AFTER: Millis = Millis::from_secs(60);
/// Hints sent this much later than one's own must have been claimed before that one counts as lost.
const OVERTAKEN_BY: Millis = Millis::from_secs(300);
/// A record whose queue isn't configured is looked at this often at least: the queue may be added again.
const MISSING_MAX: Millis = Millis::from_secs(3_600);

/// A record as the due index sees it.
pub(crate) trait HasDueSlot {
    /// Whose place it is.
    fn record_id(&self) -> RecordId;
    /// The place.
    fn due(&self) -> Option<Due>;
    /// Changes the place.
    fn put(&mut self, due: Option<Due>);
    /// The instants of it that users can see, whichever comes first.
    fn instants(&self) -> [Option<Timestamp>; 3];
    /// The latest place that its state allows.
    fn latest(&self, now: Timestamp, limits: &Limits) -> Option<Due>;
    /// Whether a worker has it: then its message stands in for its backstop.
    fn is_leased(&self) -> bool;
    /// The earliest instant that users can see.
    fn visible_at(&self) -> Option<Timestamp> {
        earliest(self.instants())
    }
}

/// Where an updated record goes in the due index.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotChange {
    /// Where it is, unless that is too late.
    KeepOrLower,
    /// The same, and no timer is sent: instants only move away, and the timers on their way go on to them.
    Keep,
    /// As late as its state allows: only the tick does this, because it found the record too early.
    Latest,
}

/// Puts a changed record into its place, and gives the timer that has to be sent for it, if its instant comes
/// before any tick is sure to hand it over.
pub(crate) fn move_slot<R: HasDueSlot>(
    before: &R,
    after: &mut R,
    placement: SlotChange,
    context: &Context<'_>,
) -> Option<Effect> {
    let wanted = match placement {
        SlotChange::KeepOrLower => lower_for_new_instants(before, after, context),
        SlotChange::Keep => keep_or_lower(before.due(), bound(after, context)),
        SlotChange::Latest => after.latest(context.now, context.limits),
    };
    put_in_slot(before.due(), wanted, after, context)
}

/// The place of a record after a change: where it is, unless that is too late, or from there nobody would see a
/// new instant in time.
fn lower_for_new_instants<R: HasDueSlot>(before: &R, after: &R, context: &Context<'_>) -> Option<Due> {
    let bound = bound(after, context);
    let kept = keep_or_lower(before.due(), bound);
    let overlooks =
        |place: Due| new_instant(before, after).is_some_and(|at| !leads_to(place, at, context.now));
    if kept == before.due() && kept.is_some_and(overlooks) { bound } else { kept }
}

/// The earliest instant that a user can see, if this change is what made it.
pub(crate) fn new_instant<R: HasDueSlot>(before: &R, after: &R) -> Option<Timestamp> {
    after.visible_at().filter(|at| !before.instants().contains(&Some(*at)))
}

/// Puts the record into its new place, with the timer for it.
pub(crate) fn put_in_slot<R: HasDueSlot>(
    before: Option<Due>,
    wanted: Option<Due>,
    after: &mut R,
    context: &Context<'_>,
) -> Option<Effect> {
    let stays = |place: Due| {
        before
            .is_some_and(|before| before.at == place.at && (before.kind.is_timed() || !place.kind.is_timed()))
    };
    if wanted.is_none_or(stays) {
        // Its kind stays as well: nothing but the instant is worth a write of the index.
        after.put(if wanted.is_some() { before } else { None });
        return None;
    }
    let (place, timer) = armed(after, wanted?, context.now);
    after.put(Some(place));
    timer
}

/// A new place in the due index, with the timer that its writer has to send.
pub(crate) fn armed<R: HasDueSlot>(record: &R, place: Due, now: Timestamp) -> (Due, Option<Effect>) {
    let soon = record.visible_at().filter(|at| *at <= now.plus(TIMER_HORIZON));
    let Some(at) = soon else { return (place, None) };
    let kind = if place.at == at { DueKind::Armed } else { place.kind };
    let timer = Effect::Timer(Timer { record: record.record_id(), at, due_at: place.at });
    (Due { kind, ..place }, Some(timer))
}

/// The timer that goes on to the record's next instant, for one that was sent for the place `due_at` and has come.
pub(crate) fn next_timer<R: HasDueSlot>(record: &R, due_at: Timestamp, now: Timestamp) -> Option<Effect> {
    // Elsewhere by now: whoever moved it sent another timer, or left it to a tick. Two would go on side by side.
    let stands = record.due().is_some_and(|due| due.at == due_at);
    // What is further away is the tick's: it finds the record here within a minute or two, and moves it there.
    let at = record.visible_at().filter(|at| stands && *at <= now.plus(TIMER_HORIZON))?;
    Some(Effect::Timer(Timer { record: record.record_id(), at, due_at }))
}

/// The bound that a record's place must keep. A message in a worker's hands stands in for the backstop, so a plain
/// claim or heartbeat has no need to touch the index: only instants that users can see count. But it can be lost as
/// well: a record that lies further ahead than any look for a lost one, because it waited for something far away, is
/// moved all the same.
fn bound<R: HasDueSlot>(after: &R, context: &Context<'_>) -> Option<Due> {
    let latest = after.latest(context.now, context.limits)?;
    let farthest = context.now.plus(context.limits.backstop_max);
    match after.due().filter(|due| after.is_leased() && due.at <= farthest) {
        Some(current) => {
            Some(after.visible_at().map_or(current, |at| Due { at, kind: DueKind::Instant, ..latest }))
        }
        None => Some(latest),
    }
}

/// What the store has to see to where a place stays as it was read: a tick may have moved it later meanwhile.
pub(crate) fn insists_on<R: HasDueSlot>(before: &R, after: &R, context: &Context<'_>) -> Option<Timestamp> {
    let insisted = if after.is_leased() {
        after.visible_at()
    } else {
        after.latest(context.now, context.limits).map(|due| due.at)
    };
    insisted.filter(|_| after.due() == before.due())
}

/// The place of a record whose own next look is at `own`: earlier if a user can see something before, or so soon
/// after that the tick of that look might come too late to hand it over.
pub(crate) fn place(visible_at: Option<Timestamp>, own: Due, now: Timestamp) -> Due {
    let Some(at) = visible_at else { return own };
    if at <= own.at {
        return Due { at, kind: DueKind::Instant, ..own };
    }
    let look = at.minus(TIMER_HORIZON);
    // A second look at a queue comes a minute after the first, which leaves the tick time enough.
    if look < own.at && look > now && own.kind != DueKind::Recheck {
        return Due { at: look, ..own };
    }
    own
}

/// What to do about a hint that may be lost.
pub(crate) enum Probe {
    /// Nothing yet: the next look is from this place.
    Later(Due),
    /// It counts as lost: another one is to be sent.
    Send,
}

/// Whether a hint is lost can't be known, only guessed from its queue. Guessing wrong too often would fill it.
///
/// `waits_since` is since when the record has been waiting for somebody to read its hint, `needed_at` when it last
/// needed one, `due` the place where it was found.
pub(crate) fn probe_hint<R: HasDueSlot>(
    record: &R,
    waits_since: Option<Timestamp>,
    needed_at: Timestamp,
    due: Due,
    queue: &QueueView,
    context: &Context<'_>,
) -> Probe {
    let now = context.now;
    let later = |since| rest(record.visible_at(), due, since, context);
    // While a worker is alive, or it may not start yet, nothing can be lost.
    let Some(waits_since) = waits_since else { return Probe::Later(later(needed_at)) };
    let age = now.since(waits_since);
    if age < context.limits.backstop {
        // Its place, and an empty queue seen there, are left from an earlier wait.
        return Probe::Later(later(waits_since));
    }
    let again = |at, kind| Probe::Later(place(record.visible_at(), Due { at, kind, shard: due.shard }, now));
    let overtaken = queue.watermark.is_some_and(|mark| mark >= waits_since.plus(OVERTAKEN_BY));
    match queue.standing {
        Standing::Answers => {}
        // Only its depth can't be asked for: its messages come and go.
        Standing::Silent if overtaken && is_moving(queue, context) => {}
        // What would be sent now would be lost.
        Standing::Silent => return again(now.plus(context.limits.backstop), DueKind::Backstop),
        Standing::Missing => {
            return again(later(waits_since).at.min(now.plus(MISSING_MAX)), DueKind::Backstop);
        }
    }
    let empty_twice = queue.looks_empty && due.kind == DueKind::Recheck;
    if overtaken || empty_twice || age >= context.limits.backstop_max {
        return Probe::Send;
    }
    if queue.looks_empty {
        return again(now.plus(RECHECK_AFTER), DueKind::Recheck);
    }
    let later = later(waits_since);
    match overtaken_soon(waits_since, queue, context).filter(|at| *at < later.at) {
        Some(sooner) => again(sooner, DueKind::Backstop),
        None => Probe::Later(later),
    }
}

/// When messages sent five minutes after this record's hint will have been received, if the queue goes on as it does.
/// `None` if nothing has been received lately: then there is no telling.
fn overtaken_soon(waits_since: Timestamp, queue: &QueueView, context: &Context<'_>) -> Option<Timestamp> {
    let missing = waits_since.plus(OVERTAKEN_BY).since(queue.watermark?);
    is_moving(queue, context).then(|| context.now.plus(missing.max(OVERTAKEN_BY)))
}

/// Whether messages of the queue have been received lately.
fn is_moving(queue: &QueueView, context: &Context<'_>) -> bool {
    queue.marked_at.is_some_and(|at| context.now <= at.plus(context.limits.backstop))
}

/// The next look at a record whose queue still holds work, or that isn't waiting: at the backstop if this look
/// came before it, else four times as far from the instant a hint was needed, so at 10, 40, 160 minutes.
fn rest(visible_at: Option<Timestamp>, due: Due, since: Timestamp, context: &Context<'_>) -> Due {
    let (now, limits) = (context.now, context.limits);
    let waited = due.at.since(since);
    let wait = if waited < limits.backstop {
        limits.backstop
    } else {
        waited.saturating_mul(4).min(limits.backstop_max)
    };
    let counted = since.plus(wait);
    let at = if counted > now { counted } else { now.plus(wait) };
    place(visible_at, Due { at, kind: DueKind::Backstop, shard: due.shard }, now)
}
