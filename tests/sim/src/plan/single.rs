//! Unique keys and bursts: in a share of the seeds, both clients send tasks and start executions with the same keys at
//! almost the same time.

use tickover_core::duration::Millis;
use tickover_core::execution::Execution;
use tickover_core::flow::{Debounce, FlowRequest, OnConflict, Unique, UniqueWindow};
use tickover_core::id::{FlowKey, TaskKind};
use tickover_core::payload::{Json, Payload};
use tickover_core::retry::RetryPolicy;
use tickover_core::task::command::Start;
use tickover_core::time::Timestamp;
use tickover_core::timeout::Timeouts;
use tickover_service::executions::StartRequest;
use tickover_service::tasks::schedule::{Asked, ScheduleRequest};

use super::{Job, JobRequest, START, queue};
use crate::dice::Dice;
use crate::script::Script;

/// Of a thousand seeds, in so many there are such tasks.
const SEEDS: u64 = 200;

/// The retention of these seeds: longer than processes are late.
pub(super) const RETENTION: Millis = Millis::from_secs(1_800);

/// What a key is for: each has a key of its own, and a name by which the checks recognise its tasks and executions: the
/// kind of the ones, and a label of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyUse {
    /// Only one is open.
    Open,
    /// Only one waits.
    Waiting,
    /// Only the last of a burst runs.
    Burst,
}

impl KeyUse {
    pub const ALL: [Self; 3] = [Self::Open, Self::Waiting, Self::Burst];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "unique-open",
            Self::Waiting => "unique-waiting",
            Self::Burst => "burst",
        }
    }

    /// Which of them an execution is.
    pub fn of_execution(execution: &Execution) -> Option<Self> {
        match execution.details.as_ref()? {
            Payload::Inline(labels) => {
                Self::ALL.into_iter().find(|one| labels.as_str().contains(one.labels().as_str()))
            }
            Payload::Blob(_) => None,
        }
    }

    /// The labels of its executions.
    fn labels(self) -> String {
        format!(r#"{{"single":"{}"}}"#, self.name())
    }

    /// Which of them a task of this kind is.
    pub fn of(kind: &TaskKind) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == kind.as_str())
    }
}

/// The jobs of a seed.
pub(super) fn jobs(seed: u64, storm: Millis) -> Vec<Job> {
    let dice = Dice::new(seed, "single");
    if !dice.chance(SEEDS) {
        return vec![];
    }
    let mut jobs = vec![];
    for key in KeyUse::ALL {
        for _ in 0..dice.between(2, 5) {
            let from = START.plus(dice.millis(0, storm.as_u64() * 3 / 4));
            let count = dice.between(2, 6);
            jobs.extend((0..count).filter_map(|_| job(&dice, key, from)));
            let count = dice.between(0, 5);
            jobs.extend((0..count).filter_map(|_| start(&dice, key, from)));
        }
    }
    jobs
}

/// The start of an execution with this key.
fn start(dice: &Dice, key: KeyUse, from: Timestamp) -> Option<Job> {
    let at = from.plus(dice.millis(0, 30_000));
    let client = u8::try_from(dice.between(0, 1)).unwrap_or(0);
    let script = if dice.chance(600) { Script::of(dice.roll(), false) } else { Script::short(dice.roll()) };
    let request = StartRequest {
        on_failure: script.on_failure.map(|one| one.budget),
        input: Some(script.input()),
        labels: Json::parse(key.labels()),
        flow: Box::new(flow(dice, key)?),
        ..StartRequest::new(super::execution::workflow(), queue(dice))
    };
    Some(Job { at, client, request: JobRequest::Start(Box::new(request)), repeats: dice.between(0, 1) })
}

fn flow(dice: &Dice, key: KeyUse) -> Option<FlowRequest> {
    let text = FlowKey::parse(key.name()).ok()?;
    let on_conflict = dice.pick([OnConflict::Existing, OnConflict::Refuse, OnConflict::Replace]);
    let unique = |window| Some(Unique { key: text.clone(), window, on_conflict });
    let (wait, at_most) = (dice.secs(5, 20), dice.secs(20, 60));
    let (unique, debounce) = match key {
        KeyUse::Open => (unique(UniqueWindow::Open), None),
        KeyUse::Waiting => (unique(UniqueWindow::Waiting), None),
        KeyUse::Burst => (None, Some(Debounce { key: text.clone(), wait, at_most })),
    };
    Some(FlowRequest { unique, debounce, ..FlowRequest::default() })
}

fn job(dice: &Dice, key: KeyUse, from: Timestamp) -> Option<Job> {
    let at = from.plus(dice.millis(0, 30_000));
    let client = u8::try_from(dice.between(0, 1)).unwrap_or(0);
    // A burst has a delay of its own.
    let is_later = key != KeyUse::Burst && dice.chance(250);
    let delay = if is_later { dice.millis(1, 180_000) } else { Millis::ZERO };
    let request = ScheduleRequest {
        id: None,
        idempotency_key: None,
        queue: queue(dice),
        kind: TaskKind::parse(key.name()).ok()?,
        input: Some(Json::string(&format!("{:x}", dice.roll()))),
        labels: None,
        retry: if dice.chance(400) { super::retry(dice) } else { RetryPolicy::none() },
        flow: flow(dice, key)?,
        timeouts: if dice.chance(400) { super::timeouts(dice) } else { Timeouts::default() },
        start: Start::After(delay),
        trace: None,
        asked: Asked::default(),
    };
    Some(Job { at, client, request: JobRequest::Schedule(vec![request]), repeats: dice.between(0, 1) })
}
