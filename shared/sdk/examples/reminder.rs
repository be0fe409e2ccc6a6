//! Runs the survey in virtual time and prints its timeline.

use std::io::Write as _;

use tickover::test::TestEnv;

#[path = "flows/reminder.rs"]
mod flow;
#[path = "flows/outside.rs"]
mod outside;

use flow::survey;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let env = TestEnv::new().workflow(survey);
    let run = env.start(&survey, "How was it?".to_owned()).await?;
    env.advance("5d").await?;
    run.send_event("answer", "fine").await?;
    let result = run.result().await?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}result: {result:?}", run.timeline().await?)?;
    for (call, times) in outside::take() {
        writeln!(out, "step {} ran {times} times as {}", call.step, call.key)?;
    }
    Ok(())
}
