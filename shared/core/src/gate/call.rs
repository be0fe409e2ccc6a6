//! call: places are free and tasks wait. The first of the line get them, and are told by a hint.

use crate::time::Timestamp;

use super::{CALL, Hold, Holder, LINE_MAX, Plan, Waiter};

/// Every so many versions, the one that has waited the longest comes first, whatever its priority.
const LONGEST_FIRST_EACH: u64 = 10;

/// The own record of a task or an execution that waits, as far as the line must know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It can start.
    Ready,
    /// It has ended, has begun already, or waits for a later instant or an operator: then it comes again by itself.
    Gone,
}

/// Tasks with an item of their own that wait behind those in the record.
#[derive(Clone, Debug, Default)]
pub struct Behind {
    /// The first of them, in their order.
    pub first: Vec<Waiter>,
    /// Whether there may be more.
    pub more: bool,
}

/// The first of the line: as many as `count`.
pub fn line<'a>(plan: &'a Plan, behind: &'a Behind, count: usize) -> Vec<&'a Waiter> {
    let mut line: Vec<&Waiter> = plan.gate.waiters.iter().chain(&behind.first).collect();
    if plan.gate.version.is_multiple_of(LONGEST_FIRST_EACH)
        && let Some(at) = (0..line.len()).min_by_key(|at| line[*at].order.since)
    {
        let longest = line.remove(at);
        line.insert(0, longest);
    }
    line.truncate(count);
    line
}

/// Gives free places to the first of the line that are ready, and moves others into the record. `standings` are those
/// of the first of the line, in their order: nobody behind them is called.
pub fn call(plan: &mut Plan, behind: &Behind, standings: &[Standing], now: Timestamp) {
    let known: Vec<(Waiter, Standing)> =
        line(plan, behind, standings.len()).into_iter().cloned().zip(standings.iter().copied()).collect();
    for (waiter, standing) in known {
        let has_place = plan.gate.holders.iter().any(|one| one.is_of(&waiter.owner, waiter.incarnation));
        let ready = standing == Standing::Ready && !has_place;
        if ready && plan.gate.free() == 0 {
            break;
        }
        plan.gate.waiters.retain(|one| *one != waiter);
        if behind.first.contains(&waiter) {
            plan.leaves.push(waiter.clone());
        }
        if ready {
            let Waiter { owner, incarnation, order } = waiter.clone();
            let (until, hold) = (now.plus(CALL), Hold::Called { order });
            plan.gate.holders.push(Holder { owner, incarnation, until, hold });
            plan.called.push(waiter);
        }
    }
    refill(plan, behind);
}

/// Those with an item of their own move into the record, where there is room.
fn refill(plan: &mut Plan, behind: &Behind) {
    if !plan.gate.overflow {
        return;
    }
    let waiting: Vec<Waiter> =
        behind.first.iter().filter(|one| !plan.leaves.contains(one)).cloned().collect();
    let mut left = waiting.len();
    if plan.gate.waiters.is_empty() {
        for waiter in waiting.into_iter().take(LINE_MAX) {
            plan.gate.waiters.push(waiter.clone());
            if plan.gate.waiters.len() > 1 && !plan.gate.has_room() {
                plan.gate.waiters.pop();
                break;
            }
            left -= 1;
            plan.leaves.push(waiter);
        }
    }
    plan.gate.overflow = behind.more || left > 0;
}
