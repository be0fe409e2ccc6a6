//! Random sequences of commands: the invariants hold for any order of commands and any clock.

mod arrows;
mod invariants;
mod lifecycle_events;
mod punctual;
mod steps;

use proptest::prelude::*;
use proptest::test_runner::Config;

use super::fixture::{Items, Plan, check, t};
use crate::command::{Context, Isolation};
use crate::decision::Effect;
use crate::duration::Millis;
use crate::failure::Failure;
use crate::gate::{GRACE, Places};
use crate::id::{BlobId, Fingerprint, Incarnation, LeaseId, Nonce};
use crate::queue::QueueView;
use crate::task::command::{Claim, Command, Complete, Fail, Heartbeat, Schedule, SignOfLife};
use crate::task::due::visible_at;
use crate::task::{State, Task};
use crate::time::{Timestamp, earliest};
use invariants::check_repetition;
use steps::{LeaseChoice, Passing, Step, passing, plan, step, text};

/// The record, the clock, and the leases that were granted.
struct RandomTask {
    plan: Plan,
    now: Timestamp,
    record: Option<Task>,
    leases: Vec<LeaseId>,
    decisions: u64,
    /// The effects of the creation.
    first_effects: Vec<Effect>,
    /// The items of all lines.
    items: Items,
}

impl RandomTask {
    fn start(plan: Plan) -> Self {
        let schedule = Command::Schedule(Box::new(plan.schedule.clone()));
        let (leases, first_effects, items) = (vec![], vec![], Items::default());
        let mut life = Self { plan, now: t("1d"), record: None, leases, decisions: 0, first_effects, items };
        life.first_effects = life.tell(&schedule);
        life
    }

    fn pass(&mut self, passing: Passing) {
        let back = Timestamp::from_millis(self.now.as_millis() - 2_000);
        self.now = self.instant(passing).max(back);
    }

    fn instant(&self, passing: Passing) -> Timestamp {
        let instant = match (passing, &self.record) {
            (Passing::By(ms), _) => Some(Timestamp::from_millis(self.now.as_millis() + ms)),
            (Passing::ToInstant(off), Some(task)) => {
                next_instant(task, self.now).map(|at| Timestamp::from_millis(at.as_millis() + off))
            }
            (Passing::ToDue, Some(task)) => task.due.map(|due| due.at),
            (Passing::ToInstant(_) | Passing::ToDue, None) => None,
        };
        instant.unwrap_or(self.now)
    }

    fn lease(&self, whose: LeaseChoice) -> LeaseId {
        let back = match whose {
            LeaseChoice::Current => 0,
            LeaseChoice::Earlier(count) => count,
            LeaseChoice::Nobodys => usize::MAX,
        };
        self.leases.iter().rev().nth(back).copied().unwrap_or(LeaseId::from_bytes([255; 16]))
    }

    fn version(&self) -> u64 {
        self.record.as_ref().map_or(0, |task| task.version)
    }

    /// A claim. Most have places for the version that the record has.
    fn claim(&self, lease: LeaseId, length: Millis, [paused, held]: [bool; 2]) -> Command {
        let (since, until) = (self.now, self.now.plus(length).plus(GRACE));
        let places = Some(Places { since, until, version: self.version() });
        Command::Claim(Claim {
            lease,
            worker: None,
            length,
            hint: None,
            isolation: Isolation::Alone,
            inside: false,
            paused,
            held,
            places: places.filter(|_| !self.decisions.is_multiple_of(4)),
            start: None,
            start_of: None,
        })
    }

    fn command(&mut self, step: &Step) -> Command {
        let random = self.decisions + 1;
        let blob_id = BlobId::from_bytes(u128::from(random).to_be_bytes());
        match step {
            Step::ScheduleAgain { same_call, same_content } => {
                let mut schedule: Schedule = self.plan.schedule.clone();
                if !same_call {
                    schedule.incarnation = Incarnation::from_bytes((random << 8).to_be_bytes());
                }
                if !same_call && !same_content {
                    schedule.fingerprint = Fingerprint::from_bytes([77; 16]);
                }
                Command::Schedule(Box::new(schedule))
            }
            Step::Claim { length, paused, held } => {
                let lease = LeaseId::from_bytes(u128::from(random).to_be_bytes());
                self.leases.push(lease);
                self.claim(lease, *length, [*paused, *held])
            }
            Step::ClaimAgain(whose) => self.claim(self.lease(*whose), Millis::from_secs(60), [false; 2]),
            Step::WaitInLine(behind) => {
                Command::WaitInLine { seen_version: self.version().saturating_sub(*behind) }
            }
            Step::Heartbeat(whose, progress) => {
                // Some heartbeats are of the worker alone, and some that report progress of the work alone.
                let sign_of = match progress {
                    None if random.is_multiple_of(2) => SignOfLife::Worker,
                    Some(progress) if *progress >= 0.5 => SignOfLife::Work,
                    None | Some(_) => SignOfLife::Both,
                };
                let details = progress.map(|_| text(2 + usize::try_from(random % 511).unwrap_or(0)));
                Command::Heartbeat(Heartbeat {
                    lease: self.lease(*whose),
                    sign_of,
                    progress: *progress,
                    details,
                    blob_id,
                    places: Some(Places {
                        since: self.now,
                        until: self.now.plus(Millis::from_secs(600)),
                        version: self.version(),
                    }),
                })
            }
            Step::Complete(whose, bytes) => {
                let output = (*bytes > 0).then(|| text(*bytes));
                Command::Complete(Complete { lease: self.lease(*whose), output, blob_id })
            }
            Step::Fail { whose, code, message, retryable } => {
                let error = Failure::new(*code, "m".repeat(*message));
                Command::Fail(Fail { lease: self.lease(*whose), error, retryable: *retryable, blob_id })
            }
            Step::Release(whose) => Command::Release { lease: self.lease(*whose) },
            Step::Cancel { force } => Command::Cancel { force: *force },
            Step::Hold => Command::Hold,
            Step::Unpark => Command::Unpark,
            Step::Retry => Command::Retry(None),
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

    /// Decides twice, checks all invariants, writes, and repeats the call as after a lost answer.
    fn tell(&mut self, command: &Command) -> Vec<Effect> {
        self.decisions += 1;
        let nonce = Nonce::from_bytes(self.decisions.to_be_bytes());
        let by = crate::execution::fixture::by();
        let context = Context { now: self.now, nonce, limits: &self.plan.limits, by: Some(&by) };
        let decision = crate::task::decide(self.record.as_ref(), command, &context);
        let once_more = crate::task::decide(self.record.as_ref(), command, &context);
        assert_eq!(format!("{decision:?}"), format!("{once_more:?}"), "not deterministic");

        let is_own = |task: &Task| match command {
            Command::Schedule(schedule) => schedule.incarnation == task.incarnation,
            _ => false,
        };
        let known = self.record.as_ref().filter(|task| !task.is_gone(self.now) || is_own(task));
        check(known, &decision);
        lifecycle_events::check(&decision, self.now);
        self.items.write(&decision.writes, self.now);
        match (known, decision.record()) {
            (Some(before), Some(after)) => self.check_step(before, command, &decision, after),
            (Some(_), None) => panic!("a task disappeared"),
            (None, Some(after)) => assert_eq!(after.created_at, self.now),
            (None, None) => {}
        }
        if !decision.writes.is_empty() {
            self.record = decision.record().cloned();
        }
        let item = self.record.as_ref().and_then(|task| task.waiting().item(self.now));
        self.items.check(item.as_ref(), &decision.effects);
        let repeated = crate::task::decide(self.record.as_ref(), command, &context);
        check_repetition(command, &decision, &repeated);
        decision.effects
    }
}

/// The next instant after `now` at which the task can change.
fn next_instant(task: &Task, now: Timestamp) -> Option<Timestamp> {
    let own = match &task.state {
        State::Pending(pending) => pending.available_at,
        State::Running(running) => running.lease_expires_at,
        State::Ended(ended) => ended.expires_at,
    };
    earliest([visible_at(task), Some(own)].map(|at| at.filter(|at| *at >= now)))
}

proptest! {
    #![proptest_config(Config { cases: 1_000, failure_persistence: None, ..Config::default() })]

    #[test]
    fn whatever_happens_the_invariants_hold(
        plan in plan(),
        steps in prop::collection::vec((passing(), step()), 1..60),
    ) {
        let mut life = RandomTask::start(plan);
        for (passing, step) in &steps {
            life.pass(*passing);
            let command = life.command(step);
            life.tell(&command);
        }
    }
}
