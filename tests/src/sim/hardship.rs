//! What a run has to live with for longer than one call: services that are away, queues that are removed or never
//! empty, items that are deleted when their time is over. Most seeds have none of it, and some have a little.

use tickover_core::duration::Millis;
use tickover_core::time::Timestamp;
use tickover_service::memory::Mortality;

use super::dice::Dice;
use super::fault_plan::FaultPlan;
use super::history::Actor;

/// How far the due index lags behind at most.
pub const LAG_FAR: Millis = Millis::from_secs(30);
/// How often a message is handed out at most where nothing should reach the dead letters.
pub const RECEIVES_MAX: u32 = 40;

/// A stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// From when.
    pub from: Timestamp,
    /// Until when; not included.
    pub until: Timestamp,
}

impl Span {
    /// Whether an instant lies in it.
    pub fn holds(&self, at: Timestamp) -> bool {
        (self.from..self.until).contains(&at)
    }
}

/// What goes on in a run, beside its faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each says of one thing whether it goes on")]
pub struct Hardship {
    /// In so many of a thousand minutes, an item whose time is over is deleted: late, or never within the run.
    pub reaped: u64,
    /// When no queue answers.
    pub queues_away: Option<Span>,
    /// When the table doesn't answer.
    pub table_away: Option<Span>,
    /// When one queue isn't there: the first of the two.
    pub queue_removed: Option<Span>,
    /// Whether queues always have something in them.
    pub is_busy: bool,
    /// How messages die, where they do.
    pub mortality: Option<Mortality>,
    /// How many writes of one key of the table, or of an index, there can be in a second.
    pub key_rate: Option<u32>,
    /// How far the due index lags behind at most, where that is further than on most days.
    pub lag: Option<Millis>,
    /// Whether some tasks kill the process that they run in, with all that it has in hands.
    pub kills: bool,
    /// Whether some processes are of an older build, which can't read what the newer one writes.
    pub two_builds: bool,
    /// Whether processes die above all in the middle of what takes several writes: closing, and handing over.
    pub aimed: bool,
    /// Which process dies at its first call after which instant, where that is fixed.
    pub strike: Option<(Actor, Timestamp)>,
    /// How many invocations of functions that queues call there can be at once.
    pub concurrency: Option<u32>,
}

impl Hardship {
    /// A seed's hardship. Items are deleted in most runs; of the rest, a run has one thing or nothing.
    pub fn of(seed: u64, start: Timestamp) -> Self {
        let dice = Dice::new(seed, "hardship");
        let reaped = dice.pick([0, 30, 300, 1_000]);
        let none = Self { reaped, ..Self::default() };
        let span = |least_s, most_s| {
            let from = start.plus(dice.secs(60, 900));
            Some(Span { from, until: from.plus(dice.secs(least_s, most_s)) })
        };
        match dice.between(0, 49) {
            0 | 1 => Self { queues_away: span(3_600, 3_600), ..none },
            2 => Self { table_away: span(3_600, 3_600), ..none },
            3 | 4 => Self { queue_removed: span(300, 3_600), ..none },
            5 | 6 => Self { is_busy: true, ..none },
            7..=10 => Self { mortality: Some(mortality(&dice)), ..none },
            11 | 12 => Self { key_rate: Some(dice.pick([3, 10])), ..none },
            13 | 14 => Self { lag: Some(LAG_FAR), ..none },
            15..=17 => Self { two_builds: true, ..none },
            18 | 19 | 47 => Self { kills: true, ..none },
            40..=43 => Self { aimed: true, ..none },
            44..=46 => Self {
                concurrency: Some(dice.pick([1, 2])),
                mortality: Some(Mortality { receives_max: Some(RECEIVES_MAX), ..Mortality::default() }),
                ..none
            },
            _ => none,
        }
    }

    /// The faults that go with it. What lasts an hour would be seen by nobody if everything else went wrong as well.
    #[must_use]
    pub fn faults(&self, faults: FaultPlan) -> FaultPlan {
        if let Some(lag) = self.lag {
            return FaultPlan { lag_ms: lag.as_u64(), ..faults };
        }
        if self.kills {
            // Who is only slow mustn't be taken for dead.
            return FaultPlan { latency_ms: faults.latency_ms.min(100), ..faults.settled() };
        }
        if self.concurrency.is_some() {
            return faults.fair();
        }
        let lasts = self.queues_away.or(self.table_away).or(self.queue_removed).is_some();
        if self.is_busy {
            // Work has to flow: what waits because workers are slow isn't lost.
            FaultPlan { drop: 150, latency_ms: faults.latency_ms.min(100), ..faults.settled() }
        } else if lasts {
            faults.fair()
        } else {
            faults
        }
    }

    /// Whether workers do what they should: where they don't, one can't tell what came of it.
    pub const fn has_good_workers(&self) -> bool {
        self.is_busy || self.kills
    }

    /// When the last of it is over that ends by itself.
    pub fn over_at(&self) -> Option<Timestamp> {
        let spans = [self.queues_away, self.table_away, self.queue_removed];
        spans.into_iter().flatten().map(|span| span.until).max()
    }

    /// Whether it keeps nothing from being done at once.
    pub fn is_mild(&self) -> bool {
        let Self { is_busy, mortality, key_rate, two_builds, kills, aimed, concurrency, .. } = self;
        self.over_at().is_none()
            && !is_busy
            && mortality.is_none()
            && key_rate.is_none()
            && !two_builds
            && !kills
            && !aimed
            && concurrency.is_none()
    }
}

/// Scaled down, but for one thing: some queues hand a message out as often as the deployed ones do, or nearly.
fn mortality(dice: &Dice) -> Mortality {
    Mortality {
        retention: dice.pick([None, Some(Millis::from_secs(1_200)), Some(Millis::from_secs(2_400))]),
        receives_max: dice.pick([None, Some(3), Some(RECEIVES_MAX), Some(RECEIVES_MAX)]),
        hidden_max: dice.pick([None, Some(Millis::from_secs(70)), Some(Millis::from_secs(300))]),
        in_flight_max: dice.pick([None, Some(4), Some(8)]),
    }
}
