//! The day's history: a row for each queue and five minutes.

use rusqlite::{Connection, params};
use tickover_core::duration::Millis;
use tickover_core::id::QueueName;
use tickover_core::time::Timestamp;
use tickover_service::ports::Sample;

use crate::error::Failure;

/// Samples to be added, and before which instant older ones are deleted.
#[derive(Debug)]
pub(crate) struct Addition {
    pub(crate) samples: Vec<Sample>,
    pub(crate) keep_from: Timestamp,
}

impl Addition {
    pub(crate) fn run(&self, connection: &Connection) -> Result<(), Failure> {
        let mut add = connection.prepare_cached(
            "INSERT INTO history VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT (at, queue) DO UPDATE SET
                 completed = completed + excluded.completed, failed = failed + excluded.failed,
                 late_ms = max(late_ms, excluded.late_ms), depth = max(depth, excluded.depth),
                 oldest_ms = max(oldest_ms, excluded.oldest_ms), running = max(running, excluded.running)",
        )?;
        for Sample { at, queue, completed, failed, late, depth, oldest, running } in &self.samples {
            let number = |number: u64| number.cast_signed();
            add.execute(params![
                at.as_millis(),
                queue.as_str(),
                number(*completed),
                number(*failed),
                number(late.as_u64()),
                number(*depth),
                number(oldest.as_u64()),
                number(*running),
            ])?;
        }
        let mut delete = connection.prepare_cached("DELETE FROM history WHERE at < ?1")?;
        delete.execute([self.keep_from.as_millis()])?;
        Ok(())
    }
}

/// The samples from an instant on, of one queue or of all together.
pub(crate) fn since(
    connection: &Connection,
    from: Timestamp,
    queue: Option<&QueueName>,
) -> Result<Vec<Sample>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT at, min(queue), sum(completed), sum(failed), max(late_ms), sum(depth), max(oldest_ms), sum(running)
         FROM history WHERE at >= ?1 AND (?2 IS NULL OR queue = ?2) GROUP BY at ORDER BY at",
    )?;
    let mut rows = statement.query(params![from.as_millis(), queue.map(QueueName::as_str)])?;
    let mut samples = Vec::new();
    while let Some(row) = rows.next()? {
        let number = |column: usize| row.get::<_, i64>(column).map(i64::cast_unsigned);
        let Ok(queue) = QueueName::parse(row.get::<_, String>(1)?) else { continue };
        samples.push(Sample {
            at: Timestamp::from_millis(row.get(0)?),
            queue,
            completed: number(2)?,
            failed: number(3)?,
            late: Millis::new(number(4)?),
            depth: number(5)?,
            oldest: Millis::new(number(6)?),
            running: number(7)?,
        });
    }
    Ok(samples)
}
