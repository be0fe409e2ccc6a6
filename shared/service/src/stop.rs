//! When the process is asked to stop.

/// Resolves on Ctrl-C or SIGTERM.
#[cfg(unix)]
pub async fn stop_requested() {
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

/// Resolves on Ctrl-C.
#[cfg(not(unix))]
pub async fn stop_requested() {
    drop(tokio::signal::ctrl_c().await);
}
