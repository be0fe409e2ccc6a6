//! What happens next to a task without a call, and when. It answers the question "why is it still there?".

use crate::flow::Paced;
use crate::task::{State, Task};
use crate::time::Timestamp;
use crate::timeout::TimeoutKind;

/// The next event in a task's life if no call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    pub what: NextStep,
    /// The instant. Absent if the event depends on a worker.
    pub at: Option<Timestamp>,
}

/// The kind of the next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// It may be claimed from then on.
    Available,
    /// The same, and the instant is the start that its key's rate allows.
    Rate,
    /// A worker must claim it, and no timeout limits the wait.
    Claim,
    /// This timeout expires if no worker has claimed or finished it by then.
    Timeout(TimeoutKind),
    /// Its worker counts as lost from then on, and another worker may take over.
    LeaseExpiry,
    Deletion,
}

impl NextStep {
    /// The name in answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Available => "becomes_available",
            Self::Rate => "waits_for_rate",
            Self::Claim => "waits_for_worker",
            Self::Timeout(TimeoutKind::ScheduleToClose) => "schedule_to_close_timeout",
            Self::Timeout(TimeoutKind::ScheduleToStart) => "schedule_to_start_timeout",
            Self::Timeout(TimeoutKind::Heartbeat) => "heartbeat_timeout",
            Self::Timeout(TimeoutKind::StartToClose) => "start_to_close_timeout",
            Self::LeaseExpiry => "lease_expires",
            Self::Deletion => "deleted",
        }
    }
}

/// What happens next to this task. Of two events at the same instant, it returns the one that takes precedence.
pub fn next(task: &Task, now: Timestamp) -> Next {
    let deadline = (NextStep::Timeout(TimeoutKind::ScheduleToClose), task.deadline_at);
    match &task.state {
        State::Pending(pending) => {
            let waits_for =
                if rate_waited_for(task, now).is_some() { NextStep::Rate } else { NextStep::Available };
            let available = (!task.is_ready(pending, now)).then_some(pending.available_at);
            first([
                deadline,
                (NextStep::Timeout(TimeoutKind::ScheduleToStart), pending.schedule_to_start_at),
                (waits_for, available),
            ])
            .unwrap_or(Next { what: NextStep::Claim, at: None })
        }
        State::Running(running) => first([
            deadline,
            (NextStep::Timeout(TimeoutKind::Heartbeat), running.heartbeat_at),
            (NextStep::Timeout(TimeoutKind::StartToClose), running.start_to_close_at),
            (NextStep::LeaseExpiry, Some(running.lease_expires_at)),
        ])
        .unwrap_or(Next { what: NextStep::Claim, at: None }),
        State::Ended(ended) => Next { what: NextStep::Deletion, at: Some(ended.expires_at) },
    }
}

/// The key whose rate a pending task waits for.
pub fn rate_waited_for(task: &Task, now: Timestamp) -> Option<&Paced> {
    let available_at = match &task.state {
        State::Pending(pending) => Some(pending.available_at).filter(|at| *at > now)?,
        State::Running(_) | State::Ended(_) => return None,
    };
    task.paced().filter(|paced| paced.start.is_some_and(|start| start.start_at == available_at))
}

fn first<const N: usize>(steps: [(NextStep, Option<Timestamp>); N]) -> Option<Next> {
    // `min_by_key` keeps the first of equal instants, which is the one that takes precedence.
    steps
        .into_iter()
        .filter_map(|(what, at)| at.map(|at| Next { what, at: Some(at) }))
        .min_by_key(|next| next.at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::task::decide::tests::fixture::{Scene, t, task};
    use crate::timeout::OnTimeout::Retry;

    /// Asserts the next event and its instant, at the time `now`.
    #[track_caller]
    fn assert_next(scene: &Scene, now: &str, what: NextStep, at: Option<&str>) {
        assert_eq!(next(scene.record(), t(now)), Next { what, at: at.map(t) });
    }

    const DEADLINE: NextStep = NextStep::Timeout(TimeoutKind::ScheduleToClose);

    #[test]
    fn a_waiting_task_becomes_available_and_then_waits_for_a_worker() {
        let scene = task().starting_in("1m").scheduled();
        assert_next(&scene, "0s", NextStep::Available, Some("1m"));
        assert_next(&scene, "59s 999ms", NextStep::Available, Some("1m"));
        assert_next(&scene, "1m", NextStep::Claim, None);
    }

    #[test]
    fn a_waiting_task_meets_its_first_timeout_if_nobody_comes() {
        let to_start = NextStep::Timeout(TimeoutKind::ScheduleToStart);
        let scene = task().starting_in("1m").deadline("1h").start_within("5m", Retry).scheduled();
        assert_next(&scene, "0s", NextStep::Available, Some("1m"));
        assert_next(&scene, "1m", to_start, Some("6m"));
        assert_next(&task().deadline("3m").start_within("5m", Retry).scheduled(), "1m", DEADLINE, Some("3m"));
        assert_next(&task().deadline("5m").start_within("5m", Retry).scheduled(), "1m", DEADLINE, Some("5m"));
        assert_next(&task().starting_in("2h").deadline("1h").scheduled(), "0s", DEADLINE, Some("1h"));
    }

    #[test]
    fn a_running_task_meets_the_first_of_its_timeouts_and_the_end_of_its_lease() {
        let heartbeat = NextStep::Timeout(TimeoutKind::Heartbeat);
        let to_close = NextStep::Timeout(TimeoutKind::StartToClose);
        assert_next(&task().scheduled().claim_for("a", "1m"), "0s", NextStep::LeaseExpiry, Some("1m"));
        assert_next(&task().heartbeats("20s", Retry).scheduled().claim("a"), "0s", heartbeat, Some("20s"));
        assert_next(&task().close_within("30s", Retry).scheduled().claim("a"), "0s", to_close, Some("30s"));
        assert_next(&task().deadline("40s").scheduled().claim("a"), "0s", DEADLINE, Some("40s"));
    }

    #[test]
    fn of_two_things_at_one_instant_the_one_that_takes_precedence_is_named() {
        let all = task().deadline("1m").heartbeats("1m", Retry).close_within("1m", Retry);
        assert_next(&all.scheduled().claim("a"), "0s", DEADLINE, Some("1m"));
        let inner = task().heartbeats("1m", Retry).close_within("1m", Retry).scheduled().claim("a");
        assert_next(&inner, "0s", NextStep::Timeout(TimeoutKind::Heartbeat), Some("1m"));
        let own = task().close_within("1m", Retry).scheduled().claim_for("a", "1m");
        assert_next(&own, "0s", NextStep::Timeout(TimeoutKind::StartToClose), Some("1m"));
    }

    #[test]
    fn an_ended_task_is_deleted_after_its_retention() {
        let scene = task().scheduled().at("1m").cancel();
        let expected = Next { what: NextStep::Deletion, at: Some(t("1m").plus(Limits::default().retention)) };
        assert_eq!(next(scene.record(), t("1m")), expected);
    }

    #[test]
    fn every_step_has_a_name_of_its_own() {
        let timeouts = [
            TimeoutKind::ScheduleToClose,
            TimeoutKind::ScheduleToStart,
            TimeoutKind::Heartbeat,
            TimeoutKind::StartToClose,
        ];
        let mut names: Vec<_> =
            [NextStep::Available, NextStep::Rate, NextStep::Claim, NextStep::LeaseExpiry, NextStep::Deletion]
                .into_iter()
                .chain(timeouts.map(NextStep::Timeout))
                .map(NextStep::as_str)
                .collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 9);
    }
}
