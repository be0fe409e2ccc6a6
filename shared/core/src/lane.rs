//! In which order the messages of a queue are received: first by priority, then by turns among its tenants.
//!
//! Owns the one rule by which every kind of queue takes from its priorities.

use serde::{Deserialize, Serialize};

use crate::execution::Execution;
use crate::flow::{Flow, Priority};
use crate::id::Fingerprint;
use crate::kind::Policy;
use crate::parked::Parked;
use crate::task::Task;

/// Of so many messages that are taken one after another while a low one waits, one is low.
pub const LOW_OF: u32 = 10;
/// Of so many messages that are taken one after another while a normal one waits, one is normal. One fewer than for low
/// ones, so that the bound is still ten if a turn of each comes at once.
const NORMAL_OF: u32 = 9;

/// Where a message stands in its queue. The default is that of a task or an execution that asks for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Lane {
    #[serde(rename = "p", default, skip_serializing_if = "Priority::is_normal")]
    pub priority: Priority,
    /// Messages with the same one are one tenant of the queue. Those without one are a tenant together.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<Fingerprint>,
}

impl Lane {
    /// Whether the task or execution of its messages asks for no order.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// The same for one that is in a line: it goes before others, because only it may use the place to which it is called.
    #[must_use]
    pub const fn called_from(self, parked: Parked) -> Self {
        match parked {
            Parked::InLine(_) => Self { priority: Priority::High, ..self },
            Parked::No | Parked::Paused => self,
        }
    }
}

impl Flow {
    /// Where the hints of its task stand in their queue. One that has come once, and was put off to a start that a rate
    /// reserved for it then, goes before others: behind a backlog it would be too late for each start.
    pub fn lane(&self) -> Lane {
        let is_put_off = self.paced.as_ref().is_some_and(|paced| paced.put_off);
        let priority = if is_put_off { Priority::High } else { self.priority };
        Lane { priority, tenant: self.fairness }
    }

    /// Takes from the execution that starts the task what its own request leaves open. A normal priority leaves it open,
    /// unless the request says it: then it is in `given`.
    #[must_use]
    pub fn within(mut self, execution: Lane, given: &[Policy]) -> Self {
        if self.priority == Priority::default() && !given.contains(&Policy::Priority) {
            self.priority = execution.priority;
        }
        self.fairness = self.fairness.or(execution.tenant);
        self
    }
}

impl Task {
    /// Where its hints stand in its queue.
    pub fn lane(&self) -> Lane {
        self.flow.as_deref().map(Flow::lane).unwrap_or_default().called_from(self.parked)
    }

    /// Its own priority.
    pub fn priority(&self) -> Priority {
        self.flow.as_deref().map_or_else(Priority::default, |flow| flow.priority)
    }
}

impl Execution {
    /// Where its hints stand in its queue.
    pub fn lane(&self) -> Lane {
        let paced = self.admission.as_deref().and_then(|admission| admission.paced.as_ref());
        let is_put_off = paced.is_some_and(|paced| paced.put_off);
        let own = if is_put_off { Lane { priority: Priority::High, ..self.lane } } else { self.lane };
        own.called_from(self.parked)
    }
}

/// Whose turn it is among the priorities of a queue. High goes before normal, and normal before low. But while they
/// wait, a low and a normal message are each among any ten that are taken.
///
/// That normal ones have this as well isn't asked for. Without it they would starve behind a flood of high ones, while
/// low ones go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turns {
    /// How many messages of other priorities were taken while one of this priority waited, and since one was taken.
    passed: [u32; 3],
}

impl Turns {
    /// Turns that begin as if others had taken some before: for a process that may end after a few. If it draws evenly,
    /// the first message of such processes is a low one as often as a later one is.
    pub const fn begun(random: u32) -> Self {
        Self { passed: [0, random / LOW_OF % NORMAL_OF, random % LOW_OF] }
    }

    /// In which order to ask the priorities for `count` messages, and for how many each, if it isn't known what waits.
    /// First those that are owed, each as many as that, then each for all that is still missing.
    pub fn asks(&self, count: u32) -> [(Priority, u32); 5] {
        let low = self.owed(Priority::Low).min(count);
        let normal = self.owed(Priority::Normal).min(count - low);
        let [first, second, last] = Priority::ALL.map(|priority| (priority, count));
        [(Priority::Low, low), (Priority::Normal, normal), first, second, last]
    }

    /// Notes that a priority was asked and nothing of it waits: it isn't owed anything.
    pub fn found_none(&mut self, priority: Priority) {
        self.passed[priority.place()] = 0;
    }

    /// The priority to take from next; `None` if nothing waits. `waits` has one place for each of [`Priority::ALL`].
    pub fn next(&self, waits: [bool; 3]) -> Option<Priority> {
        let waiting = |priority: &Priority| waits[priority.place()];
        let owed = [Priority::Low, Priority::Normal]
            .into_iter()
            .find(|priority| waiting(priority) && self.owed(*priority) > 0);
        owed.or_else(|| Priority::ALL.into_iter().find(waiting))
    }

    /// How many messages of this priority should be taken before any other, if so many wait.
    pub fn owed(&self, priority: Priority) -> u32 {
        match priority {
            Priority::High => 0,
            Priority::Normal => self.passed[Priority::Normal.place()] / (NORMAL_OF - 1),
            Priority::Low => self.passed[Priority::Low.place()] / (LOW_OF - 1),
        }
    }

    /// Notes that so many messages of a priority were taken, and which others may have waited meanwhile.
    pub fn took(&mut self, priority: Priority, count: u32, waits: [bool; 3]) {
        for other in Priority::ALL {
            let passed = &mut self.passed[other.place()];
            if other == priority {
                let each = if other == Priority::Low { LOW_OF - 1 } else { NORMAL_OF - 1 };
                *passed = passed.saturating_sub(count.saturating_mul(each));
            } else if waits[other.place()] {
                *passed = passed.saturating_add(count);
            } else {
                *passed = 0;
            }
        }
    }
}

impl Priority {
    /// Its position in [`Priority::ALL`].
    pub const fn place(self) -> usize {
        match self {
            Self::High => 0,
            Self::Normal => 1,
            Self::Low => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::Priority::{High, Low, Normal};

    /// Takes one after another while these wait.
    fn taken(turns: &mut Turns, waits: [bool; 3], count: usize) -> Vec<Priority> {
        let mut take = || {
            let priority = turns.next(waits)?;
            turns.took(priority, 1, waits);
            Some(priority)
        };
        (0..count).filter_map(|_| take()).collect()
    }

    #[test]
    fn of_any_ten_taken_while_all_wait_at_least_one_is_low_and_one_normal_and_most_are_high() {
        let order = taken(&mut Turns::default(), [true; 3], 1_000);
        for ten in order.windows(10) {
            for priority in [Low, Normal] {
                assert!(ten.contains(&priority), "{ten:?}");
            }
            assert!(ten.iter().filter(|priority| **priority == High).count() >= 7, "{ten:?}");
        }
    }

    #[test]
    fn high_goes_before_normal_and_normal_before_low() {
        let order = taken(&mut Turns::default(), [true; 3], 8);
        assert_eq!(order, [High; 8]);
        let order = taken(&mut Turns::default(), [false, true, true], 20);
        assert_eq!(order.iter().filter(|priority| **priority == Low).count(), 2);
        assert_eq!(order[..9], [Normal; 9]);
        assert_eq!(taken(&mut Turns::default(), [false, false, true], 3), [Low; 3]);
        assert_eq!(Turns::default().next([false; 3]), None);
    }

    #[test]
    fn a_step_has_the_order_of_its_execution_unless_it_says_its_own() {
        let execution = Lane { priority: High, tenant: Some(Fingerprint::from_bytes([1; 16])) };
        let within = |own, given: &[Policy]| {
            Flow { priority: own, ..Flow::default() }.within(execution, given).lane().priority
        };
        assert_eq!(within(Normal, &[]), High);
        assert_eq!(within(Normal, &[Policy::Concurrency]), High);
        assert_eq!(within(Normal, &[Policy::Priority]), Normal);
        assert_eq!(within(Low, &[]), Low);
        let other = Flow { fairness: Some(Fingerprint::from_bytes([2; 16])), ..Flow::default() };
        assert_eq!(other.clone().within(execution, &[]).fairness, other.fairness);
        assert_eq!(Flow::default().within(execution, &[]).fairness, execution.tenant);
    }

    #[test]
    fn who_did_not_wait_has_no_claim_to_a_turn() {
        let mut turns = Turns::default();
        taken(&mut turns, [true, false, false], 100);
        assert_eq!(taken(&mut turns, [true; 3], 8), [High; 8]);
    }

    #[test]
    fn batches_owe_as_many_as_single_messages_do() {
        let mut turns = Turns::default();
        let (mut low, mut all) = (0, 0);
        for _ in 0..100 {
            let owed = turns.owed(Low).min(10);
            turns.took(Low, owed, [true; 3]);
            turns.took(High, 10 - owed, [true; 3]);
            low += owed;
            all += 10;
        }
        assert!((90..=110).contains(&(low * 1_000 / all)), "{low} of {all}");
    }

    /// Asks until there are so many messages; `waiting` has so many of each priority. Returns what was taken.
    fn asked(turns: &mut Turns, count: u32, waiting: &mut [u32; 3]) -> Vec<Priority> {
        let mut got = Vec::new();
        for (priority, most) in turns.asks(count) {
            let left = count - u32::try_from(got.len()).unwrap();
            let given = most.min(left).min(waiting[priority.place()]);
            if given > 0 {
                waiting[priority.place()] -= given;
                turns.took(priority, given, [true; 3]);
                got.extend((0..given).map(|_| priority));
            } else if most.min(left) > 0 {
                turns.found_none(priority);
            }
        }
        got
    }

    #[test]
    fn who_asks_without_knowing_what_waits_takes_high_first_and_one_low_of_ten() {
        for count in [1, 3, 10] {
            let (mut turns, mut waiting) = (Turns::default(), [1_000, 0, 1_000]);
            let order: Vec<_> =
                (0..600 / count).flat_map(|_| asked(&mut turns, count, &mut waiting)).collect();
            let low = order.iter().filter(|priority| **priority == Low).count();
            assert!((55..=65).contains(&low), "{low} low ones of {} by {count}", order.len());
        }
        let mut waiting = [2, 3, 4];
        let order = asked(&mut Turns::default(), 10, &mut waiting);
        assert_eq!(order, [High, High, Normal, Normal, Normal, Low, Low, Low, Low]);
        assert_eq!(asked(&mut Turns::default(), 10, &mut waiting), []);
    }

    #[test]
    fn processes_that_take_a_single_message_take_low_ones_as_often_as_others_do() {
        let first = |random| asked(&mut Turns::begun(random), 1, &mut [1; 3])[0];
        let all: Vec<_> = (0..90).map(first).collect();
        assert_eq!(all.iter().filter(|priority| **priority == Low).count(), 9);
        assert_eq!(all.iter().filter(|priority| **priority == Normal).count(), 9);
    }

    #[test]
    fn the_order_of_waits_never_starves_one_for_more_than_nine_others() {
        let mut random = 7_u64;
        for _ in 0..200 {
            let (mut turns, mut since) = (Turns::default(), [0_u32; 3]);
            for _ in 0..300 {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let waits = [33, 35, 37].map(|bits: u32| !(random >> bits).is_multiple_of(4));
                let Some(priority) = turns.next(waits) else { continue };
                turns.took(priority, 1, waits);
                for other in Priority::ALL {
                    let place = other.place();
                    since[place] = if other == priority || !waits[place] { 0 } else { since[place] + 1 };
                }
                assert!(since[Low.place()] <= 9 && since[Normal.place()] <= 9, "{since:?}");
            }
        }
    }
}
