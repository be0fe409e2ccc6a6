//! The example: an order is paid, labelled box by box, and completed when the warehouse has shipped it.
//!
//! The bank and the printer are simulated. The order's card decides what the bank does, so that every path of the
//! workflow can be tried.

use serde::{Deserialize, Serialize};
use tickover::prelude::*;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) number: u32,
    /// The content of each box.
    pub(crate) boxes: Vec<String>,
    #[serde(default)]
    pub(crate) card: Card,
    /// Whether it is shipped at once, without time for the customer to cancel.
    #[serde(default)]
    pub(crate) express: bool,
    /// Whether the labels are printed one after the other.
    #[serde(default)]
    pub(crate) one_by_one: bool,
    /// How long the customer may still cancel, such as `10s`. An hour by default.
    #[serde(default = "an_hour")]
    pub(crate) second_thoughts: String,
}

fn an_hour() -> String {
    "1h".to_owned()
}

/// A card, named by the bank's response to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Card {
    /// Charged at once.
    #[default]
    Good,
    /// Charged at the second attempt.
    Slow,
    /// Refused at each attempt.
    Empty,
    /// Panics in the card reader at the first attempt. A panic is a failed attempt like any other.
    Bent,
}

/// A payment that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Charge {
    /// The bank's reference.
    pub(crate) reference: String,
}

/// Why no payment was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PaymentError {
    /// The bank didn't answer.
    #[error("the bank didn't answer")]
    Unreachable,
    /// The bank refused the card. A retry can't help.
    #[error("the bank refused the card")]
    Refused,
}

/// The warehouse's message after it has shipped the boxes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shipment {
    /// The company that delivers them.
    pub(crate) carrier: String,
}

/// The workflow's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Receipt {
    pub(crate) charge: Charge,
    /// The label of each box.
    pub(crate) labels: Vec<String>,
    /// The company that delivers them.
    pub(crate) carrier: String,
}

/// Charges the card. A bank that gets the step's key charges it once, however many attempts there are.
#[tickover::step(retry = "fixed(3, 2s)", non_retryable("refused"), timeout = "5m")]
pub(crate) async fn charge(order: Order) -> Result<Charge, PaymentError> {
    let attempt = step_info().map_or(1, |info| info.attempt);
    match order.card {
        Card::Empty => Err(PaymentError::Refused),
        Card::Slow if attempt == 1 => Err(PaymentError::Unreachable),
        Card::Bent if attempt == 1 => panic!("the card reader broke"),
        Card::Good | Card::Slow | Card::Bent => Ok(Charge { reference: format!("charge-{}", order.number) }),
    }
}

/// Prints one label, on a worker that has a printer.
#[tickover::step(
    "print-label",
    remote,
    retry = "exponential(3, 10s)",
    non_retryable("empty_box"),
    timeout = "1d"
)]
pub(crate) async fn print_label(content: String) -> Result<String> {
    if content.is_empty() {
        return Err(Error::new("empty_box", "there is nothing to write on the label"));
    }
    Ok(format!("label for {content}"))
}

/// Refunds the payment.
#[tickover::step("give-back", retry = "exponential(10, 1s)")]
pub(crate) async fn give_back(order: Order) -> Result<String> {
    Ok(format!("refund-{}", order.number))
}

/// From the order to the receipt.
#[tickover::workflow("order-fulfilment", queue = "orders", timeout = "30d", on_failure = refund)]
pub(crate) async fn fulfil(ctx: Ctx, order: Order) -> Result<Receipt> {
    let charge = ctx.step(charge(order.clone())).await?;
    let mut prints = order.boxes.iter().map(|content| print_label(content.clone()));
    let mut labels = vec![];
    if order.one_by_one {
        for (place, print) in prints.by_ref().enumerate() {
            labels.push(ctx.step(print.named(format!("label[{place}]"))).await?);
        }
    } else {
        labels = ctx.join_all("label", prints).await?;
    }
    if !order.express {
        ctx.sleep("second-thoughts", &order.second_thoughts).await?;
    }
    let shipment: Shipment = ctx.wait_for_event("shipped", within("7d")).await?;
    Ok(Receipt { charge, labels, carrier: shipment.carrier })
}

/// Refunds the customer after any failure. Only if the card was refused there is nothing to refund: if the bank didn't
/// answer, it may still have charged the card.
async fn refund(ctx: Ctx, order: Order, cause: Cause) -> Result<Option<Receipt>> {
    let is_unpaid = matches!(&cause, Cause::Step { error, .. } if error.code == "refused");
    if !is_unpaid {
        ctx.step(give_back(order)).await?;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use tickover::test::{BEGINNING, TestEnv};

    use super::*;

    fn order(boxes: &[&str]) -> Order {
        let boxes = boxes.iter().map(|content| (*content).to_owned()).collect();
        Order {
            number: 7,
            boxes,
            card: Card::Slow,
            express: false,
            one_by_one: false,
            second_thoughts: an_hour(),
        }
    }

    fn env() -> TestEnv {
        TestEnv::new().workflow(fulfil).step::<print_label>()
    }

    #[tokio::test]
    async fn an_order_is_received_once_it_is_shipped_and_not_before_its_hour_is_over() {
        let env = env();
        let run = env.start(&fulfil, order(&["books", "lamps"])).await.unwrap();
        run.send_event("shipped", Shipment { carrier: "a bicycle".to_owned() }).await.unwrap();
        let receipt = run.result().await.unwrap();
        assert_eq!(receipt.charge.reference, "charge-7");
        assert_eq!(receipt.labels, ["label for books", "label for lamps"]);
        assert_eq!(receipt.carrier, "a bicycle");
        assert!(env.now().since(BEGINNING) >= tickover::Millis::from_secs(3_600));
    }

    #[tokio::test]
    async fn a_step_that_panics_is_a_failed_attempt_and_the_customer_may_agree_to_less_time() {
        let env = env();
        let order = Order { card: Card::Bent, second_thoughts: "10s".to_owned(), ..order(&["books"]) };
        let run = env.start(&fulfil, order).await.unwrap();
        run.send_event("shipped", Shipment { carrier: "a bicycle".to_owned() }).await.unwrap();
        assert_eq!(run.result().await.unwrap().charge.reference, "charge-7");
        assert!(env.now().since(BEGINNING) < tickover::Millis::from_secs(60));
    }

    #[tokio::test]
    async fn labels_are_printed_one_by_one_for_a_printer_that_takes_no_more() {
        let env = env();
        let boxes: Vec<String> = (0..40).map(|number| format!("box {number}")).collect();
        let boxes: Vec<&str> = boxes.iter().map(String::as_str).collect();
        let order = Order { one_by_one: true, express: true, ..order(&boxes) };
        let run = env.start(&fulfil, order).await.unwrap();
        run.send_event("shipped", Shipment { carrier: "a bicycle".to_owned() }).await.unwrap();
        let receipt = run.result().await.unwrap();
        assert_eq!((receipt.labels.len(), receipt.labels[39].as_str()), (40, "label for box 39"));
    }

    #[tokio::test]
    async fn money_is_given_back_where_it_was_taken() {
        for (order, is_paid, code) in [
            (order(&[""]), true, "empty_box"),
            (Order { card: Card::Empty, ..order(&["books"]) }, false, "refused"),
        ] {
            let env = env();
            let run = env.start(&fulfil, order).await.unwrap();
            let error = run.result().await.unwrap_err().to_string();
            assert!(error.contains(code), "{error}");
            let timeline = run.timeline().await.unwrap();
            assert_eq!(timeline.contains("give-back"), is_paid, "{timeline}");
        }
    }
}
