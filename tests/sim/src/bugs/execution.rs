//! Bugs in decisions about executions.

use tickover_core::command::{Context, Isolation};
use tickover_core::decision::{Condition, Effect, NewItem, Write};
use tickover_core::duration::Millis;
use tickover_core::error::{Reject, TakenBy};
use tickover_core::execution::command::{Close, Command, Record, SendEvent, StartTurn, Suspend};
use tickover_core::execution::decide;
use tickover_core::execution::decision::{Decision, Reply, SuspendReply};
use tickover_core::execution::journal::{Entry, Happened};
use tickover_core::execution::{Closed, DeadlineKind, Execution, ExecutionOutcome, ExecutionState, Progress};
use tickover_core::gate::Places;
use tickover_core::queue::QueueView;
use tickover_core::record;
use tickover_core::time::Timestamp;

use super::Bug;
use crate::world::World;

/// The core's decision, or the decision with the bug of this run.
#[expect(clippy::too_many_lines, reason = "a line for each bug")]
pub fn decide_execution(
    world: &World,
    execution: Option<&Execution>,
    command: &Command,
    context: &Context<'_>,
) -> Decision {
    let core = |command: &Command, context: &Context<'_>| decide(execution, command, context);
    if let (Some(Bug::LateExecutionNotFenced), Command::Start(start)) = (world.bug, command)
        && start.is_fence
    {
        return Decision::refuse(
            execution,
            Reject::IdConflict { by: TakenBy::Execution, since: context.now },
        );
    }
    let crossed = |bug: Bug| super::crossings::on_an_execution(bug, execution, command, context);
    if let Some(decision) = world.bug.and_then(crossed) {
        return decision;
    }
    let (Some(bug), Some(execution)) = (world.bug, execution) else { return core(command, context) };
    let before = Before { execution, command, context };
    match bug {
        Bug::SuspendIgnoresWakes => before.without_seen_wakes(core(&before.with_all_wakes(), context)),
        Bug::ParentNotNotified => without_notifications(core(command, context)),
        Bug::RecordNotFenced | Bug::CloseNotFenced => core(&before.with_the_holders_lease(bug), context),
        Bug::DeadlinePerRun => before.with_fresh_deadline(core(command, context)),
        Bug::SuspendKeepsItsSlot => before.keep_due_slot(core(command, context)),
        Bug::WaitingNeverTimesOut => core(command, &before.before_its_deadline()),
        Bug::EventNotTaken => core(&before.without_taken_events(), context),
        Bug::EventIdsForgotten => before.send_as_new_event(core(command, context)),
        Bug::EventsLeftBehind => before.leave_events_behind(core(command, context)),
        Bug::ClosesAtOnce => edited(core(command, context), close_at_once),
        Bug::PauseIgnored => before.take_unpaused(),
        Bug::CancelUndoesNothing => before.cancel_without_undo(),
        Bug::ExpiryAfterTheEnd => before.expire_the_ended(core(command, context)),
        Bug::JournalNeverSealed => before.keep_in_record(core(command, context)),
        Bug::ClaimedTurnsNotRecorded => core(&before.without_watermark(), context),
        Bug::TurnLossesShared => core(&before.alone(), context),
        Bug::PlacesOfAnyVersion => core(&before.with_places_of_this_version(false), context),
        Bug::BegunWithoutPlace => core(&before.with_places_of_this_version(true), context),
        Bug::FirstStartOfBurstRuns => before.run_the_first_start(core(command, context)),
        Bug::ClosedBeforehand => close_beforehand(core(command, context)),
        Bug::TimeoutsInPauses
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
        | Bug::NeverKeptLonger
        | Bug::LossesShared
        | Bug::ReceivesTooFew
        | Bug::SlotsRecordedFirst
        | Bug::SweepStopsAtAPage
        | Bug::ListOnOneKey
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
        | Bug::FirstOfBurstRuns
        | Bug::BurstUnbounded
        | Bug::StartsForgotten
        | Bug::StartWithoutCondition
        | Bug::LateStartCounts
        | Bug::HeldHintForgotten
        | Bug::SleepNeverProbed
        | Bug::SleeperOfAnother
        | Bug::ItemsKeptForEver
        | Bug::TickNeedsQueues
        | Bug::JoinNeverFull
        | Bug::NoVersionCondition
        | Bug::FenceNotCompared
        | Bug::RetryWithoutDue
        | Bug::AfterInsteadOfAt
        | Bug::HintBeforeCommit
        | Bug::ExpiryIgnoresStatus
        | Bug::HeartbeatMovesDeadline
        | Bug::WorkerSpeaksForWork
        | Bug::HintAtEveryProbe
        | Bug::ClaimKeepsItsSlot
        | Bug::NoNonce
        | Bug::HintWithoutIncarnation
        | Bug::ResultInRecord
        | Bug::LaterResultReplaces
        | Bug::DeadlinePerAttempt
        | Bug::RearmWithoutCondition
        | Bug::TimerNotSent
        | Bug::TimerNotSentAgain
        | Bug::TimerTooEarly
        | Bug::SlotsNotRecorded
        | Bug::SlotsRecordedTooFar
        | Bug::ConflictTakenForSuccess => core(command, context),
    }
}

/// The input of a decision.
struct Before<'a> {
    execution: &'a Execution,
    command: &'a Command,
    context: &'a Context<'a>,
}

impl<'a> Before<'a> {
    fn without_watermark(&self) -> Command {
        match self.command {
            Command::Due(view) => Command::Due(QueueView { watermark: None, ..*view }),
            other => other.clone(),
        }
    }

    fn alone(&self) -> Command {
        match self.command {
            Command::StartTurn(take) => {
                Command::StartTurn(StartTurn { isolation: Isolation::Alone, ..take.clone() })
            }
            other => other.clone(),
        }
    }

    /// A turn starts with its places as if they had been taken just now; `any`: also if none were.
    fn with_places_of_this_version(&self, any: bool) -> Command {
        let Command::StartTurn(take) = self.command else { return self.command.clone() };
        let (since, until) = (self.context.now, Timestamp::from_millis(i64::MAX));
        let none = any.then_some(Places { since, until, version: 0 });
        let version = self.execution.version;
        let places = take.places.or(none).map(|places| Places { version, ..places });
        Command::StartTurn(StartTurn { places, ..take.clone() })
    }

    fn run_the_first_start(&self, decision: Decision) -> Decision {
        if !matches!(self.command, Command::Bounce(_)) {
            return decision;
        }
        edited(decision, |after| after.input.clone_from(&self.execution.input))
    }

    fn with_all_wakes(&self) -> Command {
        match self.command {
            Command::Suspend(suspend) => {
                Command::Suspend(Suspend { seen_wakes: self.execution.wakes, ..suspend.clone() })
            }
            other => other.clone(),
        }
    }

    fn without_seen_wakes(&self, mut decision: Decision) -> Decision {
        if matches!(self.command, Command::Suspend(_)) {
            for write in &mut decision.writes {
                if let Write::Put { condition: Condition::Unchanged { wakes, .. }, .. } = write {
                    *wakes = None;
                }
            }
        }
        decision
    }

    fn with_the_holders_lease(&self, bug: Bug) -> Command {
        let Some(lease) = self.execution.turn().map(|turn| turn.lease) else { return self.command.clone() };
        match self.command {
            Command::Record(record) if bug == Bug::RecordNotFenced => {
                Command::Record(Record { lease, ..record.clone() })
            }
            Command::Close(close) if bug == Bug::CloseNotFenced => {
                Command::Close(Close { lease, ..close.clone() })
            }
            other => other.clone(),
        }
    }

    fn with_fresh_deadline(&self, decision: Decision) -> Decision {
        let (run, now) = (self.execution.run, self.context.now);
        edited(decision, |after| {
            if after.run > run
                && let Some(timeout) = after.timeouts.execution
            {
                after.deadline_at = Some(now.plus(timeout));
            }
        })
    }

    fn keep_due_slot(&self, mut decision: Decision) -> Decision {
        if decision.reply() != Ok(&Reply::Suspended(SuspendReply::Suspended)) {
            return decision;
        }
        for write in &mut decision.writes {
            if let Write::Put { condition: Condition::Unchanged { due_no_later_than, .. }, .. } = write {
                *due_no_later_than = None;
            }
        }
        edited(decision, |after| after.due = self.execution.due)
    }

    /// The time. For a tick or timer that reads a waiting execution, it is before the execution's deadline. Only for
    /// the tick and timers, which are to find it: if a worker could start a turn too late, that would be another bug.
    fn before_its_deadline(&self) -> Context<'a> {
        let looks = matches!(self.command, Command::Due(_) | Command::Timer { .. });
        let is_asleep = looks && matches!(self.execution.state, ExecutionState::Waiting(_));
        let deadlines = [self.execution.deadline_at, self.execution.run_deadline_at];
        let first = deadlines.into_iter().flatten().min().filter(|_| is_asleep);
        let now = first.map_or(self.context.now, |at| self.context.now.min(at.minus(Millis::new(1))));
        Context { now, ..*self.context }
    }

    fn without_taken_events(&self) -> Command {
        let forget = |entries: &[Entry]| -> Vec<Entry> {
            let mut entries = entries.to_vec();
            for entry in &mut entries {
                if let Happened::Waited { event, .. } = &mut entry.what {
                    *event = None;
                }
            }
            entries
        };
        match self.command {
            Command::Record(record) => {
                Command::Record(Record { entries: forget(&record.entries), ..record.clone() })
            }
            Command::Suspend(suspend) => {
                Command::Suspend(Suspend { entries: forget(&suspend.entries), ..suspend.clone() })
            }
            Command::Close(close) => {
                Command::Close(Close { entries: forget(&close.entries), ..close.clone() })
            }
            other => other.clone(),
        }
    }

    /// Sends the event under another id, so that it counts as new; the entry gets its own id.
    fn send_as_new_event(&self, decision: Decision) -> Decision {
        let repeated = decision.reply() == Ok(&Reply::EventSent { duplicate: true });
        let Command::SendEvent(offer) = self.command else { return decision };
        if !repeated {
            return decision;
        }
        let unknown = Command::SendEvent(SendEvent { id: None, known: false, ..offer.clone() });
        let mut decision = decide(Some(self.execution), &unknown, self.context);
        let named = |entries: &mut Vec<Entry>| {
            if let Some(Entry { what: Happened::Event { id, .. }, .. }) = entries.last_mut() {
                id.clone_from(&offer.id);
            }
        };
        if let Some(NewItem::Segment { segment, .. }) = decision.new_items.last_mut() {
            named(&mut segment.entries);
        }
        edited(decision, |after| named(&mut after.journal))
    }

    fn leave_events_behind(&self, mut decision: Decision) -> Decision {
        let began = decision.record().is_some_and(|after| after.run > self.execution.run);
        if !began || !matches!(self.command, Command::Close(_)) {
            return decision;
        }
        decision.new_items.clear();
        edited(decision, |after| {
            after.sealed = None;
            after.pending_events = 0;
            after.journal.clear();
        })
    }

    fn take_unpaused(&self) -> Decision {
        if !matches!(self.command, Command::StartTurn(_)) {
            return decide(Some(self.execution), self.command, self.context);
        }
        let free = Execution { paused: false, ..self.execution.clone() };
        let mut decision = decide(Some(&free), self.command, self.context);
        for write in &mut decision.writes {
            if let Write::Put { before: Some(record::Record::Execution(before)), .. } = write {
                before.paused = self.execution.paused;
            }
        }
        edited(decision, |after| after.paused = self.execution.paused)
    }

    fn cancel_without_undo(&self) -> Decision {
        if !matches!(self.command, Command::Cancel) {
            return decide(Some(self.execution), self.command, self.context);
        }
        let done = Execution { undoes: false, ..self.execution.clone() };
        let mut decision = decide(Some(&done), self.command, self.context);
        for write in &mut decision.writes {
            if let Write::Put { before: Some(record::Record::Execution(before)), .. } = write {
                before.undoes = self.execution.undoes;
            }
        }
        decision
    }

    fn expire_the_ended(&self, decision: Decision) -> Decision {
        let ExecutionState::Ended(closed) = &self.execution.state else { return decision };
        let passed = self.execution.deadline_at.is_some_and(|deadline| deadline <= self.context.now);
        let looks = matches!(self.command, Command::Due(_) | Command::Timer { .. });
        if !looks || !passed || closed.outcome.status() == tickover_core::execution::ExecutionStatus::TimedOut
        {
            return decision;
        }
        let outcome = ExecutionOutcome::TimedOut { kind: DeadlineKind::Execution };
        let mut after = self.execution.clone();
        after.version += 1;
        after.nonce = self.context.nonce;
        after.state = ExecutionState::Ended(Closed { outcome, ..closed.clone() });
        let write = Write::replace(self.execution.clone(), after.clone(), Condition::UNCHANGED);
        let outcome = decision.outcome.map(|(_, reply)| (after, reply));
        Decision { writes: vec![write], outcome, ..decision }
    }

    /// The entries that were sealed stay in the record.
    fn keep_in_record(&self, mut decision: Decision) -> Decision {
        let mut entries: Vec<Entry> = vec![];
        decision.new_items.retain(|part| match part {
            NewItem::Blob { .. } | NewItem::Event { .. } => true,
            NewItem::Segment { segment, .. } => {
                entries.extend_from_slice(&segment.entries);
                false
            }
        });
        if entries.is_empty() {
            return decision;
        }
        edited(decision, |after| {
            after.sealed = self.execution.sealed;
            after.journal.splice(0..0, entries.iter().cloned());
        })
    }
}

/// The same decision with a changed record.
fn edited(mut decision: Decision, edit: impl Fn(&mut Execution)) -> Decision {
    decision.record_mut().into_iter().for_each(&edit);
    for write in &mut decision.writes {
        if let Write::Put { before: Some(_), after: record::Record::Execution(after), .. } = write {
            edit(after);
        }
    }
    decision
}

fn without_notifications(mut decision: Decision) -> Decision {
    decision.effects.retain(|effect| match effect {
        Effect::NotifyParent(_) => false,
        Effect::Dispatch { .. }
        | Effect::Timer(_)
        | Effect::Turn { .. }
        | Effect::CameToLine { .. }
        | Effect::FreePlaces(_) => true,
    });
    decision
}

/// The process that closes it still ends what is open. Only the record is wrong, and other processes rely on it.
fn close_beforehand(mut decision: Decision) -> Decision {
    for write in &mut decision.writes {
        if let Write::Put {
            before: Some(record::Record::Execution(before)),
            after: record::Record::Execution(after),
            ..
        } = write
            && before.closed().is_none()
            && matches!(after.state, ExecutionState::Closing(_))
        {
            after.progress = Some(Progress { steps: after.open_steps, ..Progress::default() });
        }
    }
    decision
}

fn close_at_once(after: &mut Execution) {
    if let ExecutionState::Closing(closed) = &after.state {
        after.state = ExecutionState::Ended(closed.clone());
        after.due = None;
    }
}
