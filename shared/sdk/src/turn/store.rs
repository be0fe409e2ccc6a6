//! The turn's writes: new journal entries and heartbeats. One write at a time, each fenced by the lease.

use futures::FutureExt as _;
use tickover_core::duration::Millis;
use tickover_core::execution::command::{Cleanup, Record};
use tickover_core::execution::journal::{Entry, Happened};
use tickover_core::execution::replay::Merged;
use tickover_core::execution::{Execution, Turn};
use tickover_core::time::{Timestamp, earliest};
use tickover_service::ServiceError;
use tickover_service::telemetry::field;
use tickover_service::warn_unless_logged;

use super::drive::{Done, Driver, Halt};
use super::inline::reported_to;
use super::need::{Need, Stage};
use super::published::kept;
use super::state::State;
use crate::keeper::{Extend, Keeper};

impl Driver {
    /// What the code does if it ends early. As long as it is replayed, it may be about to register what an earlier turn has
    /// reported.
    pub(super) fn cleanup(&self) -> Cleanup {
        let on_failure = self.workflow.terms().on_failure;
        let was_reported = !self.is_replayed && self.record.undoes;
        Cleanup {
            on_failure,
            on_cancel: self.workflow.on_cancel_timeout(),
            undoes: was_reported || self.shared.lock().undoes(),
        }
    }

    /// Starts to write the new entries. If a write is in progress, the next one takes them.
    pub(super) fn store(&mut self) {
        if self.busy.writing {
            return;
        }
        let (entries, timed_attempts) = {
            let mut state = self.shared.lock();
            state.replay.put_back();
            note_reports(&mut state, self.service.now());
            (state.replay.take_fresh(), Some(state.under_way()))
        };
        self.busy.writing = true;
        let values = self.to_publish();
        let (service, record, lease) = (self.service.clone(), self.record.clone(), self.lease);
        let cleanup = self.cleanup();
        self.jobs.push(Box::pin(async move {
            let stored = async {
                let values = kept(&service, values).await?;
                let brought = Record { lease, entries, cleanup, timed_attempts, values };
                service.record_progress(&record, brought).await
            };
            Done::Stored(stored.await.map(Box::new))
        }));
    }

    /// Applies a record that a write returned. From then on there may be other writes, unless entries are missing.
    pub(super) fn stored(&mut self, record: Execution) -> Result<(), Halt> {
        let merged = {
            let mut state = self.shared.lock();
            state.facts.update(&record);
            state.published.written(&record);
            state.replay.merge(&record)
        };
        self.record = record;
        // Nothing is written until the entries of other writers are known.
        self.busy.writing = merged == Merged::Incomplete;
        if self.busy.writing {
            let (service, record) = (self.service.clone(), self.record.clone());
            self.jobs.push(Box::pin(async move { Done::Reread(service.journal_of(&record).await) }));
        }
        self.check_overtaken()
    }

    /// Ends the turn if its code has got something that isn't so.
    pub(super) fn check_overtaken(&self) -> Result<(), Halt> {
        if self.shared.lock().replay.is_overtaken() { Err(Halt::Overtaken) } else { Ok(()) }
    }

    /// Starts to read the record: what others have written until now counts before the time that has passed.
    pub(super) fn look(&mut self, now: Timestamp) {
        if self.busy.writing || self.busy.reading_outcomes {
            return;
        }
        // Entries that are written meanwhile could be in the record or not.
        self.busy.writing = true;
        let (service, record, lease) = (self.service.clone(), self.record.clone(), self.lease);
        self.jobs.push(Box::pin(async move {
            let looked = service.record_of_turn(&record, lease).await;
            Done::Looked(now, looked.map(Box::new))
        }));
    }

    /// Applies the record as it was at this instant, and reads the outcomes that somebody has notified the execution of.
    pub(super) fn looked(&mut self, at: Timestamp, record: Execution) -> Result<(), Halt> {
        self.stored(record)?;
        // Otherwise the journal is read, and this looks again.
        if !self.busy.writing {
            self.looked_at = at;
            if self.record.wakes > self.seen_wakes {
                self.start_reading_outcomes();
            }
        }
        Ok(())
    }

    /// Reads the record and the journal again, and withdraws what others have overtaken of the entries that aren't written.
    /// No job may be in progress.
    pub(super) async fn look_again(&mut self) -> Result<(), Halt> {
        let record = self.service.record_of_turn(&self.record, self.lease).await?;
        let journal = self.service.journal_of(&record).await?;
        let mut state = self.shared.lock();
        state.facts.update(&record);
        state.replay.put_back();
        state.replay.rebuild(&journal);
        drop(state);
        self.record = record;
        Ok(())
    }

    /// When the next heartbeat is due.
    pub(super) fn heartbeat_due_at(&self) -> Option<Timestamp> {
        let turn = self.record.turn().filter(|_| self.settings.heartbeat != Some(Millis::ZERO))?;
        // A lease that ends at the deadline or later can't be extended.
        if super::facts::deadline_of(&self.record).is_some_and(|at| at <= turn.lease_expires_at) {
            return None;
        }
        let at = turn.lease_expires_at.minus(turn.lease_length.saturating_sub(self.heartbeat_interval(turn)));
        Some(self.busy.next_heartbeat_at.map_or(at, |after| after.max(at)))
    }

    fn heartbeat_interval(&self, turn: &Turn) -> Millis {
        self.settings.heartbeat.unwrap_or(Millis::new(turn.lease_length.as_u64() / 3))
    }

    /// When the lease ends.
    pub(super) fn lease_ends_at(&self) -> Option<Timestamp> {
        self.record.turn().map(|turn| turn.lease_expires_at).max(self.keeper.ends_at())
    }

    /// From now on, the lease is also extended while the code blocks its thread.
    pub(super) fn keep_lease(&mut self) {
        let extends = self.settings.heartbeat != Some(Millis::ZERO) && Keeper::is_possible();
        let Some(turn) = self.record.turn().filter(|_| extends) else { return };
        let (service, record, lease) = (self.service.clone(), self.record.clone(), self.lease);
        let receipt = self.receipt.clone();
        let extend: Extend = Box::new(move || {
            let (service, record, receipt) = (service.clone(), record.clone(), receipt.clone());
            Box::pin(async move {
                let renewed =
                    service.heartbeat_turn(&record, lease, (vec![], None), receipt.as_deref()).await?;
                Ok(renewed.turn().map_or(Timestamp::EPOCH, |turn| turn.lease_expires_at))
            })
        });
        let (ends_at, interval) = (turn.lease_expires_at, self.heartbeat_interval(turn));
        self.keeper = Keeper::start(&self.service, ends_at, turn.lease_length, interval, extend);
    }

    /// Notes until when the lease is kept while code blocks its thread.
    pub(super) fn note_lease(&self) {
        let attempts = self.shared.lock().under_way_until();
        let until = earliest([attempts, super::facts::deadline_of(&self.record)]);
        self.keeper.note(self.record.turn().map(|turn| turn.lease_expires_at), until);
    }

    /// Extends a lease that is over: as long as no other worker has taken the execution, the turn's results count.
    pub(super) async fn renew_lease(&mut self) -> Result<(), Halt> {
        if self.busy.writing {
            // Two writes at once could store the same entries twice.
            return Err(Halt::Lost);
        }
        let receipt = self.receipt.clone();
        // A type of its own, as each write of a turn has: the compiler gives up on the future of a worker otherwise.
        let renewed =
            self.service.heartbeat_turn(&self.record, self.lease, (vec![], None), receipt.as_deref()).boxed();
        let renewed = renewed.await?;
        self.stored(renewed)?;
        if self.is_lease_over(self.service.now()) { Err(Halt::Lost) } else { Ok(()) }
    }

    /// Whether the lease has ended, so that another worker may have taken the execution.
    pub(super) fn is_lease_over(&self, now: Timestamp) -> bool {
        self.lease_ends_at().is_some_and(|at| at <= now)
    }

    pub(super) fn heartbeat_if_due(&mut self, now: Timestamp) {
        if self.busy.writing || self.heartbeat_due_at().is_none_or(|at| at > now) {
            return;
        }
        self.busy.writing = true;
        let entries = {
            let mut state = self.shared.lock();
            // All that is new: if an event that a wait has taken was cleared meanwhile, the write is refused.
            state.replay.put_back();
            note_reports(&mut state, now);
            state.replay.take_fresh()
        };
        let values = self.to_publish();
        let (service, record, lease) = (self.service.clone(), self.record.clone(), self.lease);
        let receipt = self.receipt.clone();
        self.jobs.push(Box::pin(async move {
            let renewed = async {
                let brought = (entries, kept(&service, values).await?);
                service.heartbeat_turn(&record, lease, brought, receipt.as_deref()).await
            };
            Done::Heartbeat(renewed.await.map(Box::new))
        }));
    }

    /// Applies the result of a heartbeat. One that failed temporarily is retried before the lease ends, and its entries are
    /// part of the next write. Reports alone wait for that; anything else is written before something new begins.
    pub(super) fn heartbeat_done(
        &mut self,
        result: Result<Box<Execution>, ServiceError>,
    ) -> Result<(), Halt> {
        match result {
            Ok(record) => {
                let pause = record.turn().map_or(Millis::ZERO, |turn| self.heartbeat_interval(turn));
                self.busy.next_heartbeat_at = Some(self.service.now().plus(pause));
                self.stored(*record)
            }
            Err(error @ ServiceError::Rejected(_)) => Err(error.into()),
            Err(error) => {
                warn_unless_logged!(error; { field::EXECUTION_ID } = %self.record.id, %error, "heartbeat failed");
                let length = self.record.turn().map_or(Millis::ZERO, |turn| turn.lease_length);
                let pause = Millis::new((length.as_u64() / 10).max(1));
                self.busy.next_heartbeat_at = Some(self.service.now().plus(pause));
                let mut state = self.shared.lock();
                state.published.not_written();
                if state.replay.unwritten().any(|entry| !is_report(entry)) {
                    state.replay.put_back();
                }
                Ok(())
            }
        }
    }
}

/// Whether an entry only says what a running attempt has reported.
const fn is_report(entry: &Entry) -> bool {
    matches!(entry.what, Happened::Attempt { is_ongoing: true, .. })
}

/// Adds an entry for each running attempt that has reported something since its last entry. It is part of a write that is
/// made anyway, and the next attempt gets it though this worker may be lost.
fn note_reports(state: &mut State, now: Timestamp) {
    let State { needs, replay, .. } = state;
    for waiting in needs.values_mut() {
        let Need::Inline(inline) = &mut waiting.need else { continue };
        let Stage::Running(running) = &inline.stage else { continue };
        let (attempt, first_at) = (running.attempt, running.first_at);
        let reported = reported_to(&running.progress_sender).or(&inline.reported);
        if reported != inline.reported {
            inline.reported = reported;
            replay.push(now, inline.in_progress(attempt, first_at, vec![], true));
        }
    }
}
