//! The states that a worker passes to its steps beside their arguments.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tickover::prelude::*;
use tickover::test::TestEnv;
use tickover::{Registry, RegistryError, ServeError, Worker, WorkerSettings};
use tickover_core::duration::Millis;

use crate::scene::Scene;

struct Prices(BTreeMap<String, u32>);

/// A state behind another crate's trait.
trait Count: Send + Sync {
    fn next(&self) -> u32;
}

struct FromZero(AtomicU32);

impl Count for FromZero {
    fn next(&self) -> u32 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

#[tickover::step]
async fn price(
    #[state] prices: &Prices,
    (item, times): (String, u32),
    #[state] calls: &Arc<dyn Count>,
    extra: u32,
) -> Result<u32, Failure> {
    let call = calls.next();
    let price = prices.0.get(&item).ok_or_else(|| Failure::new("unknown_item", item))?;
    Ok(price * times + extra + call * 1_000)
}

#[tickover::workflow("quote")]
async fn quote(ctx: Ctx, item: String) -> Result<u32> {
    let first = ctx.step(price((item.clone(), 2), 1)).await?;
    let second = ctx.step(price((item, 3), 2).named("again").remote()).await?;
    Ok(first + second)
}

fn prices() -> Prices {
    Prices(BTreeMap::from([("bicycle".to_owned(), 100)]))
}

fn count() -> Arc<dyn Count> {
    Arc::new(FromZero(AtomicU32::new(0)))
}

#[tokio::test]
async fn a_step_gets_its_workers_states_inline_and_remotely() {
    let env = TestEnv::new().workflow(quote).step::<price>().state(prices()).state(count());
    let run = env.start(&quote, "bicycle".to_owned()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), 201 + 1_302);
}

#[tickover::step(at_most_once)]
async fn once(states: Vec<u32>, #[state] prices: &Prices) -> Result<usize, Failure> {
    Ok(states.len() + prices.0.len())
}

#[tickover::workflow("once-only")]
async fn once_only(ctx: Ctx) -> Result<usize> {
    Ok(ctx.step(once(vec![1, 2])).await?)
}

#[tokio::test]
async fn an_at_most_once_step_does_not_count_as_run_where_its_state_was_missing() {
    let scene = Scene::new();
    scene.start(&once_only, "o", &()).await;
    let registry = Registry::new().with(once_only);
    scene.inside(scene.pass(&scene.worker(registry.clone()), Millis::from_secs(5))).await;
    assert_eq!(scene.stuck("o").await.0, "missing_state");
    let ended = scene.inside(scene.finish(&scene.worker(registry.with_state(prices())), "o")).await;
    assert_eq!(ended.output::<usize>(), 3);
}

#[tokio::test]
async fn a_mock_needs_no_state() {
    let env = TestEnv::new().workflow(quote).mock::<price>(|((_, times), extra)| Ok(times + extra));
    let run = env.start(&quote, "bicycle".to_owned()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), 3 + 5);
}

#[tokio::test]
async fn a_worker_without_a_state_that_its_steps_ask_for_does_not_start() {
    let service = Scene::new().service;
    let worker = |registry| Worker::new(service.clone(), registry, WorkerSettings::default());
    let registry = Registry::new().with_step::<price>().with_state(count());
    let refused = worker(registry.clone()).map(drop).unwrap_err().to_string();
    assert!(refused.contains("`price`") && refused.contains("Prices`: add `.state("), "{refused}");
    assert!(worker(registry.with_state(prices())).is_ok());

    let twice = Registry::new().with_state(prices()).with_state(prices()).check().unwrap_err();
    assert!(matches!(twice, RegistryError::DuplicateState { .. }), "{twice}");

    // The same holds for a worker whose workflows may run such a step inline.
    let refused = tickover::serve(quote)
        .state(prices())
        // These belong to other tests.
        .without_state::<Arc<std::sync::Mutex<Vec<String>>>>()
        .without_state::<crate::batches::Calls>()
        .without_state::<crate::batch_deaths::Ran>()
        .run()
        .await
        .unwrap_err();
    let ServeError::Registry(RegistryError::MissingState { step, state }) = refused else {
        panic!("{refused}")
    };
    assert_eq!(step, "price");
    assert!(state.to_string().ends_with("Count>"), "{state}");
}

#[tokio::test]
async fn an_inline_step_without_its_state_delays_its_execution_and_fails_nothing() {
    let scene = Scene::new();
    let registry = Registry::new().with(quote).with_state(count());
    scene.start(&quote, "poor", &"bicycle".to_owned()).await;
    scene.inside(scene.pass(&scene.worker(registry.clone()), Millis::from_secs(30))).await;
    let (code, message, tries) = scene.stuck("poor").await;
    assert_eq!(code, "missing_state");
    assert!(message.contains("`price`") && message.contains("Prices"), "{message}");
    assert!((2..10).contains(&tries), "{tries}");
    // The next deployment provides the state.
    let worker = scene.worker(registry.with_state(prices()).with_step::<price>());
    let ended = scene.inside(scene.finish(&worker, "poor")).await;
    assert_eq!(ended.output::<u32>(), 201 + 1_302);
}
