//! Every state transition of a task once, and the answers to calls that are repeated or refused.

use crate::decision::Write;
use crate::error::{Reject, TakenBy};
use crate::limits::Limits;
use crate::queue::KeyRecord;
use crate::record::Record;
use crate::task::command::{Command, Complete};
use crate::task::decision::{ClaimReply, Reply};
use crate::task::{Ending, HeldKey, Outcome, Status};
use crate::timeout::{OnTimeout, TimeoutKind};

use super::fixture::{Scene, json, lease, t, task};

pub(super) const ACCEPTED: Reply = Reply::Closed { duplicate: false };
pub(super) const DUPLICATE: Reply = Reply::Closed { duplicate: true };
pub(super) const CLAIMED: Reply = Reply::Claim(ClaimReply::Claimed);
pub(super) const SPENT: Reply = Reply::Claim(ClaimReply::Stale);
const NEW: Reply = Reply::Scheduled { existed: false };
const EXISTED: Reply = Reply::Scheduled { existed: true };

// ---- the transitions

#[test]
fn a_scheduled_task_is_pending_and_its_hint_goes_out_at_once() {
    let scene = task().scheduled().replies(NEW).is(Status::Pending).on_attempt(0).sends_hint_for("0s");
    assert_eq!(scene.record().created_at, t("0s"));
    assert_eq!(scene.record().deadline_at, None);
}

#[test]
fn a_claimed_task_runs_and_completes_with_its_output() {
    let scene = task()
        .scheduled()
        .at("1s")
        .claim("a")
        .replies(CLAIMED)
        .is(Status::Running)
        .on_attempt(1)
        .sends_nothing()
        .at("5s")
        .complete_with("a", "42")
        .replies(ACCEPTED)
        .is(Status::Completed)
        .sends_nothing();
    let Outcome::Completed { output: Some(crate::payload::Payload::Inline(output)) } = scene.outcome() else {
        panic!("{:?}", scene.outcome());
    };
    assert_eq!(output.as_str(), "42");
    let [past] = scene.record().history.as_slice() else { panic!("{:?}", scene.record().history) };
    assert_eq!((past.attempt, past.lease, past.ending), (1, Some(lease("a")), Ending::Completed));
    assert_eq!((past.claimed_at, past.ended_at), (Some(t("1s")), t("5s")));
    let ended = scene.record().ended().unwrap();
    assert_eq!(ended.expires_at, ended.ended_at.plus(Limits::default().retention));
}

#[test]
fn a_task_may_complete_without_an_output() {
    let nothing = Complete { lease: lease("a"), output: None, blob_id: super::fixture::blob("output") };
    task()
        .scheduled()
        .claim("a")
        .run(&Command::Complete(nothing))
        .ended_as(&Outcome::Completed { output: None });
}

#[test]
fn a_failed_attempt_with_attempts_left_makes_the_task_pending_after_its_backoff() {
    task()
        .attempts(2)
        .delay("10s")
        .scheduled()
        .claim("a")
        .at("5s")
        .fail("a")
        .replies(ACCEPTED)
        .is(Status::Pending)
        .on_attempt(1)
        .available_at("15s")
        .sends_hint_for("15s");
}

#[test]
fn a_failed_attempt_without_attempts_left_fails_the_task() {
    let scene = task().scheduled().claim("a").fail("a").replies(ACCEPTED).is(Status::Failed).sends_nothing();
    assert_eq!(
        (scene.error().code.as_str(), scene.error().message.as_str()),
        ("broken", "the printer is on fire")
    );
}

#[test]
fn a_released_task_is_pending_at_once() {
    task()
        .scheduled()
        .claim("a")
        .at("3s")
        .release("a")
        .replies(ACCEPTED)
        .is(Status::Pending)
        .available_at("3s")
        .sends_hint_for("3s");
}

#[test]
fn a_task_whose_worker_is_lost_goes_to_the_next_worker_that_claims() {
    task()
        .scheduled()
        .claim_for("a", "10s")
        .at("10s")
        .claim("b")
        .replies(CLAIMED)
        .is(Status::Running)
        .on_attempt(1);
}

#[test]
fn a_task_past_its_deadline_times_out_whether_it_waits_or_runs() {
    task().deadline("1m").scheduled().at("1m").tick().is(Status::TimedOut);
    task().deadline("1m").scheduled().claim("a").at("1m").tick().is(Status::TimedOut);
}

#[test]
fn a_waiting_task_is_cancelled_at_once() {
    task()
        .scheduled()
        .cancel()
        .replies(Reply::Cancel { changed: true })
        .ended_as(&Outcome::Cancelled { timeout: None })
        .sends_nothing();
}

#[test]
fn a_task_with_no_attempts_at_all_is_skipped() {
    let scene = task().attempts(0).scheduled().replies(NEW).ended_as(&Outcome::Skipped).sends_nothing();
    assert_eq!(scene.record().status(), Status::Skipped);
    scene.claim("a").replies(SPENT).changes_nothing();
}

#[test]
fn a_command_on_a_missing_task_is_refused() {
    let limits = Limits::default();
    let nonce = crate::id::Nonce::from_bytes([0; 8]);
    let context = crate::command::Context { now: t("0s"), nonce, limits: &limits, by: None };
    for command in
        [Command::Retry(None), Command::Cancel { force: true }, Command::Release { lease: lease("a") }]
    {
        let decision = crate::task::decide(None, &command, &context);
        assert_eq!(decision.reply(), Err(&Reject::NotFound));
        assert!(decision.record().is_none() && decision.writes.is_empty());
    }
}

#[test]
fn a_task_past_its_retention_counts_as_absent_and_its_id_is_free() {
    let ended = || task().scheduled().claim("a").complete("a");
    let last_moment = ended().at("29d 23h 59m 59s 999ms");
    last_moment.complete("a").replies(DUPLICATE).schedule_again().replies(EXISTED).changes_nothing();
    for scene in [
        ended().at("30d").complete("a"),
        ended().at("30d").claim("b"),
        ended().at("30d").cancel(),
        ended().at("30d").tick(),
        task().scheduled().cancel().at("30d").retry(),
    ] {
        scene.refuses(Reject::NotFound).changes_nothing();
    }
    let scene = ended().at("30d").schedule_something_else().replies(NEW).is(Status::Pending);
    assert_eq!(scene.record().version, 1);
    assert_eq!(scene.record().created_at, t("30d"));
}

// ---- repetition

#[test]
fn a_completion_may_be_repeated_and_the_first_result_counts() {
    let scene = task().scheduled().claim("a").complete_with("a", "1");
    let first = scene.record().clone();
    let scene = scene.at("1h").complete_with("a", "2").replies(DUPLICATE).changes_nothing().sends_nothing();
    assert_eq!(scene.record(), &first);
}

#[test]
fn a_failure_may_be_reported_again_while_the_task_is_open() {
    let failed = || task().attempts(3).scheduled().claim("a").fail("a");
    failed().fail("a").replies(DUPLICATE).changes_nothing();
    failed().claim("b").fail("a").replies(DUPLICATE).changes_nothing();
    failed().claim("b").complete("b").fail("a").replies(DUPLICATE).changes_nothing();
}

#[test]
fn a_release_may_be_repeated() {
    let released = || task().scheduled().claim("a").release("a");
    released().release("a").replies(DUPLICATE).changes_nothing();
    released().claim("b").release("a").replies(DUPLICATE).changes_nothing();
    released().claim("b").complete("b").release("a").replies(DUPLICATE).changes_nothing();
}

#[test]
fn a_claim_repeated_with_its_own_lease_is_granted_without_a_write() {
    task().scheduled().claim("a").claim("a").replies(CLAIMED).changes_nothing().on_attempt(1);
}

#[test]
fn another_kind_of_report_from_a_closed_attempt_is_refused() {
    let completed = Reject::AlreadyTerminal { status: Status::Completed };
    let done = || task().scheduled().claim("a").complete("a");
    done().fail("a").refuses(completed.clone()).changes_nothing();
    done().release("a").refuses(completed.clone()).changes_nothing();
    done().heartbeat("a").refuses(completed).changes_nothing();
    let waiting = || task().attempts(2).scheduled().claim("a").fail("a");
    waiting().complete("a").refuses(Reject::LeaseLost).changes_nothing();
    waiting().release("a").refuses(Reject::LeaseLost).changes_nothing();
    waiting().heartbeat("a").refuses(Reject::LeaseLost).changes_nothing();
}

#[test]
fn an_unknown_lease_is_refused_and_on_an_ended_task_with_its_status() {
    let running = || task().scheduled().claim("a");
    for scene in
        [running().complete("x"), running().fail("x"), running().release("x"), running().heartbeat("x")]
    {
        scene.refuses(Reject::LeaseLost).changes_nothing().is(Status::Running);
    }
    let done = || running().complete("a");
    for scene in [done().complete("x"), done().fail("x"), done().release("x"), done().heartbeat("x")] {
        scene.refuses(Reject::AlreadyTerminal { status: Status::Completed }).changes_nothing();
    }
}

#[test]
fn a_late_result_is_refused_because_the_deadline_has_passed() {
    let too_late = Reject::DeadlineExceeded { kind: TimeoutKind::ScheduleToClose };
    let ended = || task().deadline("1m").scheduled().claim("a").at("2m").tick().is(Status::TimedOut);
    ended().complete("a").refuses(too_late.clone()).changes_nothing();
    ended().fail("a").refuses(too_late.clone()).changes_nothing();
    ended().heartbeat("a").refuses(too_late).changes_nothing();
}

#[test]
fn a_late_result_of_an_attempt_that_timed_out_is_refused_while_the_task_is_open() {
    let too_late = Reject::DeadlineExceeded { kind: TimeoutKind::StartToClose };
    let retried =
        || task().attempts(3).close_within("10s", OnTimeout::Retry).scheduled().claim("a").at("10s").tick();
    retried().complete("a").refuses(too_late.clone()).is(Status::Pending);
    retried().claim("b").complete("a").refuses(too_late).is(Status::Running);
}

// ---- scheduling again

#[test]
fn the_same_request_again_finds_the_task_and_sends_its_hint_again_until_it_is_claimed() {
    task()
        .scheduled()
        .at("5m")
        .schedule_again()
        .replies(EXISTED)
        .changes_nothing()
        .sends_hint_for("0s")
        .claim("a")
        .schedule_again()
        .replies(EXISTED)
        .changes_nothing()
        .sends_nothing()
        .release("a")
        .schedule_again()
        .replies(EXISTED)
        .sends_nothing();
}

#[test]
fn the_same_request_for_an_ended_or_revived_task_sends_nothing() {
    let cancelled = task().scheduled().cancel().schedule_again().replies(EXISTED).sends_nothing();
    cancelled.retry().is(Status::Pending).schedule_again().replies(EXISTED).sends_nothing();
}

#[test]
fn another_request_under_the_same_id_is_refused() {
    task()
        .scheduled()
        .schedule_something_else()
        .refuses(Reject::IdConflict { by: TakenBy::Task, since: t("0s") })
        .changes_nothing()
        .sends_nothing();
}

#[test]
fn a_repeated_creation_is_recognised_by_its_incarnation_and_counts_as_new() {
    task().scheduled().schedule_repeated().replies(NEW).changes_nothing().sends_hint_for("0s");
    task()
        .scheduled()
        .claim("a")
        .complete("a")
        .schedule_repeated()
        .replies(NEW)
        .changes_nothing()
        .sends_nothing();
}

#[test]
fn an_idempotency_key_is_stored_with_the_task_for_longer_than_the_task_can_be_open() {
    let held = |scene: &Scene| -> (KeyRecord, HeldKey) {
        let [Write::Put { before: None, after: Record::Key(record), .. }, Write::Put { .. }] =
            &scene.decision().writes[..]
        else {
            panic!("{:#?}", scene.decision().writes)
        };
        ((**record).clone(), scene.record().key.unwrap())
    };
    for plan in [task(), task().deadline("300d"), task().starting_in("300d"), task().deadline("1s")] {
        let scene = plan.keyed().scheduled();
        let (record, key) = held(&scene);
        assert_eq!(
            (record.owner, record.incarnation),
            (scene.record().id.clone().into(), scene.record().incarnation)
        );
        assert_eq!((record.key, record.expires_at), (key.digest, key.expires_at));
        let task = scene.record();
        let open_until = task.deadline_at.unwrap_or(t("1d")).max(scene.pending().available_at);
        assert!(key.expires_at > open_until, "{key:?} while it can be open until {open_until:?}");
    }
}

#[test]
fn a_start_more_than_a_year_ahead_is_refused() {
    let limits = Limits::default();
    let nonce = crate::id::Nonce::from_bytes([0; 8]);
    let context = crate::command::Context { now: t("0s"), nonce, limits: &limits, by: None };
    let plan = task().starting_in("365d 1ms");
    let decision = crate::task::decide(None, &Command::Schedule(Box::new(plan.schedule)), &context);
    assert_eq!(decision.reply().unwrap_err().code(), "invalid_request");
    assert!(decision.writes.is_empty() && decision.effects.is_empty());
    task().starting_in("365d").scheduled().replies(NEW);
}

// ---- texts

#[test]
fn payload_texts_are_kept_verbatim() {
    let odd = r#"{ "b":1.50, "a" : 12345678901234567890123, "a": "\u00e9" }"#;
    let scene =
        task().input(odd).labels(r#"{"z":"1","a":"2"}"#).scheduled().claim("a").complete_with("a", odd);
    let inline = |text| Some(crate::payload::Payload::Inline(json(text)));
    assert_eq!(scene.record().input, inline(odd));
    assert_eq!(scene.record().labels, inline(r#"{"z":"1","a":"2"}"#));
    assert_eq!(*scene.outcome(), Outcome::Completed { output: inline(odd) });
    let stored = serde_json::to_string(scene.record()).unwrap();
    assert_eq!(&serde_json::from_str::<crate::task::Task>(&stored).unwrap(), scene.record());
}

#[test]
fn a_repeated_failure_or_release_sends_the_hint_again_until_the_task_is_claimed() {
    let failed = || task().attempts(3).delay("5s").scheduled().claim("a").fail("a");
    failed().fail("a").replies(DUPLICATE).changes_nothing().sends_hint_for("5s");
    failed().at("5s").claim("b").fail("a").replies(DUPLICATE).sends_nothing();
    failed().at("5s").claim("b").fail("b").fail("a").replies(DUPLICATE).sends_nothing();
    let released = || task().scheduled().claim("a").release("a");
    released().release("a").replies(DUPLICATE).changes_nothing().sends_hint_for("0s");
    released().claim("b").release("a").replies(DUPLICATE).sends_nothing();
    task().scheduled().claim("a").fail("a").fail("a").replies(DUPLICATE).sends_nothing();
}

#[test]
fn an_operators_retry_can_be_repeated_until_the_task_changes() {
    let revived = || task().scheduled().claim("a").fail("a").at("9s").retry();
    revived().at("10s").retry().replies(Reply::Revived).changes_nothing().sends_hint_for("9s");
    revived().claim("b").retry().refuses(Reject::NotTerminal { status: Status::Running });
    let again = revived().at("10s").claim("b").release("b");
    again.at("20s").retry().refuses(Reject::NotTerminal { status: Status::Pending });
}

#[test]
fn a_call_delayed_for_longer_than_the_retention_does_not_create_its_task_twice() {
    let scene = task().scheduled().claim("a").complete("a").at("31d");
    assert!(scene.record().is_gone(t("31d")));
    let scene = scene.schedule_repeated().changes_nothing().replies(Reply::Scheduled { existed: false });
    // Another request creates another task.
    let scene = scene.schedule_again().replies(Reply::Scheduled { existed: false });
    assert_eq!((scene.record().version, scene.record().status()), (1, Status::Pending));
}
