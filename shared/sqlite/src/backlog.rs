//! The pending tasks of a queue.

use rusqlite::{Connection, params};
use tickover_core::id::{Incarnation, QueueName};
use tickover_core::task::FORMAT;
use tickover_core::time::Timestamp;
use tickover_service::memory::{Choice, Ready};

use crate::error::Failure;

/// Bodies of hints, as `Backlog::hints` of the service says.
pub(crate) fn hints(
    connection: &Connection,
    queue: &QueueName,
    choose: &mut dyn FnMut(Ready) -> Choice,
) -> Result<Vec<String>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT row, ready_at, incarnation, version FROM record
         WHERE queue = ?1 AND ready_at IS NOT NULL AND has_hint ORDER BY ready_at, id",
    )?;
    let mut rows = statement.query([queue.as_str()])?;
    let mut hints = vec![];
    while let Some(row) = rows.next()? {
        let task = Ready {
            at: Timestamp::from_millis(row.get(1)?),
            incarnation: Incarnation::from_bytes(row.get::<_, i64>(2)?.to_be_bytes()),
            version: row.get::<_, i64>(3)?.cast_unsigned(),
        };
        match choose(task) {
            Choice::Take => hints.push(hint(connection, row.get(0)?)?),
            Choice::Skip => {}
            Choice::Stop => break,
        }
    }
    Ok(hints)
}

/// A hint has the record as it is stored, so nothing is parsed.
fn hint(connection: &Connection, row: i64) -> Result<String, rusqlite::Error> {
    let mut statement = connection.prepare_cached("SELECT body FROM record WHERE row = ?1")?;
    statement.query_row([row], |row| Ok(format!("{{\"v\":{FORMAT},\"task\":{}}}", row.get_ref(0)?.as_str()?)))
}

pub(crate) fn count(connection: &Connection, queue: &QueueName, now: Timestamp) -> Result<u64, Failure> {
    let mut statement = connection
        .prepare_cached("SELECT count(*) FROM record WHERE queue = ?1 AND ready_at <= ?2 AND has_hint")?;
    let count: i64 = statement.query_row(params![queue.as_str(), now.as_millis()], |row| row.get(0))?;
    Ok(count.cast_unsigned())
}

/// The queues of all records there ever were. Names that this build doesn't take are left out.
pub(crate) fn queues(connection: &Connection) -> Result<Vec<QueueName>, Failure> {
    let mut statement = connection.prepare_cached("SELECT name FROM queue_name")?;
    let names = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    Ok(names.into_iter().filter_map(|name| QueueName::parse(name).ok()).collect())
}
