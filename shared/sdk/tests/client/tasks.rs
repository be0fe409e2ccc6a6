//! Tasks as a user's program uses them, connected directly to a system in memory.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::future::IntoFuture as _;
use tickover::client::{
    AttemptOutcome, ClientError, Ended, ScheduleTask, TaskError, TaskHandle, TaskId, TaskOutcome, TaskStatus,
    TimeoutKind,
};
use tickover::prelude::*;
use tickover::test::{BEGINNING, TestEnv};
use tickover::{Millis, RetryPolicy};
use tickover_core::retry::MaxAttempts;
use tickover_service::claim::ClaimRequest;

#[tickover::step(retry = "fixed(1, 1s)", queue = "mail")]
async fn deliver(letters: u32) -> Result<String, Failure> {
    if letters == 13 { Err(Failure::new("refused", "not today")) } else { Ok(format!("{letters} letters")) }
}

fn env() -> TestEnv {
    TestEnv::new().step::<deliver>()
}

async fn schedule<O: Send + 'static>(env: &TestEnv, task: ScheduleTask<O>) -> TaskHandle<O> {
    env.run(task.into_future()).await.unwrap().unwrap()
}

async fn result<O: serde::de::DeserializeOwned>(env: &TestEnv, task: &TaskHandle<O>) -> Result<O, TaskError> {
    env.run(task.result()).await.unwrap()
}

#[tokio::test]
async fn a_step_is_scheduled_as_a_task_with_its_options_and_returns_its_result() {
    let env = env();
    let task = schedule(&env, env.client().schedule(deliver(3)).id("mail-3").label("team", "blue")).await;
    let found = task.describe().await.unwrap();
    assert_eq!((found.queue.as_str(), found.kind.as_str()), ("mail", "deliver"));
    assert_eq!((found.status.as_str(), found.attempt, i64::from(found.max_attempts.0)), ("pending", 0, 2));
    assert_eq!(found.input.unwrap().as_str(), "3");
    assert_eq!(found.labels.unwrap().as_str(), r#"{"team":"blue"}"#);
    assert_eq!((*found.created_at, found.next.what.as_str()), (BEGINNING, "waits_for_worker"));

    assert_eq!(result(&env, &task).await.unwrap(), "3 letters");
    let found = task.describe().await.unwrap();
    assert!(!found.is_live());
    assert_eq!(found.attempts[0].outcome, Some(AttemptOutcome::Completed.into()));
    let other = env.client().task_handle::<u32>("mail-3").unwrap();
    let error = result(&env, &other).await.unwrap_err();
    assert!(error.to_string().starts_with("the result can't be read as u32: invalid type"), "{error}");
    let nobody = env.client().task_handle::<()>("nobody").unwrap();
    let Err(TaskError::Client(error)) = result(&env, &nobody).await else { panic!("there is none") };
    assert!(error.is_not_found(), "{error}");
}

#[tokio::test]
async fn a_task_of_any_kind_is_found_again_by_its_id_or_its_key() {
    let env = TestEnv::new().answer("add", |(one, other): (u32, u32)| Ok(one + other));
    let add = |other: u32| env.client().task::<u32>("add", (1, other));
    let task = schedule(&env, add(2).id("sum")).await;
    assert_eq!(schedule(&env, add(2).id("sum")).await.id(), task.id());
    assert_eq!(add(3).id("sum").await.unwrap_err().code(), Some("id_conflict"));
    let keyed = schedule(&env, add(4).idempotency_key("k")).await;
    assert_eq!(schedule(&env, add(4).idempotency_key("k")).await.id(), keyed.id());
    assert_ne!(schedule(&env, add(4)).await.id(), keyed.id());
    assert_eq!((result(&env, &task).await, result(&env, &keyed).await), (Ok(3), Ok(5)));
}

#[tokio::test]
async fn invalid_requests_fail_before_anything_is_sent() {
    let env = env();
    let task = || env.client().task::<()>("email", 1);
    let closure = step("small", || async { Ok::<_, Failure>(()) });
    for (task, field) in [
        (env.client().task("no spaces", 1), "kind"),
        (env.client().schedule(closure), "step"),
        (task().queue("no spaces"), "queue"),
        (task().id("no spaces"), "id"),
        (task().delay("soon"), "delay"),
        (task().delay("1s").run_at(BEGINNING), "run_at"),
        (task().retry("often"), "retry"),
        (task().timeout("0s"), "timeout"),
        (task().timeout("366d"), "timeout"),
        (task().timeout("1s").attempt_timeout("1s").scope(Scope::PerAttempt), "timeout"),
        (task().schedule_to_start_timeout("0s"), "schedule_to_start_timeout"),
        (task().attempt_timeout("0s"), "attempt_timeout"),
        (task().heartbeat("0s"), "heartbeat"),
        // The error names the first problem.
        (task().delay("soon").id("no spaces"), "delay"),
    ] {
        let Err(ClientError::Invalid { field: found, .. }) = task.await else { panic!("{field}") };
        assert_eq!(found, field);
    }
    for limit in [0, 501] {
        let refused = env.client().list_tasks().limit(limit).await.unwrap_err();
        assert!(refused.to_string().starts_with("limit: "), "{refused}");
    }
    assert_eq!(env.writes(), 0);
}

#[tokio::test]
async fn each_outcome_without_a_result_is_a_different_error() {
    let env = env();
    let failed = schedule(&env, env.client().schedule(deliver(13))).await;
    let refused = Failure::new("refused", "not today");
    assert_eq!(result(&env, &failed).await, Err(TaskError::Failed(refused.clone())));
    let attempts = failed.describe().await.unwrap().attempts;
    let error = attempts[1].error.as_ref().unwrap();
    assert_eq!((attempts.len(), &*error.code, &*error.message), (2, "refused", "not today"));

    let nobody = || env.client().task::<()>("nobody-serves-it", 1);
    for (task, kind) in [
        (nobody().timeout("1h"), TimeoutKind::ScheduleToClose),
        (nobody().schedule_to_start_timeout("1h"), TimeoutKind::ScheduleToStart),
    ] {
        let late = schedule(&env, task).await;
        let Err(TaskError::TimedOut { kind: found, .. }) = result(&env, &late).await else {
            panic!("{kind:?}")
        };
        assert_eq!(found, kind);
    }
    let late = schedule(&env, nobody().timeout("1h").on_timeout(OnTimeout::Cancel)).await;
    let timeout = Some(TimeoutKind::ScheduleToClose);
    assert_eq!(result(&env, &late).await, Err(TaskError::Cancelled { timeout }));

    let cancelled = schedule(&env, nobody()).await;
    assert_eq!((cancelled.cancel().await, cancelled.cancel().await), (Ok(Ended::Now), Ok(Ended::Before)));
    assert_eq!(result(&env, &cancelled).await, Err(TaskError::Cancelled { timeout: None }));

    let never = RetryPolicy { max_attempts: MaxAttempts::Skip, ..RetryPolicy::none() };
    let skipped = schedule(&env, nobody().retry(never)).await;
    assert_eq!(result(&env, &skipped).await, Err(TaskError::Skipped));
}

/// A worker claims the task and doesn't report.
async fn claim(env: &TestEnv, id: &TaskId) {
    let request = ClaimRequest {
        worker: None,
        max: 1,
        lease: Millis::from_secs(60),
        wait: Millis::ZERO,
        provides: vec![],
    };
    env.service().claim_by_id(id, &request).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_worker_is_asked_to_stop_or_loses_its_task_at_once() {
    let env = env();
    let task = schedule(&env, env.client().task::<()>("nobody-serves-it", 1).heartbeat("1m")).await;
    claim(&env, task.id()).await;
    let running = task.describe().await.unwrap();
    assert_eq!((running.status.as_str(), running.attempts.len()), ("running", 1));
    assert_eq!(running.attempts[0].claimed_at, Some(BEGINNING.into()));
    assert_eq!(running.heartbeat_at, running.next.at);
    assert_eq!(task.cancel().await, Ok(Ended::Requested));
    assert_eq!(task.terminate().await, Ok(Ended::Now));
    assert_eq!(task.describe().await.unwrap().attempts[0].outcome, Some(AttemptOutcome::Cancelled.into()));
}

#[tokio::test]
async fn a_failed_task_can_be_retried_and_a_live_one_cannot() {
    let env = env();
    let task = schedule(&env, env.client().schedule(deliver(13)).timeout("1h")).await;
    assert_eq!(task.retry().await.unwrap_err().code(), Some("not_terminal"));
    assert!(task.describe().await.unwrap().deadline_at.is_some());
    result(&env, &task).await.unwrap_err();
    let revived = task.retry().await.unwrap();
    assert_eq!((revived.status.as_str(), revived.deadline_at), ("pending", None));
    result(&env, &task).await.unwrap_err();
}

#[tokio::test]
async fn a_task_waits_until_it_may_begin_and_between_its_attempts() {
    let env = env();
    let hour = Millis::from_secs(3_600);
    let delayed = schedule(&env, env.client().schedule(deliver(1)).delay("1h")).await;
    let dated = schedule(&env, env.client().schedule(deliver(2)).run_at(BEGINNING.plus(hour))).await;
    for task in [&delayed, &dated] {
        let waiting = task.describe().await.unwrap();
        assert_eq!(
            (waiting.available_at, waiting.next.at),
            (Some(BEGINNING.plus(hour).into()), waiting.available_at)
        );
        assert_eq!(waiting.next.what, "becomes_available");
    }
    assert_eq!(result(&env, &delayed).await.unwrap(), "1 letters");

    let failing = env.client().schedule(deliver(13)).retry("fixed(1, 10m)");
    let failing = schedule(&env, failing).await;
    env.advance("1m").await.unwrap();
    let waiting = failing.describe().await.unwrap();
    assert_eq!((waiting.status.as_str(), TaskOutcome::of(&waiting)), ("pending", Ok(None)));
    assert_eq!(waiting.error.unwrap().code, "refused");
}

#[tokio::test]
async fn a_list_has_the_tasks_of_a_queue_in_a_state_page_by_page() {
    let env = env();
    for letters in [1, 2, 13] {
        schedule(&env, env.client().schedule(deliver(letters)).id(format!("mail-{letters}"))).await;
    }
    schedule(&env, env.client().task::<()>("other", 1).id("other-1")).await;
    let mail = || env.client().list_tasks().queue("mail");
    let (mut ids, mut cursor) = (Vec::new(), None);
    loop {
        let list = mail().limit(2);
        let page = match cursor {
            Some(cursor) => list.cursor(cursor).await.unwrap(),
            None => list.await.unwrap(),
        };
        ids.extend(page.tasks.into_iter().map(|task| task.id.to_string()));
        cursor = page.cursor;
        if cursor.is_none() {
            break;
        }
    }
    ids.sort();
    assert_eq!(ids, ["mail-1", "mail-13", "mail-2"]);
    env.advance("1m").await.unwrap();
    let failed = mail().status(TaskStatus::Failed).status(TaskStatus::TimedOut).await.unwrap();
    let outcome = Ok(Some(TaskOutcome::Failed(Failure::new("refused", "not today"))));
    assert_eq!((failed.tasks.len(), TaskOutcome::of(&failed.tasks[0])), (1, outcome));
    let pending = env.client().list_tasks().status(TaskStatus::Pending).await.unwrap();
    assert_eq!((pending.tasks.len(), pending.tasks[0].id.as_str()), (1, "other-1"));
}
