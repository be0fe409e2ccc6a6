//! Lost workers: the cause is only known if the attempt was alone in its process.

use crate::task::decision::{ClaimReply, Reply};
use crate::task::{Outcome, Status};
use crate::timeout::OnTimeout;

use super::fixture::{Scene, t, task};
use super::life::CLAIMED;

const SUSPECT: Reply = Reply::Claim(ClaimReply::Suspect);

/// An attempt that was lost with other attempts of its process, twice in a row.
fn lost_twice_among_others() -> Scene {
    let scene = task().scheduled().claim_among_others("a").replies(CLAIMED).at("1m");
    scene.claim_among_others("b").replies(CLAIMED).at("2m")
}

#[test]
fn the_first_loss_with_other_attempts_says_nothing_and_after_the_second_the_task_runs_apart() {
    let scene = task().scheduled().claim_among_others("a").at("1m").claim_among_others("b").replies(CLAIMED);
    assert_eq!((scene.record().losses, scene.running().shared), (0, true));
    let scene = lost_twice_among_others().claim_among_others("c").replies(SUSPECT).changes_nothing();
    let scene = scene.claim("d").replies(CLAIMED).on_attempt(1);
    assert_eq!((scene.record().losses, scene.running().shared), (0, false));
    scene.complete("d").is(Status::Completed);
    // One that ran alone may well be the cause.
    task().scheduled().claim("a").at("1m").claim_among_others("b").replies(SUSPECT);
}

#[test]
fn a_loss_alone_is_counted_until_the_task_is_poisoned() {
    let mut scene = lost_twice_among_others();
    for (name, losses) in [("c", 0), ("d", 1), ("e", 2), ("f", 3)] {
        scene = scene.claim_among_others("z").replies(SUSPECT).claim(name).replies(CLAIMED);
        assert_eq!(scene.record().losses, losses);
        let over = scene.running().lease_expires_at;
        scene = scene.at_instant(over);
    }
    // No attempt is started by this claim, so any worker may make it.
    let scene = scene.claim_among_others("g").replies(Reply::Claim(ClaimReply::Stale)).is(Status::Failed);
    assert!(matches!(scene.outcome(), Outcome::Failed { error, .. } if error.code == "poisoned"));
}

#[test]
fn an_attempt_that_ends_otherwise_clears_the_suspicion() {
    let scene = task().attempts(5).scheduled().claim("a").at("1m").claim("b").fail("b");
    let scene = scene.claim_among_others("c").replies(CLAIMED).at("3m");
    scene.claim_among_others("d").replies(CLAIMED);
}

#[test]
fn a_release_does_not_restart_schedule_to_start() {
    let mut scene = task().start_within("5m", OnTimeout::Terminal).scheduled();
    for minute in 1..5 {
        // A minute in which a worker has it doesn't count, but a minute in which it waits does.
        let name = minute.to_string();
        scene = scene.at(&format!("{}m", 2 * minute - 1)).claim(&name).at(&format!("{}m", 2 * minute));
        scene = scene.release(&name).is(Status::Pending);
        assert_eq!(scene.pending().schedule_to_start_at, Some(t(&format!("{}m", minute + 5))));
    }
    let scene = scene.at("8m 59s 999ms").claim("f").replies(CLAIMED).release("f");
    scene.at("9m").claim("g").is(Status::TimedOut);
}
