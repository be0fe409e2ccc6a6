//! The workflow: an order is paid, gets a label, and is shipped. If it isn't shipped in time, the payment is returned.

use serde::{Deserialize, Serialize};
use tickover::prelude::*;

/// A customer's order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// The order's number.
    pub number: u32,
    /// The price in cents.
    pub cents: u32,
    /// Where it goes.
    pub address: String,
}

/// What an order ends with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The payment's id.
    pub payment: String,
    /// The label on the parcel.
    pub label: String,
    /// Who carries it.
    pub carrier: String,
}

/// Charges the customer, and returns the payment's id. An attempt that fails is repeated, at most five times.
#[tickover::step(retry = "exponential(5, 2s)", timeout = "10m")]
pub async fn charge(order: Order) -> Result<String> {
    // Call your payment service here. Give it this key: it is the same for all attempts, so the customer pays once.
    let key = step_info().map(|info| info.idempotency_key);
    let key = key.unwrap_or_default();
    Ok(format!("payment of {} cents, {key}", order.cents))
}

/// Returns the payment.
#[tickover::step(retry = "exponential(10, 2s)")]
pub async fn refund(_payment: String) -> Result<()> {
    Ok(())
}

/// Prints the label. `remote`: this is a task of its own, which any worker of the queue may do, on another machine or
/// in another language.
#[tickover::step(remote, retry = "fixed(3, 30s)", timeout = "1d")]
pub async fn print_label(order: Order) -> Result<String> {
    Ok(format!("{}: {}", order.number, order.address))
}

/// From the order to the receipt. After a crash, another worker calls this function again from its first line. A step
/// that has a result returns it at once, and doesn't run again.
#[tickover::workflow(queue = "{{name}}", timeout = "30d")]
pub async fn fulfil(ctx: Ctx, order: Order) -> Result<Receipt> {
    let payment = ctx.step(charge(order.clone())).await?;
    // This runs if the code below fails.
    ctx.on_undo("refund", refund(payment.clone()));
    let label = ctx.step(print_label(order)).await?;
    // Nothing runs while it waits. After seven days the wait is an error.
    let carrier = ctx.wait_for_event("shipped", within("7d")).await?;
    Ok(Receipt {
        payment,
        label,
        carrier,
    })
}
