//! Workflows for the pages.

use serde::{Deserialize, Serialize};
use tickover::prelude::*;

/// The order that the bank always declines.
pub(crate) const DECLINED: u32 = 13;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) number: u32,
    #[serde(default)]
    pub(crate) note: String,
}

/// Fails once for each order, and always for one.
#[tickover::step(retry = "fixed(1, 1m)")]
pub(crate) async fn charge(placed: Order) -> Result<String, Failure> {
    if placed.number == DECLINED || step_info().is_some_and(|info| info.attempt == 1) {
        return Err(Failure::new("declined", "the bank says no"));
    }
    Ok(format!("charge-{}", placed.number))
}

#[tickover::step("print-label", remote)]
pub(crate) async fn print_label(content: String) -> Result<String> {
    Ok(format!("label for {content}"))
}

#[tickover::workflow("note")]
pub(crate) async fn note_down(ctx: Ctx, text: String) -> Result<usize> {
    ctx.sleep("breath", "1m").await?;
    Ok(text.len())
}

/// A step that is tried twice, remote steps, a child, a sleep of days, and an event.
#[tickover::workflow("order", timeout = "60d")]
pub(crate) async fn order(ctx: Ctx, placed: Order) -> Result<String> {
    let charge = ctx.step(charge(placed.clone())).await?;
    let contents = ["books", "lamps"].map(str::to_owned);
    ctx.join_all("label", contents.map(print_label)).await?;
    let length: usize = ctx.child(&note_down, &placed.note).id(format!("note-{}", placed.number)).await?;
    ctx.sleep("settle", "3d").await?;
    let carrier: String = ctx.wait_for_event("shipped", within("20d")).await?;
    Ok(format!("{charge} with {carrier} and a note of {length}"))
}
