//! The local system, as `tickover dev` runs it.

use std::net::Ipv4Addr;

use anyhow::Result;
use tickover_core::limits::Limits;
use tickover_embedded::{Local, Storage, Ticks};
use tickover_service::Service;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// A running system; dropping it stops it.
pub(super) struct System {
    pub(super) service: Service,
    _server: JoinSet<()>,
}

/// Starts the system; returns its address as well.
pub(super) async fn start() -> Result<(System, String)> {
    let local = Local::open(&Storage::Memory, Limits::default()).await?;
    let service = local.service().clone();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let base = format!("http://{}", listener.local_addr()?);
    let mut server = JoinSet::new();
    server.spawn(async move {
        // If the server stopped, the callers' requests would fail first.
        drop(local.serve(listener, Ticks::default(), std::future::pending()).await);
    });
    Ok((System { service, _server: server }, base))
}
