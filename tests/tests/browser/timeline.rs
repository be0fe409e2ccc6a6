//! The timeline of an execution.

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use serde_json::json;
use tickover::client::wire::answer::TimelineAnswer;
use tickover::client::{ExecutionId, TimelineEntry as TimelineEntryView};
use tickover_dashboard::Settings;

use crate::driver::{Browser, browse};
use crate::flows::DECLINED;
use crate::site::{Server, Site, router};

/// How many entries the long timeline has, each of a step of its own.
const STEPS: usize = 20_000;
/// How many times the time of a timeline of a hundredth of its entries it may take.
const SLOWER_MAX: f64 = 30.0;

#[tokio::test]
async fn a_long_gap_is_folded_and_can_be_unfolded() {
    let site = Site::empty().await;
    site.order(7).await;
    site.env.advance("4d").await.unwrap();
    browse(&site.url(), async |browser| {
        browser.open("#/executions/order-7").await;
        // The sleep of three days is a fold of a twentieth of the axis. The attempts beside it are wide.
        browser.until("[...document.querySelectorAll('.fold')].some((fold) => fold.textContent.startsWith('2 d') || fold.textContent.startsWith('3 d'))").await;
        let width = "((bar) => bar.offsetWidth / bar.parentElement.offsetWidth)";
        let backoff = "document.querySelector('.bar.backoff')";
        assert!(browser.value(&format!("{width}({backoff})")).await.as_f64().unwrap() > 0.005);
        browser.press_on("#fold").await;
        browser.until("document.querySelectorAll('.fold').length === 0").await;
        assert!(browser.value(&format!("{width}({backoff})")).await.as_f64().unwrap() < 0.005);
        let settle = "document.querySelector('[data-key=\"lane timer settle\"] .bar')";
        assert!(browser.value(&format!("{width}({settle})")).await.as_f64().unwrap() > 0.5);
    })
    .await;
}

#[tokio::test]
async fn earlier_runs_are_listed_and_each_has_its_own_timeline() {
    let site = Site::empty().await;
    site.order(DECLINED).await;
    let id = ExecutionId::parse(format!("order-{DECLINED}")).unwrap();
    site.client().api().restart(&id).await.unwrap();
    browse(&site.url(), async |browser| {
        browser.open(&format!("#/executions/{id}")).await;
        browser.until("document.querySelector('a[aria-current=true]')?.textContent === 'run 2'").await;
        browser.until("!document.querySelector('[data-key=\"lane step charge\"]')").await;
        browser.press_on("a[href$='run=1']").await;
        browser.sees("Timeline of run 1").await;
        browser.until("document.querySelector('[data-key=\"lane step charge\"] .failed')").await;
        browser.until("document.querySelector('a[aria-current=true]')?.textContent === 'run 1'").await;
        browser.sees("--run 1").await;
        browser.press_on("[data-key='table Runs'] a:not([aria-current])").await;
        browser.until("document.querySelector('a[aria-current=true]')?.textContent === 'run 2'").await;
    })
    .await;
}

#[tokio::test]
async fn bars_show_attempts_backoffs_sleeps_steps_and_children_and_open_their_details() {
    let site = Site::empty().await;
    site.order(7).await;
    browse(&site.url(), async |browser| {
        browser.open("#/executions/order-7").await;
        let lane = |key: &str, bar: &str| format!("[data-key='lane {key}'] .{bar}");
        for (key, bar) in [
            ("step charge", "failed"),
            ("step charge", "bar.backoff"),
            ("step charge", "done"),
            ("step label[0]", "bar.done"),
            ("child note-7", "bar.done"),
            ("timer settle", "bar.wait.open"),
            ("execution execution", "bar.whole.open"),
        ] {
            browser.until(&format!("document.querySelector({:?})", lane(key, bar))).await;
        }
        browser.press_on(&lane("step charge", "bar.backoff")).await;
        browser.sees("declined: the bank says no").await;
        browser
            .until("document.querySelector('.details .chosen').textContent.includes('step attempt failed')")
            .await;
        // A remote step is a task: its input and its attempts are read from its own record.
        browser.press_on("[data-key='lane step label[1]']").await;
        browser.sees("Its task").await;
        browser.sees("label for lamps").await;
        browser.press_on("[data-key='lane child note-7']").await;
        browser.sees("handle with care").await;
        browser.press_on(".details a[href^='#/executions/']").await;
        browser.sees("Parent").await;
        browser.press("order-7").await;
        browser.until("document.querySelector('h1').textContent === 'order-7'").await;
    })
    .await;
}

#[tokio::test]
async fn the_axis_is_zoomed_and_the_lanes_are_filtered_and_listed() {
    let site = Site::empty().await;
    site.order(7).await;
    browse(&site.url(), async |browser| {
        browser.open("#/executions/order-7").await;
        let width = "document.querySelector('[data-key=\"lane timer settle\"] .bar').offsetWidth";
        browser.until(width).await;
        let before = browser.value("document.getElementById('timeline-range').textContent").await;
        browser.press("Zoom in").await;
        browser.until(&format!("document.getElementById('timeline-range').textContent !== {before}")).await;
        browser.press("Later").await;
        browser.press("Earlier").await;
        browser.press("Zoom out").await;
        browser.press("Show all of the timeline").await;
        browser.fill("lane-filter", "label").await;
        browser.until("document.querySelectorAll('.lane').length === 2").await;
        browser.press_on("#as-list").await;
        browser.until("document.querySelectorAll('.list tbody tr').length >= 2").await;
        browser.sees("step completed label[0]").await;
    })
    .await;
}

/// A system whose timeline of one execution has this many entries. So long a journal would take a minute to write, and the
/// test is about the page.
async fn long(site: &Site, steps: usize) -> Server {
    let started = site.execution("order-7").await["created_at"].as_str().unwrap().to_owned();
    let entries = (0..steps).map(move |number| {
        let entry = json!({
            "at": started, "kind": "step_completed", "name": format!("tiny-{number}"), "attempts": 1, "duration_ms": 3, "output": number,
        });
        serde_json::from_value::<TimelineEntryView>(entry).unwrap()
    });
    let id = ExecutionId::parse("order-7").unwrap();
    let answer = TimelineAnswer { id, run: 1, entries: entries.collect(), unread: None };
    let answer = serde_json::to_string(&answer).unwrap();
    let timeline = get(async move || ([(CONTENT_TYPE, "application/json")], answer.clone()));
    let long = Router::new().route("/v1/executions/order-7/timeline", timeline);
    let settings = Settings { metrics: false, ..Settings::default() };
    Server::start("127.0.0.1:0", router(site.env.service(), settings).merge(long)).await
}

/// How long it takes until a timeline of so many steps is shown, in milliseconds.
async fn shown_ms(browser: &Browser, steps: &str) -> f64 {
    browser.open("#/").await;
    browser.sees("Queues").await;
    let shows = format!(
        "new Promise((resolve) => {{
            const began = performance.now();
            location.hash = '#/executions/order-7';
            const check = () => document.querySelector('.lane') && document.getElementById('timeline-range')?.textContent.includes('{steps} entries')
                ? resolve(performance.now() - began) : requestAnimationFrame(check);
            check();
        }})"
    );
    browser.value(&shows).await.as_f64().unwrap()
}

/// Times depend on the machine's hour. So it is compared with a timeline of a hundredth of its length, in the same run.
#[tokio::test]
async fn a_timeline_of_20000_entries_is_shown_nearly_as_soon_as_one_of_200() {
    let site = Site::empty().await;
    site.order(7).await;
    let short = long(&site, STEPS / 100).await;
    let mut short_ms = 0.0;
    browse(&short.url(), async |browser| short_ms = shown_ms(browser, "200").await).await;
    short.stop().await;
    let server = long(&site, STEPS).await;
    browse(&server.url(), async |browser| {
        let long_ms = shown_ms(browser, "20,000").await;
        eprintln!("200 entries after {short_ms:.0} ms, 20,000 after {long_ms:.0} ms");
        assert!(long_ms < SLOWER_MAX * short_ms, "{short_ms} ms, {long_ms} ms");
        // Only the lanes in sight are elements, wherever one scrolls.
        let scroll = "new Promise((resolve) => {
            const lanes = document.querySelector('.viewport');
            lanes.scrollTop = lanes.scrollHeight;
            const check = () => document.querySelector('[data-key=\"lane step tiny-19999\"]') ? resolve(true) : requestAnimationFrame(check);
            check();
        })";
        assert_eq!(browser.value(scroll).await, true);
        browser.until("document.querySelectorAll('.lane').length < 100").await;
        browser.press_on("#as-list").await;
        browser.sees("Page 1 of 200").await;
    })
    .await;
    server.stop().await;
}
