//! The function `claim`: workers that invoke it directly claim tasks.

mod handler;

use std::process::ExitCode;

// A function gets one event at a time and has a share of one core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    tickover_lambda::start(|app| tickover_lambda::serve(app, handler::handle)).await
}
