//! Tasks by status, queue, label and error; executions of all workflows; and all that has failed.

pub(crate) mod executions;

use std::borrow::Cow;

use rusqlite::{Connection, ToSql, params};
use tickover_core::id::{QueueName, TaskId, TaskKind};
use tickover_core::task::Status;
use tickover_core::time::Timestamp;
use tickover_service::ports::{Failed, Page, TaskCount, TaskFilter};

use crate::backlog;
use crate::error::Failure;
use crate::read::{before, page_of_ids, positions};
use crate::record::Kind;

/// The name of the list of tasks, in its cursors.
const TASKS: &str = "tasks";

/// A list of tasks or executions, latest first. Its first parameters are the position to start behind, the least instant,
/// the statuses between commas, the beginning of the id, and how many to find.
macro_rules! select_list {
    (from $from:literal, at $at:literal, id $id:literal, where $($condition:literal)+) => {
        concat!(
            "SELECT record.kind, record.id, list_at FROM ",
            $from,
            " WHERE ",
            $($condition,)+
            " AND (",
            $at,
            ", ",
            $id,
            ") < (?1, ?2) AND ",
            $at,
            " >= ?3",
            " AND (?4 IS NULL OR instr(?4, ',' || status || ',') > 0)",
            " AND (?5 IS NULL OR substr(record.id, 1, length(?5)) = ?5)",
            " ORDER BY ",
            $at,
            " DESC, ",
            $id,
            " DESC LIMIT ?6"
        )
    };
}
pub(crate) use select_list;

/// The lists of tasks. Each has the queue as its seventh parameter.
macro_rules! select_tasks {
    (from $from:literal, at $at:literal, id $id:literal, where $condition:literal) => {
        select_list!(from $from, at $at, id $id, where $condition " AND (?7 IS NULL OR queue = ?7)")
    };
}

const BY_LABEL: &str = select_tasks!(
    from "label JOIN record ON record.row = label.row", at "label.at", id "label.id",
    where "label.kind = 0 AND label.name = ?8 AND label.value = ?9"
);
const BY_ERROR: &str = select_tasks!(
    from "record INDEXED BY failed", at "list_at", id "record.id",
    where "kind = 0 AND failed_at IS NOT NULL AND error = ?8"
);
const BY_GROUP: &str = select_tasks!(
    from "record INDEXED BY failed", at "list_at", id "record.id",
    where "kind = 0 AND failed_at IS NOT NULL AND error = ?8 AND failed_of = ?9"
);
const BY_STATUS: &str = select_tasks!(from "record", at "list_at", id "record.id", where "list = ?8");

/// Ids of tasks that may fit a filter, latest first: the queue, the statuses, the instants, the label and the error do.
pub(crate) fn tasks(
    connection: &Connection,
    filter: &TaskFilter,
    limit: usize,
    cursor: Option<&str>,
) -> Result<Page<TaskId>, Failure> {
    let start = before(TASKS, cursor)?.at_most(filter.created_before);
    let from = filter.created_from.map_or(i64::MIN, Timestamp::as_millis);
    // The lists by status need no other look at it.
    let is_by_status = filter.label.is_none() && filter.error.is_none();
    let statuses = between_commas(filter.statuses.iter().map(|status| status.as_str()));
    let statuses = statuses.filter(|_| !is_by_status);
    let prefix = filter.id_prefix.as_ref().map(TaskId::as_str);
    let queue = filter.queue.as_ref().map(QueueName::as_str);
    let most = limit + 1;
    let common: [&dyn ToSql; 7] = [&start.at, &start.id, &from, &statuses, &prefix, &most, &queue];
    let find = |sql: &str, more: &[&dyn ToSql]| positions(connection, sql, &[&common, more].concat());

    let kind = filter.kind.as_ref().map(TaskKind::as_str);
    let mut found = match (&filter.label, &filter.error, kind) {
        (Some((name, value)), _, _) => find(BY_LABEL, &[name, value])?,
        (None, Some(error), Some(kind)) => find(BY_GROUP, &[error, &kind])?,
        (None, Some(error), None) => find(BY_ERROR, &[error])?,
        (None, None, _) => {
            let is_wanted = |status: &Status| filter.statuses.is_empty() || filter.statuses.contains(status);
            let mut found = vec![];
            for status in Status::ALL.into_iter().filter(is_wanted) {
                found.extend(find(BY_STATUS, &[&status.as_str()])?);
            }
            found
        }
    };
    found.sort_unstable_by(|one, other| other.cmp(one));
    Ok(page_of_ids(found, limit, TASKS))
}

/// Statuses as a query takes them: each between two commas. `None` for any.
fn between_commas(statuses: impl ExactSizeIterator<Item = &'static str>) -> Option<String> {
    let is_any = statuses.len() == 0;
    (!is_any).then(|| format!(",{},", statuses.collect::<Vec<_>>().join(",")))
}

/// Calls with each task or execution that has failed: those of the same work and error one after the other, the latest
/// first.
pub(crate) fn failed(
    connection: &Connection,
    kind: Kind,
    each: &mut dyn FnMut(Failed<'_>),
) -> Result<(), Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT id, failed_of, error, failed_step, failed_at FROM record INDEXED BY failed
         WHERE kind = ?1 AND failed_at IS NOT NULL ORDER BY error DESC, failed_of DESC, list_at DESC",
    )?;
    let mut rows = statement.query([kind as i64])?;
    while let Some(row) = rows.next()? {
        let text = |column: usize| Ok::<_, rusqlite::Error>(row.get_ref(column)?.as_str_or_null()?);
        each(Failed {
            id: text(0)?.unwrap_or_default(),
            of: text(1)?.unwrap_or_default(),
            code: text(2)?,
            step: text(3)?.map(Cow::Borrowed),
            at: Timestamp::from_millis(row.get(4)?),
        });
    }
    Ok(())
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

/// How many tasks of each queue run: only those are read.
pub(crate) fn running(connection: &Connection) -> Result<Vec<(QueueName, u64)>, Failure> {
    let mut statement =
        connection.prepare_cached("SELECT queue, count(*) FROM record WHERE list = ?1 GROUP BY queue")?;
    let mut rows = statement.query([Status::Running.as_str()])?;
    let mut running = Vec::new();
    while let Some(row) = rows.next()? {
        // A name that this build doesn't take is left out.
        let Ok(queue) = QueueName::parse(row.get::<_, String>(0)?) else { continue };
        running.push((queue, row.get::<_, i64>(1)?.cast_unsigned()));
    }
    Ok(running)
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
