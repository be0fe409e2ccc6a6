//! The SDK's client over the HTTP interface, on a socket, with the whole system behind it in virtual time.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::future::IntoFuture as _;

use serde::{Deserialize, Serialize};
use tickover::Client;
use tickover::client::{
    DeadlineKind, Ended, ExecutionError, ExecutionStatus, Handle, Missed, Overlap, Rerun, RunState,
    ScheduleTask, TaskError, TaskStatus, TimeoutKind,
};
use tickover::prelude::*;
use tickover::test::{BEGINNING, TestEnv};
use tickover::{Millis, RetryPolicy};
use tickover_core::retry::Delay;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Order {
    number: u32,
}

#[tickover::step(retry = "fixed(1, 1s)")]
async fn charge(order: Order) -> Result<u32, Failure> {
    if order.number == 13 { Err(Failure::new("declined", "no funds")) } else { Ok(order.number) }
}

#[tickover::workflow("order", timeout = "30d", run_timeout = "10d")]
async fn fulfil(ctx: Ctx, order: Order) -> Result<String> {
    let charged = ctx.step(charge(order)).await?;
    let carrier: String = ctx.wait_for_event("shipped", forever()).await?;
    Ok(format!("{charged} by {carrier}"))
}

/// A system, and a client that reaches it over HTTP only.
struct Shop {
    env: TestEnv,
    client: Client,
}

impl Shop {
    async fn open() -> Self {
        Self::open_with(|env| env.workflow(fulfil)).await
    }

    async fn open_with(fill: impl FnOnce(TestEnv) -> TestEnv) -> Self {
        let env = fill(TestEnv::new());
        let router = tickover_api::router(env.service().clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { env, client: Client::http(&url).unwrap() }
    }

    async fn start(&self, number: u32) -> Handle<String> {
        let start = self.client.start(&fulfil, Order { number }).id(format!("order-{number}"));
        let handle = start.label("team", "blue").memo(vec![1, 2]).await.unwrap();
        self.env.run_until_idle().await.unwrap();
        handle
    }

    async fn send_event(&self, handle: &Handle<String>) {
        handle.send_event("shipped", "bicycle").id("e-1").await.unwrap();
        self.env.run_until_idle().await.unwrap();
    }
}

#[tokio::test]
async fn an_execution_is_started_gets_an_event_and_returns_its_result() {
    let shop = Shop::open().await;
    let handle = shop.start(7).await;
    assert_eq!(handle.id().as_str(), "order-7");
    let waiting = handle.describe().await.unwrap();
    assert_eq!((waiting.status.as_str(), waiting.queue.as_str()), ("waiting", "workflows"));
    assert_eq!(waiting.input.unwrap().as_str(), r#"{"number":7}"#);
    assert_eq!(waiting.labels.unwrap().as_str(), r#"{"team":"blue"}"#);
    assert_eq!(waiting.memo.unwrap().as_str(), "[1,2]");
    assert!(waiting.deadline_at.is_some() && waiting.run_deadline_at.is_some() && waiting.ended_at.is_none());

    shop.send_event(&handle).await;
    assert_eq!(handle.result().await.unwrap(), "7 by bicycle");
    let again = shop.client.start(&fulfil, Order { number: 7 }).id("order-7").reject_duplicate().await;
    assert_eq!(again.unwrap_err().code(), Some("id_conflict"));
}

#[tokio::test]
async fn a_client_over_http_gets_the_same_answers_as_one_without_a_network() {
    let shop = Shop::open().await;
    for number in [7, 13, 14, 15] {
        let handle = shop.start(number).await;
        match number {
            7 => shop.send_event(&handle).await,
            14 => assert_eq!(handle.terminate().await, Ok(Ended::Now)),
            15 => shop.env.advance("11d").await.unwrap(),
            _ => {}
        }
        shop.env.run_until_idle().await.unwrap();
        let direct = shop.env.client().handle::<String>(handle.id().as_str()).unwrap();
        assert_eq!(handle.describe().await.unwrap(), direct.describe().await.unwrap(), "{number}");
        assert_eq!(handle.result().await, direct.result().await, "{number}");
        assert_eq!(handle.timeline().await.unwrap(), direct.timeline().await.unwrap(), "{number}");
    }
    let declined = shop.client.handle::<String>("order-13").unwrap().result().await.unwrap_err();
    assert!(
        matches!(&declined, ExecutionError::Failed(Cause::Step { name, retries_exhausted: true, .. }) if name == "charge"),
        "{declined}"
    );
    let late = shop.client.handle::<String>("order-15").unwrap().result().await;
    assert_eq!(late, Err(ExecutionError::TimedOut(DeadlineKind::Run)));
    let listed = shop.client.list("order").status(ExecutionStatus::Failed).await.unwrap();
    assert_eq!(listed.executions.len(), 1);
}

#[tokio::test]
async fn operators_calls_and_events_work_over_http() {
    let shop = Shop::open().await;
    let handle = shop.start(7).await;
    assert_eq!((handle.pause().await, handle.pause().await), (Ok(true), Ok(false)));
    assert!(!handle.send_event("shipped", 1).id("e-0").await.unwrap().is_duplicate());
    assert!(handle.send_event("shipped", 2).id("e-0").await.unwrap().is_duplicate());
    let events = handle.events().await.unwrap();
    assert_eq!((events.len(), events[0].read::<u32>().unwrap()), (1, 1));
    assert_eq!(handle.clear_events("shipped").await, Ok(1));
    assert_eq!(handle.resume().await, Ok(true));

    assert!(matches!(handle.cancel().await, Ok(Ended::Now | Ended::Requested)));
    shop.env.run_until_idle().await.unwrap();
    assert_eq!(handle.cancel().await, Ok(Ended::Before));
    assert_eq!(handle.restart().await.unwrap().run, 2);
    shop.env.run_until_idle().await.unwrap();
    handle.terminate().await.unwrap();
    assert_eq!(handle.rerun(Rerun::Failed).await.unwrap().run, 3);
    shop.env.run_until_idle().await.unwrap();
    shop.send_event(&handle).await;
    assert_eq!(handle.result().await.unwrap(), "7 by bicycle");

    let declined = shop.start(13).await;
    assert_eq!(declined.retry_step("charge").await.unwrap().status, ExecutionStatus::Pending);
    assert_eq!(declined.retry_step("nobody").await.unwrap_err().code(), Some("unknown_step"));
    let nobody = shop.client.handle::<()>("nobody").unwrap();
    assert!(nobody.describe().await.unwrap_err().is_not_found());
}

/// Fails at its deadline, and has code for that.
#[tickover::workflow("watched", timeout = "1h", on_failure = rescue, on_failure_timeout = "2m")]
async fn watched(ctx: Ctx, (): ()) -> Result<String> {
    Ok(ctx.wait_for_event("more", forever()).await?)
}

async fn rescue(_: Ctx, (): (), cause: Cause) -> Result<Option<String>> {
    Ok(matches!(cause, Cause::ExecutionDeadline).then(|| "rescued".to_owned()))
}

#[tokio::test]
async fn on_failure_code_runs_for_an_execution_that_no_worker_had_started() {
    let Shop { env, client } = Shop::open_with(|env| env.workflow(watched)).await;
    // It may start only after its deadline.
    let handle = client.start(&watched, ()).id("watched-1").delay("2h").await.unwrap();
    env.advance("59m").await.unwrap();
    assert!(handle.describe().await.unwrap().is_live());
    env.advance("2m").await.unwrap();
    assert_eq!(handle.result().await.unwrap(), "rescued");
}

#[tokio::test]
async fn a_task_is_scheduled_the_same_over_http_and_without_a_network() {
    let shop = Shop::open().await;
    // The same request under one id returns the existing task; another request would be refused.
    let options: [fn(ScheduleTask<()>) -> ScheduleTask<()>; 10] = [
        |task| task.queue("mail").label("team", "blue").label("area", "north"),
        |task| task.retry("exponential(5, 1s, 1m)").timeout("1h").schedule_to_start_timeout("1m"),
        |task| task.retry(RetryPolicy { delay: listed(), ..RetryPolicy::fixed(3, Millis::ZERO) }),
        |task| task.timeout("1h").attempt_timeout("1m").heartbeat("10s"),
        |task| task.timeout("1h").attempt_timeout("1m").heartbeat("10s").on_timeout(OnTimeout::Terminal),
        |task| task.timeout("1h").attempt_timeout("1m").on_timeout(OnTimeout::Cancel),
        |task| task.timeout("1m").scope(Scope::PerAttempt).heartbeat("10s"),
        |task| task.timeout("1m").scope(Scope::PerAttempt).heartbeat("10s").on_timeout(OnTimeout::Cancel),
        |task| task.delay("1m 1ms").attempt_timeout("1s").on_timeout(OnTimeout::Terminal),
        |task| task.run_at(BEGINNING.plus(Millis::new(61_001))).idempotency_key("monthly"),
    ];
    for (number, with) in options.into_iter().enumerate() {
        let task =
            |client: &Client| with(client.task("nobody-serves-it", (1, "a")).id(format!("t-{number}")));
        let over_http = task(&shop.client).await.unwrap();
        let direct = task(shop.env.client()).await.unwrap_or_else(|error| panic!("{number}: {error}"));
        assert_eq!(over_http.describe().await.unwrap(), direct.describe().await.unwrap(), "{number}");
    }
    let other = shop.client.task::<()>("nobody-serves-it", 1).id("t-0").await;
    assert_eq!(other.unwrap_err().code(), Some("id_conflict"));
}

fn listed() -> Delay {
    Delay::Listed(vec![Millis::from_secs(1), Millis::from_secs(5)])
}

#[tokio::test]
async fn tasks_end_are_listed_cancelled_and_retried_over_http() {
    let shop = Shop::open_with(|env| env.step::<charge>().workflow(fulfil)).await;
    let charged = shop.client.schedule(charge(Order { number: 7 })).await.unwrap();
    let declined = shop.client.schedule(charge(Order { number: 13 })).id("declined").await.unwrap();
    let late = shop.client.task::<u32>("nobody-serves-it", 1).timeout("1h").id("late").await.unwrap();
    let waiting = shop.client.task::<u32>("nobody-serves-it", 2).id("waiting").await.unwrap();
    shop.env.advance("2h").await.unwrap();
    for task in [&charged, &declined, &late] {
        let direct = shop.env.client().task_handle::<u32>(task.id().as_str()).unwrap();
        assert_eq!(task.describe().await.unwrap(), direct.describe().await.unwrap());
        assert_eq!(task.result().await, direct.result().await);
    }
    assert_eq!(charged.result().await, Ok(7));
    assert_eq!(declined.result().await, Err(TaskError::Failed(Failure::new("declined", "no funds"))));
    assert!(matches!(
        late.result().await,
        Err(TaskError::TimedOut { kind: TimeoutKind::ScheduleToClose, .. })
    ));

    let dead = |client: &Client| {
        client.list_tasks().queue("workflows").status(TaskStatus::Failed).status(TaskStatus::TimedOut)
    };
    let listed = dead(&shop.client).limit(1).await.unwrap();
    assert_eq!(listed, dead(shop.env.client()).limit(1).await.unwrap());
    let rest = dead(&shop.client).cursor(listed.cursor.unwrap()).await.unwrap();
    assert_eq!((listed.tasks.len(), rest.tasks.len()), (1, 1));

    assert_eq!(declined.retry().await.unwrap().status, TaskStatus::Pending);
    assert_eq!(waiting.retry().await.unwrap_err().code(), Some("not_terminal"));
    assert_eq!((waiting.cancel().await, waiting.terminate().await), (Ok(Ended::Now), Ok(Ended::Before)));
    let nobody = shop.client.task_handle::<()>("nobody").unwrap();
    assert!(nobody.describe().await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn crons_are_created_and_operated_the_same_over_http_and_without_a_network() {
    let shop = Shop::open_with(|env| env.step::<charge>().workflow(fulfil)).await;
    let order = || Order { number: 7 };
    let daily = |client: &Client| {
        let start = client.start(&fulfil, order()).label("team", "blue").memo(vec![1.5]).delay("1s");
        let made = client.cron("daily").unwrap().create(start).cron("@daily").run_ids("d-{occurrence}");
        made.time_zone("Europe/Berlin").missed(Missed::RunOnce).jitter("1m").paused(false).into_future()
    };
    let hourly = |client: &Client, letters: &str| {
        let task = client.schedule(charge(order())).timeout("1h").label("letters", letters);
        let made = client.cron("hourly").unwrap().replace(task).every("1h");
        made.overlap(Overlap::TerminateOther).max_runs(3).into_future()
    };
    let direct = shop.env.client();
    assert_eq!(daily(&shop.client).await.unwrap(), daily(direct).await.unwrap());
    shop.env.advance("1s").await.unwrap();
    assert_eq!(hourly(&shop.client, "many").await.unwrap(), hourly(direct, "many").await.unwrap());
    let first = shop.client.list_crons().limit(1).await.unwrap();
    assert_eq!(first, direct.list_crons().limit(1).await.unwrap());
    let rest = shop.client.list_crons().cursor(first.cursor.unwrap()).await.unwrap();
    assert_eq!((rest.crons.len(), rest.crons[0].id.as_str()), (1, "hourly"));

    shop.env.advance("26h").await.unwrap();
    for (id, started, state) in [("daily", 1, RunState::Open), ("hourly", 3, RunState::Started)] {
        let over_http = shop.client.cron(id).unwrap();
        let found = over_http.describe().await.unwrap();
        assert_eq!(found, direct.cron(id).unwrap().describe().await.unwrap());
        assert_eq!((found.started, found.runs[0].state.known()), (started, Some(state)), "{id}");
    }

    let daily = shop.client.cron("daily").unwrap();
    assert!(daily.pause().await.unwrap().paused_at.is_some());
    assert!(daily.resume().await.unwrap().next_at.is_some());
    let run = daily.trigger().await.unwrap();
    assert!(shop.client.handle::<String>(run).unwrap().describe().await.unwrap().is_live());
    daily.delete().await.unwrap();
    assert!(daily.describe().await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn defaults_of_a_kind_are_set_and_read_by_the_client_over_http_and_without_a_network() {
    let shop = Shop::open().await;
    let queue = tickover::QueueName::parse("mail").unwrap();
    for (kind, client) in [("send", &shop.client), ("digest", shop.env.client())] {
        let kind = tickover::client::TaskKind::parse(kind).unwrap();
        let api = client.api();
        let attempts = async || {
            let task = client.task::<()>(kind.as_str(), 1).queue("mail").await.unwrap();
            task.describe().await.unwrap().max_attempts
        };
        let defaults = serde_json::from_str(r#"{"retry": "fixed(3, 2s)"}"#).unwrap();
        let set = api.set_kind(&queue, &kind, &defaults).await.unwrap();
        assert_eq!(set, api.kind(&queue, &kind).await.unwrap());
        assert_eq!(
            (set.kind.kind, set.kind.defaults.as_str()),
            (kind.clone(), r#"{"retry":"fixed(3, 2s)"}"#)
        );
        assert_eq!(api.kinds(&queue).await.unwrap().kinds.len(), 1);
        assert_eq!(i64::from(attempts().await.0), 4);
        let wrong = serde_json::from_str(r#"{"timeout": "1m", "deadline": "1m"}"#).unwrap();
        let refused = api.set_kind(&queue, &kind, &wrong).await.unwrap_err();
        assert_eq!(refused.code(), Some("invalid_request"), "{refused}");
        assert!(api.delete_kind(&queue, &kind).await.unwrap().deleted);
        assert_eq!(api.kind(&queue, &kind).await.unwrap_err().code(), Some("not_found"));
        assert_eq!(i64::from(attempts().await.0), 1);
    }
}

#[tickover::step("open-print", remote, queue = "mail")]
async fn open_print(page: u32) -> Result<u32> {
    Ok(page)
}

#[tickover::step("own-print", remote, queue = "mail", retry = "none")]
async fn own_print(page: u32) -> Result<u32> {
    Ok(page)
}

#[tickover::workflow("prints")]
async fn prints(ctx: Ctx, (): ()) -> Result<()> {
    let urgent = || tickover::Priority::Normal;
    ctx.step(open_print(1)).await?;
    ctx.step(own_print(1)).await?;
    ctx.step(open_print(2).named("built").retry("none").priority(urgent()).requires([""; 0])).await?;
    Ok(())
}

#[tokio::test]
async fn options_that_ask_for_nothing_go_before_the_defaults_of_a_kind_in_steps_and_scheduled_tasks() {
    let shop = Shop::open_with(|env| env.workflow(prints).step::<open_print>().step::<own_print>()).await;
    let queue = tickover::QueueName::parse("mail").unwrap();
    let defaults =
        serde_json::from_str(r#"{"retry": "fixed(3, 2s)", "priority": "low", "requires": ["ink"]}"#);
    let defaults = defaults.unwrap();
    for kind in ["open-print", "own-print"] {
        let kind = tickover::client::TaskKind::parse(kind).unwrap();
        shop.client.api().set_kind(&queue, &kind, &defaults).await.unwrap();
    }
    shop.client.start(&prints, ()).id("prints").await.unwrap();
    shop.env.run_until_idle().await.unwrap();
    let scheduled = |client: &Client| client.schedule(own_print(3)).id("own");
    scheduled(&shop.client).await.unwrap();
    scheduled(shop.env.client()).await.unwrap();
    let none = shop.client.schedule(open_print(4)).retry("none").requires([""; 0]).id("none");
    none.priority(tickover::Priority::Normal).await.unwrap();
    shop.client.schedule(open_print(5)).id("open").await.unwrap();
    let tasks = shop.client.list_tasks().queue("mail").await.unwrap().tasks;
    let mut seen: Vec<_> = tasks
        .into_iter()
        .map(|task| (task.kind.to_string(), i64::from(task.max_attempts.0), task.priority.is_some()))
        .collect();
    seen.sort();
    let row = |kind: &str, attempts, is_low| (kind.to_owned(), attempts, is_low);
    let expected = [
        row("open-print", 1, false),
        row("open-print", 1, false),
        row("open-print", 4, true),
        row("open-print", 4, true),
        row("own-print", 1, true),
        row("own-print", 1, true),
    ];
    assert_eq!(seen, expected);
}
