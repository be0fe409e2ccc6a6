//! Batches whose tasks were claimed one after the other.

use std::sync::{Arc, Mutex};

use tickover_core::duration::Millis;
use tickover_core::id::QueueName;
use tickover_core::limits::Limits;
use tickover_core::time::Timestamp;
use tickover_service::claim::ClaimRequest;
use tickover_service::memory::{ManualClock, MemoryQueue, MemoryStore, Queues};
use tickover_service::ports::Clock as _;
use tickover_service::system::SystemIds;
use tickover_service::{Ports, Service};

use super::*;
use crate::client::Client;
use crate::error::Failure;
use crate::{Registry, WorkerSettings};

const START: Timestamp = Timestamp::from_millis(1_767_225_600_000);
const WRITE: Millis = Millis::from_secs(20);

/// When the code started, and with which letters.
type Call = (Timestamp, Vec<u32>);

struct Desk {
    clock: Arc<ManualClock>,
    calls: Arc<Mutex<Vec<Call>>>,
}

#[tickover::step(queue = "post", batch(2, within = "1s"))]
async fn stamp(#[state] desk: &Desk, letters: Vec<u32>) -> Vec<Result<u32, Failure>> {
    desk.calls.lock().unwrap().push((desk.clock.now(), letters.clone()));
    letters.into_iter().map(Ok).collect()
}

#[tokio::test]
async fn a_task_does_not_outlive_its_lease_while_others_of_its_batch_are_given_back() {
    let clock = Arc::new(ManualClock::new(START));
    let slow = Arc::clone(&clock);
    let ports = Ports {
        store: Arc::new(MemoryStore::watched(Box::new(move |_| slow.advance(WRITE)))),
        queue: Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen)),
        clock: clock.clone(),
        ids: Arc::new(SystemIds),
    };
    let service = Service::new(ports, Limits::default());
    let client = Client::from(service.clone());
    let lease = Millis::from_secs(50);
    let queue = QueueName::parse("post").unwrap();
    for letter in [1, 2] {
        client.schedule(stamp(letter)).await.unwrap();
    }
    let request = ClaimRequest { worker: None, max: 1, lease, wait: Millis::ZERO, provides: vec![] };
    let mut claimed = service.claim(&queue, &request).await.unwrap();
    claimed.extend(service.claim(&queue, &request).await.unwrap());
    claimed.reverse();
    let ends_at: Vec<_> = claimed.iter().map(|claimed| claimed.lease_expires_at).collect();
    assert!(ends_at[1] <= clock.now() && clock.now() < ends_at[0]);

    let calls = Arc::default();
    let desk = Desk { clock, calls: Arc::clone(&calls) };
    let registry = Registry::new().with_step::<stamp>().with_state(desk);
    let worker = Worker::new(service, registry, WorkerSettings::default()).unwrap();
    let mut ends = worker.attempt_together(claimed).await;
    ends.sort_by_key(|(_, end)| *end == TaskEnd::Lost);

    let calls = calls.lock().unwrap();
    assert!(matches!(calls.as_slice(), [(at, letters)] if *at < ends_at[0] && *letters == [2]), "{calls:?}");
    assert!(matches!(ends.as_slice(), [(_, TaskEnd::Reported), (_, TaskEnd::Lost)]), "{ends:?}");
}
