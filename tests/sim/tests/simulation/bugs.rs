//! The product with one bug each: within a thousand runs, a check reports the invariant that the bug breaks.

mod keys;

use tickover_sim::bugs::Bug;
use tickover_sim::flood::Flood;
use tickover_sim::plan::{Job, JobRequest, Plan};

use crate::caught::{OTHERS, is_caught, is_caught_after, is_caught_alone, is_caught_where};

#[test]
fn a_write_without_its_version_condition_is_caught() {
    is_caught(Bug::NoVersionCondition);
}

#[test]
fn a_fence_that_is_not_compared_is_caught() {
    is_caught(Bug::FenceNotCompared);
}

#[test]
fn a_retry_without_a_due_slot_is_caught() {
    is_caught(Bug::RetryWithoutDue);
}

#[test]
fn an_instant_that_passes_a_moment_late_is_caught() {
    is_caught(Bug::AfterInsteadOfAt);
}

#[test]
fn a_hint_sent_before_its_commit_is_caught() {
    is_caught(Bug::HintBeforeCommit);
}

#[test]
fn an_expiry_that_ignores_the_status_is_caught() {
    is_caught(Bug::ExpiryIgnoresStatus);
}

#[test]
fn a_heartbeat_that_moves_the_deadline_is_caught() {
    is_caught(Bug::HeartbeatMovesDeadline);
}

#[test]
fn a_worker_that_speaks_for_its_work_is_caught() {
    is_caught(Bug::WorkerSpeaksForWork);
}

#[test]
fn a_hint_at_every_probe_is_caught() {
    is_caught(Bug::HintAtEveryProbe);
}

#[test]
fn a_claim_that_keeps_its_due_slot_is_caught() {
    is_caught(Bug::ClaimKeepsItsSlot);
}

#[test]
fn a_write_without_a_nonce_is_caught() {
    is_caught(Bug::NoNonce);
}

#[test]
fn a_hint_without_its_incarnation_is_caught() {
    is_caught(Bug::HintWithoutIncarnation);
}

#[test]
fn a_result_that_does_not_fit_its_record_is_caught() {
    is_caught(Bug::ResultInRecord);
}

#[test]
fn a_later_result_that_replaces_the_first_is_caught() {
    is_caught(Bug::LaterResultReplaces);
}

#[test]
fn a_deadline_that_restarts_with_each_attempt_is_caught() {
    is_caught(Bug::DeadlinePerAttempt);
}

#[test]
fn a_rearm_without_its_condition_is_caught() {
    is_caught(Bug::RearmWithoutCondition);
}

#[test]
fn a_timer_that_the_write_does_not_send_is_caught() {
    is_caught(Bug::TimerNotSent);
}

#[test]
fn a_timer_that_is_not_sent_again_is_caught() {
    is_caught(Bug::TimerNotSentAgain);
}

#[test]
fn a_timer_that_fires_too_early_is_caught() {
    is_caught(Bug::TimerTooEarly);
}

#[test]
fn a_tick_that_does_not_record_its_timers_is_caught() {
    is_caught(Bug::SlotsNotRecorded);
}

#[test]
fn a_tick_that_records_more_timers_than_it_sent_is_caught() {
    is_caught(Bug::SlotsRecordedTooFar);
}

#[test]
fn a_conflict_taken_for_success_is_caught() {
    is_caught(Bug::ConflictTakenForSuccess);
}

#[test]
fn a_suspension_that_ignores_wakes_is_caught() {
    is_caught(Bug::SuspendIgnoresWakes);
}

#[test]
fn a_join_that_is_never_full_is_caught() {
    is_caught(Bug::JoinNeverFull);
}

#[test]
fn a_parent_that_is_not_notified_is_caught() {
    is_caught(Bug::ParentNotNotified);
}

#[test]
fn a_record_from_any_lease_is_caught() {
    is_caught(Bug::RecordNotFenced);
}

#[test]
fn a_close_from_any_lease_is_caught() {
    is_caught(Bug::CloseNotFenced);
}

#[test]
fn a_deadline_that_restarts_with_each_run_is_caught() {
    is_caught(Bug::DeadlinePerRun);
}

#[test]
fn a_suspension_that_keeps_its_due_slot_is_caught() {
    is_caught(Bug::SuspendKeepsItsSlot);
}

#[test]
fn a_waiting_execution_without_a_deadline_is_caught() {
    // A tick that finds the deadline passed reports it in most runs. In some, no tick ever does.
    is_caught_after(Bug::WaitingNeverTimesOut, 20, |_| true);
}

#[test]
fn an_event_that_is_not_taken_is_caught() {
    is_caught(Bug::EventNotTaken);
}

#[test]
fn an_event_whose_id_is_forgotten_is_caught() {
    is_caught(Bug::EventIdsForgotten);
}

#[test]
fn events_that_are_left_behind_are_caught() {
    is_caught(Bug::EventsLeftBehind);
}

#[test]
fn an_execution_that_ends_nothing_it_left_open_is_caught() {
    is_caught(Bug::ClosesAtOnce);
}

#[test]
fn a_turn_taken_from_a_paused_execution_is_caught() {
    is_caught(Bug::PauseIgnored);
}

#[test]
fn a_cancellation_that_undoes_nothing_is_caught() {
    is_caught(Bug::CancelUndoesNothing);
}

#[test]
fn a_timeout_of_a_step_that_waits_in_a_pause_is_caught() {
    is_caught(Bug::TimeoutsInPauses);
}

#[test]
fn an_execution_that_times_out_after_its_end_is_caught() {
    is_caught(Bug::ExpiryAfterTheEnd);
}

#[test]
fn a_journal_that_is_never_sealed_is_caught() {
    is_caught(Bug::JournalNeverSealed);
}

#[test]
fn a_payload_that_expires_under_an_open_execution_is_caught() {
    is_caught(Bug::NeverKeptLonger);
}

#[test]
fn an_item_that_is_never_deleted_is_caught() {
    is_caught(Bug::ItemsKeptForEver);
}

#[test]
fn a_tick_that_waits_for_queues_is_caught() {
    is_caught_where(Bug::TickNeedsQueues, |hardship| hardship.queues_away.is_some());
}

#[test]
fn a_lost_hint_of_a_turn_on_a_busy_queue_is_caught() {
    is_caught_where(Bug::ClaimedTurnsNotRecorded, |hardship| hardship.is_busy);
}

#[test]
fn a_batch_of_several_tenants_is_caught() {
    is_caught(Bug::BatchOfAnyTenant);
}

#[test]
fn a_loop_of_messages_that_is_not_allowed_is_caught() {
    is_caught(Bug::LoopsNotAllowed);
}

#[test]
fn a_message_that_is_never_deleted_is_caught() {
    is_caught_where(Bug::MessagesNotDeleted, |hardship| hardship.mortality.is_some());
}

#[test]
fn a_throttled_key_taken_for_success_is_caught() {
    is_caught_where(Bug::ThrottledTakenForDone, |hardship| hardship.key_rate.is_some());
}

#[test]
fn a_tick_that_skips_late_entries_is_caught() {
    is_caught(Bug::SweepsFromTheLast);
}

#[test]
fn a_clock_that_is_half_a_minute_ahead_is_caught() {
    is_caught(Bug::ClockNotCorrected);
}

#[test]
fn an_older_build_that_writes_over_a_newer_format_is_caught() {
    is_caught_where(Bug::OlderBuildReadsOn, |hardship| hardship.two_builds);
}

#[test]
fn a_claim_that_always_says_that_it_is_alone_is_caught() {
    is_caught_where(Bug::LossesShared, |hardship| hardship.kills);
}

#[test]
fn a_turn_taken_as_if_alone_is_caught() {
    is_caught_where(Bug::TurnLossesShared, |hardship| hardship.kills);
}

#[test]
fn open_steps_that_are_recorded_as_ended_too_early_are_caught() {
    is_caught_where(Bug::ClosedBeforehand, |hardship| hardship.aimed);
}

#[test]
fn a_slot_that_is_recorded_before_its_timers_are_sent_is_caught() {
    is_caught(Bug::SlotsRecordedFirst);
}

#[test]
fn a_receive_limit_that_waiting_reaches_is_caught() {
    is_caught_where(Bug::ReceivesTooFew, |hardship| hardship.concurrency.is_some());
}

/// Checks that the bug is found where very many records are due at once, and for the right reason.
#[track_caller]
fn is_caught_by_a_flood(flood: Flood, bug: Bug) {
    let found = flood.check(Some(bug));
    assert!(found.iter().any(|violation| violation.invariant == bug.breaks()), "{found:?}");
}

#[test]
fn a_sweep_that_stops_at_the_end_of_a_page_is_caught() {
    is_caught_by_a_flood(Flood::TimersLost, Bug::SweepStopsAtAPage);
}

#[test]
fn a_list_under_one_key_is_caught() {
    is_caught_by_a_flood(Flood::Fair, Bug::ListOnOneKey);
}

#[test]
fn a_result_that_the_engine_does_not_see_is_caught() {
    is_caught(Bug::SealedResultUnseen);
}

#[test]
fn a_cron_that_takes_its_open_runs_for_ended_is_caught() {
    is_caught_after(Bug::OpenRunsForgotten, OTHERS, Plan::has_crons);
}

#[test]
fn a_cron_that_is_not_told_of_the_end_that_it_waits_for_is_caught() {
    is_caught_after(Bug::EndOfRunNotTold, OTHERS, Plan::has_crons);
}

#[test]
fn a_cron_that_takes_a_recorded_run_for_started_is_caught() {
    is_caught_after(Bug::RunTakenForStarted, OTHERS, Plan::has_crons);
}

#[test]
fn no_bug_is_without_a_test() {
    let tests = [
        include_str!("bugs.rs"),
        include_str!("bugs/keys.rs"),
        include_str!("crossings.rs"),
        include_str!("deaths.rs"),
    ];
    let calls: Vec<_> = tests
        .iter()
        .flat_map(|test| test.lines())
        .filter(|line| ["is_caught", "check_leavers"].iter().any(|check| line.contains(check)))
        .collect();
    for bug in Bug::ALL {
        let names = [")", ","].map(|end| format!("Bug::{bug:?}{end}"));
        let has_test = calls.iter().any(|call| names.iter().any(|name| call.contains(name)));
        assert!(has_test, "{bug:?} has no test");
    }
}

#[test]
fn a_page_of_an_operation_that_is_noted_first_is_caught() {
    is_caught(Bug::PageNotedFirst);
}

#[test]
fn an_operation_that_retries_what_ended_later_is_caught() {
    is_caught(Bug::EndedLaterRetried);
}

#[test]
fn an_operation_without_a_due_slot_is_caught() {
    is_caught(Bug::OperationNotDue);
}

#[test]
fn an_operation_that_goes_on_though_it_was_stopped_is_caught() {
    is_caught(Bug::StopIgnored);
}

#[test]
fn a_place_that_is_taken_without_a_check_is_caught() {
    is_caught(Bug::TakenUnchecked);
}

#[test]
fn an_end_that_frees_the_places_of_others_is_caught() {
    is_caught(Bug::PlacesFreedTwice);
}

#[test]
fn an_execution_that_begins_without_a_place_is_caught() {
    is_caught(Bug::BegunWithoutPlace);
}

#[test]
fn two_calls_for_one_place_are_caught() {
    is_caught(Bug::TwoCalledForOne);
}

#[test]
fn a_place_that_ended_and_is_never_cleared_is_caught() {
    is_caught(Bug::PlacesNotCleared);
}

#[test]
fn an_end_that_calls_nobody_is_caught() {
    is_caught(Bug::NobodyCalled);
}

#[test]
fn one_that_comes_to_a_line_without_an_item_is_caught() {
    is_caught(Bug::ItemNotWritten);
}

#[test]
fn a_line_that_nobody_stands_for_at_another_key_is_caught() {
    is_caught(Bug::StandInNotWritten);
}

#[test]
fn a_task_that_waits_again_without_a_message_is_caught_by_nothing_else() {
    is_caught_alone(Bug::TaskNotHinted);
}

#[test]
fn an_execution_that_waits_for_its_first_turn_without_a_message_is_caught_by_nothing_else() {
    is_caught_alone(Bug::StartNotHinted);
}

#[test]
fn code_that_handles_a_failure_without_a_message_is_caught_by_nothing_else() {
    is_caught_alone(Bug::HandlerNotHinted);
}

#[test]
fn a_message_that_is_given_up_after_a_freeze_is_caught_by_nothing_else() {
    is_caught_alone(Bug::GivenUpAfterFreeze);
}

#[test]
fn a_key_that_is_taken_from_another_task_is_caught() {
    is_caught(Bug::KeyTakenUnchecked);
}

#[test]
fn a_task_that_is_written_after_its_key_went_on_is_caught() {
    is_caught(Bug::LateTaskNotFenced);
}

#[test]
fn a_burst_that_runs_its_first_start_is_caught() {
    is_caught(Bug::FirstStartOfBurstRuns);
}

#[test]
fn an_execution_that_is_started_after_its_key_went_on_is_caught() {
    let is_single =
        |job: &Job| matches!(&job.request, JobRequest::Start(start) if start.flow.unique.is_some());
    is_caught_after(Bug::LateExecutionNotFenced, OTHERS, |plan| plan.jobs.iter().any(is_single));
}

#[test]
fn a_burst_that_runs_its_first_request_is_caught() {
    is_caught(Bug::FirstOfBurstRuns);
}

#[test]
fn a_burst_without_a_bound_is_caught() {
    is_caught(Bug::BurstUnbounded);
}

#[test]
fn a_start_that_is_reserved_twice_is_caught() {
    is_caught(Bug::StartsForgotten);
}

#[test]
fn a_start_that_is_written_without_its_condition_is_caught() {
    is_caught(Bug::StartWithoutCondition);
}

#[test]
fn a_start_that_counts_however_late_it_is_claimed_is_caught() {
    is_caught(Bug::LateStartCounts);
}

#[test]
fn hints_of_low_priority_that_nobody_asks_for_are_caught() {
    is_caught(Bug::LowNeverAsked);
}

#[test]
fn a_hint_that_a_tick_holds_and_forgets_is_caught() {
    is_caught(Bug::HeldHintForgotten);
}

#[test]
fn a_sleep_that_is_never_probed_after_its_hint_is_caught() {
    is_caught_where(Bug::SleepNeverProbed, |hardship| hardship.sleeps_lost);
}

#[test]
fn a_hint_of_a_sleep_for_another_execution_is_caught() {
    is_caught(Bug::SleeperOfAnother);
}
