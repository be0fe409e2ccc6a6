//! What must hold of each task and execution that waits to be started: after every commit, something leads to it. That is its
//! carrier: a message, the due index, the end of a pause, or an item in a line.

mod waits;

use std::collections::{BTreeMap, BTreeSet};

use tickover_core::duration::Millis;
use tickover_core::execution::journal::Happened;
use tickover_core::execution::{Execution, ExecutionOutcome, Failing};
use tickover_core::id::{ExecutionId, GateId, Incarnation, QueueName, RecordId, StepName};
use tickover_core::parent::Parent;
use tickover_core::queue::QueueRecord;
use tickover_core::time::Timestamp;
use tickover_core::timer::BEFOREHAND;

use crate::Run;
use crate::hardship::Span;
use crate::history::{Actor, Event, Fate, Fault, Note, Request, What};
use crate::ledger::LineNote;
use crate::violation::{Invariant, Violation};
use waits::{Carrier, Waits, of_execution, of_task};

/// How long a record may be without a carrier if a process dies or its call fails. Otherwise: until that call ends.
const MENDED_WITHIN: Millis = Millis::from_secs(60);
/// A tick calls a queue no more that has failed twice, for as long as it lasts (`service/src/tick/brief.rs`); so does whoever
/// processes a message of the timers queue.
const BRIEF: Millis = Millis::from_secs(60);
const GIVEN_UP_AFTER: usize = 2;
/// How much later than its due slot a record is found.
const PROBED_WITHIN: Millis = Millis::from_secs(120);
/// How often a message that its queue refuses is sent again.
const SENT_AGAIN: u32 = 4;
/// A write that comes late was sent so long before at most.
const LATE: Millis = Millis::from_secs(10);

pub(super) fn of_run(run: &Run) -> Vec<Violation> {
    let hardship = run.plan.hardship;
    // What it has swallowed is found by the probe of its due slot, and until then by nobody.
    let found_by = |span: Span| span.until.plus(run.plan.limits.backstop).plus(PROBED_WITHIN);
    let outage = hardship.queues_away.or(hardship.queue_removed);
    let outage = outage.map(|span| Span { until: found_by(span), ..span });
    let mut carriers = Carriers { outage, abandoned: run.world.abandoned(), ..Carriers::default() };
    let mut notes = run.world.ledger.lines().into_iter().peekable();
    for (number, event) in run.events.iter().enumerate() {
        while let Some((_, note)) = notes.next_if(|(at, _)| *at <= number) {
            carriers.note(note, event);
        }
        carriers.event(event);
    }
    carriers.look_at_gaps(run.ended_at);
    carriers.found
}

/// The time in which a record has no carrier.
struct Gap {
    since: Timestamp,
    /// Who wrote the record, or deleted its carrier.
    actor: Actor,
    /// The calls of that actor that haven't ended; `None` if it makes calls that aren't recorded.
    calls: Option<BTreeSet<u64>>,
}

/// Who has written a version of a record, when, and in which calls.
#[derive(Clone)]
struct Written {
    version: u64,
    actor: Actor,
    at: Timestamp,
    calls: Option<BTreeSet<u64>>,
}

#[derive(Default)]
struct Carriers {
    /// When a queue couldn't be reached, and what was sent to it wasn't found yet.
    outage: Option<Span>,
    /// The calls to queues whose callers stopped waiting for the answer.
    abandoned: Vec<(Timestamp, Actor)>,
    waits: BTreeMap<Incarnation, Waits>,
    /// Who has written each record's last version, or began the wait that goes on.
    written: BTreeMap<Incarnation, Written>,
    /// Who has ended the last pause of each execution: that call sends the messages of its steps.
    resumed: BTreeMap<ExecutionId, Written>,
    gaps: BTreeMap<Incarnation, Gap>,
    /// Those whose gap was too long, until it ends.
    reported: BTreeSet<Incarnation>,
    /// How many messages lead to a record. One that its queue has lost counts: the probe of the due slot finds out.
    messages: BTreeMap<Incarnation, u64>,
    /// The last incarnation of each id.
    last: BTreeMap<RecordId, Incarnation>,
    items: BTreeSet<(GateId, String)>,
    queues: BTreeMap<QueueName, QueueRecord>,
    /// Executions that wait for an operator, have ended or are cancelled: nothing need lead to their steps that were put
    /// aside by a pause.
    paused: BTreeSet<ExecutionId>,
    /// The steps that the journal of each execution's last run has had.
    recorded: BTreeMap<ExecutionId, (u32, BTreeSet<StepName>)>,
    calls: BTreeMap<Actor, BTreeSet<u64>>,
    /// The calls that claim a task which they name, and the tasks that they have written.
    by_id: BTreeSet<u64>,
    without_message: BTreeSet<Incarnation>,
    /// How many calls of an actor were refused in a row, and when that was so often that it gave up a message.
    refused: BTreeMap<Actor, u32>,
    gave_up_at: BTreeMap<Actor, Timestamp>,
    /// When an actor's call failed last, its process died, or a freeze of it ended.
    failed_at: BTreeMap<Actor, Timestamp>,
    found: Vec<Violation>,
}

impl Carriers {
    fn note(&mut self, note: LineNote, event: &Event) {
        match note {
            LineNote::Entered(gate, waiter) => drop(self.items.insert((gate, waiter.sort_key()))),
            LineNote::Left(gate, waiter) => {
                self.items.remove(&(gate, waiter.sort_key()));
                self.look_at(waiter.incarnation, event);
            }
            LineNote::Queue(record) => {
                let of_queue = self.waits.iter().filter(|(_, one)| one.queue == record.name);
                let of_queue: Vec<Incarnation> = of_queue.map(|(of, _)| *of).collect();
                self.queues.insert(record.name.clone(), record);
                for of in of_queue {
                    self.look_at(of, event);
                }
            }
        }
    }

    fn event(&mut self, event: &Event) {
        self.look_at_gaps(event.at);
        let actor = event.actor;
        if !matches!(event.what, What::Fault(_)) {
            self.refused.remove(&actor);
        }
        match &event.what {
            What::Called { call, request } => {
                self.calls.entry(actor).or_default().insert(*call);
                self.by_id.extend(matches!(request, Request::ClaimById(_)).then_some(*call));
            }
            What::Answered { call, .. } => {
                self.calls.entry(actor).or_default().remove(call);
                for calls in self.gaps.values_mut().filter_map(|gap| gap.calls.as_mut()) {
                    calls.remove(call);
                }
            }
            What::Fault(fault) => self.fault(*fault, event),
            What::Message { fate, note: Note::Timers(timers), .. } => {
                // That of an operator's call is sent before the write, and sends the hint after it.
                let of_calls = timers.iter().filter(|timer| timer.due_at == BEFOREHAND);
                let of: Vec<_> = of_calls.filter_map(|timer| self.last.get(&timer.record).copied()).collect();
                for of in of {
                    self.message(of, None, *fate, event);
                }
            }
            What::Message { fate, note: Note::Hint { incarnation, version, .. }, .. } => {
                self.message(*incarnation, Some(*version), *fate, event);
            }
            What::Message { fate, note: Note::Turn { incarnation, .. }, .. } => {
                self.message(*incarnation, None, *fate, event);
            }
            What::Stored(stored) => {
                let task = &stored.after;
                let of = (task.incarnation, task.version);
                self.change(task.id.clone().into(), of, of_task(task), event);
            }
            What::OfExecution(_) => {
                let Some(change) = event.what.execution_change() else { return };
                let after = &change.after;
                let steps = after.journal.iter().filter_map(|entry| match &entry.what {
                    Happened::Remote { name } => Some(name.clone()),
                    _ => None,
                });
                let recorded = self.recorded.entry(after.id.clone()).or_default();
                if recorded.0 != after.run {
                    *recorded = (after.run, BTreeSet::new());
                }
                recorded.1.extend(steps);
                if after.needs_operator() || after.closed().is_some() || is_cancelled(after) {
                    self.paused.insert(after.id.clone());
                } else if self.paused.remove(&after.id) {
                    let (version, at, calls) = (after.version, event.at, self.open_calls(actor));
                    self.resumed.insert(after.id.clone(), Written { version, actor, at, calls });
                    let is_step =
                        |waits: &Waits| waits.parent.as_ref().is_some_and(|one| one.execution == after.id);
                    let steps = self.waits.iter().filter(|(_, waits)| is_step(waits)).map(|(of, _)| *of);
                    for step in steps.collect::<Vec<_>>() {
                        self.look_at(step, event);
                    }
                }
                let of = (after.incarnation, after.version);
                self.change(after.id.clone().into(), of, of_execution(after), event);
            }
            What::Message { note: Note::Other(_), .. } | What::Decided(_) => {}
        }
    }

    fn fault(&mut self, fault: Fault, event: &Event) {
        let (actor, at) = (event.actor, event.at);
        if matches!(fault, Fault::Unavailable | Fault::Throttled) {
            let refused = self.refused.entry(actor).or_default();
            *refused += 1;
            if *refused > SENT_AGAIN {
                self.gave_up_at.insert(actor, at);
            }
        }
        let until = match fault {
            Fault::Crashed(_) => {
                self.calls.remove(&actor);
                at
            }
            // What it has sent before may still be written.
            Fault::Frozen(span) => at.plus(span),
            Fault::Away
            | Fault::LostAnswer
            | Fault::LateWrite(_)
            | Fault::Unavailable
            | Fault::Throttled
            | Fault::Conflicted
            | Fault::KeyThrottled
            | Fault::LoopStopped(_)
            | Fault::TooNew
            | Fault::DiedMidway(_)
            | Fault::NotInvoked => at,
            Fault::ClockJumped(_)
            | Fault::WrongDepth
            | Fault::MissedTicks(_)
            | Fault::Deleted(_)
            | Fault::Redriven(_)
            | Fault::CallerLeft
            | Fault::FaultPhaseOver => return,
        };
        self.fails(actor, until);
    }

    fn fails(&mut self, actor: Actor, until: Timestamp) {
        let last = self.failed_at.entry(actor).or_insert(until);
        *last = until.max(*last);
    }

    fn message(&mut self, of: Incarnation, version: Option<u64>, fate: Fate, event: &Event) {
        let count = self.messages.entry(of).or_default();
        match fate {
            Fate::Sent(_) | Fate::Dropped | Fate::Duplicated(_) => *count += 1,
            Fate::Deleted => *count = count.saturating_sub(1),
            Fate::Refused => self.fails(event.actor, event.at),
            Fate::Received | Fate::NeverReceived | Fate::Shown => {}
        }
        let is_old = |waits: &Waits| version.is_some_and(|version| version < waits.since_version);
        let resumed = self.resumed_since(of).cloned();
        let is_resumed = resumed.is_some();
        let Some(Written { actor, at, calls, .. }) = resumed.or_else(|| self.written.get(&of).cloned())
        else {
            return self.look_at(of, event);
        };
        let may_be_under_way = calls.is_none() && event.at.since(at) <= MENDED_WITHIN;
        let under_way = calls.filter(|calls| {
            self.calls.get(&actor).is_some_and(|open| calls.iter().any(|call| open.contains(call)))
        });
        // Whoever has deleted it has deleted nothing of use: the record's writer sends another one, or should have.
        if under_way.is_some() || may_be_under_way || is_resumed || self.waits.get(&of).is_some_and(is_old) {
            self.look_at_since(of, Gap { since: at, actor, calls: under_way });
        } else {
            self.look_at(of, event);
        }
    }

    /// Who has ended the pause of its execution since the record was put aside.
    fn resumed_since(&self, of: Incarnation) -> Option<&Written> {
        let (written, waits) = (self.written.get(&of)?, self.waits.get(&of)?);
        let parent = waits.parent.as_ref().filter(|_| waits.carrier == Carrier::Resume)?;
        self.resumed.get(&parent.execution).filter(|resumed| resumed.at >= written.at)
    }

    fn change(&mut self, id: RecordId, of: (Incarnation, u64), waits: Option<Waits>, event: &Event) {
        let (of, version) = of;
        self.last.insert(id, of);
        // A tick that moves a due slot leaves the version and its carrier as they were.
        if self.written.get(&of).is_none_or(|written| written.version != version) {
            let (actor, at, calls) = (event.actor, event.at, self.open_calls(event.actor));
            // Such a call writes also if it claims nothing, and may die before its answer.
            if calls.iter().flatten().any(|call| self.by_id.contains(call)) {
                self.without_message.insert(of);
            }
            let before = self.waits.get(&of);
            let goes_on =
                before.zip(waits.as_ref()).is_some_and(|(before, after)| after.goes_on_from(before));
            match self.written.get_mut(&of).filter(|_| goes_on) {
                // Whoever made it wait sends its message.
                Some(written) => written.version = version,
                None => drop(self.written.insert(of, Written { version, actor, at, calls })),
            }
        }
        match waits {
            Some(mut waits) => {
                waits.again |=
                    self.waits.get(&of).is_some_and(|before| before.again && waits.goes_on_from(before));
                self.waits.insert(of, waits);
            }
            None => drop(self.waits.remove(&of)),
        }
        self.look_at(of, event);
    }

    /// Looks whether a record has its carrier after this event.
    fn look_at(&mut self, of: Incarnation, event: &Event) {
        let gap = Gap { since: event.at, actor: event.actor, calls: self.open_calls(event.actor) };
        self.look_at_since(of, gap);
    }

    /// The calls of an actor that are under way; `None` if there are none, or they aren't recorded. Of two that start a cron's
    /// run at the same time, the one whose write of the cron is refused leaves the run's hint to the other.
    fn open_calls(&self, actor: Actor) -> Option<BTreeSet<u64>> {
        let is_shared = matches!(actor, Actor::Timers(_) | Actor::Ticker(_));
        self.calls.get(&actor).filter(|calls| !calls.is_empty() && !is_shared).cloned()
    }

    fn look_at_since(&mut self, of: Incarnation, gap: Gap) {
        if self.waits.get(&of).is_none_or(|waits| self.is_carried(of, waits)) {
            self.gaps.remove(&of);
            self.reported.remove(&of);
        } else if !self.reported.contains(&of) {
            self.gaps.entry(of).or_insert(gap);
        }
    }

    fn is_carried(&self, of: Incarnation, waits: &Waits) -> bool {
        let has_message = self.messages.get(&of).is_some_and(|count| *count > 0);
        match &waits.carrier {
            Carrier::Message => has_message,
            Carrier::Index => true,
            Carrier::Resume => {
                let is_paused = |queue: &QueueRecord| queue.paused || queue.resuming.is_some();
                has_message
                    || waits.parent.as_ref().is_some_and(|parent| self.is_led_to_by(parent))
                    || self.queues.get(&waits.queue).is_some_and(is_paused)
            }
            Carrier::Item(gate, key) => self.items.contains(&(gate.clone(), key.clone())),
            Carrier::Nothing => false,
        }
    }

    /// Whether the end of a pause of its execution leads to a step, or the next turn: that asks for each step which the
    /// journal doesn't have yet.
    fn is_led_to_by(&self, parent: &Parent) -> bool {
        let is_recorded = |(_, steps): &(u32, BTreeSet<StepName>)| {
            parent.step.as_ref().is_none_or(|step| steps.contains(step))
        };
        self.paused.contains(&parent.execution)
            || !self.recorded.get(&parent.execution).is_some_and(is_recorded)
    }

    /// Looks for gaps that are too long.
    fn look_at_gaps(&mut self, now: Timestamp) {
        let over: Vec<Incarnation> =
            self.gaps.iter().filter(|(of, gap)| self.is_over(**of, gap, now)).map(|(of, _)| *of).collect();
        for of in over {
            let (Some(gap), Some(waits)) = (self.gaps.remove(&of), self.waits.get(&of)) else { continue };
            self.reported.insert(of);
            let what = format!("nothing leads to {}, whose carrier is {:?}", waits.owner, waits.carrier);
            self.found.push(Violation::new(Invariant::Carriers, gap.since, what));
        }
    }

    fn is_over(&self, of: Incarnation, gap: &Gap, now: Timestamp) -> bool {
        let carrier = self.waits.get(&of).map(|waits| &waits.carrier);
        if matches!(carrier, Some(Carrier::Index | Carrier::Item(..) | Carrier::Nothing)) {
            // The item is there before the record says so, and until the record says otherwise.
            return true;
        }
        let is_brief = matches!(gap.actor, Actor::Ticker(_) | Actor::Timers(_));
        let remembered = if is_brief { BRIEF } else { LATE };
        let has_failed = self.failed_at.get(&gap.actor).is_some_and(|at| at.plus(remembered) >= gap.since);
        let is_away = |outage: Span| outage.holds(gap.since) || outage.holds(gap.since.plus(LATE));
        let has_given_up = is_brief && self.has_given_queues_up(gap);
        if has_given_up || self.outage.is_some_and(is_away) || (has_failed && self.is_probed(of, gap)) {
            return false;
        }
        match &gap.calls {
            Some(calls) if !has_failed => calls.is_empty(),
            Some(_) | None => now.since(gap.since) > MENDED_WITHIN,
        }
    }

    /// Whether a tick, or whoever processes timers, may have given a queue up: so many calls took too long.
    fn has_given_queues_up(&self, gap: &Gap) -> bool {
        let (from, until) = (gap.since.minus(BRIEF), gap.since.plus(LATE));
        let is_its = |(at, actor): &&(Timestamp, Actor)| *actor == gap.actor && from <= *at && *at <= until;
        self.abandoned.iter().filter(is_its).count() >= GIVEN_UP_AFTER
    }

    /// Whether only the probe of the record's due slot mends what a process has left behind that died, or whose call failed
    /// (docs/messages.md).
    fn is_probed(&self, of: Incarnation, gap: &Gap) -> bool {
        match gap.actor {
            // A message of this record has brought the call, unless its worker has asked for it. Without a message, a step or
            // child waits for the next turn of its execution. A hint is sent again once for each wait: if that fails too, two
            // processes have.
            Actor::Worker(_) | Actor::Batch(_) => {
                self.gave_up(of, gap)
                    || self.without_message.contains(&of)
                    || self.waits.get(&of).is_some_and(|waits| waits.parent.is_some() || waits.again)
            }
            // The hint of a retry is sent before the write. What ticks do for operations and crons, they do again.
            Actor::Ticker(_) => {
                self.gave_up(of, gap) || !self.waits.get(&of).is_some_and(|waits| waits.timed_out)
            }
            // What timers do for operations and crons, these do again.
            Actor::World
            | Actor::Client(_)
            | Actor::Timers(_)
            | Actor::Operator
            | Actor::Outsider
            | Actor::Filler => true,
        }
    }

    /// Whether its writer had to give up its message: then it is the tick that finds the record.
    fn gave_up(&self, of: Incarnation, gap: &Gap) -> bool {
        let Some(written) = self.written.get(&of) else { return false };
        // A tick may send it before the write.
        let before = if matches!(written.actor, Actor::Ticker(_)) { LATE } else { Millis::ZERO };
        let (since, until) = (written.at.minus(before), gap.since.plus(LATE));
        self.gave_up_at.get(&written.actor).is_some_and(|at| since <= *at && *at <= until)
    }
}

/// Whether its end is to be a cancellation: that ends its steps.
fn is_cancelled(execution: &Execution) -> bool {
    let is_handled = |failing: &Failing| matches!(failing.outcome, ExecutionOutcome::Cancelled { .. });
    execution.cancel_requested || execution.failing.as_ref().is_some_and(is_handled)
}
