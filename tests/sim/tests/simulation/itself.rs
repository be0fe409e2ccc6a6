//! The simulation itself: it is the same each time, and its faults really happen.

use std::collections::BTreeSet;

use tickover_core::decision::DueReply;
use tickover_core::error::Reject;
use tickover_core::execution::decision::{Reply, SuspendReply};
use tickover_core::execution::due::attempt_timeout_at;
use tickover_core::execution::journal::Happened;
use tickover_core::execution::{DeadlineKind, Execution, ExecutionOutcome, ExecutionStatus};
use tickover_core::operation::{HowEnded, Operation};
use tickover_core::task::{Ending, Outcome, Task};
use tickover_service::timers::Fired;
use tickover_sim::history::act::{Place, Stage};
use tickover_sim::history::execution::{Done, Happening, Ruling};
use tickover_sim::history::{Answer, Deleted, Fate, Fault, MultiWrite, What};
use tickover_sim::plan::Plan;
use tickover_sim::search::replay;
use tickover_sim::{Run, bugs::Bug, run, trace};

#[test]
fn a_seed_gives_the_same_history_each_time_and_another_one_another() {
    for seed in 1..=20 {
        let first = run(seed, None);
        assert_eq!(trace::digest(&first), trace::digest(&run(seed, None)), "seed {seed}");
        assert_ne!(trace::digest(&first), trace::digest(&run(seed + 1_000, None)));
    }
}

/// The SDK and its libraries get time, random numbers and order from the simulation only, as well.
#[test]
fn a_seed_that_runs_the_engine_gives_the_same_history_each_time() {
    let flows: Vec<u64> = (1..=400).filter(|seed| Plan::of(*seed).runs_flows()).collect();
    assert!((20..=50).contains(&flows.len()), "{} of 400", flows.len());
    for seed in flows.into_iter().take(6) {
        assert_eq!(trace::digest(&run(seed, None)), trace::digest(&run(seed, None)), "seed {seed}");
    }
}

#[test]
fn some_seeds_have_sqlite_beside_the_memory_store() {
    let count = (1..=1_000).filter(|seed| Plan::of(*seed).has_sqlite).count();
    assert!((30..=70).contains(&count), "{count} of 1,000");
}

#[test]
fn a_failure_names_the_command_that_replays_it() {
    assert_eq!(replay(17, None), "cargo xtask sim --seed 17");
    assert_eq!(replay(17, Some(Bug::NoNonce)), "cargo xtask sim --seed 17 --bug no-nonce");
}

/// All kinds of events that can happen.
pub(crate) const ALL: &[&str] = &[
    "crashed",
    "frozen",
    "clock jumped",
    "lost answer",
    "late write",
    "unavailable",
    "throttled",
    "conflicted",
    "wrong depth",
    "missed ticks",
    "away",
    "redriven",
    "key throttled",
    "too new",
    "killed while closing",
    "killed while handing over",
    "not invoked",
    "dropped",
    "duplicated",
    "received by nobody",
    "shown",
    "reused id",
    "re-armed",
    "revived",
    "completed",
    "failed",
    "timed out",
    "cancelled",
    "cancelled by timeout",
    "skipped",
    "attempt timed out",
    "attempt released",
    "attempt lost",
    "attempt failed",
    "duplicate",
    "refused",
    "handed over",
    "fired",
    "fired on",
    "fired for nothing",
    "went on",
    "event repeated",
    "event taken",
    "run went on from memory",
    "events thrown away",
    "turn lost",
    "start refused",
    "sealed",
    "joined",
    "join full",
    "wide join full",
    "attempt given up",
    "step retried",
    "rerun with results",
    "child completed",
    "child terminated",
    "child cancelled",
    "execution completed",
    "execution failed",
    "execution timed out",
    "run timed out",
    "execution cancelled",
    "execution's id reused",
    "woken",
    "failing",
    "recovered",
    "paused",
    "turn taken over",
    "restarted",
    "continued as new",
    "sdk step ran",
    "sdk remote step ran",
    "sdk step asked the outside",
    "sdk step asked again",
    "sdk step tried again",
    "sdk failure dealt with",
    "sdk turn replayed",
    "sdk turn replayed a sealed journal",
    "events sealed during an sdk turn",
    "operation completed",
    "operation stopped",
    "operation in several pages",
    "operation of a dry run",
    "operation taken over",
];

/// The kinds of events in a run.
pub(crate) fn happenings(run: &Run) -> BTreeSet<&'static str> {
    let mut seen: BTreeSet<_> = run.events.iter().flat_map(|event| happening(&event.what)).collect();
    seen.extend(run.world.ledger.operations().iter().flat_map(|(_, operation)| of_operation(operation)));
    let mut asked = BTreeSet::new();
    let acts = run.events.iter().filter_map(|event| match &event.what {
        What::OfExecution(happening) => match &**happening {
            Happening::Acted(act) if act.stage == Stage::Asks => Some((&act.key, act.attempt)),
            _ => None,
        },
        _ => None,
    });
    // A call whose result wasn't recorded when its worker was lost, and that was made again.
    if acts.filter(|act| !asked.insert(*act)).count() > 0 {
        seen.insert("sdk step asked again");
    }
    seen
}

fn happening(what: &What) -> Vec<&'static str> {
    match what {
        What::Fault(fault) => fault_name(*fault).into_iter().collect(),
        What::Message { fate, .. } => match fate {
            Fate::Sent(_) | Fate::Received | Fate::Refused | Fate::Deleted => vec![],
            Fate::Dropped => vec!["dropped"],
            Fate::Duplicated(_) => vec!["duplicated"],
            Fate::NeverReceived => vec!["received by nobody"],
            Fate::Shown => vec!["shown"],
        },
        What::Stored(stored) => match &stored.before {
            None => stored.after.ended().map(|ended| outcome_name(&ended.outcome)).into_iter().collect(),
            Some(before) if before.incarnation != stored.after.incarnation => vec!["reused id"],
            Some(before) if before.version == stored.after.version => vec!["re-armed"],
            Some(before) => ending(before, &stored.after),
        },
        What::Answered { answer, .. } => match answer {
            Answer::Closed { duplicate: true } => vec!["duplicate"],
            Answer::Failed(tickover_service::ServiceError::Rejected(_)) => vec!["refused"],
            Answer::Ticked(report) if report.timers > 0 => vec!["handed over"],
            Answer::Fired(Fired::TimedOut) => vec!["fired"],
            Answer::Fired(Fired::SentOn) => vec!["fired on"],
            Answer::Fired(Fired::Spent) => vec!["fired for nothing"],
            _ => vec![],
        },
        What::OfExecution(happening) => of_execution(happening),
        What::Called { .. } | What::Decided(_) => vec![],
    }
}

fn of_operation(operation: &Operation) -> Vec<&'static str> {
    let mut seen = match operation.end.as_ref().map(|end| &end.how) {
        Some(HowEnded::Completed) => vec!["operation completed"],
        Some(HowEnded::Stopped) => vec!["operation stopped"],
        // Nothing is done, and the slot isn't the first one.
        None if operation.pages == 0 && operation.version > 1 => vec!["operation taken over"],
        Some(HowEnded::Failed { .. }) | None => vec![],
    };
    if operation.pages > 1 {
        seen.push("operation in several pages");
    }
    if operation.dry_run && operation.counts.matched > 0 {
        seen.push("operation of a dry run");
    }
    seen
}

fn of_execution(happening: &Happening) -> Vec<&'static str> {
    match happening {
        Happening::Decided(ruling) => match &ruling.outcome {
            Ok(Reply::Suspended(SuspendReply::GoOn)) => vec!["went on"],
            Ok(Reply::EventSent { duplicate: true }) => vec!["event repeated"],
            Ok(Reply::EventsCleared(count)) if *count > 0 => vec!["events thrown away"],
            Ok(Reply::Due(DueReply::TimedOut)) if takes_over_after_attempt_timeout(ruling) => {
                vec!["attempt given up"]
            }
            Err(Reject::TurnLost) => vec!["turn lost"],
            Err(Reject::IdConflict { .. }) => vec!["start refused"],
            Ok(_) | Err(_) => vec![],
        },
        Happening::Sealed { .. } => vec!["sealed"],
        Happening::Joined { marked, of, .. } if marked == of && *of > 2 => {
            vec!["join full", "wide join full"]
        }
        Happening::Joined { marked, of, .. } => vec![if marked == of { "join full" } else { "joined" }],
        Happening::Did(deed) => match &deed.what {
            Done::Began(_) => vec![],
            Done::Took { .. } => vec!["event taken"],
            Done::WentOn { .. } => vec!["run went on from memory"],
        },
        Happening::Acted(act) => match (act.stage, act.place()) {
            (Stage::Begins, Some(Place::Turn { name, .. })) if name.starts_with("on_failure") => {
                vec!["sdk failure dealt with"]
            }
            (Stage::Begins, Some(Place::Turn { .. })) => vec!["sdk step ran"],
            (Stage::Begins, Some(Place::Task(_))) => vec!["sdk remote step ran"],
            (Stage::Begins, None) => vec![],
            (Stage::Asks, _) if act.attempt > 1 => vec!["sdk step tried again"],
            (Stage::Asks, _) => vec!["sdk step asked the outside"],
        },
        Happening::Stored(change) => changed(change.before.as_ref(), &change.after),
    }
}

/// Whether a turn is taken from a worker that let an attempt's timeout pass.
fn takes_over_after_attempt_timeout(ruling: &Ruling) -> bool {
    ruling.seen.as_deref().and_then(attempt_timeout_at).is_some_and(|at| at <= ruling.now)
}

fn changed(before: Option<&Execution>, after: &Execution) -> Vec<&'static str> {
    let Some(before) = before else { return vec![] };
    let has_turn = |execution: &Execution| execution.turn().map(|turn| turn.lease);
    let new = |is: bool, was: bool, name: &'static str| (is && !was).then_some(name);
    let child = |execution: &Execution| execution.id.as_str().starts_with("c-");
    let closed = after.closed().filter(|_| before.closed().is_none());
    let ended = closed.map(|closed| match (&closed.outcome, child(after)) {
        (ExecutionOutcome::Completed { .. }, true) => "child completed",
        (ExecutionOutcome::Cancelled { terminated: true }, true) => "child terminated",
        (ExecutionOutcome::Cancelled { terminated: false }, true) => "child cancelled",
        (ExecutionOutcome::Completed { .. }, false) => "execution completed",
        (ExecutionOutcome::Failed { .. }, _) => "execution failed",
        (ExecutionOutcome::TimedOut { kind: DeadlineKind::Execution }, _) => "execution timed out",
        (ExecutionOutcome::TimedOut { kind: DeadlineKind::Run }, _) => "run timed out",
        (ExecutionOutcome::Cancelled { .. }, false) => "execution cancelled",
    });
    let recovered = before.failing.is_some()
        && matches!(closed, Some(one) if one.outcome.status() == ExecutionStatus::Completed);
    let taken_over =
        before.turn().is_some() && has_turn(after).is_some() && has_turn(before) != has_turn(after);
    let is_flow = after.workflow.as_str() != "script";
    let replays = is_flow
        && has_turn(after).is_some()
        && has_turn(before) != has_turn(after)
        && (keeps_results(after) || after.sealed.is_some());
    let segments = |execution: &Execution| execution.sealed.map_or(0, |sealed| sealed.segments);
    // What the turn's next write returns then lacks these events.
    let seals_events = is_flow
        && has_turn(after).is_some()
        && has_turn(before) == has_turn(after)
        && segments(after) > segments(before)
        && after.pending_events > before.pending_events;
    let is_same = before.incarnation == after.incarnation;
    let reopened = is_same && before.closed().is_some() && after.closed().is_none();
    [
        ended,
        new(before.incarnation != after.incarnation, false, "execution's id reused"),
        new(after.wakes > before.wakes, false, "woken"),
        new(after.failing.is_some(), before.failing.is_some(), "failing"),
        new(recovered, false, "recovered"),
        new(after.paused, before.paused, "paused"),
        new(taken_over, false, "turn taken over"),
        new(reopened && after.run > before.run, false, "restarted"),
        new(reopened && after.run == before.run, false, "step retried"),
        new(reopened && after.run > before.run && keeps_results(after), false, "rerun with results"),
        new(after.run > before.run && !reopened, false, "continued as new"),
        new(replays, false, "sdk turn replayed"),
        new(replays && after.sealed.is_some(), false, "sdk turn replayed a sealed journal"),
        new(seals_events, false, "events sealed during an sdk turn"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn keeps_results(execution: &Execution) -> bool {
    execution.journal.iter().any(|entry| matches!(entry.what, Happened::Step { .. }))
}

const fn fault_name(fault: Fault) -> Option<&'static str> {
    Some(match fault {
        Fault::Crashed(_) => "crashed",
        Fault::Frozen(_) => "frozen",
        Fault::ClockJumped(_) => "clock jumped",
        Fault::CallerLeft => "caller left",
        Fault::LostAnswer => "lost answer",
        Fault::LateWrite(_) => "late write",
        Fault::Unavailable => "unavailable",
        Fault::Throttled => "throttled",
        Fault::Conflicted => "conflicted",
        Fault::WrongDepth => "wrong depth",
        Fault::MissedTicks(_) => "missed ticks",
        Fault::Away => "away",
        Fault::Deleted(Deleted::Record) => "record deleted",
        Fault::Deleted(Deleted::Segment(_)) => "segment deleted",
        Fault::Deleted(Deleted::Blob(_)) => "payload deleted",
        Fault::Redriven(_) => "redriven",
        Fault::KeyThrottled => "key throttled",
        Fault::TooNew => "too new",
        Fault::DiedMidway(MultiWrite::Closing) => "killed while closing",
        Fault::DiedMidway(MultiWrite::HandingOver) => "killed while handing over",
        Fault::NotInvoked => "not invoked",
        Fault::LoopStopped(_) | Fault::Deleted(Deleted::Join | Deleted::Key) | Fault::FaultPhaseOver => {
            return None;
        }
    })
}

fn ending(before: &Task, after: &Task) -> Vec<&'static str> {
    let mut found = Vec::new();
    if before.revived_at != after.revived_at {
        found.push("revived");
    }
    if before.history.last() != after.history.last() {
        found.extend(after.history.last().and_then(|past| match past.ending {
            Ending::Completed | Ending::Cancelled => None,
            Ending::Failed => Some("attempt failed"),
            Ending::TimedOut(_) => Some("attempt timed out"),
            Ending::Released => Some("attempt released"),
            Ending::Lost => Some("attempt lost"),
        }));
    }
    found.extend(after.ended().map(|ended| outcome_name(&ended.outcome)));
    found
}

const fn outcome_name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Completed { .. } => "completed",
        Outcome::Failed { .. } => "failed",
        Outcome::TimedOut { .. } => "timed out",
        Outcome::Cancelled { timeout: None } => "cancelled",
        Outcome::Cancelled { timeout: Some(_) } => "cancelled by timeout",
        Outcome::Skipped => "skipped",
    }
}
