//! What maps cost an item, by the `ConsumedCapacity` of the database in this process, with the SDK's own worker.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use tickover::Registry;
use tickover::prelude::*;
use tickover_core::limits::Limits;
use tickover_tests::execution_bill::execution_bill;

const ITEMS: u32 = 1_000;
const PAGE: usize = 100;

#[tickover::step("double-it")]
async fn double(number: u32) -> Result<u32> {
    Ok(number * 2)
}

#[tickover::workflow("mapped")]
async fn mapped(ctx: Ctx, (is_remote, at_once): (bool, usize)) -> Result<usize> {
    let one = |number| if is_remote { double(number).remote() } else { double(number) };
    let results = ctx.map("double", 0..ITEMS, one).at_once(at_once).paged(PAGE).await?;
    Ok(results.len())
}

/// The write and read units of a map, for each item.
async fn each(is_remote: bool, at_once: usize) -> (f64, f64) {
    let registry = Registry::new().with(mapped).with_step::<double>();
    let input = format!("[{is_remote},{at_once}]");
    let bill = execution_bill(registry, "mapped", &input, Limits::default()).await.unwrap();
    assert_eq!(bill.output, ITEMS.to_string());
    let items = f64::from(ITEMS);
    (bill.writes / items, bill.reads / items)
}

/// Items that end together are one write of their page's record. With 8 items at once, each page has one at a time.
#[tokio::test]
async fn an_inline_item_of_a_map_costs_less_than_a_third_of_a_write_unit_and_at_most_one_and_a_third() {
    let (together, reads) = each(false, 1_000).await;
    assert!(together <= 0.3 && reads <= 0.1, "{together} write units, {reads} read units");
    let (alone, reads) = each(false, 8).await;
    assert!(together < alone && alone <= 1.3 && reads <= 0.1, "{alone} write units, {reads} read units");
}

/// A remote item is a task: it costs what a remote step of a fan-out costs, and the turns of its page.
#[tokio::test]
async fn a_remote_item_of_a_map_costs_at_most_eight_write_units() {
    let (writes, reads) = each(true, 20).await;
    assert!((5.0..=8.0).contains(&writes) && reads <= 6.0, "{writes} write units, {reads} read units");
}
