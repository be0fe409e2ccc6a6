//! The page follows what happens.

use serde_json::json;

use crate::driver::browse;
use crate::site::Site;

#[tokio::test]
async fn what_happens_is_shown_without_a_reload_and_without_losing_the_focus() {
    let site = Site::empty().await;
    site.order(7).await;
    browse(&site.url(), async |browser| {
        browser.open("#/").await;
        browser.sees("tasks wait").await;
        browser.value("window.unchanged = true").await;
        site.task("mail-1", &json!({})).await;
        browser.until("document.querySelector('.tile .number').textContent === '1'").await;
        site.failed_task("lost").await;
        browser.sees("no_such_address").await;

        browser.open("#/executions/order-7").await;
        browser.sees("settle").await;
        browser.value("document.querySelector('[aria-label=\"Pause order-7\"]').focus()").await;
        site.env.advance("4d").await.unwrap();
        browser.sees("shipped").await;
        browser.until("document.activeElement.getAttribute('aria-label') === 'Pause order-7'").await;
        site.post("executions/order-7/events/shipped", json!({"payload": "a bicycle"})).await;
        site.env.advance("1m").await.unwrap();
        browser.sees("It has a result").await;
        browser.sees("charge-7 with a bicycle").await;
        assert_eq!(browser.value("window.unchanged").await, true, "the page was loaded again");
    })
    .await;
}

#[tokio::test]
async fn distances_in_time_count_by_the_servers_clock() {
    let site = Site::empty().await;
    // The server is ten days ahead of the browser.
    site.env.advance("10d").await.unwrap();
    site.task("mail-1", &json!({"delay": "1h"})).await;
    browse(&site.url(), async |browser| {
        browser.open("#/tasks/mail-1").await;
        browser.sees("clock is 9 d 23 h behind the server’s").await;
        browser.sees("in 59 min").await;
    })
    .await;
}

/// Lets the page believe that its tab is hidden or visible, counts its loads, and can hide the tab during a load.
const TAB: &str = "(() => {
    const load = window.fetch;
    Object.assign(window, {
        loads: 0,
        hides: false,
        show: (visible) => {
            Object.defineProperty(document, 'hidden', { configurable: true, value: !visible });
            document.dispatchEvent(new Event('visibilitychange'));
        },
        fetch: (...all) => {
            window.loads += 1;
            if (window.hides) window.show(false);
            return load(...all);
        },
        later: (ms) => new Promise((resolve) => setTimeout(() => resolve(true), ms)),
    });
})()";

#[tokio::test]
async fn a_page_goes_on_after_its_tab_was_hidden_for_a_moment_or_for_long() {
    let site = Site::empty().await;
    browse(&site.url(), async |browser| {
        browser.open("#/").await;
        browser.sees("tasks wait").await;
        browser.value(TAB).await;
        // For a moment: hidden at the end of a load, and visible again before the next one is due.
        browser.value("window.hides = true").await;
        browser.until("document.hidden").await;
        browser.value("window.later(500)").await;
        browser.value("(window.hides = false, window.show(true), window.loads = 0)").await;
        browser.until("window.loads > 0").await;
        // For longer: nothing is loaded meanwhile.
        browser.value("window.show(false)").await;
        browser.value("window.later(2500)").await;
        browser.value("window.loads = 0").await;
        browser.value("window.later(2500)").await;
        assert_eq!(browser.value("window.loads").await, 0);
        site.task("mail-1", &json!({})).await;
        browser.value("window.show(true)").await;
        browser.until("document.querySelector('.tile .number').textContent === '1'").await;
    })
    .await;
}
