//! Children, as a later run of their parent meets them: kept, run again, or taken over.

#![expect(clippy::unwrap_used, reason = "a test fails if it doesn't find what it expects")]

use std::future::IntoFuture as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use tickover::ParentClosePolicy;
use tickover::client::{Action, ExecutionStatus, Handle, Rerun};
use tickover::prelude::*;
use tickover::test::{TestEnv, with_each_death};

/// What the steps of these tests do and count.
#[derive(Debug, Default)]
struct Carrier {
    works: AtomicBool,
    packed: AtomicU32,
    shipped: AtomicU32,
}

impl Carrier {
    /// How many parcels were packed, and how many shipped.
    fn counts(&self) -> (u32, u32) {
        (self.packed.load(Ordering::SeqCst), self.shipped.load(Ordering::SeqCst))
    }
}

#[tickover::step]
async fn pack(#[state] carrier: &Arc<Carrier>, number: u32) -> Result<u32, Failure> {
    carrier.packed.fetch_add(1, Ordering::SeqCst);
    Ok(number)
}

/// The second parcel can't be shipped at first.
#[tickover::step(retry = "none")]
async fn ship(#[state] carrier: &Arc<Carrier>, number: u32) -> Result<u32, Failure> {
    if number == 1 && !carrier.works.load(Ordering::SeqCst) {
        return Err(Failure::new("down", "the carrier is down"));
    }
    carrier.shipped.fetch_add(1, Ordering::SeqCst);
    Ok(number)
}

#[tickover::workflow]
async fn parcel(ctx: Ctx, number: u32) -> Result<u32> {
    ctx.step(pack(number)).await?;
    Ok(ctx.step(ship(number)).await?)
}

/// The pattern of the guide: ids that follow from the order's.
#[tickover::workflow]
async fn by_id(ctx: Ctx, parcels: u32) -> Result<u32> {
    let order = ctx.execution_id();
    let children = (0..parcels).map(|number| ctx.child(&parcel, number).id(format!("{order}-{number}")));
    Ok(ctx.join_children(children).await?.iter().sum())
}

/// Without ids: they follow from the order and the names.
#[tickover::workflow]
async fn by_name(ctx: Ctx, parcels: u32) -> Result<u32> {
    let children = (0..parcels).map(|number| ctx.child(&parcel, number).named(format!("o-{number}")));
    Ok(ctx.join_children(children).await?.iter().sum())
}

#[tickover::workflow]
async fn started_first(ctx: Ctx, parcels: u32) -> Result<u32> {
    let mut begun = vec![];
    for number in 0..parcels {
        begun.push(ctx.child(&parcel, number).named(format!("o-{number}")).start().await?);
    }
    ctx.sleep("until-all-have-ended", "1m").await?;
    let mut sum = 0;
    for child in begun.into_iter().rev() {
        sum += child.result().await?;
    }
    Ok(sum)
}

/// An order of three parcels, the second of which has failed. Then the carrier works again.
struct Scene {
    env: TestEnv,
    carrier: Arc<Carrier>,
}

impl Scene {
    async fn failed(order: &impl AsWorkflow<Input = u32, Output = u32>) -> Self {
        let carrier = Arc::new(Carrier::default());
        let workflows = (by_id, by_name, started_first, parcel);
        let env = TestEnv::new().workflow(workflows).state(Arc::clone(&carrier));
        let run = env.submit(env.client().start(order, 3).id("o")).await.unwrap();
        assert!(run.result().await.unwrap_err().to_string().contains("the carrier is down"));
        env.run_until_idle().await.unwrap();
        assert_eq!(carrier.counts(), (3, 2));
        carrier.works.store(true, Ordering::SeqCst);
        Self { env, carrier }
    }

    /// Carries out an operation, and returns the result and how many were packed and shipped in all.
    async fn after(&self, operation: &str) -> (u32, (u32, u32)) {
        let client = self.env.client();
        let run: Handle<u32> = client.handle("o").unwrap();
        match operation {
            "rerun" => drop(run.rerun(Rerun::Failed).await.unwrap()),
            "rerun all" => drop(run.rerun(Rerun::All).await.unwrap()),
            "restart" => drop(run.restart().await.unwrap()),
            "retry step" => drop(run.retry_step("child:o-1").await.unwrap()),
            "bulk retry" => drop(client.on_executions(Action::Retry).only("o").await.unwrap()),
            "bulk retry step" => drop(client.on_executions(Action::RetryStep).only("o").await.unwrap()),
            other => panic!("no operation {other}"),
        }
        self.env.advance("2m").await.unwrap();
        (self.env.run(run.result()).await.unwrap().unwrap(), self.carrier.counts())
    }
}

const ORDERS: [Workflow<u32, u32>; 3] = [by_id(), by_name(), started_first()];

#[tokio::test]
async fn what_is_the_same_work_keeps_children_that_completed_and_continues_the_one_that_failed() {
    for order in ORDERS {
        for operation in ["rerun", "retry step", "bulk retry", "bulk retry step"] {
            let after = Scene::failed(&order).await.after(operation).await;
            assert_eq!(after, (3, (3, 3)), "{} {operation}", order.name());
        }
    }
}

#[tokio::test]
async fn what_is_new_work_runs_each_child_again_under_its_id() {
    for order in ORDERS {
        for operation in ["restart", "rerun all"] {
            let scene = Scene::failed(&order).await;
            assert_eq!(scene.after(operation).await, (3, (6, 5)), "{} {operation}", order.name());
        }
    }
    let scene = Scene::failed(&by_id).await;
    scene.after("restart").await;
    let child = scene.env.client().handle::<u32>("o-0").unwrap().describe().await.unwrap();
    assert_eq!(child.run, 2);
}

#[tokio::test]
async fn a_child_that_was_repaired_meanwhile_gives_its_outcome() {
    let scene = Scene::failed(&by_id).await;
    scene.env.client().handle::<u32>("o-1").unwrap().restart().await.unwrap();
    scene.env.run_until_idle().await.unwrap();
    assert_eq!(scene.carrier.counts(), (4, 3));
    assert_eq!(scene.after("rerun").await, (3, (4, 3)));
}

#[tickover::workflow]
async fn stranger(ctx: Ctx, (): ()) -> Result<u32> {
    Ok(ctx.child(&parcel, 7).id("o-0").await?)
}

#[tokio::test]
async fn an_execution_of_somebody_else_is_a_conflict_that_names_its_owner() {
    let carrier = Arc::new(Carrier::default());
    let env = TestEnv::new().workflow((by_id, stranger, parcel)).state(carrier);
    let order = env.submit(env.client().start(&by_id, 1).id("o")).await.unwrap();
    order.result().await.unwrap();
    let error = env.start(&stranger, ()).await.unwrap().result().await.unwrap_err().to_string();
    assert!(error.contains("id_conflict") && error.contains("a child of o"), "{error}");
    let own = env.submit(env.client().start(&parcel, 7).id("o-0")).await.unwrap();
    assert_eq!(own.result().await.unwrap(), 0);
}

#[tickover::workflow]
async fn watch(ctx: Ctx, (): ()) -> Result<u32> {
    ctx.sleep("watch", "1h").await?;
    Ok(1)
}

/// Its runs have one child, which each of them asks for.
#[tickover::workflow]
async fn relay(ctx: Ctx, left: u32) -> Result<u32> {
    let watched = ctx.child(&watch, ()).start().await?;
    ctx.sleep("a-while", "10m").await?;
    if left > 0 { ctx.continue_as_new(left - 1).await } else { Ok(watched.result().await?) }
}

#[tokio::test]
async fn a_run_after_continue_as_new_takes_an_open_child_over_and_begins_an_ended_one_anew() {
    for (left, child_runs) in [(2, 1), (8, 2)] {
        let env = TestEnv::new().workflow((relay, watch));
        let run = env.submit(env.client().start(&relay, left).id("r")).await.unwrap();
        assert_eq!(run.result().await.unwrap(), 1);
        let listed = env.client().list("watch").await.unwrap();
        let runs: Vec<u32> = listed.executions.iter().map(|child| child.run).collect();
        assert_eq!(runs, [child_runs]);
    }
}

#[tokio::test]
async fn a_restart_takes_an_open_child_over() {
    let env = TestEnv::new().workflow((relay, watch));
    let run = env.submit(env.client().start(&relay, 0).id("r")).await.unwrap();
    env.advance("5m").await.unwrap();
    run.terminate().await.unwrap();
    env.advance("30m").await.unwrap();
    run.restart().await.unwrap();
    assert_eq!(run.result().await.unwrap(), 1);
    assert!(env.now().since(tickover::test::BEGINNING) < tickover::Millis::from_secs(3_700));
}

/// Only its first run starts a child, which ends with the execution, and a remote step that nobody takes.
#[tickover::workflow]
async fn long(ctx: Ctx, left: u32) -> Result<u32> {
    if left == 2 {
        ctx.child(&watch, ()).id("w").policy(ParentClosePolicy::Terminate).start().await?;
        let nobody = ctx.step(remote::<u32>("nobody", &()));
        drop(ctx.timeout("not-yet", "1s", nobody).await);
    }
    ctx.sleep("a-while", "10m").await?;
    if left > 0 { ctx.continue_as_new(left - 1).await } else { Ok(7) }
}

#[tokio::test]
async fn a_childs_policy_applies_when_the_execution_closes_not_a_run() {
    let env = TestEnv::new().workflow((long, watch));
    let run = env.submit(env.client().start(&long, 2).id("l")).await.unwrap();
    let child = env.client().handle::<u32>("w").unwrap();
    env.advance("25m").await.unwrap();
    assert_eq!(run.describe().await.unwrap().run, 3);
    assert_eq!(child.describe().await.unwrap().status, ExecutionStatus::Waiting);
    assert_eq!(run.result().await.unwrap(), 7);
    env.run_until_idle().await.unwrap();
    assert_eq!(child.describe().await.unwrap().status, ExecutionStatus::Cancelled);
}

/// It doesn't wait for its child, which ends with it.
#[tickover::workflow]
async fn watched(ctx: Ctx, (): ()) -> Result<u32> {
    ctx.child(&watch, ()).id("w").policy(ParentClosePolicy::Terminate).start().await?;
    let shipped = ctx.step(ship(1)).await?;
    ctx.sleep("a-while", "10m").await?;
    Ok(shipped)
}

#[tokio::test]
async fn a_retry_of_a_step_starts_a_child_again_that_ended_with_the_execution_though_nothing_waits_for_it() {
    let carrier = Arc::new(Carrier::default());
    let env = TestEnv::new().workflow((watched, watch)).state(Arc::clone(&carrier));
    let run = env.start(&watched, ()).await.unwrap();
    run.result().await.unwrap_err();
    env.run_until_idle().await.unwrap();
    let status = async || env.client().handle::<u32>("w").unwrap().describe().await.unwrap().status;
    assert_eq!(status().await, ExecutionStatus::Cancelled);
    carrier.works.store(true, Ordering::SeqCst);
    run.retry_step("ship").await.unwrap();
    env.run_until_idle().await.unwrap();
    assert_eq!(status().await, ExecutionStatus::Waiting);
    assert_eq!(run.result().await.unwrap(), 1);
}

#[tickover::step(retry = "fixed(9, 1d)")]
async fn stalls(number: u32) -> Result<u32, Failure> {
    Err(Failure::new("down", format!("{number} isn't there yet")))
}

/// Each of its runs leaves the pages of a map of the same name.
#[tickover::workflow]
async fn leaves_pages(ctx: Ctx, left: u32) -> Result<u32> {
    drop(ctx.timeout("not-yet", "1m", ctx.map("items", 0..2, stalls).paged(1).into_future()).await);
    if left > 0 { ctx.continue_as_new(left - 1).await } else { Ok(7) }
}

#[tokio::test]
async fn the_pages_of_all_runs_end_with_the_execution() {
    let env = TestEnv::new().workflow(leaves_pages);
    let run = env.submit(env.client().start(&leaves_pages, 2).id("l")).await.unwrap();
    assert_eq!(run.result().await.unwrap(), 7);
    let listed = env.client().list("tickover.map").await.unwrap();
    let pages: Vec<_> = listed.executions.iter().map(|page| page.status.clone()).collect();
    assert_eq!(pages, [ExecutionStatus::Cancelled; 6]);
}

/// Its run ends while a remote step is open.
#[tickover::workflow]
async fn leaves_open(ctx: Ctx, left: u32) -> Result<u32> {
    if left == 0 {
        return Ok(7);
    }
    let open = ctx.step(remote::<u32>("nobody", &()).named("open"));
    let next = async {
        ctx.sleep("a-while", "10m").await?;
        ctx.continue_as_new::<u32>(left - 1).await
    };
    futures::future::select(Box::pin(open), Box::pin(next)).await;
    Ok(0)
}

#[tokio::test]
async fn a_remote_step_that_is_open_when_its_run_ends_is_cancelled() {
    let env = TestEnv::new().workflow(leaves_open);
    let run = env.start(&leaves_open, 1).await.unwrap();
    env.advance("5m").await.unwrap();
    let task = env.client().list_tasks().await.unwrap().tasks.remove(0);
    assert_eq!(run.result().await.unwrap(), 7);
    let status = env.client().task_handle::<u32>(task.id.as_str()).unwrap().describe().await.unwrap().status;
    assert_eq!(status, tickover::client::TaskStatus::Cancelled);
}

#[tickover::step(retry = "none")]
async fn item(#[state] carrier: &Arc<Carrier>, number: u32) -> Result<u32, Failure> {
    carrier.packed.fetch_add(1, Ordering::SeqCst);
    let works = number != 7 || carrier.works.load(Ordering::SeqCst);
    if works { Ok(number) } else { Err(Failure::new("down", "item")) }
}

#[tickover::workflow]
async fn paged(ctx: Ctx, items: u32) -> Result<u32> {
    let mut pages = ctx.map("items", 0..items, item).paged(2).await?;
    let mut sum = 0;
    for page in 0..pages.pages() {
        sum += pages.page(page).await?.completed().map(|(_, number)| *number).sum::<u32>();
    }
    Ok(sum)
}

#[tokio::test]
async fn a_rerun_of_a_paged_map_runs_the_items_that_failed() {
    let carrier = Arc::new(Carrier::default());
    let env = TestEnv::new().workflow(paged).state(Arc::clone(&carrier));
    let run = env.submit(env.client().start(&paged, 8).id("o")).await.unwrap();
    assert!(run.result().await.unwrap_err().to_string().contains("item"));
    assert_eq!(carrier.counts().0, 8);
    carrier.works.store(true, Ordering::SeqCst);
    run.rerun(Rerun::Failed).await.unwrap();
    assert_eq!((run.result().await.unwrap(), carrier.counts().0), (28, 9));
}

/// A map that completes, and a step that fails.
#[tickover::workflow]
async fn paged_first(ctx: Ctx, items: u32) -> Result<u32> {
    let mut pages = ctx.map("items", 0..items, item).paged(2).await?;
    let mut sum = 0;
    for page in 0..pages.pages() {
        sum += pages.page(page).await?.completed().map(|(_, number)| *number).sum::<u32>();
    }
    Ok(sum + ctx.step(item(7).named("last")).await?)
}

#[tokio::test]
async fn a_rerun_keeps_the_pages_of_a_map_that_completed() {
    let carrier = Arc::new(Carrier::default());
    let env = TestEnv::new().workflow(paged_first).state(Arc::clone(&carrier));
    let run = env.submit(env.client().start(&paged_first, 7).id("o")).await.unwrap();
    assert!(run.result().await.unwrap_err().to_string().contains("item"));
    assert_eq!(carrier.counts().0, 8);
    carrier.works.store(true, Ordering::SeqCst);
    run.rerun(Rerun::Failed).await.unwrap();
    assert_eq!((run.result().await.unwrap(), carrier.counts().0), (28, 9));
    run.rerun(Rerun::Failed).await.unwrap();
    assert_eq!((run.result().await.unwrap(), carrier.counts().0), (28, 9));
}

#[tokio::test]
async fn a_rerun_from_a_later_step_keeps_the_pages_of_a_map() {
    let carrier = Arc::new(Carrier::default());
    carrier.works.store(true, Ordering::SeqCst);
    let env = TestEnv::new().workflow(paged_first).state(Arc::clone(&carrier));
    let run = env.submit(env.client().start(&paged_first, 7).id("o")).await.unwrap();
    assert_eq!((run.result().await.unwrap(), carrier.counts().0), (28, 8));
    run.rerun(Rerun::From("last".to_owned())).await.unwrap();
    assert_eq!((run.result().await.unwrap(), carrier.counts().0), (28, 9));
    // A page that is asked for runs whole.
    run.rerun(Rerun::Steps(vec!["child:map:items[0]".to_owned()])).await.unwrap();
    assert_eq!((run.result().await.unwrap(), carrier.counts().0), (28, 11));
}

/// A map that completes although an item has failed.
#[tickover::workflow]
async fn paged_tolerant(ctx: Ctx, items: u32) -> Result<u32> {
    let mut pages = ctx.map("items", 0..items, item).tolerate(1).paged(2).await?;
    Ok(pages.collect().await?.completed().map(|(_, number)| *number).sum::<u32>())
}

#[tokio::test]
async fn a_rerun_of_what_completed_runs_the_items_that_a_page_of_it_had_lost() {
    let carrier = Arc::new(Carrier::default());
    let env = TestEnv::new().workflow(paged_tolerant).state(Arc::clone(&carrier));
    let run = env.submit(env.client().start(&paged_tolerant, 8).id("o")).await.unwrap();
    let incomplete = run.result().await.unwrap();
    assert_eq!(carrier.counts().0, 8);
    carrier.works.store(true, Ordering::SeqCst);
    run.rerun(Rerun::Failed).await.unwrap();
    assert_eq!((run.result().await.unwrap(), carrier.counts().0), (28, 9));
    assert!(incomplete < 28);
}

#[tokio::test]
async fn whatever_process_dies_after_whatever_write_a_rerun_and_a_restart_give_the_same() {
    let carrier = Arc::new(Carrier::default());
    let env = || TestEnv::new().workflow((by_name, parcel)).state(Arc::clone(&carrier));
    let story = async |env: &TestEnv| {
        carrier.works.store(false, Ordering::SeqCst);
        let run = env.submit(env.client().start(&by_name, 3).id("o")).await.unwrap();
        let failed = run.result().await.unwrap_err().to_string();
        carrier.works.store(true, Ordering::SeqCst);
        run.rerun(Rerun::Failed).await.unwrap();
        let repaired = run.result().await.unwrap();
        run.restart().await.unwrap();
        (failed, repaired, run.result().await.unwrap())
    };
    let (failed, repaired, anew) = with_each_death(env, story).await;
    assert!(failed.contains("the carrier is down"), "{failed}");
    assert_eq!((repaired, anew), (3, 3));
}

#[tickover::workflow]
async fn slow_parcel(ctx: Ctx) -> Result<u32> {
    ctx.sleep("transport", "30d").await?;
    Ok(1)
}

#[tickover::workflow]
async fn impatient(ctx: Ctx, patience: String) -> Result<String> {
    let child = ctx.child(&slow_parcel, ()).start().await?;
    ctx.sleep("patience", patience).await?;
    let before = child.status("look").await?;
    child.cancel("call-it-off").await?;
    child.cancel("call-it-off-again").await?;
    let after = child.status("look-again").await?;
    let ended = match child.result().await {
        Ok(number) => number.to_string(),
        Err(StepError::Cancelled { .. }) => "cancelled".to_owned(),
        Err(error) => return Err(error.into()),
    };
    Ok(format!("{}, {}, {ended}", before.as_str(), after.as_str()))
}

#[tokio::test]
async fn a_parent_looks_at_its_child_and_cancels_it_once_whatever_dies() {
    for (patience, end) in [("1h", "waiting, cancelled, cancelled"), ("31d", "completed, completed, 1")] {
        let env = || TestEnv::new().workflow((impatient, slow_parcel));
        let ended = with_each_death(env, async |env| {
            env.start(&impatient, patience.to_owned()).await.unwrap().result().await.unwrap()
        });
        assert_eq!(ended.await, end);
    }
}
