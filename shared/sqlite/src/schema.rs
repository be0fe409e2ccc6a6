//! Opening a database: its settings, its schema and the versions of it.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::error::OpenError;

/// Marks the file as Tickover's, for this program and for tools such as `file`: "tick".
const APPLICATION_ID: i64 = 0x7469_636b;
/// The version of the schema: the number of migrations.
const VERSION: i64 = 1;
/// Each brings the schema from the version before it to the next one.
const MIGRATIONS: [(i64, &str); 1] = [(1, include_str!("schema/1.sql"))];
/// How long a reader waits while the file is being recovered or truncated.
const BUSY: Duration = Duration::from_secs(5);
/// Statements that a connection keeps prepared: more than there are.
const STATEMENTS: usize = 64;

/// The connection that writes. Makes the schema, or brings it up to date.
pub(crate) fn open_writer(path: Option<&Path>) -> Result<Connection, OpenError> {
    let mut connection = match path {
        Some(path) => Connection::open_with_flags(path, flags() | OpenFlags::SQLITE_OPEN_CREATE)?,
        None => Connection::open_in_memory()?,
    };
    configure(&connection)?;
    if let Some(path) = path {
        check(&connection, path)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        // The writer has its own way: see `checkpoint`.
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    }
    migrate(&mut connection)?;
    Ok(connection)
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

/// Refuses a file that isn't Tickover's, before anything is written to it.
fn check(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let path = path.to_owned();
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let id = match number("application_id") {
        Ok(id) => id,
        Err(source) => return Err(OpenError::Damaged { path, source }),
    };
    let version = number("user_version")?;
    if id == APPLICATION_ID {
        if version > VERSION {
            return Err(OpenError::Newer { path, found: version, known: VERSION });
        }
        return Ok(());
    }
    let tables: i64 =
        connection
            .query_row("SELECT count(*) FROM sqlite_schema WHERE type = 'table'", [], |row| row.get(0))?;
    if tables == 0 && id == 0 {
        return Ok(());
    }
    // The engine that early versions used keeps the names of its tables in one of this name.
    let obsolete: i64 = connection.query_row(
        "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = '_tables'",
        [],
        |row| row.get(0),
    )?;
    Err(if obsolete > 0 { OpenError::Obsolete { path } } else { OpenError::Foreign { path } })
}

/// Runs the migrations that this file hasn't seen, all or none of them.
fn migrate(connection: &mut Connection) -> Result<(), rusqlite::Error> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for (_, migration) in MIGRATIONS.iter().filter(|(of, _)| *of > version) {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
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
