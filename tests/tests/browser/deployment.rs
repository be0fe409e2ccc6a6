//! The dashboard of a deployment: the page in the browser, the tool that signs its calls, and an API that verifies each
//! signature, as AWS does.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request as HttpRequest, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use tickover_dashboard::Settings;
use tickover_service::ports::Clock as _;
use tickover_service::system::SystemClock;
use tickover_tests::process::{Process, binary};
use tokio::process::Command;

use crate::driver::browse;
use crate::server::Request;
use crate::site::{Server, Site, router};
use crate::{KEY_ID, REGION, SECRET, sigv4};

/// The largest body of a call.
const BODY_MAX: usize = 1 << 20;

/// The methods and paths of the calls whose signature was right, and those of the others.
#[derive(Default)]
struct Calls {
    right: Vec<String>,
    wrong: Vec<String>,
}

type Seen = Arc<Mutex<Calls>>;

/// What `CloudWatch` answers.
type Metrics = Arc<Mutex<(StatusCode, Value)>>;

/// An answer of `CloudWatch`: five ticks and one failed task, now.
fn metrics() -> (StatusCode, Value) {
    let now = SystemClock.now().as_millis() / 1_000;
    let one = |id: &str, value: f64| json!({"Id": id, "Label": "prod-tick", "Timestamps": [now], "Values": [value], "StatusCode": "Complete"});
    (StatusCode::OK, json!({"MetricDataResults": [one("m0", 5.0), one("m3", 1.0)]}))
}

/// Passes a call on to the API only if its signature is right.
async fn verify(State(seen): State<Seen>, request: HttpRequest, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, BODY_MAX).await.unwrap();
    let headers = parts.headers.iter();
    let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
    let signed = Request {
        method: parts.method.to_string(),
        target: parts.uri.path_and_query().unwrap().to_string(),
        headers: headers.collect(),
        body: body.to_vec(),
    };
    let checked = catch_unwind(AssertUnwindSafe(|| sigv4::check(&signed, "execute-api", REGION)));
    let call = format!("{} {}", signed.method, parts.uri.path());
    {
        let mut seen = seen.lock().unwrap();
        if checked.is_ok() { seen.right.push(call) } else { seen.wrong.push(call) }
    }
    match checked {
        Ok(()) => next.run(HttpRequest::from_parts(parts, Body::from(body))).await,
        Err(_) => (StatusCode::FORBIDDEN, axum::Json(json!({"message": "the signature doesn't match"})))
            .into_response(),
    }
}

/// A system with a failed order, its API, and a running dashboard for it.
struct Deployment {
    site: Site,
    api: Server,
    ssm: Server,
    cloudwatch: Server,
    metrics: Metrics,
    seen: Seen,
    dashboard: Process,
}

impl Deployment {
    async fn start(more: &[&str]) -> Self {
        let site = Site::full().await;
        let seen = Seen::default();
        let verified = router(site.env.service(), Settings::default())
            .layer(from_fn_with_state(Arc::clone(&seen), verify));
        let api = Server::start("127.0.0.1:0", verified).await;
        let parameter =
            |name: &str, value: &str| json!({"Name": format!("/tickover/prod/{name}"), "Value": value});
        let parameters = [parameter("version", env!("CARGO_PKG_VERSION")), parameter("api-url", &api.url())];
        let answer = json!({"Parameters": parameters, "InvalidParameters": []}).to_string();
        let answering = move || async move { ([(CONTENT_TYPE, "application/x-amz-json-1.1")], answer) };
        let ssm = Server::start("127.0.0.1:0", Router::new().fallback(answering)).await;
        let metrics = Arc::new(Mutex::new(metrics()));
        let given = Arc::clone(&metrics);
        // Only what was asked for.
        let giving = async move |question: String| {
            let (status, mut answer) = given.lock().unwrap().clone();
            if let Some(series) = answer["MetricDataResults"].as_array_mut() {
                series.retain(|one| question.contains(&one["Id"].to_string()));
            }
            (status, axum::Json(answer))
        };
        let cloudwatch = Server::start("127.0.0.1:0", Router::new().fallback(giving)).await;
        let mut tool = Command::new(binary("tickover"));
        tool.args(["dashboard", "--port", "0", "--stack", "prod", "--refresh", "2s"])
            .args(more)
            .env_clear()
            .envs([
                ("AWS_CONFIG_FILE", "/dev/null"),
                ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null"),
                ("AWS_EC2_METADATA_DISABLED", "true"),
                ("AWS_ACCESS_KEY_ID", KEY_ID),
                ("AWS_SECRET_ACCESS_KEY", SECRET),
                ("AWS_SESSION_TOKEN", "a/session+token="),
                ("AWS_REGION", REGION),
                ("AWS_ENDPOINT_URL_SSM", &ssm.url()),
                ("AWS_ENDPOINT_URL_CLOUDWATCH", &cloudwatch.url()),
            ]);
        let dashboard = Process::from_command(&mut tool).unwrap();
        Self { site, api, ssm, cloudwatch, metrics, seen, dashboard }
    }

    /// Ends it; returns its changing calls. All calls had right signatures, and some were made.
    async fn stop(self) -> Vec<String> {
        self.api.stop().await;
        self.ssm.stop().await;
        self.cloudwatch.stop().await;
        let seen = self.seen.lock().unwrap();
        assert_eq!(seen.wrong, Vec::<String>::new());
        assert!(!seen.right.is_empty());
        seen.right.iter().filter(|call| !call.starts_with("GET ")).cloned().collect()
    }
}

#[tokio::test]
async fn the_page_of_a_deployment_shows_an_execution_and_retries_it_with_signed_calls() {
    let deployment = Deployment::start(&[]).await;
    let address = deployment.dashboard.address().await.unwrap();
    browse(&address, async |browser| {
        browser.open("#/").await;
        browser.sees("stack prod").await;
        browser.open("#/executions/order-13").await;
        browser.sees("the bank says no").await;
        browser.sees("tickover --stack prod").await;
        browser.press("Retry the step order-13").await;
        browser.misses("the bank says no").await;
        let execution = deployment.site.execution("order-13").await;
        assert!(
            ["pending", "running", "waiting"].contains(&execution["status"].as_str().unwrap()),
            "{execution}"
        );
    })
    .await;
    assert_eq!(deployment.stop().await, ["POST /v1/executions/order-13/steps/charge/retry"]);
}

#[tokio::test]
async fn the_page_of_a_deployment_shows_its_last_day_from_cloudwatch_or_why_it_cannot() {
    let deployment = Deployment::start(&["--read-only"]).await;
    let said = "ada is not authorized to perform cloudwatch:GetMetricData";
    let refusal = json!({"__type": "com.amazonaws.cloudwatch#AccessDenied", "message": said});
    let given =
        std::mem::replace(&mut *deployment.metrics.lock().unwrap(), (StatusCode::BAD_REQUEST, refusal));
    let address = deployment.dashboard.address().await.unwrap();
    browse(&address, async |browser| {
        browser.open("#/").await;
        browser.sees("The last day can’t be read.").await;
        browser.sees(said).await;
        browser.sees("tasks wait").await;
        browser.is_accessible("a day that can't be read").await;
        *deployment.metrics.lock().unwrap() = given;
        let later = "(performance.now = ((now) => () => now() + 61000)(performance.now.bind(performance)), true)";
        assert_eq!(browser.value(later).await, true);
        browser.sees("From CloudWatch").await;
        // That there is no metric doesn't say that nothing ran.
        browser.until("document.querySelector('.charts title').textContent.endsWith(': no data')").await;
        browser.misses("The last day can’t be read.").await;
        browser.until("document.querySelector('.charts .fails').getAttribute('aria-label').startsWith('Failed: in all 1')").await;
        browser.sees("tickover --stack prod history").await;
    })
    .await;
    assert_eq!(deployment.stop().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_read_only_page_of_a_deployment_signs_reads_and_refuses_the_button() {
    let deployment = Deployment::start(&["--read-only"]).await;
    let address = deployment.dashboard.address().await.unwrap();
    browse(&address, async |browser| {
        browser.open("#/executions/order-13").await;
        browser.sees("the bank says no").await;
        browser.sees("This dashboard is read-only").await;
        browser.until("document.querySelector('[aria-label=\"Retry the step order-13\"]').disabled").await;
        // Also without the button.
        let call = "fetch('v1/executions/order-13/steps/charge/retry', {method: 'POST', body: '{}', headers: {'content-type': 'application/json'}})
            .then((answer) => answer.json()).then((problem) => problem.code)";
        assert_eq!(browser.value(call).await, "read_only");
    })
    .await;
    assert_eq!(deployment.site.execution("order-13").await["status"], "failed");
    assert_eq!(deployment.stop().await, Vec::<String>::new());
}

#[tokio::test]
async fn the_api_of_these_tests_refuses_a_call_without_a_right_signature() {
    let deployment = Deployment::start(&["--read-only"]).await;
    let answer = reqwest::get(format!("{}/v1/executions/order-13", deployment.api.url())).await.unwrap();
    assert_eq!(answer.status(), 403);
    assert_eq!(deployment.seen.lock().unwrap().wrong, ["GET /v1/executions/order-13"]);
}
