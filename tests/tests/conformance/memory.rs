//! The adapters in memory.

use std::sync::Arc;

use tickover_core::time::Timestamp;
use tickover_service::memory::{ManualClock, MemoryQueue, MemoryStore, Queues};
use tickover_service::ports::Listed;
use tickover_service::system::SystemClock;

use crate::{queue, store};

#[tokio::test]
async fn the_store_in_memory_conforms() {
    for listed in [Listed::Failed, Listed::All] {
        store::run(|| async move { store::listing(listed, MemoryStore::new().listing(listed)) }).await;
    }
}

#[tokio::test]
async fn the_queue_in_memory_conforms_in_virtual_time() {
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_700_000_000_000)));
    let queue = MemoryQueue::new(Arc::<ManualClock>::clone(&clock), Queues::OnOpen);
    clock.drive(queue::check(&queue, &*clock)).await.unwrap();
}

#[tokio::test]
async fn the_queue_in_memory_conforms_in_real_time() {
    let queue = MemoryQueue::new(Arc::new(SystemClock), Queues::Fixed(queue::queue_names()));
    queue::check(&queue, &SystemClock).await.unwrap();
}
