//! Children whose start is limited by keys.

use std::num::NonZeroU16;
use tickover::prelude::*;
use tickover::{Failure, OnConflict, Priority, Registry, StepError, UniqueWindow};
use tickover_core::duration::Millis;
use tickover_core::flow::{Concurrency, FlowRequest};
use tickover_core::id::{FlowKey, QueueName, TaskKind};
use tickover_core::kind::{KindDefaults, Policies};
use tickover_core::payload::Json;

use crate::scene::{Scene, execution_id};

#[tickover::workflow("limited_nap")]
async fn nap(ctx: Ctx, seconds: u64) -> Result<u64> {
    ctx.sleep("nap", tickover::Millis::from_secs(seconds)).await?;
    Ok(seconds)
}

/// The start of a child's first turn, as its code sees it.
#[tickover::workflow("limited_clock")]
async fn clock(ctx: Ctx, (): ()) -> Result<i64> {
    Ok(ctx.now("now").await?.as_millis())
}

#[tickover::step]
async fn charge(cents: u64) -> Result<u64, Failure> {
    Ok(cents)
}

#[tickover::workflow("two_at_once")]
async fn two_at_once(ctx: Ctx, (): ()) -> Result<()> {
    let child = |nth: u32| ctx.child(&nap, 3_600).id(format!("nap-{nth}")).concurrency("customer-7", 2);
    for ended in futures::future::join_all((0..4).map(child)).await {
        ended?;
    }
    Ok(())
}

#[tokio::test]
async fn no_more_children_of_a_key_are_in_progress_than_its_limit() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with((two_at_once, nap)));
    scene.start(&two_at_once, "family", &()).await;
    let took = scene.finish(&worker, "family").await.took();
    // Each keeps its place while it sleeps, so the four take two hours.
    assert!((7_200_000..7_210_000).contains(&took), "{took}");
}

#[tickover::workflow("one_a_minute")]
async fn one_a_minute(ctx: Ctx, (): ()) -> Result<Vec<i64>> {
    let child = |nth: u32| ctx.child(&clock, ()).id(format!("clock-{nth}")).rate("api", 1, "1m").burst(1);
    let mut starts = vec![];
    for ended in futures::future::join_all((0..3).map(child)).await {
        starts.push(ended?);
    }
    Ok(starts)
}

#[tokio::test]
async fn children_of_a_rate_start_one_after_the_other() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with((one_a_minute, clock)));
    scene.start(&one_a_minute, "family", &()).await;
    let mut starts = scene.finish(&worker, "family").await.output::<Vec<i64>>();
    starts.sort_unstable();
    let gaps: Vec<i64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|gap| (60_000..61_000).contains(gap)), "{gaps:?}");
}

#[tickover::workflow("own_key")]
async fn own_key(ctx: Ctx, (): ()) -> Result<(String, String, String)> {
    let child = ctx.child(&nap, 1).id("child").concurrency("customer-7", 5).await.unwrap_err();
    let step = ctx.step(charge(1).remote().concurrency("customer-7", 40)).await.unwrap_err();
    let limit = ctx.child(&nap, 1).id("child-2").concurrency("other", 0).await.unwrap_err();
    let text = |error: StepError<Failure>| error.to_string();
    Ok((text(child), text(step), text(limit)))
}

#[tokio::test]
async fn a_step_or_a_child_at_a_key_of_its_own_execution_is_an_error_and_so_is_a_limit_of_zero() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with((own_key, nap)));
    let client = tickover::Client::from(scene.service.clone());
    let start = client.start(&own_key, ()).id("own").concurrency("customer-7", 1);
    start.await.unwrap();
    let ended = scene.finish(&worker, "own").await;
    let (child, step, limit) = ended.output::<(String, String, String)>();
    for text in [&child, &step] {
        assert!(text.contains("has a place at the key \"customer-7\", and would wait for itself"), "{text}");
    }
    assert!(limit.contains("its limit must be 1 to 1000"), "{limit}");
}

#[tickover::workflow("own_key_of_items")]
async fn own_key_of_items(ctx: Ctx, (): ()) -> Result<usize> {
    let one = |cents| charge(cents).remote().concurrency("customer-7", 5);
    Ok(ctx.map("charge", 0..3, one).paged(2).await?.len())
}

#[tickover::workflow("own_key_of_a_kind")]
async fn own_key_of_a_kind(ctx: Ctx, (): ()) -> Result<u64> {
    Ok(ctx.step(charge(1).remote()).await?)
}

#[tokio::test]
async fn the_items_of_a_paged_map_and_the_defaults_of_a_kind_are_not_at_a_key_of_the_execution_either() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with((own_key_of_items, own_key_of_a_kind)));
    let concurrency = Concurrency { key: FlowKey::parse("customer-7").unwrap(), limit: NonZeroU16::MIN };
    let flow = FlowRequest { concurrency: vec![concurrency], ..FlowRequest::default() };
    let policies = Policies { flow, ..Policies::default() };
    let (queue, kind) =
        (QueueName::parse(tickover::DEFAULT_QUEUE).unwrap(), TaskKind::parse("charge").unwrap());
    let defaults = KindDefaults { given: Json::string(""), policies, by: None };
    let client = tickover::Client::from(scene.service.clone());
    let items = client.start(&own_key_of_items, ()).id("items").concurrency("customer-7", 1);
    // One that waits for itself then ends too, with another message.
    items.execution_timeout("1h").await.unwrap();
    let items = scene.finish(&worker, "items").await.message().to_owned();
    scene.service.set_kind(&queue, &kind, defaults).await.unwrap();
    let kind = client.start(&own_key_of_a_kind, ()).id("kind").concurrency("customer-7", 1);
    kind.execution_timeout("1h").await.unwrap();
    let kind = scene.finish(&worker, "kind").await.message().to_owned();
    for text in [&items, &kind] {
        assert!(text.contains("has a place at the key \"customer-7\", and would wait for itself"), "{text}");
    }
}

#[tokio::test]
async fn a_client_limits_the_executions_that_it_starts() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with(nap));
    let client = tickover::Client::from(scene.service.clone());
    for id in ["a", "b"] {
        client
            .start(&nap, 600)
            .id(id)
            .concurrency("k", 1)
            .rate("api", 10, Millis::from_secs(1))
            .burst(2)
            .await
            .unwrap();
    }
    scene.finish(&worker, "a").await;
    let took = scene.finish(&worker, "b").await.took();
    assert!((1_200_000..1_205_000).contains(&took), "{took}");
    let only = || client.start(&nap, 600).unique("sync 7", UniqueWindow::Open, OnConflict::Existing);
    let (first, second) = (only().await.unwrap(), only().await.unwrap());
    assert_eq!(first.id(), second.id());
    let burst = |seconds| client.start(&nap, seconds).debounce("index 9", "10s", "1m");
    let (first, last) = (burst(1).await.unwrap(), burst(2).await.unwrap());
    assert_eq!(first.id(), last.id());
    assert_eq!(scene.finish(&worker, last.id().as_str()).await.output::<u64>(), 2);
    let wrong = client.start(&nap, 1).concurrency("k", 1_001).await;
    assert!(wrong.err().unwrap().to_string().contains("concurrency"));
    let wrong = client.start(&nap, 1).burst(2).await;
    assert!(wrong.err().unwrap().to_string().contains("it needs a rate before it"));
}

#[tokio::test]
async fn the_tasks_that_a_client_schedules_in_a_burst_are_one() {
    let scene = Scene::new();
    let client = tickover::Client::from(scene.service.clone());
    let burst = |cents| client.schedule(charge(cents)).debounce("index 9", "10s", "1m");
    let (first, last) = (burst(1).await.unwrap(), burst(2).await.unwrap());
    assert_eq!(first.id(), last.id());
    let alone = client.schedule(charge(3)).await.unwrap();
    assert_ne!(alone.id(), last.id());
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Guest {
    customer: u32,
    seconds: u64,
}

#[tickover::workflow(
    "visit",
    concurrency(key = r#"format!("customer-{}", guest.customer)"#, limit = 1),
    rate(constant = "door", limit = 10, per = "1s", burst = 6),
    priority = "low",
    fairness_key = "guest.customer"
)]
async fn visit(ctx: Ctx, guest: Guest) -> Result<u64> {
    ctx.sleep("stay", Millis::from_secs(guest.seconds)).await?;
    Ok(guest.seconds)
}

#[tickover::workflow("one_visit")]
async fn one_visit(ctx: Ctx, (): ()) -> Result<()> {
    let guest = |customer| Guest { customer, seconds: 10 };
    ctx.child(&visit, guest(1)).id("low").await?;
    ctx.child(&visit, guest(2)).id("own").priority(Priority::Normal).fairness_key("vip").await?;
    ctx.child(&clock, ()).id("as-parent").await?;
    let wrong = ctx.child(&visit, guest(3)).id("wrong").fairness_key("k".repeat(257)).await.unwrap_err();
    assert!(wrong.to_string().contains("fairness_key: its key must be at most 256"), "{wrong}");
    Ok(())
}

#[tokio::test]
async fn an_execution_has_the_limits_of_its_workflows_attribute_made_of_its_input() {
    let scene = Scene::new();
    let worker = scene.worker(Registry::new().with((visit, one_visit, clock)));
    let client = tickover::Client::from(scene.service.clone());
    for (id, customer) in [("a", 7), ("b", 7), ("c", 8)] {
        client.start(&visit, Guest { customer, seconds: 600 }).id(id).await.unwrap();
        let started = scene.service.execution(&execution_id(id)).await.unwrap().unwrap().execution;
        let admission = started.admission.unwrap();
        assert_eq!(admission.gates[0].text, format!("customer-{customer}"));
        let paced = admission.paced.unwrap();
        assert_eq!((paced.text.as_str(), paced.pace.burst.get()), ("door", 6));
    }
    let all = [("a", 600_000), ("c", 600_000), ("b", 1_200_000)];
    for (id, expected) in all {
        let ended = scene.finish(&worker, id).await;
        assert!((expected..expected + 5_000).contains(&ended.took()), "{id} took {}", ended.took());
        assert_eq!(ended.described.execution.lane.priority, Priority::Low);
    }
    let urgent = client.start(&visit, Guest { customer: 9, seconds: 1 }).id("d").priority(Priority::High);
    urgent.await.unwrap();
    assert_eq!(scene.finish(&worker, "d").await.described.execution.lane.priority, Priority::High);

    client.start(&one_visit, ()).id("parent").priority(Priority::High).fairness_key("p").await.unwrap();
    let parent = scene.finish(&worker, "parent").await.described.execution.lane;
    let mut lanes = vec![];
    for child in ["low", "own", "as-parent"] {
        lanes.push(scene.finish(&worker, child).await.described.execution.lane);
    }
    assert_eq!(
        lanes.iter().map(|lane| lane.priority).collect::<Vec<_>>(),
        [Priority::Low, Priority::Normal, Priority::High]
    );
    assert!(lanes[0].tenant != lanes[1].tenant && lanes[0].tenant != parent.tenant);
    assert_eq!(lanes[2], parent);
}
