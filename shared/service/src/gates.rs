//! Gates: places that tasks and executions take before they start, and give up when they stop.
//!
//! Each change is one conditional write of the gate. If places are free and tasks wait, the same write gives them to the
//! first of the line, whoever makes it: a claim, the end of an attempt, or the tick.

mod admit;
mod claim;
mod operate;
mod patrol;
mod standing;
mod start;

use std::num::NonZeroU16;

use tickover_core::decision::{FreePlaces, Write};
use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::flow::{Gated, Shards};
use tickover_core::gate::rate::Reservation;
use tickover_core::gate::{
    self, AskedStart, Behind, GRACE, Gate, LINE_MAX, Plan, RateState, Standing, Take, Taken, WAITER_KEPT,
    Waiter,
};
use tickover_core::id::{GateId, Incarnation, LeaseId, Owner};
use tickover_core::task::Task;
use tickover_core::time::Timestamp;

use crate::error::ServiceError;
use crate::metric;
use crate::ports::StoreError;
use crate::service::Service;
use crate::warn_unless_logged;

use standing::Records;

pub(crate) use admit::{Admitted, Taking};
pub(crate) use claim::{PlacesOfClaim, PlacesTaken};
pub use operate::{LimitHolder, LimitView, WaitsAt};

/// How often a change is tried again because others write the same gate.
const TRIES: u32 = 20;
const CONFLICT_WAIT: Millis = Millis::new(4);
/// Most waiting tasks whose records one change reads. A read takes no more than a hundred.
const READ_MAX: usize = 50;
/// The tasks that are read beyond those that there are places for: some may have ended.
const SPARE: usize = 4;

/// What is done at a gate.
enum Act<'a> {
    Take(&'a Take),
    /// A worker is alive.
    Extend {
        owner: &'a Owner,
        incarnation: Incarnation,
        mark: u32,
        until: Timestamp,
    },
    /// An attempt or an execution has ended.
    Free {
        owner: &'a Owner,
        incarnation: Incarnation,
        mark: u32,
    },
    /// A task or an execution has ended that waited.
    Withdraw {
        owner: &'a Owner,
        incarnation: Incarnation,
    },
    /// Starts are to be spread by the key's rate.
    Reserve(&'a [AskedStart]),
    /// A reserved start isn't needed.
    GiveBack(RateState),
    /// A tick looks at it.
    Patrol,
    /// An operator sets the limit, or gives it back to the tasks.
    Pin(Option<(NonZeroU16, Shards)>),
    /// An operator takes its place from a task or an execution.
    Release(&'a Owner),
}

impl Act<'_> {
    /// Whether it makes a gate that isn't there.
    const fn creates(&self) -> bool {
        match self {
            Self::Take(_) | Self::Extend { .. } | Self::Reserve(_) | Self::Pin(Some(_)) => true,
            Self::Free { .. }
            | Self::Withdraw { .. }
            | Self::GiveBack(_)
            | Self::Patrol
            | Self::Pin(None)
            | Self::Release(_) => false,
        }
    }
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Done {
    Took(Taken),
    /// The starts, in the order in which they were asked for.
    Reserved(Vec<Reservation>),
    /// Whether there was what the act was for.
    Found(bool),
}

impl Service {
    /// Changes a gate, gives free places to the first of the line, and sends their hints.
    async fn change_gate(
        &self,
        id: &GateId,
        text: &str,
        act: &Act<'_>,
    ) -> Result<(Done, Option<Gate>), ServiceError> {
        for tries in 0..TRIES {
            let before = self.with_retries(|| self.ports.store.gate(id)).await?;
            if before.is_none() && !act.creates() {
                return Ok((Done::Found(false), None));
            }
            let (now, nonce) = (self.now(), self.new_nonce());
            let new = || Gate::new(id.clone(), text.to_owned(), nonce, now);
            let mut plan = Plan::of(before.clone().unwrap_or_else(new));
            self.rules.clear_places(&mut plan, now);
            let mut done = self.act(&mut plan, act, now).await?;
            let mut records = Records::default();
            if plan.gate.should_call() {
                records = self.call_first(&mut plan, now).await?;
                done = self.take_if_called(&mut plan, act, now).unwrap_or(done);
            }
            let Some(record) = plan.finish(before.as_ref(), nonce, now, self.limits.due_shards) else {
                return Ok((done, before));
            };
            let writes = writes(&plan, &record, before.as_ref(), now);
            match self.with_retries(|| self.ports.store.commit(&writes)).await {
                Ok(()) => {
                    metric::limit(&record);
                    // If one of the hints is lost, its place goes on to the next.
                    let hints = records.hints(&plan.called);
                    if !hints.is_empty() {
                        Box::pin(self.publish(hints)).await;
                    }
                    return Ok((done, Some(record)));
                }
                Err(StoreError::Conflict { .. }) => self.back_off(tries, CONFLICT_WAIT).await,
                Err(error) => return Err(error.into()),
            }
        }
        Err(ServiceError::Contended)
    }

    async fn act(&self, plan: &mut Plan, act: &Act<'_>, now: Timestamp) -> Result<Done, ServiceError> {
        Ok(match act {
            Act::Take(take) => Done::Took(self.rules.take_place(plan, take, now)),
            Act::Extend { owner, incarnation, mark, until } => {
                Done::Found(gate::extend(&mut plan.gate, owner, *incarnation, *mark, *until))
            }
            Act::Free { owner, incarnation, mark } => {
                self.rules.free_place(&mut plan.gate, owner, *incarnation, *mark);
                Done::Found(true)
            }
            Act::Withdraw { owner, incarnation } => {
                gate::withdraw(&mut plan.gate, owner, *incarnation);
                Done::Found(true)
            }
            Act::Reserve(asked) => {
                let reserve = |one| self.rules.reserve_start(&mut plan.gate, one, now);
                Done::Reserved(asked.iter().map(reserve).collect())
            }
            Act::GiveBack(reservation) => Done::Found(gate::give_start_back(&mut plan.gate, *reservation)),
            Act::Patrol => {
                self.free_left_behind(plan).await?;
                Done::Found(true)
            }
            Act::Pin(limit) => {
                plan.gate.pinned = limit.map(|(share, _)| share);
                plan.gate.pinned_shards = limit.map(|(_, shards)| shards).unwrap_or_default();
                Done::Found(true)
            }
            Act::Release(owner) => {
                let count = plan.gate.holders.len();
                plan.gate.holders.retain(|one| one.owner != **owner);
                Done::Found(plan.gate.holders.len() < count)
            }
        })
    }

    /// Who came to the line and is called by the same write needs no hint: it is here.
    fn take_if_called(&self, plan: &mut Plan, act: &Act<'_>, now: Timestamp) -> Option<Done> {
        let Act::Take(take) = act else { return None };
        let is_called = |one: &Waiter| one.is_of(&take.owner, take.incarnation);
        plan.called.iter().any(is_called).then(|| {
            plan.called.retain(|one| !is_called(one));
            Done::Took(self.rules.take_place(plan, take, now))
        })
    }

    /// Gives free places to the first of the line. Returns the records that were read for it.
    async fn call_first(&self, plan: &mut Plan, now: Timestamp) -> Result<Records, ServiceError> {
        let mut behind = Behind { first: vec![], more: plan.gate.overflow };
        if plan.gate.overflow {
            let wanted = READ_MAX.min(plan.gate.free() + SPARE + LINE_MAX);
            let id = &plan.gate.id;
            let first = self.with_retries(|| self.ports.store.waiters(id, wanted)).await?;
            behind = Behind { more: first.len() >= wanted, first };
        }
        let count = READ_MAX.min(plan.gate.free() + SPARE);
        let line: Vec<Waiter> = gate::line(plan, &behind, count).into_iter().cloned().collect();
        let records = self.records_at_gate(line.iter().map(|one| &one.owner)).await?;
        let standings: Vec<Standing> = line.iter().map(|one| records.standing(one, now)).collect();
        self.rules.call_waiting(plan, &behind, &standings, now);
        Ok(records)
    }

    /// Gives up what a task or an execution had at its gates. If that fails, a tick finds its places.
    pub(crate) async fn free_places(&self, freed: &FreePlaces) {
        let FreePlaces { owner, incarnation, gates, of, start } = freed;
        for gated in gates {
            let act = match *of {
                Some(mark) => Act::Free { owner, incarnation: *incarnation, mark },
                None => Act::Withdraw { owner, incarnation: *incarnation },
            };
            if let Err(error) = self.change_gate(&GateId::from(&gated.key), &gated.text, &act).await {
                warn_unless_logged!(error; %owner, %error, "place not given up; a tick will find it");
            }
        }
        if let Some(start) = start {
            self.give_start_back(start).await;
        }
    }

    /// Extends the places of an attempt before its lease. Returns when the first of them ends; `None` if the task needs
    /// none, or this isn't its attempt.
    pub(crate) async fn extend_places(
        &self,
        task: &Task,
        lease: LeaseId,
    ) -> Result<Option<Timestamp>, ServiceError> {
        let Some(running) = task.running().filter(|running| running.lease == lease) else { return Ok(None) };
        if task.gates().is_empty() {
            return Ok(None);
        }
        let until = self.now().plus(running.lease_length).plus(GRACE);
        let owner = Owner::Task(task.id.clone());
        for Gated { key, text, .. } in task.gates() {
            let (incarnation, mark) = (task.incarnation, gate::mark(&lease));
            let act = Act::Extend { owner: &owner, incarnation, mark, until };
            let (done, _) = Box::pin(self.change_gate(&GateId::from(key), text, &act)).await?;
            if done != Done::Found(true) {
                // Its place had ended, and another task has it now.
                return Err(Reject::LeaseLost.into());
            }
        }
        Ok(Some(until))
    }
}

/// The writes of a change: items of those who wait first, so that whoever reads the gate finds all of them.
fn writes(plan: &Plan, record: &Gate, before: Option<&Gate>, now: Timestamp) -> Vec<Write> {
    let gate = || record.id.clone();
    let enters = plan.enters.iter().map(|waiter| Write::PutWaiter {
        gate: gate(),
        waiter: waiter.clone(),
        expires_at: now.plus(WAITER_KEPT),
    });
    let leaves =
        plan.leaves.iter().map(|waiter| Write::DeleteWaiter { gate: gate(), waiter: waiter.clone() });
    let put =
        Write::PutGate { record: Box::new(record.clone()), replaces: before.map(|before| before.nonce) };
    enters.chain([put]).chain(leaves).collect()
}
