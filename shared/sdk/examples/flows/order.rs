//! An order: a payment, labels from a worker with a printer, and an event from the warehouse when it is shipped.

use serde::{Deserialize, Serialize};
use tickover::prelude::*;

use crate::outside;

/// An order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// Its number.
    pub(crate) number: u32,
    /// The content of each box.
    pub(crate) boxes: Vec<String>,
}

/// The bank's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Charge {
    /// The bank's own number.
    pub(crate) reference: String,
}

/// Why the payment failed.
#[derive(Debug, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PaymentError {
    /// The bank is busy.
    #[error("the bank doesn't answer")]
    Busy,
}

/// The warehouse's event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Shipment {
    /// Who brings it.
    pub(crate) carrier: String,
}

/// The receipt for the customer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Receipt {
    /// The payment.
    pub(crate) charge: Charge,
    /// One for each box.
    pub(crate) labels: Vec<String>,
    /// Who brings it.
    pub(crate) carrier: String,
}

/// Takes the money. The bank is busy the first time.
#[tickover::step(retry = "exponential(3, 2s)", non_retryable("declined"), timeout = "5m")]
pub(crate) async fn charge(order: Order) -> Result<Charge, PaymentError> {
    if outside::call().await == 1 {
        return Err(PaymentError::Busy);
    }
    Ok(Charge { reference: format!("charge-{}", order.number) })
}

/// Prints a label: a remote step, for a worker with a printer.
#[tickover::step("print-label", remote)]
pub(crate) async fn print_label(content: String) -> Result<String> {
    outside::call().await;
    Ok(format!("label for {content}"))
}

/// Gives the money back.
#[tickover::step]
pub(crate) async fn give_back(order: Order) -> Result<String> {
    outside::call().await;
    Ok(format!("refund-{}", order.number))
}

/// The whole way from the order to the receipt.
#[tickover::workflow("order-fulfilment", timeout = "30d", queue = "orders", on_failure = refund)]
pub(crate) async fn fulfil(ctx: Ctx, order: Order) -> Result<Receipt> {
    let charge = ctx.step(charge(order.clone())).await?;
    let labels =
        ctx.join_all("label", order.boxes.iter().map(|content| print_label(content.clone()))).await?;
    ctx.sleep("settle", "1h").await?;
    let shipment: Shipment = ctx.wait_for_event("shipped", within("7d")).await?;
    Ok(Receipt { charge, labels, carrier: shipment.carrier })
}

async fn refund(ctx: Ctx, order: Order, _: Cause) -> Result<Option<Receipt>> {
    ctx.step(give_back(order)).await?;
    Ok(None)
}
