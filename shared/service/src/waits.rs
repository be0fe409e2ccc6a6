//! Waits that end early: a claim without tasks and a wait for an outcome answer with what there is, because the server stops,
//! its caller sends nothing more, or another caller needs its connection.

use tokio::sync::watch;

tokio::task_local! {
    /// Whether the waits of this call are over.
    static OVER: watch::Receiver<bool>;
}

/// Runs a call. Its waits end once `over` is true.
pub async fn end_with<T>(over: watch::Receiver<bool>, call: impl Future<Output = T>) -> T {
    OVER.scope(over, call).await
}

/// Whether the waits of the call that runs here are over.
pub(crate) fn are_over() -> bool {
    OVER.try_with(|over| *over.borrow()).unwrap_or(false)
}

/// Resolves when the waits of the call that runs here are over. Never, if nothing ends them.
pub(crate) async fn over() {
    if let Ok(mut over) = OVER.try_with(watch::Receiver::clone)
        && over.wait_for(|over| *over).await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}
