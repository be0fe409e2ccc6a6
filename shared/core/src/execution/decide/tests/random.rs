//! Random command sequences: whatever the commands, their order and the clock, the invariants hold.

mod arrows;
mod invariants;
mod punctual;
mod steps;

use proptest::prelude::*;
use proptest::test_runner::Config;

use super::fixture::{Items, Ledger, Plan, ends_attempt, name, span, t};
use crate::command::Context;
use crate::command::Isolation;
use crate::decision::Effect;
use crate::execution::command::{
    Bounce, Cleanup, Close, CodeTerms, Command, End, Ending, Record, ReleaseReason, Rerun, SendEvent,
    StartTurn, Suspend,
};
use crate::execution::decide;
use crate::execution::decision::Reply;
use crate::execution::due::visible_at;
use crate::execution::journal::{Entry, Happened, pending_events};
use crate::execution::{Execution, ExecutionState, ExecutionTimeouts};
use crate::gate::{EXECUTION_PLACE, Places};
use crate::id::{Incarnation, LeaseId, Nonce};
use crate::payload::{Json, Payload};
use crate::queue::QueueView;
use crate::time::{Timestamp, earliest};
use steps::{Passing, Step, Whose, passing, plan, step};

/// The record, its segments, the clock, and the leases that were granted to workers.
struct Life {
    plan: Plan,
    now: Timestamp,
    record: Option<Execution>,
    ledger: Ledger,
    leases: Vec<LeaseId>,
    decisions: u64,
    /// Of the last decision.
    effects: Vec<Effect>,
    /// The items of all lines.
    items: Items,
}

/// The timeouts of a workflow's code; most start requests set none.
fn terms() -> CodeTerms {
    let timeouts = ExecutionTimeouts { execution: Some(span("20m")), run: Some(span("5m")) };
    CodeTerms { timeouts, on_failure: None, attempts: None }
}

/// What the code does if it ends early: each of the four combinations.
fn cleanup(of: usize) -> Cleanup {
    let on_cancel = (of % 4 > 1).then(|| crate::duration::Millis::from_secs(60));
    Cleanup { on_failure: None, on_cancel, undoes: of % 2 == 1 }
}

/// What a write of a turn publishes, if it does: of up to the size that a worker leaves in the record.
fn published(version: u64) -> Option<Payload> {
    let text = "x".repeat(usize::try_from(version * 37 % 199).unwrap());
    version.is_multiple_of(3).then(|| Payload::Inline(Json::string(&text)))
}

impl Life {
    fn begin(plan: Plan) -> Self {
        let start = Command::Start(Box::new(plan.start.clone()));
        let ledger = Ledger::default();
        let mut life = Self {
            plan,
            now: t("1d"),
            record: None,
            ledger,
            leases: vec![],
            decisions: 0,
            effects: vec![],
            items: Items::default(),
        };
        life.apply(&start);
        life
    }

    fn pass(&mut self, passing: Passing) {
        let back = Timestamp::from_millis(self.now.as_millis() - 2_000);
        self.now = self.instant(passing).max(back);
    }

    fn instant(&self, passing: Passing) -> Timestamp {
        let after = |at: Timestamp, ms: i64| Timestamp::from_millis(at.as_millis() + ms);
        let instant = match (passing, &self.record) {
            (Passing::By(ms), _) => Some(after(self.now, ms)),
            (Passing::ToInstant(off), Some(record)) => {
                next_instant(record, self.now).map(|at| after(at, off))
            }
            (Passing::ToDue, Some(record)) => record.due.map(|due| due.at),
            (Passing::ToInstant(_) | Passing::ToDue, None) => None,
        };
        instant.unwrap_or(self.now)
    }

    fn finish(&self, ms_before: i64) -> Command {
        let latest = self.record.as_ref().and_then(End::of);
        let latest = latest.unwrap_or(End { run: 1, ended_at: self.now });
        let ended_at = Timestamp::from_millis(latest.ended_at.as_millis() - ms_before);
        Command::Finish(End { ended_at, ..latest })
    }

    fn lease(&self, whose: Whose) -> LeaseId {
        let back = match whose {
            Whose::Current => 0,
            Whose::Earlier(count) => count,
            Whose::Nobodys => usize::MAX,
        };
        self.leases.iter().rev().nth(back).copied().unwrap_or(LeaseId::from_bytes([255; 16]))
    }

    #[expect(clippy::too_many_lines, reason = "one arm a step")]
    fn command(&mut self, step: &Step) -> Command {
        let random = self.decisions + 1;
        let at = |entries: &[Entry]| entries.to_vec();
        let (version, wakes) = self.record.as_ref().map_or((0, 0), |record| (record.version, record.wakes));
        // Most turns have places for the version that the record has.
        let places = Some(Places { since: self.now, until: self.now.plus(EXECUTION_PLACE), version });
        match step {
            Step::StartAgain { same_call } => {
                let mut start = self.plan.start.clone();
                if !same_call {
                    start.incarnation = Incarnation::from_bytes((random << 8).to_be_bytes());
                }
                Command::Start(Box::new(start))
            }
            Step::Bounce(wait, at_most) => {
                let (given, wait, at_most) = (self.plan.start.given.clone(), *wait, *at_most);
                Command::Bounce(Box::new(Bounce { given, wait, at_most }))
            }
            Step::WaitInLine(behind) => Command::WaitInLine { seen_version: version.saturating_sub(*behind) },
            Step::StartTurn { length, paused } => {
                let lease = LeaseId::from_bytes(u128::from(random).to_be_bytes());
                self.leases.push(lease);
                Command::StartTurn(StartTurn {
                    lease,
                    worker: None,
                    length: *length,
                    incarnation: None,
                    again: false,
                    isolation: Isolation::Alone,
                    outside: false,
                    paused: *paused,
                    terms: if random.is_multiple_of(3) { terms() } else { CodeTerms::default() },
                    asks: None,
                    places: places.filter(|_| !random.is_multiple_of(4)),
                    start: None,
                })
            }
            Step::Record(whose, entries) => Command::Record(Record {
                lease: self.lease(*whose),
                entries: at(entries),
                cleanup: cleanup(entries.len()),
                timed_attempts: None,
                values: published(version),
            }),
            Step::Begin(whose, number, ms) => {
                let next_at = Some(Timestamp::from_millis(self.now.as_millis() + ms));
                let (name, first_at) = (name(&format!("attempt-{number}")), self.now);
                let (attempt, error, progress) = (1, None, None);
                let what = Happened::Attempt {
                    name,
                    attempt,
                    first_at,
                    error,
                    next_at,
                    progress,
                    details: None,
                    is_ongoing: false,
                    errors: vec![],
                };
                let entries = vec![Entry { at: self.now, what }];
                Command::Record(Record {
                    lease: self.lease(*whose),
                    entries,
                    cleanup: Cleanup::default(),
                    timed_attempts: None,
                    values: None,
                })
            }
            Step::EndAttempt(whose, number) => {
                let entries = vec![ends_attempt(&format!("attempt-{number}"))];
                Command::Record(Record {
                    lease: self.lease(*whose),
                    entries,
                    cleanup: Cleanup::default(),
                    timed_attempts: None,
                    values: None,
                })
            }
            Step::Suspend { whose, entries, until, awaits_others, unseen } => Command::Suspend(Suspend {
                lease: self.lease(*whose),
                entries: at(entries),
                seen_version: version.saturating_sub(u64::from(*unseen)),
                seen_wakes: wakes,
                until: until.map(|ms| Timestamp::from_millis(self.now.as_millis() + ms)),
                awaits_others: *awaits_others,
                events: vec![],
                cleanup: cleanup(entries.len()),
                values: published(version),
            }),
            Step::Close(whose, entries, outcome) => Command::Close(Close {
                lease: self.lease(*whose),
                entries: at(entries),
                ending: Ending::Outcome(outcome.clone()),
                cleanup: cleanup(entries.len()),
                values: published(version),
            }),
            Step::ContinueAsNew { whose, overlooks } => {
                let journal =
                    self.record.as_ref().map(|record| self.ledger.journal(record)).unwrap_or_default();
                let mut events: Vec<Entry> = pending_events(&journal).into_iter().cloned().collect();
                if *overlooks {
                    events.pop();
                }
                let ending = Ending::ContinueAsNew { input: None, carried: events };
                Command::Close(Close {
                    lease: self.lease(*whose),
                    entries: vec![],
                    ending,
                    cleanup: Cleanup::default(),
                    values: None,
                })
            }
            Step::Heartbeat(whose) => {
                Command::Heartbeat { lease: self.lease(*whose), entries: vec![], values: published(version) }
            }
            Step::Release(whose, after, reason) => {
                let (lease, after, reason) = (self.lease(*whose), *after, reason.clone());
                let cleanup = (reason != ReleaseReason::ByWorker).then(|| cleanup(0));
                Command::Release { lease, after, reason, cleanup }
            }
            Step::SendEvent(name, id) => {
                let seen = self.record.as_ref().map_or((1, 0), Execution::stage);
                let (name, id) = (name.clone(), id.clone());
                Command::SendEvent(SendEvent {
                    name,
                    id,
                    payload: None,
                    known: false,
                    seen,
                    trace: None,
                    bound: None,
                })
            }
            Step::ClearEvents(name, count) => {
                Command::ClearEvents { name: name.clone(), count: *count, seen_version: version }
            }
            Step::Wake => self.finish(0),
            Step::Finish { ms_before } => self.finish(*ms_before),
            Step::Plain(command) => command.clone(),
            Step::Restart(preserved) => {
                let (preserved, is_same_work) = (preserved.clone(), !preserved.is_empty());
                Command::Restart(Rerun { preserved, is_same_work, given: None })
            }
            Step::Due { looks_empty, watermark, paused } => {
                let watermark = watermark.map(|ms| Timestamp::from_millis(self.now.as_millis() + ms));
                Command::Due(QueueView {
                    looks_empty: *looks_empty,
                    watermark,
                    paused: *paused,
                    ..QueueView::default()
                })
            }
        }
    }

    /// Decides twice, checks the invariants, and writes.
    fn apply(&mut self, command: &Command) {
        self.decisions += 1;
        let nonce = Nonce::from_bytes(self.decisions.to_be_bytes());
        let by = crate::execution::fixture::by();
        let context = Context { now: self.now, nonce, limits: &self.plan.limits, by: Some(&by) };
        let decision = decide(self.record.as_ref(), command, &context);
        let once_more = decide(self.record.as_ref(), command, &context);
        assert_eq!(format!("{decision:?}"), format!("{once_more:?}"), "not deterministic");

        let is_own = |execution: &Execution| match command {
            Command::Start(start) => start.incarnation == execution.incarnation,
            _ => false,
        };
        let known = self.record.as_ref().filter(|record| !record.is_gone(self.now) || is_own(record));
        self.ledger.write(&decision);
        self.ledger.check(known, &decision);
        match (known, decision.record()) {
            (Some(before), Some(after)) => {
                invariants::check(before, command, &decision, after, &context);
                self.check_entries(before, command, after, decision.reply());
            }
            (Some(_), None) => panic!("the decision returned no record"),
            (None, Some(after)) => assert_eq!(after.created_at, self.now),
            (None, None) => {}
        }
        if !decision.writes.is_empty() {
            self.record = decision.record().cloned();
        }
        self.items.write(&decision.writes, self.now);
        let item = self.record.as_ref().and_then(|record| record.waiting().item(self.now));
        self.items.check(item.as_ref(), &decision.effects);
        self.effects = decision.effects;
    }

    /// The entries of a worker's accepted call are in the journal once, and only those of accepted calls.
    fn check_entries(
        &self,
        before: &Execution,
        command: &Command,
        after: &Execution,
        outcome: Result<&Reply, &crate::error::Reject>,
    ) {
        if before.run != after.run {
            return;
        }
        let new_entries: &[Entry] = match command {
            Command::Record(record) => &record.entries,
            Command::Suspend(suspend) => &suspend.entries,
            Command::Close(close) => &close.entries,
            _ => return,
        };
        let journal = self.ledger.journal(after);
        let new = &journal[self.ledger.journal(before).len()..];
        assert_eq!(new, if outcome.is_ok() { new_entries } else { &[] });
    }

    /// It is notified of a remote step's end: no decision, and only while it is open.
    fn wake(&mut self) {
        if let Some(record) = self.record.as_mut().filter(|record| record.closed().is_none()) {
            record.wakes += 1;
        }
    }
}

/// The next instant from now on at which something about the execution changes.
fn next_instant(execution: &Execution, now: Timestamp) -> Option<Timestamp> {
    let own = match &execution.state {
        ExecutionState::Pending(ready) => Some(ready.available_at),
        ExecutionState::Running(turn) => Some(turn.lease_expires_at),
        ExecutionState::Waiting(waiting) => {
            earliest([waiting.until, waiting.recheck.map(|recheck| recheck.at)])
        }
        ExecutionState::Closing(_) => None,
        ExecutionState::Ended(closed) => Some(closed.expires_at),
    };
    earliest([visible_at(execution), own].map(|at| at.filter(|at| *at >= now)))
}

proptest! {
    #![proptest_config(Config { cases: 1_000, failure_persistence: None, ..Config::default() })]

    #[test]
    fn whatever_happens_the_invariants_hold(
        plan in plan(),
        steps in prop::collection::vec((passing(), step()), 1..60),
    ) {
        let mut life = Life::begin(plan);
        for (passing, step) in &steps {
            life.pass(*passing);
            if matches!(step, Step::Wake) {
                life.wake();
                continue;
            }
            let command = life.command(step);
            life.apply(&command);
        }
    }
}
