//! Tells Lambda why a function can't start, so that its caller is told, and not only the log.
//!
//! The runtime crate has no call for it outside of snapshots; the request is one of HTTP's simplest.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::boot::BootError;

/// Lambda's end of this connection is on the same machine.
const BOUND: Duration = Duration::from_secs(2);

/// Reports the error. Where that fails the log has it, so nothing more is done about it.
pub(crate) async fn report(error: &BootError) {
    #[expect(clippy::disallowed_methods, reason = "where Lambda listens is no configuration of the service")]
    let Ok(address) = std::env::var("AWS_LAMBDA_RUNTIME_API") else { return };
    match timeout(BOUND, post(&address, error)).await {
        Ok(Ok(())) => {}
        Ok(Err(failure)) => tracing::warn!(%failure, "Lambda not told of the failed start"),
        Err(_) => tracing::warn!("Lambda not told of the failed start: no answer in {BOUND:?}"),
    }
}

async fn post(address: &str, error: &BootError) -> io::Result<()> {
    let code = error.code();
    let body = serde_json::json!({
        "errorType": code,
        "errorMessage": error.to_string(),
        "stackTrace": [],
    })
    .to_string();
    let request = format!(
        "POST /2018-06-01/runtime/init/error HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Lambda-Runtime-Function-Error-Type: {code}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len(),
    );
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    // The answer says nothing of use, but once it is here the report has been taken.
    stream.read(&mut [0; 1]).await.map(drop)
}
