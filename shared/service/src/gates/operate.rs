//! What operators see of a gate, and what they change.

use std::num::{NonZeroU16, NonZeroU32};

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tickover_core::error::Reject;
use tickover_core::execution::{Execution, ExecutionState};
use tickover_core::flow::{Gated, Pace, SHARDS_MAX, Shards};
use tickover_core::gate::{self, Gate, Waiter};
use tickover_core::id::{FlowKey, GateId, Owner};
use tickover_core::task::{State, Task};
use tickover_core::time::Timestamp;

use super::Act;
use crate::error::ServiceError;
use crate::flow::shard_digest;
use crate::service::Service;

/// Most waiting tasks that are counted.
const COUNTED_MAX: usize = 100;

/// A limit as it stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitView {
    /// The key, or as much of it as is kept.
    pub key: String,
    /// How many may run at once; absent if only a rate was asked for.
    pub limit: Option<NonZeroU16>,
    /// Among how many records the limit and the rate are divided.
    pub shards: Shards,
    /// Whether an operator has set it.
    pub pinned: bool,
    pub holders: Vec<LimitHolder>,
    /// The first that wait, in their order.
    pub waiting: Vec<Owner>,
    /// Whether more wait than these.
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

/// The gate that holds a task or an execution back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitsAt {
    pub limit: LimitView,
    /// Its position in the line, from 1; absent if it is behind all that are counted, or isn't in the line yet.
    pub position: Option<usize>,
}

impl Service {
    /// A key's limit, who has its places and who waits, over all its shards. A key that no task has needed lately has none
    /// of them.
    pub async fn limit(&self, key: &FlowKey) -> Result<LimitView, ServiceError> {
        let shards = self.shards_of(key).await?;
        Ok(LimitView { key: key.as_str().to_owned(), ..added_up(&shards, self.now()) })
    }

    /// Sets a key's limit, whatever tasks ask for; `None` gives it back to them. A lower limit takes no place away.
    ///
    /// It is divided among as many shards as the latest request of the key has, or among more, if `shards` says so. It must
    /// be at least their number.
    pub async fn set_limit(
        &self,
        key: &FlowKey,
        limit: Option<NonZeroU16>,
        shards: Option<Shards>,
    ) -> Result<LimitView, ServiceError> {
        let known = self.shards_of(key).await?;
        let asked = latest(&known).map_or(Shards::ONE, Gate::shards);
        let shards = shards.map_or(asked, |given| given.max(asked));
        let count = u16::from(shards.get());
        if limit.is_some_and(|limit| limit.get() < count) {
            let text = format!("must be at least the number of the key's shards, {shards}");
            return Err(Reject::field("limit", text).into());
        }
        for shard in 0..SHARDS_MAX {
            let is_pinned = known.iter().any(|one| one.shard == shard && one.gate.pinned.is_some());
            let share = limit.filter(|_| shard < shards.get()).and_then(|limit| {
                let rest = u16::from(u16::from(shard) < limit.get() % count);
                NonZeroU16::new(limit.get() / count + rest)
            });
            if share.is_some() || is_pinned {
                let (id, text) = (GateId::from(&shard_digest(key, shard)), gate::shown(key));
                let act = Act::Pin(share.map(|share| (share, shards)));
                Box::pin(self.change_gate(&id, &text, &act)).await?;
            }
        }
        self.limit(key).await
    }

    /// Takes its place at a key from a task or an execution, if it has one. It goes on: more than the limit may then run.
    pub async fn release_place(&self, key: &FlowKey, owner: &Owner) -> Result<LimitView, ServiceError> {
        for ShardOfKey { gate, .. } in self.shards_of(key).await? {
            if gate.holders.iter().any(|one| one.owner == *owner) {
                Box::pin(self.change_gate(&gate.id, &gate.text, &Act::Release(owner))).await?;
            }
        }
        self.limit(key).await
    }

    /// The records of a key. How many it has is only known from them, so it looks for all that there may be.
    async fn shards_of(&self, key: &FlowKey) -> Result<Vec<ShardOfKey>, ServiceError> {
        let read = (0..SHARDS_MAX).map(|shard| self.shard(GateId::from(&shard_digest(key, shard)), shard));
        let found: Vec<_> = stream::iter(read).buffered(usize::from(SHARDS_MAX)).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// The gate that a pending task waits at. Reads nothing for a task without gates, or one that can't start yet.
    pub(crate) async fn waits_at(&self, task: &Task) -> Result<Option<WaitsAt>, ServiceError> {
        let is_ready = match &task.state {
            State::Pending(pending) => pending.available_at <= self.now(),
            State::Running(_) | State::Ended(_) => false,
        };
        if !is_ready {
            return Ok(None);
        }
        self.full_gate(&task.id.clone().into(), task.gates()).await
    }

    /// The gate that an execution waits at before its first turn. Reads nothing for one without gates.
    pub(crate) async fn turn_waits_at(&self, execution: &Execution) -> Result<Option<WaitsAt>, ServiceError> {
        let is_ready = match &execution.state {
            ExecutionState::Pending(ready) => ready.available_at <= self.now(),
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

    /// The first of these gates that has no place for it.
    async fn full_gate(&self, owner: &Owner, gates: &[Gated]) -> Result<Option<WaitsAt>, ServiceError> {
        for gated in gates {
            let Some(found) = self.shard(GateId::from(&gated.key), 0).await? else { continue };
            let limit = LimitView { key: found.gate.text.clone(), ..found.view(self.now()) };
            let position = limit.waiting.iter().position(|one| one == owner).map(|at| at + 1);
            let has_place = limit.holders.iter().any(|one| one.owner == *owner);
            let is_full = limit.limit.is_some_and(|most| limit.holders.len() >= usize::from(most.get()));
            if !has_place && (position.is_some() || is_full) {
                return Ok(Some(WaitsAt { limit, position }));
            }
        }
        Ok(None)
    }

    /// The record of a key or of one of its shards.
    async fn shard(&self, id: GateId, shard: u8) -> Result<Option<ShardOfKey>, ServiceError> {
        let Some(gate) = self.with_retries(|| self.ports.store.gate(&id)).await? else { return Ok(None) };
        let called = gate.holders.iter().filter(|one| one.is_called()).count();
        let waiting = self.with_retries(|| self.ports.store.waiters(&id, "", COUNTED_MAX + called)).await?;
        let waiting = waiting.into_iter().filter(|one| !gate.has(one)).take(COUNTED_MAX).collect();
        Ok(Some(ShardOfKey { shard, gate, waiting }))
    }
}

/// A shard of a key, and those who wait there.
struct ShardOfKey {
    shard: u8,
    gate: Gate,
    waiting: Vec<Waiter>,
}

impl ShardOfKey {
    fn view(&self, now: Timestamp) -> LimitView {
        let holder = |one: &gate::Holder| {
            let called = one.is_called();
            let until = Some(one.until).filter(|_| called || one.owner.task().is_some());
            LimitHolder { owner: one.owner.clone(), until, called }
        };
        let Self { gate, waiting, .. } = self;
        LimitView {
            key: String::new(),
            limit: gate.limit(),
            shards: gate.shards(),
            pinned: gate.pinned.is_some(),
            holders: gate.holders.iter().filter(|one| one.until > now).map(holder).collect(),
            waiting: waiting.iter().map(|one| one.owner.clone()).collect(),
            more: waiting.len() >= COUNTED_MAX,
            rate: gate.pace.zip(gate::next_start(gate, now)),
        }
    }
}

/// The one whose limit counts: that of an operator, or else the one that was asked for last.
fn latest(shards: &[ShardOfKey]) -> Option<&Gate> {
    let limited = shards.iter().map(|one| &one.gate).filter(|gate| gate.limit().is_some());
    limited.max_by_key(|gate| (gate.pinned.is_some(), gate.asked_at))
}

/// What all shards of a key are together. One that has no record has a share like the others.
fn added_up(shards: &[ShardOfKey], now: Timestamp) -> LimitView {
    let views: Vec<LimitView> = shards.iter().map(|one| one.view(now)).collect();
    let mut waiting: Vec<&Waiter> = shards.iter().flat_map(|one| &one.waiting).collect();
    waiting.sort_by_key(|one| one.order());
    let limited = latest(shards);
    let limit = limited.and_then(|latest| {
        let of = |shard| shards.iter().find(|one| one.shard == shard).and_then(|one| one.gate.limit());
        let share = latest.limit.or(latest.pinned).map_or(0, NonZeroU16::get);
        NonZeroU16::new(
            (0..latest.shards().get()).map(|shard| of(shard).map_or(share, NonZeroU16::get)).sum(),
        )
    });
    let paced = shards.iter().map(|one| &one.gate).filter(|gate| gate.pace.is_some());
    let paced = paced.max_by_key(|gate| gate.paced_at);
    let rate = paced.and_then(|latest| {
        let times = |share: NonZeroU32| share.saturating_mul(latest.pace_shards.into());
        let pace = latest.pace?;
        let whole = Pace { limit: times(pace.limit), burst: times(pace.burst), ..pace };
        let known = shards.iter().filter(|one| one.shard < latest.pace_shards.get());
        let has_new = known.clone().count() < usize::from(latest.pace_shards.get());
        let next = known.filter_map(|one| gate::next_start(&one.gate, now)).min();
        Some((whole, next.filter(|_| !has_new).unwrap_or(now)))
    });
    LimitView {
        key: String::new(),
        limit,
        shards: limited.or(paced).map_or(Shards::ONE, |gate| gate.shards().max(gate.pace_shards)),
        pinned: views.iter().any(|one| one.pinned),
        more: views.iter().any(|one| one.more),
        holders: views.into_iter().flat_map(|one| one.holders).collect(),
        waiting: waiting.into_iter().map(|one| one.owner.clone()).collect(),
        rate,
    }
}
