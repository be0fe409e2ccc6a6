//! A cron, the clock, and the world in which its runs are started, open and ended.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use crate::command::Context;
use crate::cron::command::{Command, Definition, StartResult};
use crate::cron::decision::{Decision, Reply};
use crate::cron::expression::CronExpression;
use crate::cron::plan::{Interval, Missed, Overlap, Plan, When};
use crate::cron::run::{IdTemplate, Occurrence, RunState, Stop, Target};
use crate::cron::{Cron, decide};
use crate::decision::{Change, Effect, Write};
use crate::duration::Millis;
use crate::error::Reject;
use crate::id::{BlobId, CronId, Fingerprint, Incarnation, Nonce, QueueName, TaskKind};
use crate::limits::Limits;
use crate::payload::Json;
use crate::time::Timestamp;

/// More calls than any scenario needs. A scenario that never ends fails.
const CALLS_MAX: usize = 5_000;

/// An instant of the first of January 2026, or of another day.
pub(super) fn t(text: &str) -> Timestamp {
    let full = if text.contains('T') { text.to_owned() } else { format!("2026-01-01T{text}Z") };
    Timestamp::parse_rfc3339(&full).unwrap()
}

pub(super) fn span(text: &str) -> Millis {
    Millis::parse(text).unwrap()
}

pub(super) fn every(text: &str) -> When {
    When::Every(Interval::new(span(text)).unwrap())
}

pub(super) fn cron(expression: &str, zone: &str) -> When {
    When::Cron(Box::new(CronExpression::parse(expression, zone).unwrap()))
}

pub(super) fn task_target() -> Target {
    Target::Task { queue: QueueName::parse("mail").unwrap(), kind: TaskKind::parse("report").unwrap() }
}

/// A definition of a cron.
pub(super) fn definition(when: When) -> Definition {
    Definition {
        id: CronId::parse("report").unwrap(),
        incarnation: Incarnation::from_bytes([1; 8]),
        target: task_target(),
        template: None,
        request: Json::parse("{}").unwrap(),
        plan: Plan {
            when,
            overlap: Overlap::Skip,
            missed: Missed::Skip,
            jitter: Millis::ZERO,
            max_runs: None,
        },
        paused: None,
        fingerprint: Fingerprint::from_bytes([2; 16]),
        blob_id: BlobId::from_bytes([3; 16]),
    }
}

/// The state of a run in the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunStatus {
    Open,
    Ended,
}

/// A cron in its world.
#[derive(Clone)]
pub(super) struct Scene {
    pub(super) record: Option<Cron>,
    pub(super) now: Timestamp,
    pub(super) limits: Limits,
    /// The runs that exist, by their ids.
    pub(super) world: BTreeMap<String, RunStatus>,
    /// Starts, including repeated ones.
    pub(super) starts: u32,
    pub(super) stops: Vec<(String, Stop)>,
    pub(super) refuses: bool,
    /// Whether runs ignore requests to end.
    pub(super) ignores_stops: bool,
    nonces: u64,
}

impl Scene {
    /// No cron yet, at midnight.
    pub(super) fn new() -> Self {
        Self {
            record: None,
            now: t("00:00:00"),
            limits: Limits::default(),
            world: BTreeMap::new(),
            starts: 0,
            stops: vec![],
            refuses: false,
            ignores_stops: false,
            nonces: 0,
        }
    }

    /// A cron created at midnight.
    pub(super) fn of(when: When, change: impl FnOnce(&mut Plan)) -> Self {
        let mut asked = definition(when);
        change(&mut asked.plan);
        let mut scene = Self::new();
        assert_eq!(scene.ask(&Command::Create(Box::new(asked))), Ok(Reply::Created { existed: false }));
        scene
    }

    pub(super) fn overlapping(overlap: Overlap) -> Self {
        Self::of(every("1h"), |plan| plan.overlap = overlap)
    }

    pub(super) fn decide(&mut self, command: &Command) -> Decision {
        self.nonces += 1;
        let nonce = Nonce::from_bytes(self.nonces.to_be_bytes());
        let context = Context { now: self.now, nonce, limits: &self.limits, by: None };
        let decision = decide(self.record.as_ref(), command, &context);
        if let Some(at) = timer_at(&decision) {
            let place = decision.record().and_then(|record| record.due).map(|due| due.at);
            assert!(place == Some(at) && at > self.now, "the timer is for the due slot");
        }
        decision
    }

    /// Writes a decision. It must be about the current record.
    pub(super) fn write(&mut self, decision: &Decision) {
        if let Some((before, after)) = written(decision) {
            assert_eq!(before, self.record.as_ref());
            assert_eq!(after.version, self.record.as_ref().map_or(0, |record| record.version) + 1);
            assert_eq!(decision.record(), Some(after));
            self.record = Some(after.clone());
        }
    }

    /// Decides, writes, and returns the answer. Starts no runs.
    pub(super) fn ask(&mut self, command: &Command) -> Result<Reply, Reject> {
        let decision = self.decide(command);
        self.write(&decision);
        decision.reply().copied().map_err(Clone::clone)
    }

    /// The open runs that have ended in the world.
    pub(super) fn ended(&self) -> Vec<Occurrence> {
        let record = self.record();
        let is_over = |run: &Occurrence| self.world.get(&record.run_id(run)) != Some(&RunStatus::Open);
        record.open_runs().filter(is_over).collect()
    }

    /// Stops and starts the runs of a decision. Runs whose ids exist already stay as they are.
    pub(super) fn carry_out(&mut self, decision: &Decision) -> Vec<(Occurrence, StartResult)> {
        let record = self.record().clone();
        for (run, stop) in decision.record().unwrap().stopping_runs() {
            let id = record.run_id(&run);
            if stop == Stop::Terminate && !self.ignores_stops {
                self.world.insert(id.clone(), RunStatus::Ended);
            }
            self.stops.push((id, stop));
        }
        let mut results = vec![];
        for run in decision.record().unwrap().starting_runs() {
            self.starts += 1;
            if self.refuses {
                results.push((run, StartResult::Refused { code: "unknown_queue" }));
                continue;
            }
            self.world.entry(record.run_id(&run)).or_insert(RunStatus::Open);
            results.push((run, StartResult::Started));
        }
        results
    }

    /// Handles the cron as the tick does, until nothing is left to do.
    pub(super) fn handle_due(mut self) -> Self {
        for _ in 0..CALLS_MAX {
            let decision = self.decide(&Command::Due { ended: self.ended() });
            self.write(&decision);
            let results = self.carry_out(&decision);
            let mut wrote = written(&decision).is_some();
            if !results.is_empty() {
                let decision = self.decide(&Command::Started { results });
                self.write(&decision);
                wrote = written(&decision).is_some();
            }
            if !wrote || !self.record().is_due(self.now) {
                return self;
            }
        }
        panic!("it never ends: {:?}", self.record);
    }

    /// Moves to an instant and handles the cron there.
    pub(super) fn at(mut self, text: &str) -> Self {
        self.now = t(text);
        self.handle_due()
    }

    /// Moves to an instant, and handles the cron whenever it is due before that.
    pub(super) fn until(mut self, text: &str) -> Self {
        let end = t(text);
        for _ in 0..CALLS_MAX {
            let due = self.record().due.map(|due| due.at).filter(|at| *at <= end);
            let Some(due) = due else {
                self.now = end;
                return self;
            };
            self.now = due.max(self.now);
            self = self.handle_due();
        }
        panic!("it is due too often: {:?}", self.record);
    }

    /// All open runs end.
    pub(super) fn end_all(mut self) -> Self {
        for fate in self.world.values_mut() {
            *fate = RunStatus::Ended;
        }
        self
    }

    pub(super) fn asked(mut self, command: &Command) -> Self {
        self.ask(command).unwrap();
        self
    }

    pub(super) fn record(&self) -> &Cron {
        self.record.as_ref().unwrap()
    }

    /// The instants of the runs that exist, from their names: `01:00:00`.
    pub(super) fn started(&self) -> Vec<String> {
        self.world.keys().map(|id| clock(id.strip_prefix("report-").unwrap())).collect()
    }

    /// The runs in the record: instant and state.
    pub(super) fn runs(&self) -> Vec<(String, RunState)> {
        let of = |run: &crate::cron::run::Run| (clock(&run.occurrence.name()), run.state.clone());
        self.record().runs.iter().map(of).collect()
    }

    pub(super) fn due(&self) -> Option<Timestamp> {
        self.record().due.map(|due| due.at)
    }
}

fn clock(name: &str) -> String {
    let time = &name[9..15];
    format!("{}:{}:{}", &time[..2], &time[2..4], &time[4..])
}

pub(super) fn max_runs(count: u32) -> Option<NonZeroU32> {
    NonZeroU32::new(count)
}

pub(super) fn template(text: &str) -> IdTemplate {
    IdTemplate::parse(text, &task_target()).unwrap()
}

/// The record before and after a decision, if the decision writes it.
pub(super) fn written(decision: &Decision) -> Option<(Option<&Cron>, &Cron)> {
    decision.writes.iter().find_map(|write| match (write.change(), write) {
        (Some(Change::Cron(before, after)), _) => Some((before, after)),
        (None, Write::Extend { .. }) => None,
        other => panic!("no write of a cron: {other:?}"),
    })
}

/// When the timer arrives that a decision sends.
pub(super) fn timer_at(decision: &Decision) -> Option<Timestamp> {
    decision
        .effects
        .iter()
        .map(|effect| match effect {
            Effect::Timer(timer) => timer.at,
            other => panic!("no effect of a cron: {other:?}"),
        })
        .next()
}
