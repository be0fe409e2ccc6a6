//! The picture of the README.

use tickover_dashboard::Settings;

use crate::driver::browse;
use crate::site::{Server, Site, router};

/// The most bytes that it may have.
const BYTES_MAX: usize = 100_000;

/// `cargo xtask screenshots` says in `TICKOVER_PICTURE` where to write it.
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
        let picture = browser.picture().await;
        assert!(picture.len() < BYTES_MAX, "{} bytes", picture.len());
        if let Ok(path) = std::env::var("TICKOVER_PICTURE") {
            std::fs::write(path, picture).unwrap();
        }
    })
    .await;
}
