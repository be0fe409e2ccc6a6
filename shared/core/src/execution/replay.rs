//! The state of each name of a run, computed from the journal. The code gets results from here instead of running steps
//! again.
//!
//! A turn runs the code from its beginning. Each named operation asks here for its state: a step that has ended gives
//! its result, a sleep its end, a wait the event that it took. The code receives these outcomes one at a time, in the
//! order of the journal (`order`). New entries of the turn are added here too, and are collected until they are
//! written. Nothing here runs code, waits or reads a clock.

mod attempt;
mod continued;
mod drift;
mod events;
mod merge;
mod name_state;
mod order;
mod overtaken;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Reject;
use crate::execution::journal::{Entry, Happened, RESUMED, STOPPED, start_of_child};
use crate::id::{EventName, ExecutionId, StepName};
use crate::limits::{self, Limits};
use crate::parent::ParentClosePolicy;
use crate::payload::Payload;
use crate::time::Timestamp;

pub use attempt::{AfterFailure, Bounds, EndedAttempt, Next, StepPolicy, timed_out};
pub use continued::is_continued;
pub use events::UntakenEvent;
pub use merge::Merged;
pub use name_state::{NameState, WaitOutcome};
pub use overtaken::what_holds;

/// About how many bytes of memory an entry takes without its values: its name is in several maps.
const ENTRY_BYTES: usize = 500;

/// Why the code can't use a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// Another operation of this run has the name. Results are stored by name, so each name can mean only one
    /// operation.
    #[error(
        "the name {:?} is used twice in one run; give one of them another, or index it as in \"{name}[1]\"",
        .name.as_str()
    )]
    Taken { name: StepName },
    /// The run has the maximum number of names.
    #[error(transparent)]
    Limit(#[from] Reject),
}

/// A value that is near its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Warning {
    pub limit: &'static str,
    /// The current value.
    pub value: usize,
    /// The limit.
    pub maximum: usize,
}

/// The state of a run.
#[derive(Clone, Debug)]
pub struct Replay {
    name_states: BTreeMap<StepName, NameState>,
    /// The names whose state is open. There are few of them, and the code is asked for them after each poll.
    open: BTreeSet<StepName>,
    /// Names that the code has used since the turn started.
    claimed: BTreeSet<StepName>,
    events: BTreeMap<EventName, events::EventQueue>,
    order: order::Order,
    drift: drift::Drift,
    patches: Option<Vec<String>>,
    /// Whether the run's journal has no entries of its own code, only entries from outside.
    untouched: bool,
    /// Steps that an operator has had run again, and how many times.
    reopened: BTreeMap<StepName, u32>,
    /// The inputs that operators gave to steps in place of the code's.
    inputs: BTreeMap<StepName, Payload>,
    /// The open children that an earlier run left, and that this run's code hasn't asked for.
    left: BTreeMap<ExecutionId, Entry>,
    /// Remote steps that were started in this run.
    begun: BTreeSet<StepName>,
    /// The largest fan-out since the turn started.
    widest: usize,
    /// When sleeps, timeouts and waits end by themselves.
    instants: BTreeMap<StepName, Timestamp>,
    /// How many entries are stored.
    stored: usize,
    /// See [`Replay::bytes`].
    bytes: usize,
    /// Entries since the last write, oldest first.
    fresh: Vec<Entry>,
    /// Entries that are being written.
    in_flight: Vec<Entry>,
    /// See [`Replay::is_overtaken`].
    overtaken: bool,
    limits: Limits,
    warned: BTreeSet<&'static str>,
}

impl Replay {
    /// A run with this journal. The entries of its segments come first.
    pub fn new(journal: &[Entry], limits: &Limits) -> Self {
        let mut replay = Self {
            name_states: BTreeMap::new(),
            open: BTreeSet::new(),
            claimed: BTreeSet::new(),
            events: BTreeMap::new(),
            order: order::Order::default(),
            drift: drift::Drift::default(),
            patches: None,
            untouched: true,
            reopened: BTreeMap::new(),
            inputs: BTreeMap::new(),
            left: BTreeMap::new(),
            begun: BTreeSet::new(),
            widest: 0,
            instants: BTreeMap::new(),
            stored: 0,
            bytes: 0,
            fresh: vec![],
            in_flight: vec![],
            overtaken: false,
            limits: limits.clone(),
            warned: BTreeSet::new(),
        };
        replay.rebuild(journal);
        replay
    }

    /// Claims a name for an operation of the code. Each name can be claimed once in a turn.
    pub fn claim(&mut self, name: &StepName) -> Result<(), ClaimError> {
        if self.claimed.contains(name) {
            return Err(ClaimError::Taken { name: name.clone() });
        }
        if !self.name_states.contains_key(name) {
            limits::check("journal_entries", self.entries() + 1, self.limits.journal_entries)?;
        }
        self.claimed.insert(name.clone());
        Ok(())
    }

    /// The state of a name.
    pub fn name_state(&self, name: &StepName) -> &NameState {
        self.name_states.get(name).unwrap_or(&NameState::Fresh)
    }

    /// Adds a new entry. It counts at once and is written with the next write.
    pub fn push(&mut self, at: Timestamp, what: Happened) {
        let entry = Entry { at, what };
        self.apply_entry(&entry);
        self.fresh.push(entry);
    }

    /// Whether there are entries to write.
    pub fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// The entries to write now. They count as being written until [`Replay::merge`] gets the result of the write.
    pub fn take_fresh(&mut self) -> Vec<Entry> {
        let taken = std::mem::take(&mut self.fresh);
        self.in_flight.extend(taken.iter().cloned());
        taken
    }

    /// The entries that aren't known to be written: those being written now, and those added since.
    pub fn unwritten(&self) -> impl Iterator<Item = &Entry> {
        self.in_flight.iter().chain(&self.fresh)
    }

    /// The last write, if there was one, failed: its entries are written with the next write.
    pub fn put_back(&mut self) {
        self.fresh.splice(0..0, self.in_flight.drain(..));
    }

    /// How many entries the run has, those not yet written included.
    pub fn entries(&self) -> usize {
        self.stored + self.in_flight.len() + self.fresh.len()
    }

    /// About how many bytes of memory its entries take, with all values that they point to.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Remote steps that have started and haven't ended.
    pub fn open_remote(&self) -> Vec<StepName> {
        let open = self.open.iter().filter(|name| matches!(self.name_state(name), NameState::Remote));
        open.cloned().collect()
    }

    /// Children and other executions that the code waits for and that haven't ended.
    pub fn open_children(&self) -> Vec<(StepName, ExecutionId)> {
        let open = self.open.iter().filter_map(|name| match self.name_state(name) {
            NameState::Child { execution, .. } => Some((name.clone(), execution.clone())),
            NameState::Fresh
            | NameState::InProgress { .. }
            | NameState::Failed { .. }
            | NameState::Remote
            | NameState::Ended { .. }
            | NameState::Captured(_)
            | NameState::Until(_)
            | NameState::Fired
            | NameState::Waited(_) => None,
        });
        open.collect()
    }

    /// The open children that end with the execution, as the next run begins with them. Some may have ended meanwhile.
    pub fn left_to_next(&self) -> Vec<Entry> {
        let asked = self.open.iter().filter_map(|name| match self.name_state(name) {
            NameState::Child { execution, policy, since } if *policy != ParentClosePolicy::Abandon => {
                let (name, execution) = (name.clone(), execution.clone());
                let what = Happened::Child { name, execution, policy: *policy, left: true, was_left: false };
                Some(Entry { at: *since, what })
            }
            _ => None,
        });
        self.left.values().cloned().chain(asked).collect()
    }

    /// Whether this is an open child that an earlier run has left, and that this run's code hasn't asked for.
    pub fn is_left(&self, child: &ExecutionId) -> bool {
        self.left.contains_key(child)
    }

    /// Refuses more open steps and children than the limit allows.
    pub fn check_open(&self, more: usize) -> Result<(), Reject> {
        limits::check("open_steps", self.open_count() + more, self.limits.open_steps)
    }

    /// Refuses a larger fan-out than the limit allows.
    pub fn check_fan_out(&mut self, steps: usize) -> Result<(), Reject> {
        self.widest = self.widest.max(steps);
        limits::check("fan_out", steps, self.limits.fan_out)
    }

    /// Whether the code has got something of this turn that others' entries have overtaken, see [`what_holds`]. The turn must
    /// end, with the entries that are still [fresh](Replay::take_fresh).
    pub const fn is_overtaken(&self) -> bool {
        self.overtaken
    }

    /// The patches that the code had when the run started; `None` if none were recorded.
    pub fn patches(&self) -> Option<&[String]> {
        self.patches.as_deref()
    }

    /// Whether this is the run's first turn, as far as the journal shows: it has no entries of the run's code.
    pub const fn is_untouched(&self) -> bool {
        self.untouched
    }

    /// How many times an operator has had a step of this run run again.
    pub fn reopened(&self) -> u32 {
        self.reopened.values().sum()
    }

    /// Whether an operator has had this step run again.
    pub fn was_reopened(&self, name: &StepName) -> bool {
        self.reopened.contains_key(name)
    }

    /// The input that an operator gave to a step in place of the code's.
    pub fn input_of(&self, name: &StepName) -> Option<&Payload> {
        self.inputs.get(name)
    }

    /// How many times an operator has had this step run again.
    pub fn times_reopened(&self, name: &StepName) -> u32 {
        self.reopened.get(name).copied().unwrap_or_default()
    }

    /// Whether a step's result was there when the run started: it was kept from an earlier run, so no notification of
    /// it will arrive.
    pub fn is_from_earlier_run(&self, name: &StepName) -> bool {
        matches!(self.name_state(name), NameState::Ended { .. }) && !self.begun.contains(name)
    }

    /// Values that have reached four fifths of their limit since the last call.
    pub fn warnings(&mut self) -> Vec<Warning> {
        let pending = self.events.values().map(events::EventQueue::len).sum();
        let levels = [
            ("journal_entries", self.entries(), self.limits.journal_entries),
            ("open_steps", self.open_count(), self.limits.open_steps),
            ("pending_events", pending, self.limits.pending_events),
            ("fan_out", self.widest, self.limits.fan_out),
        ];
        let near = levels.into_iter().filter(|(_, value, maximum)| *value * 5 >= *maximum * 4);
        near.filter(|(limit, ..)| self.warned.insert(limit))
            .map(|(limit, value, maximum)| Warning { limit, value, maximum })
            .collect()
    }

    fn open_count(&self) -> usize {
        self.left.len() + self.open.len()
    }

    fn set(&mut self, name: StepName, name_state: NameState) {
        if name_state.is_open() {
            self.open.insert(name.clone());
        } else {
            self.open.remove(&name);
        }
        self.name_states.insert(name, name_state);
    }

    /// Applies an entry to the state, whether the turn or another caller wrote it.
    fn apply_entry(&mut self, entry: &Entry) {
        self.bytes += ENTRY_BYTES + entry.payload().map_or(0, Payload::bytes);
        if let Some(name) = entry.what.outcome_of() {
            self.order.add(name);
        }
        match &entry.what {
            Happened::Event { name, id: _, payload } => {
                let event = UntakenEvent { sent_at: entry.at, payload: payload.clone() };
                self.events.entry(name.clone()).or_default().add(entry, event);
                return;
            }
            Happened::Note { kind, name, .. } => {
                if kind == RESUMED {
                    self.name_states.values_mut().for_each(|name_state| name_state.start_afresh(entry.at));
                }
                if kind == STOPPED {
                    self.order.stop();
                }
                self.drift.note(kind, name.as_ref(), &self.name_states);
                return;
            }
            Happened::EventsCleared { name, count } => self.clear_events(name, *count),
            Happened::Patches { names } => self.patches = Some(names.clone()),
            Happened::Reopened { name, input, .. } => {
                self.inputs.extend(input.clone().map(|input| (name.clone(), input)));
                *self.reopened.entry(name.clone()).or_default() += 1;
                // A child whose start was refused, as only an end with attempts says, or that was open and ended with the
                // execution, starts again where the code awaits that.
                let starts = matches!(
                    self.name_state(name),
                    NameState::Ended { attempts: Some(_), .. } | NameState::Child { .. }
                );
                let start = start_of_child(name).filter(|_| starts);
                for name in [Some(name), start.as_ref()].into_iter().flatten() {
                    self.name_states.remove(name);
                    self.open.remove(name);
                    self.order.forget(name);
                }
                self.name_states.values_mut().for_each(|name_state| name_state.go_on(entry.at));
                self.drift.keep(&self.name_states);
            }
            Happened::Waited { name, event } => {
                let taken = match event {
                    Some(event) => self.take_event(event),
                    None => WaitOutcome::Nothing,
                };
                self.set(name.clone(), NameState::Waited(taken));
            }
            Happened::Child { execution, left: true, .. } => {
                self.left.insert(execution.clone(), entry.clone());
                return;
            }
            Happened::Child { name, execution, policy, left: false, was_left: _ } => {
                self.left.remove(execution);
                let child =
                    NameState::Child { execution: execution.clone(), policy: *policy, since: entry.at };
                self.set(name.clone(), child);
            }
            what @ (Happened::Attempt { .. }
            | Happened::Remote { .. }
            | Happened::Step { .. }
            | Happened::Captured { .. }
            | Happened::Until { .. }
            | Happened::Fired { .. }) => {
                if let Happened::Until { name, until } = what {
                    self.instants.insert(name.clone(), *until);
                }
                if let Some((name, name_state)) = NameState::after(what) {
                    if name_state == NameState::Remote {
                        self.begun.insert(name.clone());
                    }
                    let name_state = name_state.following(self.name_state(&name));
                    self.set(name, name_state);
                }
            }
        }
        self.untouched = false;
    }
}
