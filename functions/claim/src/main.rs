//! The function `claim`: workers that invoke it directly get tasks.

mod handler;

use std::process::ExitCode;

// One event at a time, on a share of one core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    tickover_lambda::start(|app| tickover_lambda::serve(app, handler::handle)).await
}
