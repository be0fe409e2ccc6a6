//! Details of heartbeats in the record's byte budget: once accepted, every later attempt gets them.

use crate::decision::DueReply;
use crate::duration::Millis;
use crate::error::Reject;
use crate::gate::Places;
use crate::limits::Limits;
use crate::payload::Payload;
use crate::task::command::{Command, Heartbeat, SignOfLife};
use crate::task::decide::tests::fixture::{Scene, blob, json, lease, span, t, task};
use crate::task::decision::Reply;
use crate::task::{Outcome, Status};

use super::{aged, claim, complete, fail, largest, largest_step, text};

fn heartbeat(scene: Scene, name: &str, details: usize) -> Scene {
    heartbeat_until(scene, name, details, None)
}

/// The same of a task that has places, for another minute.
pub(super) fn heartbeat_with_places(scene: Scene, name: &str, details: usize) -> Scene {
    let (since, until) = (scene.now(), scene.now().plus(span("1m")));
    let version = scene.record().version;
    heartbeat_until(scene, name, details, Some(Places { since, until, version }))
}

fn heartbeat_until(scene: Scene, name: &str, details: usize, places: Option<Places>) -> Scene {
    scene.run(&Command::Heartbeat(Heartbeat {
        lease: lease(name),
        sign_of: SignOfLife::Both,
        progress: Some(1.0 / 3.0),
        details: Some(json(&text(details))),
        blob_id: blob("details"),
        places,
    }))
}

/// The length of the details, and whether they are in the record.
pub(super) fn details(scene: &Scene) -> Option<(usize, bool)> {
    scene.record().details.as_ref().map(|details| match details {
        Payload::Inline(json) => (json.len(), true),
        Payload::Blob(at) => (at.bytes as usize, false),
    })
}

/// Fails three attempts with long messages, loses a worker, and claims again.
fn later_attempts(mut scene: Scene, name: &str) -> Scene {
    let mut current = name.to_owned();
    for next in ["e", "f", "g"] {
        scene = fail(scene, &current, &"m".repeat(10_000), true).is(Status::Pending);
        let available_at = scene.pending().available_at;
        scene = claim(scene.at_instant(available_at), next);
        current = next.to_owned();
    }
    let lost = scene.running().lease_expires_at;
    claim(scene.at_instant(lost), "h").is(Status::Running)
}

#[test]
fn details_of_any_size_are_there_in_every_later_attempt() {
    let mut inline = vec![];
    for input in [2, 100, 300, 700] {
        for bytes in (2..=512).step_by(34).chain([512]) {
            let plan = task().attempts(-1).input(&text(input)).labels(&text(60));
            let scene = heartbeat(claim(aged(plan), "a"), "a", bytes);
            let kept = details(&scene);
            let in_record = kept == Some((bytes, true));
            assert!(in_record || kept == Some((bytes, false)), "{input} {bytes}: {kept:?}");
            assert_eq!(scene.decision().new_items.len(), usize::from(!in_record));
            let scene = later_attempts(scene, "a");
            assert_eq!(details(&scene), kept, "{input} {bytes}");
            assert_eq!(details(&scene.release("h")), kept);
            inline.push(in_record);
        }
    }
    assert!(inline.contains(&true) && inline.contains(&false));
}

#[test]
fn details_of_a_small_task_cost_no_item_of_their_own() {
    let scene = heartbeat(claim(task().input(&text(60)).scheduled(), "a"), "a", 512);
    assert_eq!((details(&scene), scene.decision().new_items.len()), (Some((512, true)), 0));
    assert!(matches!(scene.record().input, Some(Payload::Inline(_))));
}

#[test]
fn where_everything_else_is_at_its_maximum_the_refusal_names_the_space() {
    for begin in [|| aged(largest()), || aged(largest_step())] {
        let scene = claim(begin(), "a");
        let refused = heartbeat(scene, "a", 512);
        if let Err(reject) = refused.decision().reply() {
            assert!(
                matches!(reject, Reject::LimitExceeded { limit: "details", value: 512, .. }),
                "{reject:?}"
            );
            assert_eq!(refused.decision().writes, []);
        }
        later_attempts(refused, "a");
    }
}

#[test]
fn a_result_needs_no_blob_because_of_details() {
    let running = heartbeat(claim(task().scheduled(), "a"), "a", 512);
    let scene = complete(running, "a", Some(json(&text(300))));
    assert!(matches!(scene.outcome(), Outcome::Completed { output: Some(Payload::Inline(_)) }));
    assert_eq!((details(&scene), scene.decision().new_items.len()), (None, 0));
}

#[test]
fn a_failed_tasks_details_are_there_when_an_operator_revives_it() {
    let running = heartbeat(claim(task().scheduled(), "a"), "a", 300);
    let scene = fail(running, "a", "no", false).is(Status::Failed).retry();
    assert_eq!(details(&claim(scene, "b")), Some((300, true)));
}

#[test]
fn details_beside_the_record_are_kept_when_an_operator_revives_it_after_its_deadline() {
    let plan = task().attempts(-1).delay("1h").deadline("1h").input(&text(350));
    let scene = plan.scheduled().claim_for("a", "2h").details("a", &text(512));
    assert_eq!(details(&scene), Some((512, false)));
    let scene = scene.at("1h").tick().is(Status::TimedOut).at("2h").retry().is(Status::Pending);
    let kept_until = scene.record().blobs().map(|at| at.expires_at).min().unwrap();
    let a_week_and_its_retention = Millis::from_days(7).saturating_add(Limits::default().retention);
    assert!(kept_until > t("2h").plus(a_week_and_its_retention), "{kept_until:?}");
    // Its second attempt is further away than a queue can delay a message: the tick sends the hint.
    let scene = scene.claim("b").fail("b").sends_no_hint().next_tick().next_tick();
    scene.replies(Reply::Due(DueReply::Dispatched)).sends_hint_for("3h");
}
