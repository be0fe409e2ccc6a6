//! Which calls are under way.

use std::sync::Arc;

use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// The calls of a worker that change something. If one was cut, its record would be written and the message that follows not
/// sent. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Calls(Arc<RwLock<()>>);

impl Calls {
    /// A call is under way until the guard is dropped.
    pub(super) async fn begin(&self) -> OwnedRwLockReadGuard<()> {
        Arc::clone(&self.0).read_owned().await
    }

    /// Waits until no call is under way. Until the guard is dropped, none begins.
    pub(super) async fn pause(&self) -> OwnedRwLockWriteGuard<()> {
        Arc::clone(&self.0).write_owned().await
    }
}
