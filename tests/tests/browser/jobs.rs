//! What an operator asks in an incident is answered within three clicks from the overview.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Json;
use axum::extract::{Query, Request};
use axum::http::header::DATE;
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse as _;
use serde_json::{Value, json};
use tickover_core::duration::Millis;
use tickover_dashboard::Settings;
use tickover_sqlite::SqliteStore;
use tickover_tests::scene::Scene;

use crate::driver::browse;
use crate::site::{Server, router};

/// A local system whose time passes only when a test says so.
pub(crate) struct Incident {
    pub(crate) scene: Scene,
    pub(crate) server: Server,
    client: reqwest::Client,
}

impl Incident {
    async fn begin() -> Self {
        Self::of(Settings::default()).await
    }

    /// The same, whose page has these settings.
    pub(crate) async fn of(settings: Settings) -> Self {
        let scene = Scene::over(Arc::new(SqliteStore::memory().unwrap()));
        let settings = Settings { metrics: false, ..settings };
        let server = Server::start("127.0.0.1:0", router(&scene.service, settings)).await;
        Self { scene, server, client: reqwest::Client::new() }
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Value {
        let address = format!("{}/v1/{path}", self.server.url());
        let answer = self.client.post(address).json(&body).send().await.unwrap();
        answer.error_for_status().unwrap().json().await.unwrap()
    }

    pub(crate) async fn task(&self, id: &str, more: Value) {
        let mut task = json!({"queue": "emails", "kind": "welcome", "id": id});
        task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.post("tasks", task).await;
    }

    pub(crate) async fn failed(&self, id: &str, code: &str) {
        self.task(id, json!({})).await;
        let claimed = self.post(&format!("tasks/{id}/claim"), json!({"worker": "ada"})).await;
        let message = format!("the mail server says {code}");
        let error = json!({"code": code, "message": message, "retryable": false});
        let report = json!({"lease": claimed["tasks"][0]["lease"], "error": error});
        self.post(&format!("tasks/{id}/fail"), report).await;
    }

    pub(crate) async fn execution(&self, id: &str, more: Value) {
        let mut start = json!({"workflow": "order", "id": id});
        start.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.post("executions", start).await;
    }

    pub(crate) fn pass(&self, minutes: u64) {
        self.scene.clock.advance(Millis::from_secs(60 * minutes));
    }
}

const ROWS: &str = "[...document.querySelectorAll('main tbody tr')].map((row) => row.textContent)";

#[tokio::test]
async fn the_tile_of_what_waits_for_an_operator_leads_to_exactly_that_with_the_reason_in_the_row() {
    let incident = Incident::begin().await;
    for number in 0..60 {
        incident.execution(&format!("order-{number}"), json!({})).await;
    }
    incident.post("executions/order-3/pause", json!({})).await;
    incident.task("fine", json!({})).await;
    incident.task("held", json!({"requires": ["gpu"]})).await;
    browse(&incident.server.url(), async |browser| {
        browser.begin_at_the_overview().await;
        browser.press("1executions wait for an operator").await;
        browser.until(&format!("{ROWS}.length === 1 && {ROWS}[0].includes('An operator holds it.')")).await;
        browser.is_accessible("what is stuck").await;
        browser.press("order-3").await;
        browser.sees("Nothing, until an operator resumes it.").await;
        browser.press("Resume order-3").await;
        browser.took_few_clicks().await;

        browser.begin_at_the_overview().await;
        browser.until("document.querySelector('.tiles').textContent.includes('0executions wait')").await;
        browser.press("1tasks are held back").await;
        browser.until(&format!("{ROWS}.length === 1 && {ROWS}[0].includes('No worker provides gpu.')")).await;
        browser.sees("list --stuck").await;
        browser.took_few_clicks().await;
    })
    .await;
}

#[tokio::test]
async fn what_fails_since_an_hour_is_chosen_and_what_is_new_is_marked() {
    let incident = Incident::begin().await;
    for number in 0..3 {
        incident.failed(&format!("old-{number}"), "known").await;
    }
    incident.pass(120);
    incident.failed("again", "known").await;
    incident.pass(10);
    incident.failed("first", "unheard").await;
    browse(&incident.server.url(), async |browser| {
        browser.begin_at_the_overview().await;
        browser.press("5failed").await;
        let row = |code: &str| format!("{ROWS}.find((row) => row.includes('{code}'))");
        browser.until(&format!("{}.includes('41 / h') && !{0}.includes('new')", row("known"))).await;
        browser.until(&format!("{}.includes('11 / h') && {0}.includes('new')", row("unheard"))).await;
        browser.choose("since", "1").await;
        browser.until(&format!("{}.includes('known11 / h')", row("known"))).await;
        browser.until(&format!("{}.includes('2 h 10 min ago')", row("known"))).await;
        browser.is_accessible("failures of the last hour").await;
        browser.press_on("tbody a").await;
        browser.sees("in the chosen time").await;
        browser.sees("--ended-from").await;
        browser.took_few_clicks().await;
        // The same in the list of tasks.
        browser.open("#/tasks").await;
        browser.choose("ended", "1").await;
        browser.until(&format!("{ROWS}.length === 2")).await;
    })
    .await;
}

#[tokio::test]
async fn one_search_finds_everything_of_a_customer_and_labels_are_links() {
    let incident = Incident::begin().await;
    for customer in ["acme", "other"] {
        let labels = json!({"labels": {"customer": customer}});
        incident.execution(&format!("order-{customer}"), labels.clone()).await;
        incident.task(&format!("mail-{customer}"), labels).await;
    }
    browse(&incident.server.url(), async |browser| {
        browser.begin_at_the_overview().await;
        browser.fill("search-id", "customer=acme\u{e007}").await;
        browser.until(&format!("{ROWS}.length === 2 && {ROWS}.every((row) => row.includes('acme'))")).await;
        browser.is_accessible("a search").await;
        browser.press("mail-acme").await;
        browser.sees("What happens next").await;
        browser.press("customer=acme").await;
        browser.until(&format!("{ROWS}.length === 2")).await;
        browser.took_few_clicks().await;

        browser.begin_at_the_overview().await;
        browser.fill("search-id", "order-\u{e007}").await;
        browser
            .until(&format!("{ROWS}.length === 2 && {ROWS}.every((row) => row.startsWith('order-'))"))
            .await;
        browser.fill("search-id", "mail-other\u{e007}").await;
        browser.until("location.hash === '#/tasks/mail-other'").await;

        browser.open("#/tasks").await;
        browser.fill("by-label", "customer=other").await;
        browser.press("Find by label").await;
        browser.until(&format!("{ROWS}.length === 1")).await;
        browser.sees("--label customer=other").await;
        browser.open("#/tasks").await;
        browser.fill("by-kind", "unheard").await;
        browser.press("Find by kind").await;
        browser.sees("No task matches these filters").await;
    })
    .await;
}

#[tokio::test]
async fn a_queue_without_workers_is_red_and_the_others_name_theirs() {
    let incident = Incident::begin().await;
    incident.task("a", json!({})).await;
    incident.task("b", json!({"queue": "reports"})).await;
    let claim = json!({"worker": "ada", "version": "1.2"});
    incident.post("queues/emails/claim", claim).await;
    browse(&incident.server.url(), async |browser| {
        browser.begin_at_the_overview().await;
        browser.sees("No workers: reports. Their work waits.").await;
        browser
            .until(&format!("{ROWS}.some((row) => row.startsWith('emails') && row.includes('ada'))"))
            .await;
        browser.is_accessible("an overview with a queue without workers").await;
        browser.press("Workers").await;
        browser.sees("Work waits, and no worker has asked for it in the last 3 minutes.").await;
        browser.until("document.querySelector('main h2').textContent === 'reports'").await;
        browser.until(&format!("{ROWS}[0].startsWith('ada1.2')")).await;
        browser.took_few_clicks().await;
        browser.is_accessible("workers").await;
    })
    .await;
}

#[tokio::test]
async fn the_last_day_shows_the_hour_that_failed_and_leads_to_its_failures() {
    let incident = Incident::begin().await;
    let keep = async || incident.scene.service.keep_history().await.unwrap();
    incident.failed("one", "x").await;
    keep().await;
    incident.pass(180);
    for id in ["two", "three"] {
        incident.failed(id, "y").await;
    }
    keep().await;
    incident.pass(180);
    browse(&incident.server.url(), async |browser| {
        browser.begin_at_the_overview().await;
        browser.sees("The last day").await;
        let bars = "[...document.querySelectorAll('.charts .fails rect')].filter((bar) => Number(bar.getAttribute('height')) > 2)";
        browser.until(&format!("{bars}.length === 2")).await;
        browser.until("document.querySelector('.charts .fails').getAttribute('aria-label').startsWith('Failed: in all 3')").await;
        for scheme in ["light", "dark"] {
            browser.look(scheme, 320).await;
            browser.is_accessible(&format!("charts, {scheme}")).await;
        }
        browser.press_on(".charts ~ p a").await;
        browser.until(&format!("{ROWS}.length === 1 && {ROWS}[0].includes('y2')")).await;
        browser.took_few_clicks().await;

        browser.open("#/queues").await;
        browser.press("The last day").await;
        browser.sees("The last day of emails").await;
    })
    .await;
}

/// The parts of an hour, with so many failures in the fourth last of them.
fn parts(failed: u64) -> Vec<Value> {
    let part = |place: u64| {
        let failed = if place == 7 { failed } else { 0 };
        json!({"at": format!("2026-01-01T00:{:02}:00.000Z", 5 * place + 5), "completed": 1, "failed": failed, "late_ms": 0, "depth": 0, "oldest_ms": 0, "running": 0})
    };
    (0..11).map(part).collect()
}

#[tokio::test]
async fn the_last_parts_of_a_day_are_asked_for_again_because_cloudwatch_fills_them_late() {
    let incident = Incident::begin().await;
    incident.task("a", json!({})).await;
    incident.pass(60);
    let failed = Arc::new(AtomicU64::new(0));
    let late = Arc::clone(&failed);
    let history = from_fn(move |request: Request, next: Next| {
        let parts = parts(late.load(Ordering::Relaxed));
        async move {
            let uri = request.uri().clone();
            let answer = next.run(request).await;
            if uri.path() != "/v1/history" {
                return answer;
            }
            // The clock of the server goes on counting.
            let date = answer.headers()[DATE].clone();
            let Query(query) = Query::<HashMap<String, String>>::try_from_uri(&uri).unwrap();
            let from = query.get("from").cloned().unwrap_or_default();
            let parts: Vec<_> =
                parts.into_iter().filter(|part| part["at"].as_str().unwrap() >= &*from).collect();
            ([(DATE, date)], Json(json!({"every": "5m", "parts": parts}))).into_response()
        }
    });
    let settings = Settings { metrics: false, ..Settings::default() };
    let routes = router(&incident.scene.service, settings).layer(history);
    let server = Server::start("127.0.0.1:0", routes).await;
    browse(&server.url(), async |browser| {
        browser.open("#/").await;
        let says = |all: &str| format!("[...document.querySelectorAll('.charts svg')].some((one) => one.getAttribute('aria-label').startsWith('{all}'))");
        browser.until(&says("Failed: in all 0")).await;
        failed.store(2, Ordering::Relaxed);
        let later = "(performance.now = ((now) => () => now() + 61000)(performance.now.bind(performance)), true)";
        assert_eq!(browser.value(later).await, true);
        browser.until(&says("Failed: in all 2")).await;
        browser.until(&says("Completed: in all 11")).await;
    })
    .await;
    server.stop().await;
}

#[tokio::test]
async fn the_view_of_queues_asks_once_for_all_of_them_and_again_only_for_those_with_work() {
    let incident = Incident::begin().await;
    incident.task("waits", json!({})).await;
    for queue in ["idle", "reports"] {
        incident.task(queue, json!({"queue": queue})).await;
        incident.post(&format!("queues/{queue}/claim"), json!({"worker": "ada"})).await;
    }
    browse(&incident.server.url(), async |browser| {
        browser.open("#/queues").await;
        browser.sees("Oldest waits since").await;
        browser.value("(performance.clearResourceTimings(), true)").await;
        let calls = "performance.getEntriesByType('resource').map((one) => new URL(one.name).pathname)";
        let lists = format!("{calls}.flatMap((path, place) => (path === '/v1/queues' ? [place] : []))");
        browser.until(&format!("{lists}.length > 1")).await;
        let refresh = browser.value(&format!("{calls}.slice(...{lists})")).await;
        assert_eq!(refresh, json!(["/v1/queues", "/v1/queues/emails"]));
    })
    .await;
}

/// The most requests and bytes of a refresh of the overview.
const REQUESTS_MAX: u64 = 3;
const BYTES_MAX: u64 = 40_000;

#[tokio::test]
async fn the_overview_of_a_busy_system_is_refreshed_by_few_requests_and_bytes() {
    let incident = Incident::begin().await;
    for number in 0..60 {
        let queue = format!("the-queue-of-team-{number:02}");
        incident.task(&format!("mail-{number}"), json!({"queue": queue})).await;
        for worker in 0..5 {
            let claim = json!({"worker": format!("worker-{worker}-of-team-{number:02}"), "max": 1});
            incident.post(&format!("queues/{queue}/claim"), claim).await;
        }
        incident.execution(&format!("order-{number}"), json!({})).await;
    }
    for number in 0..25 {
        incident.failed(&format!("lost-{number}"), &format!("a_code_that_says_why_{number}")).await;
    }
    for _ in 0..24 {
        incident.scene.service.keep_history().await.unwrap();
        incident.pass(5);
    }
    browse(&incident.server.url(), async |browser| {
        browser.open("#/").await;
        browser.sees("These are the first 50 by name").await;
        browser.sees("There are more groups").await;
        browser.until("document.querySelector('.charts')").await;
        // A minute later, when the day is asked for again too.
        let later = "(performance.now = ((now) => () => now() + 61000)(performance.now.bind(performance)), performance.clearResourceTimings(), true)";
        assert_eq!(browser.value(later).await, true);
        let all = "performance.getEntriesByType('resource')";
        let times = format!("{all}.filter((one) => one.name.endsWith('/overview')).map((one) => one.startTime)");
        browser.until(&format!("{all}.some((one) => one.name.includes('/history')) && {times}.length > 2")).await;
        let of_one = format!("(([, from, until]) => {all}.filter((one) => one.startTime >= from && one.startTime < until))({times})");
        let first = format!("(([from, until]) => {all}.filter((one) => one.startTime >= from && one.startTime < until))({times})");
        for refresh in [first, of_one] {
            let requests = browser.value(&format!("{refresh}.length")).await.as_u64().unwrap();
            let bytes = browser.value(&format!("{refresh}.reduce((sum, one) => sum + one.decodedBodySize, 0)")).await;
            assert!((1..=REQUESTS_MAX).contains(&requests), "{requests} requests");
            assert!((1_000..=BYTES_MAX).contains(&bytes.as_u64().unwrap()), "{bytes} bytes");
            eprintln!("{requests} requests, {bytes} bytes");
        }
    })
    .await;
}
