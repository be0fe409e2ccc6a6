//! The store of one machine, in memory and in a file.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tickover_service::ports::Store;
use tickover_sqlite::SqliteStore;

use crate::store;

#[tokio::test]
async fn the_sqlite_store_in_memory_conforms() {
    store::run(|| async { Arc::new(SqliteStore::memory().unwrap()) as Arc<dyn Store> }).await;
}

#[tokio::test]
async fn the_sqlite_store_in_a_file_conforms() {
    let folder = tempfile::tempdir().unwrap();
    let files = AtomicUsize::new(0);
    store::run(|| {
        let path = folder.path().join(format!("{}.db", files.fetch_add(1, Ordering::Relaxed)));
        async move { Arc::new(SqliteStore::file(&path).unwrap()) as Arc<dyn Store> }
    })
    .await;
}
