//! Places at keys with limits, that tasks and executions take before they start, and give up when they stop.
//!
//! Each change is one conditional write of a key's record. Whoever makes places free offers them to the first of the line that
//! can come, in the same write: the end of an attempt, an operator, or the tick. Whoever comes to the line looks at the key
//! after that.

mod admit;
mod claim;
mod line;
mod look;
mod operate;
mod records;
mod start;
#[cfg(test)]
pub(crate) mod tests;

use std::num::NonZeroU16;

use tickover_core::decision::{Condition, FreePlaces, Write};
use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::flow::Gated;
use tickover_core::gate::{
    self, AskedLimit, AskedStart, GRACE, Gate, Places, Reservation, Take, Taken, version_mark,
};
use tickover_core::id::{GateId, Incarnation, LeaseId, Owner};
use tickover_core::task::Task;
use tickover_core::time::Timestamp;

use crate::contention::Tries;
use crate::error::ServiceError;
use crate::metric;
use crate::ports::StoreError;
use crate::service::Service;
use crate::warn_unless_logged;

pub(crate) use line::Section;
use look::Found;

pub(crate) use admit::{Admitted, Taking};
pub(crate) use claim::{PlacesOfClaim, PlacesTaken};
pub use operate::{LimitHolder, LimitView, WaitsAt};

/// The shortest bound of the wait before a change is tried again because others write the same key.
const CONFLICT_WAIT: Millis = Millis::new(4);

/// Most of those called in vain at whose homes one look of a tick looks.
const IN_VAIN_MAX: usize = 50;

/// What is done at a key.
enum Act<'a> {
    Take(&'a Take),
    /// A worker is alive.
    Extend {
        owner: &'a Owner,
        incarnation: Incarnation,
        mark: u32,
        until: Timestamp,
    },
    /// An attempt or an execution has ended: what was taken before this version of its record is free.
    Free {
        owner: &'a Owner,
        incarnation: Incarnation,
        before: u64,
    },
    /// The same of one that hasn't begun: it has ended, or another key has no place for it. What it was offered goes on.
    Withdraw {
        owner: &'a Owner,
        incarnation: Incarnation,
        before: u64,
        /// The mark of its branch, if it has come: its workers aren't absent.
        came: Option<u32>,
        /// The mark of its branch, if it doesn't wait any more. It may have been called in vain, and its messages lead to nothing
        /// now. The next of its branch may be called at once: its workers would find nothing else.
        left: Option<u32>,
    },
    /// Starts are to be spread by the key's rate: before those that are reserved for later, or after them.
    Reserve {
        asked: &'a [AskedStart],
        first: bool,
    },
    /// A reserved start isn't needed.
    GiveBack(&'a Reservation),
    /// An operator has all starts of the key forgotten.
    ResetRate,
    /// Some have come to its line, and perhaps a place has become free. The look begins at this branch: that of who came.
    Look {
        from: &'a str,
        /// The limit that the last of them was scheduled with.
        asked: Option<AskedLimit>,
    },
    /// A queue was resumed: the same, and who was called in vain, or just before the pause, is called again.
    LookAnew,
    /// A tick looks at it, because it has a line.
    Patrol,
    /// An operator sets the limit, or gives it back to the tasks.
    Pin(Option<NonZeroU16>),
    /// An operator takes its place from a task or an execution.
    Release(&'a Owner),
}

impl Act<'_> {
    /// Looks at the whole line.
    const LOOK: Self = Self::Look { from: "", asked: None };

    /// Whether offers to which nobody came go on to others: those who have come now, or whom a tick finds.
    const fn withdraws_late_calls(&self) -> bool {
        match self {
            Self::Look { from, .. } => !from.is_empty(),
            Self::Patrol => true,
            Self::Take(_)
            | Self::Extend { .. }
            | Self::Free { .. }
            | Self::Withdraw { .. }
            | Self::Reserve { .. }
            | Self::GiveBack(_)
            | Self::ResetRate
            | Self::LookAnew
            | Self::Pin(_)
            | Self::Release(_) => false,
        }
    }

    /// Whether it makes a record that isn't there.
    const fn creates(&self) -> bool {
        match self {
            Self::Take(_)
            | Self::Extend { .. }
            | Self::Reserve { .. }
            | Self::Pin(Some(_))
            | Self::Look { .. }
            | Self::LookAnew
            | Self::Patrol => true,
            Self::Free { .. }
            | Self::Withdraw { .. }
            | Self::GiveBack(_)
            | Self::ResetRate
            | Self::Pin(None)
            | Self::Release(_) => false,
        }
    }

    /// Whether this process's calls take turns with it at a key that others write: not if it may be part of a call that has
    /// the turn of another key, or make such calls.
    const fn takes_turns(&self) -> bool {
        !matches!(self, Self::Patrol)
    }

    /// Whether it offers free places to the line. Where places were free before, whoever can come has been called.
    fn offers(&self, was_full: bool) -> bool {
        match self {
            Self::Look { .. } | Self::LookAnew | Self::Patrol | Self::Withdraw { .. } => true,
            Self::Free { .. } | Self::Pin(_) | Self::Release(_) => was_full,
            Self::Take(_)
            | Self::Extend { .. }
            | Self::Reserve { .. }
            | Self::GiveBack(_)
            | Self::ResetRate => false,
        }
    }

    /// Whether one takes a place that waits in a line, and wasn't called here.
    fn comes_uncalled(&self, before: &Gate) -> bool {
        let Self::Take(take) = self else { return false };
        let has_been = before.holders.iter().any(|one| one.is_of(&take.owner, take.incarnation));
        take.in_line && !has_been
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
    /// Changes the record of a key, offers free places to the first of the line, and tells them.
    async fn change_gate(
        &self,
        id: &GateId,
        text: &str,
        act: &Act<'_>,
    ) -> Result<(Done, Option<Gate>), ServiceError> {
        let (done, record, mut looks_again) = self.write_gate(id, text, act).await?;
        while looks_again {
            // Whoever came to the line meanwhile may have seen a full key.
            looks_again = Box::pin(self.write_gate(id, text, &Act::LOOK)).await?.2;
        }
        // Somebody has come to the line, or leaves it.
        if matches!(act, Act::Look { .. } | Act::Withdraw { .. } | Act::Take(Take { in_line: true, .. }))
            && let Err(error) = Box::pin(self.measure_line(record.as_ref())).await
        {
            tracing::debug!(key = %id, %error, "line not counted");
        }
        Ok((done, record))
    }

    /// The same, by one write. Returns as well whether the line must be looked at once more: a place was made free, and
    /// nobody was found who could come.
    async fn write_gate(
        &self,
        id: &GateId,
        text: &str,
        act: &Act<'_>,
    ) -> Result<(Done, Option<Gate>, bool), ServiceError> {
        let (mut tries, mut turn) = (Tries::default(), None);
        loop {
            let before = self.with_retries(|| self.ports.store.gate(id)).await?;
            if before.is_none() && !act.creates() {
                return Ok((Done::Found(false), None, false));
            }
            let (now, nonce) = (self.now(), self.new_nonce());
            let new = || Gate::new(id.clone(), text.to_owned(), nonce, now);
            let mut after = before.clone().unwrap_or_else(new);
            let was_full = before.as_ref().is_some_and(|before| before.free() == 0);
            self.rules.clear_places(&mut after, now);
            let done = self.act(&mut after, act, now).await?;
            let offers = act.offers(was_full) && after.has_place();
            let found = if offers { self.first_in_line(&after, act, now).await? } else { Found::default() };
            let called = self.rules.offer_places(&mut after, &found.candidates, now);
            found.note_in(&mut after);
            let has_rest = offers && after.free() > 0;
            let (after_limit, after_free, after_absent) = (after.limit(), after.free(), after.absent.len());
            // A look makes no record of a key that nobody uses.
            let is_unused = after.pinned.is_none() && after.holders.is_empty() && after.rate.is_none();
            let record =
                if before.is_none() && is_unused { None } else { after.finish(before.as_ref(), nonce, now) };
            if let Some(record) = &record {
                let before = before.clone().map(Into::into);
                let write = Write::Put { before, after: record.clone().into(), condition: Condition::Same };
                match self.with_retries(|| self.ports.store.commit(std::slice::from_ref(&write))).await {
                    Ok(()) => metric::limit(record, None),
                    Err(StoreError::Conflict { .. }) => {
                        if turn.is_none() && act.takes_turns() {
                            turn = Some(self.turns.take(format!("key {id}")).await);
                        }
                        self.once_more_soon(&mut tries, CONFLICT_WAIT).await?;
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            drop(turn);
            // If one of the hints is lost, its place goes on to the next.
            let hints = found.records.hints(&called);
            if !hints.is_empty() {
                Box::pin(self.publish(hints)).await;
            }
            self.delete_left_over(id, &found.left_over).await;
            let is_cut = found.has_seen_many_in_vain();
            let withdrawn = before.as_ref().filter(|_| act.withdraws_late_calls());
            let late =
                withdrawn.iter().flat_map(|before| before.holders.iter().filter(|one| one.is_late(now)));
            let in_vain = late.map(|one| one.owner.clone()).take(IN_VAIN_MAX).collect();
            self.relieve(id, found.relieved_by(&called), in_vain).await;
            self.wait_again(found.lost).await;
            // A request may have raised the limit, or come from a queue that was called in vain: others of it wait. Or a
            // place had ended by itself, or is taken by one that was called at another key: nobody has been called for it.
            let has_more = after_free > 0
                && before.as_ref().is_some_and(|before| {
                    was_full
                        || before.limit() < after_limit
                        || before.absent.len() > after_absent
                        || act.comes_uncalled(before)
                });
            let looks_on = has_rest && (!called.is_empty() || !matches!(act, Act::Look { .. }));
            let looks_again = record.is_some() && (looks_on || has_more) || (is_cut && has_rest);
            return Ok((done, record.or(before), looks_again));
        }
    }

    async fn act(&self, gate: &mut Gate, act: &Act<'_>, now: Timestamp) -> Result<Done, ServiceError> {
        Ok(match act {
            Act::Take(take) => Done::Took(self.rules.take_place(gate, take, now)),
            Act::Extend { owner, incarnation, mark, until } => {
                Done::Found(gate::extend(gate, owner, *incarnation, *mark, *until, now))
            }
            Act::Free { owner, incarnation, before } => {
                self.rules.free_place(gate, owner, *incarnation, *before);
                Done::Found(true)
            }
            Act::Withdraw { owner, incarnation, before, came, left } => {
                gate.absent.retain(|one| Some(one.branch) != *came);
                if let Some(absent) = gate.absent.iter_mut().find(|one| Some(one.branch) == *left) {
                    absent.until = absent.until.min(now);
                }
                self.rules.withdraw_place(gate, owner, *incarnation, *before);
                Done::Found(true)
            }
            Act::Reserve { asked, first } => {
                let reserve = |one| self.rules.reserve_start(gate, one, *first, now);
                Done::Reserved(asked.iter().map(reserve).collect())
            }
            Act::GiveBack(start) => Done::Found(gate::give_start_back(gate, start, now)),
            Act::ResetRate => {
                gate::reset_rate(gate, now);
                Done::Found(true)
            }
            Act::Look { asked, .. } => {
                if act.withdraws_late_calls() {
                    gate.withdraw_late_calls(now);
                }
                if let Some(asked) = asked {
                    gate.note_limit(*asked);
                }
                Done::Found(true)
            }
            Act::LookAnew => {
                gate.withdraw_late_calls(now);
                gate.absent.clear();
                Done::Found(true)
            }
            Act::Patrol => {
                gate.withdraw_late_calls(now);
                self.free_left_behind(gate, now).await?;
                Done::Found(true)
            }
            Act::Pin(limit) => {
                gate.pinned = *limit;
                gate.pinned_by = limit.and(self.by.as_deref().cloned());
                Done::Found(true)
            }
            Act::Release(owner) => {
                let count = gate.holders.len();
                gate.holders.retain(|one| one.owner != **owner);
                Done::Found(gate.holders.len() < count)
            }
        })
    }

    /// Gives up what a task or an execution had at its keys. If that fails, a tick finds its places.
    pub(crate) async fn free_places(&self, freed: &FreePlaces) {
        let FreePlaces { owner, incarnation, gates, before, waited, start } = freed;
        let (incarnation, before) = (*incarnation, *before);
        for gated in gates {
            let act = match waited {
                Some(mark) => Act::Withdraw { owner, incarnation, before, came: None, left: Some(*mark) },
                None => Act::Free { owner, incarnation, before },
            };
            if let Err(error) = self.change_gate(&GateId::from(&gated.key), &gated.text, &act).await {
                warn_unless_logged!(error; %owner, %error, "place not given up; a tick will find it");
            }
        }
        if let Some(start) = start {
            self.give_start_back(start).await;
        }
    }

    /// Extends the places of an attempt before its lease. Returns `None` if the task needs none, or this isn't its attempt.
    pub(crate) async fn extend_places(
        &self,
        task: &Task,
        lease: LeaseId,
    ) -> Result<Option<Places>, ServiceError> {
        let Some(running) = task.running().filter(|running| running.lease == lease) else { return Ok(None) };
        if task.gates().is_empty() {
            return Ok(None);
        }
        let since = self.now();
        let until = since.plus(running.lease_length).plus(GRACE);
        let owner = Owner::Task(task.id.clone());
        for Gated { key, text, .. } in task.gates() {
            let (incarnation, mark) = (task.incarnation, version_mark(task.version));
            let act = Act::Extend { owner: &owner, incarnation, mark, until };
            let (done, _) = Box::pin(self.change_gate(&GateId::from(key), text, &act)).await?;
            if done != Done::Found(true) {
                // Its place had ended, and another task has it now.
                return Err(Reject::LeaseLost.into());
            }
        }
        Ok(Some(Places { since, until, version: task.version }))
    }
}
