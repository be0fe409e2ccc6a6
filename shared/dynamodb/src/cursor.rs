//! Where a listing goes on: opaque to callers, but checked like anything that comes from outside.

use aws_sdk_dynamodb::types::AttributeValue;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use tickover_service::ports::{Listing, StoreError};

use crate::attribute::{DEAD_LIST, DUE_AT, DUE_SHARD, LIST_AT, LIST_KEY, PK, SK};
use crate::item::{Item, number, shard_value, string};
use crate::key::Key;

/// Longest partition key of ours, with room to spare.
const PK_MAX: usize = 256;

/// The place behind the last entry of a page.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    /// Which listing it is a place of.
    of: String,
    pk: String,
    sk: String,
    /// The sort key in the index, in milliseconds; absent for a walk over the table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<i64>,
}

/// The cursor behind this entry.
pub(crate) fn encode(listing: Listing, last: &Item) -> Option<String> {
    let at = match listing {
        Listing::Live { .. } => Some(number(last, DUE_AT)?),
        Listing::Dead => Some(number(last, LIST_AT)?),
        Listing::All => None,
    };
    let place =
        Place { of: name(listing), pk: string(last, PK)?.to_owned(), sk: string(last, SK)?.to_owned(), at };
    Some(URL_SAFE_NO_PAD.encode(serde_json::to_vec(&place).ok()?))
}

/// The key to start behind. The index's own part of it is made from the listing, not taken from the cursor.
pub(crate) fn decode(listing: Listing, cursor: &str) -> Result<Item, StoreError> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| StoreError::BadCursor)?;
    let place: Place = serde_json::from_slice(&bytes).map_err(|_| StoreError::BadCursor)?;
    if place.of != name(listing) || place.pk.is_empty() || place.pk.len() > PK_MAX || place.sk.is_empty() {
        return Err(StoreError::BadCursor);
    }
    let mut start = Key { pk: place.pk, sk: place.sk }.attributes();
    let index = match (listing, place.at) {
        (Listing::Live { shard }, Some(at)) => Some((DUE_SHARD, shard_value(shard), DUE_AT, at)),
        (Listing::Dead, Some(at)) => Some((LIST_KEY, AttributeValue::S(DEAD_LIST.to_owned()), LIST_AT, at)),
        (Listing::All, None) => None,
        (Listing::Live { .. } | Listing::Dead, None) | (Listing::All, Some(_)) => {
            return Err(StoreError::BadCursor);
        }
    };
    if let Some((hash, value, range, at)) = index {
        start.insert(hash.to_owned(), value);
        start.insert(range.to_owned(), AttributeValue::N(at.to_string()));
    }
    Ok(start)
}

fn name(listing: Listing) -> String {
    match listing {
        Listing::Live { shard } => format!("live/{shard}"),
        Listing::Dead => "dead".to_owned(),
        Listing::All => "all".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last() -> Item {
        let mut item = Key { pk: "task#a".into(), sk: "task".into() }.attributes();
        item.insert(DUE_SHARD.to_owned(), shard_value(3));
        item.insert(DUE_AT.to_owned(), AttributeValue::N("1700".into()));
        item
    }

    #[test]
    fn a_cursor_is_the_key_it_was_made_of() {
        let cursor = encode(Listing::Live { shard: 3 }, &last()).unwrap();
        assert_eq!(decode(Listing::Live { shard: 3 }, &cursor).unwrap(), last());
        let cursor = encode(Listing::All, &last()).unwrap();
        assert_eq!(decode(Listing::All, &cursor).unwrap().len(), 2);
    }

    #[test]
    fn what_no_listing_gave_out_is_refused() {
        let live = encode(Listing::Live { shard: 3 }, &last()).unwrap();
        let nameless = URL_SAFE_NO_PAD.encode(r#"{"of":"all","pk":"","sk":"task"}"#);
        let instant = URL_SAFE_NO_PAD.encode(r#"{"of":"all","pk":"a","sk":"task","at":1}"#);
        for (listing, cursor) in [
            (Listing::All, ""),
            (Listing::All, "no cursor"),
            (Listing::All, "e30"),
            (Listing::All, &live),
            (Listing::Live { shard: 4 }, &live),
            (Listing::All, &nameless),
            (Listing::All, &instant),
        ] {
            assert!(matches!(decode(listing, cursor), Err(StoreError::BadCursor)), "{cursor}");
        }
    }
}
