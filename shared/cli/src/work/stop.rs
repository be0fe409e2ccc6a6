//! How a worker is asked to stop: first it finishes its tasks, then it ends them.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::show::say;

/// The phase of stopping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Working,
    /// No new tasks; running ones are finished.
    Finishing,
    /// Running tasks are ended and released.
    Aborting,
}

/// Says whether and how to stop. Clones share the same state.
#[derive(Clone, Debug)]
pub(super) struct Stop(watch::Receiver<Phase>);

impl Stop {
    /// Listens for Ctrl-C and SIGTERM. The first signal starts `Finishing`, the second `Aborting`.
    pub(super) fn listen() -> std::io::Result<Self> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let (sender, phase) = watch::channel(Phase::Working);
        tokio::spawn(async move {
            for (phase, word) in [
                (Phase::Finishing, "finishing the running tasks, claiming no new ones (again: end them)"),
                (Phase::Aborting, "ending the running tasks"),
            ] {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                say(word);
                sender.send_replace(phase);
            }
            // Later signals have no effect. The channel stays open until the last receiver is dropped.
            sender.closed().await;
        });
        Ok(Self(phase))
    }

    /// Whether no new tasks are to be claimed.
    pub(super) fn is_finishing(&self) -> bool {
        *self.0.borrow() >= Phase::Finishing
    }

    /// Whether running tasks are to be ended.
    pub(super) fn is_aborting(&self) -> bool {
        *self.0.borrow() >= Phase::Aborting
    }

    /// Waits until no new tasks are to be claimed.
    pub(super) async fn finishing(&self) {
        self.reached(Phase::Finishing).await;
    }

    /// Waits until running tasks are to be ended.
    pub(super) async fn aborting(&self) {
        self.reached(Phase::Aborting).await;
    }

    async fn reached(&self, wanted: Phase) {
        let is_reached = self.0.clone().wait_for(|phase| *phase >= wanted).await.is_ok();
        if !is_reached {
            // The sender is gone: no signal can arrive any more.
            std::future::pending::<()>().await;
        }
    }
}
