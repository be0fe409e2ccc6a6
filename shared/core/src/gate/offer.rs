//! offer: places are free and some wait. The first that can come get them, and are told by a message.
//!
//! An offer is a holder like others. Whoever doesn't come within seconds loses it, and still waits in the line: its item
//! stays until its record says otherwise. If nobody of a queue comes, perhaps no worker reads it. Then the others come
//! first, and the queue is called ever less often. Its messages wait there, so its tasks come by themselves once there is a
//! worker. Those of queues that have workers come before the others. Now and then the one that has waited the longest
//! comes first, whatever is known of its workers.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::duration::Millis;
use crate::time::Timestamp;

use super::{AskedLimit, CALL, Gate, Hold, Holder, Waiter};

/// Every so many versions, the one that has waited the longest comes first, whatever its priority. A prime: there may always be
/// the same number of versions from one offer to the next.
pub(super) const LONGEST_FIRST_EACH: u64 = 11;
/// A queue that was called in vain twice isn't called for this long, and twice as long each time after that.
const ABSENT: Millis = Millis::from_secs(60);
const ABSENT_MAX: Millis = Millis::from_secs(3_600);
/// How long after that the key knows that it was called in vain.
const REMEMBERED: Millis = Millis::from_secs(86_400);
/// Most queues that a key remembers as absent.
const ABSENT_MAX_COUNT: usize = 32;

/// A queue of the line that was called in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, Timestamp, u8)", into = "(u32, Timestamp, u8)")]
pub struct Absent {
    /// The mark of its branches.
    pub branch: u32,
    /// Until when it isn't called.
    pub until: Timestamp,
    /// How often it was called in vain, one time after the other.
    pub times: u8,
}

impl From<(u32, Timestamp, u8)> for Absent {
    fn from((branch, until, times): (u32, Timestamp, u8)) -> Self {
        Self { branch, until, times }
    }
}

impl From<Absent> for (u32, Timestamp, u8) {
    fn from(Absent { branch, until, times }: Absent) -> Self {
        (branch, until, times)
    }
}

/// One that waits, could start, and may be called.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub waiter: Waiter,
    /// The limit that it was scheduled with.
    pub limit: AskedLimit,
    /// Whether its queue has workers, as far as is known.
    pub served: bool,
}

/// Offers the free places to the first of these. Returns those that are to be told.
pub fn offer(gate: &mut Gate, candidates: &[Candidate], now: Timestamp) -> Vec<Waiter> {
    let mut line: Vec<&Candidate> = candidates.iter().collect();
    let longest_first = gate.puts_longest_first();
    line.sort_by_key(|one| {
        let was_absent = gate.absent.iter().any(|absent| absent.branch == one.waiter.branch.mark());
        let order = one.waiter.order();
        // Nor can a key remember all queues that it has called in vain.
        let comes_later = !longest_first && !one.served;
        (comes_later, was_absent, (!longest_first).then_some(order.priority), order.since)
    });
    let mut called = vec![];
    for Candidate { waiter, limit, .. } in line {
        gate.note_limit(*limit);
        if gate.free() == 0 {
            break;
        }
        if gate.has(waiter) {
            continue;
        }
        gate.holders.push(Holder {
            owner: waiter.owner.clone(),
            incarnation: waiter.incarnation,
            since: now,
            until: now.plus(CALL),
            hold: Hold::Called { branch: waiter.branch.mark() },
        });
        called.push(waiter.clone());
    }
    called
}

impl Gate {
    /// Whether whoever has waited the longest comes first this time.
    pub const fn puts_longest_first(&self) -> bool {
        self.version % LONGEST_FIRST_EACH == LONGEST_FIRST_EACH - 1
    }

    /// Whether it has been said lately that nobody of the queue of this branch comes.
    pub fn is_absent(&self, branch: u32, now: Timestamp) -> bool {
        self.absent.iter().any(|one| one.branch == branch && one.until > now)
    }

    /// Whether this one has a place, or was called.
    pub fn has(&self, waiter: &Waiter) -> bool {
        self.holders.iter().any(|one| one.is_of(&waiter.owner, waiter.incarnation))
    }

    /// Removes these holders. Those of them that were called didn't come: of each queue, this is one call in vain.
    pub(super) fn remove_holders(&mut self, is_over: impl Fn(&Holder) -> bool, now: Timestamp) {
        let mut absent = BTreeSet::new();
        self.holders.retain(|one| {
            let is_over = is_over(one);
            if let (true, Hold::Called { branch }) = (is_over, one.hold) {
                absent.insert(branch);
            }
            !is_over
        });
        for branch in absent {
            self.note_absence(branch, now);
        }
    }

    fn note_absence(&mut self, branch: u32, now: Timestamp) {
        let times = self.absent.iter().find(|one| one.branch == branch).map_or(0, |one| one.times) + 1;
        let doubled = ABSENT.as_u64() << u32::from(times.saturating_sub(2)).min(10);
        let span = if times < 2 { Millis::ZERO } else { Millis::new(doubled).min(ABSENT_MAX) };
        self.absent.retain(|one| one.branch != branch && one.until.plus(REMEMBERED) > now);
        if self.absent.len() >= ABSENT_MAX_COUNT
            && let Some(least) = (0..self.absent.len()).min_by_key(|at| self.absent[*at].times)
        {
            self.absent.remove(least);
        }
        self.absent.push(Absent { branch, until: now.plus(span), times: times.min(u8::MAX - 1) });
    }

    /// Takes all offers back that were made some seconds ago.
    pub fn withdraw_late_calls(&mut self, now: Timestamp) {
        self.remove_holders(|one| one.is_late(now), now);
    }
}
