//! HTTP answers in the form that API Gateway and function URLs expect.

use axum::body::to_bytes;
use axum::http::StatusCode;
use axum::response::Response;
use lambda_http::{Body, IntoResponse};
use std::pin::Pin;

/// An answer of the routes. All answers are UTF-8. The adapter's own conversion from bytes to text would add the tables
/// of forty other encodings to the archive.
pub(crate) struct BufferedAnswer(pub(crate) Response);

impl IntoResponse for BufferedAnswer {
    fn into_response(self) -> Pin<Box<dyn Future<Output = lambda_http::Response<Body>> + Send>> {
        Box::pin(async move {
            let (mut head, body) = self.0.into_parts();
            let body = match to_bytes(body, usize::MAX).await {
                Ok(bytes) => match String::from_utf8(bytes.into()) {
                    Ok(text) => Body::Text(text),
                    Err(error) => Body::Binary(error.into_bytes()),
                },
                Err(error) => {
                    tracing::error!(%error, "an answer could not be read");
                    head.status = StatusCode::INTERNAL_SERVER_ERROR;
                    Body::Empty
                }
            };
            lambda_http::Response::from_parts(head, body)
        })
    }
}
