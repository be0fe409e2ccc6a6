//! Each view with and without data: what it shows, and that everybody can use it.

use crate::driver::{Browser, browse};
use crate::site::Site;

/// A view by its hash, and a text that it shows in a new system.
const EMPTY: &[(&str, &str)] = &[
    ("#/", "Nothing has been scheduled yet"),
    ("#/executions?workflow=unheard", "There is no execution of unheard"),
    ("#/tasks", "There is no task that is open or has failed"),
    ("#/failures", "Nothing that is kept has failed"),
    ("#/operations", "There is no operation on many records yet"),
    ("#/limits", "Nothing waits for a place"),
    ("#/limits/unheard", "nothing has asked for one lately"),
    ("#/workers", "There is no queue yet, so no worker has asked for work"),
    ("#/search", "Type an id, its beginning, or a label as name=value"),
    ("#/crons", "There is no cron yet"),
    ("#/events", "Choose an execution first"),
    ("#/start", "Start an execution"),
    ("#/nowhere", "There is no such view"),
];

/// The same in a system with data.
const FULL: &[(&str, &[&str])] = &[
    (
        "#/",
        &[
            "tasks wait",
            "workflow order, step charge",
            "task welcome",
            "no_such_address",
            "reports",
            "paused",
        ],
    ),
    ("#/executions", &["order-7", "order-13", "Waiting", "declined: the bank says no"]),
    (
        "#/executions?workflow=order&status=failed%2Ctimed_out",
        &["order-13", "tickover", "execution list order"],
    ),
    (
        "#/executions/order-7",
        &[
            "What happens next",
            "It waits for:",
            "Timeline",
            "settle",
            "handle with care",
            "team=blue",
            "Deadline",
        ],
    ),
    ("#/executions/order-13", &["Its step charge failed at the last of its attempts", "Retry the step"]),
    ("#/tasks", &["mail-1", "mail-2", "nobody has this address", "report-1"]),
    (
        "#/tasks/mail-1",
        &[
            "What happens next",
            "times out for good",
            "ada@example.com",
            "team=blue",
            "No worker has claimed it yet",
        ],
    ),
    (
        "#/tasks/mail-4",
        &["timed out", "The deadline over all attempts passed", "schedule_to_close was", "retry mail-4"],
    ),
    ("#/tasks?status=timed_out", &["mail-4", "timed out"]),
    ("#/failures?group=task+welcome+timed_out", &["mail-4", "the task's deadline passed", "Retry all"]),
    ("#/tasks/mail-2", &["Its last attempt failed", "no_such_address", "retry mail-2"]),
    ("#/failures", &["workflow order, step charge", "declined", "task welcome"]),
    ("#/failures?group=task+welcome+no_such_address", &["mail-2", "mail-3", "Retry all"]),
    ("#/queues", &["emails", "reports", "Its tasks aren’t given to workers", "queue resume reports"]),
    ("#/tasks/ocr-2", &["It waits for a place at the key ocr: 1 of 1 are taken", "number 1 in the line"]),
    ("#/limits", &["ocr", "Keys with free places aren’t listed", "limits list"]),
    ("#/limits/ocr", &["Who runs", "ocr-1", "Who waits", "ocr-2", "Release", "limits show ocr"]),
    ("#/workers", &["emails", "ada", "workers list"]),
    ("#/search?q=team%3Dblue", &["order-7", "mail-1", "list --label team=blue"]),
    ("#/crons", &["nightly", "0 3 * * *", "daily"]),
    ("#/crons/nightly", &["Next occurrence", "cron trigger nightly", "It has had no run"]),
    ("#/events?id=order-7", &["the event shipped, at most for a time", "Send an event"]),
    ("#/start?what=task", &["Schedule a task", "Kind"]),
];

/// A system with data, and with a task that has timed out.
async fn full() -> Site {
    let site = Site::full().await;
    site.timed_out_task("mail-4").await;
    site
}

#[tokio::test]
async fn each_view_of_a_new_system_says_how_to_make_the_first_one() {
    let site = Site::empty().await;
    browse(&site.url(), async |browser| {
        for (hash, text) in EMPTY {
            browser.open(hash).await;
            browser.sees(text).await;
            browser.is_accessible(hash).await;
        }
    })
    .await;
}

#[tokio::test]
async fn each_view_shows_what_there_is() {
    let site = full().await;
    browse(&site.url(), async |browser| {
        for (hash, texts) in FULL {
            browser.open(hash).await;
            for text in *texts {
                browser.sees(text).await;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn each_view_is_accessible_in_both_schemes_and_on_a_narrow_screen() {
    let site = full().await;
    browse(&site.url(), async |browser| {
        for (scheme, width) in
            [("light", 320), ("light", 768), ("light", 1400), ("dark", 320), ("dark", 768), ("dark", 1400)]
        {
            browser.look(scheme, width).await;
            for (hash, texts) in FULL {
                browser.open(hash).await;
                browser.sees(texts[0]).await;
                browser.is_accessible(&format!("{hash}, {scheme}, {width}")).await;
                fits(browser, hash).await;
            }
        }
    })
    .await;
}

/// The page itself never scrolls sideways: only wide tables do, each by itself.
async fn fits(browser: &Browser, what: &str) {
    let surplus =
        browser.value("document.documentElement.scrollWidth - document.documentElement.clientWidth").await;
    assert_eq!(surplus, 0, "{what}");
}

#[tokio::test]
async fn instants_are_local_with_utc_on_hover() {
    let site = Site::full().await;
    browse(&site.url(), async |browser| {
        let zone = serde_json::json!({"timezoneId": "Asia/Tokyo"});
        browser.devtools("Emulation.setTimezoneOverride", zone).await;
        browser.open("#/tasks/mail-1").await;
        browser.sees("Scheduled").await;
        let time = "[...document.querySelectorAll('dd time')][0]";
        browser.until(&format!("{time}.title.includes(new Date({time}.dateTime).toISOString())")).await;
        let hour = "String((new Date(time.dateTime).getUTCHours() + 9) % 24).padStart(2, '0')";
        browser
            .until(&format!("((time) => new Intl.DateTimeFormat('en-GB', {{hour: '2-digit'}}).format(new Date(time.dateTime)) === {hour})({time})"))
            .await;
    })
    .await;
}

#[tokio::test]
async fn a_list_has_pages_filters_and_a_search_by_id() {
    let site = Site::empty().await;
    for number in 0..60 {
        site.task(&format!("mail-{number:02}"), &serde_json::json!({})).await;
    }
    site.failed_task("lost").await;
    site.order(7).await;
    browse(&site.url(), async |browser| {
        browser.open("#/tasks?queue=emails&status=pending").await;
        browser.until("document.querySelectorAll('tbody tr').length === 50").await;
        browser.press("Next page").await;
        browser.until("document.querySelectorAll('tbody tr').length === 10").await;
        browser.press("First page").await;
        browser.until("document.querySelectorAll('tbody tr').length === 50").await;
        browser.choose("status", "failed").await;
        browser.until("document.querySelectorAll('tbody tr').length === 1").await;
        browser.sees("lost").await;
        browser.fill("rows", "nothing has this").await;
        browser.sees("No task matches").await;
        // The search finds any kind of record.
        browser.fill("search-id", "order-7\u{e007}").await;
        browser.until("document.querySelector('h1').textContent === 'order-7'").await;
        browser.sees("What happens next").await;
        browser.fill("search-id", "mail-05\u{e007}").await;
        browser.until("location.hash === '#/tasks/mail-05'").await;
        browser.fill("search-id", "nobody\u{e007}").await;
        browser.sees("No execution, task or cron has this id").await;
    })
    .await;
}
