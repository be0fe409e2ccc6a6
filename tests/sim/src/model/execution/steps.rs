//! The possible actions in a state, and their results.

use tickover_core::command::Context;
use tickover_core::command::Isolation;
use tickover_core::decision::{Condition, Effect, Write};
use tickover_core::duration::Millis;
use tickover_core::execution::command::{
    Cleanup, Close, CodeTerms, Command, Ending, Given, SendEvent, Start, StartPolicy, StartTurn, Suspend,
};
use tickover_core::execution::decide;
use tickover_core::execution::decision::{Decision, Reply, StartTurnReply, SuspendReply};
use tickover_core::execution::journal::{Entry, Happened, StepOutcome};
use tickover_core::execution::{Execution, ExecutionOutcome, ExecutionTimeouts};
use tickover_core::id::{
    BlobId, EventId, EventName, ExecutionId, Incarnation, LeaseId, Nonce, StepName, WorkflowName,
};
use tickover_core::queue::QueueView;
use tickover_core::time::Timestamp;

use super::{
    ExecutionBug, ExecutionProtocol, Kept, Move, ProtocolState, Remote, STEPS, Seen, Turn, Waits, Worker,
};
use crate::model::queue_name;
use crate::plan::START;

const LEASE: Millis = Millis::from_secs(60);

impl ExecutionProtocol {
    #[expect(clippy::expect_used, reason = "the model's own constants")]
    pub(super) fn first(&self) -> ProtocolState {
        let start = Start {
            id: ExecutionId::parse("e").expect("an id"),
            incarnation: Incarnation::from_bytes([1; 8]),
            workflow: WorkflowName::parse("w").expect("a name"),
            queue: queue_name("q"),
            timeouts: ExecutionTimeouts::default(),
            on_failure: None,
            delay: Millis::ZERO,
            parent: None,
            trace: None,
            lane: tickover_core::lane::Lane::default(),
            admission: None,
            policy: StartPolicy::UseExisting,
            given: Given { input: None, details: None, blob_ids: [BlobId::from_bytes([0; 16]); 2] },
            event: None,
            ended: tickover_core::execution::command::EndedChild::Found,
            in_line: false,
            is_fence: false,
        };
        let decision = self.decide(None, &Command::Start(Box::new(start)), START);
        ProtocolState {
            clock: 0,
            record: Kept::new(decision.outcome.expect("a new execution").0),
            workers: [Worker::Idle, Worker::Idle],
            steps: [Remote::NotStarted; STEPS],
            marks: [false; STEPS],
            woken: false,
            hints: vec![0],
            event_unsent: self.waits == Waits::ForAnEvent,
            left: self.mishaps,
            seen: Seen::default(),
        }
    }

    /// Nothing is random: each version has a number of its own.
    fn decide(&self, record: Option<&Execution>, command: &Command, now: Timestamp) -> Decision {
        let number = record.map_or(0, |record| u8::try_from(record.version).unwrap_or(u8::MAX));
        decide(
            record,
            command,
            &Context { now, nonce: Nonce::from_bytes([number; 8]), limits: &self.limits, by: None },
        )
    }

    pub(super) fn possible(&self, state: &ProtocolState, moves: &mut Vec<Move>) {
        let faults = !self.is_last(state);
        for (at, worker) in state.workers.iter().enumerate() {
            match worker {
                Worker::Idle => {}
                Worker::At(turn) => {
                    moves.push(if turn.looked.is_none() { Move::ReadSteps(at) } else { Move::End(at) });
                    if faults && state.left.crashes > 0 {
                        moves.push(Move::Crash(at));
                    }
                }
            }
        }
        for (at, from) in state.hints.iter().enumerate() {
            if *from <= state.clock && state.workers.contains(&Worker::Idle) {
                moves.push(Move::Deliver(at));
            }
            if faults && state.left.losses > 0 {
                moves.push(Move::Lose(at));
            }
        }
        for (at, step) in state.steps.iter().enumerate() {
            match step {
                Remote::NotStarted | Remote::Notified => {}
                Remote::Open => moves.push(Move::Step(at)),
                Remote::Ended | Remote::Waking | Remote::Hinting => {
                    moves.push(Move::Step(at));
                    if faults && state.left.crashes > 0 {
                        moves.push(Move::NoNotification(at));
                    }
                }
            }
        }
        if state.event_unsent {
            moves.push(Move::SendEvent);
        }
        if state.record.due.is_some_and(|due| due.at <= self.now(state)) {
            moves.push(Move::Tick);
        }
        if faults {
            moves.push(Move::Advance);
        }
    }

    pub(super) fn take(&self, state: &mut ProtocolState, one: Move) -> Option<()> {
        match one {
            Move::Deliver(at) => self.deliver(state, at)?,
            Move::ReadSteps(at) => look(state, at, self.waits)?,
            Move::End(at) => self.end(state, at)?,
            Move::Crash(at) => {
                state.left.crashes -= 1;
                state.leave(at);
            }
            Move::Step(at) => advance(state, at)?,
            Move::NoNotification(at) => {
                state.left.crashes -= 1;
                *state.steps.get_mut(at)? = Remote::Notified;
            }
            Move::SendEvent => {
                state.event_unsent = false;
                let name = event()?;
                let offer = SendEvent {
                    name,
                    id: EventId::parse("i").ok(),
                    payload: None,
                    known: false,
                    seen: (1, 0),
                    trace: None,
                    bound: None,
                };
                self.outside(state, &Command::SendEvent(offer));
            }
            Move::Lose(at) => {
                state.left.losses -= 1;
                state.hints.remove(at);
            }
            Move::Tick => {
                let view = QueueView { looks_empty: state.hints.is_empty(), ..QueueView::default() };
                self.outside(state, &Command::Due(view));
            }
            Move::Advance => state.clock += 1,
        }
        Some(())
    }

    /// A command from outside a turn. It reads the record first, so it is decided on the current one.
    fn outside(&self, state: &mut ProtocolState, command: &Command) -> Decision {
        let decision = self.decide(Some(&state.record), command, self.now(state));
        self.write(state, &decision);
        decision
    }

    fn write(&self, state: &mut ProtocolState, decision: &Decision) {
        let Some(after) = decision.record().filter(|_| !decision.writes.is_empty()) else {
            return self.send_hints(state, decision);
        };
        let had_ended = state.record.closed().is_some();
        let after = Execution { wakes: state.record.wakes, ..after.clone() };
        state.seen.revived |= had_ended && after.closed() != state.record.closed();
        state.seen.results += u8::from(!had_ended && after.closed().is_some());
        state.record = Kept::new(after);
        self.send_hints(state, decision);
    }

    fn send_hints(&self, state: &mut ProtocolState, decision: &Decision) {
        for effect in &decision.effects {
            match effect {
                Effect::Turn { at, .. } => state.hints.push(self.index(*at)),
                Effect::Dispatch { .. }
                | Effect::Timer(_)
                | Effect::NotifyParent(_)
                | Effect::CameToLine { .. }
                | Effect::FreePlaces(_) => {}
            }
        }
    }

    fn index(&self, at: Timestamp) -> u8 {
        let earlier = self.instants.iter().filter(|instant| **instant < at).count();
        u8::try_from(earlier).unwrap_or(u8::MAX)
    }

    fn deliver(&self, state: &mut ProtocolState, at: usize) -> Option<()> {
        let worker = state.workers.iter().position(|worker| *worker == Worker::Idle)?;
        state.hints.remove(at);
        let number = u8::try_from(state.record.version).unwrap_or(u8::MAX);
        let lease = LeaseId::from_bytes([number; 16]);
        let incarnation = Some(state.record.incarnation);
        let isolation = Isolation::Alone;
        let take = StartTurn {
            lease,
            worker: None,
            length: LEASE,
            incarnation,
            again: false,
            isolation,
            outside: false,
            paused: false,
            terms: CodeTerms::default(),
            asks: None,
            places: None,
            start: None,
        };
        let decision = self.outside(state, &Command::StartTurn(take));
        match decision.reply() {
            Ok(Reply::StartTurn(StartTurnReply::Started)) => {
                let back = self.index(self.now(state).plus(LEASE));
                let (seen, seen_wakes) = (state.record.clone(), state.record.wakes);
                let turn = Turn { seen, lease: number, seen_wakes, looked: None, back };
                *state.workers.get_mut(worker)? = Worker::At(Box::new(turn));
            }
            Ok(Reply::StartTurn(StartTurnReply::Early { available_at })) => {
                state.hints.push(self.index(*available_at));
            }
            Ok(_) | Err(_) => {}
        }
        Some(())
    }

    /// The worker decides on the record as it read it. If the write's condition fails, it decides on the current
    /// record.
    fn end(&self, state: &mut ProtocolState, at: usize) -> Option<()> {
        let Worker::At(turn) = state.workers.get(at)?.clone() else { return None };
        let command = self.command_of(&turn, state)?;
        let seen = self.decide(Some(&turn.seen), &command, self.now(state));
        let decision = if conditions_hold(&seen, &state.record, self.slip) {
            seen
        } else {
            self.decide(Some(&state.record), &self.with_bug_applied(&command, &state.record), self.now(state))
        };
        let mut decision = decision;
        if self.slip == Some(ExecutionBug::NoRecheck) && matches!(command, Command::Suspend(_)) {
            decision.record_mut().into_iter().for_each(|after| after.due = None);
        }
        let holder = state.record.turn().map(|held| held.lease);
        let is_his = holder == Some(LeaseId::from_bytes([turn.lease; 16]));
        state.seen.ended_by_other |= decision.outcome.is_ok() && !decision.writes.is_empty() && !is_his;
        self.write(state, &decision);
        match decision.reply() {
            Ok(Reply::Suspended(SuspendReply::GoOn)) => {
                let (seen, seen_wakes) = (state.record.clone(), state.record.wakes);
                let turn = Turn { seen, seen_wakes, looked: None, ..*turn };
                *state.workers.get_mut(at)? = Worker::At(Box::new(turn));
            }
            Ok(_) => *state.workers.get_mut(at)? = Worker::Idle,
            Err(_) => state.leave(at),
        }
        Some(())
    }

    fn with_bug_applied(&self, command: &Command, record: &Execution) -> Command {
        match (self.slip, command) {
            (Some(ExecutionBug::WakesIgnored), Command::Suspend(suspend)) => {
                let (seen_version, seen_wakes) = (record.version, record.wakes);
                Command::Suspend(Suspend { seen_version, seen_wakes, ..suspend.clone() })
            }
            (Some(ExecutionBug::NoFence), Command::Close(close)) => match record.turn() {
                Some(turn) => Command::Close(Close { lease: turn.lease, ..close.clone() }),
                None => command.clone(),
            },
            (_, command) => command.clone(),
        }
    }

    /// The command of a worker at the end of its turn.
    fn command_of(&self, turn: &Turn, state: &ProtocolState) -> Option<Command> {
        let (lease, now) = (LeaseId::from_bytes([turn.lease; 16]), self.now(state));
        let looked = turn.looked?;
        let (mut entries, done) = match self.waits {
            Waits::ForAnEvent if turn.seen.pending_events > 0 => {
                let what = Happened::Waited { name: step(0)?, event: Some(event()?) };
                (vec![Entry { at: now, what }], true)
            }
            Waits::ForAnEvent => (vec![], false),
            Waits::ForSteps => (vec![], looked.iter().all(|ended| *ended)),
        };
        if self.waits == Waits::ForSteps {
            for (number, ended) in looked.into_iter().enumerate() {
                entries.extend(new_entries(&turn.seen, step(number)?, ended, now));
            }
        }
        if done {
            let ending = Ending::Outcome(ExecutionOutcome::Completed { output: None });
            return Some(Command::Close(Close {
                lease,
                entries,
                ending,
                cleanup: Cleanup::default(),
                values: None,
            }));
        }
        Some(Command::Suspend(Suspend {
            lease,
            entries,
            seen_version: turn.seen.version,
            seen_wakes: turn.seen_wakes,
            until: None,
            awaits_others: self.waits == Waits::ForSteps,
            events: vec![],
            cleanup: Cleanup::default(),
            values: None,
        }))
    }
}

/// The journal entries for a step's state.
fn new_entries(seen: &Execution, name: StepName, ended: bool, at: Timestamp) -> Vec<Entry> {
    let has_begun =
        seen.journal.iter().any(|entry| matches!(&entry.what, Happened::Remote { name: of } if *of == name));
    let has_ended = seen
        .journal
        .iter()
        .any(|entry| matches!(&entry.what, Happened::Step { name: of, .. } if *of == name));
    let mut entries = Vec::new();
    if !has_begun {
        entries.push(Entry { at, what: Happened::Remote { name: name.clone() } });
    }
    if ended && !has_ended {
        let outcome = StepOutcome::Completed { output: None };
        entries.push(Entry {
            at,
            what: Happened::Step { name, outcome, attempts: None, expired: None, errors: vec![] },
        });
    }
    entries
}

/// Whether the conditions of a decision's write hold.
fn conditions_hold(decision: &Decision, record: &Execution, slip: Option<ExecutionBug>) -> bool {
    decision.writes.iter().all(|write| match write {
        Write::Put {
            before: Some(before),
            condition: Condition::Unchanged { due_no_later_than, wakes },
            ..
        } => {
            let in_time = |latest| record.due.is_some_and(|due| due.at <= latest);
            before.head().version == record.version
                && due_no_later_than.is_none_or(in_time)
                && (slip == Some(ExecutionBug::WakesIgnored) || wakes.is_none_or(|seen| seen == record.wakes))
        }
        _other => true,
    })
}

/// Starts the steps, if they weren't started, and reads how they ended.
fn look(state: &mut ProtocolState, at: usize, waits: Waits) -> Option<()> {
    let Worker::At(turn) = state.workers.get_mut(at)? else { return None };
    if waits == Waits::ForSteps {
        for step in &mut state.steps {
            if *step == Remote::NotStarted {
                *step = Remote::Open;
            }
        }
    }
    turn.looked = Some(state.steps.map(Remote::has_ended));
    Some(())
}

/// A step ends; then its place is marked; after the last mark the notifier wakes the execution; then it sends a hint.
fn advance(state: &mut ProtocolState, at: usize) -> Option<()> {
    let next = match *state.steps.get(at)? {
        Remote::NotStarted | Remote::Notified => return None,
        Remote::Open => Remote::Ended,
        Remote::Ended => {
            *state.marks.get_mut(at)? = true;
            if state.marks.iter().all(|marked| *marked) { Remote::Waking } else { Remote::Notified }
        }
        Remote::Waking if state.record.closed().is_some() => Remote::Notified,
        Remote::Waking => {
            let wakes = state.record.wakes + 1;
            state.record = Kept::new(Execution { wakes, ..(*state.record).clone() });
            state.woken = true;
            Remote::Hinting
        }
        Remote::Hinting => {
            state.hints.push(state.clock);
            Remote::Notified
        }
    };
    *state.steps.get_mut(at)? = next;
    Some(())
}

fn step(number: usize) -> Option<StepName> {
    StepName::parse(format!("s{number}")).ok()
}

fn event() -> Option<EventName> {
    EventName::parse("go").ok()
}

impl ProtocolState {
    /// A worker dies; its message becomes visible again later.
    fn leave(&mut self, at: usize) {
        if let Some(worker) = self.workers.get_mut(at)
            && let Worker::At(turn) = std::mem::replace(worker, Worker::Idle)
        {
            self.hints.push(turn.back);
        }
    }

    /// Makes equivalent states equal.
    pub(super) fn normalise(&mut self) {
        for from in &mut self.hints {
            if *from <= self.clock {
                *from = 0;
            }
        }
        self.hints.sort_unstable();
        // Two hints that are visible now are equivalent to one.
        self.hints.dedup();
        self.workers.sort_unstable();
    }
}
