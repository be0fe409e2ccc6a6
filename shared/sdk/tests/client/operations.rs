//! Operations on many executions and tasks, as a user's program starts them.

#![expect(clippy::unwrap_used, reason = "a test fails if it doesn't find what it expects")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tickover::client::wire::request::PageQuery;
use tickover::client::{
    Action, ClientError, ExecutionStatus, OperationDescription, OperationHandle, OperationStatus, TaskStatus,
};
use tickover::prelude::*;
use tickover::test::TestEnv;

struct Bank(Arc<AtomicBool>);

#[tickover::step(retry = "none")]
async fn charge(#[state] bank: &Bank, cents: u32) -> Result<u32, Failure> {
    let is_open = bank.0.load(Ordering::SeqCst);
    if is_open { Ok(cents) } else { Err(Failure::new("closed", "no bank")) }
}

#[tickover::workflow]
async fn order(ctx: Ctx, cents: u32) -> Result<u32> {
    let charged = ctx.step(charge(cents)).await?;
    let tip: u32 = ctx.wait_for_event("tip", forever()).await?;
    Ok(charged + tip)
}

/// A system with three orders that have failed, and the bank's door.
async fn failed_orders() -> (TestEnv, Arc<AtomicBool>) {
    let door = Arc::new(AtomicBool::new(false));
    let env = TestEnv::new().workflow(order).state(Bank(Arc::clone(&door)));
    for number in 0..3 {
        let start = env.client().start(&order, 100).id(format!("order-{number}"));
        start.label("odd", (number % 2).to_string()).await.unwrap();
    }
    env.advance("1m").await.unwrap();
    door.store(true, Ordering::SeqCst);
    (env, door)
}

async fn ended(env: &TestEnv, operation: &OperationHandle) -> OperationDescription {
    env.run(operation.ended()).await.unwrap().unwrap()
}

async fn status(env: &TestEnv, id: &str) -> Option<ExecutionStatus> {
    env.client().handle::<u32>(id).unwrap().describe().await.unwrap().status.known()
}

#[tokio::test]
async fn failed_executions_are_counted_retried_and_get_an_event_together() {
    let (env, _door) = failed_orders().await;
    let client = env.client();
    let closed = || client.on_executions(Action::Retry).workflow("order").error_code("closed");
    let counted = ended(&env, &closed().dry_run().await.unwrap()).await;
    assert_eq!((counted.matched, counted.changed, counted.dry_run), (3, 0, true));
    assert_eq!(status(&env, "order-0").await, Some(ExecutionStatus::Failed));

    let even = ended(&env, &closed().label("odd", "0").await.unwrap()).await;
    assert_eq!((even.matched, even.changed, even.status.known()), (2, 2, Some(OperationStatus::Completed)));
    let one =
        ended(&env, &client.on_executions(Action::RetryStep).only("order-1").id("one").await.unwrap()).await;
    assert_eq!((one.id.as_str(), one.changed), ("one", 1));
    env.advance("1m").await.unwrap();
    let tips = client.send_event_to_many("tip", &7).workflow("order").status(ExecutionStatus::Waiting);
    let tips = tips.await.unwrap();
    assert_eq!(ended(&env, &tips).await.changed, 3);
    for id in ["order-0", "order-1", "order-2"] {
        let run = client.handle::<u32>(id).unwrap();
        assert_eq!(env.run(run.result()).await.unwrap().unwrap(), 107);
    }
}

#[tokio::test]
async fn tasks_are_cancelled_together_and_an_operation_is_stopped() {
    let env = TestEnv::new();
    let client = env.client();
    for number in 0..3 {
        client.task::<()>("letter", number).queue("mail").id(format!("letter-{number}")).await.unwrap();
    }
    let stopped = client.on_tasks(Action::Terminate).queue("mail").id("stopped").await.unwrap();
    assert!(client.operation("stopped").unwrap().stop().await.unwrap());
    assert!(!stopped.stop().await.unwrap());
    assert_eq!(ended(&env, &stopped).await.status.known(), Some(OperationStatus::Stopped));
    let some = client.on_tasks(Action::Cancel).kind("letter").only("letter-1").only("letter-2");
    let some = ended(&env, &some.status(TaskStatus::Pending).await.unwrap()).await;
    assert_eq!((some.matched, some.changed), (2, 2));
    let left = client.list_tasks().kind("letter").status(TaskStatus::Pending).await.unwrap().tasks;
    assert_eq!(left.iter().map(|task| task.id.as_str()).collect::<Vec<_>>(), ["letter-0"]);
}

#[tokio::test]
async fn what_is_no_name_is_refused_before_any_call() {
    let env = TestEnv::new();
    let client = env.client();
    for refused in [
        client.on_executions(Action::Retry).workflow("no name").await.unwrap_err(),
        client.on_executions(Action::Retry).only("").await.unwrap_err(),
        client.on_tasks(Action::Retry).queue("no name").label("a", "b").await.unwrap_err(),
        client.operation("no name").unwrap_err(),
    ] {
        assert!(matches!(refused, ClientError::Invalid { .. }), "{refused:?}");
    }
    // The first mistake counts, and no call is made.
    assert_eq!(client.api().operations(&PageQuery::default()).await.unwrap().operations, []);
}
