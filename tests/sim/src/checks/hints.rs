//! What must hold of messages: a hint follows its commit, unless a tick sends that of a later start or of a retry, and
//! there are no more hints than are needed.

use std::collections::BTreeMap;

use tickover_core::decision::{DueReply, Effect};
use tickover_core::due::DueKind;
use tickover_core::duration::Millis;
use tickover_core::id::{GateId, Incarnation, TaskId};
use tickover_core::task::command::Command;
use tickover_core::task::decision::Reply;
use tickover_core::task::{State, Task};
use tickover_core::time::Timestamp;

use super::story::Stories;
use super::unanswered::Unanswered;
use crate::Run;
use crate::fault_plan::SKEW;
use crate::history::{Actor, Decided, Event, Fate, Note, What};
use crate::ledger::NotedGate;
use crate::trace::{brief, clock};
use crate::violation::{Invariant, Violation};

/// How much younger than a lost hint the hints are that have already been claimed.
const OVERTAKEN_BY: Millis = Millis::from_secs(300);

/// How soon a probe comes where a hint wasn't received for long.
const PROBED_AFTER: Millis = Millis::from_secs(60);

/// Hints that may be sent.
#[derive(Default)]
struct Allowed {
    /// Because of a decision.
    decided: BTreeMap<Incarnation, i64>,
    /// Because the actor received this very message, and sends it again.
    received: BTreeMap<(Actor, Incarnation, u64), i64>,
    /// Because the answer to the call that sent it was lost.
    unanswered: Unanswered<(Incarnation, u64)>,
}

pub(super) fn of_run(stories: &Stories<'_>, run: &Run) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut allowed = Allowed { unanswered: Unanswered::in_run(run), ..Allowed::default() };
    let mut calls = calls(run).into_iter().peekable();
    for (number, event) in run.events.iter().enumerate() {
        allowed.unanswered.event(event);
        while let Some((_, incarnation)) = calls.next_if(|(written, _)| *written <= number) {
            *allowed.decided.entry(incarnation).or_default() += 1;
        }
        match &event.what {
            What::Decided(decided) => {
                found.extend(i9_a_second_hint_has_a_reason(event, decided, run));
                for effect in &decided.effects {
                    match effect {
                        Effect::Dispatch { hint, .. } => {
                            *allowed.decided.entry(hint.task.incarnation).or_default() += 1;
                        }
                        Effect::Timer(_)
                        | Effect::Turn { .. }
                        | Effect::NotifyParent(_)
                        | Effect::CameToLine { .. }
                        | Effect::FreePlaces(_) => {}
                    }
                }
            }
            What::Message { fate, note: Note::Hint { task, incarnation, version }, .. } => match fate {
                Fate::Sent(_) | Fate::Dropped => {
                    let of = (task, *incarnation, *version);
                    found.extend(i1_only_a_tick_sends_a_hint_before_its_commit(stories, number, event, of));
                    found.extend(i9_a_hint_was_asked_for(&mut allowed, event, of));
                }
                Fate::Received => {
                    *allowed.received.entry((event.actor, *incarnation, *version)).or_default() += 1;
                }
                Fate::Refused | Fate::Duplicated(_) | Fate::NeverReceived | Fate::Shown | Fate::Deleted => {}
            },
            What::Called { .. }
            | What::Answered { .. }
            | What::Stored(_)
            | What::OfExecution(_)
            | What::Message { .. }
            | What::Fault(_) => {}
        }
    }
    found
}

/// The tasks that were called to a place, and after how many events.
fn calls(run: &Run) -> Vec<(usize, Incarnation)> {
    let mut called: BTreeMap<GateId, BTreeMap<Incarnation, Timestamp>> = BTreeMap::new();
    let mut calls = vec![];
    for NotedGate { number, gate, .. } in run.world.ledger.gates() {
        let now = gate.holders.iter().filter(|one| one.is_called()).map(|one| (one.incarnation, one.until));
        let now: BTreeMap<Incarnation, Timestamp> = now.collect();
        let before = called.insert(gate.id.clone(), now.clone()).unwrap_or_default();
        calls.extend(
            now.iter().filter(|(one, until)| before.get(one) != Some(until)).map(|(one, _)| (number, *one)),
        );
    }
    calls
}

fn i9_a_hint_was_asked_for(
    allowed: &mut Allowed,
    event: &Event,
    (task, incarnation, version): (&TaskId, Incarnation, u64),
) -> Option<Violation> {
    let by_decision = allowed.decided.get_mut(&incarnation);
    let by_receipt = allowed.received.get_mut(&(event.actor, incarnation, version));
    if allowed.unanswered.repeats(event.actor, (incarnation, version), event.at) {
        return None;
    }
    if let Some(left) = by_receipt.into_iter().chain(by_decision).find(|left| **left > 0) {
        *left -= 1;
        return None;
    }
    let what = format!("no decision is behind a hint of {task} v{version}");
    Some(Violation::new(Invariant::I9, event.at, what))
}

/// A tick may die after its write, so it sends the hint of a later start first, and that of a retry after a timeout.
fn i1_only_a_tick_sends_a_hint_before_its_commit(
    stories: &Stories<'_>,
    number: usize,
    event: &Event,
    (task, incarnation, version): (&TaskId, Incarnation, u64),
) -> Option<Violation> {
    let steps = stories.task(incarnation);
    let before = || steps.iter().take_while(|step| step.number < number);
    // A message of the timers queue may hand a shard of the tick over.
    let is_tick = matches!(event.actor, Actor::Ticker(_) | Actor::Timers(_));
    let is_sure = |after: &Task| after.is_hinted_later() || after.running().is_some();
    let is_next = |after: &Task| is_tick && after.version + 1 == version && is_sure(after);
    let committed = before().any(|step| step.after.version == version)
        || before().last().is_some_and(|step| is_next(step.after));
    let what =
        || format!("a hint of {task} of {incarnation} v{version}, and that version wasn't in the table");
    (!committed).then(|| Violation::new(Invariant::I1, event.at, what()))
}

/// Whether its start has expired, in a time so short that no probe comes within it, and its hint was unread for so long that
/// it counts as lost.
fn is_overdue(seen: &Task, now: Timestamp, run: &Run) -> bool {
    let State::Pending(pending) = &seen.state else { return false };
    let has_expired = pending.schedule_to_start_at.is_some_and(|at| at <= now);
    let is_short = seen.timeouts.schedule_to_start.is_some_and(|timeout| timeout.after <= PROBED_AFTER);
    let waited = |since| now.plus(SKEW).since(since) >= run.plan.limits.backstop;
    has_expired && is_short && waiting_since(seen).is_some_and(waited)
}

/// The tick sends another hint for a task only if the queue looked empty twice, or younger hints have been claimed, or
/// hours have passed; and never twice within a backstop. A resume sends one for a task that is parked. It is another one if
/// the task was put on hold while its hint was in the queue: at most one for each pause.
fn i9_a_second_hint_has_a_reason(event: &Event, decided: &Decided, run: &Run) -> Option<Violation> {
    let Some(seen) = &decided.seen else { return None };
    let first = matches!(decided.outcome, Ok(Reply::Due(DueReply::TimedOut)));
    let dispatches = decided.effects.iter().any(|effect| matches!(effect, Effect::Dispatch { .. }));
    if !dispatches || first || is_overdue(seen, decided.now, run) {
        return None;
    }
    let is_not_parked = seen.parked.is_no() && matches!(seen.state, State::Pending(_));
    let is_hold = matches!(decided.command, Command::Hold);
    if is_hold || (is_not_parked && matches!(decided.command, Command::Unpark)) {
        let what = format!("not parked, at {}: another hint of {}", clock(decided.now), brief(seen));
        return Some(Violation::new(Invariant::I9, event.at, what));
    }
    let Command::Due(view) = &decided.command else { return None };
    let since = waiting_since(seen)?;
    let waited = decided.now.plus(SKEW).since(since);
    let empty_twice = view.looks_empty && seen.due.is_some_and(|due| due.kind == DueKind::Recheck);
    let overtaken = view.watermark.is_some_and(|mark| mark >= since.plus(OVERTAKEN_BY));
    let long_ago = waited >= run.plan.limits.backstop_max;
    let what = if waited < run.plan.limits.backstop {
        "too soon"
    } else if !(empty_twice || overtaken || long_ago) {
        "without a reason"
    } else {
        return None;
    };
    let what = format!("{what}, at {}: another hint of {}", clock(decided.now), brief(seen));
    Some(Violation::new(Invariant::I9, event.at, what))
}

/// Since when a task has been waiting for its hint to be received; `None` where the hint is yet to be sent.
fn waiting_since(task: &Task) -> Option<Timestamp> {
    if !task.parked.is_no() {
        return None;
    }
    let since = match &task.state {
        State::Pending(pending) if pending.hint_later => return None,
        // When a start time passes, no new hint is sent: the earlier hint still counts.
        State::Pending(pending) => pending.unread_since.unwrap_or(pending.available_at),
        State::Running(running) => running.lease_expires_at,
        State::Ended(_) => return None,
    };
    Some(since.max(task.hinted_at.unwrap_or(since)))
}
