//! Reading records, the due index and lists.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension as _, Row, Rows, ToSql, params};
use tickover_core::due::DueKind;
use tickover_core::gate::Waiter;
use tickover_core::id::{ExecutionId, GateId, RecordId, TaskId, WorkflowName};
use tickover_core::record::Record;
use tickover_core::task::Status;
use tickover_core::time::Timestamp;
use tickover_service::cursor::{self, Position};
use tickover_service::ports::{Collection, DueEntry, DueRange, Listing, Page, Sleeper, StoreError};

use crate::error::Failure;
use crate::record::{CRONS, Kind, OPERATIONS, Read, due, list_of, stored};

/// A query for whole records, in the columns that `parse_row` reads.
macro_rules! select_records {
    ($which:literal) => {
        concat!(
            "SELECT body, incarnation, version, nonce, due_shard, due_at, due_kind, wakes, expires_at, id, list_at FROM record ",
            $which
        )
    };
}

/// One record.
pub(crate) fn record(connection: &Connection, kind: Kind, id: &str) -> Result<Option<Record>, Failure> {
    let mut statement = connection.prepare_cached(select_records!("WHERE kind = ?1 AND id = ?2"))?;
    let mut rows = statement.query(params![kind as i64, id])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    parse_row(row, |read| read.record(kind))
}

fn parse_row<T>(row: &Row<'_>, parse: impl FnOnce(Read<'_>) -> Result<T, StoreError>) -> Result<T, Failure> {
    let body = row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?;
    let id = row.get_ref(9)?.as_str().map_err(rusqlite::Error::from)?;
    Ok(parse(Read { id, body, stored: stored(row, 1)? })?)
}

/// Several records; absent ones are left out, and one that is asked for twice comes once.
pub(crate) fn records(connection: &Connection, ids: &[RecordId]) -> Result<Vec<Record>, Failure> {
    let ids: BTreeSet<&RecordId> = ids.iter().collect();
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        found.extend(record(connection, Kind::of(id), &id.to_string())?);
    }
    Ok(found)
}

/// The first that wait in the line of a key, from behind this key on.
pub(crate) fn waiters(
    connection: &Connection,
    gate: &GateId,
    after: &str,
    limit: usize,
) -> Result<Vec<Waiter>, Failure> {
    let mut statement = connection
        .prepare_cached(select_records!("WHERE kind = ?1 AND id > ?2 AND id < ?3 ORDER BY id LIMIT ?4"))?;
    // What follows the separator in the order of characters ends the range.
    let (from, until) = (format!("{gate}#{after}"), line_end(gate));
    let mut rows = statement.query(params![Kind::Waiter as i64, from, until, limit])?;
    let mut found = vec![];
    while let Some(row) = rows.next()? {
        found.push(parse_row(row, |read| read.waiter())?);
    }
    Ok(found)
}

/// The first key after this one that has a line.
pub(crate) fn next_line(connection: &Connection, after: Option<&GateId>) -> Result<Option<GateId>, Failure> {
    let mut statement =
        connection.prepare_cached("SELECT id FROM record WHERE kind = ?1 AND id > ?2 ORDER BY id LIMIT 1")?;
    let from = after.map(line_end).unwrap_or_default();
    let id: Option<String> =
        statement.query_row(params![Kind::Waiter as i64, from], |row| row.get(0)).optional()?;
    Ok(id.and_then(|id| GateId::parse(id.split('#').next().unwrap_or_default()).ok()))
}

/// What follows the ids of all that wait at a key: the character after the separator.
fn line_end(gate: &GateId) -> String {
    format!("{gate}$")
}

/// A part of the due index, earliest first.
pub(crate) fn due_entries(
    connection: &Connection,
    range: DueRange,
    limit: usize,
    cursor: Option<&str>,
) -> Result<Page<DueEntry>, Failure> {
    let listing = format!("due {}", range.shard);
    let after = after(&listing, cursor)?;
    let mut statement = connection.prepare_cached(
        "SELECT kind, id, due_shard, due_at, due_kind FROM record
         WHERE due_shard = ?1 AND due_at BETWEEN ?2 AND ?3 AND (due_at, kind, id) > (?4, ?5, ?6)
         ORDER BY due_at, kind, id LIMIT ?7",
    )?;
    let from = range.from.as_millis().max(after.at);
    let until = range.until.as_millis();
    let mut rows =
        statement.query(params![range.shard, from, until, after.at, after.kind, after.id, limit + 1])?;
    let mut found = vec![];
    while let Some(row) = rows.next()? {
        let (Some(record), Some(due)) = (Kind::record(row.get(0)?, row.get(1)?)?, due(row, 2)?) else {
            continue;
        };
        found.push(DueEntry { record, due_at: due.at, kind: due.kind, sleeper: None });
    }
    for entry in found.iter_mut().filter(|entry| entry.kind == DueKind::Asleep) {
        if let RecordId::Execution(id) = &entry.record {
            entry.sleeper = match record(connection, Kind::Execution, id.as_str()) {
                Ok(Some(Record::Execution(execution))) => Some(Box::new(Sleeper::of(&execution))),
                // One that can't be read shows the error when the tick reads its record.
                Ok(_) | Err(Failure::Refused(_)) => None,
                Err(error) => return Err(error),
            };
        }
    }
    Ok(page(found, limit, &listing, |entry| Position { at: entry.due_at, record: entry.record.clone() }))
}

/// Ids of tasks.
pub(crate) fn tasks(
    connection: &Connection,
    listing: Listing,
    limit: usize,
    cursor: Option<&str>,
) -> Result<Page<TaskId>, Failure> {
    let name = match listing {
        Listing::Live { shard } => cursor::live(shard),
        Listing::Dead => "dead".to_owned(),
        Listing::All => "all".to_owned(),
    };
    let positions = match listing {
        Listing::Live { shard } => {
            let after = after(&name, cursor)?;
            positions(
                connection,
                "SELECT kind, id, 0 FROM record WHERE kind = 0 AND id > ?1 AND due_shard = ?2
                 ORDER BY id LIMIT ?3",
                params![after.id, shard, limit + 1],
            )?
        }
        Listing::Dead => {
            let before = before(&name, cursor)?;
            let mut dead = vec![];
            for status in [Status::Failed, Status::TimedOut] {
                dead.extend(list(connection, status.as_str(), &before, limit)?);
            }
            dead.sort_unstable_by(|one, other| other.cmp(one));
            dead.truncate(limit + 1);
            dead
        }
        Listing::All => {
            let after = after(&name, cursor)?;
            positions(
                connection,
                "SELECT kind, id, 0 FROM record WHERE kind = 0 AND id > ?1 ORDER BY id LIMIT ?2",
                params![after.id, limit + 1],
            )?
        }
    };
    Ok(page_of_ids(positions, limit, &name))
}

/// Ids of a workflow's executions, latest first.
pub(crate) fn executions(
    connection: &Connection,
    workflow: &WorkflowName,
    limit: usize,
    cursor: Option<&str>,
) -> Result<Page<ExecutionId>, Failure> {
    let name = list_of(workflow);
    Ok(page_of_ids(list(connection, &name, &before(&name, cursor)?, limit)?, limit, &name))
}

/// Records of a kind of which there are few.
pub(crate) fn collection(
    connection: &Connection,
    of: Collection,
    limit: usize,
    cursor: Option<&str>,
) -> Result<Page<Record>, Failure> {
    let (kind, list, start, sql) = match of {
        Collection::Crons => {
            let sql =
                select_records!("WHERE list = ?1 AND (list_at, id) > (?2, ?3) ORDER BY list_at, id LIMIT ?4");
            (Kind::Cron, CRONS, after(CRONS, cursor)?, sql)
        }
        Collection::Operations => {
            let sql = select_records!(
                "WHERE list = ?1 AND (list_at, id) < (?2, ?3) ORDER BY list_at DESC, id DESC LIMIT ?4"
            );
            (Kind::Operation, OPERATIONS, before(OPERATIONS, cursor)?, sql)
        }
        Collection::Queues => {
            let mut statement = connection.prepare_cached(select_records!("WHERE kind = ?1 ORDER BY id"))?;
            let found = placed(statement.query([Kind::Queue as i64])?, Kind::Queue)?;
            return Ok(Page { items: found.into_iter().map(|(_, record)| record).collect(), next: None });
        }
    };
    let mut statement = connection.prepare_cached(sql)?;
    let found = placed(statement.query(params![list, start.at, start.id, limit + 1])?, kind)?;
    let Page { items, next } = page(found, limit, list, |(position, _)| position.clone());
    Ok(Page { items: items.into_iter().map(|(_, record)| record).collect(), next })
}

/// Records of a kind with their positions in its list.
fn placed(mut rows: Rows<'_>, kind: Kind) -> Result<Vec<(Position, Record)>, Failure> {
    let mut found = vec![];
    while let Some(row) = rows.next()? {
        let at = Timestamp::from_millis(row.get::<_, Option<i64>>(10)?.unwrap_or_default());
        let record = parse_row(row, |read| read.record(kind))?;
        found.extend(record.map(|record| (Position { at, record: record.id() }, record)));
    }
    Ok(found)
}

/// A page of the ids of one kind.
pub(crate) fn page_of_ids<T: TryFrom<RecordId>>(
    found: Vec<Position>,
    limit: usize,
    listing: &str,
) -> Page<T> {
    let Page { items, next } = page(found, limit, listing, Position::clone);
    Page { items: items.into_iter().map(|position| position.record).collect(), next }.only()
}

/// A position as columns are compared with it.
pub(crate) struct Bound {
    pub(crate) at: i64,
    kind: i64,
    pub(crate) id: String,
}

impl Bound {
    /// The same, or the place before this instant if that is earlier. Before all ids lies the empty one.
    pub(crate) fn at_most(self, before: Option<Timestamp>) -> Self {
        match before.map(Timestamp::as_millis) {
            Some(before) if self.at >= before => Self { at: before, id: String::new(), ..self },
            Some(_) | None => self,
        }
    }

    fn of(position: &Position) -> Self {
        let kind = Kind::of(&position.record) as i64;
        Self { at: position.at.as_millis(), kind, id: position.record.to_string() }
    }
}

/// Where an ascending listing goes on. Before all ids lies the empty one.
fn after(listing: &str, cursor: Option<&str>) -> Result<Bound, StoreError> {
    let start = Bound { at: i64::MIN, kind: 0, id: String::new() };
    cursor.map_or(Ok(start), |cursor| Ok(Bound::of(&cursor::decode(listing, cursor)?)))
}

/// Where a descending listing goes on. No instant that a record may have is as late as the last one.
pub(crate) fn before(listing: &str, cursor: Option<&str>) -> Result<Bound, StoreError> {
    let start = Bound { at: i64::MAX, kind: 0, id: String::new() };
    cursor.map_or(Ok(start), |cursor| Ok(Bound::of(&cursor::decode(listing, cursor)?)))
}

/// A list, latest first.
fn list(connection: &Connection, name: &str, before: &Bound, limit: usize) -> Result<Vec<Position>, Failure> {
    positions(
        connection,
        "SELECT kind, id, list_at FROM record WHERE list = ?1 AND (list_at, id) < (?2, ?3)
         ORDER BY list_at DESC, id DESC LIMIT ?4",
        params![name, before.at, before.id, limit + 1],
    )
}

/// The positions that a query finds: kind, id and instant.
pub(crate) fn positions(
    connection: &Connection,
    sql: &str,
    with: &[&dyn ToSql],
) -> Result<Vec<Position>, Failure> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(with)?;
    let mut found = vec![];
    while let Some(row) = rows.next()? {
        let Some(record) = Kind::record(row.get(0)?, row.get(1)?)? else { continue };
        found.push(Position { at: Timestamp::from_millis(row.get(2)?), record });
    }
    Ok(found)
}

/// A page of what was found, where one more than `limit` was asked for to see whether there is more.
pub(crate) fn page<T>(
    mut found: Vec<T>,
    limit: usize,
    listing: &str,
    position: impl Fn(&T) -> Position,
) -> Page<T> {
    let is_last = found.len() <= limit;
    found.truncate(limit);
    let next = if is_last { None } else { found.last().map(|last| cursor::encode(listing, &position(last))) };
    Page { items: found, next }
}
