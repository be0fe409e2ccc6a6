//! The lifecycle events of each step: every change once, with the right numbers, and without data that users sent.

use std::collections::BTreeSet;

use crate::task::Task;
use crate::task::decide::tests::fixture::written;
use crate::task::decision::Decision;
use crate::task::event::{Event, EventType, events};
use crate::time::Timestamp;

/// Checks the events of a decision against its changes.
pub(super) fn check(decision: &Decision, now: Timestamp) {
    for (before, after) in written(decision) {
        check_write(before, after, now);
    }
}

fn check_write(before: Option<&Task>, after: &Task, now: Timestamp) {
    let told = events(before, after, now);
    let count = |holds: &dyn Fn(&EventType) -> bool| told.iter().filter(|event| holds(&event.what)).count();
    let is_live = |task: &Task| task.status().is_live();
    // Twice within a millisecond, the instant is the same.
    let again = |before: &Task| !is_live(before) && is_live(after);
    let revived = before.is_some_and(|before| before.revived_at != after.revived_at || again(before));

    let was_live = before.is_none_or(is_live);
    let ended = was_live && (!is_live(after) || revived);
    assert_eq!(count(&|what| what.ended_as().is_some()), usize::from(ended), "{told:#?}");
    assert_eq!(count(&|what| matches!(what, EventType::TaskRevived)), usize::from(revived), "{told:#?}");
    assert_eq!(count(&|what| matches!(what, EventType::TaskScheduled { .. })), usize::from(before.is_none()));
    let lease = |task: &Task| task.running().map(|running| running.lease);
    let held = before.and_then(lease);
    let started = lease(after).is_some_and(|lease| Some(lease) != held);
    assert_eq!(
        count(&|what| matches!(what, EventType::TaskStarted { .. })),
        usize::from(started),
        "{told:#?}"
    );
    // The end of its attempt has one event, of any type. A timeout that isn't the task's own has another one.
    let let_go = held.is_some() && held != lease(after);
    let closes = |what: &EventType| what.ended_attempt().is_some_and(|past| past.started_at.is_some());
    let follows = |what: &EventType| closes(what) && !matches!(what, EventType::AttemptTimedOut { .. });
    assert_eq!(count(&follows), usize::from(let_go), "{told:#?}");

    let names: BTreeSet<_> = told.iter().map(|event| event.what.name()).collect();
    assert_eq!(names.len(), told.len(), "one type twice: {told:#?}");
    let moved =
        before.is_none_or(|before| before.status() != after.status() || before.attempt != after.attempt);
    assert!(!moved || !told.is_empty(), "a change without an event: {before:#?} {after:#?}");
    for event in &told {
        check_event(event, after, now);
    }
}

fn check_event(event: &Event, after: &Task, now: Timestamp) {
    assert_eq!((&event.task_id, event.version, event.at), (&after.id, after.version, now));
    if let Some(expiry) = event.what.expiry() {
        assert_eq!(expiry.doomed, now < expiry.deadline_at);
        assert_eq!(expiry.lateness, now.since(expiry.deadline_at));
    }
    let body = event.body().unwrap();
    assert!(!body.contains("xxxxxxxxxx") && !body.contains("mmmmmmmmmm"), "a payload: {body}");
}
