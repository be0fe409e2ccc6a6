//! The pending tasks of a queue.

use rusqlite::{Connection, OptionalExtension as _, params};
use tickover_core::id::{Incarnation, QueueName};
use tickover_core::task::FORMAT;
use tickover_core::time::Timestamp;
use tickover_service::memory::Ready;

use crate::error::Failure;

/// Hints of tasks that are ready, as `Backlog::ready` of the service says.
pub(crate) fn ready(
    connection: &Connection,
    queue: &QueueName,
    now: Timestamp,
    limit: usize,
    known: &dyn Fn(Incarnation) -> bool,
) -> Result<Ready, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT row, incarnation FROM record WHERE queue = ?1 AND ready_at <= ?2 ORDER BY ready_at, id LIMIT ?3",
    )?;
    let mut rows = statement.query(params![queue.as_str(), now.as_millis(), limit])?;
    let mut ready = Ready::default();
    let mut count = 0;
    while let Some(row) = rows.next()? {
        count += 1;
        let incarnation = Incarnation::from_bytes(row.get::<_, i64>(1)?.to_be_bytes());
        if !known(incarnation) {
            let mut statement = connection.prepare_cached("SELECT body FROM record WHERE row = ?1")?;
            let hint = statement.query_row([row.get::<_, i64>(0)?], |row| {
                Ok(format!("{{\"v\":{FORMAT},\"task\":{}}}", row.get_ref(0)?.as_str()?))
            })?;
            ready.hints.push(hint);
        }
    }
    ready.next_at = if count == limit { Some(now) } else { next_at(connection, queue, now)? };
    Ok(ready)
}

/// When the next task is ready that isn't yet.
fn next_at(
    connection: &Connection,
    queue: &QueueName,
    now: Timestamp,
) -> Result<Option<Timestamp>, rusqlite::Error> {
    let mut statement = connection.prepare_cached(
        "SELECT ready_at FROM record WHERE queue = ?1 AND ready_at > ?2 ORDER BY ready_at LIMIT 1",
    )?;
    let key = params![queue.as_str(), now.as_millis()];
    statement.query_row(key, |row| row.get(0).map(Timestamp::from_millis)).optional()
}

pub(crate) fn count(connection: &Connection, queue: &QueueName, now: Timestamp) -> Result<u64, Failure> {
    let mut statement =
        connection.prepare_cached("SELECT count(*) FROM record WHERE queue = ?1 AND ready_at <= ?2")?;
    let count: i64 = statement.query_row(params![queue.as_str(), now.as_millis()], |row| row.get(0))?;
    Ok(count.cast_unsigned())
}

/// The queues of all records there ever were. Names that this build doesn't take are left out.
pub(crate) fn queues(connection: &Connection) -> Result<Vec<QueueName>, Failure> {
    let mut statement = connection.prepare_cached("SELECT name FROM queue_name")?;
    let names = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    Ok(names.into_iter().filter_map(|name| QueueName::parse(name).ok()).collect())
}
