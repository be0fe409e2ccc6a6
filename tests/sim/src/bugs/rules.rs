//! Bugs in decisions.

use futures::FutureExt as _;
use tickover_core::batch::BatchKey;
use tickover_core::command::{Context, Isolation};
use tickover_core::decision::{Condition, DueReply, Effect, Write};
use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::gate::rate::Reservation;
use tickover_core::payload::Payload;
use tickover_core::record::Record;
use tickover_core::task::command::{Claim, Command, Complete, Fail, Heartbeat, SignOfLife};
use tickover_core::task::decision::{ClaimReply, Decision, Reply};
use tickover_core::task::hint::Hint;
use tickover_core::task::{Ended, Failure, Outcome, State, Task};
use tickover_core::timeout::TimeoutKind;
use tickover_service::ports::{Outgoing, Queue as _};

use super::Bug;
use crate::hardship::Span;
use crate::history::{Actor, Fate, Note, What};
use crate::world::World;

/// As the core's, with the bug of this run.
pub fn batch_key(bug: Option<Bug>, task: &Task) -> BatchKey {
    let key = task.batch_key();
    if bug == Some(Bug::BatchOfAnyTenant) { BatchKey { tenant: None, ..key } } else { key }
}

/// The core's decision, or the decision with the bug of this run.
pub fn decide(
    world: &World,
    actor: Actor,
    task: Option<&Task>,
    command: &Command,
    context: &Context<'_>,
) -> Decision {
    let core = |command: &Command, context: &Context<'_>| tickover_core::task::decide(task, command, context);
    let Some(bug) = world.bug else { return core(command, context) };
    if bug == Bug::HintBeforeCommit {
        return hint_before_commit(world, actor, core(command, context));
    }
    // Only a timer's probe sends a timer again; all other commands send it for the first time.
    let without = if is_timers_look(command) { Bug::TimerNotSentAgain } else { Bug::TimerNotSent };
    if bug == without {
        return without_timers(core(command, context));
    }
    if let Some(decision) = super::single::decide_single(bug, task, command, context) {
        return decision;
    }
    let Some(task) = task else { return core(command, context) };
    let crossed = || super::crossings::on_a_task(bug, task, command, context);
    if let Some(decision) = super::gates::on_a_task(bug, task, command, context).or_else(crossed) {
        return decision;
    }
    on_a_task(world, bug, &Before { task, command, context })
}

/// The decision on an existing task, with a bug.
#[expect(clippy::too_many_lines, reason = "a line for each bug")]
fn on_a_task(world: &World, bug: Bug, before: &Before<'_>) -> Decision {
    let Before { task, command, context } = *before;
    let core =
        |command: &Command, context: &Context<'_>| tickover_core::task::decide(Some(task), command, context);
    match bug {
        Bug::TimeoutsInPauses if matches!(command, Command::Hold) => {
            Decision::unchanged(task, Ok(Reply::Due(DueReply::Nothing)))
        }
        Bug::FenceNotCompared => core(&before.with_the_holders_lease(), context),
        Bug::HintWithoutIncarnation => core(&before.with_this_incarnation(), context),
        Bug::AfterInsteadOfAt => core(command, &before.just_before()),
        Bug::RetryWithoutDue => before.retry_without_due(core(command, context)),
        Bug::ExpiryIgnoresStatus => before.expire_the_ended(core(command, context)),
        Bug::HeartbeatMovesDeadline => before.move_deadline(core(command, context)),
        Bug::WorkerSpeaksForWork => core(&before.of_worker_and_work(), context),
        Bug::DeadlinePerAttempt => before.renew_deadline(core(command, context)),
        Bug::HintAtEveryProbe => before.hint_at_every_probe(core(command, context)),
        Bug::ClaimKeepsItsSlot => before.keep_due_slot(core(command, context)),
        Bug::TimerTooEarly => core(command, &before.a_moment_later()),
        Bug::ResultInRecord => before.inline_result(core(command, context)),
        Bug::LaterResultReplaces => before.replace_result(core(command, context)),
        Bug::TickNeedsQueues if before.is_look() && world.is_within(queues_away(world)) => {
            Decision::refuse(Some(task), Reject::NotFound)
        }
        Bug::LossesShared => core(&before.alone(), context),
        Bug::LateStartCounts => core(&before.with_any_start(), context),
        Bug::TickNeedsQueues
        | Bug::LateReportCounts
        | Bug::CallsCut
        | Bug::EventIdsPerRun
        | Bug::ReportsNotKept
        | Bug::NewKeyForSameWork
        | Bug::DriftEnds
        | Bug::ChildrenLeftBehind
        | Bug::LateResultRefused
        | Bug::OldOutcomeCounts
        | Bug::SiblingsLeftEnded
        | Bug::OthersTurnUnseen
        | Bug::OpenRunsForgotten
        | Bug::EndOfRunNotTold
        | Bug::RunTakenForStarted
        | Bug::HeldHintForgotten
        | Bug::SleepNeverProbed
        | Bug::SleeperOfAnother
        | Bug::TurnLossesShared
        | Bug::ClosedBeforehand
        | Bug::ReceivesTooFew
        | Bug::SlotsRecordedFirst
        | Bug::SweepStopsAtAPage
        | Bug::ListOnOneKey
        | Bug::NeverKeptLonger
        | Bug::LoopsNotAllowed
        | Bug::MessagesNotDeleted
        | Bug::ThrottledTakenForDone
        | Bug::SweepsFromTheLast
        | Bug::ClockNotCorrected
        | Bug::OlderBuildReadsOn
        | Bug::SealedResultUnseen
        | Bug::PageNotedFirst
        | Bug::EndedLaterRetried
        | Bug::OperationNotDue
        | Bug::StopIgnored
        | Bug::TakenUnchecked
        | Bug::PlacesFreedTwice
        | Bug::PlacesOfAnyVersion
        | Bug::BegunWithoutPlace
        | Bug::TwoCalledForOne
        | Bug::PlacesNotCleared
        | Bug::NobodyCalled
        | Bug::HeldWhileWaiting
        | Bug::ItemNotWritten
        | Bug::StandInNotWritten
        | Bug::TaskNotHinted
        | Bug::StartNotHinted
        | Bug::BatchOfAnyTenant
        | Bug::LowNeverAsked
        | Bug::EndedPlaceNotOffered
        | Bug::LostNotCalled
        | Bug::PutOffInNormalLane
        | Bug::HandlerNotHinted
        | Bug::FirstEventForgotten
        | Bug::ValuesNotWritten
        | Bug::OldInputRuns
        | Bug::GivenUpAfterFreeze
        | Bug::KeyTakenUnchecked
        | Bug::LateTaskNotFenced
        | Bug::LateExecutionNotFenced
        | Bug::FirstStartOfBurstRuns
        | Bug::FirstOfBurstRuns
        | Bug::BurstUnbounded
        | Bug::StartsForgotten
        | Bug::StartWithoutCondition
        | Bug::ItemsKeptForEver
        | Bug::ClaimedTurnsNotRecorded
        | Bug::SuspendIgnoresWakes
        | Bug::JoinNeverFull
        | Bug::ParentNotNotified
        | Bug::RecordNotFenced
        | Bug::CloseNotFenced
        | Bug::DeadlinePerRun
        | Bug::SuspendKeepsItsSlot
        | Bug::WaitingNeverTimesOut
        | Bug::EventNotTaken
        | Bug::EventIdsForgotten
        | Bug::EventsLeftBehind
        | Bug::ClosesAtOnce
        | Bug::PauseIgnored
        | Bug::CancelUndoesNothing
        | Bug::TimeoutsInPauses
        | Bug::ExpiryAfterTheEnd
        | Bug::JournalNeverSealed
        | Bug::NoVersionCondition
        | Bug::NoNonce
        | Bug::RearmWithoutCondition
        | Bug::ConflictTakenForSuccess
        | Bug::HintBeforeCommit
        | Bug::TimerNotSent
        | Bug::TimerNotSentAgain
        | Bug::SlotsNotRecorded
        | Bug::SlotsRecordedTooFar => core(command, context),
    }
}

/// The span in which no queue answers.
fn queues_away(world: &World) -> Option<Span> {
    world.hardship.queues_away.or(world.hardship.queue_removed)
}

/// The input of a decision.
struct Before<'a> {
    task: &'a Task,
    command: &'a Command,
    context: &'a Context<'a>,
}

impl<'a> Before<'a> {
    const fn is_look(&self) -> bool {
        matches!(self.command, Command::Due(_))
    }

    /// A claim for which the start in the record counts, however long ago that was.
    fn with_any_start(&self) -> Command {
        let now = self.context.now;
        let passed = self.task.reserved().filter(|start| start.start_at < now);
        match (self.command, passed) {
            (Command::Claim(claim), Some(passed)) => {
                let start = Some(Reservation { start_at: now, ..passed });
                Command::Claim(Claim { start, ..claim.clone() })
            }
            (other, _) => other.clone(),
        }
    }

    fn alone(&self) -> Command {
        match self.command {
            Command::Claim(claim) => Command::Claim(Claim { isolation: Isolation::Alone, ..claim.clone() }),
            other => other.clone(),
        }
    }

    fn of_worker_and_work(&self) -> Command {
        match self.command {
            Command::Heartbeat(heartbeat) if heartbeat.sign_of == SignOfLife::Worker => {
                Command::Heartbeat(Heartbeat { sign_of: SignOfLife::Both, ..heartbeat.clone() })
            }
            other => other.clone(),
        }
    }

    fn with_the_holders_lease(&self) -> Command {
        let Some(running) = self.task.running() else { return self.command.clone() };
        match self.command {
            Command::Complete(complete) => {
                Command::Complete(Complete { lease: running.lease, ..complete.clone() })
            }
            Command::Fail(fail) => Command::Fail(Fail { lease: running.lease, ..fail.clone() }),
            other => other.clone(),
        }
    }

    fn with_this_incarnation(&self) -> Command {
        match self.command {
            Command::Claim(claim) => {
                let mut claim: Claim = claim.clone();
                if let Some(hint) = &mut claim.hint {
                    hint.incarnation = self.task.incarnation;
                }
                Command::Claim(claim)
            }
            other => other.clone(),
        }
    }

    /// The time; at exactly a deadline or timeout, one millisecond earlier.
    fn just_before(&self) -> Context<'a> {
        let [start, heartbeat, close] = match &self.task.state {
            State::Pending(pending) => [pending.schedule_to_start_at, None, None],
            State::Running(running) => [None, running.heartbeat_at, running.start_to_close_at],
            State::Ended(_) => [None; 3],
        };
        let is_now = [self.task.deadline_at, start, heartbeat, close].contains(&Some(self.context.now));
        // A timer that was too early would be sent again for the same instant, for ever.
        let early = if is_now && !is_timers_look(self.command) { Millis::new(1) } else { Millis::ZERO };
        Context { now: self.context.now.minus(early), ..*self.context }
    }

    fn a_moment_later(&self) -> Context<'a> {
        let early = if is_timers_look(self.command) { Millis::from_secs(1) } else { Millis::ZERO };
        Context { now: self.context.now.plus(early), ..*self.context }
    }

    fn retry_without_due(&self, decision: Decision) -> Decision {
        let is_retry = matches!(self.command, Command::Fail(_));
        edited(decision, |after| {
            if is_retry {
                after.due = None;
            }
        })
    }

    fn expire_the_ended(&self, decision: Decision) -> Decision {
        let passed = self.task.deadline_at.is_some_and(|deadline| deadline <= self.context.now);
        let is_completed = self.task.status() == tickover_core::task::Status::Completed;
        let looks = matches!(self.command, Command::Due(_) | Command::Timer { .. });
        if !looks || !passed || !is_completed {
            return decision;
        }
        let error = Failure::new("timed_out", "the task's deadline passed");
        let outcome = Outcome::TimedOut { kind: TimeoutKind::ScheduleToClose, error };
        self.rewritten(outcome, Reply::Due(DueReply::TimedOut))
    }

    fn replace_result(&self, decision: Decision) -> Decision {
        match (self.command, decision.reply()) {
            (Command::Complete(complete), Ok(Reply::Closed { duplicate: true })) => {
                let output = complete.output.clone().map(Payload::Inline);
                self.rewritten(Outcome::Completed { output }, Reply::Closed { duplicate: true })
            }
            _ => decision,
        }
    }

    /// The decision to give an ended task another outcome.
    fn rewritten(&self, outcome: Outcome, reply: Reply) -> Decision {
        let mut after = self.task.clone();
        after.version += 1;
        after.nonce = self.context.nonce;
        if let State::Ended(ended) = &self.task.state {
            after.state = State::Ended(Ended { outcome, ..ended.clone() });
        }
        let write = Write::replace(self.task.clone(), after.clone(), Condition::UNCHANGED);
        Decision { writes: vec![write], ..Decision::of(after, Ok(reply)) }
    }

    fn move_deadline(&self, decision: Decision) -> Decision {
        let renewed = decision.reply() == Ok(&Reply::Extended);
        self.with_fresh_deadline(decision, renewed)
    }

    fn renew_deadline(&self, decision: Decision) -> Decision {
        let claimed = decision.reply() == Ok(&Reply::Claim(ClaimReply::Claimed));
        self.with_fresh_deadline(decision, claimed)
    }

    fn with_fresh_deadline(&self, decision: Decision, applies: bool) -> Decision {
        let now = self.context.now;
        edited(decision, |after| {
            if let Some(whole) = after.timeouts.schedule_to_close.filter(|_| applies) {
                after.deadline_at = Some(now.plus(whole.after));
            }
        })
    }

    fn hint_at_every_probe(&self, mut decision: Decision) -> Decision {
        let looked = decision.reply() == Ok(&Reply::Due(DueReply::Rearmed));
        if let Some(task) = decision.record().filter(|_| looked) {
            let hint = Box::new(Hint::of(task));
            decision.effects.push(Effect::Dispatch { hint, at: self.context.now });
        }
        decision
    }

    fn keep_due_slot(&self, mut decision: Decision) -> Decision {
        let claimed = decision.reply() == Ok(&Reply::Claim(ClaimReply::Claimed));
        if claimed {
            for write in &mut decision.writes {
                if let Write::Put { condition: Condition::Unchanged { due_no_later_than, .. }, .. } = write {
                    *due_no_later_than = None;
                }
            }
        }
        edited(decision, |after| {
            if claimed {
                after.due = self.task.due;
            }
        })
    }

    fn inline_result(&self, mut decision: Decision) -> Decision {
        let Command::Complete(complete) = self.command else { return decision };
        decision.new_items.clear();
        let output = complete.output.clone().map(Payload::Inline);
        edited(decision, |after| {
            if let State::Ended(Ended { outcome: Outcome::Completed { output: stored }, .. }) =
                &mut after.state
            {
                stored.clone_from(&output);
            }
        })
    }
}

/// The same decision with a changed record.
pub(super) fn edited(mut decision: Decision, edit: impl Fn(&mut Task)) -> Decision {
    decision.record_mut().into_iter().for_each(&edit);
    for write in &mut decision.writes {
        if let Write::Put { before: Some(_), after: Record::Task(after), .. } = write {
            edit(after);
        }
    }
    decision
}

fn is_timers_look(command: &Command) -> bool {
    matches!(command, Command::Timer { .. })
}

fn without_timers(mut decision: Decision) -> Decision {
    decision.effects.retain(|effect| match effect {
        Effect::Timer(_) => false,
        Effect::Dispatch { .. }
        | Effect::Turn { .. }
        | Effect::NotifyParent(_)
        | Effect::CameToLine { .. }
        | Effect::FreePlaces(_) => true,
    });
    decision
}

/// Sends the hints at once, before the commit.
fn hint_before_commit(world: &World, actor: Actor, mut decision: Decision) -> Decision {
    for effect in std::mem::take(&mut decision.effects) {
        let (hint, at) = match effect {
            Effect::Dispatch { hint, at } => (hint, at),
            Effect::Timer(_)
            | Effect::Turn { .. }
            | Effect::NotifyParent(_)
            | Effect::CameToLine { .. }
            | Effect::FreePlaces(_) => {
                decision.effects.push(effect);
                continue;
            }
        };
        let queue = hint.task.queue.clone();
        let lane = hint.task.lane();
        let Ok(body) = hint.body() else { continue };
        let delay = at.since(world.now());
        let note = Note::of(&body);
        let sent = world.messages.send(&queue, &[Outgoing { body, delay, lane }]).now_or_never();
        if sent.is_some_and(|sent| sent.is_ok()) {
            world.note(actor, What::Message { queue, fate: Fate::Sent(delay), note });
        }
    }
    decision
}
