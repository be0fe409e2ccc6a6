//! What a turn's driver and the code that it polls share: the state of each name, and what the code waits for.
//!
//! The code's futures only read this state and add what they need. Only the driver acts on it.

use std::collections::{BTreeMap, HashMap};
use std::task::Waker;

use tickover_core::duration::Millis;
use tickover_core::execution::journal::{UNDO_PREFIX, is_after_failure};
use tickover_core::execution::replay::{Bounds, ClaimError, Replay};
use tickover_core::execution::{Slot, TimedAttempt};
use tickover_core::id::{BlobId, NameError, StepName};
use tickover_core::payload::{Json, Payload};
use tickover_core::task;
use tickover_core::time::{Timestamp, earliest};
use tickover_service::ServiceError;

use super::facts::Facts;
use super::need::{Inline, Need, Rank, Stage, Waiting};
use super::published::Published;
use crate::ctx::UndoStep;
use crate::error::Error;

/// The state of a turn.
pub(crate) struct State {
    pub(crate) replay: Replay,
    pub(crate) facts: Facts,
    /// What the code waits for, by number, in the order of the first polls.
    pub(crate) needs: BTreeMap<u64, Waiting>,
    /// The same numbers by name.
    pub(super) numbers: HashMap<StepName, u64>,
    /// The outcomes that the journal has passed and the code hasn't taken, by rank.
    pub(super) passed: BTreeMap<Rank, u64>,
    /// How often an outcome was moved back.
    pub(super) moved_back: u64,
    /// The outcomes among them that the code has asked for, by their position in the journal. They are delivered when
    /// the code is at rest.
    pub(super) requested: BTreeMap<u64, u64>,
    /// The outcome that is being delivered, until the code is at rest.
    pub(super) delivering: Option<u64>,
    /// The other outcome that is available until then.
    pub(super) also_available: AlsoAvailable,
    /// How often the body was polled.
    pub(super) polls: u64,
    pub(super) last_delivered: Option<StepName>,
    /// What the code has asked for so far, with the inputs, if a test compares replays.
    pub(super) asked: Option<Vec<String>>,
    /// What the code has published.
    pub(crate) published: Published,
    /// What ends the turn: requested by the code, or found by the driver.
    pub(crate) verdict: Option<Verdict>,
    /// The undo steps, in order of registration. They run in reverse order.
    pub(crate) undoing: Vec<(String, Option<UndoStep>)>,
    pub(crate) undo: UndoStage,
    /// Remote steps that the code no longer waits for and that have to be ended.
    pub(crate) losers: Vec<StepName>,
    /// Whether others' outcomes have to be read as soon as possible.
    pub(crate) needs_read: bool,
    /// Whether the futures that are dropped now have lost a race or timed out, so that their remote steps are ended.
    pub(crate) dropping_ends: bool,
    /// Whether the turn is over. Futures that are polled after that stay pending.
    pub(crate) is_over: bool,
    next: u64,
    pub(super) own_waker: Waker,
    texts: HashMap<BlobId, Json>,
    counts: BTreeMap<String, u32>,
}

/// What is undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UndoStage {
    /// The code runs, or it has ended without an error.
    NotYet,
    /// The code has ended with an error.
    Failure,
    /// The code was stopped because the execution is to be cancelled.
    Cancellation,
}

/// The outcome, from before the current delivery, that the code may take now.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AlsoAvailable {
    pub(super) number: Option<u64>,
    /// Whether the code has polled another outcome from before the delivery.
    pub(super) is_passed_over: bool,
}

/// What ends a turn, except for the output of the body.
pub(crate) enum Verdict {
    /// The code continues in a new run.
    ContinueAsNew(Json),
    /// The run fails with this error.
    Failed(Error),
    /// A stored result, the one of this name if it is one, doesn't fit the code. The execution waits for an operator.
    Unreadable(
        task::Failure,
        #[cfg_attr(not(feature = "test"), expect(dead_code, reason = "a replay says it"))] Option<String>,
    ),
    /// The worker lacks something that the code needs. Another worker, or the next deployment, may have it.
    Stuck(task::Failure),
    /// The service failed while the code waited for it. The turn is tried again.
    Broken(ServiceError),
}

impl State {
    pub(crate) fn new(replay: Replay, facts: Facts, own_waker: Waker) -> Self {
        Self {
            replay,
            facts,
            needs: BTreeMap::new(),
            numbers: HashMap::new(),
            passed: BTreeMap::new(),
            moved_back: 0,
            requested: BTreeMap::new(),
            delivering: None,
            also_available: AlsoAvailable::default(),
            polls: 0,
            last_delivered: None,
            asked: None,
            published: Published::default(),
            verdict: None,
            undoing: vec![],
            undo: UndoStage::NotYet,
            losers: vec![],
            needs_read: false,
            dropping_ends: false,
            is_over: false,
            next: 0,
            own_waker,
            texts: HashMap::new(),
            counts: BTreeMap::new(),
        }
    }

    /// A name as it is written in the journal, with its prefix.
    pub(crate) fn name(&self, text: &str) -> Result<StepName, NameError> {
        StepName::parse(format!("{}{text}", self.facts.prefix))
    }

    /// Claims a name. If a limit is exceeded, the run fails with its error.
    pub(crate) fn claim(&mut self, text: &str) -> Result<StepName, ClaimProblem> {
        let name =
            self.name(text).map_err(|error| ClaimProblem::Refused(format!("the name {text:?} {error}")))?;
        match self.replay.claim(&name) {
            Ok(()) => {
                self.asked.iter_mut().for_each(|asked| asked.push(format!("`{name}`")));
                Ok(name)
            }
            // Changed code may do that to a run that other code has begun.
            Err(taken @ ClaimError::Taken { .. }) => {
                self.end_by(self.facts.begun, Error::new("invalid_step", taken.to_string()));
                Err(ClaimProblem::Over)
            }
            Err(ClaimError::Limit(reject)) => {
                self.fail(Error::new(reject.code(), reject.to_string()));
                Err(ClaimProblem::Over)
            }
        }
    }

    /// Notes the input of what the code has just asked for, if a test compares replays.
    pub(crate) fn note_input(&mut self, input: impl FnOnce() -> Option<Json>) {
        if let Some(last) = self.asked.as_mut().and_then(|asked| asked.last_mut())
            && let Some(input) = input()
        {
            last.push_str(" with ");
            last.push_str(input.as_str());
        }
    }

    /// The number of earlier uses of this text. It makes names of several operations of one kind unique.
    pub(crate) fn count(&mut self, text: &str) -> u32 {
        let count = self.counts.entry(text.to_owned()).or_default();
        *count += 1;
        *count - 1
    }

    /// Fails the run with an error that the code can't handle. The first error counts.
    pub(crate) fn fail(&mut self, error: Error) {
        self.verdict.get_or_insert(Verdict::Failed(error));
    }

    /// Ends the turn because of a mistake in the code. A run that other code has begun isn't ended by it: it waits for
    /// repaired code.
    pub(crate) fn refuse_code(&mut self, error: Error) {
        self.end_by(!self.replay.is_untouched(), error);
    }

    fn end_by(&mut self, waits: bool, error: Error) {
        let verdict = if waits {
            Verdict::Stuck(task::Failure::new(error.code(), error.message()))
        } else {
            Verdict::Failed(error)
        };
        self.verdict.get_or_insert(verdict);
    }

    /// A payload's text, if it is in memory.
    pub(crate) fn text(&self, payload: &Payload) -> Option<Json> {
        match payload {
            Payload::Inline(json) => Some(json.clone()),
            Payload::Blob(at) => self.texts.get(&at.id).cloned(),
        }
    }

    /// The needs that haven't ended, according to the entries that were delivered so far.
    pub(crate) fn open(&self) -> impl Iterator<Item = &Need> {
        self.needs.values().filter(|waiting| waiting.ended.is_none()).map(|waiting| &waiting.need)
    }

    /// Keeps the text of a payload in memory.
    pub(crate) fn remember(&mut self, payload: &Payload, text: Json) {
        if let Payload::Blob(at) = payload {
            self.texts.insert(at.id, text);
        }
    }

    /// Removes the text of this name's outcome from memory. Who waits for it again has it read again. It stays if the
    /// other outcome that the code may take now has the same: several may have looked at one event.
    pub(crate) fn forget_text(&mut self, name: &StepName) {
        let Some(text) = self.blob_of(name) else { return };
        let available = [self.delivering, self.also_available.number].into_iter().flatten();
        let mut needed = available.filter_map(|number| self.blob_of(self.needs.get(&number)?.need.name()));
        if !needed.any(|other| other == text) {
            self.texts.remove(&text);
        }
    }

    /// Where the outcome of this name is stored, if it is too large for the journal.
    fn blob_of(&self, name: &StepName) -> Option<BlobId> {
        match self.replay.name_state(name).payload()? {
            Payload::Blob(at) => Some(at.id),
            Payload::Inline(_) => None,
        }
    }

    /// How many texts are in memory.
    #[cfg(all(test, feature = "test"))]
    pub(crate) fn texts(&self) -> usize {
        self.texts.len()
    }

    /// Sets the body's own waker for the next poll.
    pub(crate) fn poll_with(&mut self, waker: Waker) {
        self.own_waker = waker;
        self.polls += 1;
    }

    /// Before the code runs, the outcomes of what has been started are read.
    pub(super) fn reads_outcomes_first(&mut self) {
        self.needs_read = !self.replay.open_remote().is_empty() || !self.replay.open_children().is_empty();
    }

    /// Records what a future of the code waits for. Returns its number.
    pub(crate) fn wait(&mut self, need: Need, waker: &Waker) -> u64 {
        self.next += 1;
        let number = self.next;
        let place = self.replay.position(need.name());
        self.numbers.insert(need.name().clone(), number);
        self.needs.insert(number, Waiting { need, ended: None, polled_in: self.polls, waker: None });
        self.wait_on(number, waker);
        if let Some(place) = place {
            self.has_ended(number, place);
            self.requested.insert(place, number);
        }
        number
    }

    /// Records the waker of a future that is polled again.
    pub(crate) fn wait_on(&mut self, number: u64, waker: &Waker) {
        // The driver polls the body after each delivery, so the body's own waker isn't kept here. If another holder
        // keeps it, the code waits for a future that isn't of the context.
        let waker = (!waker.will_wake(&self.own_waker)).then(|| waker.clone());
        if let Some(waiting) = self.needs.get_mut(&number) {
            waiting.waker = waker;
            waiting.polled_in = self.polls;
            self.also_available.is_passed_over |= waiting.ended.is_some();
            self.requested.extend(waiting.ended.map(|rank| (rank.place, number)));
        }
    }

    /// Whether the outcome of this future, which is polled now, is available. Which outcomes are available is decided
    /// before the poll, so that it doesn't depend on which future the code polls first.
    pub(crate) fn is_available(&self, number: u64) -> bool {
        self.delivering == Some(number) || self.also_available.number == Some(number)
    }

    /// Whether the code still waits for it: it was polled in the last poll of the body, or an executor within the code
    /// has its waker.
    pub(super) fn is_watched(&self, number: u64) -> bool {
        let is_watched = |waiting: &Waiting| waiting.waker.is_some() || waiting.polled_in == self.polls;
        self.needs.get(&number).is_some_and(is_watched)
    }

    /// Records the position of an outcome that the journal has passed.
    pub(super) fn has_ended(&mut self, number: u64, place: u64) {
        if let Some(waiting) = self.needs.get_mut(&number)
            && waiting.ended.is_none()
        {
            let rank = Rank { moved_back: 0, place };
            waiting.ended = Some(rank);
            self.passed.insert(rank, number);
        }
    }

    /// Removes what a future waited for.
    pub(crate) fn forget(&mut self, number: u64) -> Option<Need> {
        let Waiting { need, ended, .. } = self.needs.remove(&number)?;
        self.numbers.remove(need.name());
        if let Some(rank) = ended {
            self.requested.remove(&rank.place);
            self.passed.remove(&rank);
        }
        Some(need)
    }

    /// How many futures of the context are polled by an executor within the code.
    pub(crate) fn inner_count(&self) -> usize {
        self.needs.values().filter(|waiting| waiting.waker.is_some()).count()
    }

    /// Whether there is something to undo, or it is being undone.
    pub(crate) fn undoes(&self) -> bool {
        self.undo != UndoStage::NotYet || self.undoing.iter().any(|(_, undoing)| undoing.is_some())
    }

    /// Whether a name belongs to the code that runs now: the workflow's, or that of a handler.
    pub(crate) fn is_of_this_code(&self, name: &StepName) -> bool {
        match self.facts.prefix.as_str() {
            "" => !is_after_failure(name),
            prefix => name.as_str().starts_with(prefix),
        }
    }

    /// The remote steps of the code that runs now that haven't ended, without those that undo others.
    pub(crate) fn open_steps(&self) -> Vec<StepName> {
        let undoes = |name: &StepName| {
            let own = name.as_str().strip_prefix(self.facts.prefix.as_str()).unwrap_or_default();
            own.starts_with(UNDO_PREFIX)
        };
        let open = self.replay.open_remote().into_iter();
        open.filter(|name| self.is_of_this_code(name) && !undoes(name)).collect()
    }

    /// The remote steps that other code than that which runs now has left open, without those that undo others.
    pub(crate) fn steps_left_open(&self) -> Vec<StepName> {
        let left = |name: &StepName| !self.is_of_this_code(name) && !name.as_str().starts_with(UNDO_PREFIX);
        self.replay.open_remote().into_iter().filter(left).collect()
    }

    /// The name of the last delivered outcome.
    pub(crate) const fn last_delivered(&self) -> Option<&StepName> {
        self.last_delivered.as_ref()
    }

    /// The attempts that run or are about to, and whose timeouts also count if this worker is lost.
    pub(crate) fn under_way(&self) -> Vec<TimedAttempt> {
        let inline = self.needs.values().filter_map(|waiting| waiting.need.inline());
        let runs = inline.filter(|inline| match inline.stage {
            Stage::Due { .. } | Stage::Running(_) => true,
            // Its time over all attempts goes on. An attempt's own has ended with it.
            Stage::Retry { in_place, .. } => in_place && !inline.policy.at_most_once,
            Stage::Unknown | Stage::Ended => false,
        });
        runs.filter_map(|inline| Some(TimedAttempt::of(&inline.name, inline.watched_until()?))).collect()
    }

    /// When the first attempt that runs must have ended.
    pub(crate) fn under_way_until(&self) -> Option<Timestamp> {
        let inline = self.needs.values().filter_map(|waiting| waiting.need.inline());
        let runs = inline.filter(|inline| matches!(inline.stage, Stage::Running(_)));
        runs.filter_map(Inline::watched_until).min()
    }

    /// The inline step with this number.
    pub(super) fn inline(&self, number: u64) -> Option<&Inline> {
        self.needs.get(&number)?.need.inline()
    }

    /// The random seed for a step's retries, so that the steps of one execution have different delays.
    pub(super) fn seed_of(&self, name: &StepName) -> u64 {
        let digest = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        self.facts.seed ^ name.as_str().bytes().fold(0xCBF2_9CE4_8422_2325, digest)
    }

    /// The limit for retries and timeouts.
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds { deadline_at: self.facts.deadline_at }
    }

    /// The time left until the first of the deadline and the end of the invocation.
    pub(crate) fn remaining(&self, now: Timestamp) -> Option<Millis> {
        earliest([self.facts.deadline_at, self.facts.limit_at]).map(|end| end.since(now))
    }
}

/// Why a name couldn't be claimed.
pub(crate) enum ClaimProblem {
    /// The name isn't valid.
    Refused(String),
    /// The run ends because of it.
    Over,
}

/// The slot of a remote step in a join.
pub(crate) type JoinSlot = Option<Slot>;
