//! A server that is read-only, refuses, is stopped or is slow in the middle of what an operator does.

use serde_json::json;
use tokio::sync::watch;

use crate::driver::{Browser, browse};
use crate::flows::parcel;
use crate::site::{Server, Site};
use crate::trouble::{Trouble, troubled, with_operation};

/// A call of an operator.
struct Call {
    view: &'static str,
    /// What is opened and filled in first.
    opens: Option<&'static str>,
    fields: &'static [(&'static str, &'static str)],
    button: &'static str,
    /// The answer to the question whether one is sure.
    sure: Option<&'static str>,
    /// What the page shows only after it.
    done: &'static str,
}

impl Call {
    const fn new(view: &'static str, button: &'static str, done: &'static str) -> Self {
        Self { view, opens: None, fields: &[], button, sure: None, done }
    }

    const fn sure(self, sure: &'static str) -> Self {
        Self { sure: Some(sure), ..self }
    }

    const fn opens(self, selector: &'static str) -> Self {
        Self { opens: Some(selector), ..self }
    }

    const fn with(self, fields: &'static [(&'static str, &'static str)]) -> Self {
        Self { fields, ..self }
    }

    async fn make(&self, browser: &Browser) {
        browser.press(self.button).await;
        if let Some(sure) = self.sure {
            browser.press(sure).await;
        }
    }

    /// The same, and the page says why it wasn't made.
    async fn fails(&self, browser: &Browser, says: &str) {
        self.make(browser).await;
        browser.sees(says).await;
        // What is said may lie over the next button.
        browser.value("(document.getElementById('notices').replaceChildren(), true)").await;
    }
}

/// The calls with which the jobs on call end: stop what is wrong, retry, repair, say why, and go on.
const CALLS: [Call; 13] = [
    Call::new("#/operations/again", "Stop again", "Stop again: done"),
    Call::new("#/executions/order-7", "Pause order-7", "paused by local (ticket 42)")
        .with(&[("why-execution-order-7", "ticket 42")]),
    Call::new("#/executions/order-7", "Resume order-7", "Resume order-7: done"),
    Call::new("#/events?id=order-7", "Send the event", "Sent.")
        .with(&[("event-name", "shipped"), ("event-payload", "\"a bicycle\"")]),
    Call::new("#/executions/order-13", "Run again", "order-13: run 2 begins")
        .opens("[data-key='repair'] summary")
        .sure("Yes, run again"),
    Call::new("#/executions/parcel-1", "Run the step with this input", "the step print-label runs again")
        .opens("[data-key='retry-step'] summary")
        .with(&[("step-input", "\"feathers\"")]),
    Call::new("#/tasks/mail-1", "Cancel mail-1", "It was cancelled").sure("Yes, cancel"),
    Call::new("#/tasks/mail-2", "Retry mail-2", "Retry mail-2: done"),
    Call::new("#/queues", "Pause emails", "Pause emails: done"),
    Call::new("#/crons/nightly", "Trigger nightly", "(triggered)").sure("Yes, trigger"),
    Call::new("#/limits/ocr", "Set the limit", "2, set by").with(&[("limit-most", "2")]),
    Call::new("#/limits/ocr", "Release ocr-1", "Release ocr-1: done").sure("Yes, release"),
    Call::new("#/start", "Start the execution", "It is stored as")
        .with(&[("start-workflow", "order"), ("start-input", r#"{"number": 9}"#)]),
];

/// Makes the page call a server slow after a moment, so that the test need not wait for it.
const IMPATIENT: &str = "(window.setTimeout = ((set) => (run, ms, ...more) => set(run, ms === 5000 ? 300 : ms, ...more))(window.setTimeout), true)";

/// A server that can be stopped and brought into trouble.
struct Patient {
    site: Site,
    trouble: watch::Sender<Trouble>,
    asked: watch::Receiver<Trouble>,
    server: Server,
}

impl Patient {
    async fn of(site: Site) -> Self {
        let (trouble, asked) = watch::channel(Trouble::None);
        let server = Server::start("127.0.0.1:0", troubled(&site, &asked)).await;
        Self { site, trouble, asked, server }
    }

    /// Makes a call in each trouble. Only the last one, which is slow, is done.
    async fn suffers(&mut self, browser: &Browser, call: &Call) {
        browser.open(call.view).await;
        if let Some(selector) = call.opens {
            browser.press_on(selector).await;
        }
        for (id, text) in call.fields {
            browser.fill(id, text).await;
        }
        for (trouble, says) in [
            (Trouble::ReadOnly, "only the fire brigade may do that"),
            (Trouble::Unknown, "The security token is expired"),
        ] {
            self.trouble.send(trouble).unwrap();
            call.fails(browser, says).await;
        }
        let address = self.server.address.to_string();
        self.trouble.send(Trouble::None).unwrap();
        self.stop().await;
        call.fails(browser, "unreachable").await;
        self.server = Server::start(&address, troubled(&self.site, &self.asked)).await;
        browser.misses("What you see may be old").await;
        browser.misses(call.done).await;

        self.trouble.send(Trouble::Slow).unwrap();
        call.make(browser).await;
        browser.sees("No answer for 5 s").await;
        // Nobody makes it twice, because nothing seems to happen.
        let name = "(one) => (one.getAttribute('aria-label') ?? one.textContent)";
        let named = format!(
            "[...document.querySelectorAll('main button')].filter((one) => ({name})(one) === {:?})",
            call.button
        );
        browser.until(&format!("{named}.length > 0 && {named}.every((one) => one.disabled)")).await;
        self.trouble.send(Trouble::None).unwrap();
        browser.sees(call.done).await;
    }

    async fn stop(&mut self) {
        let next = Server::start("127.0.0.1:0", axum::Router::new()).await;
        std::mem::replace(&mut self.server, next).stop().await;
    }
}

#[tokio::test]
async fn a_call_in_whose_middle_the_server_is_in_trouble_says_so_and_can_be_made_later() {
    let site = with_operation().await;
    site.client().start(&parcel, "lead".to_owned()).id("parcel-1").await.unwrap();
    site.env.advance("5m").await.unwrap();
    // Its lease is over.
    site.claim("ocr-1").await;
    site.post("operations", json!({"id": "again", "action": "retry", "tasks": {"queue": "reports"}})).await;
    let mut patient = Patient::of(site).await;
    browse(&patient.server.url(), async |browser| {
        browser.open("#/").await;
        browser.value(IMPATIENT).await;
        for call in &CALLS {
            patient.suffers(browser, call).await;
        }
        // A call on many is counted first: nothing is asked for before that.
        let all = Call::new("#/tasks?kind=welcome&status=failed", "Retry all", "Nothing matches now")
            .opens("summary");
        let counts = patient.site.get("operations").await["operations"].as_array().unwrap().len();
        browser.open(all.view).await;
        browser.press_on("summary").await;
        for (trouble, says) in [
            (Trouble::ReadOnly, "Retry all tasks: Refused. only the fire brigade may do that"),
            (Trouble::Unknown, "Retry all tasks: HTTP status 401. The security token is expired"),
        ] {
            patient.trouble.send(trouble).unwrap();
            all.fails(browser, says).await;
        }
        patient.trouble.send(Trouble::Slow).unwrap();
        all.make(browser).await;
        browser.sees("No answer for 5 s").await;
        patient.trouble.send(Trouble::None).unwrap();
        patient.site.operations(counts + 1).await;
        patient.site.env.advance("10s").await.unwrap();
        browser.sees("Found now: 1.").await;
        browser.press("No, go back").await;
    })
    .await;
    let started = patient.site.get("executions?workflow=order").await["executions"].take();
    assert_eq!(started.as_array().unwrap().len(), 3, "one was started: {started}");
}
