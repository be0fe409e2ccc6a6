//! The mark in a data file that a process has it open: a table that is there from the start to the orderly end.
//!
//! A file that has it and no log beside it was left by a process that didn't stop in order, and then parted from its log: by
//! a copy or a move of one file alone. Commits that were acknowledged may be missing, and nothing else would show that.

use rusqlite::{Connection, Error};

const TABLE: &str = "open_mark";

/// Whether the file has the mark.
pub(crate) fn is_set(connection: &Connection) -> Result<bool, Error> {
    connection.table_exists(None, TABLE)
}

/// Sets the mark in the file itself: in the log alone, it would be lost with the log.
pub(crate) fn set(connection: &Connection) -> Result<(), Error> {
    connection.execute_batch(&format!("CREATE TABLE IF NOT EXISTS {TABLE} (open INTEGER) STRICT"))?;
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}

/// Removes the mark, before an orderly end.
pub(crate) fn clear(connection: &Connection) -> Result<(), Error> {
    connection.execute_batch(&format!("DROP TABLE IF EXISTS {TABLE}"))
}
