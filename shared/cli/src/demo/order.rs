//! The demo's workflow: an order, with all that can happen to one within seconds.

use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use tickover::prelude::*;

/// Whether the packing has been begun by a worker that won't finish it.
static PACKING: AtomicBool = AtomicBool::new(false);

/// Whether it has.
pub(super) fn packing_has_begun() -> bool {
    PACKING.load(Ordering::SeqCst)
}

/// What a customer wants.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Order {
    /// Its number.
    pub(super) number: u32,
    /// What is in each box.
    pub(super) boxes: Vec<String>,
}

/// What the customer gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Receipt {
    /// The payment's number.
    pub(super) charge: String,
    /// One for each box.
    pub(super) labels: Vec<String>,
    /// How it gets there.
    pub(super) transport: String,
    /// Who brought it.
    pub(super) carrier: String,
}

/// What the warehouse says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Shipment {
    carrier: String,
}

/// Takes the money. The bank is busy the first time.
#[tickover::step(retry = "fixed(3, 200ms)", timeout = "10s")]
async fn charge(order: Order) -> Result<String, Failure> {
    if step_info().is_none_or(|info| info.attempt == 1) {
        return Err(Failure::new("busy", "the bank doesn't answer"));
    }
    Ok(format!("charge-{}", order.number))
}

/// Packs everything. The first worker never gets done with it.
#[tickover::step]
async fn pack(order: Order) -> Result<usize, Failure> {
    if !PACKING.swap(true, Ordering::SeqCst) {
        std::future::pending::<()>().await;
    }
    Ok(order.boxes.len())
}

/// Prints a label, wherever there is a printer.
#[tickover::step("print-label", remote, queue = "labels")]
pub(super) async fn print_label(content: String) -> Result<String, Failure> {
    Ok(format!("label for {content}"))
}

/// Asks a courier who never answers: one second for all attempts together.
#[tickover::step("book-courier", retry = "fixed(2, 100ms)", timeout = "1s", scope = "global")]
async fn book_courier(order: Order) -> Result<String, Failure> {
    std::future::pending::<()>().await;
    Ok(format!("courier for {}", order.number))
}

/// What is done instead.
#[tickover::step("send-by-post")]
async fn send_by_post(order: Order) -> Result<String, Failure> {
    Ok(format!("post, stamp {}", order.number))
}

/// From the order to the receipt.
#[tickover::workflow("order-fulfilment", timeout = "1m", queue = "orders")]
pub(super) async fn fulfil(ctx: Ctx, order: Order) -> Result<Receipt> {
    let charge = ctx.step(charge(order.clone())).await?;
    ctx.step(pack(order.clone())).await?;
    let labels =
        ctx.join_all("label", order.boxes.iter().map(|content| print_label(content.clone()))).await?;
    let transport = match ctx.step(book_courier(order.clone())).await {
        Err(StepError::TimedOut { .. }) => ctx.step(send_by_post(order)).await?,
        answered => answered?,
    };
    let shipment: Shipment = ctx.wait_for_event("shipped", within("30s")).await?;
    Ok(Receipt { charge, labels, transport, carrier: shipment.carrier })
}
