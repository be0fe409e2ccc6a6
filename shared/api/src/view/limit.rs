//! A limit's view for callers.

use tickover_core::flow::Pace;
use tickover_service::gates::{LimitHolder, LimitView, WaitsAt};
use tickover_wire::answer;

/// Most that are shown, of those with places and of those that wait.
const SHOWN_MAX: usize = 100;

/// The view of a limit.
pub fn limit(found: LimitView) -> answer::LimitView {
    let LimitView { key, limit, pinned, pinned_by, holders, waiting, more, rate } = found;
    let holder = |LimitHolder { owner, until, called }| {
        let answer::LimitOwnerView { task, execution } = owner.into();
        answer::LimitHolderView { task, execution, until: until.map(Into::into), called }
    };
    answer::LimitView {
        key,
        limit: limit.map(Into::into),
        pinned,
        pinned_by: pinned_by.as_ref().map(super::by),
        taken: holders.len(),
        holders: holders.into_iter().take(SHOWN_MAX).map(holder).collect(),
        waiting: waiting.len(),
        more,
        next: waiting.into_iter().take(SHOWN_MAX).map(Into::into).collect(),
        rate: rate.map(|(Pace { limit, per, burst }, next_start_at)| answer::RateView {
            limit: limit.get(),
            per: per.into(),
            burst: burst.get(),
            next_start_at: next_start_at.into(),
        }),
    }
}

/// The view of what holds a task or an execution back.
pub(super) fn waits_at(found: WaitsAt) -> answer::WaitsAtView {
    answer::WaitsAtView { limit: limit(found.limit), position: found.position }
}
