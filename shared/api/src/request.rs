//! Conversions from the wire's requests to the service's, with the rules that concern several fields.

mod cron;
mod execution;
mod operation;
mod query;
mod report;
mod task;

pub(crate) use cron::cron;
pub(crate) use execution::{Event, event, rerun, start};
pub(crate) use operation::operation;
#[cfg(test)]
pub(crate) use query::ListQuery;
pub(crate) use query::{executions, page, period, tasks};
pub(crate) use report::{claim, failure};
pub(crate) use task::{kind_defaults, task};

use tickover_core::payload::Json;
use tickover_core::trace::TraceContext;
use tickover_wire::Verbatim;

/// The trace that work belongs to. An invalid text is ignored, as W3C's recommendation says.
fn trace(text: Option<&str>) -> Option<TraceContext> {
    text.and_then(TraceContext::parse)
}

/// The text of a payload.
pub(crate) fn payload(given: Option<Verbatim>) -> Option<Json> {
    given.map(Json::from)
}
