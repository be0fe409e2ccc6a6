use std::num::{NonZeroU16, NonZeroU32};

use tickover_core::due::{Due, DueKind};
use tickover_core::duration::Millis;
use tickover_core::flow::{Pace, Priority, Shards};
use tickover_core::gate::{Hold, Holder, Order, RateState};
use tickover_core::id::{Fingerprint, Incarnation, Nonce, TaskId};
use tickover_core::limits::CONTROL_RECORD_BYTES;

use super::*;
use crate::attribute::{DUE_AT, DUE_KIND, DUE_SHARD, SK};
use crate::item::tests::item_bytes;

const NOW: Timestamp = Timestamp::from_millis(1_999_999_999_999);

fn empty() -> Gate {
    let id = GateId::from(&Fingerprint::from_bytes([0xff; 16]));
    Gate { version: 1, ..Gate::new(id, "customer-7".to_owned(), Nonce::from_bytes([0xff; 8]), NOW) }
}

/// A task with a random id, as most have.
fn task(number: usize) -> TaskId {
    TaskId::parse(format!("{number:032}")).unwrap()
}

fn waiter(number: usize, priority: Priority) -> Waiter {
    let order = Order { priority, since: NOW };
    Waiter { owner: task(number).into(), incarnation: Incarnation::from_bytes([1; 8]), order }
}

fn busy() -> Gate {
    let holder = |number, hold| {
        let (task, incarnation) = (task(number), Incarnation::from_bytes([1; 8]));
        Holder { owner: task.into(), incarnation, until: NOW, hold }
    };
    let called = Hold::Called { order: Order { priority: Priority::Low, since: NOW } };
    Gate {
        limit: NonZeroU16::new(5),
        due: Some(Due { at: NOW, kind: DueKind::Backstop, shard: 3 }),
        holders: vec![holder(1, Hold::Taken { mark: u32::MAX }), holder(2, called)],
        waiters: vec![waiter(3, Priority::High), waiter(4, Priority::Normal)],
        ..empty()
    }
}

#[test]
fn an_item_is_read_back_as_it_was_written() {
    let pinned = Gate { pinned: NonZeroU16::new(1), overflow: true, ..busy() };
    let limit = NonZeroU32::new(997).unwrap();
    let pace = Some(Pace { limit, per: Millis::from_secs(1), burst: limit });
    let rate = Some(RateState { next_at: NOW, part: 7, of: 997 });
    let paced = Gate { pace, paced_at: Some(NOW), rate, ..empty() };
    let shards = Shards::new(20).unwrap();
    let sharded = Gate { shards, pace_shards: shards, pinned_shards: shards, ..busy() };
    for record in [empty(), busy(), pinned, paced, sharded] {
        assert_eq!(to_gate(of_gate(&record).unwrap()).unwrap(), record);
    }
}

#[test]
fn the_stored_form_stays_the_same() {
    let item = of_gate(&busy()).unwrap();
    let text = |value: &str| AttributeValue::S(value.to_owned());
    let number = |value: &str| AttributeValue::N(value.to_owned());
    let at = || number("1999999999999");
    let holder = AttributeValue::L(vec![
        text("00000000000000000000000000000001"),
        text("AQEBAQEBAQE"),
        at(),
        number("4294967295"),
        AttributeValue::Null(true),
    ]);
    let called = AttributeValue::L(vec![
        text("00000000000000000000000000000002"),
        text("AQEBAQEBAQE"),
        at(),
        number("0"),
        AttributeValue::L(vec![text("l"), at()]),
    ]);
    let waiting = |task: &str, priority: &str| {
        AttributeValue::L(vec![text(task), text("AQEBAQEBAQE"), text(priority), at()])
    };
    let waiters = [("00000000000000000000000000000003", "h"), ("00000000000000000000000000000004", "n")];
    let expected = [
        ("pk", text("gate#_____________________w")),
        ("sk", text("gate")),
        ("v", number("1")),
        ("ver", number("1")),
        ("non", text("__________8")),
        ("k", text("customer-7")),
        ("l", number("5")),
        ("h", AttributeValue::L(vec![holder, called])),
        ("w", AttributeValue::L(waiters.map(|(task, priority)| waiting(task, priority)).into())),
        ("x", number("2000003599999")),
        ("due_shard", text("3")),
        ("due_at", at()),
        ("due_kind", text("b")),
    ];
    let expected: Item = expected.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    assert_eq!(item, expected);
}

#[test]
fn a_gate_that_nobody_needs_expires_and_one_at_which_somebody_waits_does_not() {
    assert_eq!(of_gate(&empty()).unwrap()[TTL], seconds(empty().expires_at));
    let held = Gate { waiters: vec![], ..busy() };
    assert!(of_gate(&held).unwrap().contains_key(TTL));
    let pinned = Gate { pinned: NonZeroU16::new(1), ..empty() };
    for record in [busy(), pinned, Gate { overflow: true, ..held }] {
        assert!(!of_gate(&record).unwrap().contains_key(TTL), "{record:?}");
    }
    let item = of_gate(&empty()).unwrap();
    assert!(![DUE_AT, DUE_KIND, DUE_SHARD].iter().any(|name| item.contains_key(*name)));
}

#[test]
fn another_format_and_another_record_are_refused() {
    let mut newer = of_gate(&empty()).unwrap();
    newer.insert("v".to_owned(), AttributeValue::N("2".to_owned()));
    let Err(StoreError::Corrupt { reason }) = to_gate(newer) else { panic!("it was read") };
    assert_eq!(reason, "gate _____________________w is stored in format 2, where this build reads 1");
    let mut other = of_gate(&empty()).unwrap();
    other.insert(PK.to_owned(), AttributeValue::S("cron#o".to_owned()));
    assert!(matches!(to_gate(other), Err(StoreError::Corrupt { .. })));
}

#[test]
fn those_who_wait_lie_behind_their_gate_by_priority_and_time() {
    let gate = empty().id;
    let later = Waiter {
        order: Order { priority: Priority::High, since: Timestamp::from_millis(7) },
        ..waiter(1, Priority::High)
    };
    let order = [later, waiter(2, Priority::High), waiter(1, Priority::Normal), waiter(0, Priority::Low)];
    let items: Vec<Item> = order.iter().map(|waiter| of_waiter(&gate, waiter, NOW).unwrap()).collect();
    assert!(items.is_sorted_by_key(|item| string(item, SK).unwrap()));
    assert!(string(&items[0], SK).unwrap() > Key::gate(&gate).sk.as_str());
    for (item, waiter) in items.iter().zip(order) {
        assert_eq!(to_waiter(item).unwrap(), waiter);
        assert_eq!((&item[PK], &item[TTL]), (&AttributeValue::S(Key::gate(&gate).pk), &seconds(NOW)));
    }
    assert!(matches!(to_waiter(&Item::new()), Err(StoreError::Corrupt { .. })));
}

#[test]
fn five_holders_and_five_who_wait_are_one_write_unit() {
    let holders =
        (0..5).map(|number| Holder { owner: task(number).into(), ..busy().holders[0].clone() }).collect();
    let waiters = (0..5).map(|number| waiter(number, Priority::Normal)).collect();
    let full = Gate { holders, waiters, overflow: true, ..busy() };
    let bytes = item_bytes(&of_gate(&full).unwrap());
    assert!(bytes <= CONTROL_RECORD_BYTES, "{bytes} bytes");
}
