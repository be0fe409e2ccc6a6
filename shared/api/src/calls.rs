//! The calls of the API without a transport: the bytes of a body in, an [`Answer`](crate::Answer) or a
//! [`Problem`](crate::Problem) out.
//!
//! The router and the functions call these, so a request means the same over each transport and gets the same answer.

pub mod executions;
pub mod turns;

mod callbacks;
mod claim;
mod crons;
mod health;
mod history;
mod kinds;
mod limit;
mod operate;
mod operations;
mod queues;
mod read;
mod report;
mod route;
mod schedule;

pub use self::limit::{limit, limits, release_place, reset_rate, set_limit, unset_limit};
pub use callbacks::{callback_heartbeat, callback_of_attempt, complete_callback, fail_callback};
pub use claim::{claim, claim_by_id};
pub use crons::{create_cron, cron, crons, delete_cron, pause_cron, replace_cron, resume_cron, trigger_cron};
pub use health::health;
pub use history::history;
pub use kinds::{delete_kind, kind, kinds, set_kind};
pub use operate::{cancel, retry};
pub use operations::{operation, operations, resume_operation, start_operation, stop_operation};
pub use queues::{failures, overview, pause, queue, queues, resume, workers};
pub use read::{describe, list};
pub use report::{complete, complete_batch, fail, heartbeat, release};
pub use route::answer;
pub use schedule::{schedule, schedule_batch};

use tickover_core::error::Reject;
use tickover_core::limits;
use tickover_core::trace::TraceContext;

/// A body, and the trace that the transport names. A trace that the body names takes precedence.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub body: &'a [u8],
    /// From a header or from a message attribute.
    pub trace: Option<TraceContext>,
}

impl<'a> From<&'a [u8]> for Call<'a> {
    fn from(body: &'a [u8]) -> Self {
        Self { body, trace: None }
    }
}

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tickover_wire::Verbatim;
use tickover_wire::request::Batch;

use crate::body;

/// The entries of a batch, each read separately. An error names a field as if the entry had been sent alone. The
/// position of the result says which entry it is.
fn entries<T: DeserializeOwned>(body: &[u8], maximum: usize) -> Result<Vec<Result<T, Reject>>, Reject> {
    let Batch { tasks } = body::read(body)?;
    limits::check("batch", tasks.len(), maximum)?;
    Ok(tasks.iter().enumerate().map(|(index, entry)| self::entry(index, entry)).collect())
}

fn entry<T: DeserializeOwned>(index: usize, Verbatim(text): &Verbatim) -> Result<T, Reject> {
    let place = if text.as_str().starts_with('{') { String::new() } else { format!("tasks[{index}]") };
    let raw: &RawValue = serde_json::from_str(text.as_str())
        .map_err(|error| Reject::field("tasks", format_args!("expected JSON: {error}")))?;
    tickover_wire::read::value(&place, raw)
}
