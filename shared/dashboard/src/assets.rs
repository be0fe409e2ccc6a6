//! The files of the page, as they are in `pages/`.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// A file of the page.
pub(crate) struct Asset {
    /// Its address.
    pub(crate) route: &'static str,
    pub(crate) media_type: &'static str,
    pub(crate) text: &'static str,
}

impl Asset {
    /// A tag that differs when the text does.
    pub(crate) fn tag(&self) -> String {
        let mut hasher = DefaultHasher::new();
        self.text.hash(&mut hasher);
        format!("\"{:016x}\"", hasher.finish())
    }
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! assets {
    ($($media_type:ident $file:literal,)*) => {
        &[
            Asset { route: "/", media_type: HTML, text: include_str!("../pages/index.html") },
            $(Asset {
                route: concat!("/dashboard/", $file),
                media_type: $media_type,
                text: include_str!(concat!("../pages/", $file)),
            },)*
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
    SCRIPT "known.js",
    SCRIPT "lists.js",
    SCRIPT "metrics.js",
    SCRIPT "payload.js",
    SCRIPT "problem.js",
    SCRIPT "time.js",
    SCRIPT "words.js",
    SCRIPT "timeline/details.js",
    SCRIPT "timeline/lanes.js",
    SCRIPT "timeline/scale.js",
    SCRIPT "timeline/view.js",
    SCRIPT "views/crons.js",
    SCRIPT "views/events.js",
    SCRIPT "views/execution.js",
    SCRIPT "views/executions.js",
    SCRIPT "views/failures.js",
    SCRIPT "views/overview.js",
    SCRIPT "views/queues.js",
    SCRIPT "views/start.js",
    SCRIPT "views/task.js",
    SCRIPT "views/tasks.js",
);
