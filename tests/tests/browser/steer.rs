//! What one on call does with few clicks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use tickover::client::wire::answer::TimelineAnswer;
use tickover::client::{ExecutionId, TimelineEntry as TimelineEntryView};
use tickover_dashboard::Settings;

use crate::driver::browse;
use crate::flows::{DECLINED, parcel};
use crate::site::{Server, Site, router};

/// How many members the fan-out has, and how many of them fail.
const MEMBERS: usize = 3_000;
const FAIL: usize = 7;

fn settings() -> Settings {
    Settings { metrics: false, ..Settings::default() }
}

#[tokio::test]
async fn many_are_retried_with_a_total_and_an_operation_goes_on_after_a_stop() {
    let site = Site::empty().await;
    for number in 0..105 {
        site.failed_task(&format!("lost-{number}")).await;
    }
    browse(&site.url(), async |browser| {
        browser.begin_at_the_overview().await;
        browser.press("task welcome").await;
        browser.press("Retry all").await;
        site.operations(1).await;
        site.env.advance("1s").await.unwrap();
        browser.press("Yes, retry all").await;
        browser.sees("0 of 105 done, 105 left").await;
        browser.took_few_clicks().await;
        browser.press_on("button[aria-label^='Stop ']").await;
        site.latest_operation_is("stopping").await;
        site.env.advance("1m").await.unwrap();
        browser.sees("stopped").await;
        browser.sees("105 left").await;
        browser.press_on("button[aria-label^='Resume ']").await;
        site.latest_operation_is("running").await;
        site.env.advance("1m").await.unwrap();
        browser.sees("105 of 105 done, 0 left").await;
        browser.until("document.querySelector('progress').value === 105").await;
        browser.is_accessible("an operation").await;
        let open = site.get("tasks?status=pending&limit=200").await;
        assert_eq!(open["tasks"].as_array().unwrap().len(), 105);
    })
    .await;
}

/// An operation that is further with each answer.
#[tokio::test]
async fn an_operation_under_way_shows_its_rate_and_how_long_it_takes() {
    let site = Site::empty().await;
    let matched = Arc::new(AtomicU64::new(30));
    let operation = get(async move || {
        let matched = matched.fetch_add(30, Ordering::Relaxed);
        Json(json!({"operation": {
            "id": "slow", "action": "retry", "dry_run": false, "status": "running", "created_at": "2026-01-31T08:00:00.000Z",
            "total": 100_000, "matched": matched, "changed": matched, "unchanged": 0,
        }}))
    });
    let slow = Router::new().route("/v1/operations/slow", operation);
    let server = Server::start("127.0.0.1:0", router(site.env.service(), settings()).merge(slow)).await;
    browse(&server.url(), async |browser| {
        browser.open("#/operations/slow").await;
        browser.until("/[1-9][0-9,.]* a second; about .* to go/.test(document.querySelector('.progress')?.textContent)").await;
        browser.until("document.querySelector('progress').max === 100000").await;
    })
    .await;
    server.stop().await;
}

/// A timeline of one execution with a large fan-out.
async fn fan_out(site: &Site) -> Server {
    let at = site.execution("order-7").await["created_at"].as_str().unwrap().to_owned();
    let members = (0..MEMBERS).flat_map(|number| {
        let name = format!("resize[{number}]");
        let kind =
            if number % (MEMBERS / FAIL) == MEMBERS / FAIL - 1 { "step_failed" } else { "step_completed" };
        let start = json!({"at": at, "kind": "step_started", "name": name, "task": format!("t-{number}")});
        [start, json!({"at": at, "kind": kind, "name": name, "duration_ms": 0})]
    });
    let entries = members.map(|entry| serde_json::from_value::<TimelineEntryView>(entry).unwrap());
    let id = ExecutionId::parse("order-7").unwrap();
    let answer = TimelineAnswer { id, run: 1, entries: entries.collect(), unread: None };
    let answer = serde_json::to_string(&answer).unwrap();
    let timeline = get(async move || ([(CONTENT_TYPE, "application/json")], answer.clone()));
    let fanned = Router::new().route("/v1/executions/order-7/timeline", timeline);
    Server::start("127.0.0.1:0", router(site.env.service(), settings()).merge(fanned)).await
}

#[tokio::test]
async fn a_fan_out_of_3000_is_one_lane_with_counts_and_its_failed_members_come_first() {
    let site = Site::empty().await;
    site.order(7).await;
    let server = fan_out(&site).await;
    browse(&server.url(), async |browser| {
        browser.begin_at_the_overview().await;
        browser.press("Executions").await;
        browser.press("order-7").await;
        browser.until("document.querySelectorAll('.lane').length === 1").await;
        let lane = "document.querySelector('[data-key=\"lane step resize[]\"]')";
        browser.until(&format!("{lane}.textContent.includes('resize × 3,000, 7 failed, 2,993 completed')")).await;
        browser.is_accessible("a folded fan-out").await;
        browser.press_on("[data-key='lane step resize[]']").await;
        browser.until(&format!("{lane}.getAttribute('aria-expanded') === 'true'")).await;
        browser.took_few_clicks().await;
        let shown = "[...document.querySelectorAll('.lane')].slice(1, 9).map((one) => one.querySelector('.failed') ? 1 : 0).join('')";
        browser.until(&format!("{shown} === '11111110'")).await;
        // The address has it.
        browser.reload().await;
        browser.until(&format!("{shown} === '11111110'")).await;
        browser.press_on("[data-key='lane step resize[]']").await;
        browser.until("document.querySelectorAll('.lane').length === 1").await;
    })
    .await;
    server.stop().await;
}

#[tokio::test]
async fn a_cron_shows_its_next_ten_starts_in_its_own_zone_and_in_utc_and_how_its_runs_ended() {
    let site = Site::empty().await;
    let task = json!({"queue": "reports", "kind": "daily", "timeout": "5s"});
    let cron = json!({"id": "nightly", "cron": "30 3 * * *", "time_zone": "America/Bogota", "task": task});
    site.post("crons", cron).await;
    site.env.advance("25h").await.unwrap();
    browse(&site.url(), async |browser| {
        browser.begin_at_the_overview().await;
        browser.press("Crons").await;
        browser.press("nightly").await;
        browser.sees("By the clocks of America/Bogota").await;
        browser.took_few_clicks().await;
        let rows = "[...document.querySelectorAll('[data-key=\"table Next occurrences\"] tbody tr')]";
        browser.until(&format!("{rows}.length === 10")).await;
        let fits = "/ 03:30:00-05:00$/.test(row.cells[0].textContent) && /T08:30:00.000Z \\(UTC\\)$/.test(row.cells[1].textContent)";
        browser.until(&format!("{rows}.every((row) => {fits})")).await;
        let run = "document.querySelector('[data-key=\"table Last runs\"] tbody tr')";
        browser.until(&format!("{run}.cells[3].textContent === 'timed out' && {run}.cells[5].textContent === '5 s'")).await;
        browser.is_accessible("a cron").await;
    })
    .await;
}

#[tokio::test]
async fn who_did_it_and_why_is_shown_where_it_was_done() {
    let site = Site::empty().await;
    site.order(7).await;
    site.task("mail-1", &json!({})).await;
    browse(&site.url(), async |browser| {
        browser.begin_at_the_overview().await;
        browser.press("Executions").await;
        browser.press("order-7").await;
        browser.fill("why-execution-order-7", "ticket 42").await;
        browser.press("Pause order-7").await;
        browser.sees("paused by local (ticket 42)").await;
        browser.took_few_clicks().await;
        browser.press_on("#as-list").await;
        browser.sees("paused by local (ticket 42),").await;
        browser.open("#/queues").await;
        browser.fill("why-queue-emails", "the provider is down").await;
        browser.press("Pause emails").await;
        browser.sees("Paused by local (the provider is down)").await;
        browser.open("#/tasks/mail-1").await;
        browser.fill("why-task-mail-1", "sent by hand").await;
        browser.press("Cancel mail-1").await;
        browser.press("Yes, cancel").await;
        browser.sees("local (sent by hand)").await;
        browser.is_accessible("a task").await;
    })
    .await;
}

#[tokio::test]
async fn an_execution_runs_again_with_another_input_and_the_two_runs_are_compared() {
    let site = Site::empty().await;
    site.order(DECLINED).await;
    browse(&site.url(), async |browser| {
        browser.begin_at_the_overview().await;
        browser.press("Executions").await;
        browser.press("order-13").await;
        // The step that failed is a link to its lane.
        browser.press("Show it").await;
        browser.took_few_clicks().await;
        browser.until("document.querySelector('.details h3')?.textContent === 'step charge'").await;
        browser.sees("its input is the code’s own").await;
        browser.press_on("[data-key='repair'] summary").await;
        browser.is_accessible("a repair").await;
        browser.fill("repair-input", r#"{"number": 8, "note": "with care"}"#).await;
        browser.choose("repair-from", "charge").await;
        browser.sees("execution rerun order-13 --from charge --input").await;
        browser.press("Run again").await;
        browser.press("Yes, run again").await;
        browser.sees("order-13: run 2 begins").await;
        site.env.advance("5m").await.unwrap();
        browser.until("document.querySelector('[data-key=\"text Input\"]').textContent.includes('8')").await;
        let again = site.execution("order-13").await;
        assert_eq!((&again["input"]["number"], &again["run"]), (&json!(8), &json!(2)));
        let first = site.get("executions/order-13?run=1").await["execution"]["input"].take();
        assert_eq!(first["number"], DECLINED);
        browser.press("Compare with run 1").await;
        browser.sees("Their inputs differ").await;
        let row = "[...document.querySelectorAll('[data-key=\"table What they did\"] tbody tr')].find((row) => row.cells[0].textContent === 'step charge')";
        browser.until(&format!("{row}.cells[1].textContent.includes('declined') && {row}.cells[2].textContent.includes('charge-8')")).await;
        browser.is_accessible("two runs").await;
    })
    .await;
}

#[tokio::test]
async fn a_failed_remote_step_runs_again_with_another_input_in_the_same_run() {
    let site = Site::empty().await;
    site.client().start(&parcel, "lead".to_owned()).id("parcel-1").await.unwrap();
    site.env.advance("5m").await.unwrap();
    browse(&site.url(), async |browser| {
        browser.open("#/executions/parcel-1").await;
        browser.sees("too_heavy").await;
        browser.press_on("[data-key='retry-step'] summary").await;
        // It begins with the input that the step had.
        browser.until("document.getElementById('step-input').value === '\"lead\"'").await;
        browser.is_accessible("a step with another input").await;
        browser.fill("step-input", r#""feathers""#).await;
        browser.sees("execution retry-step parcel-1 print-label --input").await;
        browser.press("Run the step with this input").await;
        browser.sees("parcel-1: the step print-label runs again.").await;
        site.env.advance("5m").await.unwrap();
        browser.sees("label for feathers").await;
        let ended = site.execution("parcel-1").await;
        assert_eq!((&ended["run"], &ended["output"]), (&json!(1), &json!("label for feathers")));
    })
    .await;
}

#[tokio::test]
async fn another_execution_is_started_with_the_input_filled_in() {
    let site = Site::empty().await;
    site.order(DECLINED).await;
    browse(&site.url(), async |browser| {
        browser.open("#/executions/order-13").await;
        browser.press_on("[data-key='repair'] summary").await;
        browser.press("Start another execution with this input").await;
        let value = |id: &str| format!("document.getElementById('{id}').value");
        browser.until(&format!("JSON.parse({}).number === 13", value("start-input"))).await;
        browser.until(&format!("{} === 'order'", value("start-workflow"))).await;
        browser.fill("start-id", "order-14").await;
        browser.press("Start the execution").await;
        browser.sees("It is stored as").await;
        let started: Value = site.execution("order-14").await;
        assert_eq!((&started["input"]["number"], &started["labels"]), (&json!(13), &json!({"team": "blue"})));
    })
    .await;
}

#[tokio::test]
async fn why_an_inline_step_failed_is_three_clicks_away() {
    let site = Site::empty().await;
    site.order(DECLINED).await;
    browse(&site.url(), async |browser| {
        browser.begin_at_the_overview().await;
        browser.press("workflow order, step charge").await;
        browser.press("order-13").await;
        browser.press("Show it").await;
        browser.until("document.querySelector('.details h3').textContent === 'step charge'").await;
        let details = "document.querySelector('.details').textContent";
        browser.until(&format!("{details}.includes('declined') && {details}.includes('in the turn')")).await;
        browser.took_few_clicks().await;
    })
    .await;
}
