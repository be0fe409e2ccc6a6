use tickover_core::decision::Condition;
use tickover_core::due::{Due, DueKind};
use tickover_core::execution::{Closed, Execution, ExecutionOutcome, ExecutionState};
use tickover_core::id::Nonce;
use tickover_core::task::Task;

use super::*;
use crate::expression::Action;
use crate::item::execution::tests::pending as execution;
use crate::item::tests::pending;

fn parts(write: &Write) -> (String, String) {
    parts_in(write, Listed::Failed)
}

fn parts_in(write: &Write, listed: Listed) -> (String, String) {
    let Statement { action, condition, .. } = statement(write, listed).unwrap();
    match action {
        Action::Put(_) | Action::Delete { .. } => (String::new(), condition),
        Action::Update { expression, .. } => (expression, condition),
    }
}

fn update(before: &Task, after: Task, latest: Option<Timestamp>) -> Write {
    let unchanged = Condition::Unchanged { due_no_later_than: latest, wakes: None };
    Write::replace(before.clone(), after, unchanged)
}

#[test]
fn an_update_names_what_changed_and_what_it_was_decided_on() {
    let before = pending();
    let after = Task { version: 2, nonce: Nonce::from_bytes([9; 8]), ..before.clone() };
    let (expression, condition) = parts(&update(&before, after.clone(), None));
    assert_eq!(expression, "SET #non = :non, #ver = :ver");
    assert_eq!(condition, "#inc = :incarnation AND #v = :format AND #ver = :before AND #non = :replaced");

    let (_, condition) = parts(&update(&before, after, Some(Timestamp::EPOCH)));
    assert!(condition.ends_with(" AND #non = :replaced AND #due_at <= :latest"), "{condition}");
}

#[test]
fn a_due_slot_is_written_as_a_whole_or_not_at_all() {
    let before = pending();
    let due = before.due.map(|due| Due { kind: DueKind::Recheck, ..due });
    let (expression, _) = parts(&update(&before, Task { due, ..before.clone() }, None));
    assert_eq!(expression, "SET #due_at = :due_at, #due_kind = :due_kind, #due_shard = :due_shard");
    let (expression, _) = parts(&update(&before, Task { due: None, ..before.clone() }, None));
    assert_eq!(expression, "REMOVE #due_at, #due_kind, #due_shard");
}

#[test]
fn a_re_arming_touches_neither_version_nor_nonce() {
    let to = Due { at: Timestamp::from_millis(9), kind: DueKind::Backstop, shard: 0 };
    let (expression, condition) = parts(&Write::Rearm { record: pending().into(), to });
    assert_eq!(expression, "SET #due_at = :due_at, #due_kind = :due_kind");
    assert_eq!(
        condition,
        "#inc = :incarnation AND #v = :format AND #ver = :version \
         AND #due_at = :old_at AND #due_kind = :old_kind"
    );
    let nowhere = Write::Rearm { record: Task { due: None, ..pending() }.into(), to };
    assert!(matches!(statement(&nowhere, Listed::Failed), Err(StoreError::Conflict { current: None })));
}

#[test]
fn creation_checks_the_records_own_expiry() {
    let write = Write::put(pending(), Condition::Free { now: Timestamp::EPOCH });
    assert_eq!(parts(&write).1, "attribute_not_exists(#pk) OR #st.#e.#x <= :now");
}

#[test]
fn an_execution_is_updated_as_a_task_is_and_its_wakes_are_left_to_others() {
    let before = execution();
    let after = Execution { version: 2, nonce: Nonce::from_bytes([9; 8]), wakes: 5, ..before.clone() };
    let update = |wakes| {
        let unchanged = Condition::Unchanged { due_no_later_than: Some(Timestamp::EPOCH), wakes };
        Write::replace(before.clone(), after.clone(), unchanged)
    };
    let (expression, condition) = parts(&update(None));
    assert_eq!(expression, "SET #non = :non, #ver = :ver REMOVE #all_key");
    let same =
        "#inc = :incarnation AND #v = :format AND #ver = :before AND #non = :replaced AND #due_at <= :latest";
    assert_eq!(condition, same);
    let (expression, condition) = parts_in(&update(Some(5)), Listed::All);
    assert_eq!(expression, "SET #all_key = :all_key, #non = :non, #ver = :ver");
    assert_eq!(condition, format!("{same} AND #wak = :wakes"));
}

#[test]
fn an_execution_stays_in_its_workflows_list_and_expires_only_when_it_has_ended() {
    let before = execution();
    let outcome = ExecutionOutcome::Cancelled { terminated: true };
    let closed = Closed { outcome, ended_at: Timestamp::EPOCH, expires_at: Timestamp::from_millis(1) };
    let closing = Execution { state: ExecutionState::Closing(closed.clone()), ..before.clone() };
    let ended = Execution { state: ExecutionState::Ended(closed), due: None, ..before.clone() };
    let update = |before: &Execution, after: &Execution| {
        parts(&Write::replace(before.clone(), after.clone(), Condition::UNCHANGED)).0
    };
    assert_eq!(update(&before, &closing), "SET #st = :st REMOVE #all_key");
    let gone = "REMOVE #all_key, #due_at, #due_kind, #due_shard";
    assert_eq!(update(&closing, &ended), format!("SET #st = :st, #ttl = :ttl {gone}"));
    let again = "SET #due_at = :due_at, #due_kind = :due_kind, #due_shard = :due_shard, #st = :st REMOVE #all_key, #ttl";
    assert_eq!(update(&ended, &before), again);
}

#[test]
fn a_wake_adds_to_the_count_of_an_open_execution() {
    let Execution { id, incarnation, .. } = execution();
    let (expression, condition) = parts(&Write::Wake { id, incarnation });
    assert_eq!(expression, "ADD #wak :one");
    assert_eq!(
        condition,
        "#inc = :incarnation AND #v = :format AND attribute_not_exists(#st.#c) AND attribute_not_exists(#st.#e)"
    );
}
