//! The pending tasks of a queue.
//!
//! Tasks that ask for no order have a lane that isn't stored, and an index of their own.

use rusqlite::{Connection, OptionalExtension as _, Row, Rows, params};
use tickover_core::flow::Priority;
use tickover_core::id::{Fingerprint, Incarnation, QueueName};
use tickover_core::lane::Lane;
use tickover_core::task::FORMAT;
use tickover_core::time::Timestamp;
use tickover_service::memory::{Choice, Ready};
use tickover_service::ports::StoreError;

use crate::error::Failure;
use crate::record::corrupt;

/// A lane as its column has it, in the order of lanes; `None` for tasks that ask for no order.
pub(crate) fn stored_lane(lane: Lane) -> Option<String> {
    let hex = |tenant: Fingerprint| format!("{:032x}", u128::from_be_bytes(*tenant.as_bytes()));
    let tenant = lane.tenant.map(hex).unwrap_or_default();
    (!lane.is_plain()).then(|| format!("{}{tenant}", lane.priority.place()))
}

fn read_lane(text: &str) -> Result<Lane, StoreError> {
    let wrong = || corrupt("the lane of a task isn't one".to_owned());
    let (place, tenant) = text.split_at_checked(1).ok_or_else(wrong)?;
    let priority = Priority::ALL.into_iter().find(|priority| priority.place().to_string() == place);
    let tenant = match tenant {
        "" => None,
        hex => Some(u128::from_str_radix(hex, 16).map_err(|_| wrong())?),
    };
    let tenant = tenant.map(|bits| Fingerprint::from_bytes(bits.to_be_bytes()));
    Ok(Lane { priority: priority.ok_or_else(wrong)?, tenant })
}

/// Lanes that have tasks which need a hint, as `Backlog::lanes` of the service says. Each is found by a seek, however
/// many tasks the one before it has.
pub(crate) fn lanes(
    connection: &Connection,
    queue: &QueueName,
    after: Option<Lane>,
    max: usize,
) -> Result<Vec<Lane>, Failure> {
    let mut lanes = vec![];
    // The plain one stands where its text would be.
    let plain = Lane::default();
    let mut has_plain = after.is_none_or(|after| after < plain) && has_plain(connection, queue)?;
    let mut statement = connection.prepare_cached(
        "SELECT lane FROM record
         WHERE queue = ?1 AND lane > ?2 AND ready_at IS NOT NULL AND lane IS NOT NULL AND has_hint
         ORDER BY lane LIMIT 1",
    )?;
    let mut last = after.map_or_else(String::new, |lane| stored_lane(lane).unwrap_or_else(plain_text));
    while lanes.len() < max {
        let next: Option<String> =
            statement.query_row(params![queue.as_str(), last], |row| row.get(0)).optional()?;
        if has_plain && next.as_ref().is_none_or(|next| *next > plain_text()) {
            has_plain = false;
            lanes.push(plain);
            continue;
        }
        let Some(next) = next else { break };
        lanes.push(read_lane(&next)?);
        last = next;
    }
    Ok(lanes)
}

/// What the column of plain tasks would have.
fn plain_text() -> String {
    Lane::default().priority.place().to_string()
}

fn has_plain(connection: &Connection, queue: &QueueName) -> Result<bool, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT 1 FROM record WHERE queue = ?1 AND ready_at IS NOT NULL AND lane IS NULL AND has_hint LIMIT 1",
    )?;
    Ok(statement.exists([queue.as_str()])?)
}

/// Bodies of hints, as `Backlog::hints` of the service says.
pub(crate) fn hints(
    connection: &Connection,
    queue: &QueueName,
    lane: Lane,
    choose: &mut dyn FnMut(Ready) -> Choice,
) -> Result<Vec<String>, Failure> {
    match stored_lane(lane) {
        None => {
            let mut statement = connection.prepare_cached(
                "SELECT row, ready_at, incarnation, version FROM record
                 WHERE queue = ?1 AND ready_at IS NOT NULL AND lane IS NULL AND has_hint ORDER BY ready_at, id",
            )?;
            chosen(connection, statement.query([queue.as_str()])?, choose)
        }
        Some(lane) => {
            let mut statement = connection.prepare_cached(
                "SELECT row, ready_at, incarnation, version FROM record
                 WHERE queue = ?1 AND lane = ?2 AND ready_at IS NOT NULL AND lane IS NOT NULL AND has_hint
                 ORDER BY ready_at, id",
            )?;
            chosen(connection, statement.query(params![queue.as_str(), lane])?, choose)
        }
    }
}

fn chosen(
    connection: &Connection,
    mut rows: Rows<'_>,
    choose: &mut dyn FnMut(Ready) -> Choice,
) -> Result<Vec<String>, Failure> {
    let mut hints = vec![];
    while let Some(row) = rows.next()? {
        match choose(ready(row)?) {
            Choice::Take => hints.push(hint(connection, row.get(0)?)?),
            Choice::Skip => {}
            Choice::Stop => break,
        }
    }
    Ok(hints)
}

fn ready(row: &Row<'_>) -> Result<Ready, rusqlite::Error> {
    Ok(Ready {
        at: Timestamp::from_millis(row.get(1)?),
        incarnation: Incarnation::from_bytes(row.get::<_, i64>(2)?.to_be_bytes()),
        version: row.get::<_, i64>(3)?.cast_unsigned(),
    })
}

/// A hint has the record as it is stored, so nothing is parsed.
fn hint(connection: &Connection, row: i64) -> Result<String, rusqlite::Error> {
    let mut statement = connection.prepare_cached("SELECT body FROM record WHERE row = ?1")?;
    statement.query_row([row], |row| Ok(format!("{{\"v\":{FORMAT},\"task\":{}}}", row.get_ref(0)?.as_str()?)))
}

/// The latest instant at which a task with a hint is ready, queue by queue: each is found by a seek.
pub(crate) fn latest(connection: &Connection) -> Result<Option<Timestamp>, Failure> {
    let mut latest = None;
    for lane in ["IS NULL", "IS NOT NULL"] {
        let mut statement = connection.prepare(&format!(
            "SELECT max((SELECT ready_at FROM record
                         WHERE queue = name AND ready_at IS NOT NULL AND lane {lane} AND has_hint
                         ORDER BY ready_at DESC LIMIT 1)) FROM queue_name"
        ))?;
        let found: Option<i64> = statement.query_row([], |row| row.get(0))?;
        latest = latest.max(found);
    }
    Ok(latest.map(Timestamp::from_millis))
}

pub(crate) fn count(connection: &Connection, queue: &QueueName, now: Timestamp) -> Result<u64, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT (SELECT count(*) FROM record
                 WHERE queue = ?1 AND ready_at <= ?2 AND ready_at IS NOT NULL AND lane IS NULL AND has_hint)
              + (SELECT count(*) FROM record
                 WHERE queue = ?1 AND ready_at <= ?2 AND ready_at IS NOT NULL AND lane IS NOT NULL AND +has_hint)",
    )?;
    let count: i64 = statement.query_row(params![queue.as_str(), now.as_millis()], |row| row.get(0))?;
    Ok(count.cast_unsigned())
}

/// The queues of all records there ever were. Names that this build doesn't take are left out.
pub(crate) fn queues(connection: &Connection) -> Result<Vec<QueueName>, Failure> {
    let mut statement = connection.prepare_cached("SELECT name FROM queue_name")?;
    let names = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    Ok(names.into_iter().filter_map(|name| QueueName::parse(name).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::open_writer;

    fn lane(priority: Priority, tenant: Option<u8>) -> Lane {
        Lane { priority, tenant: tenant.map(|byte| Fingerprint::from_bytes([byte; 16])) }
    }

    /// Adds a pending task to the queue `work`.
    fn add(connection: &Connection, id: usize, lane: Lane, has_hint: bool) {
        let values = params![format!("t{id:04}"), id, has_hint, stored_lane(lane)];
        connection
            .execute(
                "INSERT INTO record (kind, id, incarnation, version, nonce, wakes, queue, status, ready_at, has_hint,
                     lane, is_open, body)
                 VALUES (0, ?1, ?2, 1, 0, 0, 'work', 'pending', ?2, ?3, ?4, 0, '{}')",
                values,
            )
            .unwrap();
    }

    #[test]
    fn lanes_are_found_in_their_order_and_each_has_its_own_tasks() {
        let connection = open_writer(None).unwrap();
        let work = QueueName::parse("work").unwrap();
        let all = [
            lane(Priority::High, Some(200)),
            lane(Priority::Normal, None),
            lane(Priority::Normal, Some(0)),
            lane(Priority::Normal, Some(255)),
            lane(Priority::Low, None),
        ];
        for id in 0..50 {
            add(&connection, id, all[(id * 7) % 5], true);
        }
        add(&connection, 99, lane(Priority::Low, Some(1)), false);
        assert_eq!(lanes(&connection, &work, None, 99).unwrap(), all);
        for (place, lane) in all.into_iter().enumerate() {
            assert_eq!(lanes(&connection, &work, Some(lane), 99).unwrap(), all[place + 1..]);
            assert_eq!(lanes(&connection, &work, None, place).unwrap(), all[..place]);
            let mut seen = vec![];
            let mut note = |task: Ready| {
                seen.push(task.at.as_millis());
                Choice::Skip
            };
            hints(&connection, &work, lane, &mut note).unwrap();
            assert!(seen.len() == 10 && seen.is_sorted(), "{lane:?}: {seen:?}");
        }
        assert_eq!(count(&connection, &work, Timestamp::from_millis(24)).unwrap(), 25);
    }

    /// Without an index for each of them, a burst of one tenant would be read again and again.
    #[test]
    fn what_a_queue_reads_is_found_by_an_index_without_a_sort() {
        let connection = open_writer(None).unwrap();
        let plan = |sql: &str| -> String {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            statement.query_row([], |row| row.get(3)).unwrap()
        };
        let of = "FROM record WHERE queue = 'q' AND ready_at IS NOT NULL";
        for (sql, index) in [
            (
                format!("SELECT row, version {of} AND lane IS NULL AND has_hint ORDER BY ready_at, id"),
                "record_by_queue",
            ),
            (
                format!(
                    "SELECT row, version {of} AND lane = 'a' AND lane IS NOT NULL AND has_hint ORDER BY ready_at, id"
                ),
                "record_by_lane",
            ),
            (
                format!(
                    "SELECT lane {of} AND lane > 'a' AND lane IS NOT NULL AND has_hint ORDER BY lane LIMIT 1"
                ),
                "record_by_lane",
            ),
            (format!("SELECT id {of} AND lane IS NOT NULL ORDER BY ready_at, id"), "record_laned_by_queue"),
        ] {
            let plan = plan(&sql);
            assert!(plan.contains(&format!("COVERING INDEX {index} (queue=?")), "{sql}: {plan}");
        }
    }
}
