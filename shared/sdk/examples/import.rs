//! Runs the import in virtual time and prints its timeline.

use std::io::Write as _;

use tickover::test::TestEnv;

#[path = "flows/import.rs"]
mod flow;
#[path = "flows/outside.rs"]
mod outside;

use flow::{Import, import, import_page};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let env = TestEnv::new().workflow((import, import_page));
    let run = env.start(&import, Import { name: "people".to_owned(), page: 1, pages: 3, rows: 0 }).await?;
    let result = run.result().await?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}result: {result:?}", run.timeline().await?)?;
    for (call, times) in outside::take() {
        writeln!(out, "step {} ran {times} times as {}", call.step, call.key)?;
    }
    Ok(())
}
