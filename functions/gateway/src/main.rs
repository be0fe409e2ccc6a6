//! The function `gateway`: the whole HTTP API behind API Gateway or a function URL.

mod handler;

use std::process::ExitCode;

use lambda_http::tower::ServiceExt as _;

#[tokio::main]
async fn main() -> ExitCode {
    tickover_lambda::start(|app| {
        let routes = handler::routes(app.service);
        lambda_http::run(routes.map_response(move |answer| {
            app.metrics.flush();
            answer
        }))
    })
    .await
}
