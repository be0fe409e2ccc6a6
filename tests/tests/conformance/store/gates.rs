//! Gates: a write follows exactly the record decided on, who waits is found in order, and each line is found.

use std::num::{NonZeroU16, NonZeroU32};

use tickover_core::decision::{Condition, Write};
use tickover_core::duration::Millis;
use tickover_core::flow::{Pace, Priority};
use tickover_core::gate::line::{PARTS, STAND_INS, part_of};
use tickover_core::gate::{Absent, Branch, Gate, Hold, Holder, Position, RateState, Waiter};
use tickover_core::id::{Fingerprint, GateId, Incarnation, QueueName, TaskId};
use tickover_core::time::Timestamp;

use super::fixture::{NOW, World, conflicting, later, parsed};
use tickover_service::ports::StoreError;

fn gate_id(number: u8) -> GateId {
    GateId::from(&Fingerprint::from_bytes([number; 16]))
}

fn first(world: &World, number: u8) -> Gate {
    Gate { version: 1, ..Gate::new(gate_id(number), "customer-7/ä".to_owned(), world.nonce(), NOW) }
}

/// The next version of a record.
fn next(world: &World, changed: Gate) -> Gate {
    Gate { version: changed.version + 1, nonce: world.nonce(), ..changed }
}

fn put(record: &Gate, before: Option<&Gate>) -> Write {
    let before = before.cloned().map(Into::into);
    Write::Put { before, after: record.clone().into(), condition: Condition::Same }
}

/// One that waits without other gates. Its name makes its incarnation.
fn waiter(task: &str, priority: Priority, since: Timestamp) -> Waiter {
    let mut bytes = [1; 8];
    bytes.iter_mut().zip(task.bytes()).for_each(|(byte, of_name)| *byte = of_name);
    Waiter {
        owner: parsed(TaskId::parse(task)).into(),
        incarnation: Incarnation::from_bytes(bytes),
        branch: Branch { queue: parsed(QueueName::parse("mail")), others: vec![], required: 0 },
        priority,
        position: Position { since, version: 2 },
        written_at: since,
        home: None,
    }
}

fn on(queue: &str, others: &[u8], waiter: Waiter) -> Waiter {
    let branch = Branch {
        queue: parsed(QueueName::parse(queue)),
        others: others.iter().map(|number| gate_id(*number)).collect(),
        required: 0,
    };
    Waiter { branch, ..waiter }
}

fn enters(gate: &GateId, waiter: &Waiter) -> Write {
    Write::PutWaiter { gate: gate.clone(), waiter: waiter.clone(), expires_at: later(86_400) }
}

fn busy(world: &World, gate: &Gate) -> Gate {
    let holder = |task: &str, hold| {
        let (task, incarnation) = (parsed(TaskId::parse(task)), Incarnation::from_bytes([2; 8]));
        Holder { owner: task.into(), incarnation, since: later(5), until: later(35), hold }
    };
    let changed = Gate {
        limit: NonZeroU16::new(2),
        pinned: NonZeroU16::new(1_000),
        holders: vec![holder("a", Hold::Taken { mark: 7 }), holder("b", Hold::Called { branch: u32::MAX })],
        absent: vec![Absent { branch: 9, until: later(60), times: 3 }],
        looked_to: Some("mail#~".to_owned()),
        pace: NonZeroU32::new(997).map(|limit| Pace { limit, per: Millis::from_secs(1), burst: limit }),
        paced_at: Some(NOW),
        rate: Some(RateState {
            epoch: NOW,
            base: 5,
            base_at: later(3),
            part: 7,
            between: 2,
            next: 1_000,
            free: vec![(7, 9)],
            forgotten: Some((900, 2)),
            skipped: vec![(20, 21)],
            spare: vec![later(4)],
        }),
        ..gate.clone()
    };
    next(world, changed)
}

pub(super) async fn every_change_of_a_gate_is_read_as_it_was_written(world: World) -> Result<(), StoreError> {
    let one = first(&world, 1);
    assert_eq!(world.store.gate(&one.id).await?, None);
    let two = busy(&world, &one);
    let three = next(&world, Gate { absent: vec![], holders: vec![], ..two.clone() });
    for (record, before) in [(&one, None), (&two, Some(&one)), (&three, Some(&two))] {
        world.store.commit(&[put(record, before)]).await?;
        assert_eq!(world.store.gate(&record.id).await?.as_ref(), Some(record));
    }
    assert_eq!(world.store.gate(&gate_id(2)).await?, None);
    Ok(())
}

pub(super) async fn a_gate_is_only_written_over_the_record_that_was_decided_on(
    world: World,
) -> Result<(), StoreError> {
    let one = first(&world, 1);
    let rival = first(&world, 1);
    world.store.commit(&[put(&one, None)]).await?;
    // The same write again: its answer was lost.
    world.store.commit(&[put(&one, None)]).await?;
    assert_eq!(conflicting(world.store.commit(&[put(&rival, None)]).await), None);
    let two = busy(&world, &one);
    world.store.commit(&[put(&two, Some(&one))]).await?;
    world.store.commit(&[put(&two, Some(&one))]).await?;
    // The same version, but of a gate that was deleted and made anew.
    let other = next(&world, Gate { holders: vec![], ..one.clone() });
    for seen in [None, Some(&one), Some(&rival)] {
        assert_eq!(conflicting(world.store.commit(&[put(&other, seen)]).await), None);
    }
    assert_eq!(world.store.gate(&two.id).await?, Some(two));
    Ok(())
}

pub(super) async fn who_waits_at_a_gate_is_found_in_order(world: World) -> Result<(), StoreError> {
    let (gate, other) = (gate_id(1), gate_id(2));
    let order = [
        waiter("z", Priority::High, later(9)),
        waiter("b", Priority::Normal, NOW),
        waiter("c", Priority::Normal, NOW),
        waiter("a", Priority::Normal, later(1)),
        waiter("y", Priority::Low, NOW),
    ];
    for index in [3, 0, 4, 2, 1, 3] {
        world.store.commit(&[enters(&gate, &order[index])]).await?;
    }
    world.store.commit(&[enters(&other, &order[2])]).await?;
    for limit in [1, 3, 5, 10] {
        assert_eq!(world.store.waiters(&gate, "", limit).await?, order[..limit.min(5)]);
    }
    assert_eq!(world.store.waiters(&other, "", 10).await?, [order[2].clone()]);
    assert_eq!(world.store.gate(&gate).await?, None);
    // It leaves with another write, or alone; leaving twice is no conflict.
    let leaves = Write::DeleteWaiter { gate: gate.clone(), waiter: order[0].clone() };
    let one = first(&world, 1);
    world.store.commit(&[leaves.clone(), put(&one, None)]).await?;
    world.store.commit(&[leaves]).await?;
    assert_eq!(world.store.waiters(&gate, "", 10).await?, order[1..]);
    // It leaves by its key, whenever its item was written.
    let later = Waiter { written_at: later(77), ..order[1].clone() };
    world.store.commit(&[Write::DeleteWaiter { gate: gate.clone(), waiter: later }]).await?;
    assert_eq!(world.store.waiters(&gate, "", 10).await?, order[2..]);
    Ok(())
}

pub(super) async fn a_line_is_read_on_from_any_key_and_past_a_branch(world: World) -> Result<(), StoreError> {
    let gate = gate_id(1);
    let at = |seconds| later(seconds);
    let order = [
        on("a", &[], waiter("1", Priority::High, at(3))),
        on("a", &[], waiter("2", Priority::Normal, at(1))),
        on("a", &[], waiter("3", Priority::Normal, at(2))),
        on("a", &[2], waiter("4", Priority::Normal, NOW)),
        on("a", &[2, 3], waiter("5", Priority::Normal, NOW)),
        on("a-b", &[], waiter("6", Priority::Low, NOW)),
        on("a.b", &[], waiter("7", Priority::High, NOW)),
        on("ab", &[], waiter("8", Priority::High, NOW)),
        on("a", &[1], waiter("9", Priority::High, at(5))).stand_in(gate_id(9), NOW),
        on("ab", &[1], waiter("10", Priority::Normal, NOW)).stand_in(gate_id(8), NOW),
    ];
    let mut keys: Vec<(String, &Waiter)> = order.iter().map(|one| (one.sort_key(), one)).collect();
    keys.sort_by(|one, other| one.0.cmp(&other.0));
    let sorted: Vec<Waiter> = keys.iter().map(|(_, one)| (*one).clone()).collect();
    for one in order.iter().rev() {
        world.store.commit(&[enters(&gate, one)]).await?;
    }
    // The lines before and after it in the same store are others.
    for number in [0, 2, 3] {
        world.store.commit(&[enters(&gate_id(number), &order[0])]).await?;
    }
    assert_eq!(world.store.waiters(&gate, "", 10).await?, sorted);
    for (nth, (key, one)) in keys.iter().enumerate() {
        for limit in [1, 2, 10] {
            let expected: Vec<Waiter> = sorted.iter().skip(nth + 1).take(limit).cloned().collect();
            assert_eq!(world.store.waiters(&gate, key, limit).await?, expected, "from {key}");
        }
        if one.home.is_some() {
            continue;
        }
        let others = sorted.iter().skip(nth).filter(|other| other.branch != one.branch).cloned();
        let expected: Vec<Waiter> = others.collect();
        let found = world.store.waiters(&gate, &one.branch.end(), 10).await?;
        assert_eq!(found, expected, "past {}", one.branch);
    }
    let branch = &order[0].branch;
    let found = world.store.waiters(&gate, &branch.end_of(Priority::High), 2).await?;
    assert_eq!(found, order[1..3]);
    assert_eq!(world.store.waiters(&gate, &branch.start(), 1).await?, order[..1]);
    // Behind all branches stand those of other lines, in the order in which they wait.
    assert_eq!(world.store.waiters(&gate, STAND_INS, 10).await?, order[8..]);
    assert_eq!(world.store.waiters(&gate, &order[9].key_of_stay(), 1).await?, order[9..]);
    let leaves = Write::DeleteWaiter { gate: gate.clone(), waiter: order[8].clone() };
    world.store.commit(&[leaves]).await?;
    assert_eq!(world.store.waiters(&gate, STAND_INS, 10).await?, order[9..]);
    Ok(())
}

pub(super) async fn each_gate_that_has_a_line_is_found_once(world: World) -> Result<(), StoreError> {
    let one = |task| waiter(task, Priority::Normal, NOW);
    let mut expected: Vec<GateId> = (0..40).map(|number| gate_id(6 * number)).collect();
    for gate in &expected {
        world.store.commit(&[enters(gate, &one("a")), enters(gate, &one("b"))]).await?;
    }
    // A gate without a line isn't found, and neither is one whose line has become empty.
    world.store.commit(&[put(&first(&world, 7), None)]).await?;
    let empty = expected.remove(20);
    for task in ["a", "b"] {
        let leaves = Write::DeleteWaiter { gate: empty.clone(), waiter: one(task) };
        world.store.commit(&[leaves]).await?;
    }
    let (mut found, mut parts) = (vec![], vec![]);
    for part in 0..PARTS {
        let mut after: Option<GateId> = None;
        while let Some(gate) = world.store.next_line(part, after.as_ref()).await? {
            assert!(after.is_none_or(|after| after < gate), "not in order");
            parts.push((part, part_of(&gate)));
            found.push(gate.clone());
            after = Some(gate);
            assert!(found.len() <= expected.len(), "it doesn't end");
        }
    }
    // A store that isn't divided has all lines in its first part.
    let is_divided = parts.iter().all(|(part, of)| part == of);
    assert!(is_divided || parts.iter().all(|(part, _)| *part == 0), "{parts:?}");
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    // Also one after a gate that has no line any more.
    let part = if is_divided { part_of(&empty) } else { 0 };
    let is_next = |gate: &&GateId| **gate > empty && (!is_divided || part_of(gate) == part);
    let next = expected.iter().find(is_next).cloned();
    assert_eq!(world.store.next_line(part, Some(&empty)).await?, next);
    Ok(())
}

pub(super) async fn who_waits_is_written_even_if_the_gate_has_changed_and_leaves_only_with_it(
    world: World,
) -> Result<(), StoreError> {
    let one = first(&world, 1);
    world.store.commit(&[put(&one, None)]).await?;
    let (early, late) = (waiter("a", Priority::Normal, NOW), waiter("b", Priority::Normal, later(1)));
    world.store.commit(&[enters(&one.id, &early)]).await?;
    let stale = put(&first(&world, 1), None);
    let leaves = Write::DeleteWaiter { gate: one.id.clone(), waiter: early.clone() };
    assert_eq!(conflicting(world.store.commit(&[stale, leaves, enters(&one.id, &late)]).await), None);
    assert_eq!(world.store.waiters(&one.id, "", 10).await?, [early, late]);
    Ok(())
}
