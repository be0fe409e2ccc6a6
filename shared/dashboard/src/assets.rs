//! The files of the page, as they are in `pages/`.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// A file of the page.
pub(crate) struct Asset {
    /// Its address.
    pub(crate) route: &'static str,
    pub(crate) media_type: &'static str,
    pub(crate) compiled: &'static str,
    /// Where it is in the checkout.
    path: &'static str,
}

impl Asset {
    /// Its text as it is served. A program that was built for development reads the file each time, so that a change of
    /// a page needs a reload only.
    pub(crate) fn text(&self) -> Cow<'static, str> {
        let found = if cfg!(debug_assertions) { std::fs::read_to_string(self.path).ok() } else { None };
        let text = found.map_or(Cow::Borrowed(self.compiled), Cow::Owned);
        if self.media_type == SCRIPT { Cow::Owned(compact(&text)) } else { text }
    }
}

/// A script in which the lines that are only a comment are empty, and the others begin without a space: together a seventh of
/// its bytes. An error that the browser reports has the number of the line in the file. No text in it goes over several lines.
pub(crate) fn compact(script: &str) -> String {
    let mut is_inside = false;
    let lines = script.lines().map(|line| {
        let text = line.trim();
        let is_comment = is_inside || text.starts_with("//") || text.starts_with("/*");
        is_inside = (is_inside || text.starts_with("/*")) && !text.contains("*/");
        if is_comment { "\n".to_owned() } else { format!("{text}\n") }
    });
    lines.collect()
}

/// A tag that differs when the text does.
pub(crate) fn tag(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("\"{:016x}\"", hasher.finish())
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! asset {
    ($route:expr, $media_type:ident, $file:literal) => {
        Asset {
            route: $route,
            media_type: $media_type,
            compiled: include_str!(concat!("../pages/", $file)),
            path: concat!(env!("CARGO_MANIFEST_DIR"), "/pages/", $file),
        }
    };
}

macro_rules! assets {
    ($($media_type:ident $file:literal,)*) => {
        &[
            asset!("/", HTML, "index.html"),
            $(asset!(concat!("/dashboard/", $file), $media_type, $file),)*
        ]
    };
}

/// All files. A test compares them with the folder.
pub(crate) const ASSETS: &[Asset] = assets!(
    CSS "style.css",
    SVG "icon.svg",
    SCRIPT "actions.js",
    SCRIPT "api.js",
    SCRIPT "app.js",
    SCRIPT "commands.js",
    SCRIPT "dom.js",
    SCRIPT "history.js",
    SCRIPT "hands.js",
    SCRIPT "known.js",
    SCRIPT "lists.js",
    SCRIPT "many.js",
    SCRIPT "metrics.js",
    SCRIPT "payload.js",
    SCRIPT "problem.js",
    SCRIPT "time.js",
    SCRIPT "words.js",
    SCRIPT "timeline/details.js",
    SCRIPT "timeline/fold.js",
    SCRIPT "timeline/lanes.js",
    SCRIPT "timeline/scale.js",
    SCRIPT "timeline/view.js",
    SCRIPT "views/callback.js",
    SCRIPT "views/compare.js",
    SCRIPT "views/crons.js",
    SCRIPT "views/events.js",
    SCRIPT "views/execution.js",
    SCRIPT "views/executions.js",
    SCRIPT "views/failures.js",
    SCRIPT "views/limits.js",
    SCRIPT "views/operations.js",
    SCRIPT "views/overview.js",
    SCRIPT "views/queues.js",
    SCRIPT "views/repair.js",
    SCRIPT "views/search.js",
    SCRIPT "views/start.js",
    SCRIPT "views/task.js",
    SCRIPT "views/tasks.js",
    SCRIPT "views/workers.js",
);
