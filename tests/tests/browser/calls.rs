//! Every button makes its call, and its command is one of the tool.

use serde_json::{Value, json};
use tickover::test::Replayed;
use tickover_tests::process::Process;

use crate::driver::browse;
use crate::site::Site;

#[tokio::test]
async fn an_execution_is_exported_with_or_without_its_payloads() {
    let site = Site::full().await;
    browse(&site.url(), async |browser| {
        browser.open("#/executions/order-7").await;
        browser.sees("execution export order-7 --payloads").await;
        let keep = "(() => {
            const make = URL.createObjectURL;
            URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; }); return make.call(URL, blob); };
            return true;
        })()";
        assert_eq!(browser.value(keep).await, true);
        browser.press("Export").await;
        browser.until("window.saved.includes('handle with care')").await;
        let saved: Value = serde_json::from_str(browser.value("window.saved").await.as_str().unwrap()).unwrap();
        assert_eq!((&saved["execution"]["id"], &saved["payloads"]), (&json!("order-7"), &json!(true)));
        let replayed = site.env.replay(&saved.to_string()).await.unwrap();
        assert!(matches!(replayed, Replayed::Waits(_)), "{replayed:?}");
        browser.press_on("#export-payloads").await;
        browser.press("Export").await;
        browser.until("window.saved.includes('\"payloads\":false') && !window.saved.includes('handle with care')").await;
    })
    .await;
}

#[tokio::test]
async fn each_button_of_an_execution_makes_its_call() {
    let site = Site::empty().await;
    site.order(7).await;
    site.order(13).await;
    site.order(8).await;
    browse(&site.url(), async |browser| {
        browser.open("#/executions/order-7").await;
        browser.press("Pause order-7").await;
        browser.sees("An operator holds it").await;
        assert_eq!(site.execution("order-7").await["status"], "paused");
        browser.press("Resume order-7").await;
        browser.misses("An operator holds it").await;
        assert_eq!(site.execution("order-7").await["status"], "waiting");

        // What can't be undone is asked about first, and not done if the answer is no.
        browser.press("Cancel order-7").await;
        browser.sees("A cancelled execution doesn’t continue").await;
        browser.press("No, go back").await;
        browser.until("document.querySelector('dialog') === null").await;
        assert_eq!(site.execution("order-7").await["status"], "waiting");
        browser.press("Cancel order-7").await;
        browser.press("Yes, cancel").await;
        browser.sees("It was cancelled").await;
        assert_eq!(site.execution("order-7").await["status"], "cancelled");

        browser.press("Restart order-7").await;
        browser.press("Yes, restart").await;
        browser.until("document.querySelector('a[aria-current=true]')?.textContent === 'run 2'").await;
        browser.press("Terminate order-7").await;
        browser.press("Yes, terminate").await;
        browser.sees("It was terminated").await;
        assert_eq!(site.execution("order-7").await["cause"]["category"], "terminated");
        browser.press("Rerun order-7").await;
        browser.until("document.querySelector('a[aria-current=true]')?.textContent === 'run 3'").await;

        browser.open("#/executions/order-13").await;
        browser.press("Retry the step order-13").await;
        browser.until("!document.body.innerText.includes('Its step charge failed')").await;
        assert!(site.execution("order-13").await.get("ended_at").is_none());
    })
    .await;
}

#[tokio::test]
async fn each_button_of_a_task_makes_its_call() {
    let site = Site::empty().await;
    site.failed_task("lost").await;
    site.task("running", &json!({})).await;
    site.claim("running").await;
    site.task("waiting", &json!({})).await;
    let status = async |id: &str| site.get(&format!("tasks/{id}")).await["task"]["status"].take();
    browse(&site.url(), async |browser| {
        browser.open("#/tasks/lost").await;
        browser.press("Retry lost").await;
        browser.sees("It needs a worker of the queue emails").await;
        assert_eq!(status("lost").await, "pending");

        browser.open("#/tasks/waiting").await;
        browser.press("Cancel waiting").await;
        browser.press("Yes, cancel").await;
        browser.sees("It was cancelled").await;
        assert_eq!(status("waiting").await, "cancelled");

        browser.open("#/tasks/running").await;
        browser.sees("ada").await;
        browser.press("Cancel running").await;
        browser.press("Yes, cancel").await;
        browser.sees("Its worker is told").await;
        assert_eq!(status("running").await, "running");
        browser.press("Cancel by force running").await;
        browser.press("Yes, cancel by force").await;
        browser.sees("It was cancelled").await;
        assert_eq!(status("running").await, "cancelled");
    })
    .await;
}

#[tokio::test]
async fn each_button_of_a_queue_and_of_a_cron_makes_its_call() {
    let site = Site::full().await;
    let is_paused = async || site.get("queues/emails").await["queue"]["paused"].take();
    let cron = async || site.get("crons/nightly").await["cron"].take();
    browse(&site.url(), async |browser| {
        browser.open("#/queues").await;
        browser.press("Pause emails").await;
        browser.sees("Pause emails: done").await;
        assert_eq!(is_paused().await, true);
        browser.press("Resume emails").await;
        browser.sees("Resume emails: done").await;
        assert_eq!(is_paused().await, false);

        browser.open("#/crons").await;
        browser.press("nightly").await;
        browser.press("Pause nightly").await;
        browser.sees("Pause nightly: done").await;
        assert_eq!(cron().await["status"], "paused");
        browser.press("Resume nightly").await;
        browser.sees("Resume nightly: done").await;
        assert_eq!(cron().await["status"], "active");
        browser.press("Trigger nightly").await;
        browser.press("Yes, trigger").await;
        browser.sees("(triggered)").await;
        assert_eq!(cron().await["runs"][0]["manual"], true);
        browser.press("Delete nightly").await;
        browser.press("Yes, delete").await;
        browser.sees("Delete nightly: done").await;
        assert_eq!(site.get("crons/nightly").await["code"], "not_found");
    })
    .await;
}

#[tokio::test]
async fn a_key_is_found_its_limit_set_and_unset_and_a_place_released() {
    let site = Site::full().await;
    let limit = async || site.get("limits/ocr").await["limit"].take();
    browse(&site.url(), async |browser| {
        browser.open("#/tasks/ocr-2").await;
        browser.press("Who has the places").await;
        browser.sees("ocr-1").await;
        browser.fill("limit-most", "0").await;
        browser.press("Set the limit").await;
        browser.sees("invalid_request").await;
        assert_eq!(limit().await["limit"], 1);
        browser.fill("limit-most", "3").await;
        browser.sees("limits set ocr 3").await;
        browser.press("Set the limit").await;
        browser.sees("3, set by local").await;
        assert_eq!((limit().await["limit"].take(), limit().await["pinned"].take()), (json!(3), json!(true)));
        browser.press("Unset ocr").await;
        browser.misses("set by local").await;
        assert_eq!(limit().await["pinned"], false);

        browser.press("Release ocr-1").await;
        browser.sees("more than the limit may run").await;
        browser.press("Yes, release").await;
        browser.sees("Release ocr-1: done").await;
        let holders = limit().await["holders"].take();
        assert!(holders.as_array().unwrap().iter().all(|one| one["task"] != "ocr-1"), "{holders}");

        browser.open("#/limits").await;
        browser.fill("limit-key", "ocr").await;
        browser.press("Show the key").await;
        browser.sees("limits show ocr").await;
        browser.is_accessible("a key").await;
    })
    .await;
}

#[tokio::test]
async fn the_rate_of_a_key_and_its_next_start_are_shown() {
    let site = Site::empty().await;
    for id in ["mail-1", "mail-2"] {
        site.task(id, &json!({"rate": {"key": "smtp", "limit": 2, "per": "1h"}})).await;
    }
    browse(&site.url(), async |browser| {
        browser.open("#/limits/smtp").await;
        browser.sees("2 in each 1h, 1 at once after a quiet time").await;
        browser.sees("Next start").await;
        browser.press("Reset smtp").await;
        browser.sees("Reset smtp: done").await;
    })
    .await;
}

#[tokio::test]
async fn a_group_of_failures_is_retried_as_an_operation() {
    let site = Site::empty().await;
    for number in 0..30 {
        site.failed_task(&format!("lost-{number}")).await;
    }
    site.order(13).await;
    browse(&site.url(), async |browser| {
        browser.open("#/failures").await;
        browser.press("task welcome").await;
        browser.sees("lost-29").await;
        // The call is for all that failed so, not for those that are shown.
        browser.sees("operation on-tasks retry --kind welcome --error no_such_address --status failed --status timed_out").await;
        browser.press("Retry all").await;
        site.operations(1).await;
        site.env.advance("1s").await.unwrap();
        browser.sees("Found now: 30.").await;
        browser.press("Yes, retry all").await;
        browser.sees("What was asked for").await;
        site.env.advance("1s").await.unwrap();
        browser.sees("30 found, 30 changed.").await;
        let open = site.get("tasks?status=pending&limit=100").await;
        assert_eq!(open["tasks"].as_array().unwrap().len(), 30);

        browser.open("#/failures").await;
        browser.press("workflow order, step charge").await;
        browser.press("Retry the step of all").await;
        site.operations(3).await;
        site.env.advance("1s").await.unwrap();
        browser.sees("Found now: 1.").await;
        // Meanwhile the execution is restarted elsewhere: it has no failed step any more, and nobody runs it.
        site.post("queues/workflows/pause", json!({})).await;
        site.post("executions/order-13/restart", json!({})).await;
        browser.press("Yes, retry the step of all").await;
        site.operations(4).await;
        site.env.advance("1s").await.unwrap();
        browser.sees("0 found, 0 changed.").await;

        let nobody = json!({"id": "lost", "action": "cancel", "executions": {"ids": ["nobody"]}});
        site.post("operations", nobody).await;
        browser.open("#/operations").await;
        browser.press("lost").await;
        site.env.advance("1s").await.unwrap();
        browser.sees("1 not_found").await;
        browser.is_accessible("an operation").await;
    })
    .await;
}

#[tokio::test]
async fn all_that_match_a_filter_are_counted_first_and_then_called_or_get_an_event() {
    let site = Site::full().await;
    let status = async |id: &str| site.get(&format!("executions/{id}")).await["execution"]["status"].take();
    browse(&site.url(), async |browser| {
        browser.open("#/executions?workflow=order&status=failed%2Ctimed_out").await;
        browser.press_on("summary").await;
        browser.press("Restart all").await;
        site.operations(1).await;
        site.env.advance("1s").await.unwrap();
        browser.sees("Found now: 1.").await;
        assert_eq!(status("order-13").await, "failed");
        browser.press("Yes, restart all").await;
        browser.sees("What was asked for").await;
        assert_eq!(status("order-13").await, "failed");
        // Its run fails again, and once is enough.
        site.env.advance("5m").await.unwrap();
        browser.sees("1 found, 1 changed.").await;
        assert_eq!(site.get("executions/order-13").await["execution"]["run"], 2);

        browser.open("#/executions?workflow=order&status=waiting").await;
        browser.press_on("summary").await;
        browser.fill("many-event", "shipped").await;
        browser.fill("many-payload", "\"a bicycle\"").await;
        browser.press("Send to all").await;
        site.operations(3).await;
        site.env.advance("1s").await.unwrap();
        browser.press("Yes, send to all").await;
        browser.sees("What was asked for").await;
        site.env.advance("1m").await.unwrap();
        browser.sees("1 found, 1 changed.").await;
        assert_eq!(status("order-7").await, "completed");

        browser.open("#/tasks?status=failed%2Ctimed_out").await;
        browser.press_on("summary").await;
        browser.press("Retry all").await;
        site.operations(5).await;
        site.env.advance("1s").await.unwrap();
        browser.sees("Found now: 2.").await;
        browser.press("No, go back").await;
        assert_eq!(site.get("tasks/mail-2").await["task"]["status"], "failed");
    })
    .await;
}

#[tokio::test]
async fn an_operation_is_stopped() {
    let site = Site::empty().await;
    site.failed_task("lost").await;
    let retry = json!({"id": "again", "action": "retry", "tasks": {"queue": "emails"}});
    site.post("operations", retry).await;
    browse(&site.url(), async |browser| {
        browser.open("#/operations").await;
        browser.press("again").await;
        browser.press("Stop again").await;
        browser.sees("Stop again: done").await;
        browser.sees("No call applies in this state").await;
        site.env.advance("5m").await.unwrap();
        assert_eq!(site.get("operations/again").await["operation"]["status"], "stopped");
        assert_eq!(site.get("tasks/lost").await["task"]["status"], "failed");
    })
    .await;
}

#[tokio::test]
async fn a_local_server_lists_the_keys_at_which_tasks_wait_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let args = |listen| {
        ["dev".to_owned(), "--data".to_owned(), data.display().to_string(), "--listen".to_owned(), listen]
    };
    let start = |listen: String| {
        let args = args(listen);
        Process::tickover(&args.each_ref().map(String::as_str)).unwrap()
    };
    let dev = start("127.0.0.1:0".to_owned());
    let address = dev.address().await.unwrap();
    let post = async |path: &str, body: Value| {
        let sent = reqwest::Client::new().post(format!("{address}/v1/{path}")).json(&body).send();
        sent.await.unwrap().error_for_status().unwrap();
    };
    browse(&address, async |browser| {
        browser.open("#/limits").await;
        browser.sees("Nothing waits for a place").await;
        for id in ["first", "second", "third"] {
            let limits = json!([{"key": "a \"key\"", "limit": 1}]);
            post("tasks", json!({"queue": "pages", "kind": "ocr", "id": id, "concurrency": limits})).await;
            post(&format!("tasks/{id}/claim"), json!({"lease": "1h"})).await;
        }
        let rows = "[...document.querySelectorAll('tbody td')].map((cell) => cell.textContent).join() === 'a \"key\",1,2'";
        browser.until(rows).await;
        dev.kill().await.unwrap();
        let again = start(address.trim_start_matches("http://").to_owned());
        again.address().await.unwrap();
        browser.reload().await;
        browser.until(rows).await;
        browser.press_on("tbody a").await;
        browser.sees("third").await;
        let number = "[...document.querySelectorAll('.facts div')].map((one) => one.textContent).join()";
        browser.until(&format!("{number}.includes('Running1,Waiting2')")).await;
        // What runs in the queue, and who has it, is known without having seen the claim.
        browser.open("#/queues").await;
        browser.until(&format!("{number}.includes('With workers1')")).await;
    })
    .await;
}

/// Each command that the page shows is run by the tool against a real server. Wrong usage has the exit status 2.
#[tokio::test]
async fn each_command_of_the_page_is_one_of_the_tool() {
    let dev = Process::tickover(&["dev", "--listen", "127.0.0.1:0"]).unwrap();
    let address = dev.address().await.unwrap();
    browse(&address, async |browser| {
        browser.open("#/").await;
        browser.sees("Nothing has been scheduled yet").await;
        let all = browser
            .value(
                "import(new URL('dashboard/commands.js', document.baseURI)).then(({commands, line}) => {
                    // An id that begins with a dash isn't an option.
                    return ['x-1', '-x'].flatMap((id) => {
                        const sample = {
                            start: ['order', {id, queue: 'q', input: '{\"a\": 1}'}],
                            schedule: ['q', 'k', {id, input: '[1]', timeout: '10m', retry: 'exponential(3, 2s)'}],
                            sendEvent: [id, 'shipped', '{}', true], retryStep: [id, 'label[3]', '{\"a\": 1}'], showExecution: [id, '3'], exportRun: [id, '3'], timeline: [id, '3'],
                            scheduleLimited: ['q', 'k', 'customer-7=5'], setLimit: [id, '3'],
                            many: ['executions', 'retry', {workflow: 'order', ids: [id], status: ['failed']}],
                        };
                        return Object.entries(commands).map(([name, make]) => {
                            const args = make(...(sample[name] ?? [id, 'y']));
                            return {name, args, line: line(args)};
                        });
                    });
                })",
            )
            .await;
        let all = all.as_array().unwrap();
        assert!(all.len() > 25, "{all:?}");
        for command in all {
            let args: Vec<&str> = command["args"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            let run = Process::tickover(&[&["--endpoint", &address], &args[..]].concat()).unwrap();
            let ended = run.ended().await.unwrap();
            assert_ne!(ended.status.code(), Some(2), "{command}: {}", ended.stderr);
            // As it is pasted into a shell, it is the same.
            let line = command["line"].as_str().unwrap();
            let shell = format!("tickover() {{ printf '%s\\n' \"$@\"; }}; {line}");
            let pasted = Process::from_command(tokio::process::Command::new("sh").args(["-c", &shell])).unwrap();
            let pasted = pasted.ended().await.unwrap().stdout;
            let expected = [&["--endpoint", &address], &args[..]].concat().join("\n");
            assert_eq!(pasted.trim_end(), expected, "{line}");
        }
    })
    .await;
}
