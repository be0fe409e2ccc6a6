//! The local system, as `tickover dev` runs it.

use std::net::Ipv4Addr;

use anyhow::Result;
use tickover_core::limits::Limits;
use tickover_embedded::{Local, Storage, Ticks};
use tickover_service::Service;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// A running system; it ends when this is dropped.
pub(super) struct System {
    pub(super) service: Service,
    _server: JoinSet<()>,
}

/// Starts it, and says where.
pub(super) async fn start() -> Result<(System, String)> {
    let local = Local::open(&Storage::Memory, Limits::default()).await?;
    let service = local.service().clone();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let base = format!("http://{}", listener.local_addr()?);
    let mut server = JoinSet::new();
    server.spawn(async move {
        // If it ever ended, its users would be the first to tell.
        drop(local.serve(listener, Ticks::default(), std::future::pending()).await);
    });
    Ok((System { service, _server: server }, base))
}
