//! A commit: what it asks of the stored records, and what it changes.
//!
//! It is prepared by the caller, so that the thread that writes serialises nothing. All conditions are read before the
//! first change is made. So a commit that is refused has changed nothing, and needs no savepoint of its own.

use rusqlite::{Connection, OptionalExtension as _, params};
use tickover_core::decision::{self, Expiring, Write};
use tickover_core::due::Due;
use tickover_core::id::{ExecutionId, Incarnation};
use tickover_core::record::{Head, Record};
use tickover_core::time::Timestamp;
use tickover_service::condition::{Condition, Ruling, Verdict};
use tickover_service::ports::StoreError;

use crate::error::Failure;
use crate::read::record as read;
use crate::record::{Kind, NewRecord, bits, stored, waiter_id};

/// The writes of a commit, in the order in which they are made.
#[derive(Debug)]
pub(crate) struct Commit {
    /// They have no condition, and stay whatever becomes of the others.
    extensions: Vec<Extension>,
    decided: Vec<Decided>,
    /// They come last.
    behind: Vec<Behind>,
}

/// A write without a condition that follows the others.
#[derive(Debug)]
enum Behind {
    /// An execution that is woken must find what it is woken for.
    Wake(ExecutionId, Incarnation),
    /// A task no longer waits at a key, by the id of what waits.
    Left(String),
}

#[derive(Debug)]
enum Extension {
    Of(Expiring, Timestamp),
    Waiter(String, Box<NewRecord>),
}

/// A write with a condition.
#[derive(Debug)]
struct Decided {
    kind: Kind,
    id: String,
    condition: Condition,
    change: Change,
}

#[derive(Debug)]
enum Change {
    /// The record is written as a whole, whether there was one or not.
    Put(NewRecord),
    /// The record is written, but for its wakes, for its due slot unless that `moves`, and for the status of an
    /// execution unless that `turns`, and for the labels unless they change.
    Update {
        record: NewRecord,
        moves: bool,
        turns: bool,
        relabels: bool,
        /// Whether it comes to a line or leaves it, is put off to a start, or gets another queue, as a child that is started
        /// again may.
        requeues: bool,
    },
    Move(Due),
}

impl Commit {
    pub(crate) fn new(writes: &[Write]) -> Result<Self, StoreError> {
        let mut commit = Self { extensions: vec![], decided: vec![], behind: vec![] };
        for write in writes {
            commit.add(write)?;
        }
        Ok(commit)
    }

    fn add(&mut self, write: &Write) -> Result<(), StoreError> {
        let (record, change) = match write {
            Write::Put { before: Some(before), after, condition: decision::Condition::Unchanged { .. } } => {
                let moves = before.head().due != after.head().due;
                let turns = match (before, after) {
                    (Record::Execution(before), Record::Execution(after)) => {
                        before.status() != after.status()
                    }
                    (_, _) => true,
                };
                let relabels = match (before, after) {
                    (Record::Task(before), Record::Task(after)) => before.labels != after.labels,
                    (Record::Execution(before), Record::Execution(after)) => before.details != after.details,
                    (_, _) => false,
                };
                let requeues = match (before, after) {
                    (Record::Task(before), Record::Task(after)) => {
                        (before.lane(), &before.queue) != (after.lane(), &after.queue)
                    }
                    (Record::Execution(before), Record::Execution(after)) => before.queue != after.queue,
                    (_, _) => false,
                };
                let record = NewRecord::of(after)?;
                (after, Change::Update { record, moves, turns, relabels, requeues })
            }
            Write::Put { after, .. } => (after, Change::Put(NewRecord::of(after)?)),
            Write::Rearm { record, to } => (record, Change::Move(*to)),
            Write::PutWaiter { gate, waiter, expires_at } => {
                let record = NewRecord::waiter(waiter, *expires_at)?;
                self.extensions.push(Extension::Waiter(waiter_id(gate, waiter), Box::new(record)));
                return Ok(());
            }
            Write::DeleteWaiter { gate, waiter } => {
                self.behind.push(Behind::Left(waiter_id(gate, waiter)));
                return Ok(());
            }
            Write::Wake { id, incarnation } => {
                self.behind.push(Behind::Wake(id.clone(), *incarnation));
                return Ok(());
            }
            Write::Extend { item, expires_at } => {
                self.extensions.push(Extension::Of(item.clone(), *expires_at));
                return Ok(());
            }
        };
        if let Some(condition) = Condition::of(write) {
            let id = record.id();
            self.decided.push(Decided { kind: Kind::of(&id), id: id.to_string(), condition, change });
        }
        Ok(())
    }

    /// Reads the conditions, and makes the changes if they hold.
    pub(crate) fn run(&self, connection: &Connection) -> Result<(), Failure> {
        for extension in &self.extensions {
            extension.run(connection)?;
        }
        let mut found = Vec::with_capacity(self.decided.len());
        for decided in &self.decided {
            found.push(find(connection, decided.kind, &decided.id)?);
        }
        let verdict = |(decided, found): (&Decided, &Option<(i64, Head)>)| {
            decided.condition.verdict(found.as_ref().map(|(_, stored)| stored))
        };
        let verdicts: Vec<Verdict> = self.decided.iter().zip(&found).map(verdict).collect();
        match Ruling::of(&verdicts) {
            Ruling::Done => {}
            Ruling::Conflict(failed) => {
                for index in failed {
                    if let Some(current) = self.decided[index].current(connection)? {
                        return Err(StoreError::Conflict { current: Some(current) }.into());
                    }
                }
                return Err(StoreError::Conflict { current: None }.into());
            }
            Ruling::Write => {
                for (decided, found) in self.decided.iter().zip(&found) {
                    decided.run(connection, found.as_ref().map(|(row, _)| *row))?;
                }
            }
        }
        for write in &self.behind {
            write.run(connection)?;
        }
        Ok(())
    }
}

/// The row of a record, and what conditions ask of it.
fn find(connection: &Connection, kind: Kind, id: &str) -> Result<Option<(i64, Head)>, rusqlite::Error> {
    let mut statement = connection.prepare_cached(
        "SELECT row, incarnation, version, nonce, due_shard, due_at, due_kind, wakes, expires_at
         FROM record WHERE kind = ?1 AND id = ?2",
    )?;
    statement.query_row(params![kind as i64, id], |row| Ok((row.get(0)?, stored(row, 1)?))).optional()
}

impl Decided {
    /// Makes the change. `row` is the record's, if there is one.
    fn run(&self, connection: &Connection, row: Option<i64>) -> Result<(), rusqlite::Error> {
        match (&self.change, row) {
            (Change::Put(record), row) => put(connection, self.kind, &self.id, record, row),
            (Change::Update { record, moves, turns, relabels, requeues }, Some(row)) => {
                update(connection, self.kind, record, row, (*moves, *turns))?;
                if *requeues {
                    let mut statement = connection
                        .prepare_cached("UPDATE record SET lane = ?2, queue = ?3 WHERE row = ?1")?;
                    statement.execute(params![row, record.lane, record.queue])?;
                }
                if *relabels { label_anew(connection, self.kind, &self.id, record, row) } else { Ok(()) }
            }
            (Change::Move(due), Some(row)) => move_to(connection, *due, row),
            // An update's condition holds only where there is a record.
            (Change::Update { .. } | Change::Move(_), None) => Ok(()),
        }
    }

    /// The record, for a caller whose write was refused, if it is a task's or an execution's.
    fn current(&self, connection: &Connection) -> Result<Option<Record>, Failure> {
        let is_shown = matches!(self.kind, Kind::Task | Kind::Execution);
        if is_shown { read(connection, self.kind, &self.id) } else { Ok(None) }
    }
}

fn put(
    connection: &Connection,
    kind: Kind,
    id: &str,
    record: &NewRecord,
    row: Option<i64>,
) -> Result<(), rusqlite::Error> {
    let NewRecord {
        stored,
        list,
        queue,
        status,
        ready_at,
        has_hint,
        lane,
        is_open,
        error,
        failed_at,
        failed_of,
        failed_step,
        labels: _,
        body,
    } = record;
    let mut statement = connection.prepare_cached(
        "INSERT OR REPLACE INTO record (row, kind, id, incarnation, version, nonce, due_shard, due_at, due_kind, wakes,
             expires_at, list, list_at, queue, status, ready_at, has_hint, lane, is_open, error, failed_at, failed_of,
             failed_step, body)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22,
             ?23, ?24)",
    )?;
    let due = stored.due;
    statement.execute(params![
        row,
        kind as i64,
        id,
        stored.incarnation.map(|incarnation| bits(*incarnation.as_bytes())),
        stored.version.cast_signed(),
        bits(*stored.nonce.as_bytes()),
        due.map(|due| due.shard),
        due.map(|due| due.at.as_millis()),
        due.map(|due| due.kind.letter()),
        stored.wakes.cast_signed(),
        stored.expires_at.map(Timestamp::as_millis),
        list.as_ref().map(|(name, _)| name),
        list.as_ref().map(|(_, at)| at.as_millis()),
        queue,
        status,
        ready_at.map(Timestamp::as_millis),
        has_hint,
        lane,
        is_open,
        error,
        failed_at.map(Timestamp::as_millis),
        failed_of,
        failed_step,
        body,
    ])?;
    match row {
        Some(row) => label_anew(connection, kind, id, record, row)?,
        None => label(connection, kind, id, record, connection.last_insert_rowid())?,
    }
    if let Some(queue) = queue {
        let mut statement =
            connection.prepare_cached("INSERT OR IGNORE INTO queue_name (name) VALUES (?1)")?;
        statement.execute([queue])?;
    }
    Ok(())
}

/// Writes the labels of a record that has none yet.
pub(crate) fn label(
    connection: &Connection,
    kind: Kind,
    id: &str,
    record: &NewRecord,
    row: i64,
) -> Result<(), rusqlite::Error> {
    let Some((_, at)) = &record.list else { return Ok(()) };
    for (name, value) in record.labels.read(connection)?.unwrap_or_default().iter() {
        let mut statement = connection.prepare_cached(
            "INSERT INTO label (kind, name, value, at, id, row) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        statement.execute(params![kind as i64, name, value, at.as_millis(), id, row])?;
    }
    Ok(())
}

/// Writes the labels of a record in place of those that it has had.
fn label_anew(
    connection: &Connection,
    kind: Kind,
    id: &str,
    record: &NewRecord,
    row: i64,
) -> Result<(), rusqlite::Error> {
    if matches!(kind, Kind::Task | Kind::Execution) {
        connection.prepare_cached("DELETE FROM label WHERE row = ?1")?.execute([row])?;
    }
    label(connection, kind, id, record, row)
}

/// An update with further columns. `SQLite` writes each index anew that has a column of the statement, changed or not: so
/// a statement has only what may change.
macro_rules! update_with {
    ($($further:literal),*) => {
        concat!(
            "UPDATE record SET version = ?8, nonce = ?9, expires_at = ?10, body = ?14",
            $($further,)*
            " WHERE row = ?18"
        )
    };
}

fn update(
    connection: &Connection,
    kind: Kind,
    record: &NewRecord,
    row: i64,
    (moves, turns): (bool, bool),
) -> Result<(), rusqlite::Error> {
    let NewRecord {
        stored,
        list,
        queue: _,
        status,
        ready_at,
        has_hint,
        lane: _,
        is_open,
        error,
        failed_at,
        failed_of,
        failed_step,
        labels: _,
        body,
    } = record;
    // An execution stays in its list, and is never pending in a queue. It alone is open, by its status.
    let mut statement = connection.prepare_cached(match (kind, moves, turns) {
        (Kind::Execution, false, false) => update_with!(""),
        (Kind::Execution, false, true) => update_with!(
            ", status = ?11, is_open = ?12",
            ", error = ?13, failed_at = ?15, failed_of = ?16, failed_step = ?17"
        ),
        (Kind::Execution, true, false) => update_with!(", due_shard = ?1, due_at = ?2, due_kind = ?3"),
        (Kind::Execution, true, true) => update_with!(
            ", due_shard = ?1, due_at = ?2, due_kind = ?3",
            ", status = ?11, is_open = ?12",
            ", error = ?13, failed_at = ?15, failed_of = ?16, failed_step = ?17"
        ),
        (_, false, _) => update_with!(
            ", list = ?4, list_at = ?5, ready_at = ?6, has_hint = ?7, status = ?11",
            ", error = ?13, failed_at = ?15, failed_of = ?16, failed_step = ?17"
        ),
        (_, true, _) => update_with!(
            ", due_shard = ?1, due_at = ?2, due_kind = ?3",
            ", list = ?4, list_at = ?5, ready_at = ?6, has_hint = ?7, status = ?11",
            ", error = ?13, failed_at = ?15, failed_of = ?16, failed_step = ?17"
        ),
    })?;
    let due = stored.due;
    let parameters = params![
        due.map(|due| due.shard),
        due.map(|due| due.at.as_millis()),
        due.map(|due| due.kind.letter()),
        list.as_ref().map(|(name, _)| name),
        list.as_ref().map(|(_, at)| at.as_millis()),
        ready_at.map(Timestamp::as_millis),
        has_hint,
        stored.version.cast_signed(),
        bits(*stored.nonce.as_bytes()),
        stored.expires_at.map(Timestamp::as_millis),
        status,
        is_open,
        error,
        body,
        failed_at.map(Timestamp::as_millis),
        failed_of,
        failed_step,
        row,
    ];
    statement.execute(parameters).map(|_| ())
}

fn move_to(connection: &Connection, due: Due, row: i64) -> Result<(), rusqlite::Error> {
    let mut statement = connection
        .prepare_cached("UPDATE record SET due_shard = ?2, due_at = ?3, due_kind = ?4 WHERE row = ?1")?;
    statement.execute(params![row, due.shard, due.at.as_millis(), due.kind.letter()]).map(|_| ())
}

/// Only one that is open: another one has nothing to go on with.
fn wake(connection: &Connection, id: &ExecutionId, incarnation: Incarnation) -> Result<(), rusqlite::Error> {
    let mut statement = connection.prepare_cached(
        "UPDATE record SET wakes = wakes + 1 WHERE kind = ?1 AND id = ?2 AND incarnation = ?3 AND is_open",
    )?;
    let incarnation = bits(*incarnation.as_bytes());
    statement.execute(params![Kind::Execution as i64, id.as_str(), incarnation]).map(|_| ())
}

impl Behind {
    fn run(&self, connection: &Connection) -> Result<(), rusqlite::Error> {
        match self {
            Self::Wake(id, incarnation) => wake(connection, id, *incarnation),
            Self::Left(id) => {
                let mut statement =
                    connection.prepare_cached("DELETE FROM record WHERE kind = ?1 AND id = ?2")?;
                statement.execute(params![Kind::Waiter as i64, id]).map(|_| ())
            }
        }
    }
}

impl Extension {
    fn run(&self, connection: &Connection) -> Result<(), rusqlite::Error> {
        match self {
            Self::Of(Expiring::Blob(id), expires_at) => {
                let mut statement = connection
                    .prepare_cached("UPDATE blob SET expires_at = max(expires_at, ?2) WHERE id = ?1")?;
                statement.execute(params![id.as_bytes(), expires_at.as_millis()])?;
            }
            Self::Of(Expiring::Segment(id, key), expires_at) => {
                let mut statement = connection.prepare_cached(
                    "UPDATE segment SET expires_at = max(expires_at, ?6)
                     WHERE execution = ?1 AND incarnation = ?2 AND run = ?3 AND number = ?4 AND mark = ?5",
                )?;
                statement.execute(params![
                    id.as_str(),
                    bits(*key.incarnation.as_bytes()),
                    key.run,
                    key.number,
                    bits(*key.mark.as_bytes()),
                    expires_at.as_millis(),
                ])?;
            }
            Self::Waiter(id, record) => {
                let row = find(connection, Kind::Waiter, id)?.map(|(row, _)| row);
                put(connection, Kind::Waiter, id, record, row)?;
            }
            Self::Of(Expiring::Key(key), expires_at) => {
                let mut statement = connection
                    .prepare_cached("UPDATE record SET expires_at = ?3 WHERE kind = ?1 AND id = ?2")?;
                statement.execute(params![Kind::Key as i64, key.to_string(), expires_at.as_millis()])?;
            }
        }
        Ok(())
    }
}
