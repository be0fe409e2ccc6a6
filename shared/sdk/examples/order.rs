//! Runs an order in virtual time and prints its timeline.

use std::io::Write as _;

use tickover::test::TestEnv;

#[path = "flows/order.rs"]
mod flow;
#[path = "flows/outside.rs"]
mod outside;

use flow::{Order, Shipment, fulfil, print_label};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let env = TestEnv::new().workflow(fulfil).step::<print_label>();
    let run =
        env.start(&fulfil, Order { number: 7, boxes: vec!["books".to_owned(), "lamps".to_owned()] }).await?;
    env.advance("2h").await?;
    run.send_event("shipped", Shipment { carrier: "a bicycle".to_owned() }).await?;
    let result = run.result().await?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}result: {result:?}", run.timeline().await?)?;
    for (call, times) in outside::take() {
        writeln!(out, "step {} ran {times} times as {}", call.step, call.key)?;
    }
    Ok(())
}
