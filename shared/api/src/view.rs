//! Conversions from records to the wire's answer types.

mod attempt;
mod by;
mod crons;
mod execution;
mod limit;
mod operation;
mod overview;
mod policy;
mod queue;
mod task;

pub(crate) use by::by;
pub use crons::cron;
pub use execution::{event, events, execution, execution_of_run, run, timeline, value, values};
pub use limit::limit;
pub use operation::operation;
pub use overview::{failures, overview};
pub use queue::{queue, workers};
pub use task::{claimed, task};

/// What happens next to what waits in a paused queue: nothing.
const QUEUE_PAUSED: &str = "queue_paused";
