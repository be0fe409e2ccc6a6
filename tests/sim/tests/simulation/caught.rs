//! Whether a bug is found by the check of the invariant that it breaks.

use tickover_sim::bugs::Bug;
use tickover_sim::hardship::Hardship;
use tickover_sim::plan::Plan;
use tickover_sim::search::first_failure_among;

/// Runs that may fail for another reason, before one fails for the right one.
pub(crate) const OTHERS: usize = 2;
/// Where bugs were found that few seeds show: the search begins there, and goes on with all others.
const FOUND_AT: [(Bug, u64); 52] = [
    (Bug::LateTaskNotFenced, 6),
    (Bug::BatchOfAnyTenant, 13),
    (Bug::JoinNeverFull, 13),
    (Bug::SlotsNotRecorded, 13),
    (Bug::GivenUpAfterFreeze, 15),
    (Bug::ClaimedTurnsNotRecorded, 16),
    (Bug::EventIdsPerRun, 18),
    (Bug::ParentNotNotified, 18),
    (Bug::WaitingNeverTimesOut, 19),
    (Bug::PageNotedFirst, 20),
    (Bug::KeyTakenUnchecked, 20),
    (Bug::SealedResultUnseen, 21),
    (Bug::FenceNotCompared, 22),
    (Bug::RunTakenForStarted, 23),
    (Bug::TwoCalledForOne, 25),
    (Bug::ReceivesTooFew, 27),
    (Bug::LossesShared, 29),
    (Bug::TurnLossesShared, 29),
    (Bug::ThrottledTakenForDone, 33),
    (Bug::NewKeyForSameWork, 35),
    (Bug::SuspendIgnoresWakes, 38),
    (Bug::LostNotCalled, 40),
    (Bug::CloseNotFenced, 43),
    (Bug::StopIgnored, 44),
    (Bug::MessagesNotDeleted, 44),
    (Bug::OldInputRuns, 48),
    (Bug::OperationNotDue, 49),
    (Bug::OldOutcomeCounts, 50),
    (Bug::HeldWhileWaiting, 64),
    (Bug::LateExecutionNotFenced, 65),
    (Bug::DriftEnds, 65),
    (Bug::TimerTooEarly, 68),
    (Bug::OlderBuildReadsOn, 71),
    (Bug::TickNeedsQueues, 72),
    (Bug::EndOfRunNotTold, 79),
    (Bug::SweepsFromTheLast, 85),
    (Bug::SuspendKeepsItsSlot, 98),
    (Bug::ChildrenLeftBehind, 139),
    (Bug::RecordNotFenced, 144),
    (Bug::SlotsRecordedTooFar, 151),
    (Bug::PlacesOfAnyVersion, 155),
    (Bug::HintWithoutIncarnation, 170),
    (Bug::TimerNotSentAgain, 177),
    (Bug::TimeoutsInPauses, 183),
    (Bug::ClosedBeforehand, 201),
    (Bug::SlotsRecordedFirst, 209),
    (Bug::LateReportCounts, 247),
    (Bug::ReportsNotKept, 275),
    (Bug::EndedPlaceNotOffered, 313),
    (Bug::StartWithoutCondition, 357),
    (Bug::RearmWithoutCondition, 823),
    (Bug::PlacesNotCleared, 1018),
];

/// The seed at which the search for a bug begins.
fn found_at(bug: Bug) -> u64 {
    FOUND_AT.iter().find(|(one, _)| *one == bug).map_or(1, |(_, seed)| *seed)
}

/// Runs seeds until some fail, and checks that one of the first fails for the right reason.
#[track_caller]
pub(crate) fn is_caught(bug: Bug) {
    is_caught_where(bug, |_| true);
}

/// Runs seeds until one fails, and checks that no other invariant is broken in it.
#[track_caller]
pub(crate) fn is_caught_alone(bug: Bug) {
    let first = found_at(bug);
    let find = |from, last| first_failure_among(from, last, Some(bug), |_: &Plan| true);
    let failure = find(first, 1_000).or_else(|| find(1, first - 1));
    let failure = failure.unwrap_or_else(|| panic!("nothing has found this bug: {}", bug.sentence()));
    assert!(failure.violations.iter().all(|violation| violation.invariant == bug.breaks()), "{failure}");
}

/// The same as [`is_caught`] with those of the thousand seeds in which the bug can have an effect.
#[track_caller]
pub(crate) fn is_caught_where(bug: Bug, can_show: impl Fn(&Hardship) -> bool + Sync) {
    is_caught_after(bug, OTHERS, |plan| can_show(&plan.hardship));
}

/// The same, if so many runs may fail for another reason first.
#[track_caller]
#[expect(clippy::print_stdout, reason = "`--show-output` prints it, for the list above")]
pub(crate) fn is_caught_after(bug: Bug, others_max: usize, can_show: impl Fn(&Plan) -> bool + Sync) {
    let first = found_at(bug);
    let mut others = Vec::new();
    for (mut from, last) in [(first, first.max(1_000)), (1, first - 1)] {
        while others.len() <= others_max {
            let Some(failure) = first_failure_among(from, last, Some(bug), &can_show) else { break };
            if failure.violations.iter().any(|violation| violation.invariant == bug.breaks()) {
                println!("{bug:?} is found at seed {}", failure.seed);
                return;
            }
            from = failure.seed + 1;
            others.push(failure.to_string());
        }
    }
    let others = others.join("\n");
    panic!("no check of {} has found this bug: {}{others}", bug.breaks(), bug.sentence());
}
