//! Decides what can start now, and what has to be stored before that.

use tickover_core::duration::Millis;
use tickover_core::execution::journal::{Happened, StepOutcome};
use tickover_core::execution::replay::{AfterFailure, EndedAttempt, NameState, Next, timed_out};
use tickover_core::task;
use tickover_core::time::Timestamp;

use super::drive::{Done, Driver};
use super::inline::failure_payload;
use super::need::{Failed, Inline, Need, Recording, Stage};
use super::state::State;
use crate::ctx::probe_later;

/// The time that an inline step without a timeout should have before the invocation ends.
const WORTH_STARTING: Millis = Millis::from_secs(1);

impl Driver {
    /// Starts everything that can start. Returns whether a step has ended, so that its outcome can be delivered at
    /// once.
    pub(super) fn plan(&mut self, now: Timestamp) -> bool {
        self.keep_values();
        self.shared.lock().note_instants(now);
        self.plan_reads(now);
        let again = !self.is_stopped() && self.prepare_steps(now);
        if again {
            return true;
        }
        let eager = !self.is_stopped() && self.has_beginnings();
        let has_losers = !self.shared.lock().losers.is_empty();
        let has_fresh = self.shared.lock().replay.has_fresh();
        // The last results are part of the write that ends the turn, unless something else runs or is awaited
        // meanwhile.
        if has_fresh && !self.is_idle() {
            self.store();
        }
        let stored = !self.busy.writing && !self.shared.lock().replay.has_fresh();
        if stored && eager {
            self.begin(now);
        }
        if stored && has_losers {
            self.end_losers();
        }
        false
    }

    /// Whether nothing new may start.
    fn is_stopped(&self) -> bool {
        self.is_stopping() || self.record.paused || self.has_answer()
    }

    /// Whether the turn has nothing to run and nothing to wait for.
    pub(super) fn is_idle(&self) -> bool {
        let is_stopped = self.is_stopped();
        let state = self.shared.lock();
        let under_way = state.open().any(|need| match need {
            Need::Inline(inline) => match &inline.stage {
                Stage::Running(_) => true,
                Stage::Due { .. } => !is_stopped,
                // A retry that doesn't fit into this invocation isn't awaited here.
                Stage::Retry { in_place, .. } => *in_place && !is_stopped && !self.is_short_of_time,
                Stage::Unknown | Stage::Ended => false,
            },
            Need::Remote(_) | Need::Child { .. } => !is_stopped,
            Need::Keep { .. }
            | Need::Outcome { .. }
            | Need::Elsewhere { .. }
            | Need::Timer { .. }
            | Need::Event { .. } => false,
        });
        let losers = !state.losers.is_empty();
        drop(state);
        self.jobs.is_empty() && !under_way && !losers && !self.awaits_foreign()
    }

    /// Whether an inline step is running.
    pub(super) fn has_running(&self) -> bool {
        let running = |inline: &Inline| matches!(inline.stage, Stage::Running(_));
        self.shared.lock().needs.values().any(|waiting| waiting.need.inline().is_some_and(running))
    }

    /// Stores large values that the code captured.
    fn keep_values(&mut self) {
        let mut values = Vec::new();
        for (number, waiting) in &mut self.shared.lock().needs {
            if let Need::Keep { name, value } = &mut waiting.need {
                values.extend(value.take().map(|value| (*number, name.clone(), value)));
            }
        }
        for (number, name, value) in values {
            let service = self.service.clone();
            self.jobs.push(Box::pin(async move {
                let kept = service.store_payload(value.clone()).await;
                Done::Kept(number, name, value, kept)
            }));
        }
    }

    /// Reads others' outcomes when a notification has arrived. Executions that don't notify this one are probed
    /// periodically.
    fn plan_reads(&mut self, now: Timestamp) {
        let mut state = self.shared.lock();
        let mut needs_read = state.needs_read;
        for waiting in state.needs.values_mut() {
            if let Need::Elsewhere { name, since, probe_at } = &waiting.need
                && *probe_at <= now
            {
                needs_read = true;
                waiting.need = probe_later(name.clone(), *since, now);
            }
        }
        let is_notified = self.record.wakes > self.seen_wakes;
        let open = !state.replay.open_remote().is_empty() || !state.replay.open_children().is_empty();
        state.needs_read = (needs_read || is_notified) && open;
        let needs_read = state.needs_read && !self.busy.reading_outcomes && !self.has_answer();
        if needs_read {
            state.needs_read = false;
        }
        drop(state);
        if needs_read {
            self.start_reading_outcomes();
        } else if is_notified && !open && !self.busy.reading_outcomes {
            self.seen_wakes = self.record.wakes;
        }
    }

    /// Decides for each inline step what follows. Returns whether one of them has ended by that.
    fn prepare_steps(&mut self, now: Timestamp) -> bool {
        let shared = std::sync::Arc::clone(&self.shared);
        let mut state = shared.lock();
        let mut needs = std::mem::take(&mut state.needs);
        let mut ended = false;
        for waiting in needs.values_mut() {
            if let Need::Inline(inline) = &mut waiting.need {
                ended |= self.prepare_step(&mut state, inline, now);
            }
        }
        state.needs = needs;
        ended
    }

    fn prepare_step(&mut self, state: &mut State, inline: &mut Inline, now: Timestamp) -> bool {
        let name_state = match &inline.stage {
            Stage::Unknown => state.replay.name_state(&inline.name).clone(),
            Stage::Retry { attempt, first_at, error, at, .. } if *at <= now => {
                let (attempt, first_at, next_at) = (*attempt, *first_at, *at);
                let (error, reported) = (error.clone(), inline.reported.clone());
                NameState::Failed { attempt, first_at, error, next_at, reported }
            }
            Stage::Retry { .. } | Stage::Due { .. } | Stage::Running(_) | Stage::Ended => return false,
        };
        if let NameState::InProgress { reported, .. } | NameState::Failed { reported, .. } = &name_state {
            inline.reported = reported.clone();
        }
        let (outcome, attempts, expired) = match inline.policy.next(&name_state, now) {
            Next::Run { attempt, first_at, limit } => {
                if !self.fits(inline, now) {
                    self.is_short_of_time = true;
                    return false;
                }
                inline.stage = Stage::Due { attempt, first_at, limit };
                // Once in a turn: what bounds the step is the same for its next attempts.
                let is_recorded = inline.recording.is_some() && !inline.policy.at_most_once;
                if inline.policy.is_recorded_first() && !is_recorded {
                    // This entry has the number of the attempt, so the failures before it need no entry.
                    inline.unwritten = None;
                    let timeout_at = inline.policy.recorded_timeout_at(first_at, now);
                    inline.recording = Some(Recording { timeout_at });
                    let errors = std::mem::take(&mut inline.failures);
                    state.replay.push(now, inline.in_progress(attempt, first_at, errors, false));
                }
                return false;
            }
            Next::Wait { next_at } => {
                if let NameState::Failed { attempt, first_at, error, .. } = name_state {
                    inline.stage = Stage::Retry { attempt, first_at, error, at: next_at, in_place: false };
                }
                return false;
            }
            Next::TimedOut { attempt, first_at, expired } => {
                let ended = EndedAttempt { attempt, first_at, seed: state.seed_of(&inline.name), now };
                match inline.policy.after_timeout(&ended, expired, state.bounds()) {
                    AfterFailure::End(outcome) => (outcome, attempt, None),
                    AfterFailure::TimedOut(expired) => (StepOutcome::TimedOut, attempt, Some(expired)),
                    AfterFailure::Cancelled(expired) => (StepOutcome::Cancelled, attempt, Some(expired)),
                    AfterFailure::Retry { at } => {
                        let (error, reported) = (timed_out(expired), inline.reported.clone());
                        let failed = Failed { attempt, first_at, error, at, reported, before: vec![] };
                        self.try_again(&mut state.replay, inline, failed, now);
                        return self.prepare_step(state, inline, now);
                    }
                }
            }
            Next::Interrupted { attempt } => {
                let text = "its worker was lost, and the step is `at_most_once`";
                let error = failure_payload(&task::Failure::new("interrupted", text));
                (StepOutcome::Failed { error }, attempt, None)
            }
            Next::Skip { attempts } => (StepOutcome::Cancelled, attempts, None),
            Next::Over { attempts, expired } => (StepOutcome::TimedOut, attempts, Some(expired)),
        };
        let (name, errors) = (inline.name.clone(), inline.end());
        state.replay.push(now, Happened::Step { name, outcome, attempts: Some(attempts), expired, errors });
        true
    }

    /// Whether the rest of the invocation is long enough for a step. In a new invocation, the first step always starts.
    fn fits(&self, inline: &Inline, now: Timestamp) -> bool {
        let Some(limit_at) = self.settings.limit_at.filter(|_| self.has_worked) else { return true };
        limit_at.since(now) >= inline.policy.longest_attempt().unwrap_or(WORTH_STARTING)
    }

    /// Whether something has to start that others can see.
    fn has_beginnings(&self) -> bool {
        let state = self.shared.lock();
        state.open().any(|need| match need {
            Need::Inline(inline) => matches!(inline.stage, Stage::Due { .. }),
            Need::Remote(_) | Need::Child { .. } => !self.busy.starting,
            Need::Keep { .. }
            | Need::Outcome { .. }
            | Need::Elsewhere { .. }
            | Need::Timer { .. }
            | Need::Event { .. } => false,
        })
    }

    fn begin(&mut self, now: Timestamp) {
        self.start_steps(now);
        if !self.busy.starting {
            self.start_remote();
        }
    }
}
