//! The protocol, checked in every order of events within bounds: what must always hold does, what must be possible is,
//! and rules with a bug fail.
#![expect(clippy::print_stdout, reason = "how much was checked helps when a test fails")]

use std::collections::HashMap;
use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model as _};
use tickover_core::duration::Millis;
use tickover_core::limits::Limits;
use tickover_core::timeout::{AttemptTimeout, LifeTimeout, OnTimeout, Timeouts};
use tickover_sim::model::execution::{ExecutionBug, ExecutionFaults, ExecutionProtocol, Waits, claim};
use tickover_sim::model::gates::{GateBug, GatePlan, GateProtocol, property};
use tickover_sim::model::{Bug, Faults, Plan, Protocol, State, instants, name};

/// No faults, but every actor may be slow.
const NONE: Faults =
    Faults { losses: 0, duplicates: 0, crashes: 0, lost_answers: 0, failures: 0, heartbeats: 0 };

/// Goes through all states and checks every property.
fn check(plan: Plan) {
    let began = Instant::now();
    let checker = Protocol::new(plan).checker().threads(2).spawn_bfs().join();
    let (states, ways, deep) = (checker.unique_state_count(), checker.state_count(), checker.max_depth());
    println!("{states} states, {ways} ways to them, {deep} deep, in {:.1?}", began.elapsed());
    checker.assert_properties();
}

/// Checks that rules with this bug break this property, and prints how.
fn finds(bug: Bug, plan: Plan, property: &'static str) {
    let found = HasDiscoveries::AnyOf([property].into());
    let checker = Protocol::with_bug(plan, bug).checker().finish_when(found).spawn_bfs().join();
    let path = checker.assert_any_discovery(property);
    println!("{bug:?}, after {} states: {:?}", checker.unique_state_count(), path.into_actions());
}

fn seconds(seconds: u64) -> Millis {
    Millis::from_secs(seconds)
}

fn deadline(after: u64) -> Timeouts {
    let schedule_to_close = Some(LifeTimeout { after: seconds(after), is_error: true });
    Timeouts { schedule_to_close, ..Timeouts::default() }
}

fn retried(after: u64) -> AttemptTimeout {
    AttemptTimeout { after: seconds(after), on_timeout: OnTimeout::Retry }
}

/// Leases and instants five minutes apart: too far for timers, so only the tick enforces what has passed.
fn with_long_instants(timeouts: Timeouts) -> Plan {
    let plan = Plan::new();
    let limits = Limits { backstop: seconds(300), ..plan.limits.clone() };
    let instants = instants(&[0, 300, 600, 2_400]);
    Plan { instants, lease: seconds(300), limits, timeouts, ..plan }
}

#[test]
fn a_task_survives_a_lost_message_and_a_crash() {
    let faults = Faults { losses: 1, crashes: 1, ..NONE };
    let reaches = vec![name::COMPLETES, name::TAKEN_OVER, name::REHINTED];
    check(Plan { faults, reaches, ..Plan::new() });
}

#[test]
fn a_duplicated_message_and_a_failed_attempt_cause_no_second_result() {
    let faults = Faults { duplicates: 1, failures: 1, ..NONE };
    let reaches = vec![name::COMPLETES, name::TAKEN_OVER, name::RETRIED];
    check(Plan { faults, reaches, ticks: 1, instants: instants(&[0, 60, 780]), ..Plan::new() });
}

#[test]
fn a_write_whose_answer_is_lost_is_repeated_without_harm() {
    let faults = Faults { lost_answers: 1, crashes: 1, ..NONE };
    let reaches = vec![name::COMPLETES, name::TAKEN_OVER];
    check(Plan { faults, reaches, ticks: 1, ..Plan::new() });
}

#[test]
fn deadlines_and_timeouts_are_enforced_whatever_is_lost() {
    let faults = Faults { losses: 1, crashes: 1, ..NONE };
    let reaches = vec![name::COMPLETES, name::EXPIRES_WAITING, name::EXPIRES_HELD, name::RETRIED];
    let timeouts = Timeouts { start_to_close: Some(retried(250)), ..deadline(600) };
    check(Plan { faults, reaches, ..with_long_instants(timeouts) });
}

#[test]
fn a_worker_without_heartbeats_is_replaced() {
    let faults = Faults { heartbeats: 1, crashes: 1, ..NONE };
    let reaches = vec![name::COMPLETES, name::EXPIRES_HELD, name::TAKEN_OVER, name::RETRIED];
    let timeouts = Timeouts { heartbeat: Some(retried(400)), ..Timeouts::default() };
    check(Plan { faults, reaches, ticks: 1, ..with_long_instants(timeouts) });
}

#[test]
fn two_tasks_are_both_done() {
    let reaches = vec![name::COMPLETES, name::TAKEN_OVER, name::REHINTED];
    check(Plan { tasks: 2, ticks: 1, reaches, instants: instants(&[0, 60, 780]), ..Plan::new() });
}

#[test]
fn timers_enforce_a_deadline_without_a_tick() {
    let reaches = vec![name::COMPLETES, name::EXPIRES_WAITING, name::EXPIRES_HELD];
    let instants = instants(&[0, 60, 100, 780]);
    check(Plan { ticks: 1, sweeps: false, reaches, instants, timeouts: deadline(100), ..Plan::new() });
}

#[test]
fn ticks_enforce_a_deadline_whose_timer_is_lost() {
    let faults = Faults { losses: 1, crashes: 1, ..NONE };
    let reaches = vec![name::COMPLETES, name::EXPIRES_WAITING, name::EXPIRES_HELD];
    let instants = instants(&[0, 60, 100, 780]);
    check(Plan { ticks: 1, faults, reaches, instants, timeouts: deadline(100), ..Plan::new() });
}

/// Properties of final states say something about every run only if no run goes on for ever.
#[test]
fn no_run_returns_to_an_earlier_state() {
    let faults = Faults { losses: 1, crashes: 1, lost_answers: 1, ..NONE };
    let timeouts = deadline(100);
    let instants = instants(&[0, 100, 780]);
    let model = Protocol::new(Plan { ticks: 1, workers: 1, faults, timeouts, instants, ..Plan::new() });
    // Whether all states after this one have been visited; `false` for the states on the present path.
    let mut done: HashMap<State, bool> = HashMap::new();
    let mut way: Vec<(State, Vec<State>)> = Vec::new();
    let mut next = model.init_states().pop();
    loop {
        if let Some(state) = next.take() {
            let successors = model.next_states(&state);
            done.insert(state.clone(), false);
            way.push((state, successors));
        }
        let Some((state, successors)) = way.last_mut() else { break };
        let Some(successor) = successors.pop() else {
            done.insert(state.clone(), true);
            way.pop();
            continue;
        };
        match done.get(&successor) {
            Some(true) => {}
            Some(false) => panic!("a cycle through {successor:#?}"),
            None => next = Some(successor),
        }
    }
    assert!(done.len() > 1_000, "{} states", done.len());
    println!("{} states", done.len());
}

#[test]
fn without_a_fence_the_result_of_a_worker_that_lost_its_task_would_count() {
    finds(Bug::NoFence, Plan::new(), name::HOLDERS_RESULT);
}

#[test]
fn without_the_condition_on_the_version_an_end_would_be_overwritten() {
    finds(Bug::AnyVersion, Plan::new(), name::END_STAYS);
    finds(Bug::AnyVersion, Plan::new(), name::ONE_RESULT);
}

#[test]
fn a_claim_that_kept_the_due_slot_would_make_the_tick_too_late() {
    let timeouts = Timeouts { start_to_close: Some(retried(250)), ..Timeouts::default() };
    finds(Bug::ClaimKeepsDueSlot, with_long_instants(timeouts), name::DUE_IN_TIME);
}

#[test]
fn a_claim_without_a_due_slot_condition_would_make_the_tick_too_late_after_a_rearm() {
    let timeouts = Timeouts { start_to_close: Some(retried(250)), ..Timeouts::default() };
    finds(Bug::NoDueSlotCondition, with_long_instants(timeouts), name::DUE_IN_TIME);
}

#[test]
fn an_expiry_that_ignored_the_status_would_overwrite_a_result() {
    finds(Bug::ExpiryOfAnything, with_long_instants(deadline(600)), name::END_STAYS);
}

#[test]
fn a_hint_that_was_never_sent_again_would_lose_its_task() {
    let faults = Faults { losses: 1, ..NONE };
    finds(Bug::HintsSentOnce, Plan { faults, ..Plan::new() }, name::NOT_LOST);
}

#[test]
fn a_tick_that_overlooked_deadlines_would_leave_them_unenforced() {
    finds(Bug::NothingExpires, with_long_instants(deadline(600)), name::ENFORCED);
}

/// Goes through all states of an execution's world and checks every property.
fn check_execution(course: ExecutionProtocol) {
    let began = Instant::now();
    let checker = course.checker().threads(2).spawn_bfs().join();
    let (states, deep) = (checker.unique_state_count(), checker.max_depth());
    println!("{states} states, {deep} deep, in {:.1?}", began.elapsed());
    checker.assert_properties();
}

fn finds_execution_bug(waits: Waits, slip: ExecutionBug, property: &'static str) {
    let found = HasDiscoveries::AnyOf([property].into());
    let course = ExecutionProtocol::new(waits, ExecutionFaults { losses: 1, crashes: 1 }).with(slip);
    let checker = course.checker().finish_when(found).spawn_bfs().join();
    let path = checker.assert_any_discovery(property);
    println!("{slip:?}, after {} states: {:?}", checker.unique_state_count(), path.into_actions());
}

#[test]
fn an_execution_is_woken_by_the_last_of_its_steps_whoever_dies() {
    check_execution(ExecutionProtocol::new(Waits::ForSteps, ExecutionFaults { losses: 1, crashes: 2 }));
}

#[test]
fn an_event_wakes_an_execution_whatever_is_lost() {
    check_execution(ExecutionProtocol::new(Waits::ForAnEvent, ExecutionFaults { losses: 1, crashes: 1 }));
}

#[test]
fn a_suspension_that_ignored_wakes_would_wait_in_vain() {
    finds_execution_bug(Waits::ForSteps, ExecutionBug::WakesIgnored, claim::NO_LOST_WAKE);
}

#[test]
fn a_close_without_a_fence_would_end_another_workers_turn() {
    finds_execution_bug(Waits::ForSteps, ExecutionBug::NoFence, claim::HOLDERS_END);
}

#[test]
fn an_execution_without_rechecks_would_be_lost() {
    finds_execution_bug(Waits::ForSteps, ExecutionBug::NoRecheck, claim::NOT_LOST);
}

/// Goes through all states of a gate's world and checks every property.
fn check_gate(plan: GatePlan) {
    let began = Instant::now();
    let checker = GateProtocol::new(plan).checker().threads(2).spawn_bfs().join();
    let (states, deep) = (checker.unique_state_count(), checker.max_depth());
    println!("{states} states, {deep} deep, in {:.1?}", began.elapsed());
    checker.assert_properties();
}

fn finds_gate_bug(bug: GateBug, plan: GatePlan, property: &'static str) {
    let found = HasDiscoveries::AnyOf([property].into());
    let checker =
        GateProtocol::new(plan).with(bug).checker().threads(2).finish_when(found).spawn_bfs().join();
    let path = checker.assert_any_discovery(property);
    println!("{bug:?}, after {} states: {:?}", checker.unique_state_count(), path.into_actions());
}

#[test]
fn nobody_waits_while_a_place_is_free_and_no_tick_is_needed_for_that() {
    for limit in [1, 2] {
        check_gate(GatePlan { scheduled: 1, cancelled: 1, ..GatePlan::new(limit, 3) });
    }
    check_gate(GatePlan { retries: 1, ..GatePlan::new(1, 2) });
}

#[test]
fn three_processes_at_a_gate_at_once_lose_no_call() {
    check_gate(GatePlan { processes: 3, ..GatePlan::new(1, 3) });
}

#[test]
fn wherever_a_process_dies_at_a_gate_all_come_after_one_tick() {
    for limit in [1, 2] {
        check_gate(GatePlan { scheduled: 2, crashes: 1, ..GatePlan::new(limit, 3) });
    }
    // Ticks come while others are at the gate as well.
    check_gate(GatePlan { crashes: 2, ticks: true, ..GatePlan::new(1, 2) });
}

#[test]
fn a_message_that_comes_twice_gives_nobody_a_place_too_many_and_no_place_waits_for_a_tick() {
    for retries in [0, 1] {
        check_gate(GatePlan { redelivered: 2, retries, ..GatePlan::new(1, 2) });
    }
    check_gate(GatePlan { redelivered: 2, ticks: true, ..GatePlan::new(1, 2) });
}

#[test]
fn however_slow_a_process_is_at_a_gate_no_more_run_than_its_limit() {
    // An offer is late, then a claim is too late to begin; a place was left behind.
    for instants in [vec![0, 6, 20], vec![0, 50]] {
        check_gate(GatePlan { crashes: 1, ticks: true, instants, ..GatePlan::new(1, 2) });
    }
    // A lease has ended, then its place.
    check_gate(GatePlan { ticks: true, instants: vec![0, 62, 75], ..GatePlan::new(1, 2) });
}

#[test]
fn one_whose_worker_is_lost_with_its_message_is_called_again_by_the_line() {
    for instants in [vec![0], vec![0, 62], vec![0, 62, 75]] {
        check_gate(GatePlan { losses: 1, ticks: true, instants, ..GatePlan::new(1, 2) });
    }
    let dies = GatePlan { losses: 1, ticks: true, ..GatePlan::new(1, 2) };
    finds_gate_bug(GateBug::LostNotCalled, dies, property::ALL_COME);
}

#[test]
fn a_gate_that_gave_more_places_than_it_has_would_be_found() {
    finds_gate_bug(GateBug::TakenUnchecked, GatePlan::new(1, 2), property::WITHIN_LIMIT);
    finds_gate_bug(GateBug::WritesOver, GatePlan::new(1, 2), property::WITHIN_LIMIT);
    let retried = GatePlan { retries: 1, ..GatePlan::new(1, 2) };
    finds_gate_bug(GateBug::MarkIgnored, retried.clone(), property::WITHIN_LIMIT);
    let twice = GatePlan { redelivered: 1, ..retried };
    finds_gate_bug(GateBug::ClaimOfAnyVersion, twice, property::WITHIN_LIMIT);
}

#[test]
fn a_look_that_was_left_out_would_leave_one_in_the_line() {
    for bug in [GateBug::FreesWithoutLook, GateBug::ComesWithoutLook] {
        finds_gate_bug(bug, GatePlan::new(1, 2), property::NO_LOST_CALL);
    }
}

#[test]
fn items_in_another_order_would_lose_one_that_waits() {
    let dies = GatePlan { crashes: 1, ticks: true, ..GatePlan::new(1, 2) };
    for bug in [GateBug::ItemAfterRecord, GateBug::ItemDeletedFirst, GateBug::DeletesEarly] {
        finds_gate_bug(bug, dies.clone(), property::HAS_ITEM);
    }
    finds_gate_bug(GateBug::ItemAfterRecord, dies.clone(), property::ALL_COME);
    finds_gate_bug(GateBug::DeletesEarly, dies, property::ALL_COME);
}

#[test]
fn a_tick_that_left_offers_or_places_as_they_are_would_come_in_vain() {
    let dies = GatePlan { crashes: 1, ticks: true, ..GatePlan::new(1, 2) };
    for bug in [GateBug::OffersKept, GateBug::LeftBehindKept] {
        finds_gate_bug(bug, dies.clone(), property::ALL_COME);
    }
}
