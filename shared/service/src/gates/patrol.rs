//! The tick at a gate where tasks wait: it finds places that a lost process left behind.

use tickover_core::decision::DueReply;
use tickover_core::gate::{self, Hold, Plan};
use tickover_core::id::{GateId, TaskId};
use tickover_core::task::Task;

use super::Act;
use crate::error::ServiceError;
use crate::service::Service;

/// Most holders that are looked at in one visit.
const LOOKED_AT: usize = 100;

impl Service {
    /// Clears and gives on the places of a gate at which tasks wait.
    pub(crate) async fn patrol_gate(&self, id: &GateId) -> Result<DueReply, ServiceError> {
        let is_due = self
            .with_retries(|| self.ports.store.gate(id))
            .await?
            .is_some_and(|gate| gate.due.is_some_and(|due| due.at <= self.now()));
        if !is_due {
            return Ok(DueReply::Nothing);
        }
        self.change_gate(id, "", &Act::Patrol).await?;
        Ok(DueReply::Rearmed)
    }

    /// Frees the places of attempts that have ended: their process died before it gave them up. A task that is pending
    /// keeps its place until it ends by itself: its claim may be under way.
    pub(super) async fn free_left_behind(&self, plan: &mut Plan) -> Result<(), ServiceError> {
        plan.touch();
        let taken = plan.gate.holders.iter().filter_map(|one| match one.hold {
            Hold::Taken { mark } => Some((one.task.clone(), one.incarnation, mark)),
            Hold::Called { .. } => None,
        });
        let taken: Vec<_> = taken.take(LOOKED_AT).collect();
        let mut ids: Vec<TaskId> = taken.iter().map(|(task, ..)| task.clone()).collect();
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() {
            return Ok(());
        }
        let (tasks, unreadable) = self.load_each(&ids).await?;
        for (id, incarnation, mark) in taken {
            let is_over = match tasks.iter().find(|task| task.id == id) {
                Some(task) => task.incarnation != incarnation || is_over(task, mark),
                None => unreadable == 0,
            };
            if is_over {
                self.rules.free_place(&mut plan.gate, &id, incarnation, mark);
            }
        }
        Ok(())
    }
}

/// Whether the attempt with this mark has ended. A claim that is still under way was decided on an earlier version, and
/// will be refused.
fn is_over(task: &Task, mark: u32) -> bool {
    let is_past = task.history.iter().any(|past| past.lease.is_some_and(|lease| gate::mark(&lease) == mark));
    let runs = task.running().is_some();
    task.ended().is_some() || (is_past && !runs)
}
