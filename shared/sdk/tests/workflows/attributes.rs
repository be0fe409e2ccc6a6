//! The functions that the attributes generate, used as in a user's file.

// Everything except the prelude is named by its full path, because the generated code has to do the same.
use tickover::prelude::*;

mod steps {
    use serde::{Deserialize, Serialize};
    use tickover::prelude::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub(crate) struct Order {
        pub(crate) id: u32,
        pub(crate) amount: u32,
    }

    #[derive(Debug, Serialize, Deserialize, thiserror::Error)]
    #[serde(rename_all = "snake_case")]
    pub(crate) enum PaymentError {
        #[error("the bank said no to {amount}")]
        Declined { amount: u32 },
    }

    #[tickover::step(
        retry = "exponential(3, 2s, 1m)",
        non_retryable("declined"),
        timeout = "5m",
        scope = "per_attempt",
        at_most_once
    )]
    pub(crate) async fn charge(order: Order) -> Result<u32, PaymentError> {
        if order.amount > 100 {
            return Err(PaymentError::Declined { amount: order.amount });
        }
        Ok(order.id)
    }

    #[tickover::step(
        "print-label",
        queue = "labels",
        timeout = "1h",
        attempt_timeout = "90s",
        heartbeat = "10s",
        schedule_to_start = "20s",
        on_timeout = "terminal"
    )]
    pub(crate) async fn print_label(Order { id, .. }: Order, mut copies: u32) -> Result<String> {
        copies += 1;
        Ok(format!("{id} x {copies}"))
    }

    #[tickover::step(
        remote,
        concurrency(key = "order.id", limit = 5),
        concurrency(constant = "bank", limit = 50),
        rate(constant = "bank", limit = 100, per = "1m", burst = 20),
        priority = "high",
        fairness_key = "format!(\"{}-{reason}\", order.id)",
        requires("vault")
    )]
    pub(crate) async fn pay_back(order: Order, reason: String) -> Result<u32> {
        Ok(order.amount + u32::from(reason.is_empty()))
    }

    /// The alias hides both type arguments from the macro.
    pub(crate) type PickResult = std::result::Result<u8, Failure>;

    #[tickover::step(remote, heartbeat = "30s", on_timeout = "cancel")]
    pub(crate) async fn r#move() -> PickResult {
        Err(Failure::new("stuck", "the arm doesn't move"))
    }
}

use serde_json::json;
use steps::{Order, charge, r#move, print_label};
use tickover::{
    Json, Millis, Place, QueueName, Registry, RetryPolicy, States, StepFailed, StepHandler, StepOptions,
    WorkflowOptions,
};

fn registry() -> Registry {
    Registry::new().with_step::<charge>().with_step::<print_label>().with_step::<r#move>()
}

async fn run(kind: &str, input: serde_json::Value) -> Result<String, StepFailed> {
    let json = Json::parse(input.to_string()).ok_or_else(|| unreachable_input(kind))?;
    let registry = registry();
    let step = registry.step(kind).ok_or_else(|| unreachable_input(kind))?;
    step.run(&json, &States::default()).await.map(|output| output.as_str().to_owned())
}

fn unreachable_input(kind: &str) -> StepFailed {
    StepFailed { failure: Failure::new("unknown", kind), retryable: false, error: None }
}

#[test]
fn a_steps_options_come_from_its_attribute() {
    let retry = RetryPolicy {
        max_delay: Some(Millis::from_secs(60)),
        non_retryable: vec!["declined".to_owned()],
        ..RetryPolicy::exponential(3, Millis::from_secs(2))
    };
    assert_eq!(
        charge::options(),
        StepOptions {
            retry,
            timeout: Some(Millis::from_secs(300)),
            scope: Scope::PerAttempt,
            at_most_once: true,
            ..StepOptions::default()
        }
    );
    assert_eq!(
        print_label::options(),
        StepOptions {
            timeout: Some(Millis::from_secs(3_600)),
            attempt_timeout: Some(Millis::from_secs(90)),
            heartbeat: Some(Millis::from_secs(10)),
            schedule_to_start: Some(Millis::from_secs(20)),
            on_timeout: OnTimeout::Terminal,
            place: Place::Remote { queue: QueueName::parse("labels").ok() },
            ..StepOptions::default()
        }
    );
    assert_eq!(
        r#move::options(),
        StepOptions {
            heartbeat: Some(Millis::from_secs(30)),
            on_timeout: OnTimeout::Cancel,
            place: Place::Remote { queue: None },
            ..StepOptions::default()
        }
    );
}

#[test]
fn the_keys_of_flow_control_are_made_of_a_steps_arguments() {
    let step = steps::pay_back(Order { id: 7, amount: 1 }, "late".to_owned());
    let made = steps::charge(Order { id: 7, amount: 1 })
        .remote()
        .concurrency(7, 5)
        .concurrency("bank", 50)
        .rate("bank", 100, "1m")
        .burst(20)
        .priority(Priority::High)
        .fairness_key("7-late")
        .requires(["vault"]);
    let flow = |shown: String| shown[shown.find("flow: ").unwrap()..].to_owned();
    assert_eq!(flow(format!("{step:?}")), flow(format!("{made:?}")));
}

#[test]
fn a_step_has_its_functions_name_unless_its_attribute_gives_one() {
    assert_eq!([charge::NAME, print_label::NAME, r#move::NAME], ["charge", "print-label", "move"]);
}

#[tokio::test]
async fn a_worker_runs_a_step_by_its_name() {
    assert_eq!(run("charge", json!({"id": 7, "amount": 30})).await, Ok("7".to_owned()));
    let arguments = json!([{"id": 7, "amount": 30}, 2]);
    assert_eq!(run("print-label", arguments).await, Ok("\"7 x 3\"".to_owned()));
    assert_eq!(run("move", json!(null)).await.unwrap_err().failure.code, "stuck");
}

#[tokio::test]
async fn a_typed_error_has_its_variant_as_code_and_is_restored_whole() {
    let failed = run("charge", json!({"id": 7, "amount": 300})).await.unwrap_err();
    assert_eq!(failed.failure, Failure::new("declined", "the bank said no to 300"));
    assert!(!failed.retryable);
    assert_eq!(failed.into_task_failure().message, r#"{"declined":{"amount":300}}"#);
}

#[tokio::test]
async fn several_arguments_are_an_array_and_a_bad_one_is_named() {
    let failed = run("print-label", json!([{"id": 7, "amount": "many"}, 2])).await.unwrap_err();
    assert!(failed.failure.message.contains("at `[0].amount`"), "{}", failed.failure);
}

#[tickover::workflow(
    "order-fulfilment",
    timeout = "30m",
    run_timeout = "10m",
    retry = "fixed(2, 10s)",
    non_retryable("Declined"),
    queue = "orders",
    on_failure = refund,
    on_failure_timeout = "1m",
    on_cancel = forget,
    on_cancel_timeout = "2m",
    patches("new-tax", "two-boxes"), on_drift = "go_on"
)]
async fn fulfil(_ctx: Ctx, order: Order) -> Result<u32> {
    Ok(order.amount)
}

async fn refund(_: Ctx, order: Order, failed: Cause) -> Result<Option<u32>, std::io::Error> {
    match failed {
        Cause::Step { .. } => Ok(Some(order.amount)),
        Cause::Body(_) | Cause::ExecutionDeadline | Cause::RunDeadline => Ok(None),
    }
}

async fn forget(_: Ctx, _: Order) -> Result<(), std::io::Error> {
    Ok(())
}

#[tickover::workflow]
async fn nightly(_: Ctx) -> std::result::Result<(), std::io::Error> {
    Ok(())
}

#[test]
fn a_workflow_is_a_value_with_the_options_of_its_attribute() {
    assert_eq!(fulfil().name(), "order-fulfilment");
    assert_eq!(
        fulfil().options(),
        WorkflowOptions {
            execution_timeout: Some(Millis::from_secs(1_800)),
            run_timeout: Some(Millis::from_secs(600)),
            retry: "fixed(2, 10s)",
            non_retryable: &["Declined"],
            on_failure_timeout: Some(Millis::from_secs(60)),
            on_cancel_timeout: Some(Millis::from_secs(120)),
            queue: "orders",
            patches: &["new-tax", "two-boxes"],
            on_drift: tickover::OnDrift::GoOn,
        }
    );
    assert_eq!((nightly().name(), nightly().options()), ("nightly", WorkflowOptions::default()));
}

#[test]
fn a_worker_runs_workflows_of_different_types() {
    let registry = Registry::new().with((fulfil, nightly));
    assert_eq!(registry.check(), Ok(()));
    assert!(registry.workflow("order-fulfilment").is_some_and(tickover::ErasedWorkflow::has_on_failure));
    assert!(registry.workflow("nightly").is_some_and(|workflow| !workflow.has_on_failure()));
}

#[test]
fn calling_a_step_function_creates_a_step_and_runs_nothing() {
    let step: Step<u32, steps::PaymentError> = charge(Order { id: 1, amount: 2 }).named("charge[1]");
    assert!(format!("{step:?}").contains("charge[1]"));
}

mod plain_names {
    use tickover::prelude::*;

    /// The generated code mustn't hide a function of the user's.
    fn body(input: u32) -> Result<u32> {
        if input > 1 { Ok(input) } else { Err(Failure::new("too_small", "").into()) }
    }

    async fn on_failure(ctx: Ctx, input: u32, _cause: Cause) -> Result<Option<u32>> {
        let more = ctx.capture("more", || 5).await?;
        Ok(Some(body(input + more)?))
    }

    #[tickover::workflow(on_failure = on_failure)]
    pub(crate) async fn story(ctx: Ctx, input: u32) -> Result<u32> {
        let nothing = ctx.capture("nothing", || 0).await?;
        body(input + nothing)
    }
}

#[tokio::test]
async fn a_workflow_calls_the_functions_of_its_module_whatever_their_names() {
    let env = tickover::test::TestEnv::new().workflow(plain_names::story);
    for (input, output) in [(7, 7), (1, 6)] {
        let run = env.start(&plain_names::story, input).await.expect("a start");
        assert_eq!(run.result().await.expect("a result"), output);
    }
}

mod own_name {
    use tickover::prelude::*;

    fn half(order: u32) -> Result<u32, u32> {
        if order.is_multiple_of(2) { Ok(order / 2) } else { Err(order) }
    }

    /// Its name is also that of its input, of a variable, and in patterns.
    #[tickover::workflow]
    pub(crate) async fn order(ctx: Ctx, order: u32) -> Result<u32> {
        let order = ctx.capture("more", move || order + 1).await?;
        match half(order) {
            Ok(order) | Err(order) => Ok(order),
        }
    }

    #[tickover::workflow]
    pub(crate) async fn twice(ctx: Ctx, number: u32) -> Result<u32> {
        Ok(ctx.child(&order, number).await? * 2)
    }
}

#[tokio::test]
async fn a_workflows_name_is_free_for_variables_patterns_and_parameters_of_its_module() {
    let env = tickover::test::TestEnv::new().workflow([own_name::order, own_name::twice]);
    for (input, output) in [(7, 4), (8, 9)] {
        let order = env.start(&own_name::order, input).await.expect("a start");
        assert_eq!(order.result().await.expect("a result"), output);
        // The function's value stands for it too.
        let twice = env.start(&own_name::twice(), input).await.expect("a start");
        assert_eq!(twice.result().await.expect("a result"), output * 2);
    }
}
