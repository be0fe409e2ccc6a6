//! What every store must do. Each case says so in its name, and runs on its own store.
//!
//! Indexes may lag behind on AWS. The cases require that they don't, as in emulators and in memory.

mod create;
mod crons;
mod executions;
mod fixture;
mod gates;
mod lists;
mod operations;
mod parts;
mod rearm;
mod together;
mod update;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;

use executions::{found, joins, journals, moved, started, updated, woken};
use fixture::World;
use tickover_service::ports::{ExecutionLists, Listed, Store, StoreError};

/// A case's test of a store to which nothing has been written. If the store doesn't conform, it panics or returns the
/// store's own error.
type Check = fn(Arc<dyn Store>) -> BoxFuture<'static, Result<(), StoreError>>;

/// One behaviour of every store.
struct Case {
    name: &'static str,
    check: Check,
}

macro_rules! cases {
    ($($module:ident::$name:ident,)*) => {
        &[$(Case { name: stringify!($name), check: |store| Box::pin($module::$name(World::new(store))) },)*]
    };
}

const CASES: &[Case] = cases![
    create::a_new_task_is_read_as_it_was_written,
    create::every_outcome_is_read_as_it_was_written,
    create::an_id_in_use_conflicts_with_its_task,
    create::creating_again_by_the_same_decision_counts_as_done,
    create::an_id_is_free_at_the_very_end_of_retention,
    update::every_step_of_a_life_is_read_as_it_was_written,
    update::a_stale_version_conflicts_with_the_current_record,
    update::a_later_task_of_the_same_id_is_left_alone,
    update::a_task_that_never_was_conflicts_with_nothing,
    update::an_update_by_the_same_decision_counts_as_done,
    update::a_repeated_write_conflicts_once_others_have_decided,
    update::an_instant_that_would_be_found_too_late_conflicts,
    update::a_due_slot_moved_by_a_tick_is_kept,
    update::a_new_due_slot_replaces_one_moved_by_a_tick,
    update::of_updates_at_once_one_wins,
    rearm::moving_a_due_slot_changes_nothing_else,
    rearm::moving_a_due_slot_again_counts_as_done,
    rearm::a_due_slot_that_has_moved_conflicts,
    rearm::a_record_with_a_later_decision_keeps_its_due_slot,
    rearm::a_record_that_has_ended_gets_no_due_slot,
    together::a_key_and_its_task_are_written_together,
    together::a_key_in_use_keeps_its_task_from_being_written,
    together::a_task_in_use_keeps_its_key_from_being_written,
    together::writing_both_again_counts_as_done_even_when_the_task_has_moved_on,
    together::an_equal_due_slot_does_not_prove_the_other_writes,
    lists::due_entries_come_in_order_and_in_pages,
    lists::records_that_have_ended_are_not_due,
    lists::failed_and_timed_out_tasks_are_dead_until_revived,
    lists::a_long_list_is_one_list_in_pages_of_any_size,
    lists::all_tasks_are_listed_and_nothing_else,
    lists::live_tasks_are_listed_by_shard,
    lists::no_change_moves_a_task_in_its_list,
    lists::an_invalid_cursor_or_one_of_another_listing_is_refused,
    parts::many_tasks_are_read_at_once_without_the_absent_ones,
    parts::a_large_payload_is_read_as_it_was_written,
    parts::the_expiry_of_a_payload_is_extended_unless_it_is_deleted,
    parts::a_queues_versions_follow_each_other,
    parts::a_queue_is_in_the_due_index_while_it_has_walks_left,
    parts::the_versions_of_the_ticks_record_follow_each_other,
    parts::queues_are_listed_by_name,
    parts::a_key_is_replaced_only_if_its_record_is_unchanged,
    parts::the_expiry_of_a_key_is_extended,
    started::a_new_execution_is_read_as_it_was_written,
    started::an_id_in_use_conflicts_with_its_execution,
    started::starting_again_by_the_same_decision_counts_as_done,
    started::an_executions_id_is_free_at_the_very_end_of_retention,
    started::a_task_and_an_execution_of_one_id_are_two_records,
    updated::every_change_of_an_execution_is_read_as_it_was_written,
    updated::a_stale_version_conflicts_with_the_current_execution,
    updated::a_later_execution_of_the_same_id_is_left_alone,
    updated::an_execution_that_never_was_conflicts_with_nothing,
    updated::a_change_by_the_same_decision_counts_as_done_until_others_have_decided,
    updated::an_executions_instant_that_would_be_found_too_late_conflicts,
    updated::an_executions_due_slot_moved_by_a_tick_is_kept_unless_a_new_one_is_written,
    updated::of_changes_of_an_execution_at_once_one_wins,
    updated::an_execution_and_other_records_are_written_together_or_not_at_all,
    moved::moving_an_executions_due_slot_changes_nothing_else,
    moved::an_executions_due_slot_that_has_moved_conflicts,
    moved::an_execution_with_a_later_decision_keeps_its_due_slot,
    woken::a_wake_changes_the_count_and_nothing_else,
    woken::wakes_at_once_all_count,
    woken::decisions_leave_the_count_of_wakes,
    woken::an_execution_with_an_unseen_wake_is_not_suspended,
    woken::a_closed_deleted_or_different_execution_is_not_woken,
    journals::segments_are_read_by_number_and_foreign_ones_with_them,
    journals::segments_are_different_if_run_incarnation_or_execution_is,
    journals::a_journal_larger_than_one_answer_is_read_whole,
    journals::the_expiry_of_a_segment_is_extended_unless_it_is_deleted,
    joins::a_place_is_counted_once_however_often_it_is_marked,
    joins::joins_are_different_if_any_part_of_their_key_is,
    joins::of_places_marked_at_once_exactly_one_is_the_last,
    found::many_executions_are_read_at_once_without_the_absent_ones,
    found::executions_are_listed_by_workflow_the_latest_first,
    found::a_long_list_of_executions_is_one_list_in_pages_of_any_size,
    found::failed_executions_of_all_workflows_are_listed_until_they_run_again,
    found::executions_of_all_workflows_are_one_list_from_their_starts_on,
    found::a_cursor_of_another_workflow_or_listing_is_refused,
    found::due_records_come_in_order_whatever_their_kind,
    found::the_due_entry_of_an_execution_that_sleeps_has_what_its_hint_needs,
    found::lists_of_tasks_hold_nothing_of_executions,
    crons::every_change_of_a_cron_is_read_as_it_was_written,
    crons::a_cron_is_created_once_and_changed_only_in_the_version_that_was_read,
    crons::a_cron_is_due_at_its_slot_until_it_has_none,
    crons::crons_are_listed_in_the_order_in_which_they_were_made,
    gates::every_change_of_a_gate_is_read_as_it_was_written,
    gates::a_gate_is_only_written_over_the_record_that_was_decided_on,
    gates::who_waits_at_a_gate_is_found_in_order,
    gates::a_line_is_read_on_from_any_key_and_past_a_branch,
    gates::each_gate_that_has_a_line_is_found_once,
    gates::who_waits_is_written_even_if_the_gate_has_changed_and_leaves_only_with_it,
    operations::every_change_of_an_operation_is_read_as_it_was_written,
    operations::an_operations_versions_follow_each_other,
    operations::an_operation_is_due_until_its_end,
    operations::operations_are_listed_the_latest_first,
];

/// A store whose longest list of executions of all workflows must be this one: cases that need a longer one check nothing.
pub(crate) fn listing(listed: Listed, store: impl Store + 'static) -> Arc<dyn Store> {
    assert_eq!(store.traits().lists.map(ExecutionLists::longest), Some(listed));
    Arc::new(store)
}

/// Runs all cases, each on a new, empty store that `make` makes.
///
/// # Panics
///
/// At the end, naming the cases that failed, if any did.
pub(crate) async fn run<M, F>(make: M)
where
    M: Fn() -> F,
    F: Future<Output = Arc<dyn Store>>,
{
    let mut failed = Vec::new();
    for case in CASES {
        let store = make().await;
        match AssertUnwindSafe((case.check)(store)).catch_unwind().await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => failed.push(format!("{}: {error}", case.name)),
            Err(_) => failed.push(format!("{}: see its panic above", case.name)),
        }
    }
    assert!(failed.is_empty(), "{} of {} cases failed:\n{}", failed.len(), CASES.len(), failed.join("\n"));
}
