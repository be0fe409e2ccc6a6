//! The second half of the demo: a workflow whose worker is killed in the middle of a step.

use std::time::Instant;

use anyhow::{Context as _, ensure};
use indicatif::ProgressBar;
use serde_json::json;
use tickover::{Client, Registry, Worker, WorkerSettings};
use tickover_core::duration::Millis;
use tickover_core::id::WorkerName;
use tickover_service::Service;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::order::{Order, Receipt, fulfil, packing_has_started, print_label};
use super::{BOUND, POLL_EVERY, say};
use crate::execution::show;

/// The id of the execution.
const ORDER: &str = "order-7";
/// A short lease, so that the next worker can take over soon.
const LEASE: Millis = Millis::from_secs(2);

/// Runs the order to its end, and returns its timeline as text.
pub(super) async fn show(client: &Client, service: &Service, bar: &ProgressBar) -> anyhow::Result<String> {
    let order = Order { number: 7, boxes: ["books", "lamps", "chairs"].map(str::to_owned).to_vec() };
    let run = client.start(&fulfil, order).id(ORDER).await?;
    let hanging = start_worker(service, "doomed")?;
    let began = Instant::now();
    while !packing_has_started() {
        ensure!(began.elapsed() < BOUND, "no worker started to pack {ORDER}");
        tokio::time::sleep(POLL_EVERY).await;
    }
    // The worker is aborted in the middle of the step: it can't report anything.
    hanging.abort();
    say(bar, format!("{ORDER}: its worker was killed in the middle of a step; another one starts"));
    let worker = start_worker(service, "steady")?;
    run.send_event("shipped", json!({ "carrier": "a bicycle" })).await?;
    let ended = timeout(BOUND, run.result()).await;
    worker.abort();
    let receipt: Receipt = ended.with_context(|| format!("{ORDER} hasn't ended"))??;
    let expected = Receipt {
        charge: "charge-7".to_owned(),
        labels: ["books", "lamps", "chairs"].map(|content| format!("label for {content}")).to_vec(),
        transport: "post, stamp 7".to_owned(),
        carrier: "a bicycle".to_owned(),
    };
    ensure!(receipt == expected, "the receipt is {receipt:?}");
    Ok(show::timeline(&run.timeline().await?))
}

/// Starts a worker for orders and labels in this process.
fn start_worker(service: &Service, name: &str) -> anyhow::Result<JoinHandle<()>> {
    let registry = Registry::new().with(fulfil).with_step::<print_label>();
    let name = WorkerName::parse(name)?;
    let settings = WorkerSettings { name: Some(name), lease: LEASE, ..WorkerSettings::default() };
    let worker = Worker::new(service.clone(), registry, settings)?;
    Ok(tokio::spawn(async move { worker.run(std::future::pending()).await }))
}
