//! Pages of positions, and the cursors between them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use tickover_core::id::RecordId;
use tickover_core::time::Timestamp;

use crate::ports::{Page, StoreError};

/// A record's position in a listing; positions are ordered as the listing is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Place {
    pub(super) at: Timestamp,
    pub(super) record: RecordId,
}

/// The direction of a listing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Ascending,
    Descending,
}

#[derive(Serialize, Deserialize)]
struct Cursor {
    of: String,
    behind: Place,
}

/// The positions after the cursor, at most `limit`. A cursor is valid only for the listing of its name.
pub(super) fn page(
    mut places: Vec<Place>,
    listing: &str,
    order: Order,
    limit: usize,
    cursor: Option<&str>,
) -> Result<Page<RecordId>, StoreError> {
    let behind = cursor.map(|cursor| decode(listing, cursor)).transpose()?;
    places.retain(|place| match (&behind, order) {
        (None, _) => true,
        (Some(behind), Order::Ascending) => place > behind,
        (Some(behind), Order::Descending) => place < behind,
    });
    places.sort_unstable();
    if order == Order::Descending {
        places.reverse();
    }
    let is_last = places.len() <= limit;
    places.truncate(limit);
    let next = if is_last { None } else { places.last().and_then(|last| encode(listing, last)) };
    Ok(Page { items: places.into_iter().map(|place| place.record).collect(), next })
}

fn encode(listing: &str, last: &Place) -> Option<String> {
    let cursor = Cursor { of: listing.to_owned(), behind: last.clone() };
    Some(URL_SAFE_NO_PAD.encode(serde_json::to_vec(&cursor).ok()?))
}

fn decode(listing: &str, cursor: &str) -> Result<Place, StoreError> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| StoreError::BadCursor)?;
    let cursor: Cursor = serde_json::from_slice(&bytes).map_err(|_| StoreError::BadCursor)?;
    if cursor.of == listing { Ok(cursor.behind) } else { Err(StoreError::BadCursor) }
}
