//! A look at the line of a key: who of it can come to the free places.

use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _};
use tickover_core::duration::Millis;
use tickover_core::flow::Paced;
use tickover_core::gate::line::{STAND_INS, end_of_stand_ins, enter};
use tickover_core::gate::{Branch, Candidate, Gate, Waiter, first_start};
use tickover_core::id::{Fingerprint, GateId, Owner};
use tickover_core::task::Task;
use tickover_core::time::Timestamp;

use super::Act;
use super::line::PAGE_MAX;
use super::records::{Records, Standing};
use crate::error::ServiceError;
use crate::service::Service;

/// The tasks that are read beyond those that there are places for: some may have ended.
const SPARE: usize = 2;
/// And so many more, because some that run may be in the line still, before those that wait.
const KEPT_MAX: usize = 20;
/// Most pages that are read once there is somebody for each place, or for one who has come. The next look goes on from there.
const PAGES_MAX: usize = 50;
/// Most pages that are read if nobody is found. The next look goes on from there.
const PAGES_IN_VAIN_MAX: usize = 1_000;
/// Most items of a page of a branch in which the first is looked for that could come, and most such pages.
const FIRST_PAGE: usize = 10;
const FIRST_PAGES: usize = 10;
/// Most stand-ins that one look finds to be in vain.
const CANNOT_COME_MAX: usize = 50;
/// How many lines are looked at in parallel for stand-ins that were called or can't come.
const RELIEVED_AT_ONCE: usize = 8;
/// One that must start by a rate isn't called earlier than this before its start. As long as from one tick to the next.
const CALLED_AHEAD: Millis = Millis::from_secs(60);
/// Most pages of a branch that are read if some of each can't start sooner by their rates.
const LATER_PAGES: usize = 10;
/// Most candidates of one look.
const CANDIDATES_MAX: usize = 50;

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
    /// Stand-ins that can't come.
    cannot_come: Vec<Waiter>,
    /// The text of the key, from the first record.
    text: Option<String>,
    /// Where the look stopped, if it hasn't seen the whole line.
    stopped_at: Option<String>,
}

/// A look as it goes on.
struct Look<'a> {
    gate: &'a Gate,
    now: Timestamp,
    /// How many places there are, as far as one look offers them.
    wanted: usize,
    /// How many pages it has read, and may read whatever it finds.
    pages: usize,
    pages_max: usize,
    found: Found,
    /// The next start by each rate that was asked for.
    rates: BTreeMap<Fingerprint, Option<Timestamp>>,
    /// All stand-ins of the line, once its end was read.
    stand_ins: Option<Vec<Waiter>>,
}

impl Look<'_> {
    fn is_enough(&self) -> bool {
        let has_all = self.found.candidates.len() >= self.wanted;
        self.pages >= if has_all { PAGES_MAX.min(self.pages_max) } else { self.pages_max }
    }
}

impl Found {
    /// Gives a record that was made by a look the text of its key, and notes where the next look begins.
    pub(super) fn note_in(&self, gate: &mut Gate) {
        if let Some(text) = self.text.as_ref().filter(|_| gate.text.is_empty()) {
            gate.text.clone_from(text);
        }
        if self.stopped_at.is_some() || !self.candidates.is_empty() {
            gate.looked_to.clone_from(&self.stopped_at);
        }
    }

    /// Whether more stand-ins may be in vain than this look has seen.
    pub(super) const fn has_seen_many_in_vain(&self) -> bool {
        self.cannot_come.len() >= CANNOT_COME_MAX
    }

    /// The stand-ins whose part the next of their branches takes: those that were called, and those that can't come.
    pub(super) fn relieved_by(&self, called: &[Waiter]) -> Vec<Waiter> {
        let called = called.iter().filter(|one| one.home.is_some());
        self.cannot_come.iter().chain(called).cloned().collect()
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
        let (from, is_for_one) = match act {
            Act::Look { from, .. } if !from.is_empty() => ((*from).to_owned(), true),
            _ => (gate.looked_to.clone().unwrap_or_default(), false),
        };
        let wanted = gate.free().clamp(1, CANDIDATES_MAX);
        let pages_max = if is_for_one { PAGES_MAX } else { PAGES_IN_VAIN_MAX };
        let found = Found::default();
        let mut look =
            Look { gate, now, wanted, pages: 0, pages_max, found, rates: BTreeMap::new(), stand_ins: None };
        self.look_through(&mut look, from.clone(), None).await?;
        if !from.is_empty() && look.found.stopped_at.is_none() {
            self.look_through(&mut look, String::new(), Some(&from)).await?;
        }
        if is_for_one && look.found.candidates.is_empty() {
            look.found.stopped_at = None;
        }
        self.look_at_stand_ins(&mut look).await?;
        Ok(look.found)
    }

    /// Looks at the branches of a line behind this key, and up to that one.
    async fn look_through(
        &self,
        look: &mut Look<'_>,
        mut after: String,
        until: Option<&str>,
    ) -> Result<(), ServiceError> {
        let running = look.gate.holders.len().min(KEPT_MAX);
        let mut reads = look.wanted + SPARE;
        // The branch that is read, whether it can come, how many of it have been found, and how many of its pages have some
        // that come later by their rates.
        let mut read: Option<Branch> = None;
        let (mut can_come, mut of_branch, mut later) = (false, 0_usize, 0_usize);
        loop {
            if look.is_enough() {
                look.found.stopped_at = Some(after);
                return Ok(());
            }
            look.pages += 1;
            let size = reads + running;
            let mut page =
                self.with_retries(|| self.ports.store.waiters(&look.gate.id, &after, size)).await?;
            let is_last = page.len() < size;
            let stand_ins = page.split_off(page.partition_point(|one| one.home.is_none()));
            let is_end = is_last || !stand_ins.is_empty();
            if is_last {
                look.stand_ins = Some(stand_ins);
            }
            page.truncate(page.partition_point(|one| until.is_none_or(|until| *one.sort_key() <= *until)));
            let Some(branch) = page.first().map(|one| one.branch.clone()) else { return Ok(()) };
            if read.as_ref() != Some(&branch) {
                (can_come, of_branch, later) = (self.can_come(look, &branch).await?, 0, 0);
                read = Some(branch.clone());
            }
            if !can_come {
                let is_paused = self.is_paused(&branch.queue).await?;
                after = if is_paused { branch.end_of_queue() } else { branch.end() };
                continue;
            }
            let of_this = page.partition_point(|one| one.branch == branch);
            let is_whole = of_this == page.len();
            page.truncate(of_this);
            // No more records are read than may be needed.
            let waiting = page.iter().enumerate().filter(|(_, one)| !look.gate.has(one));
            let cut = waiting.map(|(at, _)| at).nth(reads);
            page.truncate(cut.unwrap_or(of_this));
            let (last, priority) = (page.last().map(Waiter::sort_key), page.first().map(|one| one.priority));
            let before = look.found.candidates.len();
            later += usize::from(self.examine(look, page).await? > 0);
            of_branch += look.found.candidates.len() - before;
            if is_end && is_whole && cut.is_none() {
                return Ok(());
            }
            let has_found = look.found.candidates.len() > before;
            reads = if has_found { look.wanted + SPARE } else { (2 * reads).min(PAGE_MAX) };
            after = match last {
                Some(last)
                    if (is_whole || cut.is_some()) && of_branch < look.wanted && later < LATER_PAGES =>
                {
                    last
                }
                // The one that has waited the longest may be of another priority.
                Some(_) if look.gate.puts_longest_first() => branch.end_of(priority.unwrap_or_default()),
                Some(_) | None => branch.end(),
            };
        }
    }

    /// Reads the records of some that wait, and adds them to what was found.
    /// Returns how many are left out because of their rate.
    async fn examine(&self, look: &mut Look<'_>, section: Vec<Waiter>) -> Result<usize, ServiceError> {
        let (Look { gate, now, found, rates, .. }, mut later) = (look, 0);
        let section: Vec<Waiter> = section.into_iter().filter(|one| !gate.has(one)).collect();
        let records = self.records_at_gate(section.iter().map(|one| &one.owner)).await?;
        for waiter in section {
            match records.standing(&waiter, *now) {
                Standing::Ready => {
                    let Some((limit, text)) = records.asked_limit(&waiter, &gate.id) else { continue };
                    found.text.get_or_insert(text);
                    if let Some(paced) = records.rate_of(&waiter)
                        && self.starts_much_later(rates, paced, *now).await?
                    {
                        later += 1;
                        continue;
                    }
                    let served = self.is_served(&waiter.branch.queue).await?;
                    found.candidates.push(Candidate { waiter, limit, served });
                }
                Standing::Away => {}
                Standing::Lost => found.lost.extend(records.task_of(&waiter).cloned()),
                Standing::LeftOver => found.left_over.push(waiter),
            }
        }
        found.records.add(records);
        Ok(later)
    }

    /// Whether the next start by this rate comes so late that one who is called now would only leave the line for it, and the
    /// next after that one: a line would become starts at which no place is free. A tick looks again before.
    async fn starts_much_later(
        &self,
        known: &mut BTreeMap<Fingerprint, Option<Timestamp>>,
        paced: &Paced,
        now: Timestamp,
    ) -> Result<bool, ServiceError> {
        let first = if let Some(first) = known.get(&paced.key) {
            *first
        } else {
            let id = GateId::from(&paced.key);
            let gate = self.with_retries(|| self.ports.store.gate(&id)).await?;
            let first = gate.and_then(|gate| first_start(&gate, now));
            known.insert(paced.key, first);
            first
        };
        Ok(first.is_some_and(|at| at > now.plus(CALLED_AHEAD)))
    }

    /// Whether those of a branch can come to a free place. If not, they wait at each other key that has none.
    async fn can_come(&self, look: &mut Look<'_>, branch: &Branch) -> Result<bool, ServiceError> {
        if !self.may_come(look, branch).await? {
            return Ok(false);
        }
        let mut can_come = true;
        for other in &branch.others {
            let is_full = !self.has_place(other, look.now).await?;
            can_come &= !(is_full && self.stands_in(look, branch, other).await?);
        }
        Ok(can_come)
    }

    /// Whether the queue of a branch works, as far as is known.
    async fn may_come(&self, look: &Look<'_>, branch: &Branch) -> Result<bool, ServiceError> {
        Ok(!look.gate.is_absent(branch.mark(), look.now) && !self.is_paused(&branch.queue).await?)
    }

    async fn has_place(&self, gate: &GateId, now: Timestamp) -> Result<bool, ServiceError> {
        let gate = self.with_retries(|| self.ports.store.gate(gate)).await?;
        Ok(gate.is_none_or(|mut gate| {
            self.rules.clear_places(&mut gate, now);
            gate.has_place()
        }))
    }

    /// Puts the first of a branch that could come in the line of another key that has no place for it, if it isn't there.
    /// Returns whether it must wait there: a place may have become free meanwhile.
    async fn stands_in(
        &self,
        look: &mut Look<'_>,
        branch: &Branch,
        other: &GateId,
    ) -> Result<bool, ServiceError> {
        let (home, now) = (look.gate.id.clone(), look.now);
        let Some(first) = self.first_of(look, branch, other).await? else { return Ok(true) };
        let stand_in = first.stand_in(home, now);
        let (key, own) = (stand_in.key_of_stay(), stand_in.sort_key());
        let known = self.with_retries(|| self.ports.store.waiters(other, &key, 1 + SPARE)).await?;
        if known.iter().any(|known| known.sort_key() == own) {
            return Ok(true);
        }
        let write = enter(other.clone(), stand_in);
        self.with_retries(|| self.ports.store.commit(std::slice::from_ref(&write))).await?;
        Ok(!self.has_place(other, now).await?)
    }

    /// The first of a branch that could come, and has a place neither here nor at the other key.
    async fn first_of(
        &self,
        look: &mut Look<'_>,
        branch: &Branch,
        other: &GateId,
    ) -> Result<Option<Waiter>, ServiceError> {
        let (mut after, called) = (branch.start(), self.with_retries(|| self.ports.store.gate(other)).await?);
        for _ in 0..FIRST_PAGES {
            let page =
                self.with_retries(|| self.ports.store.waiters(&look.gate.id, &after, FIRST_PAGE)).await?;
            let Some(last) = page.last().filter(|_| page[0].branch == *branch) else { break };
            after = last.sort_key();
            let has =
                |one: &Waiter| look.gate.has(one) || called.as_ref().is_some_and(|other| other.has(one));
            let waiting: Vec<Waiter> = page
                .into_iter()
                .filter(|one| one.branch == *branch && one.home.is_none() && !has(one))
                .collect();
            let records = self.records_at_gate(waiting.iter().map(|one| &one.owner)).await?;
            for waiter in waiting {
                match records.standing(&waiter, look.now) {
                    Standing::Ready => return Ok(Some(waiter)),
                    Standing::Away => {}
                    // Where two keys are full, the same are read once for each.
                    Standing::LeftOver if look.found.left_over.contains(&waiter) => {}
                    Standing::Lost => look.found.lost.extend(records.task_of(&waiter).cloned()),
                    Standing::LeftOver => look.found.left_over.push(waiter),
                }
            }
        }
        Ok(None)
    }

    /// Looks at the stand-ins of a line, in their order.
    async fn look_at_stand_ins(&self, look: &mut Look<'_>) -> Result<(), ServiceError> {
        let (mut size, mut ready) = (look.wanted + SPARE, 0);
        let (mut known, mut after) = (look.stand_ins.take(), STAND_INS.to_owned());
        let mut priority = None;
        // Those that can't come are many writes. The next look goes on behind them.
        while look.found.cannot_come.len() < CANNOT_COME_MAX {
            if ready >= look.wanted {
                // The one that has waited the longest may be of another priority.
                let Some(of) = priority.filter(|_| look.gate.puts_longest_first()) else { break };
                (after, ready) = (after.max(end_of_stand_ins(of)), 0);
                if let Some(known) = &mut known {
                    known.retain(|one| one.sort_key() > after);
                }
            }
            let some: Vec<Waiter> = match &mut known {
                Some(known) => known.drain(..size.min(known.len())).collect(),
                None => self.with_retries(|| self.ports.store.waiters(&look.gate.id, &after, size)).await?,
            };
            let Some(last) = some.last() else { break };
            (after, priority) = (last.sort_key(), some.first().map(|one| one.priority));
            let mut may_come = vec![];
            for waiter in some {
                // Those of a paused queue stay: the end of the pause looks at them.
                if self.may_come(look, &waiter.branch).await? {
                    may_come.push(waiter);
                }
            }
            let (before, records) =
                (ready, self.records_at_gate(may_come.iter().map(|one| &one.owner)).await?);
            for waiter in may_come {
                let limit = records.asked_limit(&waiter, &look.gate.id);
                let can_come = !look.gate.has(&waiter)
                    && records.standing(&waiter, look.now) == Standing::Ready
                    && self.has_others(look, &waiter).await?;
                match limit.filter(|_| can_come) {
                    Some((limit, _)) => {
                        ready += 1;
                        let served = self.is_served(&waiter.branch.queue).await?;
                        look.found.candidates.push(Candidate { waiter, limit, served });
                    }
                    None => look.found.cannot_come.push(waiter),
                }
            }
            size = if ready > before { look.wanted + SPARE } else { (2 * size).min(PAGE_MAX) };
            look.found.records.add(records);
        }
        Ok(())
    }

    /// Whether the other keys of a stand-in have a place.
    async fn has_others(&self, look: &Look<'_>, waiter: &Waiter) -> Result<bool, ServiceError> {
        for other in waiter.others(&look.gate.id) {
            if !self.has_place(other, look.now).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Looks at the homes of stand-ins that were called or can't come, and of those that were called here in vain: the next of
    /// their branches take their part. If that fails, a tick does it.
    pub(super) fn relieve<'a>(
        &'a self,
        gate: &'a GateId,
        stand_ins: Vec<Waiter>,
        in_vain: Vec<Owner>,
    ) -> BoxFuture<'a, ()> {
        async move {
            if stand_ins.is_empty() && in_vain.is_empty() {
                return;
            }
            self.delete_left_over(gate, &stand_ins).await;
            let mut branches: BTreeSet<(GateId, String)> =
                stand_ins.into_iter().filter_map(|one| Some((one.home?, one.branch.start()))).collect();
            match self.records_at_gate(in_vain.iter()).await {
                Ok(records) => branches.extend(records.homes().filter(|(home, _)| home != gate)),
                Err(error) => tracing::debug!(key = %gate, %error, "who was called in vain isn't known"),
            }
            let mut looks: Vec<BoxFuture<'_, ()>> = Vec::with_capacity(branches.len());
            for (home, from) in &branches {
                looks.push(self.look(home, from).boxed());
            }
            stream::iter(looks).buffer_unordered(RELIEVED_AT_ONCE).collect::<()>().await;
        }
        .boxed()
    }
}
