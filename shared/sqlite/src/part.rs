//! What lies beside a record: payloads, segments of journals, and the join items of fan-outs.

use rusqlite::{Connection, OptionalExtension as _, params};
use tickover_core::execution::journal::{Segment, SegmentKey};
use tickover_core::execution::{Parent, Slot};
use tickover_core::id::{BlobId, ExecutionId, Incarnation, Nonce};
use tickover_core::payload::{BlobRef, Json};
use tickover_core::time::Timestamp;
use tickover_service::ports::StoreError;

use crate::error::Failure;
use crate::record::{bits, body, corrupt};

/// Bytes that a probe of the disk writes: as much as a large commit.
const PROBE_BYTES: usize = 64 * 1_024;

/// A part that is to be written.
#[derive(Debug)]
pub(crate) enum NewItem {
    Blob { id: BlobId, expires_at: Timestamp, body: String },
    Segment { of: ExecutionId, key: SegmentKey, expires_at: Timestamp, body: String },
}

impl NewItem {
    pub(crate) fn blob(at: &BlobRef, body: &Json) -> Self {
        Self::Blob { id: at.id, expires_at: at.expires_at, body: body.as_str().to_owned() }
    }

    pub(crate) fn segment(
        of: &ExecutionId,
        key: &SegmentKey,
        segment: &Segment,
        expires_at: Timestamp,
    ) -> Result<Self, StoreError> {
        Ok(Self::Segment { of: of.clone(), key: *key, expires_at, body: body(segment)? })
    }

    pub(crate) fn run(&self, connection: &Connection) -> Result<(), Failure> {
        match self {
            Self::Blob { id, expires_at, body } => {
                let mut statement = connection.prepare_cached(
                    "INSERT OR REPLACE INTO blob (id, expires_at, body) VALUES (?1, ?2, ?3)",
                )?;
                statement.execute(params![id.as_bytes(), expires_at.as_millis(), body])?;
            }
            Self::Segment { of, key, expires_at, body } => {
                let mut statement = connection.prepare_cached(
                    "INSERT OR REPLACE INTO segment (execution, incarnation, run, number, mark, expires_at, body)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                )?;
                statement.execute(params![
                    of.as_str(),
                    bits(*key.incarnation.as_bytes()),
                    key.run,
                    key.number,
                    bits(*key.mark.as_bytes()),
                    expires_at.as_millis(),
                    body,
                ])?;
            }
        }
        Ok(())
    }
}

/// A slot of a join item that is to be marked.
#[derive(Debug)]
pub(crate) struct Mark {
    pub(crate) parent: Parent,
    pub(crate) slot: Slot,
    pub(crate) expires_at: Timestamp,
}

impl Mark {
    /// Marks the slot, and counts those that are marked now.
    pub(crate) fn run(&self, connection: &Connection) -> Result<u16, Failure> {
        let Self { parent, slot, expires_at } = self;
        let incarnation = bits(*parent.incarnation.as_bytes());
        let label = bits(*slot.label.as_bytes());
        let mut statement = connection.prepare_cached(
            "SELECT marked FROM join_item
             WHERE execution = ?1 AND incarnation = ?2 AND run = ?3 AND label = ?4 AND item = ?5",
        )?;
        let key = params![parent.execution.as_str(), incarnation, parent.run, label, slot.item];
        let mut marked: Vec<u8> = statement.query_row(key, |row| row.get(0)).optional()?.unwrap_or_default();
        let (byte, bit) = (usize::from(slot.place / 8), slot.place % 8);
        marked.resize(marked.len().max(byte + 1), 0);
        marked[byte] |= 1 << bit;
        let mut statement = connection.prepare_cached(
            "INSERT OR REPLACE INTO join_item (execution, incarnation, run, label, item, marked, expires_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        let execution = parent.execution.as_str();
        let expires_at = expires_at.as_millis();
        statement.execute(params![
            execution,
            incarnation,
            parent.run,
            label,
            slot.item,
            marked,
            expires_at
        ])?;
        let count: u32 = marked.iter().map(|byte| byte.count_ones()).sum();
        Ok(u16::try_from(count).unwrap_or(u16::MAX))
    }
}

/// Writes a payload under a key that no payload has. The next deletion of what has expired deletes it.
pub(crate) fn probe(connection: &Connection) -> Result<usize, rusqlite::Error> {
    let mut statement = connection
        .prepare_cached("INSERT OR REPLACE INTO blob (id, expires_at, body) VALUES (x'', 0, ?1)")?;
    statement.execute([format!("\"{}\"", " ".repeat(PROBE_BYTES))])
}

pub(crate) fn blob(connection: &Connection, id: &BlobId) -> Result<Option<Json>, Failure> {
    let mut statement = connection.prepare_cached("SELECT body FROM blob WHERE id = ?1")?;
    let body: Option<String> = statement.query_row([id.as_bytes()], |row| row.get(0)).optional()?;
    let read = |body: String| Json::parse(body).ok_or_else(|| corrupt(format!("payload {id} isn't JSON")));
    Ok(body.map(read).transpose()?)
}

/// All segments of a run with numbers above `after`, by number.
pub(crate) fn segments(
    connection: &Connection,
    id: &ExecutionId,
    incarnation: Incarnation,
    run: u32,
    after: u32,
) -> Result<Vec<(SegmentKey, Segment)>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT number, mark, body FROM segment WHERE execution = ?1 AND incarnation = ?2 AND run = ?3
         AND number > ?4 ORDER BY number, mark",
    )?;
    let mut rows = statement.query(params![id.as_str(), bits(*incarnation.as_bytes()), run, after])?;
    let mut segments = vec![];
    while let Some(row) = rows.next()? {
        let mark = Nonce::from_bytes(row.get::<_, i64>(1)?.to_be_bytes());
        let key = SegmentKey { incarnation, run, number: row.get(0)?, mark };
        let body = row.get_ref(2)?.as_str().map_err(rusqlite::Error::from)?;
        let segment = serde_json::from_str(body).map_err(|_| {
            corrupt(format!("segment {} of execution {id} isn't of its own format", key.number))
        })?;
        segments.push((key, segment));
    }
    Ok(segments)
}
