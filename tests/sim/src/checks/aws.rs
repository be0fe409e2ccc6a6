//! What must hold of dead letters, of loops that Lambda stops, of two builds side by side, and of clocks.

use std::collections::{BTreeMap, BTreeSet};

use tickover_core::duration::Millis;
use tickover_core::id::Incarnation;

use super::lines::SLOW_MS;
use crate::Run;
use crate::gate::is_older;
use crate::hardship::RECEIVES_MAX;
use crate::history::execution::Change;
use crate::history::{Actor, Event, Fate, Fault, Stored, What};
use crate::trace::clock;
use crate::violation::{Invariant, Violation};

/// How far ahead the clock of a decision may be.
const AHEAD_MAX: Millis = Millis::from_secs(1);
/// What has become a dead letter was received in vain at least so often, if the concurrency limit is why.
const IN_VAIN: u32 = RECEIVES_MAX / 2;

pub(super) fn of_run(run: &Run) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut newer = BTreeSet::new();
    for event in &run.events {
        found.extend(no_loop_is_stopped(event));
        found.extend(nothing_is_decided_ahead_of_time(event));
        if run.plan.hardship.two_builds {
            found.extend(an_older_build_overwrites_nothing_newer(event, run, &mut newer));
        }
    }
    found.extend(nothing_becomes_a_dead_letter_by_waiting(run));
    found
}

fn no_loop_is_stopped(event: &Event) -> Option<Violation> {
    let What::Fault(Fault::LoopStopped(hops)) = event.what else { return None };
    Some(Violation::new(Invariant::Messages, event.at, format!("a chain was stopped after {hops} hops")))
}

/// A slow process may decide with an instant in the past; no process decides with an instant in the future.
fn nothing_is_decided_ahead_of_time(event: &Event) -> Option<Violation> {
    let (_, now) = event.what.decision()?;
    let ahead = now > event.at.plus(AHEAD_MAX);
    let what = || format!("{} decided by {}", event.actor, clock(now));
    ahead.then(|| Violation::new(Invariant::I5, event.at, what()))
}

/// The older build changes no record that the newer one has written.
fn an_older_build_overwrites_nothing_newer(
    event: &Event,
    run: &Run,
    newer: &mut BTreeSet<Incarnation>,
) -> Option<Violation> {
    let (incarnation, is_decided) = written(&event.what)?;
    let older = is_older(event.actor) && event.at < run.plan.faults_until;
    if !is_decided {
        return None;
    }
    if !older {
        newer.insert(incarnation);
        return None;
    }
    let rewritten = newer.contains(&incarnation);
    let what = || format!("{} overwrote a newer build's record of {incarnation}", event.actor);
    rewritten.then(|| Violation::new(Invariant::Format, event.at, what()))
}

/// The incarnation of the changed record, and whether more than one attribute has changed.
fn written(what: &What) -> Option<(Incarnation, bool)> {
    if let Some(Stored { before, after }) = what.task_change() {
        let version = before.as_ref().map(|before| before.version);
        return Some((after.incarnation, version != Some(after.version)));
    }
    let Change { before, after } = what.execution_change()?;
    let version = before.as_ref().map(|before| before.version);
    Some((after.incarnation, version != Some(after.version)))
}

/// Where nothing fails, every message is processed long before it has been received that often. Where each call takes seconds,
/// one or two invocations at a time are too few for what there is to do: then a message may be received again and again
/// without an invocation, and those are left out.
fn nothing_becomes_a_dead_letter_by_waiting(run: &Run) -> Vec<Violation> {
    let often = run.plan.hardship.mortality.and_then(|mortality| mortality.receives_max);
    if !run.plan.faults.is_fair() || often != Some(RECEIVES_MAX) {
        return vec![];
    }
    let is_overloaded = run.plan.hardship.concurrency.is_some() && run.plan.faults.latency_ms >= SLOW_MS;
    let (mut in_vain, mut found) = (InVain::default(), vec![]);
    for event in &run.events {
        if is_overloaded {
            in_vain.hear(event);
        }
        let What::Fault(Fault::Redriven(count)) = event.what else { continue };
        if count > in_vain.redriven() {
            found.push(Violation::new(Invariant::Messages, event.at, format!("{count} dead letters")));
        }
    }
    found
}

/// How often messages were received, and no function was invoked with them because others took all that the concurrency limit
/// allows.
#[derive(Default)]
struct InVain {
    /// What each function has received since it was invoked last.
    received: BTreeMap<Actor, Vec<String>>,
    times: BTreeMap<String, u32>,
}

impl InVain {
    fn hear(&mut self, event: &Event) {
        match &event.what {
            What::Message { queue, fate: Fate::Received, note } => {
                self.received.entry(event.actor).or_default().push(format!("{queue} {note:?}"));
            }
            What::Message { queue, fate: Fate::Deleted, note } => {
                self.times.remove(&format!("{queue} {note:?}"));
            }
            What::Called { .. } => drop(self.received.remove(&event.actor)),
            What::Fault(Fault::NotInvoked) => {
                for message in self.received.remove(&event.actor).unwrap_or_default() {
                    *self.times.entry(message).or_default() += 1;
                }
            }
            _ => {}
        }
    }

    /// Dead letters are redriven: how many of them may be of this kind.
    fn redriven(&mut self) -> usize {
        let before = self.times.len();
        self.times.retain(|_, times| *times < IN_VAIN);
        before - self.times.len()
    }
}
