//! Lost workers: the cause is only known if the attempt was alone in its process.

use crate::task::decision::{ClaimReply, Reply};
use crate::task::{Outcome, Status};
use crate::timeout::OnTimeout;

use super::fixture::{Scene, t, task};
use super::life::CLAIMED;

const SUSPECT: Reply = Reply::Claim(ClaimReply::Suspect);

/// An attempt that was lost with other attempts of its process.
fn lost_among_others() -> Scene {
    task().scheduled().claim_among_others("a").replies(CLAIMED).at("1m")
}

#[test]
fn a_loss_with_other_attempts_is_not_counted_and_the_next_attempt_runs_alone() {
    let scene = lost_among_others().claim_among_others("b").replies(SUSPECT).changes_nothing();
    let scene = scene.claim("c").replies(CLAIMED).on_attempt(1);
    assert_eq!((scene.record().losses, scene.running().shared), (0, false));
    scene.complete("c").is(Status::Completed);
}

#[test]
fn a_loss_alone_is_counted_until_the_task_is_poisoned() {
    let mut scene = lost_among_others();
    for (name, losses) in [("b", 0), ("c", 1), ("d", 2), ("e", 3)] {
        scene = scene.claim_among_others("z").replies(SUSPECT).claim(name).replies(CLAIMED);
        assert_eq!(scene.record().losses, losses);
        let over = scene.running().lease_expires_at;
        scene = scene.at_instant(over);
    }
    // No attempt is started by this claim, so any worker may make it.
    let scene = scene.claim_among_others("f").replies(Reply::Claim(ClaimReply::Stale)).is(Status::Failed);
    assert!(matches!(scene.outcome(), Outcome::Failed { error, .. } if error.code == "poisoned"));
}

#[test]
fn an_attempt_that_ends_otherwise_clears_the_suspicion() {
    let scene = task().attempts(5).scheduled().claim_among_others("a").at("1m").claim("b").fail("b");
    scene.claim_among_others("c").replies(CLAIMED);
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
