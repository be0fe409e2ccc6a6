//! A local server at the level of HTTP, over real sockets: requests of web pages, and silent callers.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod blocking;
mod hurried;
mod pages;
mod restarts;
mod silence;
mod stored;

use std::net::SocketAddr;

use serde_json::Value;
use tickover_core::limits::Limits;
use tickover_embedded::{Bounds, Local, Storage, Ticks};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A server, and a way to stop it.
struct Server {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
}

/// The answer.
#[derive(Debug)]
struct Reply {
    status: u16,
    head: String,
    text: String,
    body: Value,
}

impl Server {
    async fn start() -> Self {
        Self::over(Local::open(&Storage::Memory, Limits::default()).await.unwrap()).await
    }

    async fn bounded(bounds: Bounds) -> Self {
        Self::over(Local::open(&Storage::Memory, Limits::default()).await.unwrap().bounds(bounds)).await
    }

    async fn over(local: Local) -> Self {
        Self::at("127.0.0.1:0", local).await
    }

    async fn at(address: &str, local: Local) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = local.serve(listener, Ticks::default(), async { drop(stopped.await) });
        Self { address, stop, served: tokio::spawn(async { serving.await.unwrap() }) }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends a request of these lines and this body on its own connection.
    async fn send(&self, lines: &[&str], body: &str) -> Reply {
        let mut stream = self.connect().await;
        let length = format!("content-length: {}", body.len());
        let lines = [lines, &[&length, "connection: close"]].concat();
        stream.write_all(format!("{}\r\n\r\n{body}", lines.join("\r\n")).as_bytes()).await.unwrap();
        reply(&mut stream).await
    }

    async fn get(&self, path: &str) -> Reply {
        self.send(&[&format!("GET {path} HTTP/1.1"), "host: localhost"], "").await
    }

    async fn post(&self, path: &str, body: &str) -> Reply {
        let line = format!("POST {path} HTTP/1.1");
        self.send(&[&line, "host: localhost", "content-type: application/json"], body).await
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.served.await.unwrap();
    }
}

/// All bytes until the server closes the connection, as one answer.
async fn reply(stream: &mut TcpStream) -> Reply {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    let answer = String::from_utf8(bytes).unwrap();
    let (head, text) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).map_or(0, |status| status.parse().unwrap());
    let body = serde_json::from_str(text).unwrap_or(Value::Null);
    Reply { status, head: head.to_ascii_lowercase(), text: text.to_owned(), body }
}

impl Reply {
    /// Checks that the answer is this problem.
    #[track_caller]
    fn problem(&self, status: u16, code: &str) {
        assert_eq!((self.status, self.body["code"].as_str()), (status, Some(code)), "{self:?}");
        assert!(self.head.contains("content-type: application/problem+json"), "{self:?}");
        assert!(!self.head.contains("access-control-allow"), "{self:?}");
    }

    #[track_caller]
    fn ok(&self, status: u16) -> &Value {
        assert_eq!(self.status, status, "{self:?}");
        &self.body
    }
}
