//! `tickover dev` and `tickover dashboard` as real processes.

use serde_json::{Value, json};
use tickover_tests::process::Process;

use crate::driver::browse;

/// The calls of the API before the first view is shown.
const FIRST_CALLS: u64 = 8;
/// The bytes of files and answers until then.
const FIRST_BYTES: u64 = 200_000;

async fn post(address: &str, path: &str, body: Value) -> (u16, Value) {
    let answer =
        reqwest::Client::new().post(format!("{address}/v1/{path}")).json(&body).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

/// A server with a task, and a dashboard for it.
async fn pair(more: &[&str]) -> (Process, String, Process, String) {
    let dev = Process::tickover(&["dev", "--listen", "127.0.0.1:0"]).unwrap();
    let system = dev.address().await.unwrap();
    assert_eq!(post(&system, "tasks", json!({"queue": "q", "kind": "k", "id": "mail-1"})).await.0, 201);
    let args = ["dashboard", "--port", "0", "--endpoint", &system, "--refresh", "2s"];
    let dashboard = Process::tickover(&[&args, more].concat()).unwrap();
    let address = dashboard.address().await.unwrap();
    (dev, system, dashboard, address)
}

#[tokio::test]
async fn the_local_server_shows_the_page_after_few_calls_and_bytes() {
    let dev = Process::tickover(&["dev", "--listen", "127.0.0.1:0"]).unwrap();
    let address = dev.address().await.unwrap();
    browse(&address, async |browser| {
        browser.open("#/").await;
        browser.sees("Nothing has been scheduled yet").await;
        browser.sees("No deadline has passed since the server started").await;
        // The best of a few: other tests run at the same time. To the first text of the view.
        let mut best = f64::INFINITY;
        for _ in 0..6 {
            browser.reload().await;
            browser.until("performance.getEntriesByName('tickover-first-view').length > 0").await;
            let took =
                browser.value("performance.getEntriesByName('tickover-first-view')[0].startTime").await;
            best = best.min(took.as_f64().unwrap());
        }
        eprintln!("first view after {best:.0} ms");
        // Times depend on the machine's hour, these don't: each file once, and a few calls.
        let page = "performance.getEntriesByType('resource').filter((one) => one.startTime <
            performance.getEntriesByName('tickover-first-view')[0].startTime)";
        let calls = browser.value(&format!("{page}.filter((one) => one.name.includes('/v1/')).length")).await;
        assert!(calls.as_u64().unwrap() <= FIRST_CALLS, "{calls} calls");
        let bytes =
            browser.value(&format!("{page}.reduce((sum, one) => sum + one.decodedBodySize, 0)")).await;
        assert!(bytes.as_u64().unwrap() < FIRST_BYTES, "{bytes} bytes");
    })
    .await;
}

#[tokio::test]
async fn the_dashboard_of_another_system_passes_its_calls_on() {
    let (_dev, system, _dashboard, address) = pair(&[]).await;
    browse(&address, async |browser| {
        browser.open("#/tasks/mail-1").await;
        browser.sees(&format!("tickover --endpoint {system} explain mail-1")).await;
        browser.press("Cancel mail-1").await;
        browser.press("Yes, cancel").await;
        browser.sees("It was cancelled").await;
        // The problems of the system arrive as they are.
        browser.open("#/tasks/never-there").await;
        browser.sees("not_found").await;
        browser.open("#/").await;
        browser.sees("This system has no metrics at this address").await;
    })
    .await;
    let foreign =
        reqwest::Client::new().get(format!("{address}/v1/tasks")).header("origin", "http://evil.test");
    assert_eq!(foreign.send().await.unwrap().status(), 403);
    let rebound = reqwest::Client::new().get(&address).header("host", "evil.test");
    assert_eq!(rebound.send().await.unwrap().status(), 403);
}

#[tokio::test]
async fn a_read_only_dashboard_refuses_all_changes_and_says_so() {
    let (_dev, system, _dashboard, address) = pair(&["--read-only"]).await;
    browse(&address, async |browser| {
        browser.open("#/tasks/mail-1").await;
        browser.sees("This dashboard is read-only").await;
        browser.until("document.querySelector('[aria-label=\"Cancel mail-1\"]').disabled").await;
        browser.open("#/start").await;
        browser.until("document.getElementById('submit').disabled").await;
    })
    .await;
    let (status, problem) = post(&address, "tasks/mail-1/cancel", json!({})).await;
    assert_eq!((status, &problem["code"]), (403, &json!("read_only")));
    let http = reqwest::Client::new();
    for request in [http.delete(format!("{address}/v1/crons/x")), http.put(format!("{address}/v1/crons/x"))] {
        assert_eq!(request.send().await.unwrap().status(), 403);
    }
    let task: Value = reqwest::get(format!("{system}/v1/tasks/mail-1")).await.unwrap().json().await.unwrap();
    assert_eq!(task["task"]["status"], "pending");
}

#[tokio::test]
async fn a_system_that_does_not_answer_its_dashboard_is_named() {
    let (dev, _, _dashboard, address) = pair(&[]).await;
    browse(&address, async |browser| {
        browser.open("#/tasks").await;
        browser.sees("mail-1").await;
        dev.kill().await.unwrap();
        browser
            .sees("The server has failed, whatever is asked for. It says: No answer from the system")
            .await;
    })
    .await;
}
