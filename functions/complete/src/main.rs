//! The function `complete`: workers report, by direct invocation and by message from the completions queue.

mod handler;

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    tickover_lambda::start(|app| tickover_lambda::serve(app, handler::handle)).await
}
