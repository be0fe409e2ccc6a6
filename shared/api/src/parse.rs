//! From JSON to requests, field by field, so that every error names its field and what belongs there.
//!
//! Payloads are never parsed further than to see that they are JSON: they stay the text they came as.

mod claim;
mod crons;
mod execution;
mod field;
mod object;
mod operate;
mod query;
mod report;
mod schedule;
mod timeouts;

pub(crate) use claim::{CLAIM_FIELDS, claim};
pub(crate) use crons::{CRON_FIELDS, cron, cron_id};
#[cfg(test)]
pub(crate) use execution::START_POLICIES;
pub(crate) use execution::TIMEOUT_MIN;
pub(crate) use execution::{
    EVENT_FIELDS, EVENT_MESSAGE_FIELDS, EventBody, RERUN_FIELDS, START_FIELDS, event, event_name,
    execution_id, executions_query, rerun, start, step_name, wait_query,
};
pub(crate) use field::Field;
pub(crate) use object::Object;
pub(crate) use operate::{CANCEL_FIELDS, cancel};
pub(crate) use query::{LIMIT_MAX, list_query, page_query};
#[cfg(test)]
pub(crate) use report::ERROR_FIELDS;
pub(crate) use report::{
    COMPLETE_ENTRY_FIELDS, COMPLETE_FIELDS, CompleteEntry, FAIL_FIELDS, HEARTBEAT_FIELDS, RELEASE_FIELDS,
    complete, complete_entry, fail, heartbeat, release,
};
pub(crate) use schedule::{LABEL_NAME_MAX, LABEL_VALUE_MAX, LABELS_MAX, SCHEDULE_FIELDS, schedule};

#[cfg(test)]
pub(crate) use timeouts::{ON_TIMEOUTS, TIMEOUT_SCOPES};

use tickover_core::duration::MAX_QUOTED_CHARS;
use tickover_core::error::Reject;
use tickover_core::id::{QueueName, TaskId};

/// The field of a batch's entries.
pub(crate) const BATCH_FIELDS: &[&str] = &["tasks"];

/// Ids that paths can't carry: two are routes of their own, two are taken away by what reads URLs.
const UNREACHABLE: [&str; 4] = ["batch", "complete", ".", ".."];

/// A task's id, from a body or a path.
pub(crate) fn task_id(field: &str, text: &str) -> Result<TaskId, Reject> {
    if UNREACHABLE.contains(&text) {
        return Err(Reject::field(field, format!("expected another id: `{text}` can't be used in a path")));
    }
    TaskId::parse(text).map_err(|error| Reject::field(field, error))
}

/// A queue's name, from a body or a path.
pub(crate) fn queue_name(field: &str, text: &str) -> Result<QueueName, Reject> {
    if [".", ".."].contains(&text) {
        return Err(Reject::field(field, format!("expected another name: `{text}` can't be used in a path")));
    }
    QueueName::parse(text).map_err(|error| Reject::field(field, error))
}

/// The beginning of a caller's text, as errors repeat it.
pub(crate) fn excerpt(text: &str) -> String {
    text.chars().take(MAX_QUOTED_CHARS).collect()
}
