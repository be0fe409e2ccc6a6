//! An API that is down, records that are gone, huge payloads, and odd ids.

use serde_json::json;
use tickover_dashboard::Settings;

use crate::driver::browse;
use crate::site::{Server, Site, router};

#[tokio::test]
async fn an_api_that_is_down_is_named_and_asked_again_until_it_is_back() {
    let site = Site::full().await;
    let settings = || Settings { metrics: false, ..Settings::default() };
    let server = Server::start("127.0.0.1:0", router(site.env.service(), settings())).await;
    let (url, address) = (server.url(), server.address.to_string());
    browse(&url, async |browser| {
        browser.open("#/tasks").await;
        browser.sees("mail-1").await;
        server.stop().await;
        browser.sees("The API doesn’t answer. What you see may be old. Trying again").await;
        browser.sees("mail-1").await;
        let server = Server::start(&address, router(site.env.service(), settings())).await;
        browser.misses("The API doesn’t answer").await;
        site.task("mail-9", &json!({})).await;
        browser.sees("mail-9").await;
        server.stop().await;
    })
    .await;
}

#[tokio::test]
async fn a_record_that_is_gone_is_named_and_one_that_goes_while_it_is_shown_stays_readable() {
    let site = Site::empty().await;
    site.order(13).await;
    site.failed_task("lost").await;
    browse(&site.url(), async |browser| {
        browser.open("#/executions/never-there").await;
        browser.sees("not_found").await;
        browser.open("#/tasks/never-there").await;
        browser.sees("not_found").await;
        browser.open("#/crons/never-there").await;
        browser.sees("not_found").await;

        browser.open("#/executions/order-13").await;
        browser.sees("Its step charge failed").await;
        site.env.advance("100d").await.unwrap();
        browser.sees("It was deleted meanwhile").await;
        browser.sees("Its step charge failed").await;
    })
    .await;
}

#[tokio::test]
async fn a_huge_payload_is_cut_and_can_be_downloaded_whole() {
    let site = Site::empty().await;
    let text = "x".repeat(300_000);
    site.task("huge", &json!({"input": [text, "the end"]})).await;
    browse(&site.url(), async |browser| {
        browser.open("#/tasks/huge").await;
        browser.sees("The first 20,000 of").await;
        browser.misses("the end").await;
        // The download has all of it.
        browser
            .value("URL.createObjectURL = ((make) => (blob) => { window.saved = blob; return make(blob); })(URL.createObjectURL)")
            .await;
        browser.press("Download huge-input.json").await;
        browser.until("window.saved").await;
        let saved = browser.value("window.saved.text().then((text) => [text.length, text.includes('the end')])").await;
        assert!(saved[0].as_u64().unwrap() > 300_000 && saved[1] == true, "{saved}");
    })
    .await;
}

#[tokio::test]
async fn ids_with_every_allowed_character_work_everywhere() {
    let site = Site::empty().await;
    let id = "aZ09._:-";
    site.task(id, &json!({"queue": id, "kind": id})).await;
    site.post("crons", json!({"id": id, "every": "1h", "task": {"queue": id, "kind": id}})).await;
    site.post("executions", json!({"workflow": "order", "id": id, "input": {"number": 7}})).await;
    site.env.advance("5m").await.unwrap();
    browse(&site.url(), async |browser| {
        browser.open("#/tasks").await;
        browser.press(id).await;
        browser.press(&format!("Cancel {id}")).await;
        browser.press("Yes, cancel").await;
        browser.sees("It was cancelled").await;
        browser.open("#/crons").await;
        browser.press(id).await;
        browser.press(&format!("Pause {id}")).await;
        browser.sees(&format!("Pause {id}: done")).await;
        browser.open("#/executions?workflow=order").await;
        browser.press(id).await;
        browser.press(&format!("Pause {id}")).await;
        browser.sees("An operator holds it").await;
        // The step's name has brackets.
        browser.press_on("[data-key='lane step label[0]']").await;
        browser.press_on(".details a[href^='#/tasks/']").await;
        browser.sees("It has a result").await;
        browser.open("#/queues").await;
        browser.press(&format!("Pause {id}")).await;
        browser.sees(&format!("Pause {id}: done")).await;
        // A browser can't call these: they are steps in a path.
        browser.open("#/tasks/%2E%2E").await;
        browser.sees("unaddressable").await;
    })
    .await;
}
