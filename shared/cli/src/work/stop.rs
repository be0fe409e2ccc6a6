//! How a worker is told to stop: politely at first, then for good.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::show::say;

/// How far stopping has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Working,
    /// Nothing new; what runs is finished.
    Finishing,
    /// What runs is ended and given back.
    Aborting,
}

/// Tells whether and how to stop. Clones tell the same.
#[derive(Clone, Debug)]
pub(super) struct Stop(watch::Receiver<Phase>);

impl Stop {
    /// Listens for Ctrl-C and SIGTERM: the first is polite, the second isn't.
    pub(super) fn listen() -> std::io::Result<Self> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let (sender, phase) = watch::channel(Phase::Working);
        tokio::spawn(async move {
            for (phase, word) in [
                (Phase::Finishing, "finishing what is running, taking nothing new (again: end it at once)"),
                (Phase::Aborting, "ending what is running"),
            ] {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                say(word);
                sender.send_replace(phase);
            }
            // Later signals change nothing; the channel lives as long as somebody listens.
            sender.closed().await;
        });
        Ok(Self(phase))
    }

    /// Whether nothing new is to be taken.
    pub(super) fn is_finishing(&self) -> bool {
        *self.0.borrow() >= Phase::Finishing
    }

    /// Whether what runs is to be ended.
    pub(super) fn is_aborting(&self) -> bool {
        *self.0.borrow() >= Phase::Aborting
    }

    /// Waits until nothing new is to be taken.
    pub(super) async fn finishing(&self) {
        self.reached(Phase::Finishing).await;
    }

    /// Waits until what runs is to be ended.
    pub(super) async fn aborting(&self) {
        self.reached(Phase::Aborting).await;
    }

    async fn reached(&self, wanted: Phase) {
        let told = self.0.clone().wait_for(|phase| *phase >= wanted).await.is_ok();
        if !told {
            // Nobody is left who could tell.
            std::future::pending::<()>().await;
        }
    }
}
