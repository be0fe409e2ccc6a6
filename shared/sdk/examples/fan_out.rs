//! Runs the gallery in virtual time and prints its timeline.

use std::io::Write as _;

use tickover::test::TestEnv;

#[path = "flows/fan_out.rs"]
mod flow;
#[path = "flows/outside.rs"]
mod outside;

use flow::gallery;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let env = TestEnv::new().workflow(gallery);
    let run = env.start(&gallery, vec![400, 1_200, 8_000]).await?;
    let result = run.result().await?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}result: {result:?}", run.timeline().await?)?;
    for (call, times) in outside::take() {
        writeln!(out, "step {} ran {times} times as {}", call.step, call.key)?;
    }
    Ok(())
}
