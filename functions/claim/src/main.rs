//! The function `claim`: workers that invoke it directly get tasks.

mod handler;

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    tickover_lambda::start(|app| tickover_lambda::serve(app, handler::handle)).await
}
