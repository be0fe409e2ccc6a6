//! Remote steps: on another worker written with the SDK, or on a worker in any language.

use std::sync::Arc;

use tickover::prelude::*;
use tickover::{Failure, Registry, Worker};
use tickover_core::command::Context;
use tickover_core::duration::Millis;
use tickover_core::execution::journal::Happened;
use tickover_core::payload::Json;
use tickover_core::task::command::Command;
use tickover_core::task::decision::Decision;
use tickover_core::task::{self, Task};
use tickover_service::Rules;
use tickover_service::executions::Work;
use tickover_service::memory::ManualClock;

use crate::scene::{Count, Scene, clock, execution_id, settings};

#[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
enum PrintError {
    #[error("jam in tray {tray}")]
    Jam { tray: u32 },
    #[error("out of paper")]
    Paper,
}

static PRINTS: Count = Count::new();

#[tickover::step(queue = "printers", retry = "fixed(1, 1s)")]
async fn print(text: String) -> Result<usize, PrintError> {
    PRINTS.add();
    match text.as_str() {
        "jam" => Err(PrintError::Jam { tray: 2 }),
        "slow" => {
            clock().after(Millis::from_secs(200)).await;
            Ok(0)
        }
        text => Ok(text.len()),
    }
}

#[tickover::workflow("prints")]
async fn prints(ctx: Ctx, (): ()) -> Result<String> {
    let good = ctx.step(print("good".to_owned()).named("good")).await?;
    let slow = ctx.step(print("slow".to_owned()).named("slow")).await?;
    let jam = ctx.step(print("jam".to_owned()).named("jam")).await.unwrap_err();
    let late = ctx.step(print("slow".to_owned()).named("late").timeout("1m")).await.unwrap_err();
    let once = ctx.step(print("jam".to_owned()).named("once").non_retryable(["jam"])).await.unwrap_err();
    Ok(format!("{good} {slow} {jam:?} {late:?} {once:?}"))
}

#[tokio::test]
async fn typed_results_errors_and_timeouts_come_back_from_other_workers() {
    let scene = Scene::new();
    let worker = scene.worker_of(Registry::new().with(prints), "workflows");
    let printer = scene.worker(Registry::new().with_step::<print>());
    scene.start(&prints, "prints", &()).await;
    let ended = scene.inside(scene.with(&printer, scene.finish(&worker, "prints"))).await;
    let expected = concat!(
        "4 0 ",
        r#"RetryExhausted { step: "jam", attempts: 2, last_error: Jam { tray: 2 } } "#,
        r#"TimedOut { step: "late", expired: Some(Expired { kind: ScheduleToClose, "#,
        "deadline_at: Timestamp(1767225861000) }), last_error: None } ",
        r#"Failed { step: "once", error: Jam { tray: 2 } }"#,
    );
    assert_eq!(ended.output::<String>(), expected);
    assert_eq!(PRINTS.get(), 6);
}

#[tickover::workflow("foreign-workers")]
async fn foreign_workers(ctx: Ctx, (): ()) -> Result<String> {
    let answer = ctx.step(remote::<Vec<u32>>("count-to", 3).on_queue("printers")).await?;
    let named = ctx.step(print("x".to_owned()).named("named").retry("none")).await.unwrap_err();
    let other = ctx.step(print("y".to_owned()).named("other").retry("none")).await.unwrap_err();
    Ok(format!("{answer:?} {named:?} {other:?}"))
}

#[tokio::test]
async fn a_worker_in_any_language_can_do_a_step() {
    let scene = Scene::new();
    let worker = scene.worker_of(Registry::new().with(foreign_workers), "workflows");
    scene.start(&foreign_workers, "foreign", &()).await;
    for answer in [
        Ok("[1,2,3]"),
        Err(task::Failure::new("paper", "tray 1 is empty")),
        Err(task::Failure::new("fire", "put it out")),
    ] {
        worker.run_once().await.unwrap();
        let task = match scene.work("printers", Millis::from_secs(60)).await.pop() {
            Some(Work::Task(task)) => task,
            other => unreachable!("{other:?}"),
        };
        match answer {
            Ok(output) => {
                scene.service.complete(&task.task.id, &task.token, Json::parse(output)).await.unwrap();
            }
            Err(failure) => {
                scene.service.fail(&task.task.id, &task.token, failure, false).await.unwrap();
            }
        }
    }
    let told = scene.finish(&worker, "foreign").await.output::<String>();
    assert!(told.starts_with("[1, 2, 3] Failed { step: \"named\", error: Paper }"), "{told}");
    assert!(told.contains("Broken { step: \"other\"") && told.contains("put it out"), "{told}");
}

#[tickover::workflow("mended")]
async fn mended(ctx: Ctx, (): ()) -> Result<u32> {
    Ok(ctx.step(mend().retry("none")).await?)
}

static MENDS: Count = Count::new();

#[tickover::step(queue = "menders")]
async fn mend() -> Result<u32, PrintError> {
    if MENDS.add() == 0 { Err(PrintError::Paper) } else { Ok(7) }
}

#[tokio::test]
async fn an_operator_reruns_a_remote_step() {
    let scene = Scene::new();
    let worker = scene.worker_of(Registry::new().with(mended), "workflows");
    let mender = scene.worker(Registry::new().with_step::<mend>());
    scene.start(&mended, "mended", &()).await;
    let failed = scene.with(&mender, scene.finish(&worker, "mended")).await;
    assert_eq!(failed.code(), "paper");
    let step = tickover_core::id::StepName::parse("mend").unwrap();
    scene.service.retry_step(&execution_id("mended"), step).await.unwrap();
    let ended = scene.with(&mender, scene.finish(&worker, "mended")).await;
    assert_eq!(ended.output::<u32>(), 7);
}

#[tickover::workflow("corrected")]
async fn corrected(ctx: Ctx, given: String) -> Result<usize> {
    ctx.step(measure(given.clone())).await?;
    Ok(ctx.step(weigh(given).retry("none")).await?)
}

/// In the turn.
#[tickover::step]
async fn measure(given: String) -> Result<usize> {
    Ok(given.len())
}

#[tickover::step(queue = "menders")]
async fn weigh(given: String) -> Result<usize, PrintError> {
    if given == "lead" { Err(PrintError::Paper) } else { Ok(given.len()) }
}

#[tokio::test]
async fn a_remote_step_that_failed_runs_again_with_the_input_that_an_operator_gives_it() {
    let scene = Scene::new();
    let worker = scene.worker_of(Registry::new().with(corrected), "workflows");
    let mender = scene.worker(Registry::new().with_step::<weigh>());
    let step = |name: &str| tickover_core::id::StepName::parse(name).unwrap();
    let json = |text: &str| Json::parse(format!("{text:?}")).unwrap();
    // The second one doesn't fit into the records.
    for (id, given) in [("small", "straw".to_owned()), ("large", "x".repeat(5_000))] {
        scene.start(&corrected, id, &"lead".to_owned()).await;
        let failed = scene.with(&mender, scene.finish(&worker, id)).await;
        assert_eq!(failed.code(), "paper");
        let of = execution_id(id);
        let input = json(&given);
        let refused = scene.service.retry_step_with(&of, step("measure"), input.clone()).await;
        assert!(refused.is_err(), "it has not failed");
        // It fails again with an input of the same kind, and keeps what it was given last.
        scene.service.retry_step_with(&of, step("weigh"), json("lead")).await.unwrap();
        let failed = scene.with(&mender, scene.finish(&worker, id)).await;
        assert_eq!(failed.code(), "paper");
        scene.service.retry_step_with(&of, step("weigh"), input).await.unwrap();
        let ended = scene.with(&mender, scene.finish(&worker, id)).await;
        assert_eq!(ended.output::<usize>(), given.len());
    }
}

#[tickover::workflow("kept-input")]
async fn kept_input(ctx: Ctx, given: String) -> Result<usize> {
    Ok(ctx.step(fails_inline(given)).await?)
}

#[tickover::step(retry = "none")]
async fn fails_inline(given: String) -> Result<usize, PrintError> {
    if given == "lead" { Err(PrintError::Paper) } else { Ok(given.len()) }
}

#[tokio::test]
async fn a_step_in_the_turn_takes_no_input_but_that_of_the_code() {
    let scene = Scene::new();
    let worker = scene.worker_of(Registry::new().with(kept_input), "workflows");
    scene.start(&kept_input, "inline", &"lead".to_owned()).await;
    assert_eq!(scene.finish(&worker, "inline").await.code(), "paper");
    let step = tickover_core::id::StepName::parse("fails_inline").unwrap();
    let input = Json::parse("\"straw\"").unwrap();
    let refused = scene.service.retry_step_with(&execution_id("inline"), step, input).await.unwrap_err();
    assert!(refused.to_string().starts_with("input: is the code's"), "{refused}");
}

static ATTEMPTS: Count = Count::new();

/// Two of the four calls fail the first time.
#[tickover::step(queue = "menders")]
async fn mend_one(number: u32) -> Result<u32, PrintError> {
    if number % 2 == 1 && ATTEMPTS.add() < 2 { Err(PrintError::Paper) } else { Ok(number) }
}

#[tickover::workflow("mended-many")]
async fn mended_many(ctx: Ctx, (): ()) -> Result<u32> {
    let all = ctx.join_all("one", (0..4).map(|number| mend_one(number).retry("none"))).await?;
    Ok(all.into_iter().sum())
}

#[tokio::test]
async fn a_join_of_a_rerun_waits_for_the_rerun_steps_and_is_notified_of_the_last() {
    let scene = Scene::new();
    let worker = scene.worker_of(Registry::new().with(mended_many), "workflows");
    let mender = scene.worker(Registry::new().with_step::<mend_one>());
    scene.start(&mended_many, "many", &()).await;
    let failed = scene.with(&mender, scene.finish(&worker, "many")).await;
    assert_eq!(failed.code(), "paper");

    scene.service.rerun(&execution_id("many"), &[], true).await.unwrap();
    let ended = scene.with(&mender, scene.finish(&worker, "many")).await;
    assert_eq!(ended.output::<u32>(), 6);
    assert_eq!(ended.count(|what| matches!(what, Happened::Remote { .. })), 2);
    // Without the notification, only a probe after one minute would have woken the execution.
    assert!(ended.took() - failed.took() < 30_000, "{}", ended.took() - failed.took());
}

static STAMPS: Count = Count::new();

#[tickover::step(queue = "stamps")]
async fn stamp() -> Result<u32> {
    Ok(STAMPS.add())
}

#[tickover::workflow("stamped")]
async fn stamped(ctx: Ctx, (): ()) -> Result<u32> {
    Ok(ctx.step(stamp()).await?)
}

/// A process that freezes while it claims a task, for longer than the lease lasts.
struct Frozen(Arc<ManualClock>);

impl Rules for Frozen {
    fn decide_task(&self, task: Option<&Task>, command: &Command, context: &Context<'_>) -> Decision {
        if matches!(command, Command::Claim(_)) {
            self.0.advance(Millis::from_secs(100));
        }
        tickover_core::task::decide(task, command, context)
    }
}

#[tokio::test]
async fn a_remote_step_is_not_started_under_an_expired_lease() {
    let scene = Scene::new();
    let worker = scene.worker_of(Registry::new().with(stamped), "workflows");
    let stamps = || Registry::new().with_step::<stamp>();
    let frozen = scene.service.clone().with_rules(Arc::new(Frozen(Arc::clone(&scene.clock))));
    let frozen = Worker::new(frozen, stamps(), settings()).unwrap();
    scene.start(&stamped, "stamped", &()).await;
    worker.run_once().await.unwrap();
    assert_eq!(frozen.run_once().await.unwrap(), 1);
    // The worker gives the task back at once, so no other worker has to wait until the lease expires.
    assert_eq!(STAMPS.get(), 0);
    let execution = scene.service.execution(&execution_id("stamped")).await.unwrap().unwrap().execution;
    assert_eq!(scene.remote_status(&execution, "stamp").await, "pending");
    let healthy = scene.worker(stamps());
    assert_eq!(scene.with(&healthy, scene.finish(&worker, "stamped")).await.output::<u32>(), 0);
}

#[tickover::step(queue = "printers")]
async fn bind(seconds: u64) -> Result<u64, PrintError> {
    clock().after(Millis::from_secs(seconds)).await;
    Ok(seconds)
}

#[tickover::workflow("binds")]
async fn binds(ctx: Ctx, (): ()) -> Result<Vec<u64>> {
    Ok(ctx.join_all("bind", [2, 6, 4].map(bind)).await?)
}

#[tokio::test]
async fn the_end_of_each_step_of_a_fan_out_has_its_own_instant() {
    let scene = Scene::new();
    let worker = scene.worker_of(Registry::new().with(binds), "workflows");
    let binder = scene.worker(Registry::new().with_step::<bind>());
    scene.start(&binds, "binds", &()).await;
    let ended = scene.inside(scene.with(&binder, scene.finish(&worker, "binds"))).await;
    let started: Vec<_> =
        ended.journal.iter().filter(|entry| matches!(entry.what, Happened::Remote { .. })).collect();
    let ends: Vec<(&str, u64)> = ended
        .journal
        .iter()
        .filter_map(|entry| match &entry.what {
            Happened::Step { name, .. } => {
                Some((name.as_str(), entry.at.since(started[0].at).as_u64() / 1_000))
            }
            _ => None,
        })
        .collect();
    assert_eq!(ends, [("bind[0]", 2), ("bind[2]", 4), ("bind[1]", 6)]);
}

#[tickover::workflow("unknown-kind")]
async fn unknown_kind(ctx: Ctx, (): ()) -> Result<u32> {
    Ok(ctx.step(remote::<u32>("engrave", 3).on_queue("printers")).await?)
}

#[tokio::test]
async fn the_message_of_a_kind_that_a_worker_does_not_know_goes_once_its_task_has_ended() {
    let scene = Scene::new();
    let worker = scene.worker_of(Registry::new().with(unknown_kind), "workflows");
    let printer = scene.worker_of(Registry::new().with_step::<print>(), "printers");
    scene.start(&unknown_kind, "engraving", &()).await;
    scene.inside(scene.with(&printer, scene.pass(&worker, Millis::from_secs(40)))).await;
    assert!(!scene.depth("printers").await.is_empty(), "it is left to others");
    scene.service.terminate(&execution_id("engraving")).await.unwrap();
    scene.inside(scene.with(&printer, scene.pass(&worker, Millis::from_secs(61)))).await;
    assert!(scene.depth("printers").await.is_empty());
}

#[tickover::step(queue = "printers", retry = "fixed(1, 1s)")]
async fn coded(code: String) -> Result<(), Failure> {
    Err(Failure::new(code, "odd"))
}

#[tickover::workflow("codes")]
async fn codes(ctx: Ctx, (): ()) -> Result<Vec<String>> {
    let long = ctx.step(coded("c".repeat(65)).named("long")).await.unwrap_err();
    let empty = ctx.step(coded(String::new()).named("empty")).await.unwrap_err();
    Ok(vec![format!("{long:?}"), format!("{empty:?}")])
}

#[tokio::test]
async fn a_failure_of_a_remote_step_comes_back_whole_and_is_retried_whatever_its_code() {
    let scene = Scene::new();
    let worker = scene.worker_of(Registry::new().with(codes), "workflows");
    let printer = scene.worker(Registry::new().with_step::<coded>());
    scene.start(&codes, "codes", &()).await;
    let ended = scene.inside(scene.with(&printer, scene.finish(&worker, "codes"))).await;
    let told = |name: &str, code: &str| {
        let failure = format!(r#"Failure {{ code: "{code}", message: "odd" }}"#);
        format!(r#"RetryExhausted {{ step: "{name}", attempts: 2, last_error: {failure} }}"#)
    };
    assert_eq!(ended.output::<Vec<String>>(), [told("long", &"c".repeat(65)), told("empty", "")]);
}
