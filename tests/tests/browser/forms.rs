//! The forms: start, schedule, send an event.

use serde_json::json;

use crate::driver::browse;
use crate::site::Site;

#[tokio::test]
async fn an_execution_is_started_with_a_form_that_checks_its_json() {
    let site = Site::empty().await;
    browse(&site.url(), async |browser| {
        browser.open("#/start").await;
        browser.fill("start-workflow", "order").await;
        browser.fill("start-input", "{\"number\": 7,").await;
        browser.sees("Not JSON").await;
        browser.press("Start the execution").await;
        assert_eq!(site.get("executions/order-7").await["code"], "not_found");
        browser
            .fill("start-input", "{\"number\": 7, \"big\": 12345678901234567890123, \"exact\": 1.50}")
            .await;
        browser.misses("Not JSON").await;
        browser.fill("start-id", "order-7").await;
        browser.fill("start-labels", "{\"team\": \"blue\"}").await;
        browser.press("Start the execution").await;
        browser.sees("It is stored as order-7").await;
        // What was typed arrives as it is, and is shown as it is.
        let text = reqwest::get(format!("{}/v1/executions/order-7", site.url()))
            .await
            .unwrap()
            .text()
            .await
            .unwrap();
        assert!(text.contains("\"big\": 12345678901234567890123, \"exact\": 1.50"), "{text}");
        browser.press("order-7").await;
        browser.sees("12345678901234567890123").await;
        browser.sees("1.50").await;

        // A refusal is shown as the API says it.
        browser.open("#/start").await;
        browser.fill("start-workflow", "not a name").await;
        browser.press("Start the execution").await;
        browser.sees("invalid_request").await;
        browser.sees("field workflow").await;
    })
    .await;
}

#[tokio::test]
async fn a_task_is_scheduled_with_a_form() {
    let site = Site::empty().await;
    browse(&site.url(), async |browser| {
        browser.open("#/start").await;
        browser.press("A task for a worker").await;
        browser.fill("task-queue", "emails").await;
        browser.fill("task-kind", "welcome").await;
        browser.fill("task-id", "mail-1").await;
        browser.fill("task-timeout", "10m").await;
        browser.fill("task-retry", "exponential(3, 2s)").await;
        browser.fill("task-input", "[1, 2]").await;
        browser
            .sees("task emails welcome '[1, 2]' --id mail-1 --timeout 10m --retry 'exponential(3, 2s)'")
            .await;
        browser.press("Schedule the task").await;
        browser.sees("It is stored as mail-1").await;
        let task = &site.get("tasks/mail-1").await["task"];
        assert_eq!((&task["input"], &task["max_attempts"]), (&json!([1, 2]), &json!(4)));
        assert!(task["deadline_at"].is_string());
    })
    .await;
}

#[tokio::test]
async fn an_event_is_sent_to_the_execution_that_waits_for_it() {
    let site = Site::empty().await;
    site.order(7).await;
    site.env.advance("4d").await.unwrap();
    site.order(8).await;
    browse(&site.url(), async |browser| {
        browser.open("#/executions/order-7").await;
        browser.press("Send it an event").await;
        browser.press("the event shipped, at most for a time").await;
        browser.until("document.getElementById('event-name').value === 'shipped'").await;
        browser.fill("event-payload", "\"a bicycle\"").await;
        browser.sees("event order-7 shipped '\"a bicycle\"'").await;
        browser.press("Send the event").await;
        browser.sees("Sent.").await;
        site.env.advance("1m").await.unwrap();
        assert_eq!(site.execution("order-7").await["output"], "charge-7 with a bicycle and a note of 16");
        browser.sees("It has ended: it takes no more events").await;

        // An event that nobody waits for yet is kept, shown and can be removed.
        browser.open("#/events?id=order-8").await;
        browser.fill("event-name", "noise").await;
        browser.press("Send the event").await;
        browser.press("Clear noise").await;
        browser.press("Yes, clear").await;
        browser.sees("1 events of noise are removed").await;
        assert_eq!(site.execution("order-8").await["pending_events"], 0);
    })
    .await;
}
