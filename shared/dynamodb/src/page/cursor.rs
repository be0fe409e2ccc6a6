//! Where a listing continues: opaque to callers, but checked like any input from outside.

use aws_sdk_dynamodb::types::AttributeValue;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tickover_service::ports::StoreError;

use crate::attribute::{DUE_AT, DUE_SHARD, PK, SK};
use crate::item::{Item, number, shard_value, string};
use crate::key::Key;
use crate::page::list::Position;

/// The longest partition key of Tickover, with a margin.
const PK_MAX: usize = 256;

/// A query or scan over items, whose position is the last item's key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Walk {
    Due { shard: u16 },
    Table,
}

/// The position after the last entry of a walk's page.
#[derive(Debug, Serialize, Deserialize)]
struct Step {
    pk: String,
    sk: String,
    /// The sort key in the index, in milliseconds; absent for a walk over the table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<i64>,
}

/// The content of a cursor: the name of its listing, and the position in it.
#[derive(Serialize, Deserialize)]
struct Cursor<P> {
    of: String,
    behind: P,
}

/// The cursor after this entry.
pub(crate) fn encode(walk: Walk, entry: &Item) -> Option<String> {
    let at = match walk {
        Walk::Due { .. } => Some(number(entry, DUE_AT)?),
        Walk::Table => None,
    };
    let behind = Step { pk: string(entry, PK)?.to_owned(), sk: string(entry, SK)?.to_owned(), at };
    pack(&name(walk), behind)
}

/// The key after which to start. The index's own part of it comes from the listing, not from the cursor.
pub(crate) fn decode(walk: Walk, cursor: &str) -> Result<Item, StoreError> {
    let Step { pk, sk, at } = unpack(&name(walk), cursor)?;
    if !is_key(&pk) || sk.is_empty() {
        return Err(StoreError::BadCursor);
    }
    let mut start = Key { pk, sk }.attributes();
    match (walk, at) {
        (Walk::Due { shard }, Some(at)) => {
            start.insert(DUE_SHARD.to_owned(), shard_value(shard));
            start.insert(DUE_AT.to_owned(), AttributeValue::N(at.to_string()));
        }
        (Walk::Table, None) => {}
        (Walk::Due { .. }, None) | (Walk::Table, Some(_)) => return Err(StoreError::BadCursor),
    }
    Ok(start)
}

/// The cursor after this position of a list.
pub(crate) fn encode_position(list: &str, behind: &Position) -> Option<String> {
    pack(list, behind)
}

/// The position in a list after which to continue.
pub(crate) fn decode_position(list: &str, cursor: &str) -> Result<Position, StoreError> {
    let place: Position = unpack(list, cursor)?;
    if is_key(&place.pk) { Ok(place) } else { Err(StoreError::BadCursor) }
}

fn name(walk: Walk) -> String {
    match walk {
        Walk::Due { shard } => format!("due/{shard}"),
        Walk::Table => "all".to_owned(),
    }
}

fn is_key(pk: &str) -> bool {
    (1..=PK_MAX).contains(&pk.len())
}

fn pack<P: Serialize>(of: &str, behind: P) -> Option<String> {
    let cursor = Cursor { of: of.to_owned(), behind };
    Some(URL_SAFE_NO_PAD.encode(serde_json::to_vec(&cursor).ok()?))
}

fn unpack<P: DeserializeOwned>(of: &str, cursor: &str) -> Result<P, StoreError> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| StoreError::BadCursor)?;
    let cursor: Cursor<P> = serde_json::from_slice(&bytes).map_err(|_| StoreError::BadCursor)?;
    if cursor.of == of { Ok(cursor.behind) } else { Err(StoreError::BadCursor) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARD: Walk = Walk::Due { shard: 3 };

    fn last() -> Item {
        let mut item = Key { pk: "task#a".into(), sk: "task".into() }.attributes();
        item.insert(DUE_SHARD.to_owned(), shard_value(3));
        item.insert(DUE_AT.to_owned(), AttributeValue::N("1700".into()));
        item
    }

    #[test]
    fn a_cursor_is_the_key_it_was_made_of() {
        assert_eq!(decode(SHARD, &encode(SHARD, &last()).unwrap()).unwrap(), last());
        assert_eq!(decode(Walk::Table, &encode(Walk::Table, &last()).unwrap()).unwrap().len(), 2);
    }

    #[test]
    fn a_lists_cursor_is_one_position_for_all_its_keys_and_valid_for_that_list_only() {
        let place = Position { at: 1_700, pk: "exec#order-7".into() };
        let cursor = encode_position("wf#checkout", &place).unwrap();
        assert_eq!(decode_position("wf#checkout", &cursor).unwrap(), place);
        assert!(matches!(decode_position("wf#refund", &cursor), Err(StoreError::BadCursor)));
        assert!(matches!(decode(Walk::Table, &cursor), Err(StoreError::BadCursor)));
        let nobody = encode_position("dead", &Position { at: 1_700, pk: String::new() }).unwrap();
        assert!(matches!(decode_position("dead", &nobody), Err(StoreError::BadCursor)));
        assert!(cursor.len() < 100, "{cursor}");
    }

    #[test]
    fn a_cursor_that_no_listing_returned_is_refused() {
        let live = encode(SHARD, &last()).unwrap();
        let nameless = URL_SAFE_NO_PAD.encode(r#"{"of":"all","behind":{"pk":"","sk":"task"}}"#);
        let instant = URL_SAFE_NO_PAD.encode(r#"{"of":"all","behind":{"pk":"a","sk":"task","at":1}}"#);
        for (walk, cursor) in [
            (Walk::Table, ""),
            (Walk::Table, "no cursor"),
            (Walk::Table, "e30"),
            (Walk::Table, &live),
            (Walk::Due { shard: 4 }, &live),
            (Walk::Table, &nameless),
            (Walk::Table, &instant),
        ] {
            assert!(matches!(decode(walk, cursor), Err(StoreError::BadCursor)), "{cursor}");
        }
    }
}
