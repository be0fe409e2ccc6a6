//! The due slots of tasks. A slot may be too early, but is never too late.

use crate::due::{Due, DueKind, START_LEAD, shard_of_name};
use crate::due_slot::{self, HasDueSlot};
use crate::duration::Millis;
use crate::id::{RecordId, TaskId};
use crate::limits::Limits;
use crate::parked::Parked;
use crate::task::{Ending, PastAttempt, Pending, Running, State, Task, transition};
use crate::time::{Timestamp, Wait, earliest};

/// If a hint hasn't been received for a long time and the task starts to wait once more, the next probe comes this
/// soon.
pub(crate) const PROBE_SOON: Millis = Millis::from_secs(60);

/// The shard of a new task.
pub fn shard_of(id: &TaskId, shards: u16) -> u16 {
    shard_of_name(id.as_str(), shards)
}

/// The earliest instant at which this task changes without a call, with an effect that users can see.
pub fn visible_at(task: &Task) -> Option<Timestamp> {
    earliest(instants(task))
}

/// When the record last needed a hint. Its backstop counts from this instant.
pub fn hint_needed_at(task: &Task) -> Option<Timestamp> {
    match &task.state {
        State::Pending(pending) => Some(pending.available_at.max(task.hinted_at.unwrap_or(Timestamp::EPOCH))),
        State::Running(running) => Some(running.claimed_at.max(task.hinted_at.unwrap_or(Timestamp::EPOCH))),
        State::Ended(_) => None,
    }
}

/// Since when the hint of a waiting task could be received. It stays the same when `schedule_to_start` expires.
pub(crate) fn hint_unread_since(task: &Task) -> Option<Timestamp> {
    let needed_at = hint_needed_at(task)?;
    let unread_since = match &task.state {
        State::Pending(pending) => pending.unread_since,
        State::Running(_) | State::Ended(_) => None,
    };
    Some(unread_since.map_or(needed_at, |since| task.hinted_at.map_or(since, |again| again.max(since))))
}

impl HasDueSlot for Task {
    fn record_id(&self) -> RecordId {
        self.id.clone().into()
    }

    fn due(&self) -> Option<Due> {
        self.due
    }

    fn set_due(&mut self, due: Option<Due>) {
        self.due = due;
    }

    fn instants(&self) -> [Option<Timestamp>; 3] {
        instants(self)
    }

    fn latest(&self, now: Timestamp, limits: &Limits) -> Option<Due> {
        latest(self, now, limits)
    }

    fn is_leased(&self) -> bool {
        self.running().is_some()
    }

    fn parked(&self) -> Parked {
        self.parked
    }
}

/// The instants of a task whose effects users can see, in any order.
fn instants(task: &Task) -> [Option<Timestamp>; 3] {
    match &task.state {
        State::Pending(pending) => [task.deadline_at, pending.schedule_to_start_at, None],
        State::Running(running) => [task.deadline_at, running.start_to_close_at, running.heartbeat_at],
        State::Ended(_) => [None; 3],
    }
}

/// Whether the record has waited for so long that its hint may be lost.
pub fn may_be_lost(task: &Task, now: Timestamp, limits: &Limits) -> bool {
    task.parked.in_line().is_none()
        && waits_since(task, now).is_some_and(|since| now.since(since) >= limits.backstop)
}

/// Whether the tick must read the task's queue: the task's hint may be lost or was parked, and no timeout has passed
/// that ends the wait anyway.
pub fn needs_queue_view(task: &Task, now: Timestamp, limits: &Limits) -> bool {
    (task.parked.is_paused() || may_be_lost(task, now, limits)) && visible_at(task).is_none_or(|at| at > now)
}

/// Since when the task has been waiting for its hint to be received. `None` if it isn't waiting.
pub(crate) fn waits_since(task: &Task, now: Timestamp) -> Option<Timestamp> {
    let since = match &task.state {
        State::Pending(pending) if pending.hint_later || pending.available_at > now => return None,
        State::Pending(pending) => pending.unread_since.unwrap_or(pending.available_at),
        State::Running(running) => running.lease_expires_at,
        State::Ended(_) => return None,
    };
    (since <= now).then(|| since.max(task.hinted_at.unwrap_or(since)))
}

/// The latest due slot that the task's state allows.
pub fn latest(task: &Task, now: Timestamp, limits: &Limits) -> Option<Due> {
    let shard = task.due.map_or_else(|| shard_of(&task.id, limits.due_shards), |due| due.shard);
    let own = match &task.state {
        State::Pending(pending) if pending.hint_later => {
            Due { at: pending.available_at.minus(START_LEAD), kind: DueKind::Start, shard }
        }
        // Resuming the queue sends the hint. The tick finds the record only if that fails.
        State::Pending(_) | State::Running(_) if !task.parked.is_no() => {
            Due { at: due_slot::parked_until(task.parked, now, limits), kind: DueKind::Backstop, shard }
        }
        State::Pending(_) | State::Running(_) => {
            let needed_at = hint_needed_at(task)?;
            // No hint is missing before the start, and the next tick must not find the record again at once.
            let soonest = needed_at.max(now.plus(PROBE_SOON));
            let missed_at = hint_unread_since(task)?.plus(limits.backstop).max(soonest);
            let at = needed_at.plus(limits.backstop).min(missed_at);
            Due { at, kind: DueKind::Backstop, shard }
        }
        State::Ended(_) => return None,
    };
    Some(due_slot::probe_slot(visible_at(task), own, now))
}

impl Task {
    /// Whether what follows now depends on whether its execution is paused: as a remote step that waits, it would end by a
    /// timeout of its own, or the tick would start its stopped time. Otherwise nobody needs to read the execution.
    pub fn depends_on_a_pause(&self, now: Timestamp) -> bool {
        let State::Pending(pending) = &self.state else { return false };
        let has_no_start =
            self.timeouts.schedule_to_start.is_some() && pending.schedule_to_start_at.is_none();
        let is_stopped = self.is_held() || (self.parked.is_paused() && has_no_start);
        // For a later start, the tick only sends the hint.
        let is_due = !pending.hint_later && self.due.is_some_and(|due| due.at <= now);
        self.parent.is_some() && (transition::expired(self, now).is_some() || (is_stopped && is_due))
    }
}

impl Task {
    /// Whether the tick is still to send the hint of its start. At that instant it is ready, whether that is written or not.
    pub const fn is_hinted_later(&self) -> bool {
        matches!(&self.state, State::Pending(pending) if pending.hint_later)
    }

    /// Whether a worker may have the task, which waits so. What was ready stays ready if the clock is set back.
    pub fn is_ready(&self, pending: &Pending, now: Timestamp) -> bool {
        let is_new = self.attempt == 0 && self.history.is_empty() && self.revived_at.is_none();
        let since = is_new.then_some(self.created_at);
        Wait { until: pending.available_at, since, hint_later: pending.hint_later }.is_over(now)
    }

    /// Whether this attempt's work may be what stops its worker: it ran alone, or the attempt that it follows was lost too.
    /// The first loss of a process with many attempts says little about each.
    pub fn is_suspect(&self, running: &Running) -> bool {
        let follows = |past: &PastAttempt| past.ending == Ending::Lost && past.ended_at == running.claimed_at;
        !running.shared || self.history.last().is_some_and(follows)
    }
}

impl Running {
    /// Whether the lease is over: its worker counts as lost.
    pub fn is_lost(&self, now: Timestamp, limits: &Limits) -> bool {
        self.lease_expires_at <= now || (self.inside && limits.outlived(self.claimed_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::due::keep_or_lower;
    use crate::task::decide::tests::fixture::{t, task};
    use crate::timeout::OnTimeout::Retry;

    fn place(at: &str, kind: DueKind) -> Due {
        Due { at: t(at), kind, shard: 3 }
    }

    #[test]
    fn a_shard_is_fixed_by_the_id_and_always_one_of_those_there_are() {
        let ids: Vec<_> = (0..1_000).map(|n| TaskId::parse(format!("task-{n}")).unwrap()).collect();
        let mut counts = [0; 16];
        for id in &ids {
            counts[usize::from(shard_of(id, 16))] += 1;
            assert_eq!(shard_of(id, 1), 0);
            assert_eq!(shard_of(id, 0), 0);
        }
        assert!(counts.iter().all(|count| (30..100).contains(count)), "{counts:?}");
        // Stored records are in these shards: the digest must never change.
        assert_eq!(shard_of(&ids[0], 16), 9);
        assert_eq!(shard_of(&ids[0], u16::MAX), 45_165);
    }

    #[test]
    fn ids_that_follow_a_pattern_spread_evenly_over_the_shards() {
        let patterns: [fn(u32) -> String; 6] = [
            |n| format!("order-{n}"),
            |n| format!("order-{}", n * 100),
            |n| format!("{n:08}"),
            |n| format!("{:x}", n * 16),
            |n| format!("tenant-{}:invoice-{}", n % 100, n / 100),
            |n| format!("2026-11-22T{:02}:{:02}:{:02}", n / 3_600, n / 60 % 60, n % 60),
        ];
        for id_of in patterns {
            for shards in [16_u16, 32, 64] {
                let mut counts = vec![0_u32; usize::from(shards)];
                for n in 0..20_000 {
                    counts[usize::from(shard_of_name(&id_of(n), shards))] += 1;
                }
                let (mean, hottest) = (20_000 / u32::from(shards), counts.into_iter().max().unwrap());
                assert!(hottest * 4 <= mean * 5, "{}: {hottest} of {mean} in one of {shards}", id_of(1));
            }
        }
    }

    #[test]
    fn a_record_stays_in_its_shard_when_the_count_grows() {
        let scene = task().scheduled();
        let shard = scene.record().due.unwrap().shard;
        for due_shards in [1, 17, 1_000] {
            let limits = Limits { due_shards, ..Limits::default() };
            assert_eq!(latest(scene.record(), t("0s"), &limits).unwrap().shard, shard);
        }
    }

    #[test]
    fn users_see_deadlines_and_timeouts_but_neither_leases_nor_starts() {
        let plan = || task().starting_in("1m").start_within("5m", Retry).close_within("30s", Retry);
        assert_eq!(visible_at(task().starting_in("1m").scheduled().record()), None);
        assert_eq!(visible_at(plan().scheduled().record()), Some(t("6m")));
        assert_eq!(visible_at(plan().deadline("4m").scheduled().record()), Some(t("4m")));
        assert_eq!(visible_at(task().scheduled().claim_for("a", "10s").record()), None);
        let running = || plan().heartbeats("20s", Retry).scheduled().at("2m").claim("a");
        assert_eq!(visible_at(running().record()), Some(t("2m 20s")));
        assert_eq!(visible_at(running().at("2m 15s").heartbeat("a").record()), Some(t("2m 30s")));
        assert_eq!(visible_at(running().complete("a").record()), None);
    }

    #[test]
    fn a_hint_was_last_needed_at_the_start_at_the_claim_or_when_it_was_sent_again() {
        let waiting = task().starting_in("1m").scheduled();
        assert_eq!(hint_needed_at(waiting.record()), Some(t("1m")));
        let again = waiting.at("7h").tick();
        assert_eq!(hint_needed_at(again.record()), Some(t("7h")));
        let running = again.at("8h").claim("a");
        assert_eq!(hint_needed_at(running.record()), Some(t("8h")));
        assert_eq!(hint_needed_at(running.complete("a").record()), None);
    }

    #[test]
    fn the_latest_due_slot_is_before_a_later_start_at_the_backstop_or_at_a_visible_instant() {
        let limits = Limits::default();
        let latest = |scene: crate::task::decide::tests::fixture::Scene| {
            latest(scene.record(), t("0s"), &limits).map(|due| (due.at, due.kind))
        };
        assert_eq!(latest(task().starting_in("1h").scheduled()), Some((t("57m"), DueKind::Start)));
        assert_eq!(latest(task().scheduled()), Some((t("10m"), DueKind::Backstop)));
        let claimed = task().heartbeats("1h", Retry).scheduled().at("5m").claim("a");
        assert_eq!(latest(claimed), Some((t("15m"), DueKind::Backstop)));
        assert_eq!(latest(task().deadline("10m").scheduled()), Some((t("10m"), DueKind::Instant)));
        let soon = task().starting_in("1h").deadline("57m").scheduled();
        assert_eq!(latest(soon), Some((t("57m"), DueKind::Instant)));
        assert_eq!(latest(task().scheduled().cancel()), None);
    }

    #[test]
    fn a_due_slot_is_kept_unless_it_is_too_late_or_the_task_has_ended() {
        let (early, late) = (place("1m", DueKind::Recheck), place("2m", DueKind::Instant));
        assert_eq!(keep_or_lower(Some(early), Some(late)), Some(early));
        assert_eq!(keep_or_lower(Some(late), Some(early)), Some(early));
        let same = place("2m", DueKind::Backstop);
        assert_eq!(keep_or_lower(Some(same), Some(late)), Some(same));
        assert_eq!(keep_or_lower(None, Some(late)), Some(late));
        assert_eq!(keep_or_lower(Some(late), None), None);
    }
}
