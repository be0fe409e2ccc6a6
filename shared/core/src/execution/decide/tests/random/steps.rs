//! The random steps, and how often each occurs.

use proptest::prelude::*;
use proptest::sample::select;

use super::super::fixture::{Plan, done, ended, event, event_id, execution, remote, waited};
use crate::duration::Millis;
use crate::execution::command::Command;
use crate::execution::command::ReleaseReason;
use crate::execution::journal::Entry;
use crate::execution::{ExecutionOutcome, Stuck};
use crate::failure::Failure;
use crate::id::{EventId, EventName};

/// How the clock changes before a step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Passing {
    /// By this many milliseconds, backwards too.
    By(i64),
    /// To this many milliseconds around the execution's next instant.
    ToInstant(i64),
    /// To its due slot.
    ToDue,
}

/// The lease that a worker sends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Whose {
    Current,
    Earlier(usize),
    Nobodys,
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    StartAgain {
        same_call: bool,
    },
    StartTurn {
        length: Millis,
        /// Whether its queue is paused.
        paused: bool,
    },
    /// Another request of a burst: the quiet time, and the bound.
    Bounce(Millis, Millis),
    /// It comes to the line of a key, as seen so many versions ago.
    WaitInLine(u64),
    Record(Whose, Vec<Entry>),
    /// Records an attempt that times out this many milliseconds from now.
    Begin(Whose, u8, i64),
    EndAttempt(Whose, u8),
    /// The steps and children that were left open have been ended: at the latest end, or at one this many milliseconds
    /// before it.
    Finish {
        ms_before: i64,
    },
    Suspend {
        whose: Whose,
        entries: Vec<Entry>,
        until: Option<i64>,
        awaits_others: bool,
        unseen: bool,
    },
    Close(Whose, Vec<Entry>, ExecutionOutcome),
    ContinueAsNew {
        whose: Whose,
        overlooks: bool,
    },
    Heartbeat(Whose),
    Release(Whose, Millis, ReleaseReason),
    SendEvent(EventName, Option<EventId>),
    ClearEvents(EventName, u32),
    Wake,
    Plain(Command),
    Restart(Vec<Entry>),
    Due {
        looks_empty: bool,
        watermark: Option<i64>,
        paused: bool,
    },
}

pub(super) fn passing() -> impl Strategy<Value = Passing> {
    prop_oneof![
        4 => Just(Passing::By(0)),
        1 => (-2_000_i64..0).prop_map(Passing::By),
        5 => (1_i64..5_000).prop_map(Passing::By),
        3 => (5_000_i64..900_000).prop_map(Passing::By),
        1 => (900_000_i64..200_000_000).prop_map(Passing::By),
        5 => (-1_i64..=1).prop_map(Passing::ToInstant),
        4 => Just(Passing::ToDue),
    ]
}

fn whose() -> impl Strategy<Value = Whose> {
    prop_oneof![10 => Just(Whose::Current), 1 => (1_usize..5).prop_map(Whose::Earlier), 1 => Just(Whose::Nobodys)]
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let bytes = select(vec![2_usize, 20, 100, 200]);
    let entry = prop_oneof![
        4 => (0_u8..200, bytes).prop_map(|(n, bytes)| {
            done(&format!("step-{n}"), &format!("\"{}\"", "x".repeat(bytes - 2)))
        }),
        1 => (0_u8..5).prop_map(|n| remote(&format!("remote-{n}"))),
        1 => (0_u8..5).prop_map(|n| ended(&format!("remote-{n}"))),
        1 => Just(waited("wait", "go")),
    ];
    prop_oneof![1 => Just(vec![]), 3 => prop::collection::vec(entry, 1..4)]
}

fn outcome() -> impl Strategy<Value = ExecutionOutcome> {
    let error = || Failure::new("broken", "m".repeat(500));
    select(vec![
        ExecutionOutcome::Completed { output: None },
        ExecutionOutcome::Failed { error: error(), step: Some("step-1".to_owned()), retries_exhausted: true },
        ExecutionOutcome::Failed { error: error(), step: None, retries_exhausted: false },
        ExecutionOutcome::Cancelled { terminated: false },
    ])
}

fn undone() -> impl Strategy<Value = ReleaseReason> {
    prop_oneof![
        3 => Just(ReleaseReason::ByCode),
        1 => Just(ReleaseReason::Panicked(Failure::new("panic", "at src/lib.rs:1:1"))),
        2 => Just(ReleaseReason::ByWorker),
        1 => Just(ReleaseReason::Stuck(Stuck::UnknownWorkflow { tries: 1 })),
        1 => Just(ReleaseReason::Stuck(Stuck::Code { failure: Failure::new("foreign_wait", "after `a`"), tries: 1 })),
        1 => Just(ReleaseReason::Stuck(Stuck::Unreadable(Failure::new("unreadable", "of another type")))),
    ]
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let length = || (1_000_u64..900_000).prop_map(Millis::new);
    let until = || proptest::option::of(-10_000_i64..5_000_000);
    let id = || proptest::option::of((0_u8..5).prop_map(|n| event_id(&n.to_string())));
    let of = || select(vec![event("go"), event("stop")]);
    let plain = select(vec![
        Command::Cancel,
        Command::Terminate,
        Command::Pause,
        Command::Resume,
        Command::Resume,
        Command::Unpark,
        Command::Unpark,
        Command::RetryStep { name: super::super::fixture::name("step-1"), input: None, others: None },
    ]);
    prop_oneof![
        1 => any::<bool>().prop_map(|same_call| Step::StartAgain { same_call }),
        10 => (length(), proptest::bool::weighted(0.2))
            .prop_map(|(length, paused)| Step::StartTurn { length, paused }),
        3 => (0_u64..2_000_000, 0_u64..4_000_000)
            .prop_map(|(wait, more)| Step::Bounce(Millis::new(wait), Millis::new(wait + more))),
        3 => (0_u64..2).prop_map(Step::WaitInLine),
        6 => (whose(), entries()).prop_map(|(whose, entries)| Step::Record(whose, entries)),
        3 => (whose(), 0_u8..8, -1_000_i64..900_000).prop_map(|(whose, n, ms)| Step::Begin(whose, n, ms)),
        2 => (whose(), 0_u8..8).prop_map(|(whose, n)| Step::EndAttempt(whose, n)),
        6 => (whose(), entries(), until(), any::<bool>(), proptest::bool::weighted(0.1)).prop_map(
            |(whose, entries, until, awaits_others, unseen)| {
                Step::Suspend { whose, entries, until, awaits_others, unseen }
            }
        ),
        2 => (whose(), entries(), outcome()).prop_map(|(whose, entries, how)| Step::Close(whose, entries, how)),
        1 => (whose(), proptest::bool::weighted(0.2))
            .prop_map(|(whose, overlooks)| Step::ContinueAsNew { whose, overlooks }),
        2 => whose().prop_map(Step::Heartbeat),
        2 => (whose(), length(), undone()).prop_map(|(whose, after, undone)| Step::Release(whose, after, undone)),
        3 => (of(), id()).prop_map(|(name, id)| Step::SendEvent(name, id)),
        1 => (of(), 0_u32..3).prop_map(|(name, count)| Step::ClearEvents(name, count)),
        2 => Just(Step::Wake),
        1 => select(vec![0_i64, 0, 0, 60_000]).prop_map(|ms_before| Step::Finish { ms_before }),
        3 => plain.prop_map(Step::Plain),
        1 => entries().prop_map(Step::Restart),
        6 => (any::<bool>(), proptest::option::of(-1_000_000_i64..1_000_000), proptest::bool::weighted(0.2))
            .prop_map(|(looks_empty, watermark, paused)| Step::Due { looks_empty, watermark, paused }),
    ]
}

pub(super) fn plan() -> impl Strategy<Value = Plan> {
    let span = |most: u64| proptest::option::weighted(0.5, (1_000..most).prop_map(Millis::new));
    let bytes = || proptest::option::of(select(vec![2_usize, 100, 300, 1_000]));
    let delay = select(vec![0_u64, 0, 5_000, 3_600_000]).prop_map(Millis::new);
    (
        span(100_000_000),
        span(20_000_000),
        span(1_000_000),
        delay,
        bytes(),
        bytes(),
        any::<[bool; 2]>(),
        0_u32..6,
        0_usize..3,
    )
        .prop_map(|(whole, run, on_failure, delay, input, details, [child, in_line], idle, gates)| {
            let mut plan = execution().limited(|limits| {
                limits.idle_turns = idle;
                limits.pending_events = 5;
                limits.journal_entries = 60;
                limits.open_steps = 4;
            });
            if child {
                plan = plan.child();
            }
            if gates > 0 {
                plan = plan.needing(&[10, 9][..gates]);
            }
            plan.start.in_line = in_line;
            let text = |bytes: usize| crate::payload::Json::string(&"x".repeat(bytes));
            let start = &mut plan.start;
            (start.timeouts.execution, start.timeouts.run) = (whole, run);
            (start.on_failure, start.delay) = (on_failure, delay);
            (start.given.input, start.given.details) = (input.map(text), details.map(text));
            plan
        })
}
