//! Random commands at random times, with a tick every minute, each up to a minute late, and no lost message. Every
//! instant whose effect users can see is recorded when it comes, and not later by the tick.

use proptest::prelude::*;
use proptest::test_runner::Config;

use super::RandomTask;
use super::steps::{Passing, Step, passing, plan, step};
use crate::decision::Effect;
use crate::due::DueKind;
use crate::duration::Millis;
use crate::queue::QueueView;
use crate::task::command::Command;
use crate::task::due::visible_at;
use crate::tick::slot_end;
use crate::time::Timestamp;
use crate::timer::Timer;

const MINUTE_MS: i64 = 60_000;
/// The limit for one task. More timers would mean that timers multiply.
const ON_THEIR_WAY_MAX: usize = 6;

/// A random sequence with the messages that a queue and the ticks deliver, exactly on time.
struct Punctual {
    life: RandomTask,
    on_their_way: Vec<Timer>,
    /// The minute of the next tick.
    next_tick: Timestamp,
    timers_sent_until: Timestamp,
    /// How late each tick is, repeated in a cycle.
    lateness: Vec<u64>,
    ticks: usize,
}

impl Punctual {
    fn begin(life: RandomTask, lateness: Vec<u64>) -> Self {
        let minute = life.now.as_millis().div_euclid(MINUTE_MS) * MINUTE_MS;
        let next_tick = Timestamp::from_millis(minute);
        let mut begun =
            Self { life, on_their_way: vec![], next_tick, timers_sent_until: next_tick, lateness, ticks: 0 };
        let first = begun.life.first_effects.split_off(0);
        begun.take(first);
        begun
    }

    fn take(&mut self, effects: Vec<Effect>) {
        let timers = effects.into_iter().filter_map(|effect| match effect {
            Effect::Timer(timer) => Some(timer),
            Effect::Dispatch { .. }
            | Effect::Turn { .. }
            | Effect::NotifyParent(_)
            | Effect::CameToLine { .. }
            | Effect::FreePlaces(_) => None,
        });
        self.on_their_way.extend(timers);
        assert!(self.on_their_way.len() <= ON_THEIR_WAY_MAX, "{:#?}", self.on_their_way);
    }

    fn tell(&mut self, command: &Command) {
        let effects = self.life.tell(command);
        self.take(effects);
    }

    fn next_tick_at(&self) -> Timestamp {
        self.next_tick.plus(Millis::new(self.lateness[self.ticks % self.lateness.len()]))
    }

    /// Delivers all timers and ticks up to `target`.
    fn pass_to(&mut self, target: Timestamp) {
        loop {
            let tick_at = self.next_tick_at();
            let timer = (0..self.on_their_way.len()).min_by_key(|index| self.on_their_way[*index].at);
            match timer.filter(|index| self.on_their_way[*index].at <= target.min(tick_at)) {
                Some(index) => {
                    let timer = self.on_their_way.swap_remove(index);
                    self.life.now = self.life.now.max(timer.at);
                    self.tell(&Command::Timer { due_at: timer.due_at, again: false });
                }
                None if tick_at <= target => {
                    self.life.now = self.life.now.max(tick_at);
                    self.check("a tick");
                    self.tick();
                }
                None => break,
            }
        }
        self.life.now = target;
        self.check("a step");
    }

    fn tick(&mut self) {
        let (now, until) = (self.life.now, slot_end(self.next_tick, self.life.now));
        let place = self.life.record.as_ref().and_then(|task| Some((task.id.clone(), task.due?)));
        if let Some((task, due)) = place {
            let is_new = due.kind == DueKind::Instant && due.at >= self.timers_sent_until;
            if is_new && due.at > now && due.at < until {
                self.timers_sent_until = until;
                self.take(vec![Effect::Timer(Timer { record: task.into(), at: due.at, due_at: due.at })]);
            }
            if due.at <= now {
                self.tell(&Command::Due(QueueView { looks_empty: true, ..QueueView::default() }));
            }
        }
        self.next_tick = self.next_tick.plus(Millis::new(60_000));
        self.ticks += 1;
    }

    /// All timers up to now have arrived: timeouts that have passed are recorded.
    fn check(&self, whose: &str) {
        let visible = self.life.record.as_ref().and_then(visible_at);
        let overlooked = visible.filter(|at| *at <= self.life.now);
        assert_eq!(overlooked, None, "found by {whose} at {:?}: {:#?}", self.life.now, self.life.record);
    }
}

proptest! {
    #![proptest_config(Config { cases: 500, failure_persistence: None, ..Config::default() })]

    #[test]
    fn every_timeout_is_recorded_when_it_expires(
        plan in plan(),
        lateness in prop::collection::vec(0_u64..=60_000, 1..5),
        steps in prop::collection::vec((passing(), step()), 1..40),
    ) {
        let mut world = Punctual::begin(RandomTask::start(plan), lateness);
        for (passing, step) in &steps {
            // Months of ticks without due records test nothing.
            let target = match passing {
                Passing::By(ms) => Timestamp::from_millis(world.life.now.as_millis() + ms.min(&10_000_000)),
                Passing::ToInstant(_) | Passing::ToDue => world.life.instant(*passing),
            };
            world.pass_to(target.max(world.life.now));
            // `Punctual` decides when the tick runs.
            if !matches!(step, Step::Due { .. }) {
                let command = world.life.command(step);
                world.tell(&command);
            }
        }
        world.pass_to(world.life.now.plus(Millis::from_secs(3_600)));
    }
}
