//! Pages of positions.

use tickover_core::id::RecordId;

use crate::cursor::{Position, decode, encode};
use crate::ports::{Page, StoreError};

/// Which way a listing goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Ascending,
    Descending,
}

/// The positions behind the cursor, at most `limit`. A cursor is good for the listing of the same name only.
pub(super) fn page(
    mut positions: Vec<Position>,
    listing: &str,
    order: Order,
    limit: usize,
    cursor: Option<&str>,
) -> Result<Page<RecordId>, StoreError> {
    let behind = cursor.map(|cursor| decode(listing, cursor)).transpose()?;
    positions.retain(|position| match (&behind, order) {
        (None, _) => true,
        (Some(behind), Order::Ascending) => position > behind,
        (Some(behind), Order::Descending) => position < behind,
    });
    positions.sort_unstable();
    if order == Order::Descending {
        positions.reverse();
    }
    let is_last = positions.len() <= limit;
    positions.truncate(limit);
    let next = if is_last { None } else { positions.last().map(|last| encode(listing, last)) };
    Ok(Page { items: positions.into_iter().map(|position| position.record).collect(), next })
}
