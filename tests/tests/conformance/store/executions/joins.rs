//! A join counts each end of a fan-out once.

use futures::future::try_join_all;
use tickover_core::execution::journal::JOIN_MAX;
use tickover_core::execution::{Parent, Slot};
use tickover_core::id::Nonce;

use super::fixture::{parent_of, slot};
use crate::store::fixture::{World, later};
use tickover_service::ports::StoreError;

pub(crate) async fn a_place_is_counted_once_however_often_it_is_marked(
    world: World,
) -> Result<(), StoreError> {
    let parent = parent_of("fan-out", world.incarnation());
    for (place, count) in [(5, 1), (0, 2), (5, 2), (99, 3), (0, 3), (5, 3)] {
        assert_eq!(world.store.join(&parent, slot(place), later(60)).await?, count);
    }
    Ok(())
}

pub(crate) async fn joins_are_different_if_any_part_of_their_key_is(world: World) -> Result<(), StoreError> {
    let parent = parent_of("fan-out", world.incarnation());
    let others = [
        (parent.clone(), slot(0)),
        (parent.clone(), Slot { item: 1, ..slot(0) }),
        (parent.clone(), Slot { label: Nonce::from_bytes([5; 8]), ..slot(0) }),
        (Parent { run: 2, ..parent.clone() }, slot(0)),
        (parent_of("fan-out", world.incarnation()), slot(0)),
        (parent_of("other", parent.incarnation), slot(0)),
    ];
    for (parent, slot) in &others {
        assert_eq!(world.store.join(parent, *slot, later(60)).await?, 1);
    }
    // It makes no difference if the parent itself has a place in a join.
    let placed = Parent { slot: Some(slot(9)), ..parent };
    assert_eq!(world.store.join(&placed, slot(1), later(60)).await?, 2);
    Ok(())
}

pub(crate) async fn of_places_marked_at_once_exactly_one_is_the_last(world: World) -> Result<(), StoreError> {
    let parent = parent_of("fan-out", world.incarnation());
    let marks = (0..JOIN_MAX).map(|place| world.store.join(&parent, slot(place), later(60)));
    let mut counts = try_join_all(marks).await?;
    counts.sort_unstable();
    assert_eq!(counts, (1..=JOIN_MAX).collect::<Vec<_>>());
    Ok(())
}
