//! Positions in the line of a key, the sort keys of items, and who writes and deletes them.

use super::{at, id, inc, task};
use crate::decision::{Effect, Write};
use crate::duration::Millis;
use crate::flow::{Gated, Priority};
use crate::gate::line::{Move, PARTS, WAITER_KEPT, enter, home, looked_at, part_of};
use crate::gate::{Branch, GateId, Order, Position, Waiter, Waiting};
use crate::id::{BlobId, Fingerprint, QueueName};
use crate::payload::BlobRef;

use std::num::NonZeroU16;

fn gated(number: u8, limit: u16) -> Gated {
    Gated {
        key: Fingerprint::from_bytes([number; 16]),
        limit: NonZeroU16::new(limit).unwrap(),
        text: format!("key-{number}"),
    }
}

fn branch(queue: &str, others: &[u8]) -> Branch {
    Branch {
        queue: QueueName::parse(queue).unwrap(),
        others: others.iter().map(|one| id(*one)).collect(),
        required: 0,
    }
}

fn waiter(name: &str, priority: Priority, seconds: u64) -> Waiter {
    Waiter {
        owner: task(name),
        incarnation: inc(name),
        branch: branch("jobs", &[]),
        priority,
        position: Position { since: at(seconds), version: 2 },
        written_at: at(seconds),
        home: None,
    }
}

fn waiting<'a>(queue: &'a QueueName, gates: &'a [Gated], position: Option<Position>) -> Waiting<'a> {
    let (owner, priority) = (task("a"), Priority::Normal);
    let created_at = at(0);
    Waiting { owner, incarnation: inc("a"), queue, priority, requires: &[], gates, created_at, position }
}

#[test]
fn one_that_needs_places_at_several_gates_waits_at_that_with_the_lowest_limit() {
    assert_eq!(home(&[]), None);
    let gates = [gated(1, 10), gated(2, 3), gated(3, 3)];
    assert_eq!(home(&gates).map(|one| one.key), Some(gates[1].key), "of two, that with the lower digest");
    let reversed: Vec<Gated> = gates.iter().rev().cloned().collect();
    assert_eq!(home(&reversed), home(&gates));
}

#[test]
fn the_keys_of_a_branch_are_in_the_order_of_its_line() {
    let line = [
        waiter("z", Priority::High, 9),
        waiter("b", Priority::Normal, 0),
        waiter("c", Priority::Normal, 0),
        waiter("a", Priority::Normal, 1),
        waiter("a", Priority::Normal, 1_000_000),
        waiter("y", Priority::Low, 0),
    ];
    let keys: Vec<String> = line.iter().map(Waiter::sort_key).collect();
    assert!(keys.is_sorted(), "{keys:?}");
    let order: Vec<Order> = line.iter().map(Waiter::order).collect();
    assert!(order.is_sorted(), "{order:?}");
    // Each stay in the line has a key of its own, and to write an item again has none.
    let again = Waiter { position: Position { version: 3, ..line[0].position }, ..line[0].clone() };
    assert_ne!(again.sort_key(), line[0].sort_key());
    assert_eq!(Waiter { written_at: at(77), ..line[0].clone() }.sort_key(), line[0].sort_key());
    // A task that is scheduled anew with the same id has another item.
    assert_ne!(Waiter { incarnation: inc("y"), ..line[0].clone() }.sort_key(), line[0].sort_key());
}

#[test]
fn the_items_of_a_branch_lie_together_and_so_do_those_of_each_priority() {
    let queues = ["a", "a-b", "a.b", "a_b", "a:b", "aa", "A", "b", "0"];
    let branches: Vec<Branch> = queues
        .iter()
        .flat_map(|queue| [branch(queue, &[]), branch(queue, &[1]), branch(queue, &[1, 2])])
        .collect();
    let priorities = [Priority::High, Priority::Normal, Priority::Low];
    let mut all = vec![];
    for branch in &branches {
        for priority in priorities {
            for name in ["0", "a", "zz"] {
                let one = Waiter { branch: branch.clone(), ..waiter(name, priority, 5) };
                all.push((one.sort_key(), branch.clone(), priority));
            }
        }
    }
    all.sort();
    for branch in &branches {
        let of_branch: Vec<usize> = (0..all.len()).filter(|at| all[*at].1 == *branch).collect();
        let (first, last) = (of_branch[0], of_branch[of_branch.len() - 1]);
        assert_eq!(last - first + 1, of_branch.len(), "{branch} doesn't lie together");
        // From its end on, the next branch is found.
        let next = all.iter().position(|(key, ..)| *key > branch.end()).unwrap_or(all.len());
        assert_eq!(next, last + 1);
        for priority in priorities {
            let behind = all.iter().position(|(key, ..)| *key > branch.end_of(priority)).unwrap_or(all.len());
            let last = of_branch.iter().filter(|at| all[**at].2 <= priority).max().unwrap();
            assert_eq!(behind, last + 1, "{branch} {priority:?}");
        }
    }
}

#[test]
fn branches_have_the_marks_of_their_queues_whatever_other_gates_they_need() {
    let one = branch("jobs", &[1]);
    for other in [branch("jobs", &[]), branch("jobs", &[2]), branch("jobs", &[1, 2])] {
        assert_eq!(one.mark(), other.mark(), "{other}");
    }
    assert_ne!(one.mark(), branch("mail", &[1]).mark());
}

#[test]
fn the_lines_of_all_gates_are_divided_among_all_parts() {
    let mut seen = vec![false; usize::from(PARTS)];
    for number in 0..=u8::MAX {
        seen[usize::from(part_of(&id(number)))] = true;
        assert_eq!(part_of(&id(number)), part_of(&id(number)));
    }
    assert!(seen.iter().all(|part| *part), "{seen:?}");
}

#[test]
fn the_item_of_one_that_waits_follows_from_its_record() {
    let (queue, gates) = (QueueName::parse("mail").unwrap(), [gated(3, 5), gated(1, 9), gated(2, 4)]);
    let position = Position { since: at(3), version: 7 };
    assert_eq!(waiting(&queue, &gates, None).item(at(9)), None);
    assert_eq!(waiting(&queue, &[], Some(position)).item(at(9)), None);
    let (gate, item) = waiting(&queue, &gates, Some(position)).item(at(9)).unwrap();
    assert_eq!(gate, id(2));
    let others = vec![id(3), id(1)];
    let expected = Waiter {
        owner: task("a"),
        incarnation: inc("a"),
        branch: Branch { queue: queue.clone(), others, required: 0 },
        priority: Priority::Normal,
        position,
        written_at: at(9),
        home: None,
    };
    assert_eq!(item, expected);
    for position in [Some(position), None] {
        assert_eq!(waiting(&queue, &gates, position).mark(), expected.branch.mark());
    }
}

#[test]
fn an_item_is_written_before_the_record_says_so_and_deleted_after_it_says_otherwise() {
    let (queue, gates) = (QueueName::parse("mail").unwrap(), [gated(1, 1)]);
    let position = Position { since: at(3), version: 7 };
    let (outside, inside) = (waiting(&queue, &gates, None), waiting(&queue, &gates, Some(position)));
    let (gate, item) = inside.item(at(9)).unwrap();
    let other =
        || Write::extend_blob(&BlobRef { id: BlobId::from_bytes([5; 16]), bytes: 1, expires_at: at(1) });
    let writes = |moved: Move| {
        let (mut writes, mut effects) = (vec![other()], vec![]);
        moved.add_to(&mut writes, &mut effects);
        (writes, effects)
    };
    let put = enter(gate.clone(), item.clone());
    let limit = inside.asked_limit(&gate).unwrap();
    let told = Effect::CameToLine { gate: gate.clone(), waiter: Box::new(item.clone()), limit };
    let came = || (vec![put.clone(), other()], vec![told.clone()]);
    assert_eq!(writes(Move::between(Some(&outside), &inside, at(9))), came());
    assert_eq!(writes(Move::between(None, &inside, at(9))), came());
    assert_eq!(writes(Move::again(&inside, at(9))), came());
    let left = Write::DeleteWaiter { gate, waiter: item };
    assert_eq!(writes(Move::between(Some(&inside), &outside, at(9))), (vec![other(), left], vec![]));
    for stays in [Move::between(Some(&inside), &inside, at(9)), Move::between(None, &outside, at(9))] {
        assert_eq!(writes(stays), (vec![other()], vec![]));
    }
    assert_eq!(writes(Move::again(&outside, at(9))), (vec![other()], vec![]));
}

#[test]
fn an_item_is_kept_for_sixty_days_and_the_tick_looks_at_the_record_every_few_days() {
    let item = waiter("a", Priority::Normal, 0);
    let Write::PutWaiter { expires_at, .. } = enter(GateId::clone(&id(1)), item.clone()) else { panic!() };
    assert_eq!(expires_at, at(0).plus(WAITER_KEPT));
    let mut looks = vec![at(0)];
    for _ in 0..10 {
        let last = *looks.last().unwrap();
        looks.push(looked_at(item.position, last));
    }
    assert_eq!(looks[1], at(30 * 3_600));
    assert_eq!(looks[2], looks[1].plus(Millis::from_days(5)));
    assert!(looks.windows(5).all(|five| five[4] < five[0].plus(WAITER_KEPT)), "{looks:?}");
}
