//! Leases: which worker has one, for how long, and what happens to tasks of lost workers.

use crate::command::Isolation;
use crate::error::Reject;
use crate::id::{Incarnation, WorkerName};
use crate::payload::Payload;
use crate::task::command::{Claim, Command, Heartbeat, HintedRecord, SignOfLife};
use crate::task::decision::{ClaimReply, Reply};
use crate::task::{Ending, Status};
use crate::timeout::{OnTimeout, TimeoutKind};

use super::fixture::{Scene, blob, lease, span, t, task};
use super::life::{ACCEPTED, CLAIMED, SPENT};

const HELD: Reply = Reply::Claim(ClaimReply::Leased);

#[test]
fn a_claim_records_the_worker_and_the_end_of_its_lease() {
    let scene = task().scheduled().at("1s").claim_for("a", "30s");
    let running = scene.running();
    assert_eq!((running.lease, running.claimed_at), (lease("a"), t("1s")));
    assert_eq!((running.lease_length, running.lease_expires_at), (span("30s"), t("31s")));
    assert_eq!(running.worker, WorkerName::parse("worker-a").ok());
}

#[test]
fn a_valid_lease_keeps_other_workers_out() {
    task()
        .scheduled()
        .claim_for("a", "10s")
        .at("9s 999ms")
        .claim("b")
        .replies(HELD)
        .changes_nothing()
        .at("10s")
        .claim("b")
        .replies(CLAIMED)
        .on_attempt(1);
}

#[test]
fn a_task_that_may_not_start_yet_says_from_when_it_may() {
    task()
        .starting_in("1m")
        .scheduled()
        .at("59s 999ms")
        .claim("a")
        .replies(Reply::Claim(ClaimReply::Early { available_at: t("1m") }))
        .changes_nothing()
        .at("1m")
        .claim("a")
        .replies(CLAIMED);
}

#[test]
fn a_message_of_a_task_whose_hint_comes_later_or_that_has_ended_is_stale() {
    task().starting_in("1h").scheduled().claim("a").replies(SPENT).changes_nothing();
    task().scheduled().cancel().claim("a").replies(SPENT).changes_nothing();
}

#[test]
fn a_lease_is_never_granted_for_a_second_attempt() {
    let closed = || task().attempts(3).scheduled().claim("a").fail("a").is(Status::Pending);
    closed().claim("a").replies(SPENT).changes_nothing().claim("b").replies(CLAIMED);
    closed().claim_for("b", "10s").at("10s").claim("a").replies(SPENT).changes_nothing();
    let timed_out = task().attempts(3).heartbeats("10s", OnTimeout::Retry).scheduled().claim("a").at("10s");
    timed_out.claim("a").replies(SPENT).is(Status::Pending).sends_hint_for("10s");
}

#[test]
fn a_hint_of_an_earlier_task_with_the_same_id_is_stale() {
    let claim = |incarnation| {
        Command::Claim(Claim {
            lease: lease("a"),
            worker: None,
            length: span("1m"),
            hint: Some(HintedRecord {
                incarnation: Incarnation::from_bytes([incarnation; 8]),
                version: 1,
                again: false,
            }),
            isolation: Isolation::Alone,
            inside: false,
            paused: false,
            held: false,
            places: None,
            start: None,
            start_of: None,
        })
    };
    task().scheduled().run(&claim(7)).replies(SPENT).changes_nothing().run(&claim(1)).replies(CLAIMED);
}

#[test]
fn a_hint_from_before_the_task_became_pending_again_is_stale() {
    let claim = |name, version| {
        let hint = HintedRecord { incarnation: Incarnation::from_bytes([1; 8]), version, again: false };
        Command::Claim(Claim {
            lease: lease(name),
            worker: None,
            length: span("1m"),
            hint: Some(hint),
            isolation: Isolation::Alone,
            inside: false,
            paused: false,
            held: false,
            places: None,
            start: None,
            start_of: None,
        })
    };
    let failed = || task().attempts(3).scheduled().run(&claim("a", 1)).replies(CLAIMED).fail("a");
    let version = failed().record().version;
    failed().run(&claim("b", 1)).replies(SPENT).changes_nothing();
    failed().run(&claim("b", version)).replies(CLAIMED);
    // A task that is leased or lost accepts any hint: the hint that it was claimed by is delivered again.
    failed().claim("b").at("1m").run(&claim("c", 1)).replies(CLAIMED);
}

#[test]
fn a_heartbeat_extends_the_lease_and_the_heartbeat_timeout_and_nothing_else() {
    let scene = task()
        .attempts(2)
        .deadline("1h")
        .close_within("10m", OnTimeout::Retry)
        .heartbeats("20s", OnTimeout::Retry)
        .scheduled()
        .claim_for("a", "30s");
    let before = scene.record().clone();
    let scene = scene.at("15s").heartbeat("a").replies(Reply::Extended).sends_nothing();
    let (old, new) = (before.running().unwrap(), scene.running());
    assert_eq!((new.lease_expires_at, new.heartbeat_at), (t("45s"), Some(t("35s"))));
    let expected = crate::task::Running {
        lease_expires_at: new.lease_expires_at,
        heartbeat_at: new.heartbeat_at,
        ..old.clone()
    };
    assert_eq!(*new, expected);
    assert_eq!((scene.record().deadline_at, scene.record().due), (before.deadline_at, before.due));
}

#[test]
fn a_heartbeat_of_the_worker_alone_extends_the_lease_and_leaves_the_heartbeat_timeout_as_it_is() {
    let scene = task().attempts(2).heartbeats("20s", OnTimeout::Retry).scheduled().claim_for("a", "30s");
    let scene = scene.at("15s").worker_heartbeat("a").replies(Reply::Extended);
    assert_eq!((scene.running().lease_expires_at, scene.running().heartbeat_at), (t("45s"), Some(t("20s"))));
    // The worker lives, and the work has been silent for 20 s.
    let scene = scene.at("20s").worker_heartbeat("a");
    scene.refuses(Reject::DeadlineExceeded { kind: TimeoutKind::Heartbeat }).is(Status::Pending);
}

#[test]
fn no_lease_outlives_its_attempt_or_the_task() {
    let scene = task().close_within("40s", OnTimeout::Retry).scheduled().claim("a");
    assert_eq!(scene.running().lease_expires_at, t("40s"));
    assert_eq!(scene.at("30s").heartbeat("a").running().lease_expires_at, t("40s"));
    let scene = task().deadline("40s").scheduled().claim("a");
    assert_eq!(scene.running().lease_expires_at, t("40s"));
    assert_eq!(scene.at("30s").heartbeat("a").running().lease_expires_at, t("40s"));
}

#[test]
fn progress_is_kept_across_attempts_until_another_one_is_reported() {
    let scene = task().attempts(2).scheduled().claim("a").progress("a", 0.25).heartbeat("a");
    assert_eq!(scene.record().progress, Some(0.25));
    let scene = scene.fail("a");
    assert_eq!(scene.record().progress, Some(0.25));
    let scene = scene.claim("b").heartbeat("b");
    assert_eq!(scene.record().progress, Some(0.25));
    assert_eq!(scene.progress("b", 0.1).record().progress, Some(0.1));
}

#[test]
fn details_are_kept_across_attempts_also_of_a_lost_worker_until_others_are_reported() {
    let kept = |scene: &Scene| match &scene.record().details {
        Some(Payload::Inline(details)) => Some(details.as_str().to_owned()),
        Some(Payload::Blob(_)) | None => None,
    };
    let scene = task().attempts(3).scheduled().claim("a").details("a", r#"{"processed":120}"#);
    let scene = scene.progress("a", 0.5).fail("a");
    assert_eq!(kept(&scene).unwrap(), r#"{"processed":120}"#);
    let scene = scene.claim_for("b", "10s").at("10s").claim("c").on_attempt(2);
    assert_eq!(
        (kept(&scene).unwrap(), scene.record().progress),
        (r#"{"processed":120}"#.to_owned(), Some(0.5))
    );
    let scene = scene.details("c", "[]").complete("c");
    assert_eq!(kept(&scene).unwrap(), "[]");
}

#[test]
fn a_progress_report_restarts_the_heartbeat_timeout_and_leaves_the_lease_as_it_is() {
    let report = Heartbeat {
        lease: lease("a"),
        sign_of: SignOfLife::Work,
        progress: Some(0.5),
        details: None,
        blob_id: blob("details"),
        places: None,
    };
    let scene = task().scheduled().claim("a");
    let ends_at = scene.running().lease_expires_at;
    let scene = scene.at("20s").run(&Command::Heartbeat(report));
    assert_eq!((scene.running().lease_expires_at, scene.record().progress), (ends_at, Some(0.5)));
    assert!(scene.heartbeat("a").running().lease_expires_at > ends_at);
}

#[test]
fn an_expired_lease_stays_valid_until_another_worker_takes_over() {
    let silent = || task().attempts(2).scheduled().claim_for("a", "10s").at("1h");
    silent().complete("a").replies(ACCEPTED).is(Status::Completed);
    silent().fail("a").replies(ACCEPTED).is(Status::Pending);
    silent().release("a").replies(ACCEPTED).is(Status::Pending);
    let scene = silent().heartbeat("a").replies(Reply::Extended);
    assert_eq!(scene.running().lease_expires_at, t("1h 10s"));
}

#[test]
fn once_another_took_the_task_over_the_old_lease_is_lost() {
    let taken = || task().scheduled().claim_for("a", "10s").at("11s").claim("b");
    for scene in [taken().complete("a"), taken().fail("a"), taken().release("a"), taken().heartbeat("a")] {
        scene.refuses(Reject::LeaseLost).changes_nothing().is(Status::Running);
    }
    taken()
        .complete("b")
        .replies(ACCEPTED)
        .complete("a")
        .refuses(Reject::AlreadyTerminal { status: Status::Completed });
}

#[test]
fn an_attempt_released_or_lost_is_not_counted() {
    task()
        .scheduled()
        .claim("a")
        .release("a")
        .on_attempt(0)
        .claim("b")
        .on_attempt(1)
        .fail("b")
        .is(Status::Failed);
    let scene = task()
        .attempts(2)
        .scheduled()
        .claim("a")
        .fail("a")
        .claim_for("b", "10s")
        .on_attempt(2)
        .at("10s")
        .claim("c")
        .on_attempt(2)
        .release("c")
        .on_attempt(1);
    let past: Vec<_> = scene.record().history.iter().map(|past| (past.attempt, past.ending)).collect();
    assert_eq!(past, [(1, Ending::Failed), (2, Ending::Lost), (2, Ending::Released)]);
    scene.claim("d").on_attempt(2).fail("d").is(Status::Failed);
}

/// Claims each of these for ten seconds, each once the previous one is lost.
fn lose(mut scene: Scene, names: &[&str]) -> Scene {
    for name in names {
        scene = scene.claim_for(name, "10s").replies(CLAIMED);
        let expires_at = scene.running().lease_expires_at;
        scene = scene.at_instant(expires_at);
    }
    scene
}

#[test]
fn a_task_that_loses_more_workers_in_a_row_than_allowed_is_poisoned() {
    let scene = lose(task().attempts(-1).scheduled(), &["a", "b", "c", "d"]);
    let scene = scene.claim("e").replies(SPENT).is(Status::Failed).sends_nothing();
    assert_eq!(scene.error().code, "poisoned");
    assert_eq!(scene.record().losses, 4);
    scene.complete("d").refuses(Reject::AlreadyTerminal { status: Status::Failed });
}

#[test]
fn how_many_workers_may_be_lost_is_a_limit() {
    let scene = task().max_losses(0).scheduled().claim_for("a", "10s").at("10s").claim("b").replies(SPENT);
    assert_eq!(scene.error().code, "poisoned");
}

#[test]
fn an_attempt_that_ends_resets_the_count_of_losses() {
    let lost_three = || lose(task().attempts(-1).scheduled(), &["a", "b", "c"]).claim("d");
    let again = |scene: Scene| lose(scene, &["e", "f", "g", "h"]).claim("i").replies(SPENT);
    assert_eq!(lost_three().record().losses, 3);
    for scene in [lost_three().fail("d"), lost_three().release("d")] {
        assert_eq!(scene.record().losses, 0);
        assert_eq!(again(scene).error().code, "poisoned");
    }
    let timed = task().attempts(-1).heartbeats("20s", OnTimeout::Retry).scheduled();
    let scene = lose(timed, &["a", "b", "c"]).claim("d").at("50s").tick().is(Status::Pending);
    assert_eq!(scene.record().losses, 0);
}

#[test]
fn a_claim_may_find_the_attempt_before_timed_out_and_start_the_next_one_in_the_same_write() {
    let scene = task()
        .attempts(2)
        .heartbeats("10s", OnTimeout::Retry)
        .scheduled()
        .claim("a")
        .at("10s")
        .claim("b")
        .replies(CLAIMED)
        .on_attempt(2)
        .sends_no_hint()
        .sends_timer_for("20s");
    assert_eq!(scene.record().history[0].ending, Ending::TimedOut(TimeoutKind::Heartbeat));
    assert_eq!(scene.decision().writes.len(), 1);
}

#[test]
fn a_claim_that_ends_or_postpones_the_task_makes_its_message_stale() {
    task()
        .deadline("1m")
        .scheduled()
        .at("1m")
        .claim("a")
        .replies(SPENT)
        .is(Status::TimedOut)
        .writes_the_task();
    task()
        .attempts(2)
        .delay("1m")
        .heartbeats("10s", OnTimeout::Retry)
        .scheduled()
        .claim("a")
        .at("10s")
        .claim("b")
        .replies(SPENT)
        .is(Status::Pending)
        .sends_hint_for("1m 10s");
}

#[test]
fn a_stale_message_that_was_received_before_sends_the_newer_hint_again_once_for_each_wait() {
    let stale = |again| {
        let hint = HintedRecord { incarnation: Incarnation::from_bytes([1; 8]), version: 1, again };
        move |claim: &mut Claim| claim.hint = Some(hint)
    };
    let failed = || task().attempts(4).delay("2m").scheduled().claim("a").at("10s").fail("a");
    failed().at("1m").claim_like("b", stale(false)).replies(SPENT).changes_nothing().sends_nothing();
    let again = failed().at("1m").claim_like("b", stale(true)).replies(SPENT).sends_hint_for("2m 10s");
    let again = again.claim_like("c", stale(true)).replies(SPENT).changes_nothing().sends_nothing();
    // The next wait is another one.
    let again = again.at("3m").claim("d").replies(CLAIMED).fail("d").claim_like("e", stale(true));
    again.replies(SPENT).sends_hint_for("5m");
    // The tick sends the hint of a later start, and the resume of its queue that of a parked task.
    let later = task().attempts(2).delay("1h").scheduled().claim("a").fail("a");
    later.claim_like("b", stale(true)).replies(SPENT).changes_nothing().sends_nothing();
    let parked = failed().at("3m").claim_paused("b").claim_like("c", stale(true));
    parked.replies(SPENT).changes_nothing().sends_nothing();
}

#[test]
fn a_timer_that_was_received_before_sends_the_hint_of_the_retry_again() {
    let timed_out = || {
        let plan = task().attempts(3).close_within("1m", OnTimeout::Retry).scheduled().claim("a");
        plan.at("1m").timer_for("1m").is(Status::Pending).sends_hint_for("1m")
    };
    timed_out().timer_for("1m").changes_nothing().sends_nothing();
    let again = Command::Timer { due_at: t("1m"), again: true };
    timed_out().at("2m").run(&again).sends_hint_for("1m").run(&again).changes_nothing().sends_nothing();
}
