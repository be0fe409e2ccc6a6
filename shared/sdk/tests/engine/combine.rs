//! Many steps at once.

use tickover::prelude::*;
use tickover::{Failure, Registry};
use tickover_core::duration::Millis;
use tickover_core::execution::journal::{Happened, StepOutcome};
use tickover_core::limits::Limits;

use crate::scene::{Count, Scene, clock};

#[tickover::step]
async fn print_label(number: u32) -> Result<String, Failure> {
    if number == 13 { Err(Failure::new("unlucky", "13")) } else { Ok(format!("label {number}")) }
}

#[tickover::step]
async fn slow(seconds: u64) -> Result<u64, Failure> {
    clock().after(Millis::from_secs(seconds)).await;
    if seconds % 2 == 1 { Err(Failure::new("odd", seconds.to_string())) } else { Ok(seconds) }
}

#[tickover::workflow("labels")]
async fn labels(ctx: Ctx, numbers: Vec<u32>) -> Result<Vec<String>> {
    Ok(ctx.join_all("label", numbers.into_iter().map(|number| print_label(number).remote())).await?)
}

#[tokio::test]
async fn join_all_waits_for_all_remote_steps_and_keeps_their_order() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(labels).with_step::<print_label>());
    let numbers: Vec<u32> = (100..350).collect();
    scene.start(&labels, "labels", &numbers).await;
    let ended = scene.finish(&worker, "labels").await;
    let expected: Vec<String> = numbers.iter().map(|number| format!("label {number}")).collect();
    assert_eq!(ended.output::<Vec<String>>(), expected);
    assert_eq!(ended.count(|what| matches!(what, Happened::Remote { .. })), 250);
    assert!(ended.took() < 30_000, "{}", ended.took());
}

#[tokio::test]
async fn the_error_of_join_all_is_that_of_the_first_by_index() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(labels).with_step::<print_label>());
    scene.start(&labels, "unlucky", &vec![1, 13, 2]).await;
    let ended = scene.finish(&worker, "unlucky").await;
    assert_eq!(ended.code(), "unlucky");
    assert!(format!("{:?}", ended.outcome()).contains("label[1]"));
}

#[tokio::test]
async fn a_fan_out_over_the_limit_is_an_error_of_its_own() {
    let scene = Scene::with_limits(Limits { fan_out: 2, ..Limits::default() });
    let worker = scene.worker(Registry::new().with(labels).with_step::<print_label>());
    scene.start(&labels, "many", &vec![1, 2, 3]).await;
    let ended = scene.finish(&worker, "many").await;
    assert_eq!(ended.code(), "limit_exceeded");
    assert!(ended.message().contains("fan_out") && ended.message().contains('3'), "{}", ended.message());
}

#[tokio::test]
async fn a_run_over_its_limit_of_entries_fails_and_says_so() {
    let scene = Scene::with_limits(Limits { journal_entries: 20, ..Limits::default() });
    let worker = scene.worker(Registry::new().with(labels).with_step::<print_label>());
    scene.start(&labels, "entries", &(100..125).collect()).await;
    let ended = scene.finish(&worker, "entries").await;
    assert_eq!(ended.code(), "limit_exceeded");
    assert!(ended.message().contains("journal_entries"), "{}", ended.message());
}

#[tickover::workflow("settled")]
async fn settled(ctx: Ctx, (): ()) -> Result<(Vec<u64>, Vec<usize>)> {
    let all = ctx.join_all_settled("s", [2, 3, 4, 5].map(slow)).await;
    let completed = all.completed().map(|(_, seconds)| *seconds).collect();
    Ok((completed, all.failed().map(|(index, _)| index).collect()))
}

#[tokio::test]
async fn join_all_settled_returns_each_outcome() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(settled));
    scene.start(&settled, "settled", &()).await;
    let ended = scene.inside(scene.finish(&worker, "settled")).await;
    assert_eq!(ended.output::<(Vec<u64>, Vec<usize>)>(), (vec![2, 4], vec![1, 3]));
    assert_eq!(ended.took(), 5_000);
}

static ABORTED: Count = Count::new();

#[tickover::step]
async fn counted(seconds: u64) -> Result<u64, Failure> {
    clock().after(Millis::from_secs(seconds)).await;
    ABORTED.add();
    Ok(seconds)
}

#[tickover::workflow("race")]
async fn race(ctx: Ctx, (): ()) -> Result<(usize, usize, usize)> {
    let (first, _) = ctx.select("first", [20, 5, 10].map(counted)).await;
    let (good, seconds) = ctx.select_ok("good", [1, 3, 8, 6].map(slow)).await?;
    assert_eq!(seconds, 6);
    let none = ctx.select_ok("none", [1, 3].map(slow)).await;
    ctx.sleep("s", "1h").await?;
    Ok((first, good, none.unwrap_err().errors.len()))
}

#[tokio::test]
async fn a_race_is_decided_once_and_its_inline_losers_are_dropped() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(race));
    scene.start(&race, "race", &()).await;
    let ended = scene.inside(scene.finish(&worker, "race")).await;
    assert_eq!(ended.output::<(usize, usize, usize)>(), (1, 3, 2));
    assert_eq!(ABORTED.get(), 1);
}

#[tickover::workflow("remote-race")]
async fn remote_race(ctx: Ctx, (): ()) -> Result<usize> {
    let steps = vec![
        remote::<String>("nobody-does-this", 1),
        print_label(7).on_queue("labels").retry("none"),
        remote::<String>("nobody-does-this", 2),
    ];
    let (winner, _) = ctx.select("fast", steps).cancelling().await;
    ctx.sleep("s", "1h").await?;
    Ok(winner)
}

#[tokio::test]
async fn the_losers_of_a_cancelling_race_are_ended() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(remote_race).with_step::<print_label>());
    let printer = scene.worker_of(Registry::new().with_step::<print_label>(), "labels");
    scene.start(&remote_race, "remote-race", &()).await;
    let ended = scene.with(&printer, scene.finish(&worker, "remote-race")).await;
    assert_eq!(ended.output::<usize>(), 1);
    let cancelled = |what: &Happened| {
        matches!(what, Happened::Step { outcome: StepOutcome::Cancelled, attempts: None, .. })
    };
    assert_eq!(ended.count(cancelled), 2);
    assert_eq!(ended.described.execution.open_steps, 0);
    for name in ["fast[0]", "fast[2]"] {
        assert_eq!(scene.remote_status(&ended.described.execution, name).await, "cancelled");
    }
}

#[tickover::workflow("limits")]
async fn limits(ctx: Ctx, (): ()) -> Result<Vec<bool>> {
    let steps = ctx.timeout("steps", "10s", ctx.join_all("a", [2, 30].map(slow))).await;
    let in_time = ctx.timeout("in-time", "10s", ctx.step(slow(4).named("b"))).await;
    let event = ctx.timeout("event", "1h", ctx.wait_for_event::<u32>("never", tickover::forever())).await;
    let several = async {
        ctx.step(slow(2).named("c")).await.ok();
        ctx.sleep("d", "2h").await.ok();
    };
    let several = ctx.timeout("several", "1h", several).await;
    ctx.sleep("e", "1h").await?;
    Ok(vec![steps.is_ok(), in_time.is_ok(), event.is_ok(), several.is_ok()])
}

#[tokio::test]
async fn a_timeout_around_any_future_keeps_its_outcome_in_replays() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(limits));
    scene.start(&limits, "limits", &()).await;
    let ended = scene.inside(scene.finish(&worker, "limits")).await;
    assert_eq!(ended.output::<Vec<bool>>(), [false, true, false, false]);
    let expected = 10_000 + 4_000 + 3 * 3_600_000;
    assert!((expected..expected + 1_000).contains(&ended.took()), "{}", ended.took());
}

/// Arguments: the seconds that each step takes (steps with an odd number fail), the steps in flight at once, and the
/// tolerated failures.
#[tickover::workflow("mapped")]
async fn mapped(ctx: Ctx, (seconds, at_once, tolerated): (Vec<u64>, usize, String)) -> Result<Vec<u64>> {
    let one = |seconds| slow(seconds).retry("none");
    let done = ctx.map("item", seconds, one).concurrency(at_once).tolerate(tolerated).await?;
    Ok(done.completed().map(|(_, seconds)| *seconds).collect())
}

async fn start_mapped(scene: &Scene, id: &str, seconds: &[u64], at_once: usize, tolerated: &str) {
    scene.start(&mapped, id, &(seconds.to_vec(), at_once, tolerated.to_owned())).await;
}

#[tokio::test]
async fn a_map_runs_a_limited_number_at_once_and_keeps_the_order_of_items() {
    for (at_once, took) in [(9, 8_000), (2, 12_000), (1, 22_000)] {
        let scene = Scene::new();
        let worker = scene.worker(Registry::new().with(mapped));
        start_mapped(&scene, "mapped", &[8, 2, 4, 6, 2], at_once, "0").await;
        let ended = scene.inside(scene.finish(&worker, "mapped")).await;
        assert_eq!(ended.output::<Vec<u64>>(), [8, 2, 4, 6, 2]);
        assert_eq!(ended.took(), took, "{at_once} at once");
    }
}

#[tokio::test]
async fn a_map_ends_when_more_have_failed_than_it_tolerates() {
    let ended = async |at_once, tolerated| {
        let scene = Scene::new();
        let worker = scene.worker(Registry::new().with(mapped));
        start_mapped(&scene, "mapped", &[4, 1, 6, 3, 900], at_once, tolerated).await;
        scene.inside(scene.finish(&worker, "mapped")).await
    };
    let tolerated = ended(9, "40%").await;
    assert_eq!(tolerated.output::<Vec<u64>>(), [4, 6, 900]);
    let one_more = ended(9, "1").await;
    assert!(
        one_more.message().contains("2 of 5 steps of `item` failed; the last one: "),
        "{}",
        one_more.message()
    );
    assert_eq!(one_more.took(), 3_000);
    let not_begun = ended(1, "0%").await;
    assert!(not_begun.message().contains("1 of 5 steps of `item` failed"), "{}", not_begun.message());
    assert_eq!(not_begun.took(), 5_000);
    assert_eq!(not_begun.count(|what| matches!(what, Happened::Step { .. })), 2);
}

#[tokio::test]
async fn a_map_with_invalid_options_fails_with_the_reason() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(mapped));
    start_mapped(&scene, "none", &[2], 0, "0").await;
    start_mapped(&scene, "half", &[2], 1, "a half").await;
    for (id, expected) in [("none", "item: concurrency"), ("half", "item: tolerate")] {
        let ended = scene.inside(scene.finish(&worker, id)).await;
        assert_eq!(ended.code(), "invalid_step");
        assert!(ended.message().starts_with(expected), "{}", ended.message());
    }
}
