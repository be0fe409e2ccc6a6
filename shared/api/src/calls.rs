//! The operations without a transport: a body's bytes in, an [`Answer`](crate::Answer) or a
//! [`Problem`](crate::Problem) out.
//!
//! The router and the functions call these; whatever carries a request, it means the same and is answered the
//! same.

pub mod executions;

mod call;
mod claim;
mod crons;
mod health;
mod operate;
mod queues;
mod read;
mod report;
mod schedule;

pub use call::Call;
pub use claim::{claim, claim_by_id};
pub use crons::{create_cron, cron, crons, delete_cron, pause_cron, replace_cron, resume_cron, trigger_cron};
pub use health::health;
pub use operate::{cancel, retry};
pub use queues::{pause, queue, queues, resume};
pub use read::{describe, list};
pub use report::{complete, complete_batch, fail, heartbeat, release};
pub use schedule::{schedule, schedule_batch};

use tickover_core::error::Reject;
use tickover_core::limits;

use crate::body::{self, Empty};
use crate::parse::{BATCH_FIELDS, Field};

/// The entries of a batch, not yet looked at one by one.
fn entries(body: &[u8], maximum: usize) -> Result<Vec<Field<'_>>, Reject> {
    const EXPECTED: &str = "a list of objects";
    let object = body::object(body, BATCH_FIELDS, Empty::IsMissing)?;
    let entries = object.require("tasks", EXPECTED)?.list(EXPECTED)?;
    limits::check("batch", entries.len(), maximum)?;
    Ok(entries)
}
