//! Who may work beside whom in this process: most work side by side, what may have killed another worker alone.

use std::any::Any;
use std::sync::Arc;

use tokio::sync::{RwLock, watch};

/// The process's room, shared by all its queues. Who asked first is let in first.
#[derive(Clone)]
pub(super) struct Rooms {
    room: Arc<RwLock<()>>,
    /// How many wait to be alone.
    wanted: Arc<watch::Sender<usize>>,
}

/// The permission to take work and to do it, for as long as this lives.
pub(super) type Room = Arc<dyn Any + Send + Sync>;

impl Default for Rooms {
    fn default() -> Self {
        Self { room: Arc::default(), wanted: Arc::new(watch::Sender::new(0)) }
    }
}

impl Rooms {
    /// Beside others.
    pub(super) async fn shared(&self) -> Room {
        Arc::new(Arc::clone(&self.room).read_owned().await)
    }

    /// Waits until all others have ended, and keeps new ones out.
    pub(super) async fn alone(&self) -> Room {
        self.wanted.send_modify(|count| *count += 1);
        let _wanted = Wanted(&self.wanted);
        Arc::new(Arc::clone(&self.room).write_owned().await)
    }

    /// Returns once somebody waits to be alone: who only waits for work makes way.
    pub(super) async fn is_wanted(&self) {
        // It fails only when there is no sender, and this is one.
        let mut wanted = self.wanted.subscribe();
        let _seen = wanted.wait_for(|count| *count > 0).await;
    }
}

/// Somebody who waits to be alone, until he is or gives up.
struct Wanted<'a>(&'a watch::Sender<usize>);

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
