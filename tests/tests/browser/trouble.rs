//! An API that is down, records that are gone, huge payloads, and odd ids.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse as _;
use serde_json::json;
use tickover_dashboard::Settings;
use tokio::sync::watch;

use crate::driver::{Browser, browse};
use crate::site::{Server, Site, router};

/// What happens to calls of the API.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    None,
    /// Each is refused.
    Refuses,
    /// Each that changes something is refused.
    ReadOnly,
    /// Each is refused, because the caller's credentials are over.
    Unknown,
    /// None is answered.
    Slow,
}

const REFUSAL: &str =
    r#"{"title": "Refused", "detail": "only the fire brigade may do that", "code": "forbidden"}"#;
const EXPIRED: &str = r#"{"message": "The security token is expired"}"#;

/// The views that one needs in an incident, each with a text of its own.
const VIEWS: [(&str, &str); 15] = [
    ("#/", "tasks wait"),
    ("#/queues?day=emails", "Waiting for a worker"),
    ("#/workers", "Workflows of its workers"),
    ("#/executions", "order-7"),
    ("#/failures", "no_such_address"),
    ("#/search?q=team%3Dblue", "mail-1"),
    ("#/crons/nightly", "Next occurrences"),
    ("#/events?id=order-7", "shipped"),
    ("#/tasks", "mail-1"),
    ("#/tasks/mail-1", "What happens next"),
    ("#/executions/order-7", "What happens next"),
    ("#/limits/ocr", "Who waits"),
    ("#/operations", "retry"),
    ("#/operations/count", "What was asked for"),
    ("#/compare?one=order-7&run=1&other=order-13&with=1", "Their inputs differ"),
];

/// A system with something in each of the views.
pub(crate) async fn with_operation() -> Site {
    let site = Site::full().await;
    let operation = json!({"id": "count", "action": "retry", "tasks": {"ids": ["mail-2"]}, "dry_run": true});
    site.post("operations", operation).await;
    site.env.advance("10s").await.unwrap();
    site
}

/// A server's routes, whose calls are in trouble while a test says so.
pub(crate) fn troubled(site: &Site, trouble: &watch::Receiver<Trouble>) -> Router {
    let asked = Arc::new(watch::Receiver::clone(trouble));
    let layer = from_fn(move |request: Request, next: Next| {
        let mut asked = watch::Receiver::clone(&asked);
        async move {
            if !request.uri().path().starts_with("/v1/") {
                return next.run(request).await;
            }
            let is_over = |trouble: &Trouble| *trouble != Trouble::Slow;
            let trouble = *asked.wait_for(is_over).await.unwrap();
            let is_change = request.method() != axum::http::Method::GET;
            let (status, body) = match trouble {
                Trouble::ReadOnly if !is_change => return next.run(request).await,
                Trouble::None | Trouble::Slow => return next.run(request).await,
                Trouble::Refuses | Trouble::ReadOnly => (StatusCode::FORBIDDEN, REFUSAL),
                Trouble::Unknown => (StatusCode::UNAUTHORIZED, EXPIRED),
            };
            (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
        }
    });
    router(site.env.service(), Settings { metrics: false, ..Settings::default() }).layer(layer)
}

/// A running one, and how to bring it into trouble.
async fn in_trouble(site: &Site) -> (Server, watch::Sender<Trouble>) {
    let (trouble, asked) = watch::channel(Trouble::None);
    (Server::start("127.0.0.1:0", troubled(site, &asked)).await, trouble)
}

/// In each view: the trouble is named, what was shown stays, and the view recovers by itself.
async fn in_each_view(browser: &Browser, trouble: &watch::Sender<Trouble>, is: Trouble, says: &str) {
    for (view, shows) in VIEWS {
        browser.open(view).await;
        browser.sees(shows).await;
        trouble.send(is).unwrap();
        browser.sees(says).await;
        browser.sees("What you see may be old").await;
        browser.sees(shows).await;
        browser.is_accessible(&format!("{view} in trouble")).await;
        trouble.send(Trouble::None).unwrap();
        browser.misses(says).await;
        browser.sees(shows).await;
    }
}

#[tokio::test]
async fn a_view_says_that_it_loads_until_its_server_answers() {
    let site = with_operation().await;
    let (server, trouble) = in_trouble(&site).await;
    browse(&server.url(), async |browser| {
        for (view, shows) in VIEWS.into_iter().chain([("#/start", "Time limit of all its runs")]) {
            trouble.send(Trouble::Slow).unwrap();
            browser.open(view).await;
            browser.sees("Loading…").await;
            browser.misses(shows).await;
            trouble.send(Trouble::None).unwrap();
            browser.sees(shows).await;
            browser.misses("Loading…").await;
        }
    })
    .await;
    server.stop().await;
}

#[tokio::test]
async fn a_view_whose_calls_are_refused_says_so_keeps_what_it_had_and_recovers() {
    let site = with_operation().await;
    let (server, trouble) = in_trouble(&site).await;
    browse(&server.url(), async |browser| {
        in_each_view(browser, &trouble, Trouble::Refuses, "only the fire brigade may do that").await;
    })
    .await;
    server.stop().await;
}

#[tokio::test]
async fn a_view_whose_server_is_slow_says_so_keeps_what_it_had_and_recovers() {
    let site = with_operation().await;
    let (server, trouble) = in_trouble(&site).await;
    browse(&server.url(), async |browser| {
        in_each_view(browser, &trouble, Trouble::Slow, "No answer for 5 s: the server is slow").await;
    })
    .await;
    server.stop().await;
}

#[tokio::test]
async fn a_view_whose_server_is_stopped_says_so_keeps_what_it_had_and_recovers() {
    let site = with_operation().await;
    let settings = || Settings { metrics: false, ..Settings::default() };
    let start = async |address: &str| Server::start(address, router(site.env.service(), settings())).await;
    let mut server = start("127.0.0.1:0").await;
    let (url, address) = (server.url(), server.address.to_string());
    browse(&url, async |browser| {
        for (view, shows) in VIEWS {
            browser.open(view).await;
            browser.sees(shows).await;
            server.stop().await;
            browser.sees("The API doesn’t answer. What you see may be old. Trying again").await;
            browser.sees(shows).await;
            server = start(&address).await;
            browser.misses("The API doesn’t answer").await;
            browser.sees(shows).await;
        }
    })
    .await;
}

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
