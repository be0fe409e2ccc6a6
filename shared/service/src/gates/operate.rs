//! What operators see of a key, and what they change.

use std::num::NonZeroU16;

use tickover_core::by::By;
use tickover_core::execution::{Execution, ExecutionState};
use tickover_core::flow::{Gated, Pace};
use tickover_core::gate::line::PARTS;
use tickover_core::gate::{self, Gate, Waiter};
use tickover_core::id::{FlowKey, GateId, Owner};
use tickover_core::task::{State, Task};
use tickover_core::time::Timestamp;

use super::Act;
use super::records::Standing;
use crate::error::ServiceError;
use crate::flow::gate_digest;
use crate::service::Service;
use crate::warn_unless_logged;

/// Most waiting tasks that are listed.
const WAITING_MAX: usize = 100;
/// Most waiting tasks among which a position is counted.
const COUNTED_MAX: usize = 100;
/// Most items of a page of a line, and most such pages.
const PAGE_READ_MAX: usize = 1_000;
const LINE_PAGES: usize = 10;
/// Most lines that are looked at for the list of keys.
const LOOKED_AT_MAX: usize = 500;

/// Most keys that are listed.
const LISTED_MAX: usize = 50;

/// A limit as it stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitView {
    /// The key, or as much of it as is kept.
    pub key: String,
    /// How many may run at once; absent if only a rate was asked for.
    pub limit: Option<NonZeroU16>,
    /// Whether an operator has set it.
    pub pinned: bool,
    /// Who has.
    pub pinned_by: Option<By>,
    pub holders: Vec<LimitHolder>,
    /// The first that wait, in their order.
    pub waiting: Vec<Owner>,
    /// Whether more wait than these, or some of these stand for all of their queue and their other keys.
    pub more: bool,
    /// How fast its tasks start, and when one may that is scheduled now.
    pub rate: Option<(Pace, Timestamp)>,
}

/// A task or an execution that has a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitHolder {
    pub owner: Owner,
    /// When the place ends if nothing extends it; absent for an execution, which keeps it until its outcome is final.
    pub until: Option<Timestamp>,
    /// Whether it waited, was called, and hasn't come yet.
    pub called: bool,
}

/// The key that holds a task or an execution back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitsAt {
    pub limit: LimitView,
    /// Its position in the line, from 1; absent if it is behind all that are counted, the line has more than was read, it
    /// isn't in the line yet, or if another stands there for it, because the line in which it waits is that of another of its
    /// keys.
    pub position: Option<usize>,
}

impl Service {
    /// A key's limit, who has its places and who waits. A key that no task has needed lately has none of them.
    pub async fn limit(&self, key: &FlowKey) -> Result<LimitView, ServiceError> {
        let found = self.view_of(&GateId::from(&gate_digest(key))).await?.unwrap_or_default();
        Ok(LimitView { key: key.as_str().to_owned(), ..found })
    }

    /// The keys at which tasks or executions wait, each as by itself, and whether there may be more: after 50 of them, or after
    /// 500 at whose lines was looked, because whoever runs may be in a line too. Each costs three reads, and up to ten if many branches wait.
    pub async fn full_keys(&self) -> Result<(Vec<LimitView>, bool), ServiceError> {
        let (mut found, mut looked_at) = (vec![], 0);
        for part in 0..PARTS {
            let mut last: Option<GateId> = None;
            while let Some(gate) =
                self.with_retries(|| self.ports.store.next_line(part, last.as_ref())).await?
            {
                if found.len() >= LISTED_MAX || looked_at >= LOOKED_AT_MAX {
                    return Ok((found, true));
                }
                looked_at += 1;
                match self.view_of(&gate).await {
                    // A line may still be listed for a moment after the last one has left it.
                    Ok(limit) => found.extend(limit.filter(|limit| !limit.waiting.is_empty())),
                    Err(error) if error.is_retryable() => return Err(error),
                    Err(error) => warn_unless_logged!(error; key = %gate, %error, "its line can't be shown"),
                }
                last = Some(gate);
            }
        }
        found.sort_by(|one, other| one.key.cmp(&other.key));
        Ok((found, false))
    }

    /// Sets a key's limit, whatever tasks ask for; `None` gives it back to them. A lower limit takes no place away.
    pub async fn set_limit(
        &self,
        key: &FlowKey,
        limit: Option<NonZeroU16>,
    ) -> Result<LimitView, ServiceError> {
        let id = GateId::from(&gate_digest(key));
        Box::pin(self.change_gate(&id, &gate::shown(key), &Act::Pin(limit))).await?;
        self.limit(key).await
    }

    /// Takes its place at a key from a task or an execution, if it has one. A task loses its attempt at its next heartbeat,
    /// unless a place is free then. Until then, and with an execution, more than the limit may run.
    pub async fn release_place(&self, key: &FlowKey, owner: &Owner) -> Result<LimitView, ServiceError> {
        let id = GateId::from(&gate_digest(key));
        Box::pin(self.change_gate(&id, &gate::shown(key), &Act::Release(owner))).await?;
        self.limit(key).await
    }

    /// Forgets all starts by a key's rate: the next one comes at once. Whoever has one reserved gets another when it comes.
    pub async fn reset_rate(&self, key: &FlowKey) -> Result<LimitView, ServiceError> {
        let id = GateId::from(&gate_digest(key));
        Box::pin(self.change_gate(&id, &gate::shown(key), &Act::ResetRate)).await?;
        self.limit(key).await
    }

    /// The key that a pending task waits at. Reads nothing for a task without keys, or one that can't start yet.
    pub(crate) async fn waits_at(&self, task: &Task) -> Result<Option<WaitsAt>, ServiceError> {
        let is_ready = match &task.state {
            State::Pending(pending) => task.is_ready(pending, self.now()),
            // Its worker was lost, and it waits for another place.
            State::Running(_) => task.waits_in_line(),
            State::Ended(_) => false,
        };
        if !is_ready {
            return Ok(None);
        }
        self.full_gate(&task.id.clone().into(), task.gates()).await
    }

    /// The key that an execution waits at before its first turn. Reads nothing for one without keys.
    pub(crate) async fn turn_waits_at(&self, execution: &Execution) -> Result<Option<WaitsAt>, ServiceError> {
        let is_ready = match &execution.state {
            ExecutionState::Pending(ready) => execution.is_ready(ready, self.now()),
            ExecutionState::Running(_)
            | ExecutionState::Waiting(_)
            | ExecutionState::Closing(_)
            | ExecutionState::Ended(_) => false,
        };
        let has_places = execution.admission.as_deref().is_some_and(|admission| admission.held.is_some());
        if !is_ready || has_places || execution.needs_operator() {
            return Ok(None);
        }
        // Boxed, because the future of each description would contain all of this, and few executions wait for a place.
        Box::pin(self.full_gate(&execution.id.clone().into(), execution.gates())).await
    }

    /// The first of these keys that has no place for it. If all have one, it is on its way from the line in which it stands.
    async fn full_gate(&self, owner: &Owner, gates: &[Gated]) -> Result<Option<WaitsAt>, ServiceError> {
        let mut home = None;
        for gated in gates {
            let Some((limit, line, is_cut)) = self.line_of(&GateId::from(&gated.key), COUNTED_MAX).await?
            else {
                continue;
            };
            let has_place = limit.holders.iter().any(|one| one.owner == *owner);
            let is_full = limit.limit.is_some_and(|most| limit.holders.len() >= usize::from(most.get()));
            let found = line.iter().position(|one| one.owner == *owner).map(|at| at + 1);
            let waits_at = WaitsAt { limit, position: found.filter(|_| !is_cut) };
            match (has_place, is_full, found) {
                (false, true, _) => return Ok(Some(waits_at)),
                (false, false, Some(_)) => home = Some(waits_at),
                (_, _, _) => {}
            }
        }
        Ok(home)
    }

    async fn view_of(&self, id: &GateId) -> Result<Option<LimitView>, ServiceError> {
        Ok(self.line_of(id, WAITING_MAX).await?.map(|(limit, ..)| limit))
    }

    /// The first items of each branch of a line, as many as are asked for at least. Returns as well whether the
    /// line has more than was read.
    async fn first_of_each(&self, id: &GateId, most: usize) -> Result<(Vec<Waiter>, bool), ServiceError> {
        let (mut found, mut after, size) = (Vec::<Waiter>::new(), String::new(), most.min(PAGE_READ_MAX));
        for _ in 0..LINE_PAGES {
            let page = self.with_retries(|| self.ports.store.waiters(id, &after, size)).await?;
            let is_last = page.len() < size;
            found.extend(page);
            let Some(last) = found.last() else { return Ok((found, false)) };
            let of_branch = found.iter().rev().take_while(|one| one.branch == last.branch).count();
            let is_enough = of_branch >= most && last.home.is_none();
            after = if is_enough { last.branch.end() } else { last.sort_key() };
            if is_last {
                return Ok((found, false));
            }
        }
        Ok((found, true))
    }

    /// A key, the first that wait there, in their order, and whether others may be before them.
    async fn line_of(
        &self,
        id: &GateId,
        most: usize,
    ) -> Result<Option<(LimitView, Vec<Waiter>, bool)>, ServiceError> {
        let gate = self.with_retries(|| self.ports.store.gate(id)).await?;
        let taken = gate.as_ref().map_or(0, |gate| gate.holders.len());
        let (mut waiting, is_cut) = self.first_of_each(id, most + taken + 1).await?;
        let gate = match gate {
            Some(gate) => gate,
            None if waiting.is_empty() => return Ok(None),
            None => self.gate_of_line(id, &waiting).await?,
        };
        waiting.retain(|one| !gate.has(one));
        waiting.sort_by_key(Waiter::order);
        let more = is_cut || waiting.len() > most;
        waiting.truncate(most);
        let now = self.now();
        let stands_in = |one: &&Waiter| one.home.is_some();
        let records = self.records_at_gate(waiting.iter().filter(stands_in).map(|one| &one.owner)).await?;
        // Nobody deletes a stand-in before the key has a place.
        waiting.retain(|one| one.home.is_none() || records.standing(one, now) != Standing::LeftOver);
        let holder = |one: &gate::Holder| {
            let called = one.is_called();
            let until = Some(one.until).filter(|_| called || one.owner.task().is_some());
            LimitHolder { owner: one.owner.clone(), until, called }
        };
        let view = LimitView {
            limit: gate.limit(),
            pinned: gate.pinned.is_some(),
            holders: gate.holders.iter().filter(|one| one.until > now).map(holder).collect(),
            more: more || waiting.len() > WAITING_MAX || waiting.iter().any(|one| one.home.is_some()),
            waiting: waiting.iter().take(WAITING_MAX).map(|one| one.owner.clone()).collect(),
            rate: gate.pace.zip(gate::next_start(&gate, now)),
            pinned_by: gate.pinned_by,
            key: gate.text,
        };
        Ok(Some((view, waiting, is_cut)))
    }

    /// A key that nobody has used for so long that its record is gone, though some wait: all of them of paused queues, or for
    /// another key.
    async fn gate_of_line(&self, id: &GateId, waiting: &[Waiter]) -> Result<Gate, ServiceError> {
        let mut gate = Gate::new(id.clone(), String::new(), self.new_nonce(), self.now());
        let first = &waiting[..waiting.len().min(1)];
        let records = self.records_at_gate(first.iter().map(|one| &one.owner)).await?;
        if let Some((limit, text)) = first.first().and_then(|one| records.asked_limit(one, id)) {
            gate.note_limit(limit);
            gate.text = text;
        }
        Ok(gate)
    }
}
