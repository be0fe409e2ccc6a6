//! What a claim takes before the lease: places, at each key of the task, and a start by the rate of its key.

use futures::future::try_join_all;
use tickover_core::duration::Millis;
use tickover_core::flow::{Gated, Paced};
use tickover_core::gate::rate::Reservation;
use tickover_core::gate::{AskedLimit, GRACE, Places, Take, Taken, version_mark};
use tickover_core::id::{GateId, Incarnation, LeaseId, Owner, TaskId};
use tickover_core::task::decision::{ClaimReply, Reply};
use tickover_core::task::{Command, Task};
use tickover_core::time::{Timestamp, earliest};

use super::{Act, Done};
use crate::drive::Known;
use crate::error::ServiceError;
use crate::service::Service;
use crate::warn_unless_logged;

/// How often a claim takes its places again, because the record has changed since or too much time has passed.
const ROUNDS: u32 = 5;

/// The places of one claim, and its start.
pub(crate) struct PlacesOfClaim {
    pub(super) lease: LeaseId,
    length: Millis,
    rounds: u32,
    taken: Option<Places>,
    /// The keys at which it has taken a place, for this incarnation, and whether it had none before.
    at: Vec<(Incarnation, Gated, bool)>,
    /// The start by the rate of its key: that of its record, or one that was reserved.
    pub(super) start: Option<Reservation>,
    /// The version of the record whose start it is.
    pub(super) start_of: Option<u64>,
    /// The start that is given back if it isn't needed.
    pub(super) reserved: Option<Paced>,
    pub(super) start_rounds: u32,
}

/// What became of them.
pub(crate) enum PlacesTaken {
    /// There is a place at each key, or the record has changed. The claim decides again on this record.
    All(Task),
    /// The task waits at one of its keys.
    Waits(Task),
    /// There is no such task any more.
    Gone,
}

impl PlacesOfClaim {
    pub(crate) fn new(lease: LeaseId, length: Millis) -> Self {
        Self {
            lease,
            length,
            rounds: 0,
            taken: None,
            at: vec![],
            start: None,
            start_of: None,
            reserved: None,
            start_rounds: 0,
        }
    }

    /// Whether it has taken anything that it may have to give up.
    pub(crate) const fn has_any(&self) -> bool {
        self.reserved.is_some() || !self.at.is_empty()
    }

    /// Whether it has taken a place at this key.
    fn has(&self, task: &Task, gated: &Gated) -> bool {
        self.at.iter().any(|(of, one, _)| (*of, one.key) == (task.incarnation, gated.key))
    }

    pub(crate) const fn taken(&self) -> Option<Places> {
        self.taken
    }

    pub(crate) const fn start(&self) -> Option<Reservation> {
        self.start
    }

    /// The version of the record whose start it is, if it wasn't reserved for this claim.
    pub(crate) const fn start_of(&self) -> Option<u64> {
        self.start_of
    }
}

impl Service {
    /// Takes a place at each key of a task, in the order of their digests.
    pub(crate) async fn take_places(
        &self,
        task: Task,
        places: &mut PlacesOfClaim,
    ) -> Result<PlacesTaken, ServiceError> {
        // Boxed, because the future of each claim would contain all of this, and few tasks have keys.
        Box::pin(self.take_each(task, places)).await
    }

    async fn take_each(&self, task: Task, places: &mut PlacesOfClaim) -> Result<PlacesTaken, ServiceError> {
        places.rounds += 1;
        if places.rounds > ROUNDS {
            self.give_up_places(&task.id, Some(&task), places).await;
            return Err(ServiceError::Contended);
        }
        if task.gates().iter().all(|gated| places.has(&task, gated))
            && let Some(again) = self.take_all_again(&task, places).await?
        {
            return Ok(again);
        }
        let (since, mut until): (Timestamp, Option<Timestamp>) = (self.now(), None);
        let mut sure = false;
        let mut left = task.gates().iter();
        let mut next = left.next();
        while let Some(gated) = next {
            let take = self.asked(&task, gated, places, sure);
            match self.take_one(gated, &take).await? {
                Taken::Place { created } => {
                    until = earliest([until, Some(take.until)]);
                    if !places.has(&task, gated) {
                        places.at.push((task.incarnation, gated.clone(), created));
                    }
                    next = left.next();
                }
                // It has a place already. Mostly an attempt runs, and this claim was led here by an old message.
                Taken::Shared => {
                    let Some(stored) = self.load(&task.id).await? else {
                        self.give_up_places(&task.id, None, places).await;
                        return Ok(PlacesTaken::Gone);
                    };
                    if (stored.incarnation, stored.version) != (task.incarnation, task.version) {
                        self.give_up_places(&task.id, Some(&stored), places).await;
                        return Ok(PlacesTaken::All(stored));
                    }
                    sure = true;
                }
                Taken::Full => return self.wait_in_line(task, places).await,
            }
        }
        places.taken = until.map(|until| Places { since, until, version: task.version });
        Ok(PlacesTaken::All(task))
    }

    /// Takes the places that a claim has once more, because too much time has passed since: at all keys at once, or where calls
    /// are slow it would be too late each time. `None` if one of them isn't its own any more.
    async fn take_all_again(
        &self,
        task: &Task,
        places: &mut PlacesOfClaim,
    ) -> Result<Option<PlacesTaken>, ServiceError> {
        let Some(stored) = self.load(&task.id).await? else {
            self.give_up_places(&task.id, None, places).await;
            return Ok(Some(PlacesTaken::Gone));
        };
        if (stored.incarnation, stored.version) != (task.incarnation, task.version) {
            self.give_up_places(&task.id, Some(&stored), places).await;
            return Ok(Some(PlacesTaken::All(stored)));
        }
        let since = self.now();
        let takes: Vec<(&Gated, Take)> =
            stored.gates().iter().map(|gated| (gated, self.asked(&stored, gated, places, true))).collect();
        let took = try_join_all(takes.iter().map(|(gated, take)| self.take_one(gated, take))).await?;
        if !took.iter().all(|one| matches!(one, Taken::Place { .. })) {
            return Ok(None);
        }
        let until = earliest(takes.iter().map(|(_, take)| Some(take.until)));
        places.taken = until.map(|until| Places { since, until, version: stored.version });
        drop(takes);
        Ok(Some(PlacesTaken::All(stored)))
    }

    /// Puts a task in the line, and gives up the places at its other keys. Their version must have passed first: another
    /// claim may have taken all of them.
    async fn wait_in_line(
        &self,
        task: Task,
        places: &mut PlacesOfClaim,
    ) -> Result<PlacesTaken, ServiceError> {
        // A claim by an old message would write an item for nothing, so the record is read first.
        let Some(stored) = self.load(&task.id).await? else {
            self.give_up_places(&task.id, None, places).await;
            return Ok(PlacesTaken::Gone);
        };
        if (stored.incarnation, stored.version) != (task.incarnation, task.version) {
            self.give_up_places(&task.id, Some(&stored), places).await;
            return Ok(PlacesTaken::All(stored));
        }
        if stored.waits_in_line() {
            // It has come, so what it was offered goes on to another, and nobody of its queue is absent.
            self.stays_in_line(&stored.waiting()).await?;
            if places.at.is_empty() {
                return Ok(PlacesTaken::Waits(stored));
            }
        }
        let command = Command::WaitInLine { seen_version: stored.version };
        let decision = self.drive(&task.id, Known::Record(Box::new(stored)), &command).await?;
        self.give_up_places(&task.id, decision.record(), places).await;
        Ok(match decision.outcome {
            Ok((current, Reply::Claim(ClaimReply::Parked))) => PlacesTaken::Waits(current),
            // The record has changed.
            Ok((current, _)) => PlacesTaken::All(current),
            Err(_) => PlacesTaken::Gone,
        })
    }

    fn asked(&self, task: &Task, gated: &Gated, places: &PlacesOfClaim, sure: bool) -> Take {
        Take {
            owner: task.id.clone().into(),
            incarnation: task.incarnation,
            mark: version_mark(task.version),
            branch: task.waiting().mark(),
            in_line: task.parked.in_line().is_some(),
            until: self.now().plus(places.length).plus(GRACE),
            limit: AskedLimit { limit: gated.limit, asked_at: task.created_at },
            sure,
        }
    }

    pub(super) async fn take_one(&self, gated: &Gated, take: &Take) -> Result<Taken, ServiceError> {
        let act = Act::Take(take);
        match self.change_gate(&GateId::from(&gated.key), &gated.text, &act).await?.0 {
            Done::Took(taken) => Ok(taken),
            Done::Found(_) | Done::Reserved(_) => Ok(Taken::Full),
        }
    }

    /// Gives up what a claim has taken and nobody can use any more, now that the task has this record: a claim that goes on
    /// needs new places and a new start. A place that another claim may begin with, or has begun with, is left to it.
    pub(crate) async fn give_up_places(
        &self,
        id: &TaskId,
        current: Option<&Task>,
        places: &mut PlacesOfClaim,
    ) {
        if let Some(start) = places.reserved.take() {
            self.give_start_back(&start).await;
        }
        (places.start, places.taken) = (None, None);
        let owner = Owner::Task(id.clone());
        for (incarnation, gated, created) in std::mem::take(&mut places.at) {
            let before = match current.filter(|task| task.incarnation == incarnation) {
                None => u64::MAX,
                // The end of its attempt frees it. One that was lost and waits in a line has no attempt to end.
                Some(task) if task.running().is_some() && !(created && task.waits_in_line()) => continue,
                Some(task) => task.version,
            };
            let act = Act::Withdraw { owner: &owner, incarnation, before, came: None, left: None };
            let freed = Box::pin(self.change_gate(&GateId::from(&gated.key), &gated.text, &act)).await;
            if let Err(error) = freed {
                warn_unless_logged!(error; %owner, %error, "place not given up; a tick will find it");
            }
        }
    }
}
