//! The client as a user's program uses it, connected directly to a system in memory.

use std::future::IntoFuture as _;

use serde::{Deserialize, Serialize};
use tickover::Either;
use tickover::client::{ClientError, DeadlineKind, Ended, ExecutionError, ExecutionStatus, Outcome, Rerun};
use tickover::prelude::*;
use tickover::test::TestEnv;
use tickover_core::duration::Millis;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Job {
    name: String,
    fails: bool,
}

fn job(name: &str) -> Job {
    Job { name: name.to_owned(), fails: false }
}

#[tickover::step(retry = "fixed(1, 1s)")]
async fn check(job: Job) -> Result<String, Failure> {
    if job.fails { Err(Failure::new("broken", "it doesn't work")) } else { Ok(job.name) }
}

/// Its input decides: its step fails, it fails itself, or it completes. Otherwise it waits for an event.
#[tickover::workflow("work", timeout = "10d", run_timeout = "5d")]
async fn work(ctx: Ctx, job: Job) -> Result<String> {
    if job.name == "refused" {
        return Err(Error::new("refused", "not today"));
    }
    let name = ctx.step(check(job)).await?;
    let more: String = ctx.wait_for_event("more", forever()).await?;
    Ok(format!("{name} {more}"))
}

fn env() -> TestEnv {
    TestEnv::new().workflow(work)
}

#[tokio::test]
async fn a_repeated_start_with_an_id_finds_the_execution_or_is_refused() {
    let env = env();
    let start = || env.client().start(&work, job("a")).id("job-1");
    let run = env.submit(start()).await.unwrap();
    assert_eq!(run.id().as_str(), "job-1");
    assert_eq!(env.submit(start()).await.unwrap().id(), run.id());
    let refused = env.submit(start().reject_duplicate()).await.unwrap_err();
    assert_eq!(refused.code(), Some("id_conflict"));

    run.send_event("more", "and b").await.unwrap();
    assert_eq!(run.result().await.unwrap(), "a and b");
}

#[tokio::test]
async fn invalid_requests_fail_before_anything_is_sent() {
    let env = env();
    let start = || env.client().start(&work, job("a"));
    for (start, field) in [
        (start().id("no spaces"), "id"),
        (start().delay("soon"), "delay"),
        (start().execution_timeout("0s"), "execution_timeout"),
        (start().queue("no spaces"), "queue"),
        (start().fairness_key(""), "fairness_key"),
        // The error names the first problem.
        (start().id("no spaces").delay("soon"), "id"),
    ] {
        let Err(ClientError::Invalid { field: found, .. }) = start.await else { panic!("{field}") };
        assert_eq!(found, field);
    }
    let too_short = env.submit(start().run_timeout("10ms")).await.unwrap_err();
    assert!(too_short.to_string().contains("run_timeout: expected a duration of at least 1s"), "{too_short}");
    assert_eq!(env.writes(), 0);
}

#[tokio::test]
async fn a_description_has_all_fields_of_the_start() {
    let env = env();
    let start = env.client().start(&work, job("a")).label("team", "blue").memo(vec![1, 2]).delay("1h");
    let start = start.priority(Priority::High).fairness_key("customer-7");
    let run = env.submit(start).await.unwrap();
    env.run_until_idle().await.unwrap();
    let found = run.describe().await.unwrap();
    assert_eq!((found.status.as_str(), found.workflow.as_str()), ("pending", "work"));
    assert_eq!(found.input.unwrap().as_str(), r#"{"name":"a","fails":false}"#);
    assert_eq!(found.labels.unwrap().as_str(), r#"{"team":"blue"}"#);
    assert_eq!(found.memo.unwrap().as_str(), "[1,2]");
    assert_eq!(found.priority.unwrap(), Priority::High);
    assert_eq!(found.deadline_at.unwrap().since(*found.created_at), tickover::Millis::from_secs(864_000));

    env.advance("1h").await.unwrap();
    assert_eq!(run.describe().await.unwrap().status, ExecutionStatus::Waiting);
}

#[tokio::test]
async fn each_outcome_is_a_different_error() {
    let env = env();
    let broken = env.start(&work, Job { name: "a".to_owned(), fails: true }).await.unwrap();
    let error = Failure::new("broken", "it doesn't work");
    let cause = Cause::Step { name: "check".to_owned(), error, retries_exhausted: true };
    assert_eq!(broken.result().await, Err(ExecutionError::Failed(cause)));

    let refused = env.start(&work, job("refused")).await.unwrap();
    let cause = Cause::Body(Failure::new("refused", "not today"));
    assert_eq!(refused.result().await, Err(ExecutionError::Failed(cause)));

    let late = env.start(&work, job("late")).await.unwrap();
    assert_eq!(late.result().await, Err(ExecutionError::TimedOut(DeadlineKind::Run)));
    let start = env.client().start(&work, job("late")).execution_timeout("1d");
    let late = env.submit(start).await.unwrap();
    assert_eq!(late.result().await, Err(ExecutionError::TimedOut(DeadlineKind::Execution)));

    for (terminated, expected) in
        [(false, "the execution was cancelled"), (true, "the execution was terminated")]
    {
        let run = env.start(&work, job("a")).await.unwrap();
        env.run_until_idle().await.unwrap();
        let ended = if terminated { run.terminate().await } else { run.cancel().await };
        assert!(matches!(ended, Ok(Ended::Now | Ended::Requested)), "{ended:?}");
        assert_eq!(run.result().await.unwrap_err().to_string(), expected);
        assert_eq!(run.cancel().await, Ok(Ended::Before));
    }

    let nobody = env.client().handle::<String>("nobody").unwrap();
    let Err(ExecutionError::Client(error)) = nobody.result().await else { panic!("there is none") };
    assert!(error.is_not_found(), "{error}");
}

#[tokio::test]
async fn a_result_of_the_wrong_type_is_an_error_with_its_path() {
    let env = env();
    let run = env.start(&work, job("a")).await.unwrap();
    run.send_event("more", "and b").await.unwrap();
    run.result().await.unwrap();
    let other = env.client().handle::<u32>(run.id().as_str()).unwrap();
    let error = other.result().await.unwrap_err();
    assert!(error.to_string().starts_with("the result can't be read as u32: invalid type"), "{error}");
}

#[tokio::test]
async fn a_paused_execution_continues_only_when_it_is_resumed() {
    let env = env();
    let run = env.start(&work, job("a")).await.unwrap();
    env.run_until_idle().await.unwrap();
    assert_eq!((run.pause().await, run.pause().await), (Ok(true), Ok(false)));
    run.send_event("more", "and b").await.unwrap();
    env.advance("1h").await.unwrap();
    let paused = run.describe().await.unwrap();
    assert_eq!((paused.status.known(), paused.pending_events), (Some(ExecutionStatus::Paused), 1));
    assert_eq!(run.resume().await, Ok(true));
    assert_eq!(run.result().await.unwrap(), "a and b");
}

#[tokio::test]
async fn events_are_buffered_in_order_and_can_be_cleared() {
    let env = env();
    let start = env.client().start(&work, job("a")).delay("1h");
    let run = env.submit(start).await.unwrap();
    for (number, duplicate) in [(1, false), (1, true), (2, false)] {
        let offer = run.handle().send_event("more", number).id(format!("e-{number}"));
        assert_eq!(env.run(offer.into_future()).await.unwrap().unwrap().is_duplicate(), duplicate);
    }
    let events = run.events().await.unwrap();
    let read: Vec<u32> = events.iter().map(|event| event.read().unwrap()).collect();
    assert_eq!((read, events[0].event_id.as_ref().unwrap().as_str()), (vec![1, 2], "e-1"));
    assert_eq!((run.clear_events("more").await, run.clear_events("more").await), (Ok(2), Ok(0)));
}

#[tokio::test]
async fn an_ended_execution_runs_again_with_or_without_its_results() {
    let env = env();
    let run = env.start(&work, job("a")).await.unwrap();
    run.send_event("more", "and b").await.unwrap();
    run.result().await.unwrap();
    assert_eq!(run.restart().await.unwrap().run, 2);
    env.run_until_idle().await.unwrap();
    assert_eq!(run.restart().await.unwrap_err().code(), Some("not_terminal"));
    run.terminate().await.unwrap();
    assert_eq!(run.rerun(Rerun::Failed).await.unwrap().run, 3);
    run.send_event("more", "and c").await.unwrap();
    assert_eq!(run.result().await.unwrap(), "a and c");
    let unknown = run.rerun(Rerun::Steps(vec!["nobody".to_owned()])).await.unwrap_err();
    assert_eq!(unknown.code(), Some("unknown_step"));
    assert!(run.retry_step("check").await.is_err());
}

#[tokio::test]
async fn a_list_has_the_latest_first_and_continues_at_its_cursor() {
    let env = env();
    let mut ids = Vec::new();
    for name in ["a", "refused", "c"] {
        ids.insert(0, env.start(&work, job(name)).await.unwrap().id().clone());
        env.advance("1m").await.unwrap();
    }
    let first = env.client().list("work").limit(2).await.unwrap();
    let listed: Vec<_> = first.executions.iter().map(|one| one.id.clone()).collect();
    assert_eq!(listed, ids[..2]);
    let rest = env.client().list("work").limit(2).cursor(first.cursor.unwrap()).await.unwrap();
    assert_eq!(rest.executions[0].id, ids[2]);
    let failed = env.client().list("work").status(ExecutionStatus::Failed).await.unwrap();
    let outcome = Outcome::of(&failed.executions[0]);
    assert_eq!(outcome, Ok(Some(Outcome::Failed(Cause::Body(Failure::new("refused", "not today"))))));
    assert_eq!(failed.executions.len(), 1);
}

#[tokio::test]
async fn a_prepared_execution_starts_once_its_writes_are_committed() {
    let env = env();
    let prepared = env.client().start(&work, job("a")).id("job-1").prepare().await.unwrap();
    assert_eq!(prepared.writes.len(), 1);
    let handle = env.client().handle::<String>("job-1").unwrap();
    assert!(handle.describe().await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn a_timeline_is_in_the_order_of_time() {
    let env = env();
    let run = env.start(&work, job("a")).await.unwrap();
    run.send_event("more", "and b").await.unwrap();
    run.result().await.unwrap();
    let timeline = run.handle().timeline().await.unwrap();
    let find = |kind: &str| timeline.iter().find(|entry| entry.kind == kind).unwrap();
    let days = |days: u64| tickover::Millis::from_secs(days * 86_400);
    let started = find("started");
    assert_eq!((*started.at, started.name.as_deref()), (tickover::test::BEGINNING, Some("work")));
    assert_eq!(started.execution_timeout.map(Into::into), Some(days(10)));
    assert_eq!(started.run_timeout.map(Into::into), Some(days(5)));
    assert_eq!(started.deadline_at.unwrap(), started.at.plus(days(10)));
    let step = find("step_completed");
    assert_eq!((step.name.as_deref(), step.attempts), (Some("check"), Some(1)));
    assert_eq!(step.output.as_ref().unwrap().as_str(), r#""a""#);
    assert_eq!(find("event_sent").event.as_ref().unwrap().as_str(), "more");
    assert_eq!(timeline.last().unwrap().kind, "execution_completed");
    let nobody = env.client().handle::<()>("nobody").unwrap();
    assert!(nobody.timeline().await.unwrap_err().is_not_found());
}

#[tickover::workflow("approval")]
async fn approval(ctx: Ctx, (): ()) -> Result<bool> {
    let (approved, denied) =
        (ctx.wait_for_event::<()>("approved", forever()), ctx.wait_for_event::<()>("denied", forever()));
    let answer = ctx.race("answer", approved, denied);
    let expired = ctx.sleep("expiry", "2d");
    Ok(matches!(ctx.race("decision", answer, expired).await, Either::Left(Either::Left(_))))
}

#[tokio::test]
async fn what_a_race_waits_for_is_all_of_it_with_the_names_of_its_events() {
    let env = TestEnv::new().workflow(approval);
    let run = env.start(&approval, ()).await.unwrap();
    env.advance("1m").await.unwrap();
    let waits = async || {
        let waits = env.client().api().execution(run.id(), Millis::ZERO).await.unwrap().execution.waits_for;
        let name = |wait: &tickover::client::Wait| {
            wait.event.as_ref().map_or_else(|| wait.name.as_ref().unwrap().to_string(), ToString::to_string)
        };
        waits.iter().flatten().map(name).collect::<Vec<_>>()
    };
    assert_eq!(waits().await, ["expiry", "approved", "denied"]);
    run.send_event("approved", ()).await.unwrap();
    assert!(run.result().await.unwrap());
    assert!(waits().await.is_empty());
}
