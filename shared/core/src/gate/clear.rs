//! clear: places that have ended are free, whatever became of their tasks.

use crate::flow::Priority;
use crate::time::Timestamp;

use super::take::join;
use super::{Hold, Order, Plan, Waiter};

/// Removes the places that have ended. A task that was called and didn't come goes to the end of the line: perhaps no
/// worker reads its queue, and then it must not keep others from their place.
pub fn clear(plan: &mut Plan, now: Timestamp) {
    let (ended, left): (Vec<_>, Vec<_>) = plan.gate.holders.drain(..).partition(|one| one.until <= now);
    plan.gate.holders = left;
    for holder in ended {
        match holder.hold {
            Hold::Taken { .. } => {}
            Hold::Called { .. } => {
                let order = Order { priority: Priority::Low, since: now };
                join(plan, Waiter { owner: holder.owner, incarnation: holder.incarnation, order });
            }
        }
    }
}
