//! The function `gateway`: the whole HTTP API behind API Gateway or a function URL.

mod handler;

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    tickover_lambda::start(|app| lambda_http::run(handler::routes(app.service))).await
}
