//! What a turn's driver and the code it polls share: where names stand, and what the code waits for.
//!
//! The code's futures only look and say what they need; the driver alone makes anything happen.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use tickover_core::duration::Millis;
use tickover_core::execution::replay::{Bounds, ClaimError, Replay};
use tickover_core::execution::{Execution, Slot, UnderWay};
use tickover_core::id::{BlobId, ExecutionId, Incarnation, NameError, QueueName, StepName};
use tickover_core::payload::{Json, Payload};
use tickover_core::task;
use tickover_core::time::{Timestamp, earliest};
use tickover_core::trace::TraceContext;
use tickover_service::Service;

use super::need::{Inline, Need, Rank, Stage, Waiting};
use crate::ctx::{Undoing, is_undoing};
use crate::error::Error;
use crate::registry::ErasedStep;
use crate::step::States;

/// What the names begin with of the code that deals with a failure.
const ON_FAILURE_PREFIX: &str = "on_failure";

/// What is said of a future of a context that something else than the workflow's code polls.
const OUTSIDE: &str = "a future of the workflow's context was polled outside of the workflow's own code, as by \
     `tokio::spawn`: await it in the workflow, or many at once with `ctx.join_all`, `tokio::join!` or the like";

thread_local! {
    /// What the turn shares whose code is polled now on this thread.
    static POLLED: RefCell<Option<Arc<Shared>>> = const { RefCell::new(None) };
}

/// Sets back whose code is polled, also where that panics.
struct Restore(Option<Arc<Shared>>);

impl Drop for Restore {
    fn drop(&mut self) {
        drop(POLLED.replace(self.0.take()));
    }
}

/// What the driver and the code's futures share.
pub(crate) struct Shared {
    state: Mutex<State>,
    service: Service,
}

impl Shared {
    pub(crate) fn new(state: State, service: Service) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(state), service })
    }

    /// What the turn is run with.
    pub(crate) const fn service(&self) -> &Service {
        &self.service
    }

    /// The state. No user's code runs under this lock.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.service.now()
    }

    /// Polls the code, which may use its context meanwhile.
    pub(super) fn polling<T>(self: &Arc<Self>, poll: impl FnOnce() -> T) -> T {
        let before = POLLED.replace(Some(Arc::clone(self)));
        let _after = Restore(before);
        poll()
    }

    /// What the turn shares whose code is polled now on this thread.
    pub(crate) fn polled() -> Option<Arc<Self>> {
        POLLED.with_borrow(Clone::clone)
    }

    /// Whether it is the code of this turn that uses the context now. A task of its own, or a thread, would be polled
    /// at times that no replay knows.
    pub(crate) fn is_polled_here(self: &Arc<Self>) -> bool {
        let mut state = self.lock();
        if POLLED.with_borrow(|polled| polled.as_ref().is_some_and(|polled| Arc::ptr_eq(polled, self))) {
            return !state.is_over;
        }
        if state.is_over {
            tracing::error!("{OUTSIDE}");
        } else {
            state.fail(Error::new("outside_turn", OUTSIDE));
            state.own_waker.wake_by_ref();
        }
        false
    }

    /// Drops futures of the code; if wished, the remote steps that they waited for are ended.
    pub(crate) fn drop_ending<F>(&self, ends: bool, futures: F) {
        self.lock().dropping_ends = ends;
        drop(futures);
        self.lock().dropping_ends = false;
    }
}

/// Where a turn stands.
pub(crate) struct State {
    pub(crate) replay: Replay,
    pub(crate) facts: Facts,
    /// What the code waits for, by number: in the order in which it began to.
    pub(crate) needs: BTreeMap<u64, Waiting>,
    /// The same by name.
    pub(super) numbers: HashMap<StepName, u64>,
    /// What has ended while the code looked elsewhere, and isn't taken yet, by rank.
    pub(super) heard: BTreeMap<Rank, u64>,
    /// How often something stood back that the code looked past.
    pub(super) stood_back: u64,
    /// What the code asked for after it had come past its end, and is to be told of once it rests, in the same order.
    pub(super) asked: BTreeMap<u64, u64>,
    /// What the code is told of until it rests.
    pub(super) told: Option<u64>,
    /// What else it hears of until then.
    pub(super) due: Due,
    /// How often the body was polled.
    pub(super) polls: u64,
    pub(super) last_heard: Option<StepName>,
    /// What ends the turn, said by the code or found out for it.
    pub(crate) verdict: Option<Verdict>,
    /// Steps that run if the code fails, the last first.
    pub(crate) undoing: Vec<(String, Option<Undoing>)>,
    /// Remote steps that nobody waits for any more and that are to be ended.
    pub(crate) losers: Vec<StepName>,
    /// Whether others' outcomes are to be looked at as soon as may be.
    pub(crate) look: bool,
    /// Whether remote steps whose futures are dropped now have lost a race or run out of time.
    pub(crate) dropping_ends: bool,
    /// Whether the turn is over: nothing that is polled after that gets anywhere.
    pub(crate) is_over: bool,
    next: u64,
    own_waker: Waker,
    texts: HashMap<BlobId, Json>,
    counts: BTreeMap<String, u32>,
}

/// What ended before and isn't taken, of which the code hears if it looks at that now.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Due {
    pub(super) number: Option<u64>,
    /// Whether the code has looked at something else meanwhile that had ended before.
    pub(super) is_looked_past: bool,
}

/// What the code can ask about the run.
pub(crate) struct Facts {
    pub(crate) execution: ExecutionId,
    pub(crate) run: u32,
    /// Tells this run's idempotency keys from all others.
    pub(crate) key: String,
    pub(crate) seed: u64,
    pub(crate) incarnation: Incarnation,
    /// Where remote steps go that name no queue.
    pub(crate) queue: QueueName,
    pub(crate) trace: Option<TraceContext>,
    /// When the run, the execution, or the code for a failure must be done.
    pub(crate) deadline_at: Option<Timestamp>,
    /// When the invocation that the turn runs in ends.
    pub(crate) limit_at: Option<Timestamp>,
    pub(crate) cancelled: bool,
    /// What names begin with: the code that deals with a failure has names of its own.
    pub(crate) prefix: String,
    pub(crate) patches: &'static [&'static str],
    /// Steps that are run instead of those of the same kind.
    pub(crate) mocks: Arc<BTreeMap<String, ErasedStep>>,
    /// What steps get beside their arguments.
    pub(crate) states: States,
}

/// What ends a turn besides the body's own answer.
pub(crate) enum Verdict {
    /// The code goes on in a fresh run.
    ContinueAsNew(Json),
    /// The code can't go on; the run fails with this.
    Failed(Error),
    /// A stored result doesn't fit; the execution waits for an operator.
    Unreadable(task::Failure),
    /// The worker lacks something that the code needs; another worker, or the next deployment, may have it.
    Stuck(task::Failure),
}

impl State {
    pub(crate) fn new(replay: Replay, facts: Facts, own_waker: Waker) -> Self {
        Self {
            replay,
            facts,
            needs: BTreeMap::new(),
            numbers: HashMap::new(),
            heard: BTreeMap::new(),
            stood_back: 0,
            asked: BTreeMap::new(),
            told: None,
            due: Due::default(),
            polls: 0,
            last_heard: None,
            verdict: None,
            undoing: vec![],
            losers: vec![],
            look: false,
            dropping_ends: false,
            is_over: false,
            next: 0,
            own_waker,
            texts: HashMap::new(),
            counts: BTreeMap::new(),
        }
    }

    /// The name of something in the run, as it stands in the journal.
    pub(crate) fn name(&self, text: &str) -> Result<StepName, NameError> {
        StepName::parse(format!("{}{text}", self.facts.prefix))
    }

    /// Takes a name. A limit that is reached ends the run with an error of its own.
    pub(crate) fn claim(&mut self, text: &str) -> Result<StepName, ClaimProblem> {
        let name =
            self.name(text).map_err(|error| ClaimProblem::Refused(format!("the name {text:?} {error}")))?;
        match self.replay.claim(&name) {
            Ok(()) => Ok(name),
            Err(taken @ ClaimError::Taken { .. }) => Err(ClaimProblem::Refused(taken.to_string())),
            Err(ClaimError::Limit(reject)) => {
                self.fail(Error::new(reject.code(), reject.to_string()));
                Err(ClaimProblem::Over)
            }
        }
    }

    /// The number of this use of a text, from 0: what many of a kind are told apart by.
    pub(crate) fn count(&mut self, text: &str) -> u32 {
        let count = self.counts.entry(text.to_owned()).or_default();
        *count += 1;
        *count - 1
    }

    /// Ends the run with an error that the code has no say in. The first one counts.
    pub(crate) fn fail(&mut self, error: Error) {
        self.verdict.get_or_insert(Verdict::Failed(error));
    }

    /// A payload's text, if it is at hand.
    pub(crate) fn text(&self, payload: &Payload) -> Option<Json> {
        match payload {
            Payload::Inline(json) => Some(json.clone()),
            Payload::Blob(at) => self.texts.get(&at.id).cloned(),
        }
    }

    /// What the code waits for that hasn't ended, as far as it has heard.
    pub(crate) fn open(&self) -> impl Iterator<Item = &Need> {
        self.needs.values().filter(|waiting| waiting.ended.is_none()).map(|waiting| &waiting.need)
    }

    /// Keeps the text of a payload at hand.
    pub(crate) fn remember(&mut self, payload: &Payload, text: Json) {
        if let Payload::Blob(at) = payload {
            self.texts.insert(at.id, text);
        }
    }

    /// Which waker belongs to the body itself from now on.
    pub(crate) fn poll_with(&mut self, waker: Waker) {
        self.own_waker = waker;
        self.polls += 1;
    }

    /// Notes what a future of the code waits for; its number.
    pub(crate) fn wait(&mut self, need: Need, waker: &Waker) -> u64 {
        self.next += 1;
        let number = self.next;
        let place = self.replay.place(need.name());
        self.numbers.insert(need.name().clone(), number);
        self.needs.insert(number, Waiting { need, ended: None, polled_in: self.polls, waker: None });
        self.wait_on(number, waker);
        if let Some(place) = place {
            self.has_ended(number, place);
            self.asked.insert(place, number);
        }
        number
    }

    /// Notes who is to be told when something has ended that is waited for already.
    pub(crate) fn wait_on(&mut self, number: u64, waker: &Waker) {
        // The driver polls the body itself whenever something has happened, so that its own waker is never kept:
        // who keeps it waits for something else.
        let waker = (!waker.will_wake(&self.own_waker)).then(|| waker.clone());
        if let Some(waiting) = self.needs.get_mut(&number) {
            waiting.waker = waker;
            waiting.polled_in = self.polls;
            self.due.is_looked_past |= waiting.ended.is_some();
            self.asked.extend(waiting.ended.map(|rank| (rank.place, number)));
        }
    }

    /// Whether the code, which polls it now, hears that what it waits for has ended. What it may hear of until it
    /// rests stands before it is polled, so that it doesn't depend on what it polls first.
    pub(crate) fn is_heard(&self, number: u64) -> bool {
        self.told == Some(number) || self.due.number == Some(number)
    }

    /// Whether the code, which is at rest, waits for it: it was polled last, or an executor within the code has it.
    pub(super) fn is_watched(&self, number: u64) -> bool {
        let is_watched = |waiting: &Waiting| waiting.waker.is_some() || waiting.polled_in == self.polls;
        self.needs.get(&number).is_some_and(is_watched)
    }

    /// Notes that what is waited for has ended, and where that stands in the journal's order.
    pub(super) fn has_ended(&mut self, number: u64, place: u64) {
        if let Some(waiting) = self.needs.get_mut(&number)
            && waiting.ended.is_none()
        {
            let rank = Rank { stood_back: 0, place };
            waiting.ended = Some(rank);
            self.heard.insert(rank, number);
        }
    }

    /// Forgets what a future waited for.
    pub(crate) fn forget(&mut self, number: u64) -> Option<Need> {
        let Waiting { need, ended, .. } = self.needs.remove(&number)?;
        self.numbers.remove(need.name());
        if let Some(rank) = ended {
            self.asked.remove(&rank.place);
            self.heard.remove(&rank);
        }
        Some(need)
    }

    /// How many futures of the code are polled by an executor within it.
    pub(crate) fn inner_count(&self) -> usize {
        self.needs.values().filter(|waiting| waiting.waker.is_some()).count()
    }

    /// Whether a name is of the code that runs now: there is some for the workflow, and some for its failure.
    pub(crate) fn is_of_this_code(&self, name: &StepName) -> bool {
        match self.facts.prefix.as_str() {
            "" => !name.as_str().starts_with(ON_FAILURE_PREFIX) && !is_undoing(name),
            prefix => name.as_str().starts_with(prefix),
        }
    }

    /// What the code has last heard of.
    pub(crate) const fn last_heard(&self) -> Option<&StepName> {
        self.last_heard.as_ref()
    }

    /// The attempts that run, or are about to, and whose time counts also if this worker is lost.
    pub(crate) fn under_way(&self) -> Vec<UnderWay> {
        let inline = self.needs.values().filter_map(|waiting| waiting.need.inline());
        let runs = inline.filter(|inline| match inline.stage {
            Stage::Due { .. } | Stage::Running(_) => inline.noted_first,
            Stage::Unknown | Stage::Retry { .. } | Stage::Ended => false,
        });
        let over_at = |name| self.replay.standing(name).attempt_over_at();
        runs.filter_map(|inline| Some(UnderWay::of(&inline.name, over_at(&inline.name)?))).collect()
    }

    /// The inline step that is waited for under this number.
    pub(super) fn inline(&self, number: u64) -> Option<&Inline> {
        self.needs.get(&number)?.need.inline()
    }

    /// What spreads the retries of different steps of one execution.
    pub(super) fn seed_of(&self, name: &StepName) -> u64 {
        let digest = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        self.facts.seed ^ name.as_str().bytes().fold(0xCBF2_9CE4_8422_2325, digest)
    }

    /// When retries and timeouts have to stop.
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds { deadline_at: self.facts.deadline_at }
    }

    /// How long the code has, by whatever ends first.
    pub(crate) fn remaining(&self, now: Timestamp) -> Option<Millis> {
        earliest([self.facts.deadline_at, self.facts.limit_at]).map(|end| end.since(now))
    }
}

impl Facts {
    pub(crate) fn of(
        record: &Execution,
        limit_at: Option<Timestamp>,
        patches: &'static [&'static str],
        reopened: u32,
    ) -> Self {
        let prefix = match (&record.failing, reopened) {
            (None, _) => String::new(),
            (Some(_), 0) => format!("{ON_FAILURE_PREFIX}:"),
            // What was done about an earlier failure is done again for this one.
            (Some(_), times) => format!("{ON_FAILURE_PREFIX}.{times}:"),
        };
        let seed = u64::from_be_bytes(*record.incarnation.as_bytes());
        let mut facts = Self {
            execution: record.id.clone(),
            run: record.run,
            key: format!("{}:{}:{}", record.id, record.incarnation, record.run),
            seed,
            incarnation: record.incarnation,
            queue: record.queue.clone(),
            trace: record.trace,
            deadline_at: None,
            limit_at,
            cancelled: false,
            prefix,
            patches,
            mocks: Arc::default(),
            states: States::default(),
        };
        facts.update(record);
        facts
    }

    /// Takes over what others may have changed.
    pub(crate) fn update(&mut self, record: &Execution) {
        self.deadline_at = deadline_of(record);
        self.cancelled = record.cancel_requested;
    }
}

/// When the code that runs now must be done.
pub(crate) fn deadline_of(record: &Execution) -> Option<Timestamp> {
    match &record.failing {
        Some(failing) => Some(failing.deadline_at),
        None => earliest([record.deadline_at, record.run_deadline_at]),
    }
}

/// Why a name was not taken.
pub(crate) enum ClaimProblem {
    /// It isn't one, or is in use.
    Refused(String),
    /// The run ends for it.
    Over,
}

/// The place of a remote step among those it is waited for together with.
pub(crate) type Place = Option<Slot>;
