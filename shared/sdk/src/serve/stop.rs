//! When the process is asked to stop.
#![cfg_attr(
    not(any(feature = "aws", feature = "embedded")),
    expect(dead_code, reason = "only workers that poll are asked to stop")
)]

/// Resolves on Ctrl-C or SIGTERM.
#[cfg(unix)]
pub(super) async fn asked_to_stop() {
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
pub(super) async fn asked_to_stop() {
    drop(tokio::signal::ctrl_c().await);
}
