//! The pictures of the README.

use std::path::Path;

use serde_json::json;
use tickover_core::duration::Millis;
use tickover_dashboard::Settings;
use tickover_service::ports::Clock as _;
use tickover_service::system::SystemClock;

use crate::driver::browse;
use crate::jobs::Incident;
use crate::site::{Server, Site, router};

/// The most bytes that each may have.
const BYTES_MAX: usize = 150_000;

/// `cargo xtask screenshots` says in `TICKOVER_PICTURES` into which folder to write them.
fn keep(picture: &[u8], name: &str) {
    assert!(picture.len() < BYTES_MAX, "{} bytes", picture.len());
    if let Ok(folder) = std::env::var("TICKOVER_PICTURES") {
        std::fs::write(Path::new(&folder).join(name), picture).unwrap();
    }
}

#[tokio::test]
async fn a_picture_of_an_execution_is_small() {
    let site = Site::empty().await;
    site.order(7).await;
    let command = ["tickover", "--stack", "shop"].map(str::to_owned).to_vec();
    let place = Some("stack shop".to_owned());
    let settings = Settings { metrics: false, place, command, ..Settings::default() };
    let server = Server::start("127.0.0.1:0", router(site.env.service(), settings)).await;
    browse(&server.url(), async |browser| {
        browser.look("light", 1000).await;
        browser.open("#/executions/order-7").await;
        browser.sees("settle").await;
        browser.value("document.getElementById('part-calls').scrollIntoView()").await;
        keep(&browser.picture().await, "picture.png");
    })
    .await;
}

/// A day of mail that ends badly: what failed, since when, and which queue has no workers.
#[tokio::test]
async fn a_picture_of_an_overview_in_an_incident_is_small() {
    let command = ["tickover", "--endpoint", "http://tasks:7070"].map(str::to_owned).to_vec();
    let settings = Settings { place: Some("tasks:7070".to_owned()), command, ..Settings::default() };
    let incident = Incident::of(settings).await;
    // The clocks of both agree at the end: 47 halves of an hour, 20 minutes and two.
    let day_ago = SystemClock.now().minus(Millis::from_secs((47 * 30 + 20 + 2) * 60));
    incident.scene.clock.advance(day_ago.since(incident.scene.service.now()));
    for half in 0..48 {
        for number in 0..6 + half % 5 {
            incident.task(&format!("mail-{half}-{number}"), json!({})).await;
        }
        let late = 1 + u64::saturating_sub(half, 43);
        incident.pass(late);
        for number in 0..6 + half % 5 {
            let id = format!("mail-{half}-{number}");
            let claimed = incident.post(&format!("tasks/{id}/claim"), json!({"worker": "ada"})).await;
            let lease = &claimed["tasks"][0]["lease"];
            incident.post(&format!("tasks/{id}/complete"), json!({"lease": lease})).await;
        }
        let is_bad = half >= 44;
        for number in 0..if is_bad { 5 } else { u64::from(half == 16) } {
            let code = if half == 16 || number == 4 { "mailbox_full" } else { "greylisted" };
            incident.failed(&format!("lost-{half}-{number}"), code).await;
        }
        for number in 0..if is_bad { half - 40 } else { 0 } {
            let id = format!("report-{half}-{number}");
            incident.task(&id, json!({"queue": "reports", "kind": "daily"})).await;
        }
        incident.scene.service.keep_history().await.unwrap();
        incident.pass(if half == 47 { 20 } else { 30 } - late);
    }
    incident.execution("order-7", json!({})).await;
    incident.post("executions/order-7/pause", json!({})).await;
    incident.pass(2);
    incident.post("queues/emails/claim", json!({"worker": "ada"})).await;
    browse(&incident.server.url(), async |browser| {
        browser.look("light", 1200).await;
        let whole = json!({"width": 1200, "height": 970, "deviceScaleFactor": 1, "mobile": false});
        browser.devtools("Emulation.setDeviceMetricsOverride", whole).await;
        browser.open("#/").await;
        browser.until("document.querySelector('.charts')").await;
        browser.sees("2 queues without workers: reports, workflows").await;
        keep(&browser.picture().await, "incident.png");
    })
    .await;
}
