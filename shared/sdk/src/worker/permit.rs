//! Permits to run work in this process: most work runs in parallel; work that may have killed another worker runs
//! alone.

use std::any::Any;
use std::sync::Arc;

use tokio::sync::RwLock;

/// The lock of the process, shared by all its queues. Permits are granted in the order of the requests.
#[derive(Clone, Default)]
pub(super) struct Permits(Arc<RwLock<()>>);

/// A permit to claim and run work. It ends when it is dropped.
pub(super) type Permit = Arc<dyn Any + Send + Sync>;

impl Permits {
    /// Waits for a permit to run in parallel with others.
    pub(super) async fn shared(&self) -> Permit {
        Arc::new(Arc::clone(&self.0).read_owned().await)
    }

    /// Waits for a permit to run alone: all others have ended, and new ones wait.
    pub(super) async fn alone(&self) -> Permit {
        Arc::new(Arc::clone(&self.0).write_owned().await)
    }
}
