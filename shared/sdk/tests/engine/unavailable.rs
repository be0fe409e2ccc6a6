//! Services that don't answer. However often that happens, it doesn't fail an execution.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use async_trait::async_trait;
use tickover::prelude::*;
use tickover::{Registry, Worker, WorkerSettings};
use tickover_core::duration::Millis;
use tickover_core::execution::journal::Happened;
use tickover_core::flow::Priority;
use tickover_core::id::QueueName;
use tickover_service::memory::MemoryQueue;
use tickover_service::ports::{ClassDepth, Depth, Outgoing, Queue, QueueError, QueueTraits, Received};

use crate::scene::{Scene, clock, settings};

/// Queues: one can't be opened for a number of calls, and one is slow to accept messages.
struct FailingQueues {
    inner: Arc<MemoryQueue>,
    left: AtomicU32,
    /// When it couldn't be opened, in milliseconds since the beginning.
    refused_at: Mutex<Vec<u64>>,
}

/// How long a queue takes to accept messages.
fn delay_of(queue: &QueueName) -> Option<Millis> {
    match queue.as_str() {
        "slow" => Some(Millis::from_secs(20)),
        "a-bit-slow" => Some(Millis::from_secs(5)),
        _ => None,
    }
}

impl FailingQueues {
    fn failing(inner: Arc<MemoryQueue>, calls: u32) -> Arc<Self> {
        Arc::new(Self { inner, left: AtomicU32::new(calls), refused_at: Mutex::default() })
    }
}

#[async_trait]
impl Queue for FailingQueues {
    async fn send(
        &self,
        queue: &QueueName,
        messages: &[Outgoing],
    ) -> std::result::Result<Vec<std::result::Result<(), QueueError>>, QueueError> {
        if let Some(span) = delay_of(queue) {
            clock().after(span).await;
        }
        self.inner.send(queue, messages).await
    }

    async fn receive(
        &self,
        queue: &QueueName,
        max: usize,
        visibility: Millis,
        wait: Millis,
    ) -> std::result::Result<Vec<Received>, QueueError> {
        self.inner.receive(queue, max, visibility, wait).await
    }

    async fn delete(&self, queue: &QueueName, receipt: &str) -> std::result::Result<(), QueueError> {
        self.inner.delete(queue, receipt).await
    }

    async fn change_visibility(
        &self,
        queue: &QueueName,
        receipt: &str,
        visibility: Millis,
    ) -> std::result::Result<(), QueueError> {
        self.inner.change_visibility(queue, receipt, visibility).await
    }

    async fn depth(&self, queue: &QueueName) -> std::result::Result<Depth, QueueError> {
        self.inner.depth(queue).await
    }

    async fn open(&self, queue: &QueueName) -> std::result::Result<bool, QueueError> {
        let fewer = |left: u32| left.checked_sub(1);
        if queue.as_str() == "far-away"
            && self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer).is_ok()
        {
            self.refused_at.lock().unwrap().push(clock().passed());
            return Err(QueueError::Unavailable { reason: "no answer".to_owned() });
        }
        self.inner.open(queue).await
    }

    fn class_of(&self, receipt: &str) -> Priority {
        self.inner.class_of(receipt)
    }

    fn traits(&self) -> QueueTraits {
        self.inner.traits()
    }

    fn knows(&self, queue: &QueueName) -> bool {
        self.inner.knows(queue)
    }

    fn names(&self) -> Vec<QueueName> {
        self.inner.names()
    }

    async fn class_depth(
        &self,
        queue: &QueueName,
        class: Priority,
    ) -> std::result::Result<ClassDepth, QueueError> {
        self.inner.class_depth(queue, class).await
    }

    async fn discover(&self) -> std::result::Result<Vec<QueueName>, QueueError> {
        self.inner.discover().await
    }
}

#[tickover::step(queue = "far-away")]
async fn wave() -> Result<u32> {
    Ok(7)
}

#[tickover::workflow("waves")]
async fn waves(ctx: Ctx, (): ()) -> Result<u32> {
    Ok(ctx.step(wave()).await?)
}

#[tokio::test]
async fn an_execution_is_not_poisoned_by_a_service_that_does_not_answer() {
    let scene = Scene::with_queue(|inner| FailingQueues::failing(inner, 30));
    let worker = scene.worker_of(Registry::new().with(waves), "workflows");
    let waver = scene.worker_of(Registry::new().with_step::<wave>(), "far-away");
    scene.start(&waves, "waves", &()).await;
    let ended = scene.inside(scene.with(&waver, scene.finish(&worker, "waves"))).await;
    assert_eq!(ended.output::<u32>(), 7);
}

#[tickover::step(queue = "near")]
async fn nod() -> Result<u32> {
    Ok(1)
}

#[tickover::workflow("greets")]
async fn greets(ctx: Ctx, (): ()) -> Result<u32> {
    let nods = ctx.join_all("nod", (0..4).map(|_| nod()));
    let (nods, waved) = futures::join!(nods, ctx.step(wave()));
    Ok(nods?.iter().sum::<u32>() + waved?)
}

#[tokio::test]
async fn only_the_steps_that_could_not_be_started_are_started_again() {
    let scene = Scene::with_queue(|inner| FailingQueues::failing(inner, 30));
    let worker = scene.worker_of(Registry::new().with(greets), "workflows");
    let near = scene.worker_of(Registry::new().with_step::<nod>(), "near");
    let waver = scene.worker_of(Registry::new().with_step::<wave>(), "far-away");
    scene.start(&greets, "greets", &()).await;
    let greeted = scene.with(&near, scene.with(&waver, scene.finish(&worker, "greets")));
    let ended = scene.inside(greeted).await;
    assert_eq!(ended.output::<u32>(), 11);
    let started = |step: &str| {
        let of_step = ended.journal.iter().filter(
            |entry| matches!(&entry.what, Happened::Remote { name } if name.as_str().starts_with(step)),
        );
        of_step.map(|entry| entry.at).collect::<Vec<_>>()
    };
    let (nods, last) = (started("nod"), started("wave"));
    assert_eq!((nods.len(), last.len()), (4, 1));
    assert!(nods.iter().all(|at| *at < last[0]), "{nods:?} {last:?}");
}

#[tickover::workflow("surges")]
async fn surges(ctx: Ctx, (): ()) -> Result<u32> {
    Ok(ctx.join_all("wave", (0..20).map(|_| wave())).await?.iter().sum())
}

#[tokio::test]
async fn a_fan_out_asks_a_queue_that_does_not_answer_once_a_turn() {
    let queues = OnceLock::new();
    let scene = Scene::with_queue(|inner| queues.get_or_init(|| FailingQueues::failing(inner, 6)).clone());
    let worker = scene.worker_of(Registry::new().with(surges), "workflows");
    let waver = scene.worker_of(Registry::new().with_step::<wave>(), "far-away");
    scene.start(&surges, "surges", &()).await;
    let ended = scene.inside(scene.with(&waver, scene.finish(&worker, "surges"))).await;
    assert_eq!(ended.output::<u32>(), 140);
    let at = queues.get().unwrap().refused_at.lock().unwrap().clone();
    assert_eq!(at.len(), 6);
    // The next turn may begin at once.
    let asked = |instant: &u64| at.iter().filter(|at| *at == instant).count();
    assert!(at.iter().all(|instant| asked(instant) <= 2), "steps would wait behind each other: {at:?}");
}

#[tickover::workflow("overtaken", run_timeout = "10s")]
async fn overtaken(ctx: Ctx, (): ()) -> Result<u32> {
    let over = async {
        ctx.sleep("s", "5s").await?;
        ctx.continue_as_new::<u32>(()).await
    };
    let (waved, over) = futures::join!(ctx.step(wave().on_queue("slow")), over);
    Ok(waved? + over?)
}

#[tokio::test]
async fn a_turn_whose_deadline_passes_still_waits_for_its_running_calls() {
    let scene = Scene::with_queue(|inner| FailingQueues::failing(inner, 0));
    let worker = scene.worker_of(Registry::new().with(overtaken), "workflows");
    scene.start(&overtaken, "overtaken", &()).await;
    scene.inside(scene.pass(&worker, Millis::from_secs(60))).await;
    assert_eq!(scene.status("overtaken").await.as_str(), "timed_out");
}

#[tickover::step]
async fn half_a_minute() -> Result<()> {
    clock().after(Millis::from_secs(30)).await;
    Ok(())
}

#[tickover::workflow("stopped", queue = "a-bit-slow")]
async fn stopped(ctx: Ctx, (): ()) -> Result<()> {
    Ok(ctx.step(half_a_minute()).await?)
}

#[tokio::test]
async fn a_worker_that_stops_cuts_no_call_between_a_write_and_its_message() {
    let scene = Scene::with_queue(|inner| FailingQueues::failing(inner, 0));
    let registry = || Registry::new().with(stopped);
    let queues = vec![QueueName::parse("a-bit-slow").unwrap()];
    let settings = WorkerSettings { grace: Millis::from_secs(1), queues, ..settings() };
    let first = Worker::new(scene.service.clone(), registry(), settings).unwrap();
    let until_it_stops = async {
        scene.start(&stopped, "stopped", &()).await;
        first.run(scene.after(Millis::from_secs(5))).await;
    };
    scene.inside(scene.clock.drive(until_it_stops)).await;
    let next = scene.worker_of(registry(), "a-bit-slow");
    let ended = scene.inside(scene.finish(&next, "stopped")).await;
    ended.output::<()>();
    assert!(ended.took() < 60_000, "its message came only after the lease: {} ms", ended.took());
}
