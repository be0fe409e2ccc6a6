//! `GET /metrics` of a local system, in Prometheus' text format.
//!
//! A process has one recorder, which all systems in it share. The first server installs it, so a system without a
//! server has no cost.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use tickover_service::{Service, metric};
use tickover_sqlite::SqliteStore;

/// How often single values are moved to their buckets. Otherwise they would accumulate if the metrics are never
/// scraped.
const KEEP_EVERY: Duration = Duration::from_secs(5);
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The route and its recorder.
pub(crate) fn router(service: Service, store: Arc<SqliteStore>) -> Router {
    recorder();
    Router::new().route("/metrics", get(scrape)).with_state((service, store))
}

/// Maintains the recorder until it is stopped.
pub(crate) async fn keep_forever() {
    let mut interval = tokio::time::interval(KEEP_EVERY);
    loop {
        interval.tick().await;
        if let Some(recorder) = recorder() {
            recorder.run_upkeep();
        }
    }
}

async fn scrape(State((service, store)): State<(Service, Arc<SqliteStore>)>) -> Response {
    let Some(recorder) = recorder() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "this process records its metrics elsewhere\n")
            .into_response();
    };
    // Gauges are read now. Other metrics are counted when they happen.
    service.observe_queues().await;
    service.observe_heartbeats();
    store.measure();
    ([(header::CONTENT_TYPE, TEXT)], recorder.render()).into_response()
}

/// The process's recorder, or none if the program has installed another one.
fn recorder() -> Option<&'static PrometheusHandle> {
    static RECORDER: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
    let install = || match install() {
        Ok(handle) => Some(handle),
        Err(error) => {
            tracing::warn!(%error, "no metrics");
            None
        }
    };
    RECORDER.get_or_init(install).as_ref()
}

fn install() -> Result<PrometheusHandle, BuildError> {
    let mut builder = PrometheusBuilder::new();
    for spread in metric::HISTOGRAMS {
        builder = builder.set_buckets_for_metric(Matcher::Full(spread.name.to_owned()), spread.bounds)?;
    }
    let handle = builder.install_recorder()?;
    metric::describe();
    Ok(handle)
}
