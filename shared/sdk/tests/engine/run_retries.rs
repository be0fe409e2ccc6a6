//! Workflows whose failed runs are run again: `retry` of the attribute.

use std::sync::{Arc, Mutex};

use tickover::prelude::*;
use tickover::test::{TestEnv, with_each_death};
use tickover::{Failure, ParentClosePolicy, Registry, forever};
use tickover_core::duration::Millis;
use tickover_core::execution::{DeadlineKind, ExecutionOutcome, ExecutionStatus};
use tickover_service::executions::Described;

use crate::scene::{Count, Scene, execution_id};

type Seen = Arc<Mutex<Vec<String>>>;

/// An effect on the outside world, which happens once for each text.
#[tickover::step]
async fn act(#[state] seen: &Seen, what: String) -> Result<(), Failure> {
    let mut seen = seen.lock().map_err(|_| Failure::new("poisoned", ""))?;
    if !seen.contains(&what) {
        seen.push(what);
    }
    Ok(())
}

#[tickover::step]
async fn refuse() -> Result<(), Failure> {
    Err(Failure::new("sold_out", "no stock"))
}

#[tickover::workflow("booking", timeout = "1h", retry = "fixed(2, 10s)")]
async fn booking(ctx: Ctx, good_run: u32) -> Result<u32> {
    let run = ctx.run();
    ctx.on_undo("give-back", act(format!("undo-{run}")));
    ctx.step(act(format!("charge-{run}")).named("charge")).await?;
    if run < good_run {
        ctx.step(refuse()).await?;
    }
    ctx.step(act(format!("ship-{run}")).named("ship")).await?;
    Ok(run)
}

#[tokio::test]
async fn a_failed_run_is_undone_and_run_again_from_the_beginning_whatever_dies() {
    let seen = Seen::default();
    let env = || TestEnv::new().workflow(booking).state(Seen::clone(&seen));
    let story = async |env: &TestEnv| {
        seen.lock().unwrap().clear();
        let run = env.start(&booking, 3).await.unwrap();
        (run.result().await.unwrap(), seen.lock().unwrap().clone())
    };
    let (result, effects) = with_each_death(env, story).await;
    assert_eq!(result, 3);
    assert_eq!(effects, ["charge-1", "undo-1", "charge-2", "undo-2", "charge-3", "ship-3"]);
}

#[tokio::test]
async fn after_the_last_attempt_the_execution_ends_with_the_last_error() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(booking).with_state(Seen::default()));
    scene.start(&booking, "never", &9).await;
    let ended = scene.finish(&worker, "never").await;
    assert_eq!((ended.code(), ended.described.execution.run), ("sold_out", 3));
    assert!((20_000..21_000).contains(&ended.took()), "{}", ended.took());
    // An operator's restart has all attempts again.
    scene.service.restart(&execution_id("never")).await.unwrap();
    let ended = scene.finish(&worker, "never").await;
    assert_eq!(ended.described.execution.run, 6);
}

static RECOVERED: Count = Count::new();

async fn recover(_ctx: Ctx, (): (), cause: Cause) -> Result<Option<String>> {
    RECOVERED.add();
    Ok(Some(cause.to_string()))
}

#[tickover::workflow("recovering", retry = "fixed(1, 10s)", on_failure = recover)]
async fn recovering(ctx: Ctx, (): ()) -> Result<String> {
    Err(Error::new("broken", format!("run {}", ctx.run())))
}

#[tokio::test]
async fn on_failure_runs_once_after_the_last_attempt() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(recovering));
    scene.start(&recovering, "e", &()).await;
    assert_eq!(scene.finish(&worker, "e").await.output::<String>(), "broken: run 2");
    assert_eq!(RECOVERED.get(), 1);
}

#[tickover::workflow("picky", retry = "fixed(5, 1s)", non_retryable("declined"))]
async fn picky(ctx: Ctx, (): ()) -> Result<()> {
    let code = if ctx.run() == 1 { "busy" } else { "declined" };
    Err(Error::new(code, ""))
}

#[tokio::test]
async fn an_error_that_the_attribute_excludes_ends_the_execution() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(picky));
    scene.start(&picky, "e", &()).await;
    let ended = scene.finish(&worker, "e").await;
    assert_eq!((ended.code(), ended.described.execution.run), ("declined", 2));
}

#[tickover::workflow("doomed", timeout = "1m", retry = "fixed(5, 50s)")]
async fn doomed(ctx: Ctx, (): ()) -> Result<()> {
    ctx.sleep("work", "5s").await?;
    Err(Error::new("broken", "no paper"))
}

#[tokio::test]
async fn a_retry_after_the_executions_deadline_is_not_waited_for() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(doomed));
    scene.start(&doomed, "e", &()).await;
    let ended = scene.finish(&worker, "e").await;
    // 5 s, 50 s, 5 s: the second run is ended by the deadline or by its own end, whichever comes first.
    assert!((60_000..61_000).contains(&ended.took()), "{}", ended.took());
    scene.start(&short, "short", &()).await;
    let worker = scene.worker(Registry::new().with(short));
    let ended = scene.finish(&worker, "short").await;
    assert_eq!((ended.code(), ended.described.execution.run), ("broken", 1));
    assert!(ended.message().starts_with("not retried: attempt 2 would start at "), "{}", ended.message());
    assert!(ended.message().ends_with("; last error: no paper"), "{}", ended.message());
}

#[tickover::workflow("short", timeout = "1m", retry = "fixed(5, 1m)")]
async fn short(_ctx: Ctx, (): ()) -> Result<()> {
    Err(Error::new("broken", "no paper"))
}

#[tickover::workflow("waiting", run_timeout = "10m", retry = "fixed(1, 10s)")]
async fn waiting(ctx: Ctx, takes_in: u32) -> Result<String> {
    if ctx.run() == takes_in {
        return Ok(ctx.wait_for_event("note", forever()).await?);
    }
    ctx.wait_for_event::<()>("never", forever()).await?;
    Ok(String::new())
}

#[tokio::test]
async fn a_run_whose_deadline_passes_is_run_again_with_the_events_that_it_has_not_taken() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(waiting));
    scene.start(&waiting, "e", &2).await;
    scene.send_event("e", "note", "hello").await;
    let ended = scene.finish(&worker, "e").await;
    assert_eq!((ended.output::<String>(), ended.described.execution.run), ("hello".to_owned(), 2));
    assert!((610_000..612_000).contains(&ended.took()), "{}", ended.took());
    scene.start(&waiting, "late", &9).await;
    let started = scene.now();
    let ended = scene.finish(&worker, "late").await;
    assert_eq!(ended.outcome(), &ExecutionOutcome::TimedOut { kind: DeadlineKind::Run });
    let took = ended.described.execution.closed().unwrap().ended_at.since(started).as_u64();
    assert!((1_210_000..1_212_000).contains(&took), "{took}");
}

#[tickover::workflow("sleeper")]
async fn sleeper(ctx: Ctx, (): ()) -> Result<()> {
    ctx.sleep("long", "30d").await?;
    Ok(())
}

#[tickover::workflow("fan", retry = "fixed(1, 10m)")]
async fn fan(ctx: Ctx, (): ()) -> Result<()> {
    ctx.child(&sleeper, ()).id("sleeper").policy(ParentClosePolicy::Terminate).start().await?;
    let open = remote::<()>("nobody", ()).named("open");
    let (_, failed) = ctx.race_all("first", [ctx.step(open), ctx.step(refuse().named("bad"))]).await;
    Ok(failed?)
}

async fn status_of(scene: &Scene, id: &str) -> Described {
    scene.service.execution(&execution_id(id)).await.unwrap().unwrap()
}

#[tokio::test]
async fn the_next_run_takes_an_open_child_over_and_open_remote_steps_are_ended() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with((fan, sleeper)));
    scene.start(&fan, "e", &()).await;
    scene.pass(&worker, Millis::from_secs(5)).await;
    let waits = status_of(&scene, "e").await;
    assert_eq!((waits.execution.run, waits.execution.status()), (2, ExecutionStatus::Pending));
    let first = tickover_core::execution::Execution { run: 1, ..waits.execution };
    assert_eq!(scene.remote_status(&first, "open").await, "cancelled");
    assert_eq!(scene.status("sleeper").await, ExecutionStatus::Waiting);
    scene.finish(&worker, "e").await;
    let ended = status_of(&scene, "sleeper").await.execution;
    assert_eq!((ended.run, ended.parent.as_ref().unwrap().run), (1, 2));
    assert_eq!(ended.status(), ExecutionStatus::Cancelled);
}

#[tickover::workflow("parent")]
async fn parent(ctx: Ctx, (): ()) -> Result<u32> {
    Ok(ctx.child(&booking, 2).id("child").await?)
}

#[tokio::test]
async fn a_parent_gets_the_result_of_its_childs_last_attempt() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with((parent, booking)).with_state(Seen::default()));
    scene.start(&parent, "e", &()).await;
    assert_eq!(scene.finish(&worker, "e").await.output::<u32>(), 2);
}
