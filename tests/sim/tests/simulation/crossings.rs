//! The product with one bug each where features meet.

use tickover_sim::bugs::Bug;

use crate::caught::is_caught;

#[test]
fn a_report_that_counts_after_its_wait_is_caught() {
    is_caught(Bug::LateReportCounts);
}

#[test]
fn a_rerun_that_forgets_reports_is_caught() {
    is_caught(Bug::ReportsNotKept);
}

#[test]
fn a_deployment_that_ends_open_executions_is_caught() {
    is_caught(Bug::DriftEnds);
}

#[test]
fn a_retried_step_that_keeps_its_old_outcome_is_caught() {
    is_caught(Bug::OldOutcomeCounts);
}

#[test]
fn a_retried_step_whose_siblings_stay_ended_is_caught() {
    is_caught(Bug::SiblingsLeftEnded);
}

#[test]
fn a_rerun_under_new_keys_is_caught() {
    is_caught(Bug::NewKeyForSameWork);
}

#[test]
fn an_event_that_counts_once_in_each_run_is_caught() {
    is_caught(Bug::EventIdsPerRun);
}

#[test]
fn children_that_are_left_behind_are_caught() {
    is_caught(Bug::ChildrenLeftBehind);
}

#[test]
fn a_run_in_memory_that_misses_anothers_turn_is_caught() {
    is_caught(Bug::OthersTurnUnseen);
}

#[test]
fn a_start_that_forgets_its_event_is_caught() {
    is_caught(Bug::FirstEventForgotten);
}

#[test]
fn values_that_are_not_written_are_caught() {
    is_caught(Bug::ValuesNotWritten);
}

#[test]
fn a_step_that_runs_again_with_its_old_input_is_caught() {
    is_caught(Bug::OldInputRuns);
}

#[test]
fn a_late_result_that_is_refused_is_caught() {
    is_caught(Bug::LateResultRefused);
}
