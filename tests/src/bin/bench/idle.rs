//! The costs of a day without work: every request is counted, with one tick a minute.

use anyhow::Result;
use serde_json::json;
use tickover_core::duration::Millis;
use tickover_core::task::command::Start;
use tickover_service::tasks::schedule::ScheduleRequest;
use tickover_tests::meter::Meter;
use tickover_tests::scene::request;

use crate::print;

const MINUTES_A_DAY: u32 = 24 * 60;
/// Lambda reads an idle queue with five pollers, and each of their long polls takes 20 s.
const POLLERS: u32 = 5;
const LONG_POLL_S: u32 = 20;

/// A day with an empty table, a day with a thousand tasks that start next month, and the receive calls of Lambda's
/// pollers.
pub(crate) async fn run() -> Result<()> {
    for waiting in [0, 1_000] {
        let meter = Meter::new().await?;
        for _ in 0..waiting {
            let start = Start::After(Millis::from_days(30));
            meter.scene.service.schedule(ScheduleRequest { start, ..request("work", None, None) }).await?;
        }
        day(&meter, waiting).await?;
    }
    let receives = POLLERS * MINUTES_A_DAY * 60 / LONG_POLL_S;
    print(&json!({
        "bench": "idle-polling",
        "receives_per_queue_per_day": receives,
        "receives_per_queue_per_30_days": receives * 30,
        "measured": false,
        "from": format!("{POLLERS} pollers a queue, a long poll of {LONG_POLL_S} s each, as Lambda documents"),
    }));
    Ok(())
}

async fn day(meter: &Meter, waiting: u32) -> Result<()> {
    let requests = meter.store.usage().requests;
    let minutes = async {
        let (mut looked_at, mut fired) = (0, 0);
        for _ in 0..MINUTES_A_DAY {
            meter.scene.clock.advance(Millis::from_secs(60));
            looked_at += meter.scene.tick().await?.looked_at;
            fired += meter.scene.fire().await;
        }
        anyhow::Ok((looked_at, fired))
    };
    let (answer, bill) = meter.bill(minutes).await;
    let (looked_at, fired) = answer?;
    print(&json!({
        "bench": "idle-day",
        "tasks_waiting": waiting,
        "read_units": bill.reads,
        "write_units": bill.writes,
        "store_requests": meter.store.usage().requests - requests,
        "sqs_sends": bill.sends,
        "invocations": usize::try_from(MINUTES_A_DAY)? + fired,
        "records_looked_at": looked_at,
    }));
    Ok(())
}
