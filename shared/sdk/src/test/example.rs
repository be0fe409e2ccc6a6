//! Runs the examples of the documentation.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::TestEnv;
use crate::registry::Register;
use crate::workflow::AsWorkflow;

/// Runs an execution to its end, in a system with these workflows.
///
/// # Panics
/// If it has no result.
#[expect(clippy::expect_used, reason = "an example that fails must panic")]
pub fn outcome<W>(workflows: impl Register, start: &W, input: W::Input) -> W::Output
where
    W: AsWorkflow<Input: Serialize, Output: DeserializeOwned + Send + 'static>,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let env = TestEnv::new().workflow(workflows);
    runtime.block_on(async {
        let run = env.start(start, input).await.expect("a start");
        run.result().await.expect("a result")
    })
}
