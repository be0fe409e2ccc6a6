//! Who may work beside whom in this process: most work side by side, what may have killed another worker alone.

use std::any::Any;
use std::sync::Arc;

use tokio::sync::RwLock;

/// The process's room, shared by all its queues. Who asked first is let in first.
#[derive(Clone, Default)]
pub(super) struct Rooms(Arc<RwLock<()>>);

/// The permission to take work and to do it, for as long as this lives.
pub(super) type Room = Arc<dyn Any + Send + Sync>;

impl Rooms {
    /// Beside others.
    pub(super) async fn shared(&self) -> Room {
        Arc::new(Arc::clone(&self.0).read_owned().await)
    }

    /// Waits until all others have ended, and keeps new ones out.
    pub(super) async fn alone(&self) -> Room {
        Arc::new(Arc::clone(&self.0).write_owned().await)
    }
}
