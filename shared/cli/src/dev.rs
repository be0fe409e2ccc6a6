//! `tickover dev`: the whole system in one process, for a laptop.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use tickover_core::duration::Millis;
use tickover_core::limits::Limits;
use tickover_embedded::{HostName, Local, Storage, Ticks};
use tickover_service::config::Surroundings;
use tokio::net::TcpListener;

use crate::argument::{duration, duration_or_zero};

/// Options of `tickover dev`.
#[derive(Args, Debug)]
pub(crate) struct DevArgs {
    /// Where to listen; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:7070")]
    listen: SocketAddr,
    /// Answer callers that know the server by this name or address as well; may be repeated
    ///
    /// Without it only localhost and loopback addresses are answered: a web page could otherwise reach the server by
    /// a name of its own.
    #[arg(long, value_name = "HOST", env = "TICKOVER_ALLOW_HOST", value_delimiter = ',')]
    allow_host: Vec<HostName>,
    /// Keep the data in this file (made if missing); without it, data lives in memory
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
    /// How often the tick comes; deadlines don't wait for it
    #[arg(long, default_value = "1m", value_name = "DURATION", value_parser = duration)]
    tick: Millis,
    /// How late each tick comes, as a schedule on AWS may
    #[arg(long, default_value = "0", hide = true, value_name = "DURATION", value_parser = duration_or_zero)]
    tick_late: Millis,
}

/// Runs the server until it is interrupted.
pub(crate) async fn run(args: DevArgs) -> anyhow::Result<()> {
    let listener =
        TcpListener::bind(args.listen).await.with_context(|| format!("can't listen on {}", args.listen))?;
    let storage = args.data.map_or(Storage::Memory, Storage::File);
    let carry_trace = Surroundings::from_env().carry_trace;
    let limits = Limits { carry_trace, ..Limits::default() };
    let is_known = args.listen.ip().is_loopback() || !args.allow_host.is_empty();
    let local = Local::open(&storage, limits).await?.allow_hosts(args.allow_host);
    // Only now: whoever reads this line may call.
    println!("listening on http://{}", listener.local_addr()?);
    if !is_known {
        eprintln!("callers on other machines are refused: name this one with --allow-host");
    }
    if let Storage::File(path) = &storage {
        eprintln!("data in {}", path.display());
    }
    let ticks = Ticks { every: args.tick, late: args.tick_late };
    local.serve(listener, ticks, interrupted()).await?;
    Ok(())
}

/// Resolves on Ctrl-C or when the system asks the process to end.
pub(crate) async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
        }
        Err(_) => drop(tokio::signal::ctrl_c().await),
    }
}
