//! The line of a key: who of it can come, who comes to it, and what the tick does there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tickover_core::decision::{Effect, Write};
use tickover_core::duration::Millis;
use tickover_core::flow::Gated;
use tickover_core::gate::line::{self, PARTS};
use tickover_core::gate::{Branch, Candidate, Gate, Waiter, Waiting};
use tickover_core::id::{GateId, QueueName};
use tickover_core::task::{Command, Task};
use tickover_core::time::Timestamp;

use super::records::{Fence, Records, Standing};
use super::{Act, Done};
use crate::drive::Known;
use crate::error::ServiceError;
use crate::metric;
use crate::service::Service;
use crate::warn_unless_logged;

/// The tasks that are read beyond those that there are places for: some may have ended.
const SPARE: usize = 2;
/// And so many more, because some that run may be in the line still, before those that wait.
const KEPT_MAX: usize = 20;
/// Most items of one page. As long as pages have nobody who can come, each is twice as long as the one before.
const PAGE_MAX: usize = 100;
/// Most pages of one look. The next look goes on, since what was left over is deleted by then.
const PAGES_MAX: usize = 150;
/// Most candidates of one look.
const CANDIDATES_MAX: usize = 50;
/// An item whose record doesn't know of it yet is being written, or its writer died. After this long it is deleted.
pub(super) const WRITTEN_WITHIN: Millis = Millis::from_secs(600);
/// A record that came to the line later than this after its item was decided has its item written again: the item may
/// have been taken for left over. Less than half of that time.
const LATE: Millis = Millis::from_secs(120);

/// What a look at a line has found.
#[derive(Default)]
pub(super) struct Found {
    /// The first that can come.
    pub(super) candidates: Vec<Candidate>,
    /// Tasks that ran, and whose workers were lost.
    pub(super) lost: Vec<Task>,
    /// Items that no record stands behind.
    pub(super) left_over: Vec<Waiter>,
    pub(super) records: Records,
    /// The text of the key, from the first record.
    text: Option<String>,
}

/// The keys that one tick has looked at.
#[derive(Default)]
pub(super) struct Patrolled(Mutex<BTreeSet<GateId>>);

impl Patrolled {
    /// Notes a key. Returns whether the tick hasn't looked at it before.
    fn is_first(&self, gate: &GateId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(gate.clone())
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

impl Found {
    /// Gives a record that was made by a look the text of its key.
    pub(super) fn name(&self, gate: &mut Gate) {
        if let Some(text) = self.text.as_ref().filter(|_| gate.text.is_empty()) {
            gate.text.clone_from(text);
        }
    }
}

impl Service {
    /// Finds the first of each branch of a line that can come: as many as there are places, and a few more. A branch whose
    /// queue is paused, or that was called in vain, or for which another key has no place, is passed over as a whole.
    pub(super) async fn first_in_line(
        &self,
        gate: &Gate,
        act: &Act<'_>,
        now: Timestamp,
    ) -> Result<Found, ServiceError> {
        let wanted = gate.free().clamp(1, CANDIDATES_MAX);
        let mut found = Found::default();
        let mut usable: BTreeMap<Branch, bool> = BTreeMap::new();
        // How many of the branch that is read have been found.
        let running = gate.holders.len().min(KEPT_MAX);
        let (mut of_branch, mut size, mut after) = (0, wanted + SPARE + running, String::new());
        for _ in 0..PAGES_MAX {
            let page = self.with_retries(|| self.ports.store.waiters(&gate.id, &after, size)).await?;
            let is_last = page.len() < size;
            let Some(branch) = page.first().map(|one| one.branch.clone()) else { break };
            let can_come = if let Some(known) = usable.get(&branch) {
                *known
            } else {
                of_branch = 0;
                let can_come = self.can_come(&branch, gate, act, now).await?;
                usable.insert(branch.clone(), can_come);
                can_come
            };
            if !can_come {
                after = branch.end();
                continue;
            }
            let section: Vec<Waiter> = page.iter().take_while(|one| one.branch == branch).cloned().collect();
            let (whole, last) = (section.len() == page.len(), section.last().map(Waiter::sort_key));
            let priority = section.first().map(|one| one.priority).unwrap_or_default();
            let before = found.candidates.len();
            self.examine(gate, section, now, &mut found).await?;
            of_branch += found.candidates.len() - before;
            if is_last && whole {
                break;
            }
            size = if found.candidates.len() > before { wanted + SPARE } else { (2 * size).min(PAGE_MAX) };
            after = match last {
                Some(last) if whole && of_branch < wanted => last,
                // The one that has waited the longest may be of another priority.
                Some(_) if gate.puts_longest_first() => branch.end_of(priority),
                Some(_) | None => branch.end(),
            };
        }
        Ok(found)
    }

    /// Reads the records of some that wait, and adds them to what was found.
    async fn examine(
        &self,
        gate: &Gate,
        section: Vec<Waiter>,
        now: Timestamp,
        found: &mut Found,
    ) -> Result<(), ServiceError> {
        let section: Vec<Waiter> = section.into_iter().filter(|one| !gate.has(one)).collect();
        let records = self.records_at_gate(section.iter().map(|one| &one.owner)).await?;
        for waiter in section {
            match records.standing(&waiter, now) {
                Standing::Ready => {
                    let Some((limit, text)) = records.asked_limit(&waiter, &gate.id) else { continue };
                    found.text.get_or_insert(text);
                    found.candidates.push(Candidate { waiter, limit });
                }
                Standing::Away => {}
                Standing::Lost => found.lost.extend(records.task_of(&waiter).cloned()),
                Standing::LeftOver => found.left_over.push(waiter),
            }
        }
        found.records.add(records);
        Ok(())
    }

    /// Whether those of a branch can come to a free place.
    async fn can_come(
        &self,
        branch: &Branch,
        gate: &Gate,
        act: &Act<'_>,
        now: Timestamp,
    ) -> Result<bool, ServiceError> {
        if gate.is_absent(branch.mark(), now) || self.is_paused(&branch.queue).await? {
            return Ok(false);
        }
        for other in &branch.others {
            if let Act::Patrol(patrolled) = act
                && patrolled.is_first(other)
            {
                Box::pin(self.write_gate(other, "", act)).await?;
            }
            let awaits = Act::AwaitBy(&gate.id);
            if Box::pin(self.write_gate(other, "", &awaits)).await?.0 == Done::Found(true) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Some have come to the line of a key: a place may have become free since the key was read.
    pub(crate) async fn came_to_line(&self, gate: &GateId, came: Vec<Waiter>) {
        let now = self.now();
        let late = came.into_iter().filter(|one| one.written_at.plus(LATE) <= now);
        let late: Vec<Write> =
            late.map(|one| line::enter(gate.clone(), Waiter { written_at: now, ..one })).collect();
        if !late.is_empty()
            && let Err(error) = self.with_retries(|| self.ports.store.commit(&late)).await
        {
            warn_unless_logged!(error; key = %gate, %error, "an item of its line isn't written again");
        }
        self.look(gate).await;
    }

    /// One that was called came in vain: another key has no place for it any more. Its offer goes on to others, and the
    /// other key notes once more that it is awaited.
    pub(super) async fn stays_in_line(&self, waiting: &Waiting<'_>) -> Result<(), ServiceError> {
        let Some((gate, waiter)) = waiting.item(self.now()) else { return Ok(()) };
        if waiter.branch.others.is_empty() {
            return Ok(());
        }
        let (incarnation, before) = (waiter.incarnation, waiter.position.version);
        let came = Some(waiter.branch.mark());
        let withdraw = Act::Withdraw { owner: &waiter.owner, incarnation, before, came };
        Box::pin(self.change_gate(&gate, "", &withdraw)).await.map(drop)
    }

    /// Looks at a key for those in its line. If that fails, a tick does it.
    pub(super) async fn look(&self, gate: &GateId) {
        self.look_by(gate, &Act::Look).await;
    }

    async fn look_by(&self, gate: &GateId, act: &Act<'_>) {
        if let Err(error) = self.change_gate(gate, "", act).await {
            warn_unless_logged!(error; key = %gate, %error, "its line isn't looked at; a tick will do it");
        }
    }

    /// Whether one of these keys has no place, so that whoever needs one at each of them may as well begin in the line.
    pub(crate) async fn lacks_place(
        &self,
        gates: &[Gated],
        known: &mut BTreeMap<GateId, Option<Gate>>,
    ) -> Result<bool, ServiceError> {
        for gated in gates {
            let id = GateId::from(&gated.key);
            if !known.contains_key(&id) {
                let gate = self.with_retries(|| self.ports.store.gate(&id)).await?;
                known.insert(id.clone(), gate);
            }
            let now = self.now();
            if known.get(&id).and_then(Option::as_ref).is_some_and(|gate| gate.is_full(gated.limit, now)) {
                return Ok(true);
            }
        }
        Ok(false)
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
    /// of those that were called before may be gone. What isn't looked at by `stop_at`, a tick does.
    pub(crate) async fn look_at_lines_of(
        &self,
        queue: &QueueName,
        stop_at: Timestamp,
    ) -> Result<(), ServiceError> {
        for part in 0..PARTS {
            let mut last: Option<GateId> = None;
            while let Some(gate) =
                self.with_retries(|| self.ports.store.next_line(part, last.as_ref())).await?
            {
                if self.now() >= stop_at {
                    return Ok(());
                }
                let waits = self.with_retries(|| self.ports.store.waiters(&gate, queue.as_str(), 1)).await?;
                if waits.first().is_some_and(|first| first.branch.queue == *queue) {
                    self.look_by(&gate, &Act::LookAnew).await;
                }
                last = Some(gate);
            }
        }
        Ok(())
    }

    /// Looks at each line: places that were left behind go on, and offers to which nobody came. Writes nothing where nothing
    /// has changed. Returns whether it was at all lines by `stop_at`; the next time, this process begins where it stopped.
    pub(crate) async fn patrol_lines(&self, stop_at: Timestamp) -> Result<bool, ServiceError> {
        let patrolled = Patrolled::default();
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
        for section in sections {
            let (part, mut last) = (section.part, section.after.clone());
            loop {
                if self.now() >= stop_at {
                    let rest = Section { part, after: last, until: None };
                    *self.stopped_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(rest);
                    return Ok(false);
                }
                let next = self.with_retries(|| self.ports.store.next_line(part, last.as_ref())).await?;
                let Some(gate) = next.filter(|gate| section.has(gate)) else { break };
                patrolled.is_first(&gate);
                match self.change_gate(&gate, "", &Act::Patrol(&patrolled)).await {
                    Ok((_, record)) => self.measure_line(record.as_ref()).await?,
                    // Others change it just now, and offer what is free.
                    Err(ServiceError::Contended) => {}
                    Err(error) => return Err(error),
                }
                last = Some(gate);
            }
        }
        Ok(true)
    }

    /// Looks at the keys of work whose message was received again after its end: the process that ended it may have died
    /// before it gave up its places. Boxed, because the future of each claim would contain all of this.
    pub(crate) fn patrol_gates<'a>(&'a self, gates: &'a [Gated]) -> BoxFuture<'a, Result<(), ServiceError>> {
        async move {
            let patrolled = Patrolled::default();
            for gated in gates {
                self.change_gate(&GateId::from(&gated.key), &gated.text, &Act::Patrol(&patrolled)).await?;
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
