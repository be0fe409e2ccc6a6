//! What an execution takes before its first turn: a place at each of its keys, and a start by the rate of one.
//!
//! All who decide on one version of the record have one mark, and so one place. So who ends without a turn gives a place
//! up only once the record has another version: then nobody can start the turn for which it was taken.

use futures::future::try_join_all;
use tickover_core::duration::Millis;
use tickover_core::execution::Execution;
use tickover_core::execution::command::Command;
use tickover_core::execution::decision::Reply;
use tickover_core::flow::{Gated, Paced};
use tickover_core::gate::{AskedLimit, EXECUTION_PLACE, Places, Reservation, Take, Taken};
use tickover_core::id::{GateId, Owner};
use tickover_core::time::Timestamp;

use super::Act;
use crate::drive::Known;
use crate::error::ServiceError;
use crate::service::Service;
use crate::telemetry::field;
use crate::warn_unless_logged;

/// How often a request for a turn takes its places or its start again, because the record has changed since.
const ROUNDS: u32 = 5;

/// What a request for a turn has taken so far.
#[derive(Default)]
pub(crate) struct Admitted {
    rounds: u32,
    places: Option<Places>,
    /// The keys at which it has taken a place, each with the mark.
    taken: Vec<(Gated, u32)>,
    /// The start by the rate of its key: that of its record, or one that was reserved.
    start: Option<Reservation>,
    /// The start that is given back if it isn't needed.
    reserved: Option<Paced>,
}

/// How the request goes on.
pub(crate) enum Taking {
    /// It is decided again, on this record.
    Decide(Box<Execution>),
    /// The execution waits at one of its keys.
    Waits,
    /// There is no such execution any more.
    Gone,
}

impl Admitted {
    pub(crate) const fn places(&self) -> Option<Places> {
        self.places
    }

    pub(crate) const fn start(&self) -> Option<Reservation> {
        self.start
    }

    /// Whether it has taken anything.
    pub(crate) const fn has_any(&self) -> bool {
        self.reserved.is_some() || !self.taken.is_empty()
    }

    fn next_round(&mut self) -> bool {
        self.rounds += 1;
        self.rounds <= ROUNDS
    }

    /// Whether it has taken a place at this key with this mark.
    fn has(&self, gated: &Gated, mark: u32) -> bool {
        self.taken.iter().any(|(one, of)| (one.key, *of) == (gated.key, mark))
    }

    fn note(&mut self, gated: &Gated, mark: u32) {
        self.taken.retain(|(one, _)| one.key != gated.key);
        self.taken.push((gated.clone(), mark));
    }
}

impl Service {
    /// Takes a place at each key of an execution, in the order of their digests.
    pub(crate) async fn take_for_turn(
        &self,
        execution: Execution,
        admitted: &mut Admitted,
    ) -> Result<Taking, ServiceError> {
        if !admitted.next_round() {
            self.give_up_unused(Some(&execution), admitted).await;
            return Err(ServiceError::Contended);
        }
        let (mark, since) = (execution.place_mark(), self.now());
        let until = since.plus(EXECUTION_PLACE);
        let take = |gated: &Gated| Take {
            owner: Owner::Execution(execution.id.clone()),
            incarnation: execution.incarnation,
            mark,
            branch: execution.waiting().mark(),
            in_line: execution.parked.in_line().is_some(),
            until,
            limit: AskedLimit { limit: gated.limit, asked_at: execution.created_at },
            sure: true,
        };
        if execution.gates().iter().all(|gated| admitted.has(gated, mark)) {
            // Too much time has passed since: at all keys at once, or where calls are slow it would be too late each time.
            let takes: Vec<(&Gated, Take)> =
                execution.gates().iter().map(|gated| (gated, take(gated))).collect();
            let took = try_join_all(takes.iter().map(|(gated, take)| self.take_one(gated, take))).await?;
            if took.iter().all(|one| matches!(one, Taken::Place { .. })) {
                admitted.places = Some(Places { since, until, version: execution.version });
                drop(takes);
                return Ok(Taking::Decide(Box::new(execution)));
            }
        }
        for gated in execution.gates() {
            match self.take_one(gated, &take(gated)).await? {
                Taken::Place { .. } => admitted.note(gated, mark),
                // The record has changed meanwhile.
                Taken::Shared => {
                    let stored = self.load_execution(&execution.id).await?;
                    return Ok(stored.map_or(Taking::Gone, |stored| Taking::Decide(Box::new(stored))));
                }
                Taken::Full => return self.wait_at_gate(execution, admitted).await,
            }
        }
        admitted.places = Some(Places { since, until, version: execution.version });
        Ok(Taking::Decide(Box::new(execution)))
    }

    /// Puts an execution in the line, and gives up the places at its other keys. Their version must have passed first:
    /// another request for the same turn may have taken all of them.
    async fn wait_at_gate(
        &self,
        execution: Execution,
        admitted: &mut Admitted,
    ) -> Result<Taking, ServiceError> {
        if execution.parked.in_line().is_some() {
            // It has come, so what it was offered goes on to another, and nobody of its queue is absent.
            self.stays_in_line(&execution.waiting()).await?;
            if admitted.taken.is_empty() {
                return Ok(Taking::Waits);
            }
        }
        let (id, wait) = (execution.id.clone(), Command::WaitInLine { seen_version: execution.version });
        let decision = self.drive_execution(&id, Known::Record(Box::new(execution)), &wait).await?;
        self.give_up_unused(decision.record(), admitted).await;
        Ok(match decision.outcome {
            Ok((_, Reply::Changed { changed: true })) => Taking::Waits,
            Ok((current, _)) => Taking::Decide(Box::new(current)),
            Err(_) => Taking::Gone,
        })
    }

    /// Finds a start for a turn, and waits for it if it comes soon enough.
    pub(crate) async fn start_for_turn(
        &self,
        execution: &Execution,
        admitted: &mut Admitted,
        began_at: Timestamp,
        patience: Millis,
    ) -> Result<(), ServiceError> {
        if !admitted.next_round() {
            self.give_up_unused(Some(execution), admitted).await;
            return Err(ServiceError::Contended);
        }
        let admission = execution.admission.as_deref();
        let Some(paced) = admission.and_then(|admission| admission.paced.as_ref()) else { return Ok(()) };
        let (start, reserved) = self.start_for(paced, execution.created_at, began_at).await?;
        (admitted.start, admitted.reserved) = (start, reserved);
        self.wait_for_start(start, patience).await;
        Ok(())
    }

    /// Gives up what a request for a turn has taken and nobody can use any more, now that the execution has this record.
    pub(crate) async fn give_up_unused(&self, current: Option<&Execution>, admitted: &mut Admitted) {
        let started = current.is_some_and(|execution| execution.turn().is_some());
        let recorded = current.and_then(|execution| execution.admission.as_deref()?.paced.as_ref()?.start);
        admitted.start = None;
        if let Some(start) = admitted.reserved.take()
            && !started
            && recorded != start.start
        {
            self.give_start_back(&start).await;
        }
        for (gated, mark) in std::mem::take(&mut admitted.taken) {
            let Some(execution) = current.filter(|execution| !execution.owns_place(mark)) else { continue };
            let owner = Owner::Execution(execution.id.clone());
            let (incarnation, before) = (execution.incarnation, execution.places_from());
            let act = Act::Withdraw { owner: &owner, incarnation, before, came: None, left: None };
            let freed = Box::pin(self.change_gate(&GateId::from(&gated.key), &gated.text, &act)).await;
            if let Err(error) = freed {
                warn_unless_logged!(error; { field::EXECUTION_ID } = %execution.id, %error, "place not given up; a tick will find it");
            }
        }
    }
}
