//! The picture of the README.

use serde_json::json;

use crate::driver::browse;
use crate::site::Site;

/// The most bytes that it may have.
const BYTES_MAX: usize = 100_000;

/// `cargo xtask screenshots` says in `TICKOVER_PICTURE` where to write it.
#[tokio::test]
async fn a_picture_of_an_execution_is_small() {
    let site = Site::empty().await;
    site.order(7).await;
    site.task("mail-1", &json!({})).await;
    browse(&site.url(), async |browser| {
        browser.look("light", 1100).await;
        browser.open("#/executions/order-7").await;
        browser.sees("settle").await;
        browser.value("document.getElementById('part-timeline').scrollIntoView({block: 'center'})").await;
        let picture = browser.picture().await;
        assert!(picture.len() < BYTES_MAX, "{} bytes", picture.len());
        if let Ok(path) = std::env::var("TICKOVER_PICTURE") {
            std::fs::write(path, picture).unwrap();
        }
    })
    .await;
}
