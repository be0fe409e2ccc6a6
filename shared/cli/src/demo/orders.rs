//! The demo's second half: a workflow whose worker is killed in the middle of it.

use std::time::Instant;

use anyhow::{Context as _, ensure};
use indicatif::ProgressBar;
use reqwest::Method;
use serde_json::{Value, json};
use tickover::{Registry, Worker, WorkerSettings};
use tickover_core::duration::Millis;
use tickover_core::id::WorkerName;
use tickover_service::Service;
use tokio::task::JoinHandle;

use super::order::{Order, Receipt, fulfil, packing_has_begun, print_label};
use super::{BOUND, LOOK_EVERY, say};
use crate::client::Client;
use crate::execution;

/// The order.
const ORDER: &str = "order-7";
/// A lease that is over soon, so that nobody has to wait long for the next worker.
const LEASE: Millis = Millis::from_secs(2);

/// Runs the order to its end, and gives its timeline for people to read.
pub(super) async fn show(client: &Client, service: &Service, bar: &ProgressBar) -> anyhow::Result<String> {
    let order = Order { number: 7, boxes: ["books", "lamps", "chairs"].map(str::to_owned).to_vec() };
    let start = json!({ "id": ORDER, "workflow": "order-fulfilment", "queue": "orders", "input": order });
    let started: Value = call(client, Method::POST, &["executions"], Some(&start)).await?;
    ensure!(started["execution"]["status"] == "pending", "{started}");
    let doomed = hire(service, "doomed")?;
    let began = Instant::now();
    while !packing_has_begun() {
        ensure!(began.elapsed() < BOUND, "nobody began to pack {ORDER}");
        tokio::time::sleep(LOOK_EVERY).await;
    }
    // It is dropped where it stands: it has no chance to say anything.
    doomed.abort();
    say(bar, format!("{ORDER}: its worker was killed in the middle of a step; another one starts"));
    let worker = hire(service, "steady")?;
    let shipped = json!({ "payload": { "carrier": "a bicycle" } });
    let _: Value =
        call(client, Method::POST, &["executions", ORDER, "events", "shipped"], Some(&shipped)).await?;
    let ended = result(client).await;
    worker.abort();
    let ended = ended?;
    let receipt: Receipt = serde_json::from_value(ended["output"].clone()).context("the order's receipt")?;
    let expected = Receipt {
        charge: "charge-7".to_owned(),
        labels: ["books", "lamps", "chairs"].map(|content| format!("label for {content}")).to_vec(),
        transport: "post, stamp 7".to_owned(),
        carrier: "a bicycle".to_owned(),
    };
    ensure!(receipt == expected, "the receipt is {receipt:?}");
    execution::timeline_of(ORDER, client).await
}

/// Waits for the order's end.
async fn result(client: &Client) -> anyhow::Result<Value> {
    let began = Instant::now();
    loop {
        let mut answer: Value = call(client, Method::GET, &["executions", ORDER], None).await?;
        let execution = answer["execution"].take();
        match execution["status"].as_str() {
            Some("completed") => return Ok(execution),
            Some("pending" | "running" | "waiting") => {}
            Some(_) | None => anyhow::bail!("the order ended as {execution}"),
        }
        ensure!(began.elapsed() < BOUND, "{ORDER} hasn't ended: {execution}");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// A worker for orders and labels in this process.
fn hire(service: &Service, name: &str) -> anyhow::Result<JoinHandle<()>> {
    let registry = Registry::new().with(fulfil).with_step::<print_label>();
    let name = WorkerName::parse(name)?;
    let settings = WorkerSettings { name: Some(name), lease: LEASE, ..WorkerSettings::default() };
    let worker = Worker::new(service.clone(), registry, settings)?;
    Ok(tokio::spawn(async move { worker.run(std::future::pending()).await }))
}

async fn call(client: &Client, method: Method, path: &[&str], body: Option<&Value>) -> anyhow::Result<Value> {
    let body = body.map(serde_json::value::to_raw_value).transpose()?;
    Ok(client.call(method, path, &[], body.as_deref()).await?)
}
