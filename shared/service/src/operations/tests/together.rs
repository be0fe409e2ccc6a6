//! A record that changes between the moment an operation reads it and the moment it writes it.

use tickover_core::execution::command::{Command, Rerun};

use super::*;
use crate::drive::Known;

#[tokio::test]
async fn an_execution_that_fails_again_between_reading_and_writing_is_left_alone() {
    let scene = Scene::failed_executions(&names(1)).await;
    let (asked_at, read) = (scene.now(), scene.execution("r0000").await);
    scene.advance(1);
    scene.service.restart(&id("r0000")).await.unwrap();
    scene.fail_turns().await;
    let now = scene.execution("r0000").await;
    let again = || Command::Restart(Rerun::default());
    let restart = |ended_by| scene.service.operated(again()).if_ended_by(ended_by);
    let known = || Known::Record(Box::new(read.clone()));
    let refused = scene.service.drive(&id("r0000"), known(), &restart(Some(asked_at))).await.unwrap();
    assert_eq!(refused.outcome.unwrap_err().reject, Reject::EndedLater);
    assert_eq!(scene.execution("r0000").await, now);
    // Without a bound, the same call starts a run.
    scene.service.drive(&id("r0000"), known(), &restart(None)).await.unwrap().outcome.unwrap();
    assert_eq!(scene.execution("r0000").await.run, 3);
}

#[tokio::test]
async fn a_task_that_fails_again_between_reading_and_writing_is_left_alone() {
    let scene = Scene::failed_tasks(&names(1)).await;
    let (asked_at, read) = (scene.now(), scene.task("r0000").await);
    scene.advance(1);
    scene.service.retry(&task_id("r0000")).await.unwrap();
    scene.fail_tasks("again").await;
    let now = scene.task("r0000").await;
    let again = || tickover_core::task::Command::Retry(None);
    let retry = |ended_by| scene.service.operated(again()).if_ended_by(ended_by);
    let known = || Known::Record(Box::new(read.clone()));
    let id = task_id("r0000");
    let refused = scene.service.drive(&id, known(), &retry(Some(asked_at))).await.unwrap();
    assert_eq!(refused.outcome.unwrap_err().reject, Reject::EndedLater);
    assert_eq!(scene.task("r0000").await, now);
    scene.service.drive(&id, known(), &retry(None)).await.unwrap().outcome.unwrap();
    assert_eq!(scene.task("r0000").await.status(), Status::Pending);
}

#[tokio::test]
async fn one_that_ended_in_the_same_millisecond_is_retried() {
    let scene = Scene::failed_executions(&names(1)).await;
    let ended_at = scene.execution("r0000").await.closed().unwrap().ended_at;
    let by = async |by| scene.service.restart_of(&id("r0000"), Some(by)).await;
    let before = Timestamp::from_millis(ended_at.as_millis() - 1);
    assert_eq!(refused(by(before).await), Reject::EndedLater);
    assert_eq!(by(ended_at).await.unwrap().run, 2);
}
