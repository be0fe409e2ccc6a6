//! From what clocks show to instants, by the rule of Vixie's cron. What decides is whether the minute or the hour field
//! begins with `*`:
//!
//! - If one does, an occurrence is each instant at which the clocks show a time that the expression matches: none in an hour
//!   that a change skips, and two of a time that it repeats.
//! - Otherwise the times are fixed. Those that a change skips occur together, right after the gap. One that a change
//!   repeats occurs once, at the first of the two.
//!
//! Instants are seconds since 1970, UTC. What a clock shows (`wall`) is a number like them, as if the clock were of UTC.

use std::iter::successors;

use chrono::{DateTime, MappedLocalTime, Offset as _, TimeZone as _, Utc};

use super::super::zone::Zone;

/// No offset differs by more from the one before, and no two changes are so close to each other.
const CHANGE_MAX: i64 = 26 * 3_600;
/// How many times are tried before there is said to be no occurrence: two hours of seconds, and some more. A change can
/// skip every time that an expression matches.
const TRIES: usize = 10_000;

/// An expression's times, and the zone of the clocks that show them.
#[derive(Clone, Copy)]
pub(super) struct Clock<'a> {
    pub(super) pattern: &'a croner::Cron,
    pub(super) zone: &'a Zone,
    /// Whether the times are fixed.
    pub(super) is_fixed: bool,
}

/// The times of an expression as clocks of one offset would show them.
#[derive(Clone, Copy)]
struct Times {
    offset: i64,
    /// The next instant at which such clocks show one.
    at: i64,
}

impl Clock<'_> {
    /// The first occurrence after an instant.
    pub(super) fn after(self, at: i64) -> Option<i64> {
        if self.is_fixed {
            // Those before were shown before.
            let walls = successors(self.wall_after(at + self.offset(at)), |wall| self.wall_after(*wall));
            return walls.take(TRIES).map(|wall| self.first_shown(wall)).find(|shown| *shown > at);
        }
        let next = |offset, at| Some(Times { offset, at: self.wall_after(at + offset)? - offset });
        self.shown(at, CHANGE_MAX, next, |one, other| one < other)
    }

    /// The last occurrence at or before an instant.
    pub(super) fn at_or_before(self, at: i64) -> Option<i64> {
        if self.is_fixed {
            // In an hour that is repeated, all its times have been shown.
            let latest = at + self.offset(at).max(self.offset(at - CHANGE_MAX));
            let walls = successors(self.wall_at_or_before(latest), |wall| self.wall_at_or_before(wall - 1));
            return walls.take(TRIES).map(|wall| self.first_shown(wall)).find(|shown| *shown <= at);
        }
        let before =
            |offset, at| Some(Times { offset, at: self.wall_at_or_before(at - 1 + offset)? - offset });
        self.shown(at + 1, -CHANGE_MAX, before, |one, other| one > other)
    }

    /// The nearest instant at which the zone's clocks do show a time, among the times by each offset that the zone has
    /// near it. `next` finds the next time by an offset, seen from an instant.
    fn shown(
        self,
        from: i64,
        change_within: i64,
        next: impl Fn(i64, i64) -> Option<Times>,
        is_nearer: impl Fn(i64, i64) -> bool,
    ) -> Option<i64> {
        let mut by_offset: Vec<Times> = next(self.offset(from), from).into_iter().collect();
        let mut known = vec![self.offset(from)];
        let mut add = |by_offset: &mut Vec<Times>, offset| {
            if !known.contains(&offset) {
                known.push(offset);
                by_offset.extend(next(offset, from));
            }
        };
        add(&mut by_offset, self.offset(from + change_within));
        for _ in 0..TRIES {
            let nearest = by_offset.iter().copied().enumerate();
            let nearest =
                nearest.reduce(|one, other| if is_nearer(other.1.at, one.1.at) { other } else { one });
            let (place, Times { offset, at }) = nearest?;
            let real = self.offset(at);
            if real == offset {
                return Some(at);
            }
            match next(offset, at) {
                Some(times) => by_offset[place] = times,
                None => drop(by_offset.swap_remove(place)),
            }
            add(&mut by_offset, real);
        }
        None
    }

    /// When the zone's clocks show a time first; if a change skips it, when they have changed.
    fn first_shown(self, wall: i64) -> i64 {
        let Some(local) = utc(wall) else { return wall };
        match self.zone.offset_from_local_datetime(&local.naive_utc()) {
            MappedLocalTime::Single(ahead) | MappedLocalTime::Ambiguous(ahead, _) => {
                wall - i64::from(ahead.fix().local_minus_utc())
            }
            MappedLocalTime::None => self.change_near(wall),
        }
    }

    /// The instant at which the offset changes, near what would be this time in UTC.
    fn change_near(self, wall: i64) -> i64 {
        let (mut before, mut after) = (wall - CHANGE_MAX, wall + CHANGE_MAX);
        let new = self.offset(after);
        while after - before > 1 {
            let middle = i64::midpoint(before, after);
            if self.offset(middle) == new { after = middle } else { before = middle }
        }
        after
    }

    fn offset(self, at: i64) -> i64 {
        let ahead = utc(at).map(|at| self.zone.offset_from_utc_datetime(&at.naive_utc()).fix());
        ahead.map_or(0, |ahead| i64::from(ahead.local_minus_utc()))
    }

    fn wall_after(self, wall: i64) -> Option<i64> {
        Some(self.pattern.find_next_occurrence(&utc(wall)?, false).ok()?.timestamp())
    }

    fn wall_at_or_before(self, wall: i64) -> Option<i64> {
        Some(self.pattern.find_previous_occurrence(&utc(wall)?, true).ok()?.timestamp())
    }
}

fn utc(secs: i64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(secs, 0)
}
