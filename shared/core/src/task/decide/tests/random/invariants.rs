//! The invariants of every step.

use super::RandomTask;
use crate::decision::{DueReply, Effect, Write};
use crate::duration::Millis;
use crate::error::Reject;
use crate::parked::Parked;
use crate::record::Record;
use crate::retry::MaxAttempts;
use crate::task::command::{Claim, Command};
use crate::task::decision::{ClaimReply, Decision, Reply};
use crate::task::due::{hint_needed_at, visible_at};
use crate::task::{Outcome, State, Status, Task};
use crate::timeout::TimeoutKind;

impl RandomTask {
    pub(super) fn check_step(&self, before: &Task, command: &Command, decision: &Decision, after: &Task) {
        let revived = decision.reply() == Ok(&Reply::Revived);
        assert_eq!(after.incarnation, before.incarnation);
        if before.ended().is_some() && !revived {
            assert_eq!(after, before, "an ended task changed");
            // A caller that repeats the report or the request may not have received the notification.
            let again =
                matches!(decision.reply(), Ok(Reply::Closed { duplicate: true } | Reply::Scheduled { .. }));
            let word = after.parent.clone().filter(|_| again).map(Effect::NotifyParent);
            let is_of_gate = |effect: &Effect| matches!(effect, Effect::FreePlaces(_));
            let others: Vec<_> =
                decision.effects.iter().filter(|effect| !is_of_gate(effect)).cloned().collect();
            assert_eq!(others, Vec::from_iter(word));
        }
        if revived {
            assert!(!matches!(before.status(), Status::Completed | Status::Skipped));
            assert_eq!((after.attempt, after.deadline_at, after.status()), (0, None, Status::Pending));
        } else {
            let whole = before.timeouts.schedule_to_close.map(|timeout| self.now.plus(timeout.after));
            let is_put_on_hold = matches!(command, Command::Hold | Command::Claim(Claim { held: true, .. }))
                && after.is_held();
            let expected = match (before.is_held(), after.is_held()) {
                (false, true) if is_put_on_hold => None,
                (true, false) if after.ended().is_none() => whole,
                (_, _) => before.deadline_at,
            };
            assert_eq!(after.deadline_at, expected, "the deadline moved");
        }
        if before.details.is_some() && after.status().is_live() {
            let brought = matches!(command, Command::Heartbeat(heartbeat) if heartbeat.details.is_some());
            let kept = after.details == before.details || brought && after.details.is_some();
            assert!(kept, "the next attempt doesn't get the details");
        }
        match after.retry.max_attempts {
            MaxAttempts::Skip => assert_eq!(after.attempt, 0),
            MaxAttempts::Limited(limit) => assert!(after.attempt <= limit.get(), "too many attempts"),
            MaxAttempts::Unlimited => {}
        }
        let ends = before.ended().is_none() && after.ended().is_some();
        let told = decision.effects.iter().any(|effect| matches!(effect, Effect::NotifyParent(_)));
        assert!(!ends || told == after.parent.is_some(), "{:?}", decision.effects);
        self.check_fence(before, command, decision);
        self.check_expiry(before, decision, after);
        self.check_hints(before, command, decision, after);
    }

    /// I7: only the current lease reports on the task, and only a completion completes it.
    fn check_fence(&self, before: &Task, command: &Command, decision: &Decision) {
        let lease = match command {
            Command::Heartbeat(heartbeat) => heartbeat.lease,
            Command::Complete(complete) => complete.lease,
            Command::Fail(fail) => fail.lease,
            Command::Release { lease } => *lease,
            Command::Schedule(_)
            | Command::Bounce(_)
            | Command::Claim(_)
            | Command::Cancel { .. }
            | Command::Retry(_)
            | Command::Hold
            | Command::Unpark
            | Command::WaitInLine { .. }
            | Command::Timer { .. }
            | Command::Due(_) => {
                let after = decision.record().map(Task::status);
                assert!(before.status() == Status::Completed || after != Some(Status::Completed));
                return;
            }
        };
        let holds = before.running().is_some_and(|running| running.lease == lease);
        match decision.reply() {
            Ok(Reply::Extended | Reply::Closed { duplicate: false }) => assert!(holds, "a stale lease wrote"),
            Ok(Reply::Closed { duplicate: true }) => {
                assert!(before.past_attempt(&lease).is_some(), "a repetition without a first call");
                assert_eq!(decision.writes, []);
            }
            Ok(other) => panic!("not an answer to a worker: {other:?}"),
            // The record has no space for the details.
            Err(Reject::LimitExceeded { limit: "details", .. }) => {
                assert!(holds && matches!(command, Command::Heartbeat(_)));
                assert_eq!(decision.writes, []);
            }
            Err(Reject::DeadlineExceeded { .. } | Reject::LeaseLost | Reject::AlreadyTerminal { .. }) => {
                let time_is_left = visible_at(before).is_none_or(|at| at > self.now);
                assert!(!(holds && time_is_left), "the current lease was refused: {:?}", decision.reply());
            }
            Err(other) => panic!("not a refusal of a worker: {other:?}"),
        }
    }

    /// I5: before its instant no timeout expires; from that instant on, no other report succeeds.
    fn check_expiry(&self, before: &Task, decision: &Decision, after: &Task) {
        let expired = visible_at(before).is_some_and(|at| at <= self.now);
        let revived = decision.reply() == Ok(&Reply::Revived);
        if expired {
            match decision.reply() {
                Ok(Reply::Extended | Reply::Closed { duplicate: false }) => panic!("accepted too late"),
                Ok(Reply::Claim(ClaimReply::Claimed)) => assert_eq!(updates(decision), 1),
                _ => {}
            }
            let ended_or_moved_on = after.state != before.state || decision.writes.is_empty() || revived;
            let is_on_hold = after.parked.is_paused() && visible_at(after).is_none();
            assert!(ended_or_moved_on || is_on_hold, "a write instead of an expiry");
        } else if !revived && before.status().is_live() {
            let doomed = |kind| kind == TimeoutKind::ScheduleToClose && before.running().is_some();
            let kind = after.ended().and_then(|ended| match &ended.outcome {
                Outcome::TimedOut { kind, .. } | Outcome::Cancelled { timeout: Some(kind) } => Some(*kind),
                Outcome::Completed { .. }
                | Outcome::Failed { .. }
                | Outcome::Cancelled { timeout: None }
                | Outcome::Skipped => None,
            });
            assert!(kind.is_none_or(doomed), "expired too early: {kind:?}");
        }
    }

    /// I4 and I9: every hint has a backstop, and hints are only sent if one is missing.
    fn check_hints(&self, before: &Task, command: &Command, decision: &Decision, after: &Task) {
        let by_tick = matches!(command, Command::Due(_) | Command::Timer { .. } | Command::Hold);
        let hints = hints(decision);
        if let (State::Pending(pending), Some(due), false) = (&after.state, after.due, by_tick) {
            let limits = &self.plan.limits;
            // Resuming its queue sends the hint of a parked one, or whoever gives it a place. The tick only acts if that
            // fails.
            let backstop = match after.parked {
                Parked::No => hint_needed_at(after).unwrap().plus(limits.backstop),
                Parked::Paused => self.now.plus(limits.backstop_max),
                Parked::InLine(_) => self.now.plus(Millis::from_days(5)),
            };
            let written = !decision.writes.is_empty();
            assert!(!written || due.at <= backstop, "no backstop for {pending:?}");
        }
        let extended = decision.writes.iter().any(|write| matches!(write, Write::Extend { .. }));
        // The tick sends the hint of a later start, also of a task that has just been put on hold.
        let has_hint_now =
            matches!((command, &after.state), (Command::Hold, State::Pending(wait)) if wait.hint_later);
        if by_tick && !extended && !has_hint_now && !decision.writes.is_empty() {
            assert!(after.due.is_none_or(|due| due.at > self.now), "the tick would find it again at once");
        }
        let is_put_on_hold = matches!(command, Command::Hold) && after.parked.is_paused();
        if by_tick && hints.is_empty() && after.state == before.state && !extended && !is_put_on_hold {
            assert_eq!(after.version, before.version, "moving the due slot made hints stale");
        }
        let is_of_gate =
            |effect: &&Effect| matches!(effect, Effect::FreePlaces(_) | Effect::CameToLine { .. });
        let of_gates = decision.effects.iter().filter(is_of_gate).count();
        assert!(hints.len() <= 1 && of_gates <= 1, "{:?}", decision.effects);
        assert!(decision.effects.len() <= hints.len() + of_gates + 1, "{:?}", decision.effects);
        if !hints.is_empty() {
            assert!(after.status().is_live());
        }
        // The caller deletes a message that is spent, and it may have been the only one.
        if let (Command::Claim(claim), State::Pending(pending)) = (command, &after.state)
            && decision.reply() == Ok(&Reply::Claim(ClaimReply::Stale))
            && claim.hint.is_some_and(|hint| {
                hint.incarnation == after.incarnation && hint.version >= pending.since_version
            })
        {
            assert!(
                hints.len() == 1 || pending.hint_later || !after.parked.is_no(),
                "nothing brings {after:#?}"
            );
        }
        let is_again =
            decision.reply() == Ok(&Reply::Due(DueReply::Dispatched)) && before.state == after.state;
        if is_again && before.parked.is_no() {
            let needed_at = match &before.state {
                State::Pending(pending) => pending.unread_since.unwrap_or(pending.available_at),
                State::Running(running) => running.lease_expires_at,
                State::Ended(ended) => ended.ended_at,
            };
            let needed_at = needed_at.max(before.hinted_at.unwrap_or(needed_at));
            assert!(needed_at.plus(self.plan.limits.backstop) <= self.now, "sent again too soon");
        }
    }
}

/// How many times the record itself is written.
fn updates(decision: &Decision) -> usize {
    decision
        .writes
        .iter()
        .filter(|write| matches!(write, Write::Put { before: Some(Record::Task(_)), .. }))
        .count()
}

fn hints(decision: &Decision) -> Vec<&Effect> {
    decision.effects.iter().filter(|effect| matches!(effect, Effect::Dispatch { .. })).collect()
}

/// I10: a call repeated after its write has no further effect, and succeeds if it succeeded before.
pub(super) fn check_repetition(command: &Command, first: &Decision, again: &Decision) {
    match command {
        Command::Schedule(_)
        | Command::Claim(_)
        | Command::Complete(_)
        | Command::Fail(_)
        | Command::Release { .. }
        | Command::Cancel { .. } => {
            assert_eq!(again.writes, []);
            assert_eq!(again.outcome.is_ok(), first.outcome.is_ok(), "{:?}", again.outcome);
            if first.reply() == Ok(&Reply::Claim(ClaimReply::Claimed)) {
                assert_eq!(again.outcome, first.outcome);
            }
        }
        Command::Heartbeat(_) => {
            // The reason of the refusal may change, because the record drops its oldest attempts.
            assert_eq!(again.outcome.is_ok(), first.outcome.is_ok(), "{:?}", again.outcome);
            let states = [first, again].map(|decision| decision.record().map(|task| &task.state));
            assert_eq!(states[0], states[1]);
        }
        Command::Retry(_) | Command::Unpark | Command::Hold | Command::WaitInLine { .. } => {
            assert_eq!(again.writes, []);
        }
        Command::Bounce(_) => assert_eq!(again.outcome.is_ok(), first.outcome.is_ok()),
        Command::Due(_) => {
            assert!(hints(first).is_empty() || hints(again).is_empty(), "one tick sent two hints");
        }
        Command::Timer { .. } => {
            let timed_out = first.reply() == Ok(&Reply::Due(DueReply::TimedOut));
            assert!(!timed_out || again.outcome != first.outcome, "timed out twice");
        }
    }
}
