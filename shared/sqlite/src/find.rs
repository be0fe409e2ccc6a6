//! Tasks by status and queue; executions of all workflows.

pub(crate) mod executions;

use rusqlite::{Connection, ToSql, params};
use tickover_core::id::{QueueName, TaskId};
use tickover_core::task::Status;
use tickover_core::time::Timestamp;
use tickover_service::ports::{Page, TaskCount, TaskFilter};

use crate::backlog;
use crate::error::Failure;
use crate::read::{before, page_of_ids, positions};

/// The name of the list of tasks, in its cursors.
const TASKS: &str = "tasks";

/// Ids of tasks with the queue, the statuses and the instants of a filter, latest first.
pub(crate) fn tasks(
    connection: &Connection,
    filter: &TaskFilter,
    limit: usize,
    cursor: Option<&str>,
) -> Result<Page<TaskId>, Failure> {
    let start = before(TASKS, cursor)?.at_most(filter.created_before);
    let from = filter.created_from.map_or(i64::MIN, Timestamp::as_millis);
    let queue = filter.queue.as_ref().map(QueueName::as_str);
    let prefix = filter.id_prefix.as_ref().map(TaskId::as_str);
    let is_wanted = |status: &Status| filter.statuses.is_empty() || filter.statuses.contains(status);
    let mut found = vec![];
    for status in Status::ALL.into_iter().filter(is_wanted) {
        let with: [&dyn ToSql; 7] =
            [&status.as_str(), &start.at, &start.id, &from, &queue, &(limit + 1), &prefix];
        found.extend(positions(
            connection,
            "SELECT kind, id, list_at FROM record
             WHERE list = ?1 AND (list_at, id) < (?2, ?3) AND list_at >= ?4 AND (?5 IS NULL OR queue = ?5)
             AND (?7 IS NULL OR substr(id, 1, length(?7)) = ?7)
             ORDER BY list_at DESC, id DESC LIMIT ?6",
            &with,
        )?);
    }
    found.sort_unstable_by(|one, other| other.cmp(one));
    Ok(page_of_ids(found, limit, TASKS))
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

/// How many tasks of each queue are open, and how many could have been claimed by an instant.
pub(crate) fn counts(connection: &Connection, late_from: Timestamp) -> Result<Vec<TaskCount>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT queue, sum(list = ?1), sum(list = ?2) FROM record WHERE list IN (?1, ?2) GROUP BY queue",
    )?;
    let open = [Status::Pending.as_str(), Status::Running.as_str()];
    let mut rows = statement.query(open)?;
    let mut counts = Vec::new();
    while let Some(row) = rows.next()? {
        let number = |column: usize| row.get::<_, i64>(column).map(i64::cast_unsigned);
        // A name that this build doesn't take is left out.
        let Ok(queue) = QueueName::parse(row.get::<_, String>(0)?) else { continue };
        let (pending, running) = (number(1)?, number(2)?);
        let late = if pending > 0 { backlog::count(connection, &queue, late_from)? } else { 0 };
        counts.push(TaskCount { queue, pending, running, late });
    }
    Ok(counts)
}
