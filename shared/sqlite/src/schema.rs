//! Opening a database: its settings, its schema and the versions of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, params};

use crate::commit;
use crate::error::OpenError;
use crate::record::{Kind, NewRecord, Read, stored};

/// Marks the file as Tickover's, for this program and for tools such as `file`: "tick".
const APPLICATION_ID: i64 = 0x7469_636b;
/// The version of the schema: the number of migrations.
const VERSION: i64 = 6;
/// Each brings the schema from the version before it to the next one.
const MIGRATIONS: [(i64, &str); 6] = [
    (1, include_str!("schema/1.sql")),
    (2, include_str!("schema/2.sql")),
    (3, include_str!("schema/3.sql")),
    (4, include_str!("schema/4.sql")),
    (5, include_str!("schema/5.sql")),
    (6, include_str!("schema/6.sql")),
];
/// How long a reader waits while the file is being recovered or truncated.
const BUSY: Duration = Duration::from_secs(5);
/// Statements that a connection keeps prepared: more than there are.
const STATEMENTS: usize = 64;

/// The connection that writes. Makes the schema, or brings it up to date.
pub(crate) fn open_writer(path: Option<&Path>) -> Result<Connection, OpenError> {
    let name = path.unwrap_or(Path::new(":memory:"));
    let fail = |error| OpenError::of_file(name, error);
    let mut connection = match path {
        Some(path) => Connection::open_with_flags(path, flags() | OpenFlags::SQLITE_OPEN_CREATE),
        None => Connection::open_in_memory(),
    }
    .map_err(fail)?;
    configure(&connection).map_err(fail)?;
    if let Some(path) = path {
        // A file without anything in it becomes ours.
        match origin(&connection).map_err(fail)? {
            Origin::Nobody | Origin::Ours => {}
            other => return Err(other.refusal(path)),
        }
        log_ahead(&connection).map_err(fail)?;
    }
    migrate(&mut connection).map_err(fail)?;
    Ok(connection)
}

/// A connection to a file that has data of Tickover. Only one that `writes` can change it.
pub(crate) fn open_existing(path: &Path, writes: bool) -> Result<Connection, OpenError> {
    let fail = |error| OpenError::of_file(path, error);
    let only_reads = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let flags = if writes { flags() } else { only_reads };
    let connection = Connection::open_with_flags(path, flags).map_err(fail)?;
    configure(&connection).map_err(fail)?;
    match origin(&connection).map_err(fail)? {
        Origin::Ours => Ok(connection),
        other => Err(other.refusal(path)),
    }
}

/// A connection that only reads. There has been a writer before.
pub(crate) fn open_reader(path: &Path) -> Result<Connection, rusqlite::Error> {
    let connection = Connection::open_with_flags(path, flags())?;
    configure(&connection)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// No mutex within `SQLite`: a connection belongs to one thread at a time.
fn flags() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

fn configure(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // Each commit is synced before it is acknowledged.
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.pragma_update(None, "cache_size", -8_192)
}

fn log_ahead(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.pragma_update(None, "journal_mode", "wal")?;
    // The writer has its own way: see `checkpoint`.
    connection.pragma_update(None, "wal_autocheckpoint", 0)
}

/// Whose a file is.
enum Origin {
    /// There is nothing in it.
    Nobody,
    Ours,
    /// A later version of Tickover's, with this schema.
    Newer(i64),
    /// A version's of Tickover before it had its own format.
    Obsolete,
    /// Another program's.
    Foreign,
}

impl Origin {
    /// Why a file of this origin isn't opened.
    fn refusal(self, path: &Path) -> OpenError {
        let path = path.to_owned();
        match self {
            Self::Nobody | Self::Ours => OpenError::Empty { path },
            Self::Newer(found) => OpenError::Newer { path, found, known: VERSION },
            Self::Obsolete => OpenError::Obsolete { path },
            Self::Foreign => OpenError::Foreign { path },
        }
    }
}

/// Finds out whose a file is, before anything is written to it.
fn origin(connection: &Connection) -> Result<Origin, rusqlite::Error> {
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let (id, version) = (number("application_id")?, number("user_version")?);
    if id == APPLICATION_ID {
        return Ok(if version > VERSION { Origin::Newer(version) } else { Origin::Ours });
    }
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    if id == 0 && count("SELECT count(*) FROM sqlite_schema WHERE type = 'table'")? == 0 {
        return Ok(Origin::Nobody);
    }
    // The engine that early versions used keeps the names of its tables in one of this name.
    let obsolete = count("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = '_tables'")?;
    Ok(if obsolete > 0 { Origin::Obsolete } else { Origin::Foreign })
}

/// The tables, indexes and triggers of a database, with their definitions.
type Objects = BTreeMap<(String, String), String>;

/// Where the schema of a file isn't that of its version, a sentence each: what is missing, what differs, and what only a
/// later version has. And whether its version is this build's.
pub(crate) fn deviations(connection: &Connection) -> Result<(Vec<String>, bool), rusqlite::Error> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let (found, expected, latest) = (objects(connection)?, of_version(version)?, of_version(VERSION)?);
    let mut sentences = Vec::new();
    for ((what, name), definition) in &expected {
        match found.get(&(what.clone(), name.clone())) {
            None => sentences.push(format!("the {what} {name} is missing")),
            Some(other) if other != definition => {
                sentences.push(format!("the {what} {name} isn't that of schema {version}"));
            }
            Some(_) => {}
        }
    }
    for (what, name) in
        found.keys().filter(|object| !expected.contains_key(object) && latest.contains_key(object))
    {
        sentences.push(format!("the {what} {name} is of a later schema than {version}"));
    }
    Ok((sentences, version == VERSION))
}

/// What a new file of that version has.
fn of_version(version: i64) -> Result<Objects, rusqlite::Error> {
    let connection = Connection::open_in_memory()?;
    for (_, migration) in MIGRATIONS.iter().filter(|(of, _)| *of <= version) {
        connection.execute_batch(migration)?;
    }
    objects(&connection)
}

fn objects(connection: &Connection) -> Result<Objects, rusqlite::Error> {
    // What begins so is made by the engine itself.
    let mut statement = connection
        .prepare("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")?;
    let rows = statement.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?;
    rows.collect()
}

/// Runs the migrations that this file hasn't seen, all or none of them.
fn migrate(connection: &mut Connection) -> Result<(), rusqlite::Error> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for (_, migration) in MIGRATIONS.iter().filter(|(of, _)| *of > version) {
        transaction.execute_batch(migration)?;
    }
    if (1..VERSION).contains(&version) {
        fill(&transaction, version)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

/// Fills what a later version of the schema finds tasks and executions by. One that can't be read is found as before.
fn fill(connection: &Connection, version: i64) -> Result<(), rusqlite::Error> {
    let mut statement = connection.prepare(
        "SELECT row, id, body, incarnation, version, nonce, due_shard, due_at,
         due_kind, wakes, expires_at FROM record WHERE kind = ?1",
    )?;
    for kind in [Kind::Task, Kind::Execution] {
        let mut rows = statement.query([kind as i64])?;
        while let Some(row) = rows.next()? {
            let (number, id) = (row.get(0)?, row.get_ref(1)?.as_str()?);
            let read = Read { id, body: row.get_ref(2)?.as_str()?, stored: stored(row, 3)? };
            let Ok(Some(record)) = read.record(kind) else { continue };
            let Ok(record) = NewRecord::of(&record) else { continue };
            if let Some(at) = record.failed_at {
                let NewRecord { error, failed_of, failed_step, .. } = &record;
                connection.execute(
                    "UPDATE record SET error = ?2, failed_at = ?3, failed_of = ?4, failed_step = ?5 WHERE row = ?1",
                    params![number, error, at.as_millis(), failed_of, failed_step],
                )?;
            }
            // Since the second version, executions have theirs.
            if kind == Kind::Task || version == 1 {
                commit::label(connection, kind, id, &record, number)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_commit_is_synced_before_it_returns() {
        let folder = tempfile::tempdir().unwrap();
        let connection = open_writer(Some(&folder.path().join("data.db"))).unwrap();
        let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        let synchronous: i64 = connection.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap();
        let full = 2;
        assert_eq!((mode.as_str(), synchronous), ("wal", full));
    }
}
