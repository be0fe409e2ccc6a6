//! Timeline entries made from journal entries. Each depends on the entries before it.

use std::collections::{BTreeMap, BTreeSet};

use tickover_core::execution::journal::{
    Entry, FailedAttempt, Happened, StepOutcome, is_start_of_child, open_steps,
};
use tickover_core::execution::{Execution, ParentClosePolicy};
use tickover_core::id::StepName;
use tickover_core::payload::Payload;
use tickover_core::time::Timestamp;
use tickover_service::executions::remote_id;
use tickover_wire::answer::TimelineEntryView;
use tickover_wire::{OpenEnum, Verbatim};

use super::{named, new, with};
use crate::view::execution::attempts::{Attempts, Shown};
use crate::view::{self, attempt};

/// What the journal has said about a run's steps so far.
pub(super) struct Steps<'a> {
    execution: &'a Execution,
    /// How many steps with one label were started at one instant, if more than one.
    fan_outs: BTreeMap<(Timestamp, &'a str), u32>,
    shown: BTreeSet<(Timestamp, &'a str)>,
    started: BTreeMap<&'a StepName, StartedStep>,
    attempts: Attempts<'a>,
    /// Timers whose wait hasn't ended in another way.
    timers: BTreeMap<&'a StepName, Timestamp>,
}

struct StartedStep {
    at: Timestamp,
    is_child: bool,
}

impl<'a> Steps<'a> {
    pub(super) fn of(execution: &'a Execution, journal: &'a [Entry]) -> Self {
        let mut fan_outs: BTreeMap<_, u32> = BTreeMap::new();
        for entry in journal {
            if let Some(key) = fan_out_key(entry) {
                *fan_outs.entry(key).or_default() += 1;
            }
        }
        fan_outs.retain(|_, count| *count > 1);
        Self {
            execution,
            fan_outs,
            shown: BTreeSet::new(),
            started: BTreeMap::new(),
            attempts: Attempts::default(),
            timers: BTreeMap::new(),
        }
    }

    /// The timeline entries of a journal entry.
    pub(super) fn entries(&mut self, entry: &'a Entry) -> Vec<TimelineEntryView> {
        let mut views = Vec::new();
        if let Some(key) = fan_out_key(entry)
            && let Some(count) = self.fan_outs.get(&key).copied()
            && self.shown.insert(key)
        {
            let view = named(entry.at, "fan_out_started", &key.1);
            views.push(TimelineEntryView { count: Some(count), ..view });
        }
        views.extend(self.attempts.apply(entry).map(|lost| attempt_lost(entry.at, lost)));
        views.extend(self.failed_before(entry));
        views.extend(self.entry(entry));
        views
    }

    /// The failed attempts that have no entry of their own.
    fn failed_before(&self, entry: &Entry) -> Vec<TimelineEntryView> {
        let (Happened::Attempt { name, errors, .. } | Happened::Step { name, errors, .. }) = &entry.what
        else {
            return vec![];
        };
        let failed = |failed: &FailedAttempt| TimelineEntryView {
            attempt: Some(failed.attempt + self.attempts.lost(name)),
            error: Some(attempt::error(&failed.error)),
            ..named(failed.at, "step_attempt_failed", name)
        };
        errors.iter().map(failed).collect()
    }

    fn entry(&mut self, entry: &'a Entry) -> Option<TimelineEntryView> {
        let at = entry.at;
        Some(match &entry.what {
            Happened::Attempt {
                name,
                attempt,
                first_at,
                error,
                next_at,
                progress,
                details,
                is_ongoing,
                ..
            } => {
                self.started.insert(name, StartedStep { at: *first_at, is_child: false });
                let kind = match (error, is_ongoing) {
                    (Some(_), _) => "step_attempt_failed",
                    (None, true) => "step_progress",
                    (None, false) => "step_attempt_started",
                };
                TimelineEntryView {
                    details: details.clone().map(Verbatim),
                    attempt: Some(*attempt + self.attempts.lost(name)),
                    error: error.as_ref().map(attempt::error),
                    until: next_at.map(Into::into),
                    progress: *progress,
                    ..named(at, kind, name)
                }
            }
            Happened::Remote { name } => {
                self.started.insert(name, StartedStep { at, is_child: false });
                let task = Some(remote_id(self.execution, name));
                TimelineEntryView { task, ..named(at, "step_started", name) }
            }
            Happened::Child { name, execution, policy, .. } => {
                self.started.insert(name, StartedStep { at, is_child: true });
                TimelineEntryView {
                    execution: Some(execution.clone()),
                    parent_close: Some((*policy).into()),
                    ..named(at, "child_started", name)
                }
            }
            Happened::Step { name, outcome, attempts, expired, .. } => TimelineEntryView {
                timeout_kind: expired.map(|expired| OpenEnum::Known(expired.kind)),
                deadline_at: expired.map(|expired| expired.deadline_at.into()),
                ..self.step_ended(at, name, outcome, *attempts)
            },
            Happened::Reopened { name, by, input } => {
                self.started.remove(name);
                let view =
                    TimelineEntryView { by: by.as_deref().map(view::by), ..named(at, "step_reopened", name) };
                with(view, input.as_ref())
            }
            Happened::Captured { name, value } => with(named(at, "captured", name), Some(value)),
            Happened::Until { name, until } => {
                self.timers.insert(name, *until);
                let until = Some((*until).into());
                TimelineEntryView { until, ..named(at, "timer_started", name) }
            }
            // The child's own entry shows its start.
            Happened::Fired { name } if is_start_of_child(name) => return None,
            Happened::Fired { name } => {
                self.timers.remove(name);
                named(at, "timer_fired", name)
            }
            Happened::Waited { name, event } => {
                self.timers.remove(name);
                let kind = if event.is_some() { "wait_ended" } else { "wait_timed_out" };
                let event = event.clone();
                TimelineEntryView { event, ..named(at, kind, name) }
            }
            Happened::Event { name, id, payload } => TimelineEntryView {
                event: Some(name.clone()),
                event_id: id.clone(),
                ..with(new(at, "event_sent"), payload.as_ref())
            },
            Happened::EventsCleared { name, count } => TimelineEntryView {
                event: Some(name.clone()),
                count: Some(*count),
                ..new(at, "events_cleared")
            },
            Happened::Patches { names } if names.is_empty() => return None,
            Happened::Patches { names } => {
                TimelineEntryView { patches: Some(names.clone()), ..new(at, "patched") }
            }
            Happened::Note { kind, name, by } => TimelineEntryView {
                name: name.as_ref().map(ToString::to_string),
                by: by.as_deref().map(view::by),
                ..new(at, kind.clone())
            },
        })
    }

    fn step_ended(
        &self,
        at: Timestamp,
        name: &StepName,
        outcome: &StepOutcome,
        attempts: Option<u32>,
    ) -> TimelineEntryView {
        let started = self.started.get(name);
        // The clocks of two processes may differ: no end is shown before its start.
        let at = started.map_or(at, |started| at.max(started.at));
        let subject = if started.is_some_and(|started| started.is_child) { "child" } else { "step" };
        let lost = self.attempts.lost(name);
        let view = TimelineEntryView {
            attempts: attempts.map(|attempts| attempts + lost),
            lost: (lost > 0).then_some(lost),
            duration_ms: started.map(|started| at.since(started.at).as_u64()),
            ..named(at, format!("{subject}_{}", ending(outcome)), name)
        };
        match outcome {
            StepOutcome::Completed { output } => with(view, output.as_ref()),
            StepOutcome::Failed { error } | StepOutcome::Exhausted { error } => match error {
                Payload::Inline(json) => {
                    TimelineEntryView { step_error: Some(Verbatim(json.clone())), ..view }
                }
                Payload::Blob(blob) => TimelineEntryView { output_bytes: Some(blob.bytes), ..view },
            },
            StepOutcome::TimedOut
            | StepOutcome::DeadlineExceeded
            | StepOutcome::Cancelled
            | StepOutcome::ResultExpired => view,
        }
    }

    /// The attempts that were lost before the current turn.
    pub(super) fn lost_since(&self) -> Vec<(Timestamp, TimelineEntryView)> {
        let Some(turn) = self.execution.turn() else { return vec![] };
        let lost = self.attempts.lost_before(self.execution).into_iter();
        lost.map(|lost| (turn.claimed_at, attempt_lost(turn.claimed_at, lost))).collect()
    }

    /// The work that ended with the execution. The journal has no entries for that.
    pub(super) fn ended_with_execution(
        &self,
        journal: &[Entry],
        ended_at: Timestamp,
    ) -> Vec<(Timestamp, TimelineEntryView)> {
        let steps = open_steps(journal).into_iter().filter_map(|entry| ended_with_it(entry, ended_at));
        let timers = self.timers.iter().filter(|(_, until)| **until > ended_at);
        let timers = timers.map(|(name, _)| named(ended_at, "timer_cancelled", name));
        steps.chain(timers).map(|view| (ended_at, view)).collect()
    }
}

fn attempt_lost(at: Timestamp, lost: Shown<'_>) -> TimelineEntryView {
    let view = named(at, "step_attempt_lost", lost.name);
    TimelineEntryView { attempt: Some(lost.attempt), ..view }
}

/// How an open step or child ends when its execution ends.
fn ended_with_it(entry: &Entry, ended_at: Timestamp) -> Option<TimelineEntryView> {
    match &entry.what {
        Happened::Remote { name } => Some(named(ended_at, "step_cancelled", name)),
        Happened::Child { name, execution, policy, .. } => {
            let kind = match policy {
                ParentClosePolicy::Abandon => "child_abandoned",
                ParentClosePolicy::RequestCancel => "child_cancel_requested",
                ParentClosePolicy::Terminate => "child_terminated",
            };
            let execution = Some(execution.clone());
            Some(TimelineEntryView { execution, ..named(ended_at, kind, name) })
        }
        Happened::Attempt { .. }
        | Happened::Step { .. }
        | Happened::Reopened { .. }
        | Happened::Captured { .. }
        | Happened::Until { .. }
        | Happened::Fired { .. }
        | Happened::Event { .. }
        | Happened::Waited { .. }
        | Happened::EventsCleared { .. }
        | Happened::Patches { .. }
        | Happened::Note { .. } => None,
    }
}

/// The instant and the label of a fan-out's step: the label of `label[3]` is `label`.
fn fan_out_key(entry: &Entry) -> Option<(Timestamp, &str)> {
    match &entry.what {
        Happened::Remote { name } | Happened::Child { name, .. } => {
            let (label, index) = name.as_str().strip_suffix(']')?.rsplit_once('[')?;
            index.bytes().all(|byte| byte.is_ascii_digit()).then_some((entry.at, label))
        }
        Happened::Attempt { .. }
        | Happened::Step { .. }
        | Happened::Reopened { .. }
        | Happened::Captured { .. }
        | Happened::Until { .. }
        | Happened::Fired { .. }
        | Happened::Event { .. }
        | Happened::Waited { .. }
        | Happened::EventsCleared { .. }
        | Happened::Patches { .. }
        | Happened::Note { .. } => None,
    }
}

const fn ending(outcome: &StepOutcome) -> &'static str {
    match outcome {
        StepOutcome::Completed { .. } => "completed",
        StepOutcome::Failed { .. } => "failed",
        StepOutcome::Exhausted { .. } => "exhausted",
        StepOutcome::TimedOut => "timed_out",
        StepOutcome::DeadlineExceeded => "deadline_exceeded",
        StepOutcome::Cancelled => "cancelled",
        StepOutcome::ResultExpired => "result_expired",
    }
}
