//! What must hold for every step, whatever came before.

use crate::command::Context;
use crate::decision::{DueReply, Effect};
use crate::duration::Millis;
use crate::error::Reject;
use crate::execution::command::{Close, Command, Ending};
use crate::execution::decision::{Decision, Reply, StartTurnReply, SuspendReply};
use crate::execution::due::{deadline_at, handed_over_at, hint_arrives_at, hint_needed_at, visible_at};
use crate::execution::journal::Happened;
use crate::execution::{Execution, ExecutionState, ExecutionStatus as Status, Ready};
use crate::id::LeaseId;
use crate::time::Timestamp;

#[track_caller]
pub(super) fn check(
    before: &Execution,
    command: &Command,
    decision: &Decision,
    after: &Execution,
    context: &Context<'_>,
) {
    assert_eq!(
        (&after.id, after.incarnation, after.created_at),
        (&before.id, before.incarnation, before.created_at)
    );
    check_outcome(before, command, decision, after);
    check_fence(before, command, decision, context);
    check_expiry(before, command, decision, after, context);
    check_deadlines(before, command, decision, after, context);
    check_turns(before, decision, after, context);
    check_hints(before, command, decision, after, context);
}

/// I6: an outcome never changes, except by an operator's call.
#[track_caller]
fn check_outcome(before: &Execution, command: &Command, decision: &Decision, after: &Execution) {
    let by_operator = matches!(command, Command::Restart(_) | Command::RetryStep { .. })
        && decision.reply() == Ok(&Reply::Changed { changed: true });
    let Some(closed) = before.closed() else { return };
    if by_operator {
        assert!(matches!(before.state, ExecutionState::Ended(_)) && after.closed().is_none());
        return;
    }
    let now = after.closed().unwrap();
    assert_eq!((now.outcome.status(), now.ended_at), (closed.outcome.status(), closed.ended_at));
    assert_eq!(now.expires_at, closed.expires_at);
    if matches!(before.state, ExecutionState::Ended(_)) {
        assert_eq!(after, before, "an execution that has ended changed");
    }
}

/// I7: only the worker with the turn's lease writes.
#[track_caller]
fn check_fence(before: &Execution, command: &Command, decision: &Decision, context: &Context<'_>) {
    let lease: LeaseId = match command {
        Command::Record(record) => record.lease,
        Command::Suspend(suspend) => suspend.lease,
        Command::Close(close) => close.lease,
        Command::Heartbeat { lease, .. } | Command::Release { lease, .. } => *lease,
        _ => return,
    };
    let holds = before.turn().is_some_and(|turn| turn.lease == lease);
    match decision.reply() {
        Ok(_) => assert!(holds, "a stale lease wrote"),
        Err(Reject::TurnLost) => {
            let time_is_left = deadline_at(before).is_none_or(|at| at > context.now);
            // A turn that would continue as new without all pending events is refused, so that the next turn brings
            // them.
            assert!(drops_events(before, command) || !(holds && time_is_left), "the owner was refused");
        }
        Err(Reject::LimitExceeded { .. }) => {
            assert!(holds && !matches!(command, Command::Close(_)));
            assert!(decision.writes.is_empty());
        }
        Err(other) => panic!("not a refusal of a worker: {other:?}"),
    }
}

/// Whether a next run would start without some of the pending events.
fn drops_events(before: &Execution, command: &Command) -> bool {
    let Command::Close(Close { ending: Ending::ContinueAsNew { carried: events, .. }, .. }) = command else {
        return false;
    };
    u32::try_from(events.len()) != Ok(before.pending_events)
        && !before.cancel_requested
        && before.failing.is_none()
}

/// I5: nothing expires before its instant, and nothing else succeeds from it on.
#[track_caller]
fn check_expiry(
    before: &Execution,
    command: &Command,
    decision: &Decision,
    after: &Execution,
    context: &Context<'_>,
) {
    let expired = deadline_at(before).is_some_and(|at| at <= context.now);
    if expired {
        let accepted = matches!(
            decision.reply(),
            Ok(Reply::Recorded
                | Reply::Renewed
                | Reply::Released
                | Reply::Suspended(_)
                | Reply::Closed { .. }
                | Reply::StartTurn(StartTurnReply::Started))
        );
        assert!(!accepted, "too late, and accepted: {:?}", decision.reply());
        // The execution has ended, or its `on_failure` code is next.
        let settled = after.closed().is_some() || (before.failing.is_none() && after.failing.is_some());
        let asks_nothing_of_it =
            matches!(command, Command::Start(_) | Command::Finish(_) | Command::Restart(_));
        assert!(settled || (asks_nothing_of_it && decision.writes.is_empty()), "not recorded: {after:#?}");
    } else if let (Command::Due(_) | Command::Timer { .. }, Some(_)) =
        (command, visible_at(before).filter(|at| *at <= context.now))
    {
        // An attempt has timed out: no worker has the turn any more.
        assert!(after.turn().is_none() && after.closed().is_none(), "a timed out attempt goes on");
    } else if before.closed().is_none() && before.failing.is_none() {
        // The deadline may have come with the request for a turn.
        let mut deadlines = [after.deadline_at, after.run_deadline_at].into_iter().flatten();
        let is_over = matches!(command, Command::StartTurn(_)) && deadlines.any(|at| at <= context.now);
        assert!(after.status() != Status::TimedOut || is_over, "expired too early");
    }
}

/// D1: the deadline of all runs doesn't change, nor does a run's within that run. A deadline from the workflow's code
/// may come with a turn, as long as the code has recorded nothing.
#[track_caller]
fn check_deadlines(
    before: &Execution,
    command: &Command,
    decision: &Decision,
    after: &Execution,
    context: &Context<'_>,
) {
    let restarted = matches!(command, Command::Restart(_)) && after.run > before.run;
    let has_begun = before.sealed.is_some()
        || before
            .journal
            .iter()
            .any(|entry| !matches!(entry.what, Happened::Event { .. } | Happened::Note { .. }));
    let may_come =
        matches!(command, Command::StartTurn(_)) && before.run == before.first_run.unwrap_or(1) && !has_begun;
    let started_at = if before.run == 1 { before.created_at } else { before.run_started_at };
    let check =
        |what: &str, was: Option<Timestamp>, is: Option<Timestamp>, from: Timestamp, span: Option<Millis>| {
            let came = may_come && was.is_none() && is == span.map(|span| from.plus(span));
            assert!(is == was || came, "{what} deadline moved from {was:?} to {is:?}");
        };
    let timeouts = after.timeouts;
    if restarted {
        assert_eq!(after.deadline_at, timeouts.execution.map(|span| context.now.plus(span)));
    } else {
        check("the", before.deadline_at, after.deadline_at, started_at, timeouts.execution);
    }
    if decision.reply() == Ok(&Reply::Bounced { taken: true }) {
        // The last request of a burst has a run of its own.
        let from = after.run_started_at;
        assert_eq!(after.run_deadline_at, timeouts.run.map(|span| from.plus(span)));
    } else if after.run == before.run {
        let from = before.run_started_at;
        check("the run's", before.run_deadline_at, after.run_deadline_at, from, timeouts.run);
    }
}

/// Turns that record nothing are counted, and a suspended execution has seen every wake.
#[track_caller]
fn check_turns(before: &Execution, decision: &Decision, after: &Execution, context: &Context<'_>) {
    assert!(after.idle_turns <= context.limits.idle_turns.max(before.idle_turns));
    match decision.reply() {
        Ok(Reply::StartTurn(StartTurnReply::Started)) => {
            let turn = after.turn().unwrap();
            assert!(deadline_at(after).is_none_or(|at| turn.lease_expires_at <= at));
            assert!(!before.needs_operator() || before.turn() == Some(turn), "a turn without the operator");
        }
        Ok(Reply::Suspended(SuspendReply::Suspended)) => {
            let ExecutionState::Waiting(waiting) = &after.state else { panic!("{after:#?}") };
            assert_eq!(waiting.seen_wakes, after.wakes, "suspended without seeing a wake");
        }
        Ok(Reply::Suspended(SuspendReply::GoOn)) => assert!(after.turn().is_some()),
        Ok(_) | Err(_) => {}
    }
}

/// I4 and I9: every hint has a backstop, and a hint is only sent if one is missing.
#[track_caller]
fn check_hints(
    before: &Execution,
    command: &Command,
    decision: &Decision,
    after: &Execution,
    context: &Context<'_>,
) {
    let by_tick = matches!(command, Command::Due(_) | Command::Timer { .. });
    let hints = decision.effects.iter().filter(|effect| matches!(effect, Effect::Turn { .. })).count();
    let is_of_gate = |effect: &&Effect| matches!(effect, Effect::FreePlaces(_) | Effect::CameToLine { .. });
    let of_gates = decision.effects.iter().filter(is_of_gate).count();
    assert!(hints <= 1 && of_gates <= 1, "{:?}", decision.effects);
    assert!(decision.effects.len() <= hints + of_gates + 1, "{:?}", decision.effects);
    if hints > 0 {
        // What was parked may be the turn of a lost worker.
        let may_be_leased = by_tick || matches!(command, Command::Unpark);
        assert!(!matches!(after.state, ExecutionState::Ended(_)) && after.turn().is_none() || may_be_leased);
        assert!(!after.needs_operator(), "a hint that cannot start a turn");
    }
    // The caller deletes a message that is spent, and it may have been the only one.
    if let (Command::StartTurn(take), Ok(Reply::StartTurn(StartTurnReply::Stale))) =
        (command, decision.reply())
        && take.incarnation.is_none_or(|incarnation| incarnation == after.incarnation)
        && let ExecutionState::Pending(Ready { hint_later: false, .. }) = after.state
    {
        assert!(hints == 1 || after.needs_operator(), "nothing brings the turn of {after:#?}");
    }
    // A parked one has no hint under way: what ends that sends one.
    let arrives = hint_arrives_at(after).filter(|_| after.parked.is_no());
    if let (Some(at), false) = (arrives, decision.writes.is_empty()) {
        let was = hint_arrives_at(before).filter(|_| before.parked.is_no()).or(handed_over_at(before));
        assert!(hints == 1 || was.is_some_and(|was| was <= at), "no hint for {after:#?}");
        let backstop = hint_needed_at(after).unwrap().plus(context.limits.backstop);
        assert!(by_tick || after.due.unwrap().at <= backstop, "no backstop for {after:#?}");
    }
    if by_tick && !decision.writes.is_empty() {
        assert!(after.due.is_none_or(|due| due.at > context.now), "the tick would find it again at once");
    }
    if decision.reply() == Ok(&Reply::Due(DueReply::Rearmed)) && after.due.is_some() {
        // The first probe of a long sleep also notes that a tick has sent its hint.
        let is_kept = after.version == before.version || handed_over_at(before).is_some();
        assert!(is_kept, "re-arming bumped the version");
    }
}
