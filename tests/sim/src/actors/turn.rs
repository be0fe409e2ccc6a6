//! A turn of an execution: it runs a script from the journal, as the SDK runs code. Its workers are good, slow, lost or
//! dead.

mod callback;
mod ops;
mod timed;

use std::collections::BTreeMap;

use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::execution::command::{Cleanup, Close, Ending, ReleaseReason, Suspend};
use tickover_core::execution::journal::{Entry, Happened, StepOutcome, open_steps, pending_events};
use tickover_core::execution::replay::Replay;
use tickover_core::execution::values::Values;
use tickover_core::execution::{DeadlineKind, Execution, ExecutionOutcome, Failing, Stuck};
use tickover_core::id::{ExecutionId, StepName};
use tickover_core::limits::Limits;
use tickover_core::payload::{Json, Payload};
use tickover_core::task::Failure;
use tickover_core::time::Timestamp;
use tickover_service::ServiceError;
use tickover_service::executions::{StartedTurn, Suspended};

use crate::history::execution::{Done, HeldTurn};
use crate::process::Process;
use crate::process::execution::turn_of;
use crate::script::{End, Kind, Script};
use crate::world::Build;

/// More than all values of a script.
const VALUES_BYTES_MAX: usize = 10_000;

/// How a worker behaves in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behaviour {
    /// Records each result at once.
    Careful,
    /// Records results only when it has to.
    Lazy,
    /// Takes longer for a step than its lease lasts, without a heartbeat.
    Slow,
    /// Stops without a report at some point, as if it had died.
    StopsReporting,
    /// Releases the turn.
    Releases,
}

const BEHAVIOURS: [Behaviour; 10] = [
    Behaviour::Careful,
    Behaviour::Careful,
    Behaviour::Careful,
    Behaviour::Lazy,
    Behaviour::Lazy,
    Behaviour::Lazy,
    Behaviour::Lazy,
    Behaviour::Slow,
    Behaviour::StopsReporting,
    Behaviour::Releases,
];

/// Why a turn stops.
enum Stop {
    /// Another worker has the execution, or a service doesn't answer.
    Error(ServiceError),
    /// The worker reports nothing more.
    Silence,
    /// The journal has a name that this worker's code doesn't ask for.
    Drift(StepName),
}

impl From<ServiceError> for Stop {
    fn from(error: ServiceError) -> Self {
        Self::Error(error)
    }
}

/// The result of one operation of a script.
enum Flow {
    /// The next operation follows.
    Next,
    /// The script has to wait.
    Blocked(Block),
    /// A step has failed for good.
    Failed(StepName),
}

/// What a script waits for.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    /// When it continues by itself.
    until: Option<Timestamp>,
    /// Whether remote steps or children have to end.
    others: bool,
    /// Whether an event has to arrive.
    event: bool,
}

impl Block {
    const fn until(until: Timestamp) -> Flow {
        Flow::Blocked(Self { until: Some(until), others: false, event: false })
    }
}

/// A turn that is running.
struct RunningTurn<'a> {
    process: &'a Process,
    turn: HeldTurn,
    behaviour: Behaviour,
    input: Json,
    script: Script,
    receipt: Option<String>,
    /// The record as this worker knows it.
    execution: Execution,
    /// The whole journal, including entries that aren't written yet.
    journal: Vec<Entry>,
    /// Entries that aren't written yet.
    fresh: Vec<Entry>,
    /// The number of wakes when remote steps and children were last read.
    seen_wakes: u64,
    /// The number of steps that the worker may start until it falls silent.
    tries: u64,
}

/// Runs a turn until it ends. Returns whether its message can be deleted.
pub(super) async fn turn(process: &Process, mut taken: StartedTurn) -> bool {
    let dice = &process.gate.dice;
    let behaviour = if process.world.in_fault_phase() && !process.world.hardship.has_good_workers() {
        dice.pick(BEHAVIOURS)
    } else {
        Behaviour::Lazy
    };
    let (turn, receipt) = (turn_of(&taken), taken.receipt.clone());
    let queue = taken.execution.queue.clone();
    if behaviour == Behaviour::Releases {
        // The checks judge the result.
        let after = dice.millis(0, 20_000);
        let (execution, reason) = (&taken.execution, ReleaseReason::ByCode);
        return process.release_turn(&turn, execution, after, reason, Cleanup::of(execution)).await.is_ok();
    }
    let known = process.kept.complete(&mut taken);
    if taken.since.is_some() && known.is_none() {
        let Ok(read) = process.read_whole(taken).await else { return false };
        taken = read;
    }
    let Some((input, script)) = taken.input.and_then(|input| Some((input.clone(), Script::parse(&input)?)))
    else {
        return false;
    };
    if let Some(known) = known {
        process.did(&turn, Done::WentOn { known, journal: taken.journal.clone() });
    }
    if script.kind == Kind::Deadly {
        process.sleep(dice.millis(0, 2_000)).await;
        process.gate.die().await;
    }
    let mut hand = RunningTurn {
        process,
        turn,
        behaviour,
        input,
        script,
        receipt: receipt.clone(),
        seen_wakes: taken.execution.wakes,
        execution: taken.execution,
        journal: taken.journal,
        fresh: vec![],
        tries: dice.between(0, 3),
    };
    match hand.go().await {
        Ok(()) => {
            if let Some(receipt) = receipt {
                process.done_with(&queue, &receipt).await;
            }
            true
        }
        Err(Stop::Error(ServiceError::Rejected(Reject::TurnLost)) | Stop::Silence) => false,
        Err(Stop::Error(_)) => {
            let after = dice.millis(0, 5_000);
            hand.release(after, ReleaseReason::ByCode).await
        }
        Err(Stop::Drift(name)) => {
            let stuck = Stuck::Unreadable(Failure::new("drift", name.as_str()));
            hand.release(Millis::ZERO, ReleaseReason::Stuck(stuck)).await
        }
    }
}

impl RunningTurn<'_> {
    async fn go(&mut self) -> Result<(), Stop> {
        loop {
            self.look().await?;
            if self.execution.cancel_requested {
                if let Flow::Blocked(block) = self.undo().await? {
                    if self.suspend(block).await? {
                        return Ok(());
                    }
                    continue;
                }
                let outcome = ExecutionOutcome::Cancelled { terminated: false };
                return self.close(Ending::Outcome(outcome)).await;
            }
            if self.execution.attempt.is_some_and(|attempt| attempt.overdue) {
                let outcome = ExecutionOutcome::TimedOut { kind: DeadlineKind::Run };
                return self.close(self.failed(outcome)).await;
            }
            let flow = match self.execution.failing {
                Some(_) => self.deal_with_failure().await?,
                None => self.script().await?,
            };
            match flow {
                Flow::Next => return self.end().await,
                Flow::Failed(step) => {
                    let error = Failure::new("exhausted", "as planned");
                    let step = Some(step.to_string());
                    let outcome = ExecutionOutcome::Failed { error, step, retries_exhausted: true };
                    let ending = self.failed(outcome);
                    return self.close(ending).await;
                }
                // It may have been asked to cancel meanwhile.
                Flow::Blocked(_) if self.execution.cancel_requested => {}
                Flow::Blocked(block) => {
                    if self.suspend(block).await? {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Reads how the remote steps and children ended that the run has started.
    async fn look(&mut self) -> Result<(), Stop> {
        let wakes = self.execution.wakes;
        let (mut remote, mut children): (Vec<StepName>, Vec<(StepName, ExecutionId)>) = (vec![], vec![]);
        for entry in open_steps(&self.journal) {
            if let Happened::Child { name, execution, left: false, .. } = &entry.what {
                children.push((name.clone(), execution.clone()));
            } else if let Happened::Remote { name } = &entry.what {
                remote.push(name.clone());
            }
        }
        let outcomes = self.process.outcomes(&self.execution, &remote, &children).await?;
        self.seen_wakes = wakes;
        for (name, outcome) in outcomes {
            self.push(Happened::Step { name, outcome, attempts: None, expired: None, errors: vec![] });
        }
        Ok(())
    }

    async fn script(&mut self) -> Result<Flow, Stop> {
        let (old, new) = self.script.renamed();
        if self.process.world.build() == Build::Wrong
            && self.last(&old).is_some()
            && self.last(&new).is_none()
        {
            return Err(Stop::Drift(old));
        }
        for (number, op) in self.script.ops.clone().into_iter().enumerate() {
            match self.op(number, op).await? {
                Flow::Next => {}
                stops @ (Flow::Blocked(_) | Flow::Failed(_)) => return Ok(stops),
            }
        }
        Ok(Flow::Next)
    }

    async fn deal_with_failure(&mut self) -> Result<Flow, Stop> {
        let name = step("failure");
        if self.has_ended(&name) { Ok(Flow::Next) } else { self.step(name, 0, Millis::ZERO, Some(5)).await }
    }

    /// Undoes what it has done, if it has begun anything. That may need more than one attempt.
    async fn undo(&mut self) -> Result<Flow, Stop> {
        let name = step("undo:all");
        if !self.undoes() || self.has_ended(&name) {
            return Ok(Flow::Next);
        }
        let failures = u32::from(self.script.seed.is_multiple_of(3));
        self.step(name, failures, Millis::from_secs(40), Some(5)).await
    }

    /// Whether it has begun anything that is undone.
    fn undoes(&self) -> bool {
        self.script.undoes && self.journal.iter().any(|entry| named(&entry.what).is_some())
    }

    async fn end(&mut self) -> Result<(), Stop> {
        let ending = match (&self.execution.failing, self.script.end) {
            (Some(Failing { outcome: outcome @ ExecutionOutcome::Cancelled { .. }, .. }), _) => {
                Ending::Outcome(outcome.clone())
            }
            (Some(failing), _) => {
                let recovers = self.script.on_failure.is_some_and(|one| one.recovers);
                Ending::Outcome(if recovers { self.completed().await? } else { failing.outcome.clone() })
            }
            (None, _) if self.execution.run < self.script.runs => {
                let input = Some(self.process.keep(self.script.input()).await?);
                Ending::ContinueAsNew { input, carried: self.carried() }
            }
            (None, End::Fails) => {
                let error = Failure::new("broken", "as planned");
                self.failed(ExecutionOutcome::Failed { error, step: None, retries_exhausted: false })
            }
            (None, End::Completes) => Ending::Outcome(self.completed().await?),
        };
        self.close(ending).await
    }

    /// How a run ends that failed.
    fn failed(&self, outcome: ExecutionOutcome) -> Ending {
        match &self.script.retry {
            Some(retry) if self.execution.failing.is_none() => {
                Ending::FailedRun { outcome, retry: retry.clone(), carried: self.carried() }
            }
            Some(_) | None => Ending::Outcome(outcome),
        }
    }

    /// What the next run begins with.
    fn carried(&self) -> Vec<Entry> {
        let mut carried: Vec<Entry> = pending_events(&self.journal).into_iter().cloned().collect();
        carried.extend(Replay::new(&self.journal, &Limits::default()).left_to_next());
        carried
    }

    async fn completed(&self) -> Result<ExecutionOutcome, Stop> {
        let dice = &self.process.gate.dice;
        let output = Json::string(&format!("{} {:x}", self.turn.lease, dice.roll()));
        Ok(ExecutionOutcome::Completed { output: Some(self.process.keep(output).await?) })
    }

    async fn close(&mut self, ending: Ending) -> Result<(), Stop> {
        let (lease, cleanup, values) = (self.turn.lease, self.cleanup(), self.to_publish().await?);
        let close = Close { lease, entries: std::mem::take(&mut self.fresh), ending, cleanup, values };
        let dice = &self.process.gate.dice;
        let again = (self.process.world.in_fault_phase() && dice.chance(100)).then(|| close.clone());
        self.process.close_turn(&self.turn, &self.execution, close).await?;
        if let Some(again) = again {
            // A worker that is not sure that its report was recorded repeats it.
            self.process.close_turn(&self.turn, &self.execution, again).await?;
        }
        Ok(())
    }

    /// Returns whether the turn is over.
    async fn suspend(&mut self, block: Block) -> Result<bool, Stop> {
        self.maybe_fall_silent()?;
        let values = self.to_publish().await?;
        let suspend = Suspend {
            lease: self.turn.lease,
            entries: std::mem::take(&mut self.fresh),
            seen_version: self.execution.version,
            seen_wakes: self.seen_wakes,
            until: block.until,
            awaits_others: block.others,
            events: vec![],
            cleanup: self.cleanup(),
            values,
        };
        // Before the write: if the process dies just after it, the operator still sends the event.
        let world = &self.process.world;
        let now = world.ledger.execution(&self.turn.execution);
        if now.as_ref().and_then(Execution::turn).is_some_and(|turn| turn.lease == self.turn.lease) {
            world.awaits_event(&self.turn.execution, block.event);
        }
        match self.process.suspend_turn(&self.turn, &self.execution, suspend).await? {
            Suspended::Done(record) => {
                let journal = std::mem::take(&mut self.journal);
                self.process.kept.keep(*record, journal, self.input.clone());
                Ok(true)
            }
            Suspended::Continue(execution, journal) => {
                (self.execution, self.journal) = (*execution, journal);
                Ok(false)
            }
        }
    }

    /// The values that it publishes, if there are others than before: how far it has come, in one of two sizes.
    async fn to_publish(&self) -> Result<Option<Payload>, Stop> {
        if !self.script.publishes {
            return Ok(None);
        }
        let stored = match &self.execution.values {
            Some(stored) => Values::parse(&self.process.open(stored).await?).unwrap_or_default(),
            None => Values::default(),
        };
        let padding = "x".repeat(if self.script.seed.is_multiple_of(2) { 1_000 } else { 0 });
        let far = Json::string(&format!("{} {padding}", self.journal.len()));
        let values = stored.with(&BTreeMap::from([(step("far"), far)]), self.process.now(), VALUES_BYTES_MAX);
        match values.document().filter(|_| values != stored) {
            Some(document) => Ok(Some(self.process.keep(document).await?)),
            None => Ok(None),
        }
    }

    /// Records the new entries.
    async fn record(&mut self) -> Result<(), Stop> {
        let entries = std::mem::take(&mut self.fresh);
        let before = self.execution.version;
        let brought = (entries, self.cleanup());
        let execution = self.process.record_turn(&self.turn, &self.execution, brought).await?;
        self.saw(execution, before).await
    }

    async fn renew(&mut self) -> Result<(), Stop> {
        let before = self.execution.version;
        let (entries, receipt) = (std::mem::take(&mut self.fresh), self.receipt.as_deref());
        let execution = self.process.heartbeat_turn(&self.turn, &self.execution, entries, receipt).await?;
        self.saw(execution, before).await
    }

    /// Stores the new record. Where others have written in between, reads the whole journal as well.
    async fn saw(&mut self, execution: Execution, before: u64) -> Result<(), Stop> {
        if execution.version != before + 1 {
            self.journal = self.process.journal_of(&execution).await?;
            self.journal.extend(self.fresh.iter().cloned());
        }
        self.execution = execution;
        Ok(())
    }

    fn push(&mut self, what: Happened) {
        let entry = Entry { at: self.process.now(), what };
        self.fresh.push(entry.clone());
        self.journal.push(entry);
    }

    /// Gives the turn back. Returns whether that was written.
    async fn release(&self, after: Millis, reason: ReleaseReason) -> bool {
        let released =
            self.process.release_turn(&self.turn, &self.execution, after, reason, self.cleanup()).await;
        released.is_ok()
    }

    fn cleanup(&self) -> Cleanup {
        let on_failure = self.script.on_failure.map(|one| one.budget);
        Cleanup { on_failure, on_cancel: self.script.on_cancel, undoes: self.undoes() }
    }

    fn did(&self, what: Done) {
        self.process.did(&self.turn, what);
    }

    fn maybe_fall_silent(&mut self) -> Result<(), Stop> {
        if self.behaviour != Behaviour::StopsReporting {
            return Ok(());
        }
        self.tries = self.tries.checked_sub(1).ok_or(Stop::Silence)?;
        Ok(())
    }

    /// The latest entry of a name.
    fn last(&self, name: &StepName) -> Option<&Happened> {
        self.journal.iter().rev().map(|entry| &entry.what).find(|what| named(what) == Some(name))
    }

    fn has_ended(&self, name: &StepName) -> bool {
        matches!(self.last(name), Some(Happened::Step { .. } | Happened::Waited { .. }))
    }

    fn has_failed(&self, name: &StepName) -> bool {
        let Some(Happened::Step { outcome, .. }) = self.last(name) else { return false };
        !matches!(outcome, StepOutcome::Completed { .. })
    }
}

/// The name that an entry belongs to.
const fn named(what: &Happened) -> Option<&StepName> {
    match what {
        Happened::Attempt { name, .. }
        | Happened::Remote { name }
        | Happened::Child { name, left: false, .. }
        | Happened::Step { name, .. }
        | Happened::Reopened { name, .. }
        | Happened::Captured { name, .. }
        | Happened::Until { name, .. }
        | Happened::Fired { name }
        | Happened::Waited { name, .. } => Some(name),
        Happened::Child { left: true, .. }
        | Happened::Event { .. }
        | Happened::EventsCleared { .. }
        | Happened::Patches { .. }
        | Happened::Note { .. } => None,
    }
}

#[expect(clippy::expect_used, reason = "the name contains only letters and digits")]
fn step(name: &str) -> StepName {
    StepName::parse(name).expect("a step's name")
}
