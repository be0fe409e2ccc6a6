//! The page without a mouse.

use crate::driver::{Browser, browse};
use crate::site::Site;

const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";
const DOWN: &str = "\u{e015}";
const ESCAPE: &str = "\u{e00c}";

/// Presses Tab until the focus is on something whose name begins so.
async fn tab_to(browser: &Browser, name: &str) {
    for _ in 0..80 {
        let focused =
            "document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent.trim()";
        if browser.value(focused).await.as_str().is_some_and(|focused| focused.starts_with(name)) {
            return;
        }
        browser.type_keys(TAB).await;
    }
    panic!("Tab never leads to {name}");
}

#[tokio::test]
async fn a_failed_step_is_found_and_retried_with_the_keyboard_alone() {
    let site = Site::empty().await;
    site.order(13).await;
    browse(&site.url(), async |browser| {
        browser.open("#/").await;
        browser.sees("workflow order, step charge").await;
        tab_to(browser, "workflow order, step charge").await;
        browser.type_keys(ENTER).await;
        browser.sees("Retry the step of all").await;
        tab_to(browser, "order-13").await;
        browser.type_keys(ENTER).await;
        browser.sees("What happens next").await;
        tab_to(browser, "Retry the step order-13").await;
        browser.type_keys(ENTER).await;
        browser.misses("Its step charge failed").await;
        assert!(site.execution("order-13").await.get("ended_at").is_none());
    })
    .await;
}

#[tokio::test]
async fn a_dialog_keeps_the_focus_and_escape_means_no() {
    let site = Site::empty().await;
    site.order(7).await;
    browse(&site.url(), async |browser| {
        browser.open("#/executions/order-7").await;
        browser.sees("What happens next").await;
        tab_to(browser, "Cancel order-7").await;
        browser.type_keys(ENTER).await;
        browser.until("document.activeElement.textContent === 'No, go back'").await;
        browser.type_keys(ESCAPE).await;
        browser.until("document.querySelector('dialog') === null").await;
        browser.until("document.activeElement.getAttribute('aria-label') === 'Cancel order-7'").await;
        assert_eq!(site.execution("order-7").await["status"], "waiting");
        // The slash leads to the search, the arrows from lane to lane.
        browser.type_keys("/").await;
        browser.until("document.activeElement.id === 'search-id'").await;
        tab_to(browser, "execution open,").await;
        browser.type_keys(DOWN).await;
        browser.until("document.activeElement.dataset.index === '1'").await;
        browser.type_keys(ENTER).await;
        browser.until("document.querySelector('.details h3').textContent.includes('charge')").await;
    })
    .await;
}
