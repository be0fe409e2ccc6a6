//! Bugs around long sleeps, whose hints a tick sends from the due index.

use tickover_core::due::DueKind;
use tickover_core::duration::Millis;
use tickover_core::execution::message::TurnHint;
use tickover_core::id::Incarnation;
use tickover_core::time::Timestamp;
use tickover_service::ports::{DueEntry, DueRange, Outgoing};

use super::Bug;
use crate::history::Actor;

/// The hint of a sleep has a delay of at least two minutes; other hints of ticks have none.
const HELD: Millis = Millis::from_secs(30);

/// Whether a tick sends this message for the end of a sleep.
pub fn is_for_a_sleep(actor: Actor, message: &Outgoing) -> bool {
    let is_later = message.delay > HELD && TurnHint::is_turn_hint(&message.body);
    matches!(actor, Actor::Ticker(_)) && is_later
}

/// What a tick sees of the due index.
pub fn seen_asleep(bug: Option<Bug>, range: DueRange, mut entries: Vec<DueEntry>) -> Vec<DueEntry> {
    let is_asleep = |entry: &DueEntry| entry.kind == DueKind::Asleep;
    // A sweep reads a shard from its beginning.
    let is_sweep = range.from == Timestamp::from_millis(i64::MIN);
    if bug == Some(Bug::SleepNeverProbed) && is_sweep {
        entries.retain(|entry| !is_asleep(entry));
    }
    if bug == Some(Bug::SleeperOfAnother) {
        for sleeper in entries.iter_mut().filter_map(|entry| entry.sleeper.as_mut()) {
            sleeper.hint.turn.inc = Incarnation::from_bytes([7; 8]);
        }
    }
    entries
}
