//! Tasks of a paused queue: their hints are deleted, and sent again when the queue is resumed.

use crate::decision::DueReply;
use crate::due::DueKind;
use crate::queue::QueueView;
use crate::task::Status;
use crate::task::decision::{ClaimReply, Reply};
use crate::timeout::OnTimeout;

use super::fixture::{EMPTY, t, task};
use super::life::CLAIMED;

const PARKED: Reply = Reply::Claim(ClaimReply::Parked);
const UNPARKED: Reply = Reply::Unparked { was_parked: true };
const PAUSED: QueueView = QueueView { paused: true, ..EMPTY };

#[test]
fn a_parked_task_gets_one_hint_when_its_queue_is_resumed_and_no_more() {
    let scene = task().scheduled().at("1m").claim_paused("a").replies(PARKED).is(Status::Pending);
    // Its due slot stays: parking costs one write.
    let scene = scene.sends_nothing().due("10m", DueKind::Backstop);
    let scene = scene.claim_paused("b").replies(PARKED).changes_nothing();
    let scene = scene.schedule_again().sends_nothing();
    let scene = scene.at("2m").unpark().replies(UNPARKED).sends_hint_for("0s");
    scene
        .unpark()
        .replies(Reply::Unparked { was_parked: false })
        .changes_nothing()
        .claim("c")
        .replies(CLAIMED);
}

#[test]
fn the_tick_rarely_probes_parked_tasks_and_sends_a_missing_hint() {
    let scene = task().scheduled().claim_paused("a").next_tick_seeing(PAUSED);
    let scene = scene.replies(Reply::Due(DueReply::Rearmed)).sends_nothing().due("6h 10m", DueKind::Backstop);
    let scene = scene.next_tick_seeing(PAUSED).sends_nothing().due("12h 10m", DueKind::Backstop);
    // In an early slot it stays when it is parked again or unparked.
    let early = scene.next_tick_seeing(EMPTY).replies(Reply::Due(DueReply::Dispatched));
    early.sends_hint_for("0s").due("12h 20m", DueKind::Backstop);
}

#[test]
fn deadlines_of_parked_tasks_are_kept() {
    let plan = || task().deadline("1h").start_within("5m", OnTimeout::Retry).attempts(2);
    let parked = plan().scheduled().claim_paused("a");
    // The next attempt has a hint of its own, because the previous hint was deleted.
    let again = parked.at("5m").tick_seeing(PAUSED).is(Status::Pending).sends_hint_for("5m");
    again.claim_paused("b").replies(PARKED).at("10m").tick_seeing(PAUSED).is(Status::TimedOut);
}

#[test]
fn a_worker_lost_while_its_queue_is_paused_is_replaced_when_that_is_resumed() {
    let scene = task().scheduled().claim("a").claim_paused("b").replies(Reply::Claim(ClaimReply::Leased));
    let scene = scene.at("2m").claim_paused("b").replies(PARKED).is(Status::Running);
    let scene = scene.at("3m").unpark().replies(UNPARKED).sends_hint_for("1m").claim("c").replies(CLAIMED);
    assert_eq!(scene.record().losses, 1);
}

// ---- its execution is paused

#[test]
fn a_step_of_a_paused_execution_is_parked_without_a_deadline_and_its_time_starts_afresh_at_the_resume() {
    let plan = || task().step().deadline("10m").start_within("5m", OnTimeout::Terminal).attempts(2);
    let failed = plan().scheduled().claim("a").at("1m").fail("a").is(Status::Pending);
    let scene = failed.at("2m").claim_held("b").replies(PARKED).sends_nothing();
    assert_eq!((scene.record().deadline_at, scene.record().attempt), (None, 1));
    let scene = scene.at("3h").tick().is(Status::Pending).claim_held("c").replies(PARKED);
    let scene = scene.at("4h").unpark().replies(UNPARKED);
    assert_eq!(scene.record().deadline_at, Some(t("4h 10m")));
    let late = scene.at("4h 5m").tick().is(Status::TimedOut);
    assert_eq!(late.record().attempt, 2);
}

/// The turn that has started it may have been lost before it was recorded. So the resume doesn't find it.
#[test]
fn a_step_on_hold_that_its_execution_asks_for_once_more_gets_its_hint_and_its_time() {
    let held = || task().step().deadline("10m").attempts(2).scheduled().claim("a").fail("a").claim_held("b");
    let scene = held().replies(PARKED).at("1h").schedule_again().sends_hint_for("0s");
    assert_eq!(scene.record().deadline_at, Some(t("1h 10m")));
    scene.schedule_again().sends_nothing().claim("c").replies(CLAIMED);
}

#[test]
fn a_held_step_that_is_claimed_without_an_unpark_has_its_time_afresh_too() {
    let held = || task().step().deadline("10m").scheduled().at("1m").claim_held("a");
    let scene = held().at("1h").claim("b").replies(CLAIMED);
    assert_eq!(scene.record().deadline_at, Some(t("1h 10m")));
    // A step without a deadline gets none.
    assert_eq!(task().step().scheduled().claim_held("a").unpark().record().deadline_at, None);
    held().cancel().is(Status::Cancelled);
}

#[test]
fn a_timeout_that_passes_while_a_step_of_a_paused_execution_waits_stops_its_time_and_ends_nothing() {
    for is_of_start in [false, true] {
        let plan = || {
            if is_of_start { task().start_within("10m", OnTimeout::Terminal) } else { task().deadline("10m") }
        };
        let expiring = || plan().step().scheduled().at("10m");
        for scene in [expiring().hold(), expiring().claim_held("a").replies(PARKED)] {
            let scene = scene.is(Status::Pending).sends_nothing();
            assert_eq!((scene.record().deadline_at, scene.record().attempt), (None, 0));
            let scene = scene.at("12m").claim_held("b").changes_nothing();
            let scene = scene.at("1h").unpark().replies(UNPARKED).sends_hint_for("0s");
            scene.at("1h 9m").tick().is(Status::Pending).at("1h 10m").tick().is(Status::TimedOut);
        }
    }
}

#[test]
fn the_tick_leaves_a_step_on_hold_until_the_resume() {
    let scene = task().step().deadline("10m").scheduled().at("10m").hold().due("6h 10m", DueKind::Backstop);
    let scene = scene.at("6h 10m").hold().replies(Reply::Due(DueReply::Rearmed)).sends_nothing();
    assert!(scene.due("12h 10m", DueKind::Backstop).record().is_held());
}

#[test]
fn a_step_that_is_put_on_hold_before_its_timeout_stays_in_its_due_slot_and_the_tick_unparks_it() {
    let waiting = task().step().deadline("10m").scheduled().at("9m");
    let due = waiting.record().due;
    let held = waiting.hold().sends_nothing().hold().changes_nothing();
    assert!(held.record().is_held() && held.record().due == due);
    // Its execution was resumed by a process that died then.
    let scene = held.at("10m").tick().replies(Reply::Due(DueReply::Dispatched)).sends_hint_for("0s");
    assert_eq!(scene.record().deadline_at, Some(t("20m")));
    scene.claim("a").replies(CLAIMED);
}

#[test]
fn a_retry_on_hold_has_its_whole_time_and_its_hint_comes_for_its_start() {
    let failed = |delay| {
        let plan = task().step().deadline("3h").start_within("5m", OnTimeout::Terminal);
        plan.attempts(2).delay(delay).scheduled().claim("a").at("1m").fail("a").is(Status::Pending)
    };
    let scene = failed("10m").at("5m").hold().sends_nothing().at("6m").unpark().sends_hint_for("11m");
    assert_eq!(scene.record().deadline_at, Some(t("3h 6m")));
    assert_eq!(scene.pending().schedule_to_start_at, Some(t("16m")));
    // The tick sends the hint of a later start, also if it finds the step on hold.
    let held = || failed("2h").at("5m").hold().sends_nothing();
    let scene = held().at("6m").unpark().sends_no_hint().at("1h 58m").tick().sends_hint_for("2h 1m");
    assert_eq!(scene.record().deadline_at, Some(t("3h 6m")));
    let scene = held().at("1h 58m").tick().sends_no_hint();
    scene.at("1h 59m").unpark().sends_hint_for("2h 1m").at("2h 1m").claim("b").replies(CLAIMED);
}

#[test]
fn only_a_step_that_waits_with_a_timeout_of_its_own_is_put_on_hold() {
    for scene in [
        task().deadline("10m").scheduled().at("11m"),
        task().step().scheduled().at("1h"),
        task().step().deadline("10m").scheduled().claim("a").at("11m"),
        task().step().deadline("10m").scheduled().at("11m").tick().is(Status::TimedOut),
    ] {
        scene.hold().changes_nothing();
    }
    let scene = task().step().deadline("10m").scheduled().at("9m").hold().sends_nothing();
    let scene = scene.at("1h").unpark().sends_hint_for("0s");
    assert_eq!(scene.record().deadline_at, Some(t("1h 10m")));
}

#[test]
fn a_worker_lost_while_its_execution_is_paused_is_replaced_after_the_resume() {
    let scene = task().step().deadline("10m").scheduled().claim("a").at("2m").claim_held("b").replies(PARKED);
    let scene = scene.is(Status::Pending).sends_nothing().at("1h").unpark().sends_hint_for("2m");
    assert_eq!((scene.record().losses, scene.record().deadline_at), (1, Some(t("1h 10m"))));
    scene.claim("c").replies(CLAIMED);
}

#[test]
fn a_pause_of_the_queue_alone_holds_no_deadline() {
    let scene = task().step().deadline("10m").scheduled().claim_paused("a").at("1m").unpark();
    assert_eq!(scene.record().deadline_at, Some(t("10m")));
}

#[test]
fn a_task_that_is_claimed_or_ends_is_no_longer_parked() {
    let parked = || task().scheduled().claim_paused("a");
    assert!(parked().record().parked.is_paused());
    for scene in [parked().claim("b"), parked().cancel(), parked().claim("b").release("b")] {
        assert!(scene.record().parked.is_no());
    }
}
