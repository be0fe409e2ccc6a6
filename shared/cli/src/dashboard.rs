//! `tickover dashboard`: the web page for a deployment, with the calls of the page passed on to it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, Request, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use clap::Args;
use tickover::client::{ClientError, Http};
use tickover_core::duration::Millis;
use tickover_dashboard::Settings;
use tickover_embedded::{Bounds, HostName};
use tickover_service::stop::stop_requested;
use tickover_wire::answer::Problem;
use tickover_wire::read;
use tickover_wire::request::HistoryQuery;
use tokio::net::TcpListener;

use crate::argument::duration;
use crate::system::{Metrics, SystemArgs};
use crate::{callers, show};

/// Options of `tickover dashboard`.
#[derive(Args, Debug)]
pub(crate) struct DashboardArgs {
    /// The port of this machine on which to listen; 0 takes a free one
    #[arg(long, default_value_t = 7071, value_name = "PORT")]
    port: u16,
    /// Listen on this address instead of 127.0.0.1; other machines are answered only with --allow-host
    #[arg(long, value_name = "ADDRESS", conflicts_with = "port")]
    listen: Option<SocketAddr>,
    /// Also answer callers that use this host name or address for this machine; may be repeated
    ///
    /// Whoever reaches the address of --listen can then do what your credentials allow.
    #[arg(long, value_name = "HOST", value_delimiter = ',')]
    allow_host: Vec<HostName>,
    /// How often the page asks for new data while its window is visible
    #[arg(long, default_value = "10s", value_name = "DURATION", value_parser = duration)]
    refresh: Millis,
    /// Refuse all calls that change something
    #[arg(long)]
    read_only: bool,
}

/// What passes the calls on.
struct Proxy {
    http: Http,
    /// Where the system's history is, if not in itself.
    metrics: Option<Metrics>,
    read_only: bool,
}

pub(crate) async fn run(args: DashboardArgs, system: SystemArgs) -> anyhow::Result<()> {
    let address = args.listen.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, args.port)));
    let options = system.options();
    let metrics = system.metrics().await?;
    let http = system.http().await?;
    let listener = TcpListener::bind(address).await.with_context(|| format!("can't listen on {address}"))?;
    let place = options.stack.clone().map_or_else(|| http.url().to_owned(), |stack| format!("stack {stack}"));
    let settings = Settings {
        read_only: args.read_only,
        place: Some(place),
        command: options.command(&http),
        metrics: false,
        refresh_ms: args.refresh.as_u64(),
        ..Settings::default()
    };
    let stop = stop_requested();
    show::print(&format!("listening on http://{}\n", listener.local_addr()?))?;
    let can = if args.read_only { "read" } else { "do" };
    callers::tell(address, &args.allow_host, &format!("{can} what your credentials allow"));
    let router = router(settings, Proxy { http, metrics, read_only: args.read_only });
    tickover_embedded::serve(listener, router, args.allow_host, Bounds::default(), stop).await?;
    Ok(())
}

fn router(settings: Settings, proxy: Proxy) -> Router {
    let mut proxied = Router::new().route("/v1/{*path}", any(pass_on));
    if proxy.metrics.is_some() {
        proxied = proxied.route("/v1/history", get(history));
    }
    let proxied = proxied.with_state(Arc::new(proxy));
    tickover_dashboard::router(settings).merge(proxied)
}

/// Passes a call on. The system checks the rest, such as its content type.
async fn pass_on(State(proxy): State<Arc<Proxy>>, parts: Parts, body: Bytes) -> Response {
    let request = Request::from_parts(parts, Vec::from(body));
    if proxy.read_only && !matches!(*request.method(), Method::GET | Method::HEAD) {
        let detail =
            "this dashboard was started with --read-only: it passes no calls on that change something";
        return problem(StatusCode::FORBIDDEN, "read_only", "Read only", detail);
    }
    match proxy.http.relay(request).await {
        Ok(answer) => answer.map(Body::from),
        Err(error @ ClientError::Invalid { .. }) => invalid(&error.to_string()),
        Err(error) => {
            problem(StatusCode::BAD_GATEWAY, "no_answer", "No answer from the system", &error.to_string())
        }
    }
}

/// The last day, of a system whose metrics are elsewhere.
async fn history(State(proxy): State<Arc<Proxy>>, Query(query): Query<Vec<(String, String)>>) -> Response {
    let query: HistoryQuery = match read::query(&query) {
        Ok(query) => query,
        Err(reject) => return invalid(&reject.to_string()),
    };
    match &proxy.metrics {
        Some(metrics) => match metrics.history(&query).await {
            Ok(day) => axum::Json(day).into_response(),
            Err(ClientError::Refused(problem)) => answer(*problem),
            Err(error) => problem(StatusCode::BAD_GATEWAY, "no_metrics", "No metrics", &error.to_string()),
        },
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn invalid(detail: &str) -> Response {
    problem(StatusCode::BAD_REQUEST, "invalid_request", "Invalid request", detail)
}

fn problem(status: StatusCode, code: &'static str, title: &'static str, detail: &str) -> Response {
    answer(Problem {
        uri: format!("urn:problem-type:tickover:{code}"),
        title: title.into(),
        status: status.as_u16(),
        detail: detail.to_owned(),
        code: code.into(),
        ..Problem::default()
    })
}

fn answer(problem: Problem) -> Response {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::BAD_GATEWAY);
    let media_type = [(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"))];
    (status, media_type, axum::Json(problem)).into_response()
}
