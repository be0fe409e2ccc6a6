//! Types that don't fit: the compiler's own errors, at the user's source.

use serde::{Deserialize, Serialize};
use tickover::prelude::*;

#[derive(Serialize, Deserialize)]
struct NotCloned;

#[tickover::step]
async fn charge(_: NotCloned) -> Result<()> {
    Ok(())
}

#[tickover::workflow(on_failure = refund)]
async fn fulfil(_: Ctx, order: u32) -> Result<u32> {
    Ok(order)
}

async fn refund(_: Ctx, _: String, _: Cause) -> Result<Option<u32>> {
    Ok(None)
}

fn not_a_workflow() {}

fn main() {
    let _ = tickover::Registry::new().with(not_a_workflow);
    let _ = tickover::Registry::new().with_step::<NotCloned>();
}
