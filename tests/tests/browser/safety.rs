//! What a page of another site, or a payload with markup, can do: nothing.

use serde_json::json;
use tickover_dashboard::Settings;

use crate::driver::{REBOUND, browse};
use crate::site::{Server, Site, router};

const SCRIPT: &str = "<img src=x onerror=\"window.harmed=true\"><script>window.harmed=true</script>";

#[tokio::test]
async fn a_page_of_another_origin_reaches_neither_the_page_nor_the_api() {
    let site = Site::full().await;
    let other = Site::empty().await;
    let target = site.url();
    browse(&other.url(), async |browser| {
        browser.open("#/").await;
        browser.sees("Nothing has been scheduled yet").await;
        // The page's own policy would refuse the calls, so another page of this origin makes them.
        browser.goto(&format!("{}/healthz", other.url())).await;
        for (path, options) in [
            ("/", "{}"),
            ("/v1/tasks", "{}"),
            ("/v1/queues/emails/pause", "{method: 'POST', headers: {'content-type': 'application/json'}}"),
            ("/v1/queues/emails/pause", "{method: 'POST', mode: 'no-cors', body: '{}'}"),
            ("/v1/crons/nightly", "{method: 'DELETE'}"),
        ] {
            let call = format!("fetch('{target}{path}', {options}).then((answer) => answer.type === 'opaque' ? 'nothing' : answer.text(), () => 'nothing')");
            assert_eq!(browser.value(&call).await, "nothing", "{path}");
        }
        assert_eq!(site.get("queues/emails").await["queue"]["paused"], false);
        assert_eq!(site.get("crons/nightly").await["cron"]["status"], "active");
        // It can't be shown in a frame either.
        let frame = format!(
            "new Promise((resolve) => {{ const frame = document.createElement('iframe'); frame.onload = () => resolve(frame.contentDocument === null); frame.src = '{target}/'; document.body.append(frame); }})"
        );
        assert_eq!(browser.value(&frame).await, true);
    })
    .await;
}

#[tokio::test]
async fn a_name_that_was_made_to_lead_here_gets_neither_the_page_nor_the_api() {
    let site = Site::full().await;
    let port = site.server.address.port();
    browse(&site.url(), async |browser| {
        for path in ["/", "/dashboard/app.js", "/v1/tasks"] {
            browser.goto(&format!("http://{REBOUND}:{port}{path}")).await;
            browser.sees("foreign_host").await;
        }
    })
    .await;
}

#[tokio::test]
async fn markup_in_names_payloads_and_errors_is_shown_as_text() {
    let site = Site::empty().await;
    site.task("bad", &json!({"input": {"html": SCRIPT}, "labels": {"<b>x</b>": SCRIPT}})).await;
    let lease = site.claim("bad").await;
    let error = json!({"code": "x", "message": SCRIPT, "retryable": false});
    site.post("tasks/bad/fail", json!({"lease": lease, "error": error})).await;
    site.post(
        "executions",
        json!({"workflow": "order", "id": "bad-1", "input": {"number": 13, "note": SCRIPT}, "memo": SCRIPT}),
    )
    .await;
    site.env.advance("1m").await.unwrap();
    site.post("executions", json!({"workflow": "order", "id": "bad-2", "input": {"number": 7}})).await;
    site.post("executions/bad-2/events/shipped", json!({"payload": SCRIPT})).await;
    browse(&site.url(), async |browser| {
        for hash in ["#/tasks", "#/tasks/bad", "#/failures", "#/executions/bad-1", "#/events?id=bad-2", "#/"] {
            browser.open(hash).await;
            browser.until("document.querySelectorAll('main section, main .scroll').length > 0").await;
            let found = browser.value("[window.harmed ?? null, document.querySelectorAll('main img, main script').length]").await;
            assert_eq!(found, json!([null, 0]), "{hash}");
        }
        browser.open("#/tasks/bad").await;
        browser.sees("<img src=x").await;
        // What the page never does, its policy refuses: a script that comes from a text doesn't run.
        let inline = "(() => { const script = document.createElement('script'); script.setAttribute('data-x', ''); try { script.text = 'window.harmed = true'; } catch { return 'refused'; } document.body.append(script); return window.harmed ?? 'refused'; })()";
        assert_eq!(browser.value(inline).await, "refused");
        let markup = "(() => { try { document.body.innerHTML = '<p>x'; return 'set'; } catch { return 'refused'; } })()";
        assert_eq!(browser.value(markup).await, "refused");
    })
    .await;
}

#[tokio::test]
async fn the_page_works_below_a_prefix() {
    let site = Site::full().await;
    let app = router(site.env.service(), Settings { metrics: false, ..Settings::default() });
    let server = Server::start("127.0.0.1:0", axum::Router::new().nest_service("/ops/tickover/", app)).await;
    browse(&format!("{}/ops/tickover", server.url()), async |browser| {
        browser.open("#/").await;
        browser.sees("workflow order, step charge").await;
        browser.open("#/tasks/mail-1").await;
        browser.sees(&format!("tickover --endpoint {}/ops/tickover explain mail-1", server.url())).await;
        browser.press("Cancel mail-1").await;
        browser.press("Yes, cancel").await;
        browser.sees("It was cancelled").await;
    })
    .await;
    server.stop().await;
}
