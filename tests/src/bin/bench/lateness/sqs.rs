//! A deployment of which only SQS is emulated: the gateway's API, a tick a minute, and Lambda's side of the queue of
//! timers.
//!
//! Its table is embedded: what is measured is how well timers survive a queue that counts whole seconds.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, QueueAttributeName};
use futures::future::join_all;
use tickover_core::duration::Millis;
use tickover_core::id::QueueName;
use tickover_core::limits::Limits;
use tickover_core::time::Timestamp;
use tickover_dynamodb::{DynamoStore, Table};
use tickover_service::ports::{Clock, Queue as _};
use tickover_service::system::{SystemClock, SystemIds};
use tickover_service::{Ports, Service};
use tickover_sqs::{SqsQueue, create_queue};
use tickover_tests::dynamodb::LocalDynamo;
use tickover_tests::emulator::{aws_config, unique};
use tickover_tests::scene::queue_name;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Batches of the queue of timers that are dealt with at once. Lambda begins with so many and adds more only while
/// messages pile up; here it never does.
const POLLERS: usize = 5;
const BATCH: usize = 10;
/// A function's time, and what its queue's visibility has to exceed.
const BUDGET: Millis = Millis::from_secs(50);
const VISIBILITY: Millis = Millis::from_secs(60);
const POLL: Millis = Millis::from_secs(20);
const MINUTE_MS: i64 = 60_000;

/// A running system; it ends when this is dropped.
pub(super) struct System {
    pub(super) service: Service,
    client: Client,
    urls: BTreeMap<QueueName, String>,
    _beside: JoinSet<Result<()>>,
}

impl System {
    /// Deletes the queues: others may use the same emulator.
    pub(super) async fn stop(self) -> Result<()> {
        for url in self.urls.values() {
            self.client.delete_queue().queue_url(url).send().await?;
        }
        Ok(())
    }
}

/// Starts it, and says where.
pub(super) async fn start() -> Result<(System, String)> {
    let client = Client::new(&aws_config().await);
    let mut urls = BTreeMap::new();
    let names = ["deadlines", "far-deadlines", "retries", "starts"].map(queue_name);
    for name in names.into_iter().chain([QueueName::timers()]) {
        let visibility = (QueueAttributeName::VisibilityTimeout, VISIBILITY.as_secs_floor().to_string());
        let url = create_queue(&client, &unique("bench"), [visibility]).await?;
        urls.insert(name, url);
    }
    let queue = SqsQueue::new(client.clone(), urls.clone());
    let database = LocalDynamo::memory()?;
    Table::new("bench").create(&database.client()).await?;
    let ports = Ports {
        store: Arc::new(DynamoStore::new(database.client(), "bench")),
        queue: Arc::new(queue.clone()),
        clock: Arc::new(SystemClock),
        ids: Arc::new(SystemIds),
    };
    let service = Service::new(ports, Limits::default());

    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let base = format!("http://{}", listener.local_addr()?);
    let gateway = tickover_api::router(service.clone());
    let mut beside = JoinSet::new();
    beside.spawn(async move { Ok(axum::serve(listener, gateway).await?) });
    beside.spawn(tick_forever(service.clone()));
    let timers = urls.get(&QueueName::timers()).context("a queue of timers")?;
    for _ in 0..POLLERS {
        beside.spawn(poll_forever(service.clone(), queue.clone(), client.clone(), timers.clone()));
    }
    Ok((System { service, client, urls, _beside: beside }, base))
}

/// What a schedule brings: each full minute, from the next one on.
async fn tick_forever(service: Service) -> Result<()> {
    let mut minute = service.now().as_millis().div_euclid(MINUTE_MS);
    loop {
        minute += 1;
        let scheduled_at = Timestamp::from_millis(minute * MINUTE_MS);
        SystemClock.sleep_until(scheduled_at).await;
        service.tick(scheduled_at, service.now().plus(BUDGET)).await?;
    }
}

/// One batch after the other: the messages of each side by side, and those that were dealt with deleted together.
async fn poll_forever(service: Service, queue: SqsQueue, client: Client, url: String) -> Result<()> {
    loop {
        let messages = queue.receive(&QueueName::timers(), BATCH, VISIBILITY, POLL).await?;
        let stop_at = service.now().plus(BUDGET);
        let fires = messages.iter().map(|message| service.fire(message, stop_at));
        let mut done = Vec::new();
        for (place, (message, fired)) in messages.iter().zip(join_all(fires).await).enumerate() {
            // One that failed shows again, as it would in Lambda.
            if fired.is_ok() {
                let entry = DeleteMessageBatchRequestEntry::builder().id(place.to_string());
                done.push(entry.receipt_handle(&message.receipt).build()?);
            }
        }
        if !done.is_empty() {
            client.delete_message_batch().queue_url(&url).set_entries(Some(done)).send().await?;
        }
    }
}
