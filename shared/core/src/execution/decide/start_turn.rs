//! `start_turn`: a worker starts the next turn, of an execution whose turn is pending or whose worker was lost.

use crate::command::Context;
use crate::decision::Effect;
use crate::duration::Millis;
use crate::execution::command::{CodeTerms, StartTurn};
use crate::execution::decision::{Decision, Reply, StartTurnReply};
use crate::execution::journal::{Entry, Happened};
use crate::execution::update::{turn, update};
use crate::execution::{
    Admission, Execution, ExecutionOutcome, ExecutionState, ExecutionTimeouts, Ready, RunAttempt, Stuck,
    Turn, append, attempts, closing, due, size,
};
use crate::failure::Failure;
use crate::gate::rate::Reservation;
use crate::gate::{Pacing, pacing};
use crate::parked::Parked;
use crate::time::Timestamp;

/// How early the hint of a wait's or a lease's end may arrive. An earlier hint isn't for this end, but left over from
/// something that was already handled. If such hints were kept until the end, each would add one more message.
const EARLY: Millis = Millis::from_secs(10);

pub(super) fn decide(execution: &Execution, take: &StartTurn, context: &Context<'_>) -> Decision {
    let reply = |reply| Ok(Reply::StartTurn(reply));
    if take.incarnation.is_some_and(|incarnation| incarnation != execution.incarnation) {
        return Decision::unchanged(execution, reply(StartTurnReply::Stale));
    }
    if let Some(after) = closing::expire(execution, context) {
        return settle(execution, after, context);
    }
    let now = context.now;
    let refuse = |answer| Decision::unchanged(execution, reply(answer));
    match &execution.state {
        ExecutionState::Ended(_) => refuse(StartTurnReply::Stale),
        ExecutionState::Closing(_) => refuse(StartTurnReply::Closing),
        ExecutionState::Running(turn) if turn.lease == take.lease => refuse(StartTurnReply::Started),
        // The message of a lost worker becomes visible again shortly before its lease ends.
        ExecutionState::Running(turn)
            if !turn.is_lost(now, context.limits)
                && !turn.is_left(take.again, now)
                && !attempts::is_overdue(execution, now) =>
        {
            let available_at = turn.lease_expires_at;
            let is_soon = available_at <= now.plus(EARLY);
            refuse(if is_soon {
                StartTurnReply::Early { available_at }
            } else {
                StartTurnReply::LeasedByOther
            })
        }
        // The operator's call will send another hint.
        ExecutionState::Pending(_) | ExecutionState::Running(_) | ExecutionState::Waiting(_)
            if execution.needs_operator() =>
        {
            refuse(StartTurnReply::Stale)
        }
        ExecutionState::Pending(ready) if !execution.is_ready(ready, now) => refuse(if ready.hint_later {
            StartTurnReply::Stale
        } else {
            StartTurnReply::Early { available_at: ready.available_at }
        }),
        ExecutionState::Waiting(waiting) if !due::is_ready(waiting, execution, now) => {
            // Received again, the message may be that of the process that suspended the execution, and died before it
            // sent the hint for the end of the wait.
            let is_its = |at: &Timestamp| *at <= now.plus(EARLY) || take.again && !waiting.hint_later;
            let until = waiting.until.filter(is_its);
            refuse(until.map_or(StartTurnReply::Stale, |available_at| StartTurnReply::Early { available_at }))
        }
        ExecutionState::Pending(_) | ExecutionState::Running(_) | ExecutionState::Waiting(_) => {
            begin(execution, take, context)
        }
    }
}

/// Starts the next turn, unless too many turns in a row recorded nothing.
fn begin(execution: &Execution, take: &StartTurn, context: &Context<'_>) -> Decision {
    let mut after = execution.clone();
    apply_terms(&mut after, &take.terms);
    if let Some(after_expiry) = closing::expire(&after, context) {
        // Its deadline passed before a worker with the code set it.
        return settle(execution, after_expiry, context);
    }
    if execution.cancel_requested && !execution.may_undo() {
        closing::conclude(&mut after, ExecutionOutcome::Cancelled { terminated: false }, context);
        return settle(execution, after, context);
    }
    let idle_turns = closing::idle_turns(execution);
    if idle_turns >= context.limits.idle_turns {
        let last = match &execution.stuck {
            Some(Stuck::Code { failure, .. }) => {
                format!("; the last one: {}: {}", failure.code, failure.message)
            }
            Some(Stuck::UnknownWorkflow { .. } | Stuck::Unreadable(_)) | None => String::new(),
        };
        let message = format!("{idle_turns} turns in a row came to nothing{last}");
        let error = Failure::new("poisoned", message);
        let outcome = ExecutionOutcome::Failed { error, step: None, retries_exhausted: false };
        closing::conclude(&mut after, outcome, context);
        return settle(execution, after, context);
    }
    if take.paused {
        return park(execution, context);
    }
    if execution.turn().is_some_and(Turn::is_suspect) && take.isolation.is_shared() {
        let suspect = Ok(Reply::StartTurn(StartTurnReply::NeedsIsolation));
        return Decision::unchanged(execution, suspect);
    }
    if take.asks.is_some() && execution.takes_limits() {
        // Places are taken for the version of the record that has their keys. The worker goes on with that.
        let cron = after.admission.take().and_then(|admission| admission.cron);
        after.admission = take.asks.clone().map(|asks| Box::new(Admission { cron, ..*asks }));
        let again = StartTurnReply::Early { available_at: context.now };
        return update(execution, after, context, Ok(Reply::StartTurn(again)));
    }
    match lack(execution, take, context.now) {
        Lack::Reply(outcome) => return Decision::unchanged(execution, Ok(Reply::StartTurn(outcome))),
        Lack::PutOff(start) => return put_off(execution, after, start, context),
        Lack::Nothing => {}
    }
    after.admission = after.admission.and_then(|admission| admission.begun(take.places));
    after.idle_turns = idle_turns + 1;
    after.hinted_at = None;
    after.parked = Parked::No;
    after.state = ExecutionState::Running(Turn {
        lease: take.lease,
        worker: take.worker.clone(),
        claimed_at: context.now,
        lease_length: take.length,
        lease_expires_at: closing::lease_end(&after, take.length, context.now),
        shared: take.isolation.is_shared(),
        after_loss: execution.turn().is_some(),
        outside: take.outside,
        timed_attempts: vec![],
    });
    if execution.turn().is_some() {
        // It may have registered undo steps since its last write.
        after.undoes = true;
        size::note_if_it_fits(&mut after, append::TURN_LOST, context);
    }
    update(execution, after, context, Ok(Reply::StartTurn(StartTurnReply::Started)))
}

/// What an execution lacks to start a turn.
enum Lack {
    Nothing,
    Reply(StartTurnReply),
    /// Its start comes later, and must be recorded.
    PutOff(Reservation),
}

fn lack(execution: &Execution, take: &StartTurn, now: Timestamp) -> Lack {
    let Some(admission) = execution.admission.as_deref() else { return Lack::Nothing };
    match pacing(admission.paced.as_ref(), take.start, now) {
        Pacing::Later(available_at) => Lack::Reply(StartTurnReply::Early { available_at }),
        Pacing::PutOff(start) => Lack::PutOff(start),
        // The places come first: a start would be lost while the execution waits for one.
        Pacing::NeedsStart | Pacing::Ready if admission.lacks_places(take.places, execution.version, now) => {
            Lack::Reply(StartTurnReply::NeedsPlaces)
        }
        Pacing::NeedsStart => Lack::Reply(StartTurnReply::NeedsStart),
        Pacing::Ready => Lack::Nothing,
    }
}

/// Records when its first turn may start. Its deadlines stay: they never move.
fn put_off(
    execution: &Execution,
    mut after: Execution,
    start: Reservation,
    context: &Context<'_>,
) -> Decision {
    if let Some(paced) = after.admission.as_mut().and_then(|admission| admission.paced.as_mut()) {
        paced.put_off(start);
    }
    closing::release_turn(&mut after, start.start_at, context.now);
    let is_sent_later = matches!(&after.state, ExecutionState::Pending(ready) if ready.hint_later);
    // It has a new hint, which goes before others.
    let hint = turn(&after, start.start_at);
    let mut decision = update(execution, after, context, Ok(Reply::StartTurn(StartTurnReply::Stale)));
    decision.effects.extend((!is_sent_later).then_some(hint));
    decision
}

/// Applies the timeouts of the workflow's code if the start request set none, as long as the code hasn't recorded
/// anything. A running execution doesn't get a deadline from a later version of the code.
fn apply_terms(execution: &mut Execution, terms: &CodeTerms) {
    if !execution.takes_terms() {
        return;
    }
    let CodeTerms { timeouts: ExecutionTimeouts { execution: whole, run }, on_failure, attempts } = terms;
    let timeouts = &mut execution.timeouts;
    *timeouts = ExecutionTimeouts { execution: timeouts.execution.or(*whole), run: timeouts.run.or(*run) };
    let started_at = if execution.run == 1 { execution.created_at } else { execution.run_started_at };
    execution.deadline_at = timeouts.execution.map(|timeout| started_at.plus(timeout));
    execution.run_deadline_at = timeouts.run.map(|timeout| execution.run_started_at.plus(timeout));
    execution.on_failure = execution.on_failure.or(*on_failure);
    execution.attempt = execution.attempt.or(attempts.map(RunAttempt::first_of));
}

impl Execution {
    /// Whether what the workflow's code defines still applies: the code hasn't recorded anything.
    pub fn takes_terms(&self) -> bool {
        // Calls from outside may have.
        let is_by_code =
            |entry: &Entry| !matches!(entry.what, Happened::Event { .. } | Happened::Note { .. });
        let has_begun = self.sealed.is_some() || self.journal.iter().any(is_by_code);
        self.run == self.first_run.unwrap_or(1) && !has_begun && self.failing.is_none()
    }

    /// Whether the limits that the code asks for apply: no turn has begun, and the start named none.
    pub fn takes_limits(&self) -> bool {
        self.takes_terms()
            && self.idle_turns == 0
            && self.admission.as_deref().is_none_or(Admission::limits_nothing)
    }
}

/// Its queue is paused: the hint that led to this request is deleted, and resuming the queue sends another one.
fn park(execution: &Execution, context: &Context<'_>) -> Decision {
    let parked = Ok(Reply::StartTurn(StartTurnReply::Parked));
    if !execution.parked.is_no() {
        return Decision::unchanged(execution, parked);
    }
    let mut after = Execution { parked: Parked::Paused, ..execution.clone() };
    super::due::hint_has_come(&mut after, context.now);
    update(execution, after, context, parked)
}

/// Writes the end of a run that this call has found. If that has closed the execution, the reply says so: the caller may
/// end the steps and children that are left open. If another turn follows, such as that of the `on_failure` code, and no
/// hint was sent for it, the message at hand may be its only one, and brings it.
fn settle(execution: &Execution, after: Execution, context: &Context<'_>) -> Decision {
    let mut decision = update(execution, after, context, Ok(Reply::StartTurn(StartTurnReply::Stale)));
    let is_hinted = decision.effects.iter().any(|effect| matches!(effect, Effect::Turn { .. }));
    if let Ok((after, reply)) = &mut decision.outcome {
        *reply = Reply::StartTurn(match &after.state {
            ExecutionState::Closing(_) => StartTurnReply::Closing,
            ExecutionState::Pending(Ready { available_at, hint_later: false }) if !is_hinted => {
                StartTurnReply::Early { available_at: *available_at }
            }
            ExecutionState::Pending(_)
            | ExecutionState::Running(_)
            | ExecutionState::Waiting(_)
            | ExecutionState::Ended(_) => StartTurnReply::Stale,
        });
    }
    decision
}
