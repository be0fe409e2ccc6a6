//! Runs the trip in virtual time and prints its timeline.

use std::io::Write as _;

use tickover::test::TestEnv;

#[path = "flows/trip.rs"]
mod flow;
#[path = "flows/outside.rs"]
mod outside;

use flow::{Trip, book};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let env = TestEnv::new().workflow(book);
    let run = env.start(&book, Trip { to: "Rome".to_owned(), has_room: false }).await?;
    let result = run.result().await?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}result: {result:?}", run.timeline().await?)?;
    for (call, times) in outside::take() {
        writeln!(out, "step {} ran {times} times as {}", call.step, call.key)?;
    }
    Ok(())
}
