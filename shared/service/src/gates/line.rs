//! The line of a key: who comes to it, what was left behind there, and what the tick does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _};
use tickover_core::decision::{Effect, Write};
use tickover_core::duration::Millis;
use tickover_core::flow::Gated;
use tickover_core::gate::line::{self, PARTS};
use tickover_core::gate::{AskedLimit, Branch, Gate, Waiter, Waiting};
use tickover_core::id::{GateId, QueueName};
use tickover_core::task::{Command, Task};
use tickover_core::time::Timestamp;

use super::Act;
use super::records::Fence;
use crate::drive::Known;
use crate::error::ServiceError;
use crate::metric;
use crate::service::Service;
use crate::warn_unless_logged;

/// Most items of one page, and of one commit.
pub(super) const PAGE_MAX: usize = 100;
/// An item whose record doesn't know of it yet is being written, or its writer died. After this long it is deleted.
pub(super) const WRITTEN_WITHIN: Millis = Millis::from_secs(600);
/// A record that came to the line later than this after its item was decided has its item written again: the item may
/// have been taken for left over. Less than half of that time.
const LATE: Millis = Millis::from_secs(120);

/// How many gates are read at once.
const AT_ONCE: usize = 16;

/// Most branches of the queue whose other keys are looked at, in each line, when it is resumed.
const BRANCHES_MAX: usize = 20;

/// Gates as they were a moment ago.
pub(crate) struct ReadGates(BTreeMap<GateId, Gate>);

impl ReadGates {
    /// Whether one of these keys has no place, so that whoever needs one at each of them may as well begin in the line.
    pub(crate) fn lack_place(&self, gates: &[Gated], now: Timestamp) -> bool {
        let gate = |gated: &Gated| self.0.get(&GateId::from(&gated.key));
        gates.iter().any(|gated| gate(gated).is_some_and(|gate| gate.is_full(gated.limit, now)))
    }
}

/// Keys of a part of the store at whose lines a tick has to look.
#[derive(Debug)]
pub(crate) struct Section {
    part: u8,
    after: Option<GateId>,
    /// The last of them; absent for all.
    until: Option<GateId>,
}

impl Section {
    fn has(&self, gate: &GateId) -> bool {
        self.until.as_ref().is_none_or(|last| gate <= last)
    }
}

impl Service {
    /// Some have come to the line of a key: a place may have become free since the key was read.
    pub(crate) async fn came_to_line(&self, gate: &GateId, came: Vec<(Waiter, AskedLimit)>) {
        let now = self.now();
        let asked = came.iter().map(|(_, limit)| *limit).max_by_key(|limit| limit.asked_at);
        let came: Vec<Waiter> = came.into_iter().map(|(waiter, _)| waiter).collect();
        let late = came.iter().filter(|one| one.written_at.plus(LATE) <= now).cloned();
        let late: Vec<Write> =
            late.map(|one| line::enter(gate.clone(), Waiter { written_at: now, ..one })).collect();
        if !late.is_empty()
            && let Err(error) = self.with_retries(|| self.ports.store.commit(&late)).await
        {
            warn_unless_logged!(error; key = %gate, %error, "an item of its line isn't written again");
        }
        let mut branches = came.iter().map(|one| &one.branch);
        let first = branches.next().filter(|first| branches.all(|one| one == *first));
        let from = first.map(Branch::start).unwrap_or_default();
        self.look_by(gate, &Act::Look { from: &from, asked }).await;
    }

    /// One that was called comes to a paused queue: its offers go on to others, and it stays in its line.
    pub(crate) async fn passes_on(&self, waiting: &Waiting<'_>) -> Result<(), ServiceError> {
        let Some((home, waiter)) = waiting.item(self.now()) else { return Ok(()) };
        let (incarnation, before) = (waiter.incarnation, waiter.position.version);
        let withdraw = Act::Withdraw { owner: &waiter.owner, incarnation, before, came: None, left: None };
        for gate in waiter.branch.others.iter().chain(std::iter::once(&home)) {
            Box::pin(self.change_gate(gate, "", &withdraw)).await?;
        }
        Ok(())
    }

    /// One that was called came in vain: another key has no place for it any more. Its offers go on to others.
    pub(super) async fn stays_in_line(&self, waiting: &Waiting<'_>) -> Result<(), ServiceError> {
        let Some((home, waiter)) = waiting.item(self.now()) else { return Ok(()) };
        if waiter.branch.others.is_empty() {
            return Ok(());
        }
        let (incarnation, before) = (waiter.incarnation, waiter.position.version);
        let came = Some(waiter.branch.mark());
        let withdraw = Act::Withdraw { owner: &waiter.owner, incarnation, before, came, left: None };
        // Its home comes last: whoever looks there then finds the places that it had at the others.
        for gate in waiter.branch.others.iter().chain(std::iter::once(&home)) {
            Box::pin(self.change_gate(gate, "", &withdraw)).await?;
        }
        Ok(())
    }

    /// Looks at a key for those in its line, from there on. If that fails, a tick does it.
    pub(super) async fn look(&self, gate: &GateId, from: &str) {
        self.look_by(gate, &Act::Look { from, asked: None }).await;
    }

    async fn look_by(&self, gate: &GateId, act: &Act<'_>) {
        if let Err(error) = self.change_gate(gate, "", act).await {
            warn_unless_logged!(error; key = %gate, %error, "its line isn't looked at; a tick will do it");
        }
    }

    /// Reads the gates of some keys. A key that can't be read has places, as far as is known: the claims find out.
    pub(crate) async fn read_gates<'a>(&self, needed: impl Iterator<Item = &'a Gated>) -> ReadGates {
        let ids: BTreeSet<GateId> = needed.map(|gated| GateId::from(&gated.key)).collect();
        let mut reads = Vec::with_capacity(ids.len());
        for id in ids {
            reads.push(async move { self.with_retries(|| self.ports.store.gate(&id)).await }.boxed());
        }
        let found: Vec<_> = stream::iter(reads).buffer_unordered(AT_ONCE).collect().await;
        ReadGates(found.into_iter().flatten().flatten().map(|gate| (gate.id.clone(), gate)).collect())
    }

    /// Tasks that ran and whose workers were lost wait in the line from now on, as others do.
    pub(super) async fn wait_again(&self, lost: Vec<Task>) {
        let mut effects = vec![];
        for task in lost {
            let (id, wait) = (task.id.clone(), Command::WaitInLine { seen_version: task.version });
            match Box::pin(self.drive_unpublished(&id, Known::Record(Box::new(task)), &wait)).await {
                Ok(mut decision) => effects.append(&mut decision.effects),
                Err(error) => {
                    warn_unless_logged!(error; task = %id, %error, "it doesn't wait in the line again yet; a tick will see to it");
                }
            }
        }
        // One look for all of them.
        if !effects.is_empty() {
            Box::pin(self.publish(effects)).await;
        }
    }

    /// Deletes items that were left over. If that fails, they are found again.
    pub(super) async fn delete_left_over(&self, gate: &GateId, left_over: &[Waiter]) {
        for some in left_over.chunks(PAGE_MAX) {
            let delete = |waiter: &Waiter| Write::DeleteWaiter { gate: gate.clone(), waiter: waiter.clone() };
            let writes: Vec<Write> = some.iter().map(delete).collect();
            if let Err(error) = self.with_retries(|| self.ports.store.commit(&writes)).await {
                return tracing::debug!(key = %gate, %error, "items that were left over not deleted");
            }
        }
    }

    /// Frees the places of attempts and executions that have ended, or never began: their process died before it gave them
    /// up.
    pub(super) async fn free_left_behind(&self, gate: &mut Gate, now: Timestamp) -> Result<(), ServiceError> {
        let taken: Vec<_> = gate.holders.iter().filter(|one| !one.is_called()).cloned().collect();
        for some in taken.chunks(PAGE_MAX) {
            let records = self.records_at_gate(some.iter().map(|one| &one.owner)).await?;
            for holder in some.iter().filter(|one| records.is_left_behind(one, now)) {
                let is_fenced = match records.fence(holder, now) {
                    Some(fence) => Box::pin(self.fence_off(fence, gate)).await?,
                    None => true,
                };
                if is_fenced {
                    gate.holders.retain(|one| one != holder);
                }
            }
        }
        Ok(())
    }

    /// Writes a record whose place is about to be freed, so that nobody begins with that place any more: its process may have
    /// been frozen since it decided to. Returns whether that is so now.
    async fn fence_off(&self, fence: Fence, gate: &Gate) -> Result<bool, ServiceError> {
        let (is_fenced, mut effects) = match fence {
            Fence::Task(task, command) => {
                let id = task.id.clone();
                let mut decision = self.drive_unpublished(&id, Known::Record(task), &command).await?;
                (!decision.writes.is_empty(), std::mem::take(&mut decision.effects))
            }
            Fence::Execution(execution, command) => {
                let id = execution.id.clone();
                let mut decision = self.drive_unpublished(&id, Known::Record(execution), &command).await?;
                (!decision.writes.is_empty(), std::mem::take(&mut decision.effects))
            }
        };
        // This key is looked at already.
        effects.retain(|effect| !matches!(effect, Effect::CameToLine { gate: home, .. } if *home == gate.id));
        self.publish(effects).await;
        Ok(is_fenced)
    }

    /// A queue was resumed: looks at the lines in which some of it wait. Nobody called them while it was paused, and the messages
    /// of those that were called before may be gone. In lines that aren't looked at by `stop_at`, a tick calls them once they
    /// don't count as absent any more.
    pub(crate) async fn look_at_lines_of(
        &self,
        queue: &QueueName,
        stop_at: Timestamp,
    ) -> Result<(), ServiceError> {
        let mut others = BTreeSet::new();
        for part in 0..PARTS {
            let mut last: Option<GateId> = None;
            while let Some(gate) =
                self.with_retries(|| self.ports.store.next_line(part, last.as_ref())).await?
            {
                if self.now() >= stop_at {
                    return Ok(());
                }
                let mut after = queue.as_str().to_owned();
                for nth in 0..BRANCHES_MAX {
                    let page = self.with_retries(|| self.ports.store.waiters(&gate, &after, 1)).await?;
                    let first = page.into_iter().next().filter(|one| one.branch.queue == *queue);
                    let Some(Waiter { branch, .. }) = first else { break };
                    if nth == 0 {
                        self.look_by(&gate, &Act::LookAnew).await;
                    }
                    after = branch.end();
                    others.extend(branch.others);
                }
                last = Some(gate);
            }
        }
        // They may have called it in vain, too.
        for other in &others {
            if self.now() >= stop_at {
                break;
            }
            self.look_by(other, &Act::LookAnew).await;
        }
        Ok(())
    }

    /// Looks at each line: places that were left behind go on, and offers to which nobody came. Writes nothing where nothing
    /// has changed. Returns whether it was at all lines by `stop_at`; the next time, this process begins where it stopped.
    pub(crate) async fn patrol_lines(&self, stop_at: Timestamp) -> Result<bool, ServiceError> {
        let mut parts: Vec<u8> = (0..PARTS).collect();
        self.shuffle(&mut parts);
        let mut sections: Vec<Section> =
            parts.into_iter().map(|part| Section { part, after: None, until: None }).collect();
        let stopped = self.stopped_at.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Section { part, after, .. }) = stopped {
            sections.retain(|section| section.part != part);
            sections.sort_by_key(|section| (section.part + PARTS - part) % PARTS);
            sections.insert(0, Section { part, after: after.clone(), until: None });
            sections.push(Section { part, after: None, until: after });
        }
        let mut trouble = None;
        for section in sections {
            let (part, mut last) = (section.part, section.after.clone());
            loop {
                if self.now() >= stop_at {
                    let rest = Section { part, after: last, until: None };
                    *self.stopped_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(rest);
                    return trouble.map_or(Ok(false), Err);
                }
                let next = self.with_retries(|| self.ports.store.next_line(part, last.as_ref())).await?;
                let Some(gate) = next.filter(|gate| section.has(gate)) else { break };
                // A key that can't be read must not keep the tick from the others.
                if let Err(error) = self.patrol_line(&gate).await {
                    warn_unless_logged!(error; key = %gate, %error, "its line isn't looked at; the next tick will do it");
                    trouble.get_or_insert(error);
                }
                last = Some(gate);
            }
        }
        trouble.map_or(Ok(true), Err)
    }

    async fn patrol_line(&self, gate: &GateId) -> Result<(), ServiceError> {
        match self.change_gate(gate, "", &Act::Patrol).await {
            Ok((_, record)) => self.measure_line(record.as_ref()).await,
            // Others change it just now, and offer what is free.
            Err(ServiceError::Contended) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Looks at the keys of work whose message was received again after its end: the process that ended it may have died
    /// before it gave up its places. Boxed, because the future of each claim would contain all of this.
    pub(crate) fn patrol_gates<'a>(&'a self, gates: &'a [Gated]) -> BoxFuture<'a, Result<(), ServiceError>> {
        async move {
            for gated in gates {
                self.change_gate(&GateId::from(&gated.key), &gated.text, &Act::Patrol).await?;
            }
            Ok(())
        }
        .boxed()
    }

    /// Counts who waits, for the metric of the key.
    pub(super) async fn measure_line(&self, gate: Option<&Gate>) -> Result<(), ServiceError> {
        if let Some(gate) = gate.filter(|_| metric::records_limits()) {
            let most = PAGE_MAX + gate.holders.len();
            let waiting = self.with_retries(|| self.ports.store.waiters(&gate.id, "", most)).await?;
            let waiting = waiting.iter().filter(|one| !gate.has(one)).take(PAGE_MAX);
            metric::limit(gate, Some(waiting.count()));
        }
        Ok(())
    }
}
