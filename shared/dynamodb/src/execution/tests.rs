use tickover_core::due::{Due, DueKind};
use tickover_core::duration::Millis;
use tickover_core::execution::journal::{Entry, Happened, Sealed, StepOutcome};
use tickover_core::execution::{
    Closed, ExecutionOutcome, ExecutionTimeouts, Failing, Parent, Ready, Slot, Stuck, Turn, Waiting,
};
use tickover_core::id::{
    BlobId, EventId, EventName, ExecutionId, Fingerprint, Incarnation, LeaseId, Nonce, QueueName, StepName,
    WorkerName, WorkflowName,
};
use tickover_core::limits::{
    EVENT_ID_MAX, EVENT_NAME_MAX, EXECUTION_ID_MAX, QUEUE_NAME_MAX, SPAN_MAX, STEP_NAME_MAX, WORKER_MAX,
    WORKFLOW_MAX,
};
use tickover_core::payload::{BlobRef, Json, Payload};
use tickover_core::size;
use tickover_core::task::Failure;
use tickover_core::trace::TraceContext;

use super::*;
use crate::attribute::{DUE_AT, DUE_KIND, DUE_SHARD, SK};
use crate::item::tests::{item_bytes, written};

/// As many digits as an instant has for the next centuries.
const NOW: Timestamp = Timestamp::from_millis(1_999_999_999_999);

/// An execution that waits for a worker, and has as little as one can have.
pub(crate) fn pending() -> Execution {
    Execution {
        format: FORMAT,
        id: ExecutionId::parse("order-7").unwrap(),
        incarnation: Incarnation::from_bytes([1; 8]),
        version: 1,
        nonce: Nonce::from_bytes([7; 8]),
        workflow: WorkflowName::parse("checkout").unwrap(),
        queue: QueueName::parse("mail").unwrap(),
        created_at: NOW,
        fingerprint: Fingerprint::from_bytes([2; 16]),
        run: 1,
        run_started_at: NOW,
        input: None,
        details: None,
        timeouts: ExecutionTimeouts::default(),
        deadline_at: None,
        run_deadline_at: None,
        parent: None,
        trace: None,
        wakes: 0,
        idle_turns: 0,
        journal: vec![],
        sealed: None,
        open_steps: 0,
        pending_events: 0,
        on_failure: None,
        failing: None,
        cancel_requested: false,
        paused: false,
        kept: None,
        progress: None,
        parked: false,
        stuck: None,
        hinted_at: None,
        state: ExecutionState::Pending(Ready { available_at: NOW, hint_later: false }),
        due: Some(Due { at: NOW, kind: DueKind::Backstop, shard: 3 }),
    }
}

fn closed() -> Closed {
    let outcome = ExecutionOutcome::Completed { output: None };
    Closed { outcome, ended_at: NOW, expires_at: NOW.plus(Millis::new(1)) }
}

#[test]
fn an_open_execution_lies_in_the_due_index_and_in_its_workflows_list() {
    for state in [pending().state, ExecutionState::Closing(closed())] {
        let execution = Execution { state, ..pending() };
        let item = of_execution(&execution).unwrap();
        assert_eq!((string(&item, PK), string(&item, SK)), (Some("exec#order-7"), Some("exec")));
        assert_eq!((number(&item, "v"), number(&item, own::WAKES)), (Some(1), Some(0)));
        assert_eq!((string(&item, DUE_SHARD), string(&item, DUE_KIND)), (Some("3"), Some("b")));
        assert_eq!(number(&item, DUE_AT), Some(NOW.as_millis()));
        assert_eq!(
            (string(&item, LIST_KEY), number(&item, LIST_AT)),
            (Some("wf#checkout#27"), Some(NOW.as_millis()))
        );
        for absent in [field::ID, field::DUE, own::WORKFLOW, own::CREATED_AT, TTL] {
            assert!(!item.contains_key(absent), "{absent}");
        }
        assert_eq!(to_execution(item).unwrap(), execution);
    }
}

#[test]
fn one_that_has_ended_expires_and_is_not_due_and_stays_in_its_list() {
    let execution = Execution { state: ExecutionState::Ended(closed()), due: None, ..pending() };
    let item = of_execution(&execution).unwrap();
    assert_eq!(number(&item, TTL), Some(closed().expires_at.as_secs_ceil()));
    assert_eq!(string(&item, LIST_KEY), Some("wf#checkout#27"));
    for absent in [DUE_SHARD, DUE_AT, DUE_KIND] {
        assert!(!item.contains_key(absent), "{absent}");
    }
    assert_eq!(to_execution(item).unwrap(), execution);
}

#[test]
fn what_this_build_does_not_know_is_refused_and_nothing_of_it_told() {
    let with = |name: &str, value: Option<AttributeValue>| {
        let mut item = of_execution(&pending()).unwrap();
        match value {
            Some(value) => drop(item.insert(name.to_owned(), value)),
            None => drop(item.remove(name)),
        }
        let StoreError::Corrupt { reason } = to_execution(item).unwrap_err() else { panic!("{name}") };
        reason
    };
    let text = |text: &str| Some(AttributeValue::S(text.to_owned()));
    let two = Some(AttributeValue::N("2".to_owned()));
    assert_eq!(with("v", two), "execution order-7 is stored in format 2, where this build reads 1");
    assert_eq!(with("v", None), "execution order-7 is stored without a format, where this build reads 1");
    assert_eq!(with(PK, text("task#a")), "an item that should be an execution has another record's key");
    assert_eq!(with("st", text("secret")), "the item of execution order-7 isn't of its own format");
    assert_eq!(with("jou", text("secret")), "the item of execution order-7 isn't of its own format");
    assert_eq!(with(DUE_KIND, None), "execution order-7 has only a part of its place in the due index");
    for list in [text("dead#27"), text("wf#checkout"), None] {
        assert_eq!(with(LIST_KEY, list), "execution order-7 lies in no workflow's list");
    }
}

/// Everything that a record can have, each as large as it may be.
fn largest() -> Execution {
    let error = Failure::new("e".repeat(64), "ü".repeat(100));
    let outcome = ExecutionOutcome::Failed {
        error: error.clone(),
        step: Some("s".repeat(STEP_NAME_MAX)),
        retries_exhausted: true,
    };
    let slot = Slot { label: Nonce::from_bytes([0xff; 8]), item: u16::MAX, place: u16::MAX, of: u16::MAX };
    let blob = BlobRef { id: BlobId::from_bytes([0xff; 16]), bytes: u32::MAX, expires_at: NOW };
    let parent = Parent {
        execution: ExecutionId::parse("p".repeat(EXECUTION_ID_MAX)).unwrap(),
        incarnation: Incarnation::from_bytes([0xff; 8]),
        run: u32::MAX,
        slot: Some(slot),
        on_close: tickover_core::execution::ParentClosePolicy::RequestCancel,
    };
    Execution {
        id: ExecutionId::parse("i".repeat(EXECUTION_ID_MAX)).unwrap(),
        workflow: WorkflowName::parse("w".repeat(WORKFLOW_MAX)).unwrap(),
        queue: QueueName::parse("q".repeat(QUEUE_NAME_MAX)).unwrap(),
        version: u64::from(u32::MAX),
        run: u32::MAX,
        input: Some(Payload::Blob(blob.clone())),
        details: Some(Payload::Blob(blob)),
        timeouts: ExecutionTimeouts { execution: Some(SPAN_MAX), run: Some(SPAN_MAX) },
        deadline_at: Some(NOW),
        run_deadline_at: Some(NOW),
        parent: Some(parent),
        trace: TraceContext::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        wakes: 9_999_999_999,
        idle_turns: u32::MAX,
        journal: entries(),
        sealed: Some(Sealed { segments: u32::MAX, last: Nonce::from_bytes([0xff; 8]), entries: u32::MAX }),
        open_steps: u32::MAX,
        pending_events: u32::MAX,
        on_failure: Some(SPAN_MAX),
        failing: Some(Failing { outcome, deadline_at: NOW }),
        cancel_requested: true,
        paused: true,
        stuck: Some(Stuck::Unreadable(error)),
        hinted_at: Some(NOW),
        due: Some(Due { at: NOW, kind: DueKind::Backstop, shard: u16::MAX }),
        ..pending()
    }
}

fn entries() -> Vec<Entry> {
    let step = |text: &str| StepName::parse(text).unwrap();
    let payload = |text: &str| Payload::Inline(Json::parse(text).unwrap());
    let output = Some(payload(r#"{"charge":"ch_3PqXyz","amount":1999,"note":"a \"b\""}"#));
    let happened = [
        Happened::Step {
            name: step("charge-card"),
            outcome: StepOutcome::Completed { output },
            attempts: Some(1),
        },
        Happened::Remote { name: step(&"r".repeat(STEP_NAME_MAX)) },
        Happened::Step { name: step("render[17]"), outcome: StepOutcome::TimedOut, attempts: None },
        Happened::Captured { name: step("now"), value: payload("1999999999999") },
        Happened::Until { name: step("cool-off"), until: NOW },
        Happened::Event {
            name: EventName::parse("e".repeat(EVENT_NAME_MAX)).unwrap(),
            id: EventId::parse("i".repeat(EVENT_ID_MAX)).ok(),
            payload: Some(payload("{}")),
        },
    ];
    happened.into_iter().map(|what| Entry { at: NOW, what }).collect()
}

fn states() -> [ExecutionState; 5] {
    let turn = Turn {
        lease: LeaseId::from_bytes([0xff; 16]),
        worker: WorkerName::parse("w".repeat(WORKER_MAX)).ok(),
        claimed_at: NOW,
        lease_length: Millis::from_secs(12 * 3_600),
        lease_expires_at: NOW,
        shared: false,
        under_way: vec![],
    };
    let waiting = Waiting {
        since: NOW,
        seen_wakes: u64::MAX,
        until: Some(NOW),
        hint_later: true,
        recheck: None,
        stirred: true,
    };
    [
        pending().state,
        ExecutionState::Running(turn),
        ExecutionState::Waiting(waiting),
        ExecutionState::Closing(closed()),
        ExecutionState::Ended(closed()),
    ]
}

#[test]
fn an_item_is_never_larger_than_the_rules_take_its_record_to_be() {
    for record in [pending(), largest(), Execution { journal: entries(), ..pending() }] {
        for state in states() {
            // One that has ended isn't due, and has a time to live instead.
            let due = record.due.filter(|_| !matches!(state, ExecutionState::Ended(_)));
            let execution = Execution { state, due, ..record.clone() };
            let item = of_execution(&execution).unwrap();
            let (bytes, reckoned) = (item_bytes(&item), size::of(&execution));
            assert!(bytes <= reckoned, "{bytes} bytes, which the rules take to be {reckoned}: {execution:?}");
            assert_eq!(to_execution(item).unwrap(), execution);
        }
    }
}

#[test]
fn an_update_writes_what_differs_between_the_whole_items_but_for_wakes() {
    let plain = Execution { id: largest().id, workflow: largest().workflow, ..pending() };
    let records = [largest(), plain].into_iter().flat_map(|record| {
        states().map(|state| {
            let due = record.due.filter(|_| !matches!(state, ExecutionState::Ended(_)));
            Execution { state, due, ..record.clone() }
        })
    });
    let records: Vec<Execution> = records.collect();
    let without_wakes = |execution: &Execution| {
        let mut item = of_execution(execution).unwrap();
        item.remove(own::WAKES);
        item
    };
    for before in &records {
        for after in &records {
            let expected = written((without_wakes(before), without_wakes(after)));
            assert_eq!(written(changes(before, after).unwrap()), expected);
        }
    }
}

#[test]
fn a_journal_takes_fewer_bytes_as_lists_and_numbers_than_as_a_text() {
    let execution = Execution { journal: entries(), ..pending() };
    let as_it_is =
        item_bytes(&of_execution(&execution).unwrap()) - item_bytes(&of_execution(&pending()).unwrap());
    let as_text = serde_json::to_string(&execution.journal).unwrap().len();
    assert!(as_it_is * 10 < as_text * 9, "{as_it_is} and {as_text} bytes");
}
