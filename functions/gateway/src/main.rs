//! The function `gateway`: the whole HTTP API behind API Gateway or a function URL.

mod answer;
mod handler;
mod identity;

use std::process::ExitCode;

use answer::BufferedAnswer;
use lambda_http::tower::ServiceExt as _;

// A function gets one event at a time and has a share of one core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    tickover_lambda::start(|app| {
        let routes = handler::routes(app.service);
        lambda_http::run(routes.map_response(move |answer| {
            app.metrics.flush();
            BufferedAnswer(answer)
        }))
    })
    .await
}
