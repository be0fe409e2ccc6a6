//! When the process is asked to stop.

/// Resolves on Ctrl-C or SIGTERM. From this call on, not from its first poll on, these signals no longer end the process: so
/// whoever reads that a server listens can stop it.
#[cfg(unix)]
pub fn stop_requested() -> impl Future<Output = ()> + Send + 'static {
    use tokio::signal::unix::{Signal, SignalKind, signal};
    let signals = [SignalKind::interrupt(), SignalKind::terminate()].map(signal);
    async move {
        let mut waits: Vec<Signal> = signals.into_iter().flatten().collect();
        if waits.is_empty() {
            std::future::pending::<()>().await;
        }
        futures::future::select_all(waits.iter_mut().map(|signal| Box::pin(signal.recv()))).await;
    }
}

/// Resolves on Ctrl-C.
#[cfg(not(unix))]
pub async fn stop_requested() {
    drop(tokio::signal::ctrl_c().await);
}
