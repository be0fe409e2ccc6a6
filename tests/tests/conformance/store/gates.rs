//! Gates: a write follows exactly the record decided on, they are due while somebody waits, and who waits is found in
//! order.

use std::num::{NonZeroU16, NonZeroU32};

use tickover_core::decision::Write;
use tickover_core::due::{Due, DueKind};
use tickover_core::duration::Millis;
use tickover_core::flow::{Pace, Priority, Shards};
use tickover_core::gate::{Gate, Hold, Holder, Order, RateState, Waiter};
use tickover_core::id::{Fingerprint, GateId, Incarnation, Nonce, RecordId, TaskId};
use tickover_core::time::Timestamp;

use super::fixture::{NOW, SHARD, World, conflicting, later, parsed};
use tickover_service::ports::{DueRange, StoreError};

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

fn put(record: &Gate, replaces: Option<Nonce>) -> Write {
    Write::PutGate { record: Box::new(record.clone()), replaces }
}

fn waiter(task: &str, priority: Priority, since: Timestamp) -> Waiter {
    let incarnation = Incarnation::from_bytes([1; 8]);
    Waiter { owner: parsed(TaskId::parse(task)).into(), incarnation, order: Order { priority, since } }
}

fn busy(world: &World, gate: &Gate) -> Gate {
    let holder = |task: &str, hold| {
        let (task, incarnation) = (parsed(TaskId::parse(task)), Incarnation::from_bytes([2; 8]));
        Holder { owner: task.into(), incarnation, until: later(35), hold }
    };
    let called = Hold::Called { order: Order { priority: Priority::High, since: NOW } };
    let changed = Gate {
        limit: NonZeroU16::new(2),
        shards: Shards::new(2).unwrap_or_default(),
        pinned: NonZeroU16::new(1_000),
        pinned_shards: Shards::new(3).unwrap_or_default(),
        due: Some(Due { at: later(30), kind: DueKind::Backstop, shard: SHARD }),
        holders: vec![holder("a", Hold::Taken { mark: 7 }), holder("b", called)],
        waiters: vec![waiter("c", Priority::Low, later(1))],
        overflow: true,
        pace: NonZeroU32::new(997).map(|limit| Pace { limit, per: Millis::from_secs(1), burst: limit }),
        pace_shards: Shards::new(20).unwrap_or_default(),
        paced_at: Some(NOW),
        rate: Some(RateState { next_at: later(3), part: 7, of: 997 }),
        ..gate.clone()
    };
    next(world, changed)
}

pub(super) async fn every_change_of_a_gate_is_read_as_it_was_written(world: World) -> Result<(), StoreError> {
    let one = first(&world, 1);
    assert_eq!(world.store.gate(&one.id).await?, None);
    let two = busy(&world, &one);
    let three = next(&world, Gate { due: None, holders: vec![], ..two.clone() });
    let mut before = None;
    for record in [one, two, three] {
        world.store.commit(&[put(&record, before)]).await?;
        before = Some(record.nonce);
        assert_eq!(world.store.gate(&record.id).await?, Some(record));
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
    world.store.commit(&[put(&two, Some(one.nonce))]).await?;
    world.store.commit(&[put(&two, Some(one.nonce))]).await?;
    // The same version, but of a gate that was deleted and made anew.
    let other = next(&world, Gate { holders: vec![], ..one.clone() });
    for seen in [None, Some(one.nonce), Some(rival.nonce)] {
        assert_eq!(conflicting(world.store.commit(&[put(&other, seen)]).await), None);
    }
    assert_eq!(world.store.gate(&two.id).await?, Some(two));
    Ok(())
}

pub(super) async fn a_gate_is_due_while_its_record_says_so(world: World) -> Result<(), StoreError> {
    let one = first(&world, 1);
    let two = busy(&world, &one);
    let three = next(&world, Gate { due: None, ..two.clone() });
    let range = DueRange::until(SHARD, later(86_400));
    let mut before = None;
    for record in [one, two, three] {
        world.store.commit(&[put(&record, before)]).await?;
        before = Some(record.nonce);
        let entries = world.store.due(range, 10, None).await?.items;
        let found: Vec<_> =
            entries.into_iter().map(|entry| (entry.record, entry.due_at, entry.kind)).collect();
        let due = record.due.map(|due| (RecordId::Gate(record.id.clone()), due.at, due.kind));
        assert_eq!(found, due.into_iter().collect::<Vec<_>>());
    }
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
    let item = |gate: &GateId, waiter: &Waiter| Write::PutWaiter {
        gate: gate.clone(),
        waiter: waiter.clone(),
        expires_at: later(86_400),
    };
    for index in [3, 0, 4, 2, 1, 3] {
        world.store.commit(&[item(&gate, &order[index])]).await?;
    }
    world.store.commit(&[item(&other, &order[2])]).await?;
    for limit in [1, 3, 5, 10] {
        assert_eq!(world.store.waiters(&gate, limit).await?, order[..limit.min(5)]);
    }
    assert_eq!(world.store.waiters(&other, 10).await?, [order[2].clone()]);
    assert_eq!(world.store.gate(&gate).await?, None);
    // It leaves with the write of its gate; leaving twice is no conflict.
    let leaves = Write::DeleteWaiter { gate: gate.clone(), waiter: order[0].clone() };
    let one = first(&world, 1);
    world.store.commit(&[leaves.clone(), put(&one, None)]).await?;
    world.store.commit(&[leaves]).await?;
    assert_eq!(world.store.waiters(&gate, 10).await?, order[1..]);
    Ok(())
}

pub(super) async fn who_waits_is_written_even_if_the_gate_has_changed_and_leaves_only_with_it(
    world: World,
) -> Result<(), StoreError> {
    let one = first(&world, 1);
    world.store.commit(&[put(&one, None)]).await?;
    let (early, late) = (waiter("a", Priority::Normal, NOW), waiter("b", Priority::Normal, later(1)));
    let enters = |waiter: &Waiter| Write::PutWaiter {
        gate: one.id.clone(),
        waiter: waiter.clone(),
        expires_at: later(86_400),
    };
    world.store.commit(&[enters(&early)]).await?;
    let stale = put(&first(&world, 1), None);
    let leaves = Write::DeleteWaiter { gate: one.id.clone(), waiter: early.clone() };
    assert_eq!(conflicting(world.store.commit(&[stale, leaves, enters(&late)]).await), None);
    assert_eq!(world.store.waiters(&one.id, 10).await?, [early, late]);
    Ok(())
}
