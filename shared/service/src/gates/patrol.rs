//! The tick at a gate where tasks wait: it finds places that a lost process left behind.

use tickover_core::decision::DueReply;
use tickover_core::gate::{Hold, Plan};
use tickover_core::id::GateId;

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

    /// Frees the places of attempts and executions that have ended: their process died before it gave them up.
    pub(super) async fn free_left_behind(&self, plan: &mut Plan) -> Result<(), ServiceError> {
        plan.touch();
        let taken = plan.gate.holders.iter().filter_map(|one| match one.hold {
            Hold::Taken { mark } => Some((one.owner.clone(), one.incarnation, mark)),
            Hold::Called { .. } => None,
        });
        let taken: Vec<_> = taken.take(LOOKED_AT).collect();
        let records = self.records_at_gate(taken.iter().map(|(owner, ..)| owner)).await?;
        for (owner, incarnation, mark) in taken {
            if records.is_left_behind(&owner, incarnation, mark) {
                self.rules.free_place(&mut plan.gate, &owner, incarnation, mark);
            }
        }
        Ok(())
    }
}
