//! Starts by the rate of a key: reserved when a task is scheduled or claimed, and given back if they aren't needed.

use std::collections::BTreeMap;

use tickover_core::duration::Millis;
use tickover_core::flow::{Paced, Rate};
use tickover_core::gate::{self, AskedStart, Reservation};
use tickover_core::id::{Fingerprint, GateId};
use tickover_core::task::Task;
use tickover_core::time::Timestamp;

use super::{Act, Done, PlacesOfClaim};
use crate::error::ServiceError;
use crate::flow::paced;
use crate::service::Service;
use crate::warn_unless_logged;

/// How often a claim reserves a start again, because the record has changed since or too much time has passed.
const ROUNDS: u32 = 5;

impl Service {
    /// Reserves starts for tasks that are about to be scheduled, in their order: all of one key by one write. If that
    /// fails, tasks have none, and reserve one when they are claimed.
    pub(crate) async fn reserve_starts(&self, rates: &[Option<&Rate>]) -> Vec<Option<Paced>> {
        let mut starts = vec![None; rates.len()];
        let mut by_key: BTreeMap<&str, Vec<(usize, &Rate)>> = BTreeMap::new();
        for (nth, rate) in rates.iter().enumerate() {
            if let Some(rate) = rate {
                by_key.entry(rate.key.as_str()).or_default().push((nth, rate));
            }
        }
        for of_key in by_key.into_values() {
            let Some((_, first)) = of_key.first() else { continue };
            let (asked_at, Paced { key, text, .. }) = (self.now(), paced(first));
            let asked = |(_, rate): &(usize, &Rate)| AskedStart { pace: rate.pace(), asked_at };
            match self.reserve(&key, &text, &of_key.iter().map(asked).collect::<Vec<_>>(), false).await {
                Ok(reserved) => of_key.iter().zip(reserved).for_each(|((nth, rate), start)| {
                    starts[*nth] = Some(Paced { start: Some(start), ..paced(rate) });
                }),
                Err(error) => {
                    warn_unless_logged!(error; %error, "no starts reserved; the claims of the tasks will do it");
                }
            }
        }
        starts
    }

    async fn reserve(
        &self,
        key: &Fingerprint,
        text: &str,
        asked: &[AskedStart],
        first: bool,
    ) -> Result<Vec<Reservation>, ServiceError> {
        let act = Act::Reserve { asked, first };
        match Box::pin(self.change_gate(&GateId::from(key), text, &act)).await?.0 {
            Done::Reserved(starts) => Ok(starts),
            Done::Took(_) | Done::Found(_) => Ok(vec![]),
        }
    }

    /// The start for a claim that began at that instant: that of its record, if it is valid and not too long ago, or one
    /// before all that are reserved for later. Returns as well what must be given back if it isn't needed.
    pub(super) async fn start_for(
        &self,
        paced: &Paced,
        created_at: Timestamp,
        began_at: Timestamp,
    ) -> Result<(Option<Reservation>, Option<Paced>), ServiceError> {
        let id = GateId::from(&paced.key);
        if let Some(known) = paced.start
            && let Some(gate) = self.with_retries(|| self.ports.store.gate(&id)).await?
            && let Some(start_at) = gate::confirm_start(&gate, &known)
        {
            let start = Reservation { start_at, ..known };
            if !start.is_late(began_at, &paced.pace) {
                return Ok((Some(start), None));
            }
        }
        let asked = [AskedStart { pace: paced.pace, asked_at: created_at }];
        let start = self.reserve(&paced.key, &paced.text, &asked, true).await?.first().copied();
        Ok((start, Some(Paced { start, ..paced.clone() })))
    }

    /// Finds a start for a claim, and waits for it if it comes soon enough. Returns the record on which the claim is
    /// decided again: `None` if there is none any more.
    pub(crate) async fn start_for_claim(
        &self,
        task: &Task,
        taken: &mut PlacesOfClaim,
        began_at: Timestamp,
        patience: Millis,
    ) -> Result<Option<Task>, ServiceError> {
        taken.start_rounds += 1;
        if taken.start_rounds > ROUNDS {
            self.give_up_places(&task.id, Some(task), taken).await;
            return Err(ServiceError::Contended);
        }
        // A claim by an old message would use up a start for nothing, so the record is read first.
        let Some(stored) = self.load(&task.id).await? else { return Ok(None) };
        let is_same = (stored.incarnation, stored.version) == (task.incarnation, task.version);
        let Some(paced) = stored.paced().filter(|_| is_same) else { return Ok(Some(stored)) };
        (taken.start, taken.reserved) = self.start_for(paced, stored.created_at, began_at).await?;
        taken.start_of = taken.reserved.is_none().then_some(stored.version);
        self.wait_for_start(taken.start, patience).await;
        Ok(Some(stored))
    }

    /// Waits for a start if it comes soon enough.
    pub(super) async fn wait_for_start(&self, start: Option<Reservation>, patience: Millis) {
        if let Some(start) = start.filter(|start| start.start_at.since(self.now()) <= patience) {
            self.ports.clock.sleep_until(start.start_at).await;
        }
    }

    /// Gives the start back that a claim reserved, unless the record has it now or the attempt has begun with it.
    pub(crate) async fn settle_start(&self, task: &Task, taken: &mut PlacesOfClaim) {
        taken.start = None;
        let Some(start) = taken.reserved.take() else { return };
        let has_begun = task.running().is_some_and(|running| running.lease == taken.lease);
        if !has_begun && task.reserved() != start.start {
            self.give_start_back(&start).await;
        }
    }

    /// Gives a reserved start back.
    pub(crate) async fn give_start_back(&self, paced: &Paced) {
        let Some(start) = paced.start.filter(|start| start.makes_wait(self.now())) else { return };
        let act = Act::GiveBack(&start);
        let given = Box::pin(self.change_gate(&GateId::from(&paced.key), &paced.text, &act)).await;
        if let Err(error) = given {
            warn_unless_logged!(error; key = paced.text, %error, "start not given back; it is left out");
        }
    }
}
