//! Random calls of callers.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use tickover_core::duration::Millis;
use tickover_core::id::TaskKind;
use tickover_core::payload::Json;
use tickover_core::retry::{Jitter, MaxAttempts, RetryPolicy};
use tickover_core::task::Status;
use tickover_core::task::command::Start;
use tickover_core::timeout::{AttemptTimeout, LifeTimeout, OnTimeout, Timeouts};
use tickover_service::tasks::schedule::ScheduleRequest;
use tickover_tests::scene::{queue_name, task_id};

/// The queues of all tasks.
pub(crate) const QUEUES: [&str; 2] = ["mail", "post"];

/// How many leases ago a lease was granted.
pub(crate) type Ago = usize;

/// A call, or time that passes between calls. An index selects any task that has ever existed.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Schedule(Box<ScheduleRequest>),
    Batch(Vec<ScheduleRequest>),
    Claim {
        queue: &'static str,
        max: usize,
        lease: Millis,
        wait: Millis,
    },
    ClaimById {
        task: Index,
        lease: Millis,
    },
    Report {
        lease: Ago,
        report: Report,
    },
    Cancel {
        task: Index,
        force: bool,
    },
    Retry {
        task: Index,
    },
    Describe {
        task: Index,
    },
    DescribeQueue(&'static str),
    Pause {
        queue: &'static str,
        paused: bool,
    },
    List {
        statuses: Vec<Status>,
        queue: Option<&'static str>,
        limit: usize,
    },
    Tick,
    /// The messages of the queue of timers are processed.
    Fire,
    /// A hint is lost.
    Lose {
        queue: &'static str,
    },
    Advance(Millis),
}

/// A worker's report.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Report {
    Heartbeat {
        progress: Option<f64>,
    },
    Complete {
        bytes: Option<usize>,
    },
    Fail {
        retryable: bool,
        bytes: usize,
    },
    Release,
    /// For another task than that of the lease.
    Stray {
        task: Index,
    },
}

/// First a few tasks in both queues, and then any calls.
pub(crate) fn calls() -> impl Strategy<Value = Vec<Call>> {
    let first = [(); 3].map(|()| {
        request().prop_map(|mut request| {
            request.idempotency_key = request.idempotency_key.filter(|key| !key.is_empty());
            request
        })
    });
    (first, prop::collection::vec(call(), 10..38)).prop_map(|(first, rest)| {
        let queues = QUEUES.into_iter().cycle();
        let first = first.into_iter().zip(queues).map(|(request, queue)| {
            Call::Schedule(Box::new(ScheduleRequest { queue: queue_name(queue), ..request }))
        });
        first.chain(rest).collect()
    })
}

/// Any call. Calls are more frequent if the others have no effect without them.
fn call() -> impl Strategy<Value = Call> {
    let work = prop_oneof![
        6 => request().prop_map(|request| Call::Schedule(Box::new(request))),
        1 => prop::collection::vec(request(), 0..7).prop_map(Call::Batch),
        8 => claim(),
        2 => (any::<Index>(), lease()).prop_map(|(task, lease)| Call::ClaimById { task, lease }),
        16 => (prop_oneof![3 => Just(0), 1 => 1_usize..6], report())
            .prop_map(|(lease, report)| Call::Report { lease, report }),
    ];
    let rest = prop_oneof![
        2 => (any::<Index>(), any::<bool>()).prop_map(|(task, force)| Call::Cancel { task, force }),
        2 => any::<Index>().prop_map(|task| Call::Retry { task }),
        1 => any::<Index>().prop_map(|task| Call::Describe { task }),
        1 => queue().prop_map(Call::DescribeQueue),
        1 => (queue(), prop::bool::weighted(0.3)).prop_map(|(queue, paused)| Call::Pause { queue, paused }),
        1 => list(),
        6 => Just(Call::Tick),
        2 => Just(Call::Fire),
        1 => queue().prop_map(|queue| Call::Lose { queue }),
        8 => passing().prop_map(Call::Advance),
    ];
    prop_oneof![3 => work, 2 => rest]
}

fn queue() -> impl Strategy<Value = &'static str> {
    select(QUEUES.to_vec())
}

fn report() -> impl Strategy<Value = Report> {
    prop_oneof![
        3 => prop::option::of(-0.1..1.1).prop_map(|progress| Report::Heartbeat { progress }),
        3 => prop::option::of(bytes()).prop_map(|bytes| Report::Complete { bytes }),
        4 => (prop::bool::weighted(0.8), bytes()).prop_map(|(retryable, bytes)| Report::Fail { retryable, bytes }),
        2 => Just(Report::Release),
        1 => any::<Index>().prop_map(|task| Report::Stray { task }),
    ]
}

fn lease() -> impl Strategy<Value = Millis> {
    select(vec![1_u64, 30, 60, 300]).prop_map(Millis::from_secs)
}

fn claim() -> impl Strategy<Value = Call> {
    let wait = prop_oneof![4 => Just(0_u64), 1 => Just(20)].prop_map(Millis::from_secs);
    (queue(), 1_usize..4, lease(), wait).prop_map(|(queue, max, lease, wait)| Call::Claim {
        queue,
        max,
        lease,
        wait,
    })
}

/// Some fit into a record, some don't, and one is over the limit.
fn bytes() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 0_usize..100, 2 => 200_usize..1_500, 1 => Just(9_000)]
}

fn list() -> impl Strategy<Value = Call> {
    let statuses = prop::collection::vec(select(Status::ALL.to_vec()), 0..3);
    (statuses, prop::option::of(queue()), 1_usize..6).prop_map(|(statuses, queue, limit)| Call::List {
        statuses,
        queue,
        limit,
    })
}

fn passing() -> impl Strategy<Value = Millis> {
    let seconds = prop_oneof![
        2 => Just(1_u64),
        3 => Just(30),
        3 => Just(60),
        3 => Just(601),
        1 => Just(2_400),
        1 => Just(6 * 3_600),
        1 => Just(70 * 86_400),
    ];
    (seconds, 0_u64..3).prop_map(|(seconds, ms)| Millis::new(seconds * 1_000 + ms))
}

fn text(bytes: usize) -> Json {
    Json::string(&"x".repeat(bytes))
}

fn request() -> impl Strategy<Value = ScheduleRequest> {
    let id = prop::option::weighted(0.5, 0_u8..4);
    let key = prop::option::weighted(0.3, select(vec!["", "a", "b"]));
    let sizes = (prop::option::of(bytes()), prop::option::weighted(0.2, 0_usize..700));
    let queue = prop_oneof![9 => queue(), 1 => Just("other")];
    (id, key, queue, sizes, retry(), timeouts(), start()).prop_map(
        |(id, key, queue, (input, labels), retry, timeouts, start)| ScheduleRequest {
            id: id.map(|id| task_id(&format!("t-{id}"))),
            idempotency_key: key.map(str::to_owned),
            queue: queue_name(queue),
            kind: TaskKind::parse("work").unwrap(),
            input: input.map(text),
            labels: labels.map(|bytes| Json::parse(format!("{{\"l\":\"{}\"}}", "x".repeat(bytes))).unwrap()),
            retry,
            flow: tickover_core::flow::FlowRequest::default(),
            timeouts,
            start,
            trace: None,
            asked: tickover_service::tasks::schedule::Asked::default(),
        },
    )
}

fn retry() -> impl Strategy<Value = RetryPolicy> {
    let spread = RetryPolicy { jitter: Jitter::Full, ..RetryPolicy::fixed(3, Millis::from_secs(2_000)) };
    let never = RetryPolicy { max_attempts: MaxAttempts::Skip, ..RetryPolicy::none() };
    prop_oneof![
        3 => Just(RetryPolicy::none()),
        4 => Just(RetryPolicy::fixed(2, Millis::ZERO)),
        2 => Just(RetryPolicy::fixed(5, Millis::from_secs(45))),
        1 => Just(spread),
        1 => Just(never),
    ]
}

fn timeouts() -> impl Strategy<Value = Timeouts> {
    let span =
        || prop::option::weighted(0.3, select(vec![1_u64, 50, 150, 400, 3_000]).prop_map(Millis::from_secs));
    let then = || select(vec![OnTimeout::Retry, OnTimeout::Terminal, OnTimeout::Cancel]);
    let attempt = move || {
        (span(), then())
            .prop_map(|(after, on_timeout)| after.map(|after| AttemptTimeout { after, on_timeout }))
    };
    (span(), any::<bool>(), attempt(), attempt(), attempt()).prop_map(
        |(whole, is_error, schedule_to_start, heartbeat, start_to_close)| Timeouts {
            schedule_to_close: whole.map(|after| LifeTimeout { after, is_error }),
            schedule_to_start,
            heartbeat,
            start_to_close,
        },
    )
}

fn start() -> impl Strategy<Value = Start> {
    let seconds = prop_oneof![6 => Just(0_u64), 2 => Just(40), 1 => Just(5_000), 1 => Just(400 * 86_400)];
    seconds.prop_map(|seconds| Start::After(Millis::from_secs(seconds)))
}
