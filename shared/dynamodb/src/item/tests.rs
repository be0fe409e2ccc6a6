use std::num::NonZeroU32;

use tickover_core::command::{Context, Isolation};
use tickover_core::duration::Millis;
use tickover_core::execution::journal::JOIN_MAX;
use tickover_core::execution::{Parent, Slot};
use tickover_core::id::{
    BlobId, ExecutionId, Fingerprint, Incarnation, LeaseId, Nonce, QueueName, TaskId, TaskKind, WorkerName,
};
use tickover_core::limits::{
    CONTROL_RECORD_BYTES, ERROR_CODE_MAX, EXECUTION_ID_MAX, ID_MAX, KIND_MAX, Limits, QUEUE_NAME_MAX,
    SPAN_MAX, WORKER_MAX,
};
use tickover_core::payload::Json;
use tickover_core::queue::QueueView;
use tickover_core::retry::{Delay, Jitter, MAX_CODES_BYTES, MAX_LISTED_DELAYS, MaxAttempts, RetryPolicy};
use tickover_core::size;
use tickover_core::task::command::{
    Claim, Command, Complete, Fail, Heartbeat, Key as IdempotencyKey, Schedule, SignOfLife, Start,
};
use tickover_core::task::decide;
use tickover_core::task::decision::Reply;
use tickover_core::task::{Failure, Status};
use tickover_core::timeout::{AttemptTimeout, LifeTimeout, OnTimeout, Timeouts};
use tickover_core::trace::TraceContext;

use super::*;
use crate::expression::{Placeholders, difference};

/// As many digits as an instant has for the next centuries.
const NOW: Timestamp = Timestamp::from_millis(1_999_999_999_999);

fn decided(task: Option<&Task>, command: &Command, now: Timestamp) -> Task {
    let limits = Limits::default();
    let context = Context { now, nonce: Nonce::from_bytes([0xff; 8]), limits: &limits, by: None };
    let decision = decide(task, command, &context);
    decision.outcome.unwrap_or_else(|refusal| panic!("{command:?}: {refusal:?}")).0
}

fn schedule() -> Schedule {
    Schedule {
        id: TaskId::parse("a").unwrap(),
        incarnation: Incarnation::from_bytes([1; 8]),
        queue: QueueName::parse("mail").unwrap(),
        kind: TaskKind::parse("send").unwrap(),
        input: Some(Json::string("hello")),
        labels: None,
        retry: RetryPolicy::none(),
        flow: tickover_core::flow::Flow::default(),
        timeouts: Timeouts::default(),
        start: Start::After(Millis::ZERO),
        in_line: false,
        fingerprint: Fingerprint::from_bytes([2; 16]),
        key: None,
        parent: None,
        trace: None,
        blob_ids: [BlobId::from_bytes([3; 16]), BlobId::from_bytes([4; 16])],
    }
}

pub(crate) fn pending() -> Task {
    decided(None, &Command::Schedule(Box::new(schedule())), NOW)
}

/// A failed task.
fn dead() -> Task {
    let Command::Claim(claim) = claim(0) else { unreachable!("it is one") };
    let running = decided(Some(&pending()), &Command::Claim(claim.clone()), NOW);
    let error = Failure::new("smtp", "no");
    let fail = Fail { lease: claim.lease, error, retryable: true, blob_id: BlobId::from_bytes([5; 16]) };
    decided(Some(&running), &Command::Fail(fail), NOW)
}

#[test]
fn a_waiting_task_lies_in_the_due_index_and_in_no_list() {
    let task = pending();
    let item = of_task(&task).unwrap();
    assert_eq!(string(&item, PK), Some("task#a"));
    assert_eq!(number(&item, "v"), Some(1));
    let due = task.due.unwrap();
    assert_eq!(string(&item, DUE_SHARD), Some(due.shard.to_string().as_str()));
    assert_eq!((number(&item, DUE_AT), string(&item, DUE_KIND)), (Some(due.at.as_millis()), Some("b")));
    for absent in [field::ID, field::DUE, TTL, LIST_KEY, LIST_AT] {
        assert!(!item.contains_key(absent), "{absent}");
    }
    assert_eq!(to_task(item).unwrap(), task);
}

#[test]
fn a_dead_task_lies_in_its_list_and_expires_and_is_not_due() {
    let task = dead();
    let item = of_task(&task).unwrap();
    let ended = task.ended().unwrap();
    assert_eq!(number(&item, TTL), Some(ended.expires_at.as_secs_ceil()));
    assert_eq!(string(&item, LIST_KEY), Some("dead#12"));
    assert_eq!(number(&item, LIST_AT), Some(task.created_at.as_millis()));
    for absent in [DUE_SHARD, DUE_AT, DUE_KIND] {
        assert!(!item.contains_key(absent), "{absent}");
    }
    assert_eq!(to_task(item).unwrap(), task);
}

#[test]
fn an_unreadable_record_is_refused_without_showing_its_content() {
    let with = |name: &str, value: Option<AttributeValue>| {
        let mut item = of_task(&pending()).unwrap();
        match value {
            Some(value) => drop(item.insert(name.to_owned(), value)),
            None => drop(item.remove(name)),
        }
        let StoreError::Corrupt { reason } = to_task(item).unwrap_err() else { panic!("{name}") };
        reason
    };
    let text = |text: &str| Some(AttributeValue::S(text.to_owned()));
    let two = Some(AttributeValue::N("2".to_owned()));
    assert_eq!(with("v", two), "task a is stored in format 2, where this build reads 1");
    assert_eq!(with("v", None), "task a is stored without a format, where this build reads 1");
    assert_eq!(with(PK, text("queue#a")), "an item that should be that of a record (task) has another key");
    assert_eq!(with("st", text("secret")), "the item of task a isn't of its own format");
    assert_eq!(with(DUE_KIND, text("x")), "task a has only a part of its place in the due index");
}

#[test]
fn numbers_that_the_table_would_refuse_are_brought_to_its_bounds() {
    let silly = |backoff, progress| {
        let task = pending();
        let retry = RetryPolicy { backoff, ..task.retry.clone() };
        let stored = to_task(of_task(&Task { retry, progress, ..task }).unwrap()).unwrap();
        (stored.retry.backoff.to_string().len(), stored.progress)
    };
    assert_eq!(silly(f64::MAX, Some(f64::MIN_POSITIVE)), (31, Some(0.0)));
    assert_eq!(silly(f64::MIN_POSITIVE, Some(0.123_456_789)), (32, Some(0.123_456_789)));
    assert_eq!(silly(1.5, None), (3, None));
}

#[test]
fn a_number_is_read_to_its_last_bit() {
    let task = Task { progress: Some(0.943_837_771_949_875_5), ..pending() };
    assert_eq!(to_task(of_task(&task).unwrap()).unwrap(), task);
}

/// The size of an item by `DynamoDB`'s billing rule.
pub(crate) fn item_bytes(item: &Item) -> usize {
    item.iter().map(|(name, value)| name.len() + value_bytes(value)).sum()
}

fn value_bytes(value: &AttributeValue) -> usize {
    match value {
        AttributeValue::S(text) => text.len(),
        AttributeValue::N(number) => number.bytes().filter(u8::is_ascii_digit).count().div_ceil(2) + 1,
        AttributeValue::Bool(_) | AttributeValue::Null(_) => 1,
        AttributeValue::L(list) => 3 + list.iter().map(|entry| 1 + value_bytes(entry)).sum::<usize>(),
        AttributeValue::M(map) => {
            3 + map.iter().map(|(name, field)| 1 + name.len() + value_bytes(field)).sum::<usize>()
        }
        other => panic!("no record has {other:?}"),
    }
}

/// A schedule with every field, each as large as allowed.
fn largest(on_timeout: OnTimeout) -> Schedule {
    let attempt = Some(AttemptTimeout { after: SPAN_MAX, on_timeout });
    let year = |ms| Millis::new(SPAN_MAX.as_u64() - ms);
    Schedule {
        id: TaskId::parse("i".repeat(ID_MAX)).unwrap(),
        queue: QueueName::parse("q".repeat(QUEUE_NAME_MAX)).unwrap(),
        kind: TaskKind::parse("k".repeat(KIND_MAX)).unwrap(),
        input: Some(Json::string(&"x".repeat(100_000))),
        labels: Some(Json::parse(format!(r#"{{"label":"{}"}}"#, "x".repeat(4_000))).unwrap()),
        retry: RetryPolicy {
            max_attempts: MaxAttempts::Limited(NonZeroU32::MAX),
            delay: Delay::Listed((0..).take(MAX_LISTED_DELAYS).map(|_| year(1)).collect()),
            max_delay: Some(Millis::new(1)),
            jitter: Jitter::Full,
            non_retryable: vec!["c".repeat(MAX_CODES_BYTES / 8); 8],
            ..RetryPolicy::none()
        },
        flow: tickover_core::flow::Flow::default(),
        timeouts: Timeouts {
            schedule_to_close: Some(LifeTimeout { after: year(1), is_error: true }),
            schedule_to_start: attempt,
            heartbeat: attempt,
            start_to_close: attempt,
        },
        key: Some(IdempotencyKey { digest: Fingerprint::from_bytes([0xff; 16]), replaces: None }),
        trace: TraceContext::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        ..schedule()
    }
}

/// The same as a step of an execution: steps have ids of that length, and neither labels nor keys.
fn largest_step(on_timeout: OnTimeout) -> Schedule {
    let id = TaskId::parse("s".repeat(24)).unwrap();
    Schedule { id, parent: Some(parent()), labels: None, key: None, ..largest(on_timeout) }
}

/// The execution of that step, in a fan-out.
fn parent() -> Parent {
    let label = Nonce::from_bytes([0xff; 8]);
    Parent {
        execution: ExecutionId::parse("e".repeat(EXECUTION_ID_MAX)).unwrap(),
        incarnation: Incarnation::from_bytes([0xff; 8]),
        run: 9_999,
        again: 0,
        slot: Some(Slot { label, item: 99, place: JOIN_MAX - 1, of: JOIN_MAX }),
        step: None,
        work: None,
        on_close: tickover_core::execution::ParentClosePolicy::default(),
    }
}

/// The claim of that attempt: each has its own fence.
fn claim(attempt: u8) -> Command {
    let worker = WorkerName::parse("w".repeat(WORKER_MAX)).ok();
    let length = Millis::from_secs(12 * 3_600);
    Command::Claim(Claim {
        lease: lease_of(attempt),
        worker,
        length,
        hint: None,
        isolation: Isolation::Alone,
        inside: false,
        paused: false,
        held: false,
        places: None,
        start: None,
        start_of: None,
    })
}

fn lease_of(attempt: u8) -> LeaseId {
    LeaseId::from_bytes([0xff - attempt; 16])
}

/// The task with every field.
fn largest_task(largest: Schedule) -> Task {
    let limits = Limits::default();
    let context = Context { now: NOW, nonce: Nonce::from_bytes([0xff; 8]), limits: &limits, by: None };
    let decision = decide(None, &Command::Schedule(Box::new(largest)), &context);
    assert_eq!(decision.reply(), Ok(&Reply::Scheduled { existed: false }));
    decision.outcome.unwrap().0
}

/// The states of a life: failed attempts, one that runs, and every outcome.
fn life(scheduled: Task) -> Vec<Task> {
    let mut states = vec![scheduled];
    let mut now = NOW;
    let step = |states: &mut Vec<Task>, command: &Command, now| {
        let next = decided(states.last(), command, now);
        states.push(next);
    };
    let blob_id = BlobId::from_bytes([0xff; 16]);
    let error = Failure::new("e".repeat(ERROR_CODE_MAX), "ü".repeat(50_000));
    for attempt in 0..4 {
        step(&mut states, &claim(attempt), now);
        let fail = Fail { lease: lease_of(attempt), error: error.clone(), retryable: true, blob_id };
        step(&mut states, &Command::Fail(fail), now);
        now = now.plus(Millis::new(2));
    }
    let lease = lease_of(4);
    step(&mut states, &claim(4), now);
    step(
        &mut states,
        &Command::Heartbeat(Heartbeat {
            lease,
            sign_of: SignOfLife::Both,
            progress: Some(0.123_456_789_012_345_67),
            details: None,
            blob_id,
            places: None,
        }),
        now,
    );
    step(&mut states, &Command::Cancel { force: false }, now);
    let running = states.last().cloned().unwrap();
    let uncancelled = states[states.len() - 2].clone();
    let output = Some(Json::string(&"o".repeat(100_000)));
    let ends = [
        (&running, Command::Complete(Complete { lease, output: output.clone(), blob_id }), now),
        (&running, Command::Release { lease }, now),
        (&uncancelled, Command::Fail(Fail { lease, error, retryable: false, blob_id }), now),
        (
            &uncancelled,
            Command::Complete(Complete { lease, output: Some(Json::string("short")), blob_id }),
            now,
        ),
        (&uncancelled, Command::Cancel { force: true }, now),
        (&uncancelled, Command::Due(QueueView::default()), NOW.plus(SPAN_MAX)),
    ];
    for (task, command, at) in ends {
        let ended = decided(Some(task), &command, at);
        match ended.status() {
            Status::Failed | Status::TimedOut | Status::Cancelled => {
                states.push(decided(Some(&ended), &Command::Retry(None), at));
            }
            Status::Pending | Status::Running | Status::Completed | Status::Skipped => {}
        }
        states.push(ended);
    }
    states
}

#[test]
fn a_record_with_every_limit_at_its_maximum_is_one_write_unit() {
    let mut largest_bytes = 0;
    let all = [OnTimeout::Retry, OnTimeout::Terminal, OnTimeout::Cancel];
    for request in all.into_iter().flat_map(|on_timeout| [largest(on_timeout), largest_step(on_timeout)]) {
        let states = life(largest_task(request));
        for task in &states {
            largest_bytes = largest_bytes.max(checked_bytes(task));
        }
        // The life had all of these states.
        let statuses: Vec<Status> = states.iter().map(Task::status).collect();
        for status in [Status::Pending, Status::Running, Status::Completed, Status::Failed, Status::TimedOut]
        {
            assert!(statuses.contains(&status), "{status}");
        }
    }
    assert!(largest_bytes > CONTROL_RECORD_BYTES - 100, "the test isn't at the limit: {largest_bytes}");
}

#[test]
fn an_update_writes_what_differs_between_the_whole_items() {
    let mut states = life(largest_task(largest(OnTimeout::Retry)));
    states.extend([pending(), dead()]);
    for before in &states {
        for after in &states {
            let whole = (of_task(before).unwrap(), of_task(after).unwrap());
            // An update never changes an id.
            if before.id == after.id {
                assert_eq!(written(changes(before, after).unwrap()), written(whole));
            }
        }
    }
}

pub(crate) fn written((before, after): (Item, Item)) -> (Option<String>, Placeholders) {
    let mut with = Placeholders::default();
    (difference(&before, after, &mut with), with)
}

/// The size of a task's item, which must be within one write unit and within the size that the rules calculate.
fn checked_bytes(task: &Task) -> usize {
    let item = of_task(task).unwrap();
    let (bytes, reckoned, status) = (item_bytes(&item), size::of(task), task.status());
    assert!(bytes <= CONTROL_RECORD_BYTES, "{status}: {bytes} bytes");
    assert!(bytes <= reckoned, "{status}: {bytes} bytes, which the rules take to be {reckoned}");
    assert_eq!(to_task(item).unwrap(), *task);
    bytes
}
