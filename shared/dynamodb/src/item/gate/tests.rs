use std::num::{NonZeroU16, NonZeroU32};

use tickover_core::duration::Millis;
use tickover_core::flow::{Pace, Priority};
use tickover_core::gate::line::part_of;
use tickover_core::gate::{Absent, Branch, Hold, Holder, Position, RateState};
use tickover_core::id::{ExecutionId, Fingerprint, Incarnation, Nonce, QueueName, TaskId};
use tickover_core::limits::CONTROL_RECORD_BYTES;

use super::*;
use crate::attribute::{DUE_AT, DUE_KIND, DUE_SHARD, PK, SK};
use crate::item::tests::item_bytes;
use crate::key::{line_gate, line_pk, line_range};

const NOW: Timestamp = Timestamp::from_millis(1_999_999_999_999);

fn id(number: u8) -> GateId {
    GateId::from(&Fingerprint::from_bytes([number; 16]))
}

fn empty() -> Gate {
    Gate { version: 1, ..Gate::new(id(0xff), "customer-7".to_owned(), Nonce::from_bytes([0xff; 8]), NOW) }
}

/// A task with a random id, as most have.
fn task(number: usize) -> TaskId {
    TaskId::parse(format!("{number:032}")).unwrap()
}

fn waiter(number: usize, priority: Priority) -> Waiter {
    Waiter {
        owner: task(number).into(),
        incarnation: Incarnation::from_bytes([1; 8]),
        branch: Branch { queue: QueueName::parse("mail").unwrap(), others: vec![], required: 0 },
        priority,
        position: Position { since: NOW, version: 2 },
        written_at: NOW,
        home: None,
    }
}

fn holder(number: usize, hold: Hold) -> Holder {
    let (task, incarnation) = (task(number), Incarnation::from_bytes([1; 8]));
    let since = Timestamp::from_millis(NOW.as_millis() - 7);
    Holder { owner: task.into(), incarnation, since, until: NOW, hold }
}

fn busy() -> Gate {
    Gate {
        limit: NonZeroU16::new(5),
        holders: vec![holder(1, Hold::Taken { mark: u32::MAX }), holder(2, Hold::Called { branch: 9 })],
        absent: vec![Absent { branch: u32::MAX, until: NOW, times: 3 }],
        looked_to: Some("mail#~".to_owned()),
        ..empty()
    }
}

#[test]
fn an_item_is_read_back_as_it_was_written() {
    let pinned = Gate { pinned: NonZeroU16::new(1), ..busy() };
    let limit = NonZeroU32::new(997).unwrap();
    let pace = Some(Pace { limit, per: Millis::from_secs(1), burst: limit });
    let rate = Some(RateState {
        epoch: NOW,
        base: 5,
        base_at: NOW,
        part: 7,
        between: 2,
        next: 1_000,
        free: vec![(7, 9)],
        forgotten: Some((900, 2)),
        skipped: vec![],
        spare: vec![NOW],
    });
    let paced = Gate { pace, paced_at: Some(NOW), rate, ..empty() };
    for record in [empty(), busy(), pinned, paced] {
        assert_eq!(to_gate(of_gate(&record).unwrap()).unwrap(), record);
    }
}

#[test]
fn the_stored_form_stays_the_same() {
    let item = of_gate(&busy()).unwrap();
    let text = |value: &str| AttributeValue::S(value.to_owned());
    let number = |value: &str| AttributeValue::N(value.to_owned());
    let holder = |task: &str, mark: &str, is_called| {
        AttributeValue::L(vec![
            text(task),
            text("AQEBAQEBAQE"),
            number("1999999999992"),
            number("1999999999999"),
            number(mark),
            AttributeValue::Bool(is_called),
        ])
    };
    let holders = vec![
        holder("00000000000000000000000000000001", "4294967295", false),
        holder("00000000000000000000000000000002", "9", true),
    ];
    let absent = AttributeValue::L(vec![number("4294967295"), number("1999999999999"), number("3")]);
    let expected = [
        ("pk", text("gate#_____________________w")),
        ("sk", text("gate")),
        ("v", number("2")),
        ("ver", number("1")),
        ("non", text("__________8")),
        ("k", text("customer-7")),
        ("l", number("5")),
        ("h", AttributeValue::L(holders)),
        ("ab", AttributeValue::L(vec![absent])),
        ("lt", text("mail#~")),
        ("x", number("2000003599999")),
        ("ttl", number("2000003600")),
    ];
    let expected: Item = expected.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    assert_eq!(item, expected);
}

#[test]
fn a_gate_expires_unless_an_operator_has_set_its_limit_and_is_never_due() {
    for record in [empty(), busy()] {
        let item = of_gate(&record).unwrap();
        assert_eq!(item[TTL], seconds(record.expires_at));
        assert!(![DUE_AT, DUE_KIND, DUE_SHARD].iter().any(|name| item.contains_key(*name)));
    }
    let pinned = Gate { pinned: NonZeroU16::new(1), ..empty() };
    assert!(!of_gate(&pinned).unwrap().contains_key(TTL));
}

#[test]
fn another_format_and_another_record_are_refused() {
    for other in ["1", "3"] {
        let mut item = of_gate(&empty()).unwrap();
        item.insert("v".to_owned(), AttributeValue::N(other.to_owned()));
        let Err(StoreError::Corrupt { reason }) = to_gate(item) else { panic!("it was read") };
        let expected =
            format!("key _____________________w is stored in format {other}, where this build reads 2");
        assert_eq!(reason, expected);
    }
    let mut other = of_gate(&empty()).unwrap();
    other.insert(PK.to_owned(), AttributeValue::S("cron#o".to_owned()));
    assert!(matches!(to_gate(other), Err(StoreError::Corrupt { .. })));
}

#[test]
fn those_who_wait_lie_in_the_part_of_their_line_by_branch_priority_and_time() {
    let gate = empty().id;
    let at = |since, one: Waiter| Waiter {
        position: Position { since: Timestamp::from_millis(since), ..one.position },
        ..one
    };
    let others = Waiter {
        owner: ExecutionId::parse("order-7").unwrap().into(),
        branch: Branch { queue: QueueName::parse("mail").unwrap(), others: vec![id(1), id(2)], required: 0 },
        ..waiter(3, Priority::High)
    };
    let order = [
        others,
        at(7, waiter(1, Priority::High)),
        waiter(2, Priority::High),
        waiter(1, Priority::Normal),
        at(1, waiter(0, Priority::Low)),
    ];
    let items: Vec<Item> = order.iter().map(|waiter| of_waiter(&gate, waiter, NOW).unwrap()).collect();
    let keys: Vec<&str> = items.iter().map(|item| string(item, SK).unwrap()).collect();
    assert!(keys.is_sorted(), "{keys:?}");
    let (start, end) = line_range(&gate, "");
    for ((item, waiter), key) in items.iter().zip(order).zip(&keys) {
        assert_eq!(to_waiter(item).unwrap(), waiter);
        assert_eq!((&item[PK], &item[TTL]), (&AttributeValue::S(line_pk(part_of(&gate))), &seconds(NOW)));
        assert!(start.as_str() < *key && *key < end.as_str() && line_gate(key) == Some(gate.clone()));
    }
    assert!(matches!(to_waiter(&Item::new()), Err(StoreError::Corrupt { .. })));
}

#[test]
fn the_stored_form_of_one_that_waits_stays_the_same() {
    let one = Waiter {
        branch: Branch { queue: QueueName::parse("mail").unwrap(), others: vec![id(1)], required: 0 },
        ..waiter(7, Priority::Low)
    };
    let item = of_waiter(&id(0xff), &one, NOW).unwrap();
    let text = |value: &str| AttributeValue::S(value.to_owned());
    let fields = r#"{"o":"00000000000000000000000000000007","i":"AQEBAQEBAQE","b":{"q":"mail","g":["AQEBAQEBAQEBAQEBAQEBAQ"]},"p":"l","n":[1999999999999,2],"w":1999999999999}"#;
    let key = "_____________________w#mail!AQEBAQEBAQEBAQEBAQEBAQ#20001999999999999AQEBAQEBAQE#2";
    let expected = [
        (PK, text(&line_pk(part_of(&id(0xff))))),
        (SK, text(key)),
        (own::WAITER, text(fields)),
        (TTL, seconds(NOW)),
    ];
    let expected: Item = expected.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    assert_eq!(item, expected);
}

#[test]
fn ten_holders_are_one_write_unit_and_to_wait_is_one_too() {
    let holders = (0..10).map(|number| holder(number, Hold::Taken { mark: u32::MAX })).collect();
    let full = Gate { holders, absent: vec![], looked_to: None, ..busy() };
    let bytes = item_bytes(&of_gate(&full).unwrap());
    assert!(bytes <= CONTROL_RECORD_BYTES, "{bytes} bytes");
    let longest = Waiter {
        owner: TaskId::parse("i".repeat(tickover_core::limits::ID_MAX)).unwrap().into(),
        branch: Branch {
            queue: QueueName::parse("q".repeat(tickover_core::limits::QUEUE_NAME_MAX)).unwrap(),
            others: vec![id(1), id(2)],
            required: u32::MAX,
        },
        position: Position { since: NOW, version: u64::MAX },
        ..waiter(1, Priority::Normal)
    };
    let item = of_waiter(&id(3), &longest, NOW).unwrap();
    let (bytes, key) = (item_bytes(&item), string(&item, SK).unwrap().len());
    assert!(bytes <= CONTROL_RECORD_BYTES && key <= 1024, "{bytes} bytes, of which {key} are the key");
}
