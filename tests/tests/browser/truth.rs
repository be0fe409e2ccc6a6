//! In an incident the page says nothing false, and shows no part as if it were the whole.

use std::sync::{Arc, Mutex};

use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse as _;
use serde_json::json;
use tickover_dashboard::Settings;

use crate::driver::browse;
use crate::flows::{approval, relay};
use crate::jobs::Incident;
use crate::site::{Server, Site, router};

#[tokio::test]
async fn a_parked_run_shows_all_that_it_waits_for_and_a_callback_has_its_own_form() {
    let site = Site::empty().await;
    site.client().start(&approval, ()).id("approval-1").await.unwrap();
    site.env.advance("1m").await.unwrap();
    browse(&site.url(), async |browser| {
        browser.open("#/executions/approval-1").await;
        browser.sees("the event approved, without a time limit").await;
        browser.sees("the callback bank, at most for a time").await;
        browser.sees("the timer expiry").await;

        browser.open("#/events?id=approval-1").await;
        browser.sees("the callback bank, at most for a time").await;
        // Only what the system takes is suggested.
        let suggested =
            "[...document.querySelectorAll('#event-name-list option')].map((one) => one.value).join()";
        browser.until(&format!("{suggested} === 'approved'")).await;
        browser.press("the event approved, without a time limit").await;
        browser.until("document.getElementById('event-name').value === 'approved'").await;

        let timeline = site.get("executions/approval-1/timeline").await;
        let step =
            timeline["entries"].as_array().unwrap().iter().find(|one| one["name"] == "hand_over").unwrap();
        let token = step["output"].as_str().unwrap();
        browser.fill("callback-token", "x1").await;
        browser.sees("callback complete x1").await;
        browser.press("Report").await;
        browser.sees("unknown_callback").await;
        browser.fill("callback-token", &format!("https://example.com/v1/callbacks/{token}")).await;
        browser.fill("callback-output", "true").await;
        browser.press("Report").await;
        browser.sees("Reported.").await;
        browser.is_accessible("a callback's form").await;
        site.env.advance("1m").await.unwrap();
        assert_eq!(site.execution("approval-1").await["output"], true);
    })
    .await;
}

#[tokio::test]
async fn what_waits_in_a_paused_queue_is_not_said_to_wait_for_a_worker() {
    let site = Site::empty().await;
    site.task("mail-1", &json!({})).await;
    site.task("mail-2", &json!({"timeout": "2h"})).await;
    site.post("queues/emails/pause", json!({})).await;
    browse(&site.url(), async |browser| {
        browser.open("#/tasks/mail-1").await;
        browser.sees("Its queue emails is paused: no worker gets it.").await;
        browser.sees("Nothing, until the queue emails is resumed.").await;
        browser.misses("The first of its workers").await;
        browser.open("#/tasks").await;
        browser.sees("queue paused").await;
        browser.sees("its queue is paused").await;
        browser.misses("waits for worker").await;
        site.post("queues/emails/resume", json!({})).await;
        browser.open("#/tasks/mail-1").await;
        browser.sees("The first of its workers that asks takes it").await;
    })
    .await;
}

/// More than a page has.
const MANY: usize = 520;

#[tokio::test]
async fn numbers_are_of_all_there_is_and_a_group_of_failures_is_called_as_a_whole() {
    let site = Site::empty().await;
    for number in 0..MANY {
        site.failed_task(&format!("lost-{number}")).await;
    }
    site.timed_out_task("slow").await;
    site.task("old", &json!({"queue": "reports"})).await;
    site.task("held", &json!({"queue": "reports"})).await;
    site.claim("held").await;
    site.env.advance("2m").await.unwrap();
    for number in 0..MANY {
        site.task(&format!("new-{number}"), &json!({})).await;
    }
    browse(&site.url(), async |browser| {
        browser.open("#/").await;
        let number = |label: &str| {
            format!("[...document.querySelectorAll('.tile')].find((one) => one.textContent.includes('{label}'))?.firstChild.textContent")
        };
        // All are counted, more than a page has.
        browser.until(&format!("{} === '{}'", number("tasks wait"), MANY + 1)).await;
        // Without an index, only so many failures are read.
        browser.until(&format!("{} === '500+'", number("failed"))).await;
        browser.until(&format!("{} === '1'", number("tasks run"))).await;
        browser.until(&format!("{} === '1'", number("are late"))).await;
        browser.until("[...document.querySelectorAll('tbody tr')].some((row) => row.textContent.includes('reports') && row.textContent.includes('ada'))").await;

        browser.open("#/failures").await;
        let rows = "[...document.querySelectorAll('tbody tr')].map((row) => [...row.cells].slice(1, 3).map((cell) => cell.textContent).join(' ')).join()";
        browser.until(&format!("{rows}.includes('no_such_address {MANY}') && {rows}.split(',').length === 2")).await;
        browser.press_on("tbody a").await;
        browser.sees("operation on-tasks retry --kind welcome --error no_such_address --status failed").await;
        browser.press("Retry all").await;
        site.operations(1).await;
        site.env.advance("10s").await.unwrap();
        browser.sees(&format!("Found now: {MANY}.")).await;
        browser.press("No, go back").await;
    })
    .await;
}

#[tokio::test]
async fn a_number_leads_to_what_it_counts() {
    let incident = Incident::of(Settings::default()).await;
    incident.execution("turn-1", json!({"queue": "emails"})).await;
    incident.pass(2);
    browse(&incident.server.url(), async |browser| {
        browser.open("#/").await;
        browser.sees("tasks are late").await;
        browser.press("1executions are late").await;
        browser.sees("turn-1").await;
        // A queue's messages are of turns, too.
        browser.open("#/queues").await;
        browser
            .until("[...document.querySelectorAll('dd')].some((one) => one.textContent === '1, its tasks')")
            .await;
    })
    .await;
}

#[tokio::test]
async fn executions_whose_deadline_passed_are_a_group_that_is_called_as_a_whole() {
    let site = Site::empty().await;
    for id in ["slow-1", "slow-2"] {
        let start = json!({"workflow": "unheard", "id": id, "execution_timeout": "5s"});
        site.post("executions", start).await;
    }
    site.env.advance("10s").await.unwrap();
    browse(&site.url(), async |browser| {
        browser.open("#/").await;
        browser.press("workflow unheard").await;
        browser.sees("operation on-executions retry --workflow unheard --status timed_out").await;
        browser.press("Rerun all").await;
        site.operations(1).await;
        site.env.advance("10s").await.unwrap();
        browser.sees("Found now: 2.").await;
        browser.press("No, go back").await;
    })
    .await;
}

#[tokio::test]
async fn each_refusal_has_its_own_sentence_with_the_servers_own_text_and_only_a_deleted_record_is_deleted() {
    let site = Site::empty().await;
    site.failed_task("lost").await;
    let refusal: Arc<Mutex<Option<(StatusCode, &str)>>> = Arc::default();
    let says = Arc::clone(&refusal);
    let refusing = from_fn(move |request: Request, next: Next| {
        let is_api = request.uri().path().starts_with("/v1/");
        let refused = says.lock().unwrap().filter(|_| is_api);
        async move {
            match refused {
                Some((status, body)) => {
                    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
                }
                None => next.run(request).await,
            }
        }
    });
    let settings = Settings { metrics: false, ..Settings::default() };
    let server = Server::start("127.0.0.1:0", router(site.env.service(), settings).layer(refusing)).await;
    browse(&server.url(), async |browser| {
        for (status, body, sentence, text) in [
            (
                StatusCode::UNAUTHORIZED,
                r#"{"message": "The security token is expired"}"#,
                "doesn’t know who asks",
                "The security token is expired",
            ),
            (
                StatusCode::FORBIDDEN,
                r#"{"Message": "not authorized to perform"}"#,
                "refuses this to whom",
                "not authorized to perform",
            ),
            (
                StatusCode::BAD_REQUEST,
                r#"{"title": "Invalid request", "detail": "expected a task", "code": "invalid_request"}"#,
                "doesn’t accept what this page asks for",
                "expected a task",
            ),
            (
                StatusCode::NOT_FOUND,
                r#"{"message": "no such stage"}"#,
                "doesn’t accept what this page asks for",
                "no such stage",
            ),
            (
                StatusCode::INTERNAL_SERVER_ERROR,
                r#"{"title": "Unavailable", "detail": "the disk is full"}"#,
                "The server has failed",
                "the disk is full",
            ),
        ] {
            *refusal.lock().unwrap() = None;
            browser.open("#/").await;
            browser.open("#/tasks/lost").await;
            browser.sees("no_such_address").await;
            *refusal.lock().unwrap() = Some((status, body));
            browser.sees(sentence).await;
            browser.sees(text).await;
            browser.sees("no_such_address").await;
            browser.misses("It was deleted meanwhile").await;
        }
        *refusal.lock().unwrap() = None;
        browser.misses("The server has failed").await;
        site.env.advance("100d").await.unwrap();
        browser.sees("It was deleted meanwhile. What follows is its last known state.").await;
    })
    .await;
    server.stop().await;
}

#[tokio::test]
async fn a_cron_whose_last_run_failed_is_red_in_the_list_and_on_its_page() {
    let site = Site::empty().await;
    let task = json!({"queue": "reports", "kind": "daily", "timeout": "5s"});
    site.post("crons", json!({"id": "nightly", "every": "1h", "task": task})).await;
    site.env.advance("61m").await.unwrap();
    browse(&site.url(), async |browser| {
        for view in ["#/crons", "#/crons/nightly"] {
            browser.open(view).await;
            browser.until("[...document.querySelectorAll('.badge.failed')].some((one) => one.textContent === 'active, last run timed out')").await;
            browser.until("document.querySelector('.badge.active') === null").await;
            browser.is_accessible(view).await;
        }
    })
    .await;
}

#[tokio::test]
async fn an_earlier_run_shows_its_own_state_input_and_output() {
    let site = Site::empty().await;
    site.client().start(&relay, 1).id("relay-1").await.unwrap();
    site.env.advance("1m").await.unwrap();
    browse(&site.url(), async |browser| {
        browser.open("#/executions/relay-1").await;
        browser.sees("It has a result").await;
        browser.sees("leg 2").await;
        let input = "document.querySelector('[data-key=\"text Input\"]').textContent";
        browser.until(&format!("{input} === '2'")).await;
        browser.press("run 1").await;
        browser.sees("This is run 1 as it was at its end. The current one is run 2").await;
        browser.until("document.querySelector('.state .badge').textContent === 'continued'").await;
        browser.until(&format!("{input} === '1'")).await;
        browser.misses("leg 2").await;
        browser.misses("What happens next").await;
        browser.is_accessible("an earlier run").await;
    })
    .await;
}
