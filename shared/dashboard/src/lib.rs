//! The dashboard: a web page of plain modules and one style sheet, compiled into the program, and the routes that serve it.
//!
//! The page calls the HTTP API with addresses relative to its own, so it needs the API beside it: `page/v1/…`. It needs
//! nothing from any other host. Who may call is checked by the server that has these routes.

mod assets;

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use axum::{Json, Router};
use serde::Serialize;

use assets::{ASSETS, Asset, tag};

/// Scripts, styles, images and calls from this server only; no frames, no forms, and no text that becomes markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// What the server tells the page about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// Whether the server refuses all calls that change something.
    pub read_only: bool,
    /// The name of the system that the page shows. By default it is the server's own address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The program and the options with which a shell calls the same system. With the program alone, the page adds its
    /// server's address where it isn't the default one.
    pub command: Vec<String>,
    /// Whether the server has metrics, in Prometheus' text format, at `/metrics`.
    pub metrics: bool,
    /// How long the page waits at least before it asks for new data, in milliseconds.
    pub refresh_ms: u64,
    /// The version of the program that has the page.
    pub version: &'static str,
}

impl Default for Settings {
    fn default() -> Self {
        let command = vec!["tickover".to_owned()];
        Self {
            read_only: false,
            place: None,
            command,
            metrics: true,
            refresh_ms: 2000,
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}

/// The page at `/`, and all that it needs under `/dashboard`.
pub fn router(settings: Settings) -> Router {
    let described = get(async |State(settings): State<Arc<Settings>>| {
        (headers(), [(CACHE_CONTROL, HeaderValue::from_static("no-store"))], Json(&*settings)).into_response()
    });
    let router = Router::new().route("/dashboard/settings.json", described).with_state(Arc::new(settings));
    ASSETS.iter().fold(router, |router, asset| router.route(asset.route, serve(asset)))
}

/// Answers with a file of the page, or with 304 if the browser has it.
fn serve(asset: &'static Asset) -> MethodRouter {
    get(async move |request: HeaderMap| -> Response {
        let text = asset.text();
        let tag = tag(&text);
        let known = request.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        let is_known = known.flat_map(|tags| tags.split(',')).any(|known| is_same(known, &tag));
        // It is asked for each time, so that a page never has files of two versions.
        let cached = [(CACHE_CONTROL, HeaderValue::from_static("no-cache"))];
        let tagged: HeaderMap = HeaderValue::from_str(&tag).ok().map(|tag| (ETAG, tag)).into_iter().collect();
        if is_known {
            return (StatusCode::NOT_MODIFIED, headers(), cached, tagged).into_response();
        }
        let media_type = [(CONTENT_TYPE, HeaderValue::from_static(asset.media_type))];
        (headers(), cached, tagged, media_type, text).into_response()
    })
}

/// Whether a tag that the browser sent is this one, or all of them. A proxy that compresses makes tags weak.
fn is_same(sent: &str, tag: &str) -> bool {
    let sent = sent.trim();
    sent == "*" || sent.strip_prefix("W/").unwrap_or(sent) == tag
}

/// What each answer has.
fn headers() -> [(HeaderName, HeaderValue); 6] {
    [
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (OPENER_POLICY, HeaderValue::from_static("same-origin")),
        (RESOURCE_POLICY, HeaderValue::from_static("same-origin")),
        (VARY, HeaderValue::from_static("accept-encoding")),
    ]
}

#[cfg(test)]
mod tests;
