//! What an execution needs before its first turn: a place at each of its keys, and a start by the rate of one.

use serde::{Deserialize, Serialize};

use crate::command::Context;
use crate::decision::{Effect, FreePlaces};
use crate::duration::Millis;
use crate::execution::{Execution, ExecutionState};
use crate::flow::{Gated, Paced};
use crate::gate::{Places, Waiting, version_mark};
use crate::id::{CronId, Owner};
use crate::limits::SPAN_MAX;
use crate::time::Timestamp;
use crate::timer::end_of_run;

const DAY: Millis = Millis::from_days(1);

/// The keys that limit when an execution begins. It keeps its places from its first turn until its outcome is final, also
/// while it waits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admission {
    /// The keys at which it needs a place, in the order of their digests.
    #[serde(rename = "g", default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Gated>,
    /// Its places, once it has begun.
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    /// The key by whose rate it starts, until it has begun.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub paced: Option<Paced>,
    /// The cron whose run it is, if that starts its next run when this one ends.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<CronId>,
}

/// The places that an execution has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "HeldFields", into = "HeldFields")]
pub struct Held {
    /// Their mark, see [`version_mark`].
    pub mark: u32,
    /// The first day on which they may have ended, if no turn takes them again: counted from that of [`Timestamp::EPOCH`].
    pub until_day: u32,
}

/// Places as they are stored: an array, because the record is small.
type HeldFields = (u32, u32);

impl From<HeldFields> for Held {
    fn from((mark, until_day): HeldFields) -> Self {
        Self { mark, until_day }
    }
}

impl From<Held> for HeldFields {
    fn from(Held { mark, until_day }: Held) -> Self {
        (mark, until_day)
    }
}

impl Held {
    /// Places that end at that instant.
    fn ending(mark: u32, until: Timestamp) -> Self {
        let days = until.since(Timestamp::EPOCH).as_u64() / DAY.as_u64();
        Self { mark, until_day: u32::try_from(days).unwrap_or(u32::MAX) }
    }

    /// Whether they last until then.
    fn last(self, until: Timestamp) -> bool {
        Self::ending(self.mark, until).until_day < self.until_day
    }
}

impl Admission {
    /// Whether a turn may not start without places that were taken for this version of the record.
    pub(super) fn lacks_places(&self, taken: Option<Places>, version: u64, now: Timestamp) -> bool {
        let keeps = self.held.is_some_and(|held| held.last(now.plus(SPAN_MAX)));
        let has_taken = taken.is_some_and(|places| places.count(version, now));
        !self.gates.is_empty() && !keeps && !has_taken
    }

    /// What is left of it when a turn starts, with the places that were taken for that.
    pub(super) fn begun(mut self: Box<Self>, taken: Option<Places>) -> Option<Box<Self>> {
        if self.gates.is_empty() && self.cron.is_none() {
            return None;
        }
        if let Some(Places { until, version, .. }) = taken {
            let mark = self.held.map_or(version_mark(version), |held| held.mark);
            self.held = Some(Held::ending(mark, until));
        }
        self.paced = None;
        Some(self)
    }

    /// What is left of it once the outcome is final: what a restart needs.
    pub(super) fn ended(mut self: Box<Self>) -> Option<Box<Self>> {
        (self.held, self.paced) = (None, None);
        (!self.gates.is_empty() || self.cron.is_some()).then_some(self)
    }

    /// Whether nothing limits its begin.
    pub(super) const fn limits_nothing(&self) -> bool {
        self.gates.is_empty() && self.paced.is_none()
    }
}

impl Execution {
    /// The keys at which it has or needs a place.
    pub fn gates(&self) -> &[Gated] {
        self.admission.as_deref().map_or(&[], |admission| &admission.gates)
    }

    /// What the line of a key must know of it.
    pub fn waiting(&self) -> Waiting<'_> {
        Waiting {
            owner: self.id.clone().into(),
            incarnation: self.incarnation,
            queue: &self.queue,
            priority: self.lane.priority,
            requires: &[],
            gates: self.gates(),
            created_at: self.created_at,
            position: self.parked.in_line(),
        }
    }

    /// Since when its next turn may start; `None` if none starts by itself. One that an operator has paused comes again when
    /// it is resumed.
    pub fn ready_at(&self) -> Option<Timestamp> {
        if self.needs_operator() {
            return None;
        }
        match &self.state {
            ExecutionState::Pending(ready) => Some(ready.available_at),
            ExecutionState::Running(turn) => Some(turn.lease_expires_at),
            ExecutionState::Waiting(waiting) if waiting.wake_requested => Some(waiting.since),
            ExecutionState::Waiting(waiting) => waiting.until,
            ExecutionState::Closing(_) | ExecutionState::Ended(_) => None,
        }
    }

    /// Whether nothing but places at its keys may be missing for its next turn to start.
    pub fn may_need_places(&self, now: Timestamp) -> bool {
        let is_ready = matches!(&self.state, ExecutionState::Pending(ready) if self.is_ready(ready, now));
        let may_start = is_ready && self.parked.is_no() && !self.needs_operator() && !self.cancel_requested;
        let lacks = |admission: &Admission| admission.lacks_places(None, self.version, now);
        may_start && self.admission.as_deref().is_some_and(lacks)
    }

    /// The mark with which a turn takes its places: that of the places that it has.
    pub fn place_mark(&self) -> u32 {
        let held = self.admission.as_deref().and_then(|admission| admission.held);
        held.map_or(version_mark(self.version), |held| held.mark)
    }

    /// The version before which no place of its is needed any more.
    pub fn places_from(&self) -> u64 {
        if self.closed().is_some() { self.version } else { self.place_mark().into() }
    }

    /// What tells the cron whose run it is that its outcome is final. `None` before that, or if that cron doesn't wait for
    /// it.
    pub fn end_of_run(&self) -> Option<Effect> {
        let cron = self.admission.as_deref()?.cron.clone()?;
        Some(end_of_run(cron, self.closed()?.ended_at))
    }

    /// Whether a cron starts its next run when this one ends.
    pub fn is_run_of_cron(&self) -> bool {
        self.admission.as_deref().is_some_and(|admission| admission.cron.is_some())
    }

    /// Whether a place with this mark is its own: taken for the version that it has, so that its first turn may be about
    /// to start, or for the turn that it began with.
    pub fn owns_place(&self, mark: u32) -> bool {
        self.closed().is_none() && self.place_mark() == mark
    }
}

/// What an execution gives up at its keys when its outcome is final, or if it leaves its line without a turn; and the start
/// that it doesn't need, or doesn't keep while it waits in a line.
pub(super) fn given_up(before: &Execution, after: &Execution, context: &Context<'_>) -> Option<Effect> {
    let admission = before.admission.as_deref()?;
    let has_closed = before.closed().is_none() && after.closed().is_some();
    let (was_in_line, is_in_line) = (before.parked.in_line().is_some(), after.parked.in_line().is_some());
    let leaves_line = was_in_line && !is_in_line && after.turn().is_none() && admission.held.is_none();
    let is_needed = |paced: &&Paced| paced.start.is_some_and(|start| start.makes_wait(context.now));
    let start = admission.paced.as_ref().filter(|_| has_closed || (is_in_line && !was_in_line));
    let start = start.filter(is_needed).cloned();
    let gates = if has_closed || leaves_line { admission.gates.clone() } else { vec![] };
    (!gates.is_empty() || start.is_some()).then(|| {
        Effect::FreePlaces(Box::new(FreePlaces {
            owner: Owner::Execution(before.id.clone()),
            incarnation: before.incarnation,
            gates,
            before: after.version,
            waited: admission.held.is_none().then(|| before.waiting().mark()),
            start,
        }))
    })
}
