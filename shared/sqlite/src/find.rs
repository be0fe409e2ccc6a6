//! Tasks by status and queue, each status by an index of its own; executions of all workflows.

pub(crate) mod executions;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rusqlite::{Connection, Row, params};
use serde::{Deserialize, Serialize};
use tickover_core::id::{QueueName, TaskId};
use tickover_core::task::Status;
use tickover_core::time::Timestamp;
use tickover_service::ports::{Page, StoreError, TaskFilter};

use crate::error::Failure;
use crate::record::corrupt;

/// Greater than each queue's name: names are of letters, digits and `.`, `_`, `:`, `-`.
const BEHIND_ALL_NAMES: &str = "~";

/// Where a listing goes on: after this task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct After {
    #[serde(rename = "s")]
    status: String,
    #[serde(rename = "q")]
    queue: String,
    #[serde(rename = "a")]
    at: i64,
    #[serde(rename = "i")]
    id: String,
}

impl After {
    fn decode(cursor: &str) -> Result<Self, StoreError> {
        let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| StoreError::BadCursor)?;
        serde_json::from_slice(&bytes).map_err(|_| StoreError::BadCursor)
    }

    fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }
}

/// Tasks that fit a filter: pending ones by queue and in the order in which they are ready, running ones by queue and
/// id, those that have ended by status and latest first.
pub(crate) fn tasks(
    connection: &Connection,
    filter: &TaskFilter,
    limit: usize,
    cursor: Option<&str>,
) -> Result<Page<TaskId>, Failure> {
    let after = cursor.map(After::decode).transpose()?;
    let is_wanted = |status: &Status| filter.statuses.is_empty() || filter.statuses.contains(status);
    let mut statuses: Vec<Status> = Status::ALL.into_iter().filter(is_wanted).collect();
    if let Some(after) = &after {
        let current = statuses.iter().position(|status| status.as_str() == after.status);
        statuses.drain(..current.ok_or(StoreError::BadCursor)?);
    }
    let mut found: Vec<After> = vec![];
    for status in statuses {
        let start = after.as_ref().filter(|after| after.status == status.as_str());
        let missing = limit + 1 - found.len();
        found.extend(of_status(connection, status, filter.queue.as_ref(), start, missing)?);
        if found.len() > limit {
            break;
        }
    }
    let is_last = found.len() <= limit;
    found.truncate(limit);
    let next = if is_last { None } else { found.last().map(After::encode) };
    let id =
        |after: After| TaskId::parse(after.id).map_err(|_| corrupt("the id of a task isn't one".to_owned()));
    Ok(Page { items: found.into_iter().map(id).collect::<Result<_, _>>()?, next })
}

/// Pending tasks behind one, with the condition of one of their indexes.
macro_rules! pending {
    ($lane:literal) => {
        concat!(
            "SELECT queue, ready_at, id FROM record WHERE ready_at IS NOT NULL AND ",
            $lane,
            " AND queue BETWEEN ?1 AND ?4 AND (queue, ready_at, id) > (?1, ?2, ?3)
             ORDER BY queue, ready_at, id LIMIT ?5"
        )
    };
}

fn of_status(
    connection: &Connection,
    status: Status,
    queue: Option<&QueueName>,
    start: Option<&After>,
    limit: usize,
) -> Result<Vec<After>, Failure> {
    let queue = queue.map(QueueName::as_str);
    let (start_queue, start_at, start_id) =
        start.map_or(("", None, ""), |start| (start.queue.as_str(), Some(start.at), start.id.as_str()));
    let (first, last) = (queue.unwrap_or(start_queue), queue.unwrap_or(BEHIND_ALL_NAMES));
    let read = |row: &Row<'_>| {
        Ok(After { status: status.as_str().to_owned(), queue: row.get(0)?, at: row.get(1)?, id: row.get(2)? })
    };
    let found = match status {
        Status::Pending => {
            // Two indexes: see `backlog`.
            let mut found = vec![];
            for sql in [pending!("lane IS NULL"), pending!("lane IS NOT NULL")] {
                let mut statement = connection.prepare_cached(sql)?;
                let key = params![first, start_at.unwrap_or(i64::MIN), start_id, last, limit];
                let rows = statement.query_map(key, read)?;
                found.extend(rows.collect::<Result<Vec<After>, _>>()?);
            }
            found.sort_by(|a, b| (&a.queue, a.at, &a.id).cmp(&(&b.queue, b.at, &b.id)));
            found.truncate(limit);
            found
        }
        Status::Running => connection
            .prepare_cached(
                "SELECT queue, 0, id FROM record
                 WHERE kind = 0 AND status = 'running' AND queue BETWEEN ?1 AND ?3
                     AND (queue, id) > (?1, ?2)
                 ORDER BY queue, id LIMIT ?4",
            )?
            .query_map(params![first, start_id, last, limit], read)?
            .collect::<Result<_, _>>()?,
        Status::Failed | Status::TimedOut | Status::Completed | Status::Cancelled | Status::Skipped => {
            connection
                .prepare_cached(
                    "SELECT queue, list_at, id FROM record
                 WHERE list = ?1 AND (list_at, id) < (?2, ?3) AND (?4 IS NULL OR queue = ?4)
                 ORDER BY list_at DESC, id DESC LIMIT ?5",
                )?
                .query_map(
                    params![status.as_str(), start_at.unwrap_or(i64::MAX), start_id, queue, limit],
                    read,
                )?
                .collect::<Result<_, _>>()?
        }
    };
    Ok(found)
}

/// From when on a worker could have had the oldest task that is ready.
pub(crate) fn oldest(
    connection: &Connection,
    queue: &QueueName,
    now: Timestamp,
) -> Result<Option<Timestamp>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT min(at) FROM (
             SELECT * FROM (SELECT ready_at AS at FROM record WHERE queue = ?1 AND ready_at <= ?2
                 AND ready_at IS NOT NULL AND lane IS NULL ORDER BY ready_at LIMIT 1)
             UNION ALL
             SELECT * FROM (SELECT ready_at AS at FROM record WHERE queue = ?1 AND ready_at <= ?2
                 AND ready_at IS NOT NULL AND lane IS NOT NULL ORDER BY ready_at LIMIT 1))",
    )?;
    let key = params![queue.as_str(), now.as_millis()];
    let at: Option<i64> = statement.query_row(key, |row| row.get(0))?;
    Ok(at.map(Timestamp::from_millis))
}
