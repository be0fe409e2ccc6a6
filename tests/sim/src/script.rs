//! The code of an execution in a simulation: a few operations one after the other, determined by a seed in its input. A
//! worker that starts a turn reads the journal and continues from there.

use tickover_core::duration::Millis;
use tickover_core::execution::ParentClosePolicy;
use tickover_core::id::StepName;
use tickover_core::payload::Json;
use tickover_core::retry::RetryPolicy;

use super::dice::Dice;
use super::process::execution::step_name;

/// Names of the events that scripts wait for.
pub const EVENTS: [&str; 2] = ["go", "news"];
/// Names of the operations, in order.
pub const STEPS: [&str; 4] = ["s0", "s1", "s2", "s3"];

/// How many children an execution has that has very many.
pub const CHILDREN: usize = 200;
/// How many events an execution takes that gets very many.
const TAKEN: usize = 40;

/// A workflow's code.
#[derive(Clone, Debug)]
pub struct Script {
    /// Determines everything else.
    pub seed: u64,
    /// Which kind of code it is.
    pub kind: Kind,
    /// Its operations, in order.
    pub ops: Vec<Op>,
    /// How it ends.
    pub end: End,
    /// The number of runs after which it stops continuing as new.
    pub runs: u32,
    /// The code that runs after its failure, if there is any.
    pub on_failure: Option<OnFailure>,
    /// How runs that fail are retried, if they are.
    pub retry: Option<RetryPolicy>,
    /// Whether its steps are undone if it is cancelled.
    pub undoes: bool,
    /// How long the code may take that runs after a cancellation, if there is any.
    pub on_cancel: Option<Millis>,
    /// Whether it publishes how far it has come.
    pub publishes: bool,
    /// Whether it answers the events that have an id.
    pub answers: bool,
    /// Places of its join items: few, so that a fan-out already needs several.
    pub places: u16,
}

/// A kind of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A workflow's, with every kind of operation.
    Own,
    /// A child's, which starts no children.
    Child,
    /// It has very many children, which have almost nothing to do, and waits for all of them.
    Wide,
    /// It takes many events, and more come.
    Eventful,
    /// It has almost nothing to do.
    Short,
    /// It kills the process that runs it.
    Deadly,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// An inline step, with a number of failures before it succeeds.
    Step {
        /// Attempts that fail.
        failures: u32,
        /// The wait after each failure.
        pause: Millis,
        /// The approximate size of its result, in bytes.
        size: usize,
        /// Whether it fails for good in the end, until an operator reopens it.
        exhausts: bool,
    },
    /// An inline step with a durable timeout.
    Timed(Millis),
    Sleep(Millis),
    Wait {
        event: &'static str,
        /// For how long at most.
        timeout: Option<Millis>,
    },
    /// Steps that run as tasks, waited for together.
    Remote {
        count: u16,
        /// Whether only the last step of each join item notifies.
        joined: bool,
        /// Whether the code fails if one of them does.
        needed: bool,
    },
    /// A wait that somebody ends with a token.
    Callback {
        /// How long the token is valid.
        within: Millis,
        /// The longest time between two reports, if that counts.
        heartbeat: Option<Millis>,
    },
    /// A wait for all children.
    AllChildren,
    Child {
        /// The policy for the child when its parent closes.
        policy: ParentClosePolicy,
        /// Whether it is waited for.
        awaited: bool,
    },
}

/// How a run ends that reaches its last operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Completes,
    Fails,
}

/// The code that runs after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnFailure {
    /// Its timeout.
    pub budget: Millis,
    /// Whether the execution completes after it.
    pub recovers: bool,
}

impl Script {
    pub fn of(seed: u64, is_child: bool) -> Self {
        let dice = Dice::new(seed, "script");
        let count = dice.between(1, if is_child { 2 } else { 4 });
        let mut ops: Vec<Op> = (0..count).map(|_| op(&dice, is_child)).collect();
        let more = Dice::new(seed, "more of the script");
        let places = more.pick([2, 3, 4, 5]);
        for op in &mut ops {
            match op {
                Op::Step { .. } if more.chance(300) => *op = Op::Timed(more.millis(1_000, 30_000)),
                Op::Step { exhausts, .. } => *exhausts = more.chance(500),
                Op::Remote { needed, .. } => *needed = more.chance(400),
                Op::Wait { timeout: Some(within), .. } if more.chance(500) => {
                    let heartbeat = more.chance(400).then(|| more.secs(5, 90));
                    *op = Op::Callback { within: *within, heartbeat };
                }
                Op::Timed(_)
                | Op::Sleep(_)
                | Op::Wait { .. }
                | Op::Callback { .. }
                | Op::AllChildren
                | Op::Child { .. } => {}
            }
        }
        let end = if dice.chance(200) { End::Fails } else { End::Completes };
        let runs = if dice.chance(200) { dice.pick([2, 3]) } else { 1 };
        let on_failure =
            dice.chance(300).then(|| OnFailure { budget: dice.secs(20, 300), recovers: dice.chance(500) });
        let kind = if is_child { Kind::Child } else { Kind::Own };
        let retry = more.chance(200).then(|| RetryPolicy::fixed(more.pick([1, 2]), more.millis(0, 60_000)));
        let undoes = more.chance(700);
        let on_cancel = more.chance(600).then(|| more.secs(20, 300));
        let (publishes, answers) = (more.chance(400), more.chance(600));
        Self { seed, kind, ops, end, runs, on_failure, retry, undoes, on_cancel, publishes, answers, places }
    }

    /// A script with almost nothing to do.
    pub fn short(seed: u64) -> Self {
        let step = Op::Step { failures: 0, pause: Millis::ZERO, size: 5, exhausts: false };
        Self {
            seed,
            kind: Kind::Short,
            ops: vec![step],
            end: End::Completes,
            runs: 1,
            on_failure: None,
            retry: None,
            undoes: false,
            on_cancel: None,
            publishes: false,
            answers: false,
            places: 1,
        }
    }

    /// A script with very many children.
    pub fn wide(seed: u64) -> Self {
        let child = Op::Child { policy: ParentClosePolicy::Terminate, awaited: false };
        let ops = std::iter::repeat_n(child, CHILDREN).chain([Op::AllChildren]).collect();
        Self { kind: Kind::Wide, ops, ..Self::short(seed) }
    }

    /// A script that gets very many events before it takes some.
    pub fn eventful(seed: u64) -> Self {
        let wait = Op::Wait { event: EVENTS[0], timeout: Some(Millis::from_secs(10)) };
        let takes = std::iter::repeat_n(wait, TAKEN);
        let ops = std::iter::once(Op::Sleep(Millis::from_secs(100))).chain(takes).collect();
        Self { kind: Kind::Eventful, ops, ..Self::short(seed) }
    }

    /// A script that kills the process that runs it.
    pub fn deadly(seed: u64) -> Self {
        Self { kind: Kind::Deadly, ..Self::short(seed) }
    }

    /// The input that names this script.
    pub fn input(&self) -> Json {
        let kind = match self.kind {
            Kind::Own => "own",
            Kind::Child => "child",
            Kind::Wide => "wide",
            Kind::Eventful => "eventful",
            Kind::Short => "short",
            Kind::Deadly => "deadly",
        };
        Json::string(&format!("{kind} {}", self.seed))
    }

    /// Another input that names this script.
    pub fn input_with(&self, padding: &str) -> Json {
        let text: String = serde_json::from_str(self.input().as_str()).unwrap_or_default();
        Json::string(&format!("{text} {padding}"))
    }

    /// The script that an input names.
    pub fn parse(input: &Json) -> Option<Self> {
        let text: String = serde_json::from_str(input.as_str()).ok()?;
        let (kind, rest) = text.split_once(' ')?;
        let seed = rest.split(' ').next()?.parse().ok()?;
        Some(match kind {
            "wide" => Self::wide(seed),
            "eventful" => Self::eventful(seed),
            "short" => Self::short(seed),
            "deadly" => Self::deadly(seed),
            kind => Self::of(seed, kind == "child"),
        })
    }

    /// The operation that another build of the code names otherwise, with both names: an inline step, a sleep or a wait, or
    /// none of the script's.
    pub fn renamed(&self) -> (StepName, StepName) {
        let may = |op: &Op| matches!(op, Op::Step { .. } | Op::Timed(_) | Op::Sleep(_) | Op::Wait { .. });
        let number = self.ops.iter().position(may).unwrap_or(self.ops.len());
        (step_name(&format!("s{number}")), step_name(&format!("renamed{number}")))
    }

    /// The script of the child that its operation of this number starts.
    #[must_use]
    pub fn child(&self, number: usize) -> Self {
        let number = u64::try_from(number).unwrap_or(0);
        if self.kind == Kind::Wide {
            return Self::short(number);
        }
        Self::of(self.seed.wrapping_mul(31).wrapping_add(number), true)
    }
}

fn op(dice: &Dice, is_child: bool) -> Op {
    match dice.between(0, if is_child { 9 } else { 12 }) {
        0..=2 => {
            let failures = if dice.chance(250) { dice.pick([1, 2]) } else { 0 };
            let size = dice.pick([5, 5, 30, 150, 400]);
            Op::Step { failures, pause: dice.millis(0, 40_000), size, exhausts: false }
        }
        3 | 4 => Op::Sleep(random_sleep(dice)),
        5 | 6 => Op::Wait { event: dice.pick(EVENTS), timeout: Some(random_sleep(dice)) },
        7 => Op::Wait { event: dice.pick(EVENTS), timeout: None },
        8 => Op::Remote { count: dice.pick([1, 1, 2]), joined: false, needed: false },
        9 | 10 => Op::Remote { count: dice.pick([2, 3, 4, 6, 7]), joined: true, needed: false },
        _ => {
            let policy = dice.pick([
                ParentClosePolicy::Abandon,
                ParentClosePolicy::RequestCancel,
                ParentClosePolicy::Terminate,
            ]);
            Op::Child { policy, awaited: dice.chance(500) }
        }
    }
}

/// Mostly minutes; sometimes more than a queue's longest delay.
fn random_sleep(dice: &Dice) -> Millis {
    match dice.between(0, 9) {
        0..=4 => dice.millis(1, 30_000),
        5..=8 => dice.millis(30_000, 400_000),
        _ => dice.millis(901_000, 1_500_000),
    }
}
