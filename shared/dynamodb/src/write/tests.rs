use tickover_core::due::DueKind;
use tickover_core::id::Nonce;

use super::*;
use crate::expression::Action;
use crate::item::tests::pending;

fn parts(write: &Write) -> (String, String) {
    let Statement { action, condition, .. } = statement(write).unwrap();
    match action {
        Action::Put(_) => (String::new(), condition),
        Action::Update { expression, .. } => (expression, condition),
    }
}

fn update(before: &Task, after: Task, latest: Option<Timestamp>) -> Write {
    let (before, after) = (Box::new(before.clone()), Box::new(after));
    Write::UpdateTask { before, after, due_no_later_than: latest }
}

#[test]
fn an_update_names_what_changed_and_what_it_was_decided_on() {
    let before = pending();
    let after = Task { version: 2, nonce: Nonce::from_bytes([9; 8]), ..before.clone() };
    let (expression, condition) = parts(&update(&before, after.clone(), None));
    assert_eq!(expression, "SET #non = :non, #ver = :ver");
    assert_eq!(condition, "#inc = :incarnation AND #v = :format AND #ver = :before");

    let (_, condition) = parts(&update(&before, after, Some(Timestamp::EPOCH)));
    assert!(condition.ends_with(" AND #ver = :before AND #due_at <= :latest"), "{condition}");
}

#[test]
fn a_place_in_the_index_is_written_whole_or_not_at_all() {
    let before = pending();
    let due = before.due.map(|due| Due { kind: DueKind::Recheck, ..due });
    let (expression, _) = parts(&update(&before, Task { due, ..before.clone() }, None));
    assert_eq!(expression, "SET #due_at = :due_at, #due_kind = :due_kind, #due_shard = :due_shard");
    let (expression, _) = parts(&update(&before, Task { due: None, ..before.clone() }, None));
    assert_eq!(expression, "REMOVE #due_at, #due_kind, #due_shard");
}

#[test]
fn a_re_arming_touches_neither_version_nor_nonce() {
    let task = Box::new(pending());
    let to = Due { at: Timestamp::from_millis(9), kind: DueKind::Backstop, shard: 0 };
    let (expression, condition) = parts(&Write::Rearm { task: task.clone(), to });
    assert_eq!(expression, "SET #due_at = :due_at, #due_kind = :due_kind");
    assert_eq!(
        condition,
        "#inc = :incarnation AND #v = :format AND #ver = :version \
         AND #due_at = :old_at AND #due_kind = :old_kind"
    );
    let nowhere = Write::Rearm { task: Box::new(Task { due: None, ..*task }), to };
    assert!(matches!(statement(&nowhere), Err(StoreError::Conflict { current: None })));
}

#[test]
fn creation_looks_at_the_record_s_own_end() {
    let write = Write::CreateTask { task: Box::new(pending()), now: Timestamp::EPOCH };
    assert_eq!(parts(&write).1, "attribute_not_exists(#pk) OR #st.#e.#x <= :now");
}
