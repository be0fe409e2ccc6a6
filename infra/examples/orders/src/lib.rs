//! An example: orders are reserved, approved by a person if they are large, and paid. If that fails, the reservation is
//! undone.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use tickover::Either;
use tickover::prelude::*;

/// A customer's order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// The item.
    pub item: String,
    /// How many of it.
    pub count: u32,
    /// The price in cents.
    pub cents: u32,
}

/// Orders from this many cents on need a person's approval.
const LARGE: u32 = 100_000;

/// The stock of each item. In a real worker this would be a connection pool or a client. The worker creates it once,
/// and its steps borrow it.
#[derive(Debug, Default)]
pub struct Stock(Mutex<BTreeMap<String, u32>>);

impl Stock {
    /// A stock with these counts.
    pub fn new<I: Into<String>>(items: impl IntoIterator<Item = (I, u32)>) -> Self {
        Self(Mutex::new(items.into_iter().map(|(item, count)| (item.into(), count)).collect()))
    }

    /// How many of an item are left.
    pub fn left(&self, item: &str) -> u32 {
        self.items().get(item).copied().unwrap_or_default()
    }

    fn items(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, u32>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Why a reservation failed. `non_retryable` uses the variant's name as the error's code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum StockError {
    /// There are too few left.
    #[error("only {0} are left")]
    SoldOut(u32),
}

/// Takes items out of the stock.
#[tickover::step(retry = "exponential(3, 2s)", non_retryable("sold_out"), timeout = "5m")]
pub async fn reserve(#[state] stock: &Stock, order: Order) -> Result<(), StockError> {
    let mut items = stock.items();
    let left = items.entry(order.item).or_default();
    *left = left.checked_sub(order.count).ok_or(StockError::SoldOut(*left))?;
    Ok(())
}

/// Returns items to the stock.
#[tickover::step("give-back", retry = "exponential(10, 1s)")]
pub async fn give_back(#[state] stock: &Stock, order: Order) -> Result<()> {
    *stock.items().entry(order.item).or_default() += order.count;
    Ok(())
}

/// Charges the customer. A payment service that gets the step's key charges once, however many attempts there are.
#[tickover::step(retry = "exponential(5, 2s)", timeout = "10m")]
pub async fn charge(order: Order) -> Result<String> {
    let key = step_info().map(|info| info.idempotency_key).unwrap_or_default();
    if order.cents == 0 {
        return Err(Error::new("nothing_to_pay", "an order costs something"));
    }
    Ok(format!("{} cents under {key}", order.cents))
}

/// From the order to the payment.
#[tickover::workflow("order", timeout = "30d")]
pub async fn fulfil(ctx: Ctx, order: Order) -> Result<String> {
    ctx.step(reserve(order.clone())).await?;
    ctx.on_undo("give-back", give_back(order.clone()));
    if order.cents >= LARGE {
        // No worker is in use while it waits.
        let approved = ctx.wait_for_event::<bool>("approved", forever());
        let is_approved = match ctx.race("approval", approved, ctx.sleep("patience", "2d")).await {
            Either::Left(approved) => approved?,
            Either::Right(_) => return Err(Error::new("not_approved", "nobody approved the order in time")),
        };
        if !is_approved {
            return Err(Error::new("refused", "somebody refused the order"));
        }
    }
    Ok(ctx.step(charge(order)).await?)
}
