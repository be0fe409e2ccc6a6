//! Reads hints from the backlog into a queue: equal shares of each lane.

use std::collections::VecDeque;

use tickover_core::id::QueueName;
use tickover_core::lane::Lane;
use tickover_core::limits::QUEUE_DELAY_MAX;
use tickover_core::time::{Timestamp, earliest};

use super::backlog::{Backlog, Choice};
use super::{Held, unavailable};
use crate::ports::QueueError;

/// One reading of the backlog.
pub(super) struct Refill {
    /// The queue's own time. If the clock was set back, a later start may be taken too early, and its claim delays it again;
    /// what was ready stays ready.
    now: Timestamp,
    kept_max: u64,
    /// The lanes that are still to be read.
    lanes: VecDeque<Lane>,
    /// Whether the backlog has more lanes than these.
    has_more_lanes: bool,
    /// How many visible hints of each lane are kept.
    share: u64,
    visible: u64,
    delayed: u64,
    /// The lane that was read last.
    cursor: Option<Lane>,
    /// When the first hint was ready that wasn't taken.
    missing_from: Option<Timestamp>,
}

impl Refill {
    /// Finds the lanes to read. If there are more than hints are kept, it goes on behind those that were read last.
    pub(super) fn begin(
        backlog: &dyn Backlog,
        kept_max: u64,
        queue: &QueueName,
        held: &mut Held,
        now: Timestamp,
    ) -> Result<Self, QueueError> {
        let most = usize::try_from(kept_max).unwrap_or(usize::MAX);
        let fail = |error| unavailable(&error);
        let mut lanes = backlog.lanes(queue, held.cursor, most).map_err(fail)?;
        if let Some(cursor) = held.cursor
            && lanes.len() < most
        {
            let first = backlog.lanes(queue, None, most - lanes.len()).map_err(fail)?;
            lanes.extend(first.into_iter().filter(|lane| *lane <= cursor));
        }
        let depth = held.messages.depth(now);
        let count = lanes.len().max(1) as u64;
        Ok(Self {
            now,
            kept_max,
            has_more_lanes: lanes.len() == most,
            lanes: lanes.into(),
            share: (kept_max / count).max(1),
            visible: depth.visible,
            delayed: depth.delayed,
            cursor: None,
            missing_from: None,
        })
    }

    pub(super) fn next_lane(&mut self) -> Option<Lane> {
        // With many lanes, the messages that are kept from before may have lanes of their own.
        if self.visible >= self.kept_max.saturating_mul(2) && !self.lanes.is_empty() {
            self.has_more_lanes = true;
            return None;
        }
        let lane = self.lanes.pop_front()?;
        self.cursor = Some(lane);
        Some(lane)
    }

    /// The hints that a lane lacks, with the instants from which on they are visible.
    pub(super) fn read(
        &mut self,
        backlog: &dyn Backlog,
        queue: &QueueName,
        lane: Lane,
        held: &Held,
    ) -> Result<Vec<(String, Timestamp)>, QueueError> {
        let mut of_lane = held.messages.visible().len_of(lane);
        let mut instants = vec![];
        let hints = backlog.hints(queue, lane, &mut |task| {
            if held.messages.has_hint_of(task.incarnation, task.version) {
                return Choice::Skip;
            }
            // What starts later than a message may be delayed has its hint sent when its time comes.
            if task.at > self.now.plus(QUEUE_DELAY_MAX) {
                return Choice::Stop;
            }
            let (kept, most) = if task.at <= self.now {
                (&mut of_lane, self.share)
            } else {
                (&mut self.delayed, self.kept_max)
            };
            if *kept >= most {
                self.missing_from = earliest([self.missing_from, Some(task.at)]);
                return Choice::Stop;
            }
            *kept += 1;
            self.visible += u64::from(task.at <= self.now);
            instants.push(task.at);
            Choice::Take
        });
        let hints = hints.map_err(|error| unavailable(&error))?;
        Ok(hints.into_iter().zip(instants).collect())
    }

    /// From when on the backlog may have hints that aren't among the messages, and where the next reading begins.
    pub(super) fn end(self) -> (Option<Timestamp>, Option<Lane>) {
        if self.has_more_lanes { (Some(self.now), self.cursor) } else { (self.missing_from, None) }
    }
}
