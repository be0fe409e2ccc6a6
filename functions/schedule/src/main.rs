//! The function `schedule`: tasks come in, by direct invocation and by message from the ingress queue.

mod handler;

use std::process::ExitCode;

// One event at a time, on a share of one core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    tickover_lambda::start(|app| tickover_lambda::serve(app, handler::handle)).await
}
