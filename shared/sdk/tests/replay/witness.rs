//! Observes an execution from outside and from within its code, and checks that the observations agree.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard};

use futures::FutureExt as _;
use tickover_core::execution::journal::{Entry, Happened, StepOutcome};
use tickover_core::id::ExecutionId;
use tickover_service::Service;

use crate::tree::Plan;

/// The execution's id. Each system has one execution.
pub(crate) const ID: &str = "e";

/// The character that fills values up to their length.
const FILLING: char = '-';

thread_local! {
    /// The witness of the execution that runs on this thread.
    static CURRENT: RefCell<Option<Arc<Witness>>> = const { RefCell::new(None) };
}

/// Observes one execution.
pub(crate) struct Witness {
    pub(crate) plan: Plan,
    /// This service never dies.
    pub(crate) service: Service,
    observations: Mutex<Observations>,
}

#[derive(Default)]
struct Observations {
    turns: Vec<Turn>,
    /// How often a turn has begun or seen something.
    moments: u64,
    /// The last observation of all turns.
    last: Option<String>,
    deaths: u64,
    /// How many values were made, so that no two are the same.
    made: u64,
    chance: u64,
    /// For each step that completed, the life in which it did.
    done: BTreeMap<String, u64>,
    /// The keys of the steps that had ended before a death, with the run of that time.
    ended: BTreeMap<String, u32>,
    problems: Vec<String>,
}

/// A start of the body.
struct Turn {
    /// The run, and the prefix of the code's names. Only turns of the same code are compared.
    code: (u32, &'static str),
    /// When it began. A turn that began before others may go on after them, if it is in the memory of its worker.
    begun: u64,
    /// The number of deaths before this turn.
    deaths: u64,
    /// The names of the outcomes and values that the journal held when the turn began.
    held: BTreeSet<String>,
    trace: Vec<Seen>,
}

/// An observation of the body.
struct Seen {
    /// The names that must be in the journal so that a replay sees this again. An observation without names follows
    /// from earlier ones.
    needs: Vec<String>,
    what: String,
    at: u64,
}

impl Witness {
    pub(crate) fn new(plan: &Plan, service: Service) -> Arc<Self> {
        let plan = plan.clone();
        let witness = Arc::new(Self { plan, service, observations: Mutex::default() });
        CURRENT.set(Some(Arc::clone(&witness)));
        witness
    }

    /// This thread's witness.
    pub(crate) fn current() -> Arc<Self> {
        CURRENT.with_borrow(Clone::clone).unwrap()
    }

    fn observations(&self) -> MutexGuard<'_, Observations> {
        self.observations.lock().unwrap()
    }

    /// The run's journal as it is stored now. The store in memory answers at once.
    pub(crate) fn journal(&self) -> Vec<Entry> {
        let id = ExecutionId::parse(ID).unwrap();
        let described = self.service.execution(&id).now_or_never().unwrap().unwrap().unwrap();
        self.service.journal_of(&described.execution).now_or_never().unwrap().unwrap()
    }

    /// The names of the outcomes and values in the journal.
    fn held(&self) -> BTreeSet<String> {
        let held = self.journal().into_iter().filter_map(|entry| match entry.what {
            Happened::Step { name, .. }
            | Happened::Captured { name, .. }
            | Happened::Fired { name }
            | Happened::Waited { name, .. } => Some(name.to_string()),
            _ => None,
        });
        held.collect()
    }

    /// Records the start of the code with this prefix, in this run. Returns the index of the turn.
    pub(crate) fn turn(&self, run: u32, prefix: &'static str) -> usize {
        let held = self.held();
        let mut observations = self.observations();
        if observations.turns.last().is_some_and(|last| last.code.0 < run) {
            // An outcome at the same time as the end of the earlier run may have been dropped.
            observations.done.clear();
        }
        let (deaths, begun) = (observations.deaths, observations.next_moment());
        observations.turns.push(Turn { code: (run, prefix), begun, deaths, held, trace: vec![] });
        observations.turns.len() - 1
    }

    /// Records an observation. These names must be in the journal for it.
    pub(crate) fn saw(&self, turn: usize, needs: Vec<String>, what: &str) {
        let mut observations = self.observations();
        let at = observations.next_moment();
        observations.last = Some(what.to_owned());
        observations.turns[turn].trace.push(Seen { needs, what: what.to_owned(), at });
    }

    /// A number below this one that differs from turn to turn.
    pub(crate) fn chance(&self, below: usize) -> usize {
        let mut observations = self.observations();
        // SplitMix64.
        observations.chance = observations.chance.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = observations.chance;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from(bits >> 40).unwrap() % below
    }

    /// A value of this many bytes that didn't exist before.
    pub(crate) fn make(&self, name: &str, bytes: usize) -> String {
        let mut observations = self.observations();
        observations.made += 1;
        let value = format!("{name}#{}", observations.made);
        let filling = bytes.saturating_sub(value.len());
        value + &FILLING.to_string().repeat(filling)
    }

    /// Whether the journal holds a step's end. A cancelled step doesn't count: it may have been about to start
    /// elsewhere.
    fn has_ended(&self, step: &str) -> bool {
        let is_end = |what: &Happened| match what {
            Happened::Step { outcome: StepOutcome::Cancelled, .. } => false,
            Happened::Step { name, .. } => name.as_str() == step,
            _ => false,
        };
        self.journal().iter().any(|entry| is_end(&entry.what))
    }

    /// A step starts to run.
    pub(crate) fn begins(&self, name: &str, key: &str) {
        let has_ended = self.has_ended(name);
        let mut observations = self.observations();
        let life = observations.deaths;
        // A rerun repeats what failed under the same key.
        let run = observations.run();
        if has_ended || observations.ended.get(key) == Some(&run) {
            observations.problems.push(format!("step {name} runs though its result is stored"));
        }
        if observations.done.get(name) == Some(&life) {
            observations.problems.push(format!("step {name} runs twice though nothing happened"));
        }
    }

    /// A step has completed.
    pub(crate) fn is_done(&self, name: &str) {
        let mut observations = self.observations();
        let life = observations.deaths;
        observations.done.insert(name.to_owned(), life);
    }

    /// The system has died. These steps had ended before.
    pub(crate) fn died(&self, ended: &[String]) {
        let mut observations = self.observations();
        observations.deaths += 1;
        let run = observations.run();
        for key in ended {
            observations.ended.entry(key.clone()).or_insert(run);
        }
    }

    /// Records an error that the traces don't show.
    pub(crate) fn object(&self, problem: String) {
        self.observations().problems.push(problem);
    }

    /// The last observation of all turns.
    pub(crate) fn last(&self) -> Option<String> {
        self.observations().last.clone()
    }

    /// All observations of all turns, as text.
    pub(crate) fn shown(&self) -> String {
        self.observations().shown()
    }

    /// The first error, if there is one.
    pub(crate) fn problem(&self) -> Option<String> {
        let observations = self.observations();
        let mut problems = observations.problems.clone();
        for (later, _) in observations.turns.iter().enumerate() {
            problems.extend((0..later).filter_map(|earlier| observations.disagreement(earlier, later)));
        }
        let first = problems.first()?;
        Some(format!("{first}\n{}", observations.shown()).replace(FILLING, ""))
    }
}

impl Turn {
    /// When it began, or has last seen something.
    fn last_moment(&self) -> u64 {
        self.trace.last().map_or(self.begun, |seen| seen.at)
    }
}

impl Observations {
    fn next_moment(&mut self) -> u64 {
        self.moments += 1;
        self.moments
    }

    /// The run of the last turn.
    fn run(&self) -> u32 {
        self.turns.last().map_or(0, |turn| turn.code.0)
    }

    /// The first difference between two turns of the same code.
    ///
    /// The later turn must go the same way as the earlier one. Only what the journal didn't hold after the earlier turn
    /// may differ, and only if the system has died in between. What the earlier turn has seen after the later one, from
    /// its worker's memory, may be missing there, but nothing else may be in its place.
    fn disagreement(&self, earlier: usize, later: usize) -> Option<String> {
        let (one, other) = (&self.turns[earlier], &self.turns[later]);
        if one.code != other.code {
            return None;
        }
        let agree = one.trace.iter().zip(&other.trace).take_while(|(one, other)| one.what == other.what);
        let at = agree.count();
        let seen = one.trace.get(at)?;
        // What follows from a lost outcome may differ as well, for example that nothing else had ended by then.
        let mut needed = one.trace.iter().take(at + 1).flat_map(|seen| &seen.needs);
        let after = self.turns.iter().find(|turn| turn.begun > seen.at);
        let is_lost = after.is_some_and(|after| needed.any(|name| !after.held.contains(name)));
        if is_lost && after.is_some_and(|after| after.deaths > one.deaths) {
            return None;
        }
        let was_cut_off = self.turns.get(later + 1).is_some_and(|next| next.deaths > other.deaths);
        let instead = match other.trace.get(at) {
            None if was_cut_off || seen.at > other.last_moment() => return None,
            None => "nothing",
            Some(seen) => &seen.what,
        };
        let what = &seen.what;
        Some(format!(
            "turn {later} sees {instead:?} in place {at}, where turn {earlier} saw {what:?}{}",
            if is_lost { ", which the journal lost without a death" } else { "" }
        ))
    }

    fn shown(&self) -> String {
        let mut text = String::new();
        for (number, turn) in self.turns.iter().enumerate() {
            let _ = writeln!(text, "turn {number}, after {} deaths: {:?}", turn.deaths, turn.code);
            for seen in &turn.trace {
                let _ = writeln!(text, "    {}", seen.what);
            }
        }
        text
    }
}
