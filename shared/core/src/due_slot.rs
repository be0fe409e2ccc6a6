//! The due slot of a record of any kind, and the timer to send for it. The rules of each kind only give the record's
//! latest due slot, and those of its instants whose effects users can see.

use crate::command::Context;
use crate::decision::Effect;
use crate::due::{Due, DueKind, TIMER_HORIZON, covers_instant, keep_or_lower};
use crate::duration::Millis;
use crate::gate::line;
use crate::id::RecordId;
use crate::limits::Limits;
use crate::parked::Parked;
use crate::queue::{QueueView, Reachability};
use crate::time::{Timestamp, earliest};
use crate::timer::Timer;

/// The time between two probes if the first finds the queue empty.
const RECHECK_AFTER: Millis = Millis::from_secs(60);
/// A hint counts as lost once hints sent this much later have been claimed.
const OVERTAKEN_BY: Millis = Millis::from_secs(300);
/// The longest time between two probes of a record whose queue isn't configured. The queue may be added again.
const MISSING_MAX: Millis = Millis::from_secs(3_600);

/// The fields of a record from which its due slot is computed.
pub(crate) trait HasDueSlot {
    fn record_id(&self) -> RecordId;
    fn due(&self) -> Option<Due>;
    fn set_due(&mut self, due: Option<Due>);
    /// The instants whose effects users can see, in any order.
    fn instants(&self) -> [Option<Timestamp>; 3];
    /// The latest due slot that its state allows.
    fn latest(&self, now: Timestamp, limits: &Limits) -> Option<Due>;
    /// Whether a worker has a lease on it. Then its message in flight takes the place of a probe.
    fn is_leased(&self) -> bool;
    /// What carries it if its message was deleted.
    fn parked(&self) -> Parked;
    /// The earliest instant whose effect users can see.
    fn visible_at(&self) -> Option<Timestamp> {
        earliest(self.instants())
    }
}

/// How an update changes a record's due slot.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotChange {
    /// Keeps it, unless it is too late.
    KeepOrLower,
    /// As `KeepOrLower`, but sends no timer. For updates that only move instants later: the timers under way are
    /// sent again for them.
    Keep,
    /// The latest slot that its state allows. Only the tick does this, when it found the record too early.
    Latest,
    /// This slot.
    To(Due),
}

impl SlotChange {
    /// For a record that begins to wait in a line. Where a move costs two index writes, its slot stays until the tick finds
    /// it there: many have left the line by then.
    pub(crate) const fn in_line(limits: &Limits) -> Self {
        if limits.moves_cost() { Self::KeepOrLower } else { Self::Latest }
    }
}

/// Sets a changed record's due slot. Returns the timer to send if the record's instant comes before a tick is sure
/// to send one.
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
        SlotChange::To(due) => Some(due),
    };
    set_slot(before.due(), wanted, after, context)
}

/// The due slot after a change. The slot is kept unless it is too late, or the record wouldn't be read in time for a
/// new instant.
fn lower_for_new_instants<R: HasDueSlot>(before: &R, after: &R, context: &Context<'_>) -> Option<Due> {
    let bound = bound(after, context);
    let kept = keep_or_lower(before.due(), bound);
    let misses_new_instant =
        |place: Due| new_instant(before, after).is_some_and(|at| !covers_instant(place, at, context.now));
    if kept == before.due() && kept.is_some_and(misses_new_instant) { bound } else { kept }
}

/// The earliest instant whose effect users can see, if this change set it.
pub(crate) fn new_instant<R: HasDueSlot>(before: &R, after: &R) -> Option<Timestamp> {
    after.visible_at().filter(|at| !before.instants().contains(&Some(*at)))
}

/// Sets the record's new due slot, and returns the timer for it.
pub(crate) fn set_slot<R: HasDueSlot>(
    before: Option<Due>,
    wanted: Option<Due>,
    after: &mut R,
    context: &Context<'_>,
) -> Option<Effect> {
    let stays = |place: Due| {
        before.is_some_and(|before| {
            // The tick sends the hint of a sleep only for an entry of that kind.
            let is_noticed = before.kind == place.kind || place.kind != DueKind::Asleep;
            before.at == place.at && is_noticed && (before.kind.is_timed() || !place.kind.is_timed())
        })
    };
    if wanted.is_none_or(stays) {
        // The kind stays too: only a new instant is worth a write to the index.
        after.set_due(if wanted.is_some() { before } else { None });
        return None;
    }
    let (place, timer) = armed(after, wanted?, context.now);
    after.set_due(Some(place));
    timer
}

/// A new due slot, with the timer that its writer must send.
pub(crate) fn armed<R: HasDueSlot>(record: &R, place: Due, now: Timestamp) -> (Due, Option<Effect>) {
    let soon = record.visible_at().filter(|at| *at <= now.plus(TIMER_HORIZON));
    let Some(at) = soon else { return (place, None) };
    let kind = if place.at == at { DueKind::Armed } else { place.kind };
    let timer = Effect::Timer(Timer { record: record.record_id(), at, due_at: place.at });
    (Due { kind, ..place }, Some(timer))
}

/// The timer for the record's next instant, after a timer has arrived that was sent for the due slot `due_at`.
pub(crate) fn next_timer<R: HasDueSlot>(record: &R, due_at: Timestamp, now: Timestamp) -> Option<Effect> {
    // If the slot has moved, its writer sent another timer or left it to a tick. Two timers would repeat side by
    // side.
    let is_current = record.due().is_some_and(|due| due.at == due_at);
    // The tick handles later instants: it finds the record within a minute or two, and moves it there.
    let at = record.visible_at().filter(|at| is_current && *at <= now.plus(TIMER_HORIZON))?;
    Some(Effect::Timer(Timer { record: record.record_id(), at, due_at }))
}

/// The latest due slot that a record may keep. While a record is leased, its message in flight takes the place of a
/// probe. So a claim or a heartbeat doesn't need to write to the index, and only instants whose effects users can
/// see count. But that message can be lost too. So a record that waited for something far away, and whose slot is
/// more than `backstop_max` ahead, is moved anyway, unless it is in a line: then that leads to it.
fn bound<R: HasDueSlot>(after: &R, context: &Context<'_>) -> Option<Due> {
    let latest = after.latest(context.now, context.limits)?;
    let farthest = parked_until(after.parked(), context.now, context.limits);
    match after.due().filter(|due| after.is_leased() && due.at <= farthest) {
        Some(current) => {
            Some(after.visible_at().map_or(current, |at| Due { at, kind: DueKind::Instant, ..latest }))
        }
        None => Some(latest),
    }
}

/// The latest due slot that the store must check for if the write keeps the slot: a tick may have moved it later
/// since the read.
pub(crate) fn required_due<R: HasDueSlot>(before: &R, after: &R, context: &Context<'_>) -> Option<Timestamp> {
    let insisted = if after.is_leased() {
        // A tick that found it in a line may have moved its slot beyond what a lease may keep.
        let leaves_line = before.parked().in_line().is_some() && after.parked().in_line().is_none();
        let farthest = leaves_line.then(|| parked_until(after.parked(), context.now, context.limits));
        earliest([after.visible_at(), farthest, None])
    } else {
        after.latest(context.now, context.limits).map(|due| due.at)
    };
    insisted.filter(|_| after.due() == before.due())
}

/// The due slot of a record whose next probe is at `own`. The slot is earlier if users can see an effect before it,
/// or so soon after it that the tick might be too late to send the timer.
pub(crate) fn probe_slot(visible_at: Option<Timestamp>, own: Due, now: Timestamp) -> Due {
    let Some(at) = visible_at else { return own };
    if at <= own.at {
        return Due { at, kind: DueKind::Instant, ..own };
    }
    let probe_at = at.minus(TIMER_HORIZON);
    // A second probe comes a minute after the first, which leaves the tick enough time.
    if probe_at < own.at && probe_at > now && own.kind != DueKind::Recheck {
        return Due { at: probe_at, ..own };
    }
    own
}

/// Until when the tick needn't look at a record to which something else leads: the end of a pause sends its hint, or whoever
/// gives it a place. The tick acts only if that fails.
pub(crate) fn parked_until(parked: Parked, now: Timestamp, limits: &Limits) -> Timestamp {
    parked.in_line().map_or(now.plus(limits.backstop_max), |position| line::looked_at(position, now))
}

/// The result of a probe.
pub(crate) enum Probe {
    /// The hint isn't known to be lost. The next probe is in this due slot.
    Later(Due),
    /// The hint counts as lost: another one is sent.
    Send,
}

/// Nothing shows for certain that a hint is lost: the state of its queue only suggests it. Too many wrong guesses
/// would fill the queue.
///
/// `waits_since` is the instant from which the record has been waiting for its hint to be received, `needed_at` the
/// instant at which it last needed a hint, and `due` the due slot in which the tick found it.
pub(crate) fn probe_hint<R: HasDueSlot>(
    record: &R,
    waits_since: Option<Timestamp>,
    needed_at: Timestamp,
    due: Due,
    queue: &QueueView,
    context: &Context<'_>,
) -> Probe {
    let now = context.now;
    let later = |since| next_probe(record.visible_at(), due, since, context);
    // While a worker is alive, or before the start, no hint can be lost.
    let Some(waits_since) = waits_since else { return Probe::Later(later(needed_at)) };
    let age = now.since(waits_since);
    if age < context.limits.backstop {
        // The due slot, and the empty queue found at that probe, belong to an earlier wait.
        return Probe::Later(later(waits_since));
    }
    let probe_at =
        |at, kind| Probe::Later(probe_slot(record.visible_at(), Due { at, kind, shard: due.shard }, now));
    let overtaken = queue.watermark.is_some_and(|mark| mark >= waits_since.plus(OVERTAKEN_BY));
    match queue.reachability {
        Reachability::Reachable => {}
        // Only the queue's depth is unknown: its messages are being received.
        Reachability::Unreachable if overtaken && is_moving(queue, context) => {}
        // A hint sent now would be lost.
        Reachability::Unreachable => return probe_at(now.plus(context.limits.backstop), DueKind::Backstop),
        Reachability::NotConfigured => {
            return probe_at(later(waits_since).at.min(now.plus(MISSING_MAX)), DueKind::Backstop);
        }
    }
    let empty_twice = queue.looks_empty && due.kind == DueKind::Recheck;
    if overtaken || empty_twice || age >= context.limits.backstop_max {
        return Probe::Send;
    }
    if queue.looks_empty {
        return probe_at(now.plus(RECHECK_AFTER), DueKind::Recheck);
    }
    let later = later(waits_since);
    match overtaken_soon(waits_since, queue, context).filter(|at| *at < later.at) {
        Some(sooner) => probe_at(sooner, DueKind::Backstop),
        None => Probe::Later(later),
    }
}

/// When messages sent five minutes after this record's hint will have been received, if the queue continues at its
/// present rate. `None` if no message has been received lately: then that can't be estimated.
fn overtaken_soon(waits_since: Timestamp, queue: &QueueView, context: &Context<'_>) -> Option<Timestamp> {
    let missing = waits_since.plus(OVERTAKEN_BY).since(queue.watermark?);
    is_moving(queue, context).then(|| context.now.plus(missing.max(OVERTAKEN_BY)))
}

fn is_moving(queue: &QueueView, context: &Context<'_>) -> bool {
    queue.marked_at.is_some_and(|at| context.now <= at.plus(context.limits.backstop))
}

/// The next probe of a record that isn't waiting, or whose queue still contains messages. If this probe came before
/// the backstop, the next is at the backstop. Otherwise it is four times as far from the instant at which a hint was
/// needed: at 10, 40, 160 minutes.
fn next_probe(visible_at: Option<Timestamp>, due: Due, since: Timestamp, context: &Context<'_>) -> Due {
    let (now, limits) = (context.now, context.limits);
    let waited = due.at.since(since);
    let wait = if waited < limits.backstop {
        limits.backstop
    } else {
        waited.saturating_mul(4).min(limits.backstop_max)
    };
    let counted = since.plus(wait);
    let at = if counted > now { counted } else { now.plus(wait) };
    probe_slot(visible_at, Due { at, kind: DueKind::Backstop, shard: due.shard }, now)
}
