//! Reports to Lambda why a function can't start, so that the caller sees the error too, not only the log.
//!
//! The runtime crate has a call for it only for snapshots. The request is a very simple HTTP request.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::boot::BootError;

/// Lambda's end of this connection is on the same machine.
const BOUND: Duration = Duration::from_secs(2);

/// Reports the error. If that fails, nothing more is done: the log has the error.
pub(crate) async fn report(error: &BootError) {
    #[expect(clippy::disallowed_methods, reason = "where Lambda listens is no configuration of the service")]
    let Ok(address) = std::env::var("AWS_LAMBDA_RUNTIME_API") else { return };
    match timeout(BOUND, post(&address, error)).await {
        Ok(Ok(())) => {}
        Ok(Err(failure)) => tracing::warn!(%failure, "the failed start couldn't be reported to Lambda"),
        Err(_) => tracing::warn!("the failed start couldn't be reported to Lambda: no answer in {BOUND:?}"),
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
    // The content of the answer isn't needed. Once its first byte is here, Lambda has received the report.
    stream.read(&mut [0; 1]).await.map(drop)
}
