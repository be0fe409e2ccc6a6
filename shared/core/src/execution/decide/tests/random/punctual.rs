//! With a tick a minute, each up to a minute late, every deadline is recorded when it comes, whatever the commands and
//! their times. And if every message is lost, the tick alone finds every execution that needs work.

use proptest::prelude::*;
use proptest::test_runner::Config;

use super::Life;
use super::steps::{Passing, Step, passing, plan, step};
use crate::decision::Effect;
use crate::due::DueKind;
use crate::duration::Millis;
use crate::execution::command::Command;
use crate::execution::due::visible_at;
use crate::execution::{Execution, ExecutionState};
use crate::id::LeaseId;
use crate::limits::Limits;
use crate::queue::QueueView;
use crate::tick::slot_end;
use crate::time::{Timestamp, earliest};
use crate::timer::Timer;

const MINUTE_MS: i64 = 60_000;
/// Timers of one execution. More would mean that timers multiply.
const ON_THEIR_WAY_MAX: usize = 6;
/// The maximum time until the tick finds an execution whose message was lost: a lease, the probes of a worker that
/// seemed alive, and the two probes of an empty queue.
const FOUND_WITHIN: Millis = Millis::from_secs(3_600);

/// A random sequence with the timers and ticks of a real system, each at its exact instant. Hints are lost.
struct Punctual {
    life: Life,
    timers_under_way: Vec<Timer>,
    /// The minute of the next tick.
    next_tick: Timestamp,
    timers_sent_until: Timestamp,
    /// How late each tick is; the list repeats.
    lateness: Vec<u64>,
    ticks: usize,
    hinted_at: Option<Timestamp>,
    /// The turn in progress, and the record's due slot when it started.
    taken: Option<(LeaseId, Timestamp)>,
}

impl Punctual {
    fn begin(mut life: Life, lateness: Vec<u64>) -> Self {
        let minute = life.now.as_millis().div_euclid(MINUTE_MS) * MINUTE_MS;
        let next_tick = Timestamp::from_millis(minute);
        let first = std::mem::take(&mut life.effects);
        let (timers_under_way, hinted_at) = (vec![], None);
        let mut begun = Self {
            life,
            timers_under_way,
            next_tick,
            timers_sent_until: next_tick,
            lateness,
            ticks: 0,
            hinted_at,
            taken: None,
        };
        begun.receive(first);
        begun
    }

    fn receive(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Timer(timer) => self.timers_under_way.push(timer),
                Effect::Turn { at, .. } => self.hinted_at = Some(at.max(self.life.now)),
                Effect::Dispatch { .. }
                | Effect::NotifyParent(_)
                | Effect::CameToLine { .. }
                | Effect::FreePlaces(_) => {}
            }
        }
        assert!(self.timers_under_way.len() <= ON_THEIR_WAY_MAX, "{:#?}", self.timers_under_way);
    }

    fn apply(&mut self, command: &Command) {
        self.life.apply(command);
        let effects = std::mem::take(&mut self.life.effects);
        self.receive(effects);
        let lease = self.life.record.as_ref().and_then(|record| Some((record.turn()?.lease, record.due?.at)));
        if lease.map(|one| one.0) != self.taken.map(|one| one.0) {
            self.taken = lease;
        }
    }

    fn next_tick_at(&self) -> Timestamp {
        self.next_tick.plus(Millis::new(self.lateness[self.ticks % self.lateness.len()]))
    }

    /// Runs all timers and ticks until then.
    fn pass_to(&mut self, target: Timestamp) {
        loop {
            let tick_at = self.next_tick_at();
            let timer = (0..self.timers_under_way.len()).min_by_key(|index| self.timers_under_way[*index].at);
            match timer.filter(|index| self.timers_under_way[*index].at <= target.min(tick_at)) {
                Some(index) => {
                    let timer = self.timers_under_way.swap_remove(index);
                    self.life.now = self.life.now.max(timer.at);
                    self.apply(&Command::Timer { due_at: timer.due_at, again: false });
                }
                None if tick_at <= target => {
                    self.life.now = self.life.now.max(tick_at);
                    self.check("a tick");
                    self.tick();
                    self.check_found();
                }
                None => break,
            }
        }
        self.life.now = target;
        self.check("a caller");
    }

    fn tick(&mut self) {
        let (now, until) = (self.life.now, slot_end(self.next_tick, self.life.now));
        let place = self.life.record.as_ref().and_then(|record| Some((record.id.clone(), record.due?)));
        if let Some((id, due)) = place {
            let is_new = due.kind == DueKind::Instant && due.at >= self.timers_sent_until;
            if is_new && due.at > now && due.at < until {
                self.timers_sent_until = until;
                let timer = Timer { record: id.into(), at: due.at, due_at: due.at };
                self.receive(vec![Effect::Timer(timer)]);
            }
            if due.at <= now {
                self.apply(&Command::Due(QueueView { looks_empty: true, ..QueueView::default() }));
            }
        }
        self.next_tick = self.next_tick.plus(Millis::new(60_000));
        self.ticks += 1;
    }

    /// All timers up to now have arrived: every instant that has passed is recorded.
    fn check(&self, whose: &str) {
        let visible = self.life.record.as_ref().and_then(visible_at);
        let overlooked = visible.filter(|at| *at <= self.life.now);
        assert_eq!(overlooked, None, "found by {whose} at {:?}: {:#?}", self.life.now, self.life.record);
    }

    /// An execution that needs work has had a hint lately.
    fn check_found(&self) {
        let Some(record) = &self.life.record else { return };
        let Some(since) = needs_worker_from(record).filter(|since| *since <= self.life.now) else { return };
        let since = self.hinted_at.map_or(since, |hinted| hinted.max(since));
        let within = FOUND_WITHIN.saturating_add(self.probe_delay(record, since));
        assert!(self.life.now.since(since) <= within, "the tick did not find {record:#?}");
    }

    /// How much later a turn may be found whose worker is lost. Its own message would bring it back, so its start
    /// leaves the due slot as it is. And the next probe of a turn whose worker is alive comes four times as late.
    ///
    /// A parked one is probed rarely: resuming its queue sends its hint.
    fn probe_delay(&self, record: &Execution, since: Timestamp) -> Millis {
        if record.parked.is_paused() {
            return Limits::default().backstop_max;
        }
        let Some(turn) = record.turn() else { return Millis::ZERO };
        let lay_at = self.taken.map_or(since, |(_, place)| place);
        let lived = turn.lease_expires_at.since(turn.claimed_at);
        let most = Limits::default().backstop_max;
        assert!(lay_at <= turn.claimed_at.plus(most), "started, but the due slot is late: {record:#?}");
        lay_at.since(since).max(lived.saturating_mul(4).min(most))
    }
}

/// From when on an execution needs a worker.
fn needs_worker_from(execution: &Execution) -> Option<Timestamp> {
    // Whoever gives a place to one that waits in a line sends it a hint.
    if execution.needs_operator() || execution.parked.in_line().is_some() {
        return None;
    }
    match &execution.state {
        ExecutionState::Pending(ready) => Some(ready.available_at),
        ExecutionState::Running(turn) => Some(turn.lease_expires_at),
        ExecutionState::Waiting(waiting) => {
            let wake_requested = execution.hinted_at.filter(|_| waiting.wake_requested);
            earliest([wake_requested, waiting.until, waiting.recheck.map(|recheck| recheck.at)])
        }
        ExecutionState::Closing(closed) => Some(closed.ended_at),
        ExecutionState::Ended(_) => None,
    }
}

proptest! {
    #![proptest_config(Config { cases: 300, failure_persistence: None, ..Config::default() })]

    #[test]
    fn every_instant_is_seen_when_it_comes_and_nothing_is_forgotten(
        plan in plan(),
        lateness in prop::collection::vec(0_u64..=60_000, 1..5),
        steps in prop::collection::vec((passing(), step()), 1..40),
    ) {
        let mut world = Punctual::begin(Life::begin(plan), lateness);
        for (passing, step) in &steps {
            // Months of ticks that find nothing test nothing.
            let target = match passing {
                Passing::By(ms) => Timestamp::from_millis(world.life.now.as_millis() + ms.min(&10_000_000)),
                Passing::ToInstant(_) | Passing::ToDue => world.life.instant(*passing),
            };
            let latest = world.life.now.plus(Millis::from_secs(86_400));
            world.pass_to(target.max(world.life.now).min(latest));
            match step {
                // Only the clock starts a tick here.
                Step::Due { .. } => {}
                // An execution that waits for no remote steps may be notified too: of a child that it doesn't wait for.
                Step::Wake => world.life.wake(),
                step => {
                    let command = world.life.command(step);
                    world.apply(&command);
                }
            }
        }
        world.pass_to(world.life.now.plus(Millis::from_secs(7_200)));
    }
}
