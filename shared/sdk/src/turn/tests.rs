mod attempts;
mod limits;
mod writes;

use std::sync::Arc;

use futures::FutureExt as _;
use tickover_core::id::{ExecutionId, QueueName, WorkflowName};
use tickover_core::limits::Limits;
use tickover_core::payload::Json;
use tickover_service::claim::ClaimRequest;
use tickover_service::executions::{StartRequest, Work};
use tickover_service::memory::{ManualClock, MemoryQueue, MemoryStore, Queues};
use tickover_service::ports::Clock as _;
use tickover_service::system::SystemIds;
use tickover_service::{Ports, Service};

use super::*;
use crate::ctx::Ctx;
use crate::error::Failure;
use crate::step::step;
use crate::workflow::Workflow;

const START: Timestamp = Timestamp::from_millis(1_767_225_600_000);

struct Scene {
    clock: Arc<ManualClock>,
    service: Service,
}

impl Scene {
    fn new() -> Self {
        Self::with_slow_writes(Millis::ZERO)
    }

    /// Each write takes this long.
    fn with_slow_writes(write: Millis) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let passing = Arc::clone(&clock);
        let ports = Ports {
            store: Arc::new(MemoryStore::watched(Box::new(move |_| passing.advance(write)))),
            queue: Arc::new(MemoryQueue::new(clock.clone(), Queues::OnOpen)),
            clock: clock.clone(),
            ids: Arc::new(SystemIds),
        };
        Self { clock, service: Service::new(ports, Limits::default()) }
    }

    async fn start(&self, workflow: &str) {
        self.start_with(workflow, "null").await;
    }

    async fn start_with(&self, workflow: &str, input: &str) {
        let queue = QueueName::parse("workflows").unwrap();
        let mut request = StartRequest::new(WorkflowName::parse(workflow).unwrap(), queue);
        request.id = ExecutionId::parse("x").ok();
        request.input = Json::parse(input);
        self.service.start(request).await.unwrap();
    }

    /// Takes the turn that is due, with a lease of this length.
    async fn take(&self, lease: Millis) -> Box<StartedTurn> {
        let request = ClaimRequest { worker: None, max: 1, lease, wait: Millis::ZERO, provides: vec![] };
        let queue = QueueName::parse("workflows").unwrap();
        let mut work = self.service.next_work(&queue, &request).await.unwrap();
        let Some(Work::Turn(turn)) = work.pop() else { panic!("a turn is due") };
        turn
    }

    /// Runs one turn in an invocation of this length. Returns how it ended.
    async fn invoke(&self, registry: &Registry, length: Millis) -> TurnEnd {
        let limit_at = self.clock.now().plus(length);
        let turn = self.take(length).await;
        let settings = TurnSettings {
            limit_at: Some(limit_at.minus(Millis::from_secs(1))),
            heartbeat: Some(Millis::ZERO),
            ..TurnSettings::default()
        };
        let backend = self.service.clone().into();
        Box::pin(self.clock.drive(run_turn(&backend, registry, &KeptRuns::new(0), *turn, &settings))).await
    }

    async fn output(&self) -> Option<String> {
        let described = self.service.execution(&ExecutionId::parse("x").unwrap()).await.unwrap().unwrap();
        described.output.map(|json| json.as_str().to_owned())
    }

    /// A workflow of three steps with this timeout, each of which takes 10 s.
    fn three_steps(&self, timeout: &'static str) -> Registry {
        thread_local! {
            static CLOCK: std::cell::RefCell<Option<Arc<ManualClock>>> = const { std::cell::RefCell::new(None) };
        }
        CLOCK.set(Some(self.clock.clone()));
        let body = match timeout {
            "20s" => |ctx: Ctx, (): ()| three(ctx, CLOCK.take(), "20s").boxed(),
            _ => |ctx: Ctx, (): ()| three(ctx, CLOCK.take(), "1h").boxed(),
        };
        Registry::new().with(Workflow::<(), u32>::new("three", body))
    }
}

async fn three(ctx: Ctx, clock: Option<Arc<ManualClock>>, timeout: &str) -> crate::Result<u32> {
    let Some(clock) = clock else { return Err(crate::Error::msg("no clock")) };
    let mut sum = 0;
    for index in 0..3 {
        let clock = Arc::clone(&clock);
        let slow = step(format!("slow[{index}]"), move || {
            let clock = Arc::clone(&clock);
            async move {
                clock.sleep_until(clock.now().plus(Millis::from_secs(10))).await;
                Ok::<_, Failure>(1)
            }
        });
        sum += ctx.step(slow.timeout(timeout)).await?;
    }
    Ok(sum)
}

#[tokio::test]
async fn a_step_that_cannot_end_in_what_is_left_of_an_invocation_is_left_to_the_next() {
    let scene = Scene::new();
    scene.start("three").await;
    // The second step would have 14 s left and may take 20 s.
    for _ in 0..2 {
        let registry = scene.three_steps("20s");
        assert_eq!(scene.invoke(&registry, Millis::from_secs(25)).await, TurnEnd::Suspended);
        assert_eq!(scene.output().await, None);
    }
    assert_eq!(scene.clock.now(), START.plus(Millis::from_secs(20)));
    let registry = scene.three_steps("20s");
    assert_eq!(scene.invoke(&registry, Millis::from_secs(25)).await, TurnEnd::Closed);
    assert_eq!(scene.output().await.as_deref(), Some("3"));
}

#[tokio::test]
async fn a_step_that_is_longer_than_any_invocation_begins_in_a_fresh_one_and_is_broken_off() {
    let scene = Scene::new();
    scene.start("three").await;
    let registry = scene.three_steps("1h");
    assert_eq!(scene.invoke(&registry, Millis::from_secs(5)).await, TurnEnd::Released);
    assert_eq!(scene.clock.now(), START.plus(Millis::from_secs(4)));
    let registry = scene.three_steps("1h");
    assert_eq!(scene.invoke(&registry, Millis::from_secs(15)).await, TurnEnd::Suspended);
    // The first step's result was kept.
    let registry = scene.three_steps("1h");
    assert_eq!(scene.invoke(&registry, Millis::from_secs(60)).await, TurnEnd::Suspended);
    let registry = scene.three_steps("1h");
    assert_eq!(scene.invoke(&registry, Millis::from_secs(60)).await, TurnEnd::Closed);
    assert_eq!(scene.output().await.as_deref(), Some("3"));
}
