//! heartbeat: the worker is alive. It restarts the heartbeat timeout and, unless it only reports progress, extends
//! the lease. No other instant moves.

use crate::command::Context;
use crate::due_slot::SlotChange;
use crate::error::Reject;
use crate::gate::CLOCKS;
use crate::task::command::Heartbeat;
use crate::task::decision::{Decision, Reply};
use crate::task::transition;
use crate::task::{Running, State, Task};

use super::LeaseStatus;

pub(super) fn decide(task: &Task, heartbeat: &Heartbeat, context: &Context<'_>) -> Decision {
    let expired = transition::expire(task, context);
    let current = expired.as_ref().unwrap_or(task);
    let reject = match super::lease_status(current, &heartbeat.lease) {
        LeaseStatus::Current(running) => return extend_lease(task, running, heartbeat, context),
        LeaseStatus::Closed(_) => match current.ended() {
            Some(_) => Reject::AlreadyTerminal { status: current.status() },
            None => Reject::LeaseLost,
        },
        LeaseStatus::Refused(reject) => reject,
    };
    super::refuse_expired(task, expired, reject, context)
}

fn extend_lease(task: &Task, running: &Running, heartbeat: &Heartbeat, context: &Context<'_>) -> Decision {
    let now = context.now;
    let renewed =
        transition::lease_end(now, running.lease_length, running.start_to_close_at, task.deadline_at);
    // A lease never outlives the places that the attempt has.
    let renewed = match heartbeat.places_until {
        Some(until) => renewed.min(until.minus(CLOCKS)),
        None if task.gates().is_empty() => renewed,
        None => running.lease_expires_at,
    };
    let mut after = task.clone();
    after.progress = heartbeat.progress.or(task.progress);
    after.state = State::Running(Running {
        lease_expires_at: if heartbeat.extends_lease { renewed } else { running.lease_expires_at },
        heartbeat_at: task.timeouts.heartbeat.map(|timeout| now.plus(timeout.after)),
        ..running.clone()
    });
    super::update_in_slot(task, after, SlotChange::Keep, context, Ok(Reply::Extended))
}
