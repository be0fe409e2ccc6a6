//! From the wire's requests to the service's: the rules across fields.

mod cron;
mod execution;
mod query;
mod report;
mod task;

pub(crate) use cron::cron;
pub(crate) use execution::{Event, event, rerun, start};
#[cfg(test)]
pub(crate) use query::ListQuery;
pub(crate) use query::{executions, page, tasks};
pub(crate) use report::{claim, failure};
pub(crate) use task::task;

use tickover_core::payload::Json;
use tickover_core::trace::TraceContext;
use tickover_wire::Verbatim;

/// The trace that work belongs to. A text that isn't one is ignored, as W3C's recommendation asks for.
fn trace(text: Option<&str>) -> Option<TraceContext> {
    text.and_then(TraceContext::parse)
}

/// A payload's text.
pub(crate) fn payload(given: Option<Verbatim>) -> Option<Json> {
    given.map(Json::from)
}
