//! What the guide's orders ask of AWS in a minute of a month with a million of them, and what `tickover cost` says of it.

use serde_json::{Value, json};
use tickover_core::duration::Millis;

use crate::guide::{self, MONTH};
use crate::shop::{Shop, Used};

/// Orders of a minute: a million in 30 days.
const ORDERS: u32 = 23;
const MINUTE_MS: u64 = 60_000;
/// The minutes of a month.
const MINUTES: f64 = 43_200.0;
/// Minutes of an order's sleep, and those until its event comes after that.
const SLEEP: u64 = 60;
const EVENT: u64 = 10;
/// The minute in which orders of three ages are under way: those that start, wake up, and get their event.
const MEASURED: u64 = SLEEP + EVENT;
/// A tick sends the hints of sleeps that end this many minutes later.
const AHEAD: u64 = 2;
/// What may be billed for each unit that was recorded.
const BILLED_MAX: f64 = 1.02;

fn id(minute: u64, number: u32) -> String {
    format!("order-{minute:03}{number:04}")
}

/// The minutes in which orders start that are under way in the measured one.
fn starts(minute: u64) -> bool {
    [0, EVENT, EVENT + AHEAD, MEASURED].contains(&minute)
}

/// Passes a minute. Returns what its tick has used, and everything else.
async fn pass(shop: &mut Shop, minute: u64) -> [Used; 2] {
    let at = |ms: u64| Millis::new(minute * MINUTE_MS + ms);
    shop.at(at(0));
    // The others have nothing to do.
    if minute + AHEAD >= MEASURED {
        shop.tick().await;
    }
    let of_tick = shop.used();
    for number in 0..ORDERS {
        shop.at(at(u64::from(number) * MINUTE_MS / u64::from(ORDERS)));
        if starts(minute) {
            let body = json!({"id": id(minute, number), "workflow": "order-fulfilment", "queue": "orders", "input": 7});
            shop.post("/v1/executions", &body).await;
        }
        if minute == MEASURED {
            let path = format!("/v1/executions/{}/events/shipped", id(0, number));
            shop.post(&path, &json!({"payload": "a bicycle"})).await;
        }
        shop.work().await;
    }
    [of_tick, shop.used()]
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// The bill's line: for each order, or for each minute.
fn line(lines: &[Value], what: &str, unit: &str, of: f64) -> f64 {
    let line = lines.iter().find(|line| line["what"] == what);
    number(&line.unwrap_or_else(|| panic!("no {what}: {lines:?}"))[unit]) / of
}

#[track_caller]
fn is_billed(what: &str, recorded: f64, billed: f64) {
    assert!(recorded <= billed + 1e-6, "{what}: {recorded} of a minute, and the bill has {billed}");
    assert!(
        billed <= recorded * BILLED_MAX,
        "{what}: only {recorded} of a minute, and the bill has {billed}"
    );
}

#[tokio::test]
async fn a_minute_of_the_guides_orders_asks_of_aws_what_the_bill_says() {
    let mut shop = Shop::open().await;
    for minute in 0..MEASURED {
        pass(&mut shop, minute).await;
    }
    let [tick, work] = pass(&mut shop, MEASURED).await;
    for number in 0..ORDERS {
        assert!(shop.completed(&id(0, number)).await, "{number}");
    }
    assert!(!work.requests.keys().any(|target| target.contains("Visibility")), "{work:?}");

    let bill = guide::cost(guide::ORDERS);
    let lines = bill["lines"].as_array().unwrap();
    let orders = f64::from(ORDERS);
    let each = |what, unit| line(lines, what, unit, MONTH) * orders;
    let minute = |what, unit| line(lines, what, unit, MINUTES);
    let records = |unit| minute("queues' records", unit);
    is_billed("write units", work.writes, each("executions", "write_units") + records("write_units"));
    is_billed("read units", work.reads, each("executions", "read_units") + records("read_units"));
    // The tick sends the hints of sleeps.
    let sqs = work.sqs_requests() + tick.sqs_requests();
    is_billed("SQS requests", bound(sqs), each("executions", "sqs_requests"));
    let invoked = each("executions", "invocations") + each("HTTP requests", "invocations");
    is_billed("invocations", bound(work.invocations), invoked);
    is_billed("write units of a tick", tick.writes, minute("ticks", "write_units"));
    is_billed("read units of a tick", tick.reads, minute("ticks", "read_units"));
    is_billed("ticks", bound(tick.invocations), minute("ticks", "invocations"));
}

fn bound(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap())
}
