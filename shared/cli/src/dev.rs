//! `tickover dev`: the whole system in one process, for a laptop.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use tickover_core::duration::Millis;
use tickover_core::limits::Limits;
use tickover_embedded::{HostName, Local, Storage, Ticks};
use tickover_service::config::ProcessEnvironment;
use tickover_service::stop::stop_requested;
use tokio::net::TcpListener;

use crate::argument::{duration, duration_or_zero};
use crate::callers;
use crate::show::{print, say};

/// Options of `tickover dev`.
#[derive(Args, Debug)]
pub(crate) struct DevArgs {
    /// Where to listen; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:7070")]
    listen: SocketAddr,
    /// Also answer callers that use this host name or address for the server; may be repeated
    ///
    /// By default the server answers only callers on this machine, and only requests for localhost and loopback addresses.
    /// Otherwise a web page could reach the server through its own host name. With this option it also answers other
    /// machines, if --listen lets them reach it.
    #[arg(long, value_name = "HOST", env = "TICKOVER_ALLOW_HOST", value_delimiter = ',')]
    allow_host: Vec<HostName>,
    /// Keep the data in this file (created if missing); without it, the data is kept in memory
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
    /// The address of this server for whoever gets a callback; without it, the address on which it listens
    #[arg(long, value_name = "URL", env = "TICKOVER_CALLBACK_URL")]
    callback_url: Option<String>,
    /// How often the tick runs; deadlines don't wait for it
    #[arg(long, default_value = "1m", value_name = "DURATION", value_parser = duration)]
    tick: Millis,
    /// How late each tick runs, as a schedule on AWS may be
    #[arg(long, default_value = "0", hide = true, value_name = "DURATION", value_parser = duration_or_zero)]
    tick_late: Millis,
}

pub(crate) async fn run(args: DevArgs) -> anyhow::Result<()> {
    let listener =
        TcpListener::bind(args.listen).await.with_context(|| format!("can't listen on {}", args.listen))?;
    let storage = args.data.map_or(Storage::Memory, Storage::File);
    let carry_trace = ProcessEnvironment::from_env().carry_trace;
    let limits = Limits { carry_trace, ..Limits::default() };
    let local = Local::open(&storage, limits).await?.allow_hosts(args.allow_host.clone());
    let local = local.callbacks_at(args.callback_url.as_deref(), listener.local_addr()?);
    let stop = stop_requested();
    // Only now: whoever reads this line may call the server, or stop it, at once.
    print(&format!("listening on http://{}\n", listener.local_addr()?))?;
    callers::tell(args.listen, &args.allow_host, "read and change all of its data");
    if let Storage::File(path) = &storage {
        say(&format!("data in {}", path.display()));
    }
    let ticks = Ticks { every: args.tick, late: args.tick_late };
    local.serve(listener, ticks, stop).await?;
    Ok(())
}
