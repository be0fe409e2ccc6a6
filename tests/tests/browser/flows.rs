//! Workflows for the pages.

use serde::{Deserialize, Serialize};
use tickover::Either;
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

/// Refuses one content, however often it is asked.
#[tickover::step("print-label", remote, retry = "none")]
pub(crate) async fn print_label(content: String) -> Result<String, Failure> {
    if content == "lead" {
        return Err(Failure::new("too_heavy", "no parcel may weigh so much"));
    }
    Ok(format!("label for {content}"))
}

#[tickover::workflow("parcel")]
pub(crate) async fn parcel(ctx: Ctx, content: String) -> Result<String> {
    Ok(ctx.step(print_label(content)).await?)
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

/// Waits for a person or a bank, at most for two days.
#[tickover::workflow("approval")]
pub(crate) async fn approval(ctx: Ctx, (): ()) -> Result<bool> {
    let approved = ctx.wait_for_event::<bool>("approved", forever());
    let bank = ctx.callback("bank", within("1d")).await?;
    ctx.step(hand_over(bank.token().to_owned())).await?;
    let answer = ctx.race("answer", approved, bank.result::<bool>());
    let expired = ctx.sleep("expiry", "2d");
    Ok(match ctx.race("decision", answer, expired).await {
        Either::Left(Either::Left(approved)) => approved?,
        Either::Left(Either::Right(approved)) => approved?,
        Either::Right(_) => false,
    })
}

/// Its result is the token: a test plays the bank.
#[tickover::step]
async fn hand_over(token: String) -> Result<String, Failure> {
    Ok(token)
}

/// Runs twice: the second run has another input.
#[tickover::workflow("relay")]
pub(crate) async fn relay(ctx: Ctx, leg: u32) -> Result<String> {
    if leg == 1 {
        return ctx.continue_as_new(2_u32).await;
    }
    Ok(format!("leg {leg}"))
}
