//! Cursors: of stores that know the position of each record in a listing, and of callers' questions.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use tickover_core::error::Reject;
use tickover_core::id::{Fingerprint, RecordId, TaskId};
use tickover_core::time::Timestamp;

use crate::ports::StoreError;
use crate::tasks::schedule::digest;

/// A record's position in a listing. Positions are ordered as listings are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    pub at: Timestamp,
    pub record: RecordId,
}

#[derive(Serialize, Deserialize)]
struct Cursor {
    of: String,
    behind: Position,
}

/// The cursor behind a position. It is good for the listing of this name only.
pub fn encode(listing: &str, last: &Position) -> String {
    let cursor = Cursor { of: listing.to_owned(), behind: last.clone() };
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&cursor).unwrap_or_default())
}

/// The position that a cursor stands behind; [`StoreError::BadCursor`] if it is another listing's, or no cursor.
pub fn decode(listing: &str, cursor: &str) -> Result<Position, StoreError> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| StoreError::BadCursor)?;
    let cursor: Cursor = serde_json::from_slice(&bytes).map_err(|_| StoreError::BadCursor)?;
    if cursor.of == listing { Ok(cursor.behind) } else { Err(StoreError::BadCursor) }
}

/// The name of the listing of a shard's live tasks. They are sorted by their ids alone.
pub fn live(shard: u16) -> String {
    format!("live/{shard}")
}

/// The position of a live task in the listing of its shard.
pub fn live_position(id: TaskId) -> Position {
    Position { at: Timestamp::EPOCH, record: id.into() }
}

/// A cursor as callers get it: where a listing continues, and the question that it answers. With another one, the
/// records before it would be left out for no reason.
#[derive(Serialize, Deserialize)]
struct Asked {
    of: Fingerprint,
    at: String,
}

/// The caller's cursor for a question that continues here.
pub(crate) fn asked(question: &impl Serialize, at: String) -> String {
    let cursor = Asked { of: fingerprint(question), at };
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&cursor).unwrap_or_default())
}

/// Where the listing continues, by a caller's cursor.
pub(crate) fn continued(question: &impl Serialize, cursor: &str) -> Result<String, Reject> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok();
    let asked: Option<Asked> = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let asked = asked.filter(|asked| asked.of == fingerprint(question));
    asked.map(|asked| asked.at).ok_or_else(|| {
        Reject::field("cursor", "expected the cursor of an earlier answer to the same question")
    })
}

fn fingerprint(question: &impl Serialize) -> Fingerprint {
    digest(&[&serde_json::to_string(question).unwrap_or_default()])
}
