//! Cursors of stores that know the position of each record in a listing.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use tickover_core::id::RecordId;
use tickover_core::time::Timestamp;

use crate::ports::StoreError;

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
