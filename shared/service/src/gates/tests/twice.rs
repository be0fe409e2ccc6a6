//! A message that is delivered twice: two claims of one task are at its keys at the same time, in each order.

use std::pin::pin;

use tickover_core::command::Isolation;
use tickover_core::id::TaskId;
use tickover_core::task::hint::Hint;

use super::{Scene, limit, needing, on, request};
use crate::claim::{Delivered, Hinted};

/// The orders of the steps of two claims: a bit for each step says which of the two goes on.
const ORDERS: u32 = 1 << 9;

/// The same message is received by two workers at a time. Whoever has the lease completes the task. Returns how many did.
async fn deliver_twice(scene: &Scene, id: &TaskId, order: u32) -> usize {
    let body = Hint::of(&scene.found(id).await).body().unwrap();
    scene.interleave();
    let works = async || {
        let claimed = scene.service.claim_hinted(Delivered::first(&body), &request(), Isolation::Alone).await;
        let Ok(Hinted::Taken(claimed)) = claimed else { return 0 };
        scene.completes(&claimed).await;
        1
    };
    let (mut one, mut other) = (pin!(works()), pin!(works()));
    let (mut by_one, mut by_other) = (None, None);
    for step in 0.. {
        let first = by_other.is_some() || order.checked_shr(step).unwrap_or(0) & 1 == 0;
        if first && by_one.is_none() {
            if let std::task::Poll::Ready(count) = futures::poll!(one.as_mut()) {
                by_one = Some(count);
            }
        } else if by_other.is_none() {
            if let std::task::Poll::Ready(count) = futures::poll!(other.as_mut()) {
                by_other = Some(count);
            }
        } else {
            break;
        }
    }
    by_one.unwrap() + by_other.unwrap()
}

#[tokio::test]
async fn two_claims_of_one_message_leave_no_place_behind_in_whatever_order_they_come() {
    for order in 0..ORDERS {
        let scene = Scene::new();
        let id = scene.add(needing(&[limit("customer", 1), limit("smtp", 2)])).await;
        assert_eq!(Box::pin(deliver_twice(&scene, &id, order)).await, 1, "{order:b}");
        for key in ["customer", "smtp"] {
            assert_eq!(scene.gate_of(key).await.holders, [], "{key} {order:b}");
        }
    }
}

#[tokio::test]
async fn two_claims_of_one_message_that_find_no_place_at_one_key_leave_none_behind_at_the_other() {
    for order in 0..ORDERS {
        // Whichever of the two keys comes first.
        for other in ["a", "b", "c"] {
            let scene = Scene::new();
            let both = scene.add(on("both", needing(&[limit("customer", 1), limit(other, 2)]))).await;
            scene.add(needing(&[limit("customer", 1)])).await;
            let running = scene.claims().await.unwrap();
            assert_eq!(Box::pin(deliver_twice(&scene, &both, order)).await, 0, "{order:b}");
            assert_eq!(scene.gate_of(other).await.holders, [], "{other} {order:b}");
            scene.completes(&running).await;
            let next = scene.claim_from("both").await.unwrap();
            assert_eq!(next.task.id, both, "{other} {order:b}");
            scene.completes(&next).await;
            assert_eq!(scene.gate_of("customer").await.holders, [], "{other} {order:b}");
        }
    }
}
