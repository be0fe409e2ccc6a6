use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tickover_core::duration::Millis;
use tickover_core::id::{
    EVENT_ID_MAX, EXECUTION_ID_MAX, ExecutionId, Fingerprint, ID_MAX, Nonce, OperationId, TaskId,
    WORKFLOW_MAX, WorkflowName,
};
use tickover_core::limits::CONTROL_RECORD_BYTES;
use tickover_core::operation::{Action, Counts, HowEnded, NewOperation, Target};
use tickover_core::payload::{BlobRef, Json, Payload};
use tickover_core::time::Timestamp;

use super::*;
use crate::attribute::{DUE_AT, DUE_KIND, DUE_SHARD, PK, TTL};
use crate::item::seconds;
use crate::item::tests::item_bytes;
use crate::key::Key;
use crate::page::cursor::{self, Walk};
use crate::page::list::Position;

/// As many digits as an instant has for the next centuries.
const NOW: Timestamp = Timestamp::from_millis(1_999_999_999_999);

fn started(id: &str, details: Payload) -> Operation {
    let new = NewOperation {
        id: OperationId::parse(id).unwrap(),
        fingerprint: Fingerprint::from_bytes([0xff; 16]),
        action: Action::SendEvent,
        target: Target::Executions,
        dry_run: true,
        details,
        by: None,
    };
    Operation::new(new, None, Nonce::from_bytes([0xff; 8]), NOW, 1_000)
}

fn small() -> Operation {
    started("o", Payload::Inline(Json::parse(r#"{"a":1.50}"#).unwrap()))
}

#[test]
fn an_item_is_read_back_as_it_was_written() {
    let first = small();
    let page = Counts { matched: 3, changed: 1, unchanged: 1, refused: [("a".to_owned(), 1)].into() };
    let second = first.note_page(0, page.clone(), Some("x".to_owned()), NOW).unwrap();
    let done = second.note_page(1, page, None, NOW).unwrap();
    let failed = first.ended(HowEnded::Failed { message: "no \"list\"".to_owned() }, NOW).unwrap();
    let at = BlobRef { id: tickover_core::id::BlobId::from_bytes([3; 16]), bytes: 9_000, expires_at: NOW };
    for record in [first, second, done, failed, started("p", Payload::Blob(at))] {
        assert_eq!(to_operation(of_operation(&record).unwrap()).unwrap(), record);
    }
}

#[test]
fn it_is_due_and_kept_until_its_end_and_then_expires() {
    let item = of_operation(&small()).unwrap();
    assert!([DUE_AT, DUE_KIND, DUE_SHARD, LIST_KEY, LIST_AT].iter().all(|name| item.contains_key(*name)));
    assert!(!item.contains_key(TTL));
    let stopped = small().ended(HowEnded::Stopped, NOW).unwrap();
    let item = of_operation(&stopped).unwrap();
    assert!(![DUE_AT, DUE_KIND, DUE_SHARD].iter().any(|name| item.contains_key(*name)));
    assert_eq!(item[TTL], seconds(NOW.plus(Millis::from_secs(7 * 86_400))));
    // It stays in its place.
    assert_eq!(item[LIST_AT], millis(NOW));
}

#[test]
fn another_format_and_another_record_are_refused() {
    let mut newer = of_operation(&small()).unwrap();
    newer.insert("v".to_owned(), AttributeValue::N("2".to_owned()));
    let Err(StoreError::Corrupt { reason }) = to_operation(newer) else { panic!("it was read") };
    assert_eq!(reason, "operation o is stored in format 2, where this build reads 1");
    let mut other = of_operation(&small()).unwrap();
    other.insert(PK.to_owned(), AttributeValue::S("cron#o".to_owned()));
    assert!(matches!(to_operation(other), Err(StoreError::Corrupt { .. })));
}

/// The longest cursor with which a page of tasks or executions can end.
fn longest_cursor() -> String {
    let longest = "i".repeat(ID_MAX);
    let mut entry = Key::of(&TaskId::parse(longest).unwrap().into()).attributes();
    entry.insert(DUE_AT.to_owned(), millis(NOW));
    let live = cursor::encode(Walk::Due { shard: 1_000 }, &entry).unwrap();
    // The service wraps the cursors of tasks: it reads several listings one after the other.
    let live = URL_SAFE_NO_PAD.encode(format!("{{\"part\":1000,\"at\":{live:?}}}"));
    let longest = "e".repeat(EXECUTION_ID_MAX);
    let pk = Key::execution(&ExecutionId::parse(longest).unwrap()).pk;
    let workflow = WorkflowName::parse("w".repeat(WORKFLOW_MAX)).unwrap();
    let list = List::Executions(&workflow);
    let started = cursor::encode_position(&list.name(), &Position { at: NOW.as_millis(), pk }).unwrap();
    if live.len() > started.len() { live } else { started }
}

#[test]
fn the_largest_item_is_one_write_unit() {
    let at =
        BlobRef { id: tickover_core::id::BlobId::from_bytes([0xff; 16]), bytes: u32::MAX, expires_at: NOW };
    for details in [Payload::Blob(at), Payload::Inline(Json::string(&"x".repeat(198)))] {
        let first = started(&"o".repeat(EVENT_ID_MAX), details);
        let refused: BTreeMap<String, u64> = [
            "already_terminal",
            "invalid_request",
            "limit_exceeded",
            "not_found",
            "not_terminal",
            "unknown_step",
        ]
        .map(|code| (code.to_owned(), 1_000_000))
        .into();
        let counts = Counts { matched: 9_000_000, changed: 9_000_000, unchanged: 9_000_000, refused };
        let page = first.note_page(0, counts, Some(longest_cursor()), NOW).unwrap();
        let stopped =
            Operation { pages: 99_999, version: 99_999, ..page }.ended(HowEnded::Stopped, NOW).unwrap();
        let bytes = item_bytes(&of_operation(&stopped).unwrap());
        assert!(bytes <= CONTROL_RECORD_BYTES, "{bytes} bytes");
    }
}
