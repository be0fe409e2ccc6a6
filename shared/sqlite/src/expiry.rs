//! Deleting what is past its expiry.

use rusqlite::{Connection, params};
use tickover_core::time::Timestamp;

use crate::error::Failure;

/// Rows of each table that one job deletes: a few milliseconds, in which other commits wait.
pub(crate) const BATCH: usize = 500;

/// The statements that delete a batch of expired rows, earliest first.
const DELETES: [&str; 4] = [
    "DELETE FROM record WHERE row IN
         (SELECT row FROM record WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)",
    "DELETE FROM blob WHERE row IN (SELECT row FROM blob WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)",
    "DELETE FROM segment WHERE row IN
         (SELECT row FROM segment WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)",
    "DELETE FROM join_item WHERE (execution, incarnation, run, label, item) IN
         (SELECT execution, incarnation, run, label, item FROM join_item
          WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)",
];

/// Deletes a batch of what has expired by that instant: how many rows.
pub(crate) fn delete_batch(connection: &Connection, now: Timestamp) -> Result<usize, Failure> {
    let mut deleted = 0;
    for delete in DELETES {
        deleted += connection.prepare_cached(delete)?.execute(params![now.as_millis(), BATCH])?;
    }
    Ok(deleted)
}
