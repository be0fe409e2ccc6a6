//! The demo's workflow: an order with a retry, a lost worker, a timeout, a fan-out and an event.

use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use tickover::prelude::*;

/// Whether the first worker, which never finishes, has started the packing.
static PACKING: AtomicBool = AtomicBool::new(false);

/// Whether the packing has started.
pub(super) fn packing_has_started() -> bool {
    PACKING.load(Ordering::SeqCst)
}

/// A customer's order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Order {
    /// Its number.
    pub(super) number: u32,
    /// What is in each box.
    pub(super) boxes: Vec<String>,
}

/// The result of the workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Receipt {
    /// The payment's number.
    pub(super) charge: String,
    /// The label of each box.
    pub(super) labels: Vec<String>,
    /// How the boxes are sent.
    pub(super) transport: String,
    /// Who delivered them.
    pub(super) carrier: String,
}

/// The warehouse's message.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Shipment {
    carrier: String,
}

/// Charges the customer. The bank is busy at the first attempt.
#[tickover::step(retry = "fixed(3, 200ms)", timeout = "10s")]
async fn charge(order: Order) -> Result<String, Failure> {
    if step_info().is_none_or(|info| info.attempt == 1) {
        return Err(Failure::new("busy", "the bank doesn't answer"));
    }
    Ok(format!("charge-{}", order.number))
}

/// Packs everything. The first worker never finishes it.
#[tickover::step]
async fn pack(order: Order) -> Result<usize, Failure> {
    if !PACKING.swap(true, Ordering::SeqCst) {
        std::future::pending::<()>().await;
    }
    Ok(order.boxes.len())
}

/// Prints a label, on a worker that has a printer.
#[tickover::step("print-label", remote, queue = "labels")]
pub(super) async fn print_label(content: String) -> Result<String, Failure> {
    Ok(format!("label for {content}"))
}

/// Asks a courier that never answers: one second for all attempts together.
#[tickover::step("book-courier", retry = "fixed(2, 100ms)", timeout = "1s", scope = "global")]
async fn book_courier(order: Order) -> Result<String, Failure> {
    std::future::pending::<()>().await;
    Ok(format!("courier for {}", order.number))
}

/// The alternative to the courier.
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
