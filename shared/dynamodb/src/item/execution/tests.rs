use tickover_core::due::{Due, DueKind};
use tickover_core::execution::ExecutionState;
use tickover_core::execution::fixture::{self, closed, every_entry, every_state, full};
use tickover_core::size;
use tickover_core::time::Timestamp;

use super::*;
use crate::attribute::{DUE_AT, DUE_KIND, DUE_SHARD, PK, SK, TTL};
use crate::item::tests::{item_bytes, written};

/// As many digits as an instant has for the next centuries.
const NOW: Timestamp = Timestamp::from_millis(1_999_999_999_999);

pub(crate) fn pending() -> Execution {
    Execution { due: Some(Due { at: NOW, kind: DueKind::Backstop, shard: 3 }), ..fixture::pending(NOW) }
}

#[test]
fn an_open_execution_lies_in_the_due_index_and_in_its_workflows_list() {
    for state in [pending().state, ExecutionState::Closing(closed(NOW))] {
        let execution = Execution { state, ..pending() };
        let item = of_execution(&execution, Listed::Failed).unwrap();
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
fn an_ended_execution_expires_and_is_not_due_and_stays_in_its_list() {
    let execution = Execution { state: ExecutionState::Ended(closed(NOW)), due: None, ..pending() };
    let item = of_execution(&execution, Listed::Failed).unwrap();
    assert_eq!(number(&item, TTL), Some(closed(NOW).expires_at.as_secs_ceil()));
    assert_eq!(string(&item, LIST_KEY), Some("wf#checkout#27"));
    for absent in [DUE_SHARD, DUE_AT, DUE_KIND] {
        assert!(!item.contains_key(absent), "{absent}");
    }
    assert_eq!(to_execution(item).unwrap(), execution);
}

#[test]
fn only_failed_executions_are_in_the_list_of_all_workflows_unless_all_are_listed() {
    for state in every_state(NOW) {
        let execution = Execution { state, ..pending() };
        let key = |listed| {
            let item = of_execution(&execution, listed).unwrap();
            string(&item, ALL_KEY).map(str::to_owned)
        };
        let expected = if execution.has_failed() {
            [Some("failed#27"), Some("failed#27")]
        } else {
            [None, Some("rest#27")]
        };
        assert_eq!([key(Listed::Failed), key(Listed::All)], expected.map(|key| key.map(str::to_owned)));
    }
}

#[test]
fn an_entry_in_the_list_of_all_takes_no_more_bytes_than_are_billed() {
    let id = tickover_core::id::ExecutionId::parse("0".repeat(36)).unwrap();
    let execution = Execution { id, ..pending() };
    let item = |listed| of_execution(&execution, listed).unwrap();
    let mut entry = item(Listed::All);
    entry.retain(|name, _| [PK, SK, ALL_KEY, LIST_AT].contains(&name.as_str()));
    let added = item_bytes(&item(Listed::All)) - item_bytes(&item(Listed::Failed)) + item_bytes(&entry);
    let billed = tickover_service::cost::LISTED.stored_bytes;
    let bytes = tickover_service::cost::ITEM_BYTES + f64::from(u32::try_from(added).unwrap());
    assert!(bytes <= billed && bytes > 0.9 * billed, "{bytes}");
}

#[test]
fn an_unreadable_record_is_refused_without_showing_its_content() {
    let with = |name: &str, value: Option<AttributeValue>| {
        let mut item = of_execution(&pending(), Listed::Failed).unwrap();
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
    assert_eq!(
        with(PK, text("task#a")),
        "an item that should be that of a record (execution) has another key"
    );
    assert_eq!(with("st", text("secret")), "the item of execution order-7 isn't of its own format");
    assert_eq!(with("jou", text("secret")), "the item of execution order-7 isn't of its own format");
    assert_eq!(with(DUE_KIND, None), "execution order-7 has only a part of its place in the due index");
    for list in [text("dead#27"), text("wf#checkout"), None] {
        assert_eq!(with(LIST_KEY, list), "execution order-7 lies in no workflow's list");
    }
}

#[test]
fn an_item_is_never_larger_than_the_rules_take_its_record_to_be() {
    for record in [pending(), full(NOW), Execution { journal: every_entry(NOW), ..pending() }] {
        for state in every_state(NOW) {
            // An ended execution isn't due, and has a time to live instead.
            let due = record.due.filter(|_| !matches!(state, ExecutionState::Ended(_)));
            let execution = Execution { state, due, ..record.clone() };
            for listed in [Listed::Failed, Listed::All] {
                let item = of_execution(&execution, listed).unwrap();
                let (bytes, reckoned) = (item_bytes(&item), size::of(&execution));
                assert!(
                    bytes <= reckoned,
                    "{bytes} bytes, which the rules take to be {reckoned}: {execution:?}"
                );
                assert_eq!(to_execution(item).unwrap(), execution);
            }
        }
    }
}

#[test]
fn an_update_writes_what_differs_between_the_whole_items_but_for_wakes() {
    let plain = Execution { id: full(NOW).id, workflow: full(NOW).workflow, ..pending() };
    let records = [full(NOW), plain].into_iter().flat_map(|record| {
        every_state(NOW).into_iter().map(move |state| {
            let due = record.due.filter(|_| !matches!(state, ExecutionState::Ended(_)));
            Execution { state, due, ..record.clone() }
        })
    });
    let records: Vec<Execution> = records.collect();
    let without_wakes = |execution: &Execution, listed| {
        let mut item = of_execution(execution, listed).unwrap();
        item.remove(own::WAKES);
        item
    };
    for listed in [Listed::Failed, Listed::All] {
        for before in &records {
            for after in &records {
                let mut old = without_wakes(before, listed);
                // Whatever it was.
                old.insert(ALL_KEY.to_owned(), AttributeValue::Null(true));
                let expected = written((old, without_wakes(after, listed)));
                assert_eq!(written(changes(before, after, listed).unwrap()), expected);
            }
        }
    }
}

#[test]
fn a_journal_takes_fewer_bytes_as_lists_and_numbers_than_as_a_text() {
    let execution = Execution { journal: every_entry(NOW), ..pending() };
    let as_it_is = item_bytes(&of_execution(&execution, Listed::Failed).unwrap())
        - item_bytes(&of_execution(&pending(), Listed::Failed).unwrap());
    let as_text = serde_json::to_string(&execution.journal).unwrap().len();
    assert!(as_it_is * 10 < as_text * 9, "{as_it_is} and {as_text} bytes");
}
