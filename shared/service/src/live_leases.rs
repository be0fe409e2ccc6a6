//! The leases that heartbeats to this process keep alive: only counted, never used in a decision.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tickover_core::duration::Millis;
use tickover_core::id::LeaseId;
use tickover_core::time::Timestamp;

/// How often leases that ran out are forgotten, if no call asks for the count.
const PRUNE_EVERY: Millis = Millis::from_secs(60);

/// Leases with the instant at which each runs out.
#[derive(Debug, Default)]
pub(crate) struct LiveLeases(Mutex<Leases>);

#[derive(Debug, Default)]
struct Leases {
    until: HashMap<LeaseId, Timestamp>,
    forgotten_at: Option<Timestamp>,
}

impl LiveLeases {
    /// A heartbeat extended the lease.
    pub(crate) fn renewed(&self, lease: LeaseId, expires_at: Timestamp, now: Timestamp) {
        let mut leases = self.lock();
        leases.until.insert(lease, expires_at);
        if leases.forgotten_at.is_none_or(|at| now.since(at) >= PRUNE_EVERY) {
            leases.forget(now);
        }
    }

    /// The attempt has ended.
    pub(crate) fn ended(&self, lease: &LeaseId) {
        self.lock().until.remove(lease);
    }

    /// How many are alive.
    pub(crate) fn count(&self, now: Timestamp) -> usize {
        let mut leases = self.lock();
        leases.forget(now);
        leases.until.len()
    }

    fn lock(&self) -> MutexGuard<'_, Leases> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Leases {
    fn forget(&mut self, now: Timestamp) {
        self.until.retain(|_, until| *until > now);
        self.forgotten_at = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_count_while_they_are_extended_and_not_after_they_end_or_run_out() {
        let live_leases = LiveLeases::default();
        let at = |secs: i64| Timestamp::from_millis(secs * 1_000);
        let lease = |number: u8| LeaseId::from_bytes([number; 16]);
        live_leases.renewed(lease(1), at(60), at(0));
        live_leases.renewed(lease(2), at(60), at(0));
        live_leases.renewed(lease(1), at(90), at(30));
        assert_eq!(live_leases.count(at(59)), 2);
        assert_eq!(live_leases.count(at(60)), 1);
        live_leases.ended(&lease(1));
        assert_eq!(live_leases.count(at(60)), 0);
    }

    #[test]
    fn leases_that_run_out_are_removed_without_a_call_of_count() {
        let live_leases = LiveLeases::default();
        for minute in 0_u8..100 {
            let now = Timestamp::from_millis(i64::from(minute) * 60_000);
            live_leases.renewed(LeaseId::from_bytes([minute; 16]), now.plus(Millis::from_secs(30)), now);
        }
        assert_eq!(live_leases.lock().until.len(), 1);
    }
}
