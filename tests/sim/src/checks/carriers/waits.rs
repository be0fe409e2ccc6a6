//! What should lead to a record that waits to be started, by that record.

use tickover_core::execution::{Execution, ExecutionState};
use tickover_core::gate::Waiting;
use tickover_core::id::{GateId, Owner, QueueName};
use tickover_core::parent::Parent;
use tickover_core::parked::Parked;
use tickover_core::task::{Ending, State, Task};
use tickover_core::time::Timestamp;

/// What should lead to a record, by that record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Carrier {
    Message,
    /// The tick sends its message in time.
    Index,
    /// The end of a pause of its queue, or of its execution, sends its message.
    Resume,
    /// Whoever gives it a place sends its message: this item says where it waits.
    Item(GateId, String),
    Nothing,
}

/// A record that waits to be started.
pub(super) struct Waits {
    pub(super) owner: Owner,
    pub(super) queue: QueueName,
    /// The execution whose step or child it is.
    pub(super) parent: Option<Parent>,
    /// An older hint leads to nothing.
    pub(super) since_version: u64,
    /// Whether its message was sent again since the wait began.
    pub(super) again: bool,
    /// Whether its attempt has timed out, and another one follows.
    pub(super) timed_out: bool,
    pub(super) carrier: Carrier,
}

impl Waits {
    /// Whether it waits on for the message that was sent before: a start that times out sends no other one.
    pub(super) fn goes_on_from(&self, before: &Self) -> bool {
        let is_task = self.owner.task().is_some();
        let by_message = self.carrier == Carrier::Message && before.carrier == Carrier::Message;
        is_task && by_message && !self.again && self.since_version == before.since_version
    }
}

pub(super) fn of_task(task: &Task) -> Option<Waits> {
    let State::Pending(pending) = &task.state else { return None };
    let in_index = pending.hint_later.then(|| task.due.is_some_and(|due| due.at <= pending.available_at));
    let carrier = carrier(in_index, task.parked, &task.waiting());
    let parent = task.parent.clone();
    let since_version = pending.since_version;
    let (owner, queue, again) = (task.id.clone().into(), task.queue.clone(), task.hinted_at.is_some());
    let last = task.history.last().filter(|_| task.revived_at.is_none());
    let timed_out = last.is_some_and(|past| matches!(past.ending, Ending::TimedOut(_)));
    Some(Waits { owner, queue, parent, since_version, again, timed_out, carrier })
}

pub(super) fn of_execution(execution: &Execution) -> Option<Waits> {
    let ExecutionState::Pending(ready) = &execution.state else { return None };
    let is_early = |at| at <= ready.available_at;
    let in_index = ready.hint_later.then(|| execution.due.is_some_and(|due| is_early(due.at)));
    let carrier = carrier(in_index, execution.parked, &execution.waiting());
    let parent = execution.parent.clone();
    let owner = Owner::Execution(execution.id.clone());
    let queue = execution.queue.clone();
    let waits = Waits { owner, queue, parent, since_version: 0, again: false, timed_out: false, carrier };
    // Otherwise its operator leads to it.
    (!execution.needs_operator()).then_some(waits)
}

/// `in_index` is present if the tick is to send its message, and says whether its due slot is early enough.
fn carrier(in_index: Option<bool>, parked: Parked, waiting: &Waiting<'_>) -> Carrier {
    match (in_index, parked) {
        (Some(true), _) => Carrier::Index,
        (Some(false), _) => Carrier::Nothing,
        (None, Parked::No) => Carrier::Message,
        (None, Parked::Paused) => Carrier::Resume,
        (None, Parked::InLine(_)) => waiting
            .item(Timestamp::EPOCH)
            .map_or(Carrier::Nothing, |(gate, waiter)| Carrier::Item(gate, waiter.sort_key())),
    }
}
