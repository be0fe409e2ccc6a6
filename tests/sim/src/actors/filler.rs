//! Sends new work all the time, so that no queue and no class queue is ever empty.

use tickover_core::duration::Millis;
use tickover_core::execution::command::StartPolicy;
use tickover_core::flow::{FlowRequest, Priority};
use tickover_core::retry::RetryPolicy;
use tickover_core::timeout::Timeouts;
use tickover_service::executions::StartRequest;
use tickover_service::tasks::schedule::ScheduleRequest;

use crate::plan::execution::workflow;
use crate::plan::{GREEN, QUEUES, kind};
use crate::process::Process;
use crate::script::Script;
use crate::world::queue;

/// Sends small tasks and executions for as long as the queues are to be busy.
pub async fn filler(process: Process) {
    let dice = &process.gate.dice;
    while process.world.is_busy() {
        let classes = if process.world.has_classes { &Priority::ALL[..] } else { &[Priority::Normal] };
        for (name, priority) in QUEUES.iter().flat_map(|name| classes.iter().map(|class| (*name, *class))) {
            let request = ScheduleRequest {
                id: None,
                idempotency_key: None,
                queue: queue(name),
                kind: kind(),
                input: None,
                labels: None,
                retry: RetryPolicy::fixed(3, Millis::from_secs(1)),
                flow: FlowRequest { priority, ..FlowRequest::default() },
                timeouts: Timeouts::default(),
                start: tickover_core::task::command::Start::After(Millis::ZERO),
                trace: None,
                asked: tickover_service::tasks::schedule::Asked::default(),
            };
            // If one can't be scheduled, the next one follows.
            let _ = process.schedule(vec![request]).await;
        }
        let request = StartRequest {
            input: Some(Script::short(dice.roll()).input()),
            policy: StartPolicy::UseExisting,
            ..StartRequest::new(workflow(), queue(GREEN))
        };
        let _ = process.start(request).await;
        process.sleep(dice.secs(30, 60)).await;
    }
}
