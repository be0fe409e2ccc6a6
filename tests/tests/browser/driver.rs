//! A headless Chromium, and what tests do in it.

use std::panic::AssertUnwindSafe;

use fantoccini::error::CmdError;
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder, Locator};
use futures::FutureExt as _;
use reqwest::{Method, Url};
use serde_json::{Value, json};
use tickover_tests::process::Process;
use tokio::process::Command;

/// How long a page may take to show what a test waits for, in milliseconds.
const BOUND_MS: u32 = 15_000;
/// The most clicks from the overview to what one needs in an incident.
const CLICKS_MAX: u64 = 3;
/// A name that leads to this machine in the browser, as a site could make its own name do.
pub(crate) const REBOUND: &str = "rebound.test";

/// A browser with one window.
pub(crate) struct Browser {
    client: Client,
    /// The start of the addresses of [`Browser::open`].
    site: String,
}

/// Runs a test in a new browser, and fails if the page reported errors. The browser ends with the test, even if it fails.
pub(crate) async fn browse(site: &str, test: impl AsyncFnOnce(&Browser)) {
    browse_in(site, "chromedriver", test).await;
}

async fn browse_in(site: &str, driver: &str, test: impl AsyncFnOnce(&Browser)) {
    let (driver, port) = start(driver).await;
    // The sandbox needs rights that containers don't have. The pages are our own.
    let rules = format!("--host-resolver-rules=MAP {REBOUND} 127.0.0.1");
    let args =
        ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1280,900", &rules];
    let mut capabilities = serde_json::Map::new();
    capabilities.insert("goog:chromeOptions".to_owned(), json!({"args": args}));
    capabilities.insert("goog:loggingPrefs".to_owned(), json!({"browser": "ALL"}));
    capabilities.insert("timeouts".to_owned(), json!({"script": 2 * BOUND_MS}));
    let mut builder = ClientBuilder::new(hyper_util::client::legacy::connect::HttpConnector::new());
    let client =
        builder.capabilities(capabilities).connect(&format!("http://127.0.0.1:{port}")).await.unwrap();
    let browser = Browser { client: client.clone(), site: site.trim_end_matches('/').to_owned() };
    let outcome = AssertUnwindSafe(test(&browser)).catch_unwind().await;
    let log = browser.log().await;
    // Chromium would survive its driver.
    client.close().await.unwrap();
    if let Err(panic) = outcome {
        for line in log {
            eprintln!("browser: {line}");
        }
        std::panic::resume_unwind(panic);
    }
    // The browser reports each answer that isn't a success, which the page handles, and the calls of foreign pages.
    let expected = [
        "Failed to load resource",
        "blocked by CORS policy",
        "Refused to display",
        "frame-ancestors",
        "requires 'Trusted",
    ];
    let is_wrong = |line: &String| !expected.iter().any(|expected| line.contains(expected));
    let wrong: Vec<String> = log.into_iter().filter(is_wrong).collect();
    assert_eq!(wrong, Vec::<String>::new(), "errors of the page");
    drop(driver);
}

/// Starts a driver, and returns it with its port.
///
/// With port 0 it looks for a port that is free in IPv4 and IPv6, and exits if another process takes it meanwhile.
async fn start(driver: &str) -> (Process, String) {
    let mut last = String::new();
    for _ in 0..5 {
        let mut command = Command::new(driver);
        let process =
            Process::from_command(command.arg("--port=0")).expect("chromedriver: run `cargo xtask browser`");
        match process.line(|line| line.contains("started successfully on port")).await {
            Ok(line) => {
                let port = line.trim_end_matches('.').rsplit(' ').next().unwrap().to_owned();
                return (process, port);
            }
            Err(error) => last = error.to_string(),
        }
    }
    panic!("the driver found no port in five starts: {last}");
}

impl Browser {
    /// Opens a view by its hash, such as `#/tasks`.
    pub(crate) async fn open(&self, hash: &str) {
        self.goto(&format!("{}/{hash}", self.site)).await;
        // Another hash alone doesn't load the page, so the last view may still be shown for a moment.
        self.until(&format!(
            "location.hash === {:?} && document.querySelector('h1')",
            hash.replace("/?", "?")
        ))
        .await;
    }

    pub(crate) async fn goto(&self, address: &str) {
        self.client.goto(address).await.unwrap();
    }

    pub(crate) async fn reload(&self) {
        self.client.refresh().await.unwrap();
    }

    /// Evaluates an expression in the page; a promise is awaited.
    pub(crate) async fn value(&self, expression: &str) -> Value {
        let script = format!(
            "const done = arguments[arguments.length - 1];
            Promise.resolve().then(() => {expression}).then((value) => done([value ?? null]), (error) => done(String(error)))"
        );
        let found = self.client.execute_async(&script, vec![]).await.unwrap();
        match found {
            Value::Array(value) => value.into_iter().next().unwrap(),
            error => panic!("{expression}: {error}"),
        }
    }

    /// Waits until an expression is true.
    pub(crate) async fn until(&self, expression: &str) {
        let wait = format!(
            "new Promise((resolve) => {{
                const end = performance.now() + {BOUND_MS};
                const check = () => {{
                    let value = false;
                    try {{ value = {expression}; }} catch {{}}
                    if (value || performance.now() > end) resolve(Boolean(value)); else setTimeout(check, 20);
                }};
                check();
            }})"
        );
        let is_true = self.value(&wait).await == true;
        let text = if is_true { String::new() } else { self.text().await };
        assert!(is_true, "never: {expression}\n{text}");
    }

    /// Waits until the page shows a text.
    pub(crate) async fn sees(&self, text: &str) {
        self.until(&format!("document.body.innerText.includes({text:?})")).await;
    }

    /// Waits until the page doesn't show a text any more.
    pub(crate) async fn misses(&self, text: &str) {
        self.until(&format!("!document.body.innerText.includes({text:?})")).await;
    }

    /// All text of the page that is shown.
    pub(crate) async fn text(&self) -> String {
        self.value("document.body.innerText").await.as_str().unwrap_or_default().to_owned()
    }

    /// Presses the button or link with this name, once it is there. The name is what a screen reader says.
    pub(crate) async fn press(&self, name: &str) {
        let path = format!(
            "//*[self::button or self::a][@aria-label={name:?} or (not(@aria-label) and normalize-space()={name:?})][not(@disabled)]"
        );
        // A view that is drawn anew meanwhile has the same button as another element.
        for _ in 0..5 {
            let found = self.client.wait().for_element(Locator::XPath(&path)).await;
            let Ok(found) = found else { panic!("no button {name}\n{}", self.text().await) };
            match found.click().await {
                Ok(()) => return,
                Err(error) if is_stale(&error) => {}
                Err(error) => panic!("{name}: {error}"),
            }
        }
        panic!("{name} is drawn anew all the time");
    }

    /// Presses whatever a CSS selector finds.
    pub(crate) async fn press_on(&self, selector: &str) {
        self.client.wait().for_element(Locator::Css(selector)).await.unwrap().click().await.unwrap();
    }

    /// Opens the overview and counts the clicks from there on.
    pub(crate) async fn begin_at_the_overview(&self) {
        self.open("#/").await;
        self.sees("tasks wait").await;
        let count = "document.addEventListener('click', () => { window.clicks += 1; }, true)";
        self.value(&format!("(window.clicks ?? {count}, window.clicks = 0)")).await;
    }

    /// Fails if it took more clicks than [`CLICKS_MAX`].
    pub(crate) async fn took_few_clicks(&self) {
        let clicks = self.value("window.clicks").await.as_u64().unwrap();
        assert!((1..=CLICKS_MAX).contains(&clicks), "{clicks} clicks");
    }

    /// Types into a field, by its id.
    pub(crate) async fn fill(&self, id: &str, text: &str) {
        let field = self.client.wait().for_element(Locator::Id(id)).await.unwrap();
        field.clear().await.unwrap();
        field.send_keys(text).await.unwrap();
    }

    /// Types on the keyboard, wherever the focus is.
    pub(crate) async fn type_keys(&self, keys: &str) {
        self.client.active_element().await.unwrap().send_keys(keys).await.unwrap();
    }

    /// Chooses an option of a select, by their ids and values.
    pub(crate) async fn choose(&self, id: &str, value: &str) {
        let path = format!("//select[@id={id:?}]/option[@value={value:?}]");
        self.client.wait().for_element(Locator::XPath(&path)).await.unwrap().click().await.unwrap();
    }

    /// Emulates a dark or a light scheme, and a width in pixels.
    pub(crate) async fn look(&self, scheme: &str, width: u32) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}]);
        self.devtools("Emulation.setEmulatedMedia", json!({"features": features})).await;
        let metrics = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", metrics).await;
    }

    /// A picture of the window, as PNG.
    pub(crate) async fn picture(&self) -> Vec<u8> {
        self.client.screenshot().await.unwrap()
    }

    /// Fails on each violation of the rules for accessibility that axe-core finds in the page.
    pub(crate) async fn is_accessible(&self, what: &str) {
        let path = std::env::var("TICKOVER_TEST_AXE").expect("run `cargo xtask browser`");
        let axe = std::fs::read_to_string(path).unwrap();
        self.client.execute(&axe, vec![]).await.unwrap();
        let found = self
            .value(
                "axe.run(document, {resultTypes: ['violations']}).then(({violations}) => violations.map(({id, nodes}) =>
                `${id}: ${nodes.slice(0, 3).map((node) => `${node.html} ${node.failureSummary}`).join(' | ')}`))",
            )
            .await;
        assert_eq!(found, json!([]), "{what}");
    }

    /// What the page and the browser have reported as errors.
    async fn log(&self) -> Vec<String> {
        let log = self.raw("se/log", json!({"type": "browser"})).await;
        let entries = log.as_array().unwrap().iter();
        let wrong = entries.filter(|entry| entry["level"] == "SEVERE");
        wrong.map(|entry| entry["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    pub(crate) async fn devtools(&self, name: &str, parameters: Value) -> Value {
        self.raw("goog/cdp/execute", json!({"cmd": name, "params": parameters})).await
    }

    async fn raw(&self, path: &'static str, body: Value) -> Value {
        self.client.issue_cmd(Raw { path, body }).await.unwrap()
    }
}

/// Whether an element was replaced between finding and pressing it, or something moved over it.
fn is_stale(error: &CmdError) -> bool {
    error.is_stale_element_reference() || error.to_string().contains("click intercepted")
}

/// A command of Chromium's driver that the standard doesn't have.
#[derive(Debug)]
struct Raw {
    path: &'static str,
    body: Value,
}

impl WebDriverCompatibleCommand for Raw {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, <Url as std::str::FromStr>::Err> {
        base.join(&format!("session/{}/{}", session.unwrap_or_default(), self.path))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(self.body.to_string()))
    }
}
