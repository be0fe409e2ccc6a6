//! The sealed segments of journals.

use tickover_core::decision::{Expiring, Write};
use tickover_core::execution::journal::{Entry, Happened, SEGMENT_BYTES, Segment, SegmentKey};
use tickover_core::execution::{Execution, fixture};
use tickover_core::id::Nonce;
use tickover_core::payload::Payload;

use super::fixture::{execution_id, step};
use crate::store::fixture::{NOW, World, json, later};
use tickover_service::ports::StoreError;

fn key(world: &World, of: &Execution, run: u32, number: u32) -> SegmentKey {
    SegmentKey { incarnation: of.incarnation, run, number, mark: world.nonce() }
}

fn noted(text: &str, before: Option<Nonce>) -> Segment {
    let what = Happened::Note { kind: text.to_owned(), name: None, by: None };
    Segment { before, entries: vec![Entry { at: NOW, what }], end: None }
}

pub(crate) async fn segments_are_read_by_number_and_foreign_ones_with_them(
    world: World,
) -> Result<(), StoreError> {
    let execution = world.execution("sealed");
    let (id, incarnation) = (&execution.id, execution.incarnation);
    assert_eq!(world.store.segments(id, incarnation, 1, 0).await?, []);
    let full = Segment { before: None, entries: fixture::every_entry(NOW), end: None };
    let mut written = vec![(key(&world, &execution, 1, 1), full)];
    for number in 2..=11 {
        let before = written.last().map(|(key, _)| key.mark);
        written.push((key(&world, &execution, 1, number), noted(&number.to_string(), before)));
    }
    for (key, segment) in written.iter().rev() {
        world.store.put_segment(id, key, segment, later(60)).await?;
    }
    // The same write again, after a lost answer.
    world.store.put_segment(id, &written[0].0, &written[0].1, later(60)).await?;
    assert_eq!(world.store.segments(id, incarnation, 1, 0).await?, written);

    // A segment of a write that was refused: the same number with another mark.
    let foreign = (key(&world, &execution, 1, 2), noted("foreign", None));
    world.store.put_segment(id, &foreign.0, &foreign.1, later(60)).await?;
    let read = world.store.segments(id, incarnation, 1, 0).await?;
    assert!(read.is_sorted_by_key(|(key, _)| key.number), "{read:?}");
    let (others, own): (Vec<_>, Vec<_>) = read.into_iter().partition(|(key, _)| *key == foreign.0);
    assert_eq!((others, own), (vec![foreign.clone()], written.clone()));

    // Those after a number: foreign ones as well, and none of that number or below.
    assert_eq!(world.store.segments(id, incarnation, 1, 9).await?, written[9..]);
    assert_eq!(world.store.segments(id, incarnation, 1, 11).await?, []);
    assert_eq!(world.store.segments(id, incarnation, 1, 2).await?, written[2..]);
    assert!(world.store.segments(id, incarnation, 1, 1).await?.iter().any(|(key, _)| *key == foreign.0));
    Ok(())
}

pub(crate) async fn segments_are_different_if_run_incarnation_or_execution_is(
    world: World,
) -> Result<(), StoreError> {
    let [one, two] = ["e-1", "e-2"].map(|id| world.execution(id));
    let same_id = world.execution("e-1");
    let mut expected = Vec::new();
    for (of, run) in [(&one, 1), (&one, 2), (&one, 12), (&two, 1), (&same_id, 1)] {
        let segment = (key(&world, of, run, 1), noted(&format!("{run}"), None));
        world.store.put_segment(&of.id, &segment.0, &segment.1, later(60)).await?;
        expected.push((of, run, segment));
    }
    for (of, run, segment) in expected {
        assert_eq!(world.store.segments(&of.id, of.incarnation, run, 0).await?, [segment]);
    }
    assert_eq!(world.store.segments(&one.id, one.incarnation, 3, 0).await?, []);
    // They are stored beside their record, and aren't part of it.
    let written = world.start(one).await?;
    assert_eq!(world.found(&written).await?, written);
    assert_eq!(world.store.execution(&execution_id("e-2")).await?, None);
    Ok(())
}

pub(crate) async fn a_journal_larger_than_one_answer_is_read_whole(world: World) -> Result<(), StoreError> {
    let execution = world.execution("large");
    let mut written = Vec::new();
    for number in 1..=5 {
        let value = Payload::Inline(json(&format!("\"{}\"", "é\\n".repeat(SEGMENT_BYTES / 5))));
        let what = Happened::Captured { name: step("value"), value };
        let segment = Segment { before: None, entries: vec![Entry { at: NOW, what }], end: None };
        let key = key(&world, &execution, 7, number);
        world.store.put_segment(&execution.id, &key, &segment, later(60)).await?;
        written.push((key, segment));
    }
    assert!(world.store.segments(&execution.id, execution.incarnation, 7, 0).await? == written);
    Ok(())
}

pub(crate) async fn the_expiry_of_a_segment_is_extended_unless_it_is_deleted(
    world: World,
) -> Result<(), StoreError> {
    let execution = world.started("done").await?;
    let (id, incarnation) = (&execution.id, execution.incarnation);
    let written = [1, 2].map(|run| (key(&world, &execution, run, 1), noted("kept", None)));
    let extend = |key| Write::Extend { item: Expiring::Segment(id.clone(), key), expires_at: later(120) };
    // A segment that doesn't exist isn't created.
    world.store.commit(&[extend(written[0].0)]).await?;
    assert_eq!(world.store.segments(id, incarnation, 1, 0).await?, []);
    for (key, segment) in &written {
        world.store.put_segment(id, key, segment, later(60)).await?;
        world.store.commit(&[extend(*key)]).await?;
        world.store.commit(&[extend(*key)]).await?;
    }
    for (key, segment) in written {
        assert_eq!(world.store.segments(id, incarnation, key.run, 0).await?, [(key, segment)]);
    }
    assert_eq!(world.found(&execution).await?, execution);
    Ok(())
}
