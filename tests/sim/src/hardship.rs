//! Conditions that last longer than one call: unreachable services, queues that are removed or never empty, items that
//! are deleted after their expiry. Most seeds have none of them.

use tickover_core::duration::Millis;
use tickover_core::time::Timestamp;
use tickover_service::memory::MessageLimits;

use super::dice::Dice;
use super::fault_plan::FaultPlan;
use super::history::Actor;

/// How far the due index lags at most where the lag is large.
pub const LAG_FAR: Millis = Millis::from_secs(30);
/// How often a message is received at most where no message should become a dead letter.
pub const RECEIVES_MAX: u32 = 40;

/// Of a thousand seeds, so many deploy wrong code.
const DEPLOYED: u64 = 150;

/// Of a thousand seeds, in so many callers leave.
const LEAVERS: u64 = 150;

/// Of a thousand cases: all.
pub const ALWAYS: u64 = 1_000;

/// A span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first instant.
    pub from: Timestamp,
    /// The end; not included.
    pub until: Timestamp,
}

impl Span {
    /// Whether it contains an instant.
    pub fn holds(&self, at: Timestamp) -> bool {
        (self.from..self.until).contains(&at)
    }
}

/// The conditions of a run, beside its faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each says whether one condition applies")]
pub struct Hardship {
    /// In so many of a thousand minutes, an expired item is deleted: late, or never within the run.
    pub reaped: u64,
    /// When no queue answers.
    pub queues_away: Option<Span>,
    /// When the table doesn't answer.
    pub table_away: Option<Span>,
    /// When one queue doesn't exist: the first of the two.
    pub queue_removed: Option<Span>,
    /// Whether queues are never empty.
    pub is_busy: bool,
    /// How messages become dead letters, if they do.
    pub mortality: Option<MessageLimits>,
    /// How many writes one key of the table, or of an index, accepts in a second.
    pub key_rate: Option<u32>,
    /// How far the due index lags at most, where that is more than usual.
    pub lag: Option<Millis>,
    /// Whether some tasks kill the process that runs them, with all its other work.
    pub kills: bool,
    /// Whether some processes run an older build, which can't read what the newer one writes.
    pub two_builds: bool,
    /// Whether processes mostly die between two writes that belong together: during closes and handovers.
    pub aimed: bool,
    /// Which process dies at its first call after which instant, where that is fixed.
    pub apply_and_compare: Option<(Actor, Timestamp)>,
    /// How many invocations of functions that queues invoke there can be at once.
    pub concurrency: Option<u32>,
    /// When workers run a build whose code has renamed an operation. After it they run repaired code.
    pub wrong_build: Option<Span>,
    /// After which write of the run its process dies, if that is all that goes wrong.
    pub dies_after: Option<u64>,
    /// At which request or answer of all callers' one of them leaves, if that is all that goes wrong.
    pub leaves_at: Option<u64>,
    /// Whether callers leave before they have an answer.
    pub has_leavers: bool,
    /// Whether nothing is random that could be, so that two runs can be compared.
    pub is_calm: bool,
    /// Whether each hint is lost that a tick sends for the end of a long sleep.
    pub sleeps_lost: bool,
}

impl Hardship {
    /// The conditions of a seed. Items are deleted in most runs. Of the others, a run has one or none.
    pub fn of(seed: u64, start: Timestamp) -> Self {
        let dice = Dice::new(seed, "hardship");
        let reaped = dice.pick([0, 30, 300, ALWAYS]);
        let none = Self { reaped, ..Self::default() };
        let span = |least_s, most_s| {
            let from = start.plus(dice.secs(60, 900));
            Some(Span { from, until: from.plus(dice.secs(least_s, most_s)) })
        };
        let deployed = Dice::new(seed, "deployments");
        let wrong_build = deployed.chance(DEPLOYED).then(|| {
            let from = start.plus(deployed.secs(30, 900));
            Span { from, until: from.plus(deployed.secs(20, 300)) }
        });
        let has_leavers = Dice::new(seed, "leavers").chance(LEAVERS);
        let none = Self { wrong_build, has_leavers, ..none };
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
            20..=23 => Self { sleeps_lost: true, ..none },
            40..=43 => Self { aimed: true, ..none },
            44..=46 => Self {
                concurrency: Some(dice.pick([1, 2])),
                mortality: Some(MessageLimits {
                    receives_max: Some(RECEIVES_MAX),
                    ..MessageLimits::default()
                }),
                ..none
            },
            _ => none,
        }
    }

    /// The faults that go with the conditions. If every other fault happened as well, the effect of an hour's outage
    /// couldn't be seen.
    #[must_use]
    pub fn faults(&self, faults: FaultPlan) -> FaultPlan {
        if let Some(lag) = self.lag {
            return FaultPlan { lag_ms: lag.as_u64(), ..faults };
        }
        if self.kills {
            // A worker that is only slow must not count as lost.
            return FaultPlan { latency_ms: faults.latency_ms.min(100), ..faults.settled() };
        }
        if self.concurrency.is_some() {
            return faults.fair();
        }
        let lasts = self.queues_away.or(self.table_away).or(self.queue_removed).is_some();
        if self.is_busy {
            // Work must be claimed steadily: what waits because workers are slow isn't lost.
            FaultPlan { drop: 150, latency_ms: faults.latency_ms.min(100), ..faults.settled() }
        } else if lasts {
            faults.fair()
        } else {
            faults
        }
    }

    /// Whether workers behave well. With other workers, no one could say what the right result is.
    pub const fn has_good_workers(&self) -> bool {
        self.is_busy || self.kills
    }

    /// When the last condition that ends by itself is over.
    pub fn over_at(&self) -> Option<Timestamp> {
        let spans = [self.queues_away, self.table_away, self.queue_removed, self.wrong_build];
        spans.into_iter().flatten().map(|span| span.until).max()
    }

    /// Whether it delays nothing.
    pub fn is_mild(&self) -> bool {
        let Self { is_busy, mortality, key_rate, two_builds, kills, aimed, concurrency, sleeps_lost, .. } =
            self;
        [self.queues_away, self.table_away, self.queue_removed].iter().all(Option::is_none)
            && self.dies_after.is_none()
            && !is_busy
            && mortality.is_none()
            && key_rate.is_none()
            && !two_builds
            && !kills
            && !aimed
            && concurrency.is_none()
            && !sleeps_lost
    }
}

/// The limits are scaled down, except that some queues deliver a message about as often as the deployed ones do.
fn mortality(dice: &Dice) -> MessageLimits {
    MessageLimits {
        retention: dice.pick([None, Some(Millis::from_secs(1_200)), Some(Millis::from_secs(2_400))]),
        receives_max: dice.pick([None, Some(3), Some(RECEIVES_MAX), Some(RECEIVES_MAX)]),
        hidden_max: dice.pick([None, Some(Millis::from_secs(70)), Some(Millis::from_secs(300))]),
        in_flight_max: dice.pick([None, Some(4), Some(8)]),
    }
}
