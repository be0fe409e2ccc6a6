//! The function `tick`: what is due is dealt with, once a minute.

mod handler;

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    tickover_lambda::start(|app| tickover_lambda::serve(app, handler::handle)).await
}
