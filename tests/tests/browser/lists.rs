//! The executions of all workflows, as a local server lists them.

use std::sync::Arc;

use serde_json::{Value, json};
use tickover_dashboard::Settings;
use tickover_service::memory::MemoryStore;
use tickover_service::ports::Listed;
use tickover_tests::process::Process;
use tickover_tests::scene::Scene;

use crate::driver::browse;
use crate::site::{Server, router};

async fn post(address: &str, path: &str, body: Value) {
    let request = reqwest::Client::new().post(format!("{address}/v1/{path}")).json(&body);
    let answer = request.send().await.unwrap();
    assert!(answer.status().is_success(), "{answer:?}");
}

/// As on AWS: without an index, and first without the list of all executions.
#[tokio::test]
async fn without_the_option_the_page_says_what_it_cant_list_and_with_it_lists_all() {
    for (listed, shows, misses) in [
        (
            Listed::Failed,
            [
                "60 shown",
                "With TICKOVER_LISTS=all it lists all, for one write more for each, and counts the latest 1,000",
                "Of all workflows, this system lists only failed executions",
            ],
            "Next page",
        ),
        (
            Listed::All,
            [
                "50 shown. In all: pending 60",
                "Next page",
                "All 60 executions are counted, once a minute, as of",
            ],
            "TICKOVER_LISTS",
        ),
    ] {
        let store = Arc::new(MemoryStore::default().listing(listed));
        let scene = Scene::over(store);
        let server = Server::start("127.0.0.1:0", router(&scene.service, Settings::default())).await;
        for number in 0..60 {
            let workflow = ["order", "import"][number % 2];
            post(&server.url(), "executions", json!({"workflow": workflow, "id": format!("e-{number:02}")}))
                .await;
        }
        browse(&server.url(), async |browser| {
            // The browser knows them from their own pages.
            for number in [0, 1] {
                browser.open(&format!("#/executions/e-{number:02}")).await;
                browser.sees("What happens next").await;
            }
            browser.open("#/executions").await;
            for text in shows {
                browser.sees(text).await;
            }
            browser.misses(misses).await;
            browser.is_accessible("#/executions").await;
        })
        .await;
        server.stop().await;
    }
}

#[tokio::test]
async fn a_local_server_shows_all_executions_by_page_label_and_status_and_counts_them() {
    let dev = Process::tickover(&["dev", "--listen", "127.0.0.1:0"]).unwrap();
    let address = dev.address().await.unwrap();
    for number in 0..60 {
        let workflow = ["order", "import"][number % 2];
        let labels = json!({"customer": (number % 3).to_string()});
        let id = format!("e-{number:02}");
        post(&address, "executions", json!({"workflow": workflow, "id": id, "labels": labels})).await;
    }
    for id in ["e-00", "e-01"] {
        post(&address, &format!("executions/{id}/terminate"), json!({})).await;
    }
    browse(&address, async |browser| {
        browser.open("#/").await;
        browser.sees("58").await;
        browser.open("#/executions").await;
        browser.sees("50 shown. In all: pending 58 cancelled 2").await;
        browser.sees("tickover --endpoint").await;
        browser.is_accessible("#/executions").await;
        browser.press("Next page").await;
        browser.sees("10 shown").await;
        browser.sees("e-00").await;
        browser.choose("status", "cancelled").await;
        browser.sees("2 shown").await;
        browser.choose("status", "").await;
        browser.choose("since", "1").await;
        browser.fill("by-label", "customer=2").await;
        browser.press("Find by label").await;
        browser.sees("20 shown").await;
        browser.sees("--label customer=2 --started-from").await;
        browser.fill("by-error", "card_declined").await;
        browser.press("Find by error code").await;
        browser.sees("No execution matches these filters").await;
        browser.open("#/executions?label=customer").await;
        browser.sees("expected `name=value`").await;
    })
    .await;
}
