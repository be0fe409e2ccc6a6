//! The random steps and their weights.

use proptest::prelude::*;
use proptest::sample::select;

use super::super::fixture::{Plan, task};
use crate::duration::Millis;
use crate::payload::Json;
use crate::retry::{Delay, Jitter, MaxAttempts};
use crate::task::command::Start;
use crate::timeout::{AttemptTimeout, LifeTimeout, OnTimeout, Timeouts};

/// How the clock moves before a step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Passing {
    /// By this many milliseconds, which may be negative.
    By(i64),
    /// To this many milliseconds from the next instant at which the task can change.
    ToInstant(i64),
    /// To its due slot.
    ToDue,
}

/// Which lease a worker uses.
#[derive(Clone, Copy, Debug)]
pub(super) enum LeaseChoice {
    Current,
    Earlier(usize),
    Nobodys,
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    ScheduleAgain {
        same_call: bool,
        same_content: bool,
    },
    Claim {
        length: Millis,
        paused: bool,
        held: bool,
    },
    Hold,
    Unpark,
    /// It comes to the line of a key, as seen so many versions ago.
    WaitInLine(u64),
    ClaimAgain(LeaseChoice),
    Heartbeat(LeaseChoice, Option<f64>),
    Complete(LeaseChoice, usize),
    Fail {
        whose: LeaseChoice,
        code: &'static str,
        message: usize,
        retryable: bool,
    },
    Release(LeaseChoice),
    Cancel {
        force: bool,
    },
    Retry,
    Due {
        looks_empty: bool,
        watermark: Option<i64>,
        paused: bool,
    },
}

pub(super) fn passing() -> impl Strategy<Value = Passing> {
    prop_oneof![
        3 => Just(Passing::By(0)),
        1 => (-2_000_i64..0).prop_map(Passing::By),
        4 => (1_i64..5_000).prop_map(Passing::By),
        3 => (5_000_i64..900_000).prop_map(Passing::By),
        1 => (900_000_i64..200_000_000).prop_map(Passing::By),
        1 => Just(Passing::By(31 * 86_400_000)),
        6 => (-1_i64..=1).prop_map(Passing::ToInstant),
        4 => Just(Passing::ToDue),
    ]
}

fn whose() -> impl Strategy<Value = LeaseChoice> {
    prop_oneof![8 => Just(LeaseChoice::Current), 3 => (1_usize..5).prop_map(LeaseChoice::Earlier), 1 => Just(LeaseChoice::Nobodys)]
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let bytes = || select(vec![0_usize, 10, 100, 250, 600, 2_000]);
    prop_oneof![
        1 => any::<(bool, bool)>()
            .prop_map(|(same_call, same_content)| Step::ScheduleAgain { same_call, same_content }),
        8 => (1_000_u64..900_000, proptest::bool::weighted(0.2), proptest::bool::weighted(0.1))
            .prop_map(|(ms, paused, held)| Step::Claim { length: Millis::new(ms), paused, held }),
        2 => Just(Step::Hold),
        2 => Just(Step::Unpark),
        4 => prop_oneof![4 => Just(0_u64), 1 => Just(1)].prop_map(Step::WaitInLine),
        1 => whose().prop_map(Step::ClaimAgain),
        3 => (whose(), proptest::option::of(0.0..=1.0)).prop_map(|(whose, at)| Step::Heartbeat(whose, at)),
        2 => (whose(), bytes()).prop_map(|(whose, bytes)| Step::Complete(whose, bytes)),
        4 => (whose(), select(vec!["broken", "fatal", ""]), bytes(), proptest::bool::weighted(0.8)).prop_map(
            |(whose, code, message, retryable)| Step::Fail { whose, code, message, retryable }
        ),
        2 => whose().prop_map(Step::Release),
        1 => any::<bool>().prop_map(|force| Step::Cancel { force }),
        2 => Just(Step::Retry),
        6 => (any::<bool>(), proptest::option::of(-1_000_000_i64..1_000_000), proptest::bool::weighted(0.2))
            .prop_map(|(looks_empty, watermark, paused)| Step::Due { looks_empty, watermark, paused }),
    ]
}

fn on_timeout() -> impl Strategy<Value = OnTimeout> {
    select(vec![OnTimeout::Retry, OnTimeout::Retry, OnTimeout::Terminal, OnTimeout::Cancel])
}

fn attempt_timeout() -> impl Strategy<Value = Option<AttemptTimeout>> {
    let timeout = (1_u64..1_500_000, on_timeout())
        .prop_map(|(ms, on_timeout)| AttemptTimeout { after: Millis::new(ms), on_timeout });
    proptest::option::weighted(0.4, timeout)
}

fn timeouts() -> impl Strategy<Value = Timeouts> {
    let life = (1_u64..20_000_000, any::<bool>())
        .prop_map(|(ms, is_error)| LifeTimeout { after: Millis::new(ms), is_error });
    (proptest::option::weighted(0.5, life), attempt_timeout(), attempt_timeout(), attempt_timeout()).prop_map(
        |(schedule_to_close, schedule_to_start, heartbeat, start_to_close)| Timeouts {
            schedule_to_close,
            schedule_to_start,
            heartbeat,
            start_to_close,
        },
    )
}

pub(super) fn plan() -> impl Strategy<Value = Plan> {
    let delay = || select(vec![0_u64, 1, 5_000, 600_000, 3_600_000]).prop_map(Millis::new);
    let delays = prop_oneof![
        delay().prop_map(Delay::Fixed),
        prop::collection::vec(delay(), 1..4).prop_map(Delay::Listed)
    ];
    let bytes = || proptest::option::of(select(vec![2_usize, 100, 300, 1_000]));
    (
        select(vec![-1_i64, 0, 1, 2, 3, 3]),
        delays,
        timeouts(),
        delay(),
        bytes(),
        bytes(),
        any::<bool>(),
        0_u32..4,
        any::<[bool; 2]>(),
        0_u8..3,
    )
        .prop_map(
            |(attempts, delay, timeouts, start, input, labels, jitter, losses, [is_step, in_line], gates)| {
                let mut plan = task().max_losses(losses).non_retryable("fatal").keyed();
                if is_step {
                    plan = plan.step();
                }
                plan = (0..gates).fold(plan, |plan, nth| plan.limited(10 - u16::from(nth)));
                plan.schedule.in_line = in_line;
                plan.schedule.retry.max_attempts = MaxAttempts::try_from(attempts).unwrap();
                plan.schedule.retry.delay = delay;
                plan.schedule.retry.jitter = if jitter { Jitter::Full } else { Jitter::None };
                plan.schedule.timeouts = timeouts;
                plan.schedule.start = Start::After(start);
                plan.schedule.input = input.map(text);
                plan.schedule.labels = labels.map(text);
                plan
            },
        )
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.schedule)
    }
}

pub(super) fn text(bytes: usize) -> Json {
    Json::string(&"x".repeat(bytes))
}
