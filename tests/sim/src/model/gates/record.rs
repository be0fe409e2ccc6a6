//! What a world has, and the records and the messages of its tasks.

use std::num::NonZeroU16;

use tickover_core::duration::Millis;
use tickover_core::time::Timestamp;

use super::{GateProtocol, GateState};
use crate::plan::START;

/// How long after an instant a tick comes that everything waits for: an offer is late by then, and a claim that hasn't begun.
const TICK: i32 = 50;

/// What a world has, and how much may happen in it.
#[derive(Clone, Debug)]
pub struct GatePlan {
    pub limit: NonZeroU16,
    pub tasks: u8,
    /// How many of the tasks are scheduled at the beginning. The others may come at any time.
    pub scheduled: u8,
    /// How many processes there are at a time, besides workers that only work.
    pub processes: usize,
    /// How often each task is tried again.
    pub retries: u8,
    pub crashes: u8,
    /// How many workers die in the middle of an attempt.
    pub losses: u8,
    /// How many messages are delivered once more.
    pub redelivered: u8,
    pub cancelled: u8,
    /// Whether ticks come, from the first fault or the second instant on.
    pub ticks: bool,
    /// The instants of the clock, in seconds from the beginning.
    pub instants: Vec<i32>,
}

impl GatePlan {
    /// Some tasks that are all scheduled, two processes, and no faults.
    pub fn new(limit: u16, tasks: u8) -> Self {
        Self {
            limit: NonZeroU16::new(limit).unwrap_or(NonZeroU16::MIN),
            tasks,
            scheduled: tasks,
            processes: 2,
            retries: 0,
            crashes: 0,
            losses: 0,
            redelivered: 0,
            cancelled: 0,
            ticks: false,
            instants: vec![0],
        }
    }
}

/// A task's record, and its items in the line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Work {
    pub(super) version: u8,
    pub(super) status: Status,
    /// A bit for each version of which there is an item.
    pub(super) items: u16,
    /// How often it may be tried again.
    pub(super) retries: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Status {
    Unscheduled,
    /// Its client is about to write its record.
    Scheduled,
    Pending,
    /// It waits in the line, and came there in this version.
    InLine(u8),
    Running {
        until: i32,
        /// That with which it came from the line, in which it stays.
        position: Option<u8>,
        /// Whether its worker has died.
        lost: bool,
    },
    Ended,
}

/// A message about a task, with a copy of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Message {
    pub(super) task: u8,
    pub(super) version: u8,
    pub(super) in_line: bool,
}

impl Work {
    pub(super) fn new(scheduled: bool, retries: u8) -> Self {
        let (version, status) = if scheduled { (1, Status::Pending) } else { (0, Status::Unscheduled) };
        Self { version, status, items: 0, retries }
    }

    /// Its position, if it is in the line.
    pub(super) const fn position(&self) -> Option<u8> {
        match self.status {
            Status::InLine(position) => Some(position),
            Status::Running { position, .. } => position,
            Status::Unscheduled | Status::Scheduled | Status::Pending | Status::Ended => None,
        }
    }

    pub(super) const fn has_item(&self, position: u8) -> bool {
        self.items & (1 << position) != 0
    }

    /// The positions of its items.
    pub(super) fn items(&self) -> impl Iterator<Item = u8> {
        (0..16).filter(|position| self.has_item(*position))
    }

    pub(super) fn change(&mut self, status: Status) {
        (self.version, self.status) = (self.version + 1, status);
    }

    /// Whether its lease is over.
    pub(super) const fn is_lost(&self, now: i32) -> bool {
        match self.status {
            Status::Running { until, .. } => until <= now,
            Status::Unscheduled | Status::Scheduled | Status::Pending | Status::InLine(_) | Status::Ended => {
                false
            }
        }
    }

    /// Whether an attempt may start.
    pub(super) const fn is_ready(&self, now: i32) -> bool {
        match self.status {
            Status::Pending | Status::InLine(_) => true,
            Status::Running { until, .. } => until <= now,
            Status::Unscheduled | Status::Scheduled | Status::Ended => false,
        }
    }
}

impl GateProtocol {
    /// The present instant, in seconds. Beyond the last one, they are a tick apart.
    pub(super) fn now(&self, state: &GateState) -> i32 {
        let (at, instants) = (usize::from(state.now), &self.plan.instants);
        let beyond = i32::try_from((at + 1).saturating_sub(instants.len())).unwrap_or(0);
        instants[at.min(instants.len() - 1)] + TICK * beyond
    }
}

pub(super) fn at(seconds: i32) -> Timestamp {
    START.plus(Millis::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

pub(super) fn seconds(at: Timestamp) -> i32 {
    i32::try_from(at.since(START).as_u64() / 1_000).unwrap_or(i32::MAX)
}
