//! The entry point of all decisions about tasks. It only dispatches: each command is decided in a file of its own.

mod again;
mod bounce;
mod cancel;
mod claim;
mod complete;
mod due;
mod fail;
mod heartbeat;
mod hold;
mod pace;
mod release;
mod revive;
mod schedule;
#[cfg(test)]
pub(crate) mod tests;
mod timer;
mod unpark;
mod wait_in_line;

use crate::command::Context;
use crate::decision::{Condition, Effect, FreePlaces, Write};
use crate::due_slot::{self, SlotChange};
use crate::error::Reject;
use crate::flow::{Gated, Paced};
use crate::gate::line::Move;
use crate::id::LeaseId;
use crate::size;
use crate::task::command::Command;
use crate::task::decision::{Decision, Reply};
use crate::task::due::{PROBE_SOON, hint_unread_since};
use crate::task::hint::Hint;
use crate::task::transition;
use crate::task::{Ending, Outcome, Running, State, Task};
use crate::time::Timestamp;
use crate::timer::end_of_run;

/// Decides a command on a task, or on an id without a task.
pub fn decide(task: Option<&Task>, command: &Command, context: &Context<'_>) -> Decision {
    // A record whose retention has passed counts as absent, even if the store hasn't deleted it yet. The exception
    // is a delayed repetition of the call that created it: it would create a second task that can't be distinguished
    // from the first.
    let is_own = |task: &Task| match command {
        Command::Schedule(schedule) => schedule.incarnation == task.incarnation,
        Command::Bounce(_)
        | Command::Claim(_)
        | Command::Heartbeat(_)
        | Command::Complete(_)
        | Command::Fail(_)
        | Command::Release { .. }
        | Command::Cancel { .. }
        | Command::Retry(_)
        | Command::Hold
        | Command::Unpark
        | Command::WaitInLine { .. }
        | Command::Due(_)
        | Command::Timer { .. } => false,
    };
    let task = task.filter(|task| !task.is_gone(context.now) || is_own(task));
    let known = |decide: &dyn Fn(&Task) -> Decision| {
        task.map_or_else(|| Decision::refuse(None, Reject::NotFound), decide)
    };
    match command {
        Command::Schedule(schedule) => schedule::decide(task, schedule, context),
        Command::Bounce(bounce) => known(&|task| bounce::decide(task, bounce, context)),
        Command::Claim(claim) => known(&|task| claim::decide(task, claim, context)),
        Command::Heartbeat(heartbeat) => known(&|task| heartbeat::decide(task, heartbeat, context)),
        Command::Complete(complete) => known(&|task| complete::decide(task, complete, context)),
        Command::Fail(fail) => known(&|task| fail::decide(task, fail, context)),
        Command::Release { lease } => known(&|task| release::decide(task, lease, context)),
        Command::Cancel { force } => known(&|task| cancel::decide(task, *force, context)),
        Command::Retry(given) => known(&|task| revive::decide(task, given.as_deref(), context)),
        Command::Hold => known(&|task| hold::decide(task, context)),
        Command::Unpark => known(&|task| unpark::decide(task, context)),
        Command::WaitInLine { seen_version } => {
            known(&|task| wait_in_line::decide(task, *seen_version, context))
        }
        Command::Due(queue) => known(&|task| due::decide(task, queue, context)),
        Command::Timer { due_at, again } => known(&|task| timer::decide(task, *due_at, *again, context)),
    }
}

/// The decision to replace `before` by `after`, with the hint that a pending task needs.
fn update(before: &Task, after: Task, context: &Context<'_>, outcome: Result<Reply, Reject>) -> Decision {
    update_in_slot(before, after, SlotChange::KeepOrLower, context, outcome)
}

fn update_in_slot(
    before: &Task,
    mut after: Task,
    placement: SlotChange,
    context: &Context<'_>,
    outcome: Result<Reply, Reject>,
) -> Decision {
    after.version = before.version + 1;
    after.nonce = context.nonce;
    let has_new_hint = pace::is_put_off(before, &after) || is_overdue(before, &after, context);
    if let State::Pending(pending) = &mut after.state {
        match &before.state {
            State::Pending(old) if !has_new_hint => {
                pending.since_version = old.since_version;
                // `schedule_to_start` expired, and no new hint was sent. If the wait counted from the start again, a
                // lost hint would never be found.
                let is_waited_for = !old.hint_later && before.parked.is_no() && !pending.hint_later;
                if is_waited_for && pending.available_at != old.available_at {
                    pending.unread_since = hint_unread_since(before);
                }
            }
            State::Pending(_) | State::Running(_) | State::Ended(_) => pending.since_version = after.version,
        }
    }
    let timer = due_slot::move_slot(before, &mut after, placement, context);
    transition::fit(&mut after);
    let due_no_later_than = due_slot::required_due(before, &after, context);
    let mut effects = newly_pending(before, &after, has_new_hint);
    effects.extend(timer);
    effects.extend(freed_places(before, &after, context.now));
    if before.ended().is_none() {
        effects.extend(end_notices(&after));
    }
    let unchanged = Condition::Unchanged { due_no_later_than, wakes: None };
    let mut writes = vec![Write::replace(before.clone(), after.clone(), unchanged)];
    if before.parked != after.parked {
        let moved = Move::between(Some(&before.waiting()), &after.waiting(), context.now);
        moved.add_to(&mut writes, &mut effects);
    }
    Decision { writes, effects, ..Decision::of(after, outcome) }
}

/// The hint for a task that became pending by this decision, unless its start is further away than a queue can
/// delay.
///
/// A task that was pending before already has a hint, which is delayed again when it arrives before the later start.
/// A new one after each expired `schedule_to_start` would fill the queue.
fn newly_pending(before: &Task, after: &Task, has_new_hint: bool) -> Vec<Effect> {
    let had_none = match &before.state {
        State::Pending(old) => old.hint_later || !before.parked.is_no() || has_new_hint,
        State::Running(_) | State::Ended(_) => true,
    };
    if had_none && after.hint_at().is_some() { vec![dispatch(after)] } else { vec![] }
}

/// Whether `schedule_to_start` has expired, and the hint was unread for so long that it counts as lost: where that time is so
/// short that it passes again before each probe, no probe would find that. An older hint, should it come after all, leads to
/// nothing.
fn is_overdue(before: &Task, after: &Task, context: &Context<'_>) -> bool {
    let has_expired =
        before.running().is_none() && before.attempt != after.attempt && after.ended().is_none();
    let is_short = before.timeouts.schedule_to_start.is_some_and(|timeout| timeout.after <= PROBE_SOON);
    let unread_since = hint_unread_since(before).filter(|_| has_expired && is_short && before.parked.is_no());
    unread_since.is_some_and(|since| context.now.since(since) >= context.limits.backstop)
}

/// The places that the task gives up by this decision: those of an attempt that has ended without another one that
/// follows at once, or what it was offered if it leaves its line without an attempt. And the start that it doesn't need.
fn freed_places(before: &Task, after: &Task, now: Timestamp) -> Option<Effect> {
    let gives_up = match (&before.state, &after.state) {
        (State::Running(_), State::Pending(_) | State::Ended(_)) | (State::Pending(_), State::Ended(_)) => {
            true
        }
        (State::Running(_), State::Running(_))
        | (State::Pending(_), State::Pending(_) | State::Running(_))
        | (State::Ended(_), _) => false,
    };
    // One that was called, and can't start after all.
    let leaves_line = before.waits_in_line() && after.parked.in_line().is_none() && after.running().is_none();
    let has_ended = after.ended().is_some() && before.ended().is_none();
    let waits_without = after.waits_in_line() && before.reserved() != after.reserved();
    let start = before.paced().filter(|_| has_ended || waits_without);
    let start = start.filter(|paced| paced.start.is_some_and(|start| start.makes_wait(now))).cloned();
    let gates = if gives_up || leaves_line { before.gates().to_vec() } else { vec![] };
    (!gates.is_empty() || start.is_some()).then(|| {
        let waited = before.running().is_none() || before.waits_in_line();
        freeing(before, gates, after.version, waited.then(|| before.waiting().mark()), start)
    })
}

fn freeing(task: &Task, gates: Vec<Gated>, before: u64, waited: Option<u32>, start: Option<Paced>) -> Effect {
    let (owner, incarnation) = (task.id.clone().into(), task.incarnation);
    Effect::FreePlaces(Box::new(FreePlaces { owner, incarnation, gates, before, waited, start }))
}

/// Who learns that the task has ended, if it has: the execution that it is a remote step of, or the cron that it is a run
/// of, if that waits for it.
fn end_notices(task: &Task) -> impl Iterator<Item = Effect> {
    let parent = task.parent.clone().filter(|_| task.ended().is_some()).map(Effect::NotifyParent);
    parent.into_iter().chain(task.end_of_run())
}

impl Task {
    /// What tells the cron whose run it is that it has ended. `None` while it is open, or if that cron doesn't wait for it.
    pub fn end_of_run(&self) -> Option<Effect> {
        let cron = self.flow.as_deref()?.cron.clone()?;
        Some(end_of_run(cron, self.ended()?.ended_at))
    }
}

fn dispatch(task: &Task) -> Effect {
    let at = match &task.state {
        State::Pending(pending) => pending.available_at,
        State::Running(running) => running.lease_expires_at,
        State::Ended(ended) => ended.ended_at,
    };
    Effect::Dispatch { hint: Box::new(Hint::of(task)), at }
}

/// The status of a worker's lease.
enum LeaseStatus<'a> {
    /// The lease is the task's current one.
    Current(&'a Running),
    /// The lease's attempt was closed before: the call is a repetition.
    Closed(Ending),
    /// The lease has ended, for this reason.
    Refused(Reject),
}

/// The status of a worker's lease. All expired timeouts must have been recorded in `task`.
///
/// An expired lease stays valid until another worker takes over the task: the work is done, and a refusal would only
/// have it repeated. Passed deadlines and timeouts do end it.
fn lease_status<'a>(task: &'a Task, lease: &LeaseId) -> LeaseStatus<'a> {
    if let Some(running) = task.running().filter(|running| running.lease == *lease) {
        return LeaseStatus::Current(running);
    }
    let past = task.past_attempt(lease).map(|past| past.ending);
    match past {
        Some(Ending::TimedOut(kind)) => LeaseStatus::Refused(Reject::DeadlineExceeded { kind }),
        Some(ending @ (Ending::Completed | Ending::Failed | Ending::Released)) => LeaseStatus::Closed(ending),
        Some(Ending::Lost | Ending::Cancelled) | None => LeaseStatus::Refused(match task.ended() {
            Some(ended) => match ended.outcome {
                Outcome::TimedOut { kind, .. } => Reject::DeadlineExceeded { kind },
                Outcome::Completed { .. }
                | Outcome::Failed { .. }
                | Outcome::Cancelled { .. }
                | Outcome::Skipped => Reject::AlreadyTerminal { status: task.status() },
            },
            None => Reject::LeaseLost,
        }),
    }
}

/// A repeated report. If the task hasn't been claimed since, its hint may have been lost between the commit and the
/// send, so it is sent again. The same is true of the notification to a parent.
fn repeated_close(task: &Task, lease: &LeaseId) -> Decision {
    let mut decision = Decision::unchanged(task, Ok(Reply::Closed { duplicate: true }));
    let was_last = task.history.last().is_some_and(|past| past.lease.as_ref() == Some(lease));
    if was_last && task.hint_at().is_some() {
        decision.effects.push(dispatch(task));
    }
    decision.effects.extend(end_notices(task));
    if !task.gates().is_empty() && task.running().is_none() {
        decision.effects.push(freeing(task, task.gates().to_vec(), task.version, None, None));
    }
    decision
}

/// The refusal of a worker's call, with the write that records expired timeouts.
fn refuse_expired(before: &Task, expired: Option<Task>, reject: Reject, context: &Context<'_>) -> Decision {
    match expired {
        Some(after) => update(before, after, context, Err(reject)),
        None => Decision::refuse(Some(before), reject),
    }
}

/// Whether the stored record stays within its byte budget.
fn fits(task: &Task) -> bool {
    size::of(task) <= crate::limits::CONTROL_RECORD_BYTES
}
