//! Bugs of those that need places at two keys, or at any of an execution, and of those who are called or put off.

use tickover_service::executions::StartRequest;
use tickover_sim::bugs::Bug;
use tickover_sim::plan::{Job, JobRequest};

use super::{OTHERS, is_caught, is_caught_after, is_caught_alone};

#[test]
fn a_place_that_is_held_while_its_task_waits_for_another_key_is_caught() {
    is_caught_after(Bug::HeldWhileWaiting, 5, |_| true);
}

#[test]
fn places_of_an_earlier_version_of_an_execution_are_caught() {
    let has_keys = |start: &StartRequest| !start.flow.concurrency.is_empty();
    let is_limited = |job: &Job| match &job.request {
        JobRequest::Start(start) => has_keys(start),
        JobRequest::StartTogether(starts) => starts.iter().any(has_keys),
        JobRequest::Schedule(_) | JobRequest::SendEvent(_) | JobRequest::Cron(_) => false,
    };
    is_caught_after(Bug::PlacesOfAnyVersion, OTHERS, |plan| plan.jobs.iter().any(is_limited));
}

#[test]
fn a_place_that_has_ended_by_itself_and_is_offered_to_nobody_is_caught() {
    is_caught(Bug::EndedPlaceNotOffered);
}

#[test]
fn a_lost_task_that_does_not_wait_in_its_line_again_is_caught() {
    is_caught(Bug::LostNotCalled);
}

#[test]
fn a_start_that_is_put_off_behind_others_is_caught_by_nothing_else() {
    is_caught_alone(Bug::PutOffInNormalLane);
}
