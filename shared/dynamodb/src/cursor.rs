//! Where a listing goes on: opaque to callers, but checked like anything that comes from outside.

use aws_sdk_dynamodb::types::AttributeValue;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use tickover_core::id::WorkflowName;
use tickover_service::ports::{Listing, StoreError};

use crate::attribute::{DEAD_LIST, DUE_AT, DUE_SHARD, LIST_AT, LIST_KEY, PK, RECURRENCE_LIST, SK};
use crate::execution::list_of;
use crate::item::{Item, number, shard_value, string};
use crate::key::Key;

/// Longest partition key of ours, with room to spare.
const PK_MAX: usize = 256;

/// What a cursor is a place in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum List<'a> {
    /// Tasks, or what is due of any kind.
    Tasks(Listing),
    /// The executions of a workflow.
    Executions(&'a WorkflowName),
    /// Recurring schedules.
    Recurrences,
}

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
pub(crate) fn encode(list: List<'_>, entry: &Item) -> Option<String> {
    let at = match list {
        List::Tasks(Listing::Live { .. }) => Some(number(entry, DUE_AT)?),
        List::Tasks(Listing::Dead) | List::Executions(_) | List::Recurrences => Some(number(entry, LIST_AT)?),
        List::Tasks(Listing::All) => None,
    };
    let place =
        Place { of: name(list), pk: string(entry, PK)?.to_owned(), sk: string(entry, SK)?.to_owned(), at };
    Some(URL_SAFE_NO_PAD.encode(serde_json::to_vec(&place).ok()?))
}

/// The key to start behind. The index's own part of it is made from the listing, not taken from the cursor.
pub(crate) fn decode(list: List<'_>, cursor: &str) -> Result<Item, StoreError> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| StoreError::BadCursor)?;
    let place: Place = serde_json::from_slice(&bytes).map_err(|_| StoreError::BadCursor)?;
    if place.of != name(list) || place.pk.is_empty() || place.pk.len() > PK_MAX || place.sk.is_empty() {
        return Err(StoreError::BadCursor);
    }
    let mut start = Key { pk: place.pk, sk: place.sk }.attributes();
    let index = match (list, place.at) {
        (List::Tasks(Listing::Live { shard }), Some(at)) => Some((DUE_SHARD, shard_value(shard), DUE_AT, at)),
        (List::Tasks(Listing::Dead), Some(at)) => {
            Some((LIST_KEY, AttributeValue::S(DEAD_LIST.to_owned()), LIST_AT, at))
        }
        (List::Executions(workflow), Some(at)) => {
            Some((LIST_KEY, AttributeValue::S(list_of(workflow)), LIST_AT, at))
        }
        (List::Recurrences, Some(at)) => {
            Some((LIST_KEY, AttributeValue::S(RECURRENCE_LIST.to_owned()), LIST_AT, at))
        }
        (List::Tasks(Listing::All), None) => None,
        (
            List::Tasks(Listing::Live { .. } | Listing::Dead) | List::Executions(_) | List::Recurrences,
            None,
        )
        | (List::Tasks(Listing::All), Some(_)) => return Err(StoreError::BadCursor),
    };
    if let Some((hash, value, range, at)) = index {
        start.insert(hash.to_owned(), value);
        start.insert(range.to_owned(), AttributeValue::N(at.to_string()));
    }
    Ok(start)
}

fn name(list: List<'_>) -> String {
    match list {
        List::Tasks(Listing::Live { shard }) => format!("live/{shard}"),
        List::Tasks(Listing::Dead) => "dead".to_owned(),
        List::Tasks(Listing::All) => "all".to_owned(),
        List::Executions(workflow) => list_of(workflow),
        List::Recurrences => RECURRENCE_LIST.to_owned(),
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
        let live = List::Tasks(Listing::Live { shard: 3 });
        assert_eq!(decode(live, &encode(live, &last()).unwrap()).unwrap(), last());
        let all = List::Tasks(Listing::All);
        assert_eq!(decode(all, &encode(all, &last()).unwrap()).unwrap().len(), 2);

        let checkout = WorkflowName::parse("checkout").unwrap();
        let mut execution = Key { pk: "exec#a".into(), sk: "exec".into() }.attributes();
        execution.insert(LIST_KEY.to_owned(), AttributeValue::S("wf#checkout".into()));
        execution.insert(LIST_AT.to_owned(), AttributeValue::N("1700".into()));
        let cursor = encode(List::Executions(&checkout), &execution).unwrap();
        assert_eq!(decode(List::Executions(&checkout), &cursor).unwrap(), execution);
        let other = WorkflowName::parse("refund").unwrap();
        assert!(matches!(decode(List::Executions(&other), &cursor), Err(StoreError::BadCursor)));
    }

    #[test]
    fn what_no_listing_gave_out_is_refused() {
        let live = encode(List::Tasks(Listing::Live { shard: 3 }), &last()).unwrap();
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
            assert!(matches!(decode(List::Tasks(listing), cursor), Err(StoreError::BadCursor)), "{cursor}");
        }
    }
}
