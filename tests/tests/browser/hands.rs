//! What must not get into the way of one's hands.

use serde_json::json;

use crate::driver::{Browser, browse};
use crate::flows::DECLINED;
use crate::site::Site;

/// Longer than from one refresh to the next, in milliseconds.
const REFRESHED_MS: u32 = 4_500;
const ESCAPE: &str = "\u{e00c}";

async fn later(browser: &Browser) {
    browser.value(&format!("new Promise((done) => setTimeout(() => done(true), {REFRESHED_MS}))")).await;
}

#[tokio::test]
async fn what_is_typed_into_a_filter_stays_while_the_list_changes() {
    let site = Site::empty().await;
    site.order(7).await;
    browse(&site.url(), async |browser| {
        browser.open("#/executions").await;
        browser.sees("order-7").await;
        browser.value("document.getElementById('by-label').focus()").await;
        browser.type_keys("tea").await;
        site.order(8).await;
        browser.sees("order-8").await;
        browser.type_keys("m=blue").await;
        browser
            .until("document.activeElement.id === 'by-label' && document.activeElement.value === 'team=blue'")
            .await;
        browser.value("document.getElementById('rows').focus()").await;
        browser.type_keys("order-8").await;
        browser.until("document.activeElement.value === 'order-8'").await;
        browser.misses("order-7").await;
        // What is wrong is mended where it was typed.
        browser.open("#/executions?label=customer").await;
        browser.sees("expected `name=value`").await;
        browser.fill("by-label", "team=blue").await;
        browser.press("Find by label").await;
        browser.sees("2 shown").await;
        // The same in the other list, where the other filters stay.
        site.task("mail-1", &json!({"labels": {"team": "blue"}})).await;
        browser.open("#/tasks?kind=welcome&label=customer").await;
        browser.sees("expected `name=value`").await;
        browser.fill("by-label", "team=blue").await;
        browser.press("Find by label").await;
        browser.sees("mail-1").await;
        browser.until("location.hash.includes('kind=welcome')").await;
    })
    .await;
}

#[tokio::test]
async fn the_last_hour_moves_with_the_time_and_is_in_the_address() {
    let site = Site::empty().await;
    site.order(DECLINED).await;
    browse(&site.url(), async |browser| {
        browser.open("#/executions").await;
        browser.choose("since", "1").await;
        browser.sees("1 shown").await;
        site.env.advance("2h").await.unwrap();
        browser.sees("No execution matches these filters").await;
        assert_eq!(browser.value("location.hash").await, "#/executions?since=1");
        // The same of those that ended.
        for (view, choice, address, none) in [
            ("#/tasks", "ended", "#/tasks?ended=1", "No task matches these filters"),
            ("#/failures", "since", "#/failures?since=1", "Nothing that is kept has failed in this time"),
        ] {
            site.failed_task(&format!("lost-{choice}")).await;
            browser.open(view).await;
            browser.choose(choice, "1").await;
            browser.until(&format!("location.hash === {address:?}")).await;
            browser.sees("no_such_address").await;
            site.env.advance("2h").await.unwrap();
            browser.sees(none).await;
        }
    })
    .await;
}

#[tokio::test]
async fn zoom_lane_and_mode_of_a_timeline_are_in_the_address() {
    let site = Site::empty().await;
    site.order(7).await;
    site.env.advance("4d").await.unwrap();
    site.post("executions/order-7/terminate", json!({})).await;
    browse(&site.url(), async |browser| {
        browser.open("#/executions/order-7").await;
        browser.press_on("[data-key='lane step charge']").await;
        browser.press("Zoom in").await;
        let range = "document.getElementById('timeline-range')?.textContent";
        browser.until(&format!("location.hash.includes('zoom=') && {range}")).await;
        let zoomed = browser.value(range).await;
        browser.reload().await;
        browser.until(&format!("{range} === {zoomed}")).await;
        browser.until("document.querySelector('.details h3').textContent === 'step charge'").await;
        browser.press_on("#as-list").await;
        browser.reload().await;
        browser
            .until("document.getElementById('as-list').checked && document.querySelector('.list tbody tr')")
            .await;
    })
    .await;
}

#[tokio::test]
async fn times_are_in_utc_by_a_switch_and_the_keys_are_shown() {
    let site = Site::empty().await;
    site.task("mail-1", &json!({})).await;
    browse(&site.url(), async |browser| {
        browser.open("#/tasks/mail-1").await;
        let utc = "[...document.querySelectorAll('dd time:not([data-near])')].every((one) => one.textContent.endsWith('UTC'))";
        browser.until("document.querySelector('dd time')").await;
        browser.press("UTC").await;
        browser.until(&format!("document.querySelector('dd time') && {utc}")).await;
        browser.reload().await;
        browser.until(&format!("document.querySelector('dd time') && {utc}")).await;
        browser.value("document.activeElement.blur()").await;
        browser.type_keys("?").await;
        browser.sees("show these keys").await;
        browser.is_accessible("the keys").await;
        browser.type_keys(ESCAPE).await;
        browser.until("document.querySelector('dialog') === null").await;
    })
    .await;
}

#[tokio::test]
async fn the_page_says_how_old_its_data_is_and_can_be_paused() {
    let site = Site::empty().await;
    browse(&site.url(), async |browser| {
        browser.open("#/").await;
        browser.until("/^updated /.test(document.getElementById('updated').textContent)").await;
        browser.press("Pause").await;
        browser.sees(", paused").await;
        site.task("mail-1", &json!({})).await;
        later(browser).await;
        let waiting = "document.querySelector('.tile .number').textContent";
        assert_eq!(browser.value(waiting).await, "0");
        browser.press("Go on").await;
        browser.until(&format!("{waiting} === '1'")).await;
    })
    .await;
}

#[tokio::test]
async fn a_selection_survives_a_refresh() {
    let site = Site::empty().await;
    site.task("mail-1", &json!({})).await;
    browse(&site.url(), async |browser| {
        browser.open("#/tasks").await;
        browser.sees("mail-1").await;
        browser.value("document.getSelection().selectAllChildren(document.querySelector('td .id'))").await;
        site.task("mail-2", &json!({})).await;
        browser.sees("held while a text is selected").await;
        assert_eq!(browser.value("document.getSelection().toString()").await, "mail-1");
        browser.value("document.getSelection().removeAllRanges()").await;
        browser.sees("mail-2").await;
    })
    .await;
}

#[tokio::test]
async fn an_error_can_be_copied_and_directions_of_text_are_shown_not_obeyed() {
    let site = Site::empty().await;
    site.task("bad", &json!({})).await;
    let lease = site.claim("bad").await;
    let error = json!({"code": "x", "message": "\u{202e}evil", "retryable": false});
    site.post("tasks/bad/fail", json!({"lease": lease, "error": error})).await;
    browse(&site.url(), async |browser| {
        browser.open("#/tasks/bad").await;
        browser.sees("⟨U+202E⟩evil").await;
        browser.until("document.querySelector('[aria-label=\"Copy error\"]')").await;
        browser.until("!document.body.innerText.includes('\u{202e}')").await;
    })
    .await;
}

#[tokio::test]
async fn a_timeline_begins_on_the_first_screen_and_a_print_has_no_menu() {
    let site = Site::empty().await;
    site.order(7).await;
    browse(&site.url(), async |browser| {
        browser.look("light", 1280).await;
        browser.open("#/executions/order-7").await;
        browser.until("document.querySelector('.axis')?.getBoundingClientRect().bottom < 900").await;
        browser.devtools("Emulation.setEmulatedMedia", json!({"media": "print"})).await;
        browser.until("['nav', 'header', '.buttons'].every((one) => getComputedStyle(document.querySelector(one)).display === 'none')").await;
    })
    .await;
}
