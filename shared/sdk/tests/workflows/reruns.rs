//! What a rerun keeps of the run before, as a user's program sees it.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

use tickover::client::Rerun;
use tickover::client::wire::request::CallbackResult;
use tickover::prelude::*;
use tickover::test::{BEGINNING, TestEnv};
use tickover::{Millis, step_info};

/// What the steps have done, in order, and which of them still fail.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<(Vec<String>, Vec<String>)>>);

impl Log {
    fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0.push(line.into());
    }

    fn lines(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).0)
    }

    fn breaks(&self, name: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.push(name.to_owned());
    }

    fn mend(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.clear();
    }

    fn is_broken(&self, name: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.iter().any(|broken| broken == name)
    }
}

/// Notes its name and its key, and fails as long as it is broken.
#[tickover::step(retry = "none")]
async fn work(#[state] log: &Log, name: String) -> Result<String, Failure> {
    log.add(name.as_str());
    if log.is_broken(&name) {
        Err(Failure::new("broken", name))
    } else {
        Ok(step_info().unwrap().idempotency_key)
    }
}

fn named(name: &str) -> tickover::Step<String, Failure> {
    work(name.to_owned()).named(name)
}

/// A system in which these steps fail.
fn env(broken: &[&str]) -> (TestEnv, Log) {
    let log = Log::default();
    for name in broken {
        log.breaks(name);
    }
    let workflows = (approval, approval_first, naps, (refunding, identifying, refunds), sending, receiver);
    (TestEnv::new().workflow(workflows).state(log.clone()), log)
}

thread_local! {
    /// The token of the only execution of a test.
    static TOKEN: RefCell<String> = const { RefCell::new(String::new()) };
}

#[tickover::workflow]
async fn approval(ctx: Ctx, (): ()) -> Result<String> {
    let callback = ctx.callback("approval", within("1d")).await?;
    TOKEN.set(callback.token().to_owned());
    let answer = match callback.result::<u32>().await {
        Ok(answer) => format!("answered {answer}"),
        Err(error) => error.to_string(),
    };
    ctx.step(named("after")).await?;
    Ok(answer)
}

/// It has a callback, and waits for it only after a step.
#[tickover::workflow]
async fn approval_first(ctx: Ctx, _: bool) -> Result<String> {
    let callback = ctx.callback("approval", within("1d")).await?;
    TOKEN.set(callback.token().to_owned());
    ctx.step(named("before")).await?;
    Ok(format!("answered {}", callback.result::<u32>().await?))
}

#[tokio::test]
async fn a_callback_that_was_answered_stays_answered_and_a_rerun_of_all_makes_a_new_one() {
    let (env, log) = env(&["after"]);
    let run = env.start(&approval, ()).await.unwrap();
    let answer = async |number: &str| {
        env.advance("1h").await.unwrap();
        let token = TOKEN.with_borrow(String::clone);
        let result = CallbackResult { output: serde_json::from_str(number).ok() };
        env.client().api().complete_callback(&token, &result).await.unwrap();
    };
    answer("7").await;
    run.result().await.unwrap_err();
    env.advance("2d").await.unwrap();
    log.mend();
    run.rerun(Rerun::Failed).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "answered 7");
    run.rerun(Rerun::All).await.unwrap();
    answer("8").await;
    assert_eq!(run.result().await.unwrap(), "answered 8");
}

#[tokio::test]
async fn a_callback_stays_answered_when_a_rerun_begins_at_a_later_step() {
    let (env, _log) = env(&[]);
    let run = env.start(&approval, ()).await.unwrap();
    env.advance("1h").await.unwrap();
    let token = TOKEN.with_borrow(String::clone);
    let result = CallbackResult { output: serde_json::from_str("7").ok() };
    env.client().api().complete_callback(&token, &result).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "answered 7");
    env.advance("2d").await.unwrap();
    // The second rerun is the same work as the first, whose callbacks are those of the run before.
    for again in [Rerun::From("after".to_owned()), Rerun::Failed, Rerun::Steps(vec!["after".to_owned()])] {
        run.rerun(again).await.unwrap();
        assert_eq!(run.result().await.unwrap(), "answered 7");
    }
    assert_eq!(TOKEN.with_borrow(String::clone), token);
}

#[tokio::test]
async fn a_callback_of_a_run_with_another_input_is_answered_by_the_token_from_before() {
    let (env, log) = env(&["before"]);
    let run = env.start(&approval_first, false).await.unwrap();
    env.advance("1h").await.unwrap();
    run.result().await.unwrap_err();
    log.mend();
    let token = TOKEN.with_borrow(String::clone);
    run.rerun_with(Rerun::Failed, &true).await.unwrap();
    env.advance("1h").await.unwrap();
    let result = CallbackResult { output: serde_json::from_str("7").ok() };
    env.client().api().complete_callback(&token, &result).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "answered 7");
}

/// It fails while it sleeps.
#[tickover::workflow]
async fn naps(ctx: Ctx, (): ()) -> Result<()> {
    ctx.sleep("first", "1h").await?;
    let nap = ctx.sleep("second", "2h");
    let fails = async {
        ctx.sleep("third", "1h").await?;
        ctx.step(named("after")).await?;
        Ok(())
    };
    tokio::try_join!(nap, fails)?;
    Ok(())
}

#[tokio::test]
async fn sleeps_that_have_ended_are_kept_and_others_begin_again() {
    let (env, log) = env(&["after"]);
    let run = env.start(&naps, ()).await.unwrap();
    run.result().await.unwrap_err();
    assert!(env.now().since(BEGINNING) < Millis::from_secs(7_260));
    env.advance("5h").await.unwrap();
    log.mend();
    let again = env.now();
    run.rerun(Rerun::Failed).await.unwrap();
    run.result().await.unwrap();
    let took = env.now().since(again).as_u64();
    assert!((7_200_000..7_260_000).contains(&took), "{took}");
}

async fn refund(ctx: Ctx, (): (), _: Cause) -> Result<Option<()>> {
    ctx.sleep("second-thoughts", "5m").await?;
    ctx.step(named("refund")).await?;
    Ok(None)
}

#[tickover::workflow(on_failure = refund)]
async fn refunding(ctx: Ctx, (): ()) -> Result<()> {
    ctx.step(named("charge")).await?;
    ctx.step(named("ship")).await?;
    Ok(())
}

#[tokio::test]
async fn the_code_after_a_failure_runs_whole_after_each_failure() {
    let (env, log) = env(&["ship"]);
    let run = env.start(&refunding, ()).await.unwrap();
    run.result().await.unwrap_err();
    assert_eq!(log.lines(), ["charge", "ship", "refund"]);
    let again = env.now();
    run.rerun(Rerun::Failed).await.unwrap();
    run.result().await.unwrap_err();
    assert_eq!(log.lines(), ["ship", "refund"]);
    assert!(env.now().since(again) >= Millis::from_secs(300), "it sleeps again");
}

#[tickover::workflow]
async fn refunds(ctx: Ctx, (): ()) -> Result<String> {
    Ok(ctx.step(named("refund")).await?)
}

/// Notes under which identities it has done its work.
async fn identified(ctx: Ctx, log: String, _: Cause) -> Result<Option<String>> {
    let id = ctx.uuid("refund").await?;
    let key = ctx.step(named("note")).await?;
    ctx.child(&refunds, ()).await?;
    ctx.send_event("tell", log.as_str(), "news", &format!("{id} {key}")).await?;
    Ok(None)
}

#[tickover::workflow(on_failure = identified)]
async fn identifying(ctx: Ctx, _log: String) -> Result<String> {
    Ok(ctx.step(named("ship")).await?)
}

#[tokio::test]
async fn the_code_after_a_failure_does_its_work_for_each_failure() {
    let (env, log) = env(&["ship"]);
    let to = env.submit(env.client().start(&receiver, ()).id("to")).await.unwrap();
    let run = env.start(&identifying, "to".to_owned()).await.unwrap();
    run.result().await.unwrap_err();
    assert_eq!(log.lines(), ["ship", "note", "refund"]);
    run.rerun(Rerun::Failed).await.unwrap();
    run.result().await.unwrap_err();
    assert_eq!(log.lines(), ["ship", "note", "refund"]);
    let [first, second] = to.result().await.unwrap().try_into().unwrap();
    let parts = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    assert!(parts(&first).iter().zip(parts(&second)).all(|(one, other)| *one != other), "{first}, {second}");
}

async fn sorry(ctx: Ctx, to: String, _: Cause) -> Result<Option<()>> {
    ctx.send_event("tell", to.as_str(), "news", &"sorry").await?;
    Ok(None)
}

#[tickover::workflow(on_failure = sorry)]
async fn sending(ctx: Ctx, to: String) -> Result<()> {
    ctx.send_event("tell", to.as_str(), "news", &"begun").await?;
    ctx.step(named("ship")).await?;
    Ok(())
}

#[tickover::workflow]
async fn receiver(ctx: Ctx, (): ()) -> Result<Vec<String>> {
    let first: String = ctx.wait_for_event("news", forever()).await?;
    let second: String = ctx.wait_for_event("news", within("1h")).await?;
    Ok(vec![first, second])
}

#[tokio::test]
async fn an_event_of_the_code_after_a_failure_is_its_own() {
    let (env, _log) = env(&["ship"]);
    let to = env.submit(env.client().start(&receiver, ()).id("to")).await.unwrap();
    let run = env.start(&sending, "to".to_owned()).await.unwrap();
    run.result().await.unwrap_err();
    assert_eq!(to.result().await.unwrap(), ["begun", "sorry"]);
}

#[tickover::step(remote)]
async fn far_item(#[state] log: &Log, number: u32) -> Result<u32, Failure> {
    log.add(number.to_string());
    if log.is_broken("far") { Err(Failure::new("broken", "far")) } else { Ok(number) }
}

/// The first step fails at once, and the others would be tried again.
async fn fan_out(ctx: Ctx) -> Result<usize> {
    let step = |number: u32| far_item(number).retry(if number == 0 { "none" } else { "fixed(9, 1h)" });
    let steps = (0..3).map(|number| ctx.step(step(number).named(format!("far[{number}]"))));
    Ok(futures::future::try_join_all(steps).await?.len())
}

#[tickover::workflow]
async fn fans_out(ctx: Ctx, (): ()) -> Result<usize> {
    fan_out(ctx).await
}

async fn gives_up(_: Ctx, (): (), _: Cause) -> Result<Option<usize>> {
    Ok(None)
}

#[tickover::workflow(on_failure = gives_up)]
async fn fans_out_handled(ctx: Ctx, (): ()) -> Result<usize> {
    fan_out(ctx).await
}

#[tokio::test]
async fn a_retry_of_a_step_runs_those_that_ended_with_the_execution_or_before_its_handler() {
    for order in [fans_out(), fans_out_handled()] {
        let log = Log::default();
        log.breaks("far");
        let env = TestEnv::new().workflow((fans_out, fans_out_handled)).step::<far_item>().state(log.clone());
        let run = env.start(&order, ()).await.unwrap();
        run.result().await.unwrap_err();
        log.mend();
        log.lines();
        run.retry_step("far[0]").await.unwrap();
        assert_eq!(run.result().await.unwrap(), 3, "{}", order.name());
        let mut again = log.lines();
        again.sort();
        assert_eq!(again, ["0", "1", "2"], "{}", order.name());
    }
}

/// Counts payments over many runs: a new one for each.
#[tickover::workflow]
async fn account(ctx: Ctx, (paid, left): (u32, u32)) -> Result<u32> {
    if left == 0 {
        return Ok(paid);
    }
    let more: u32 = ctx.wait_for_event("payment", forever()).await?;
    ctx.continue_as_new((paid + more, left - 1)).await
}

#[tokio::test]
async fn an_event_id_counts_once_over_all_runs_and_after_the_end() {
    let env = TestEnv::new().workflow(account);
    let run = env.submit(env.client().start(&account, (0, 3)).id("a")).await.unwrap();
    let to = env.client().handle::<u32>("a").unwrap();
    let pay = async |id: &str| {
        let sent = to.send_event("payment", 5).id(id).await.unwrap();
        env.run_until_idle().await.unwrap();
        sent.duplicate.unwrap_or_default()
    };
    assert!(!pay("one").await);
    assert!(pay("one").await);
    assert!(!pay("two").await);
    assert!(pay("one").await);
    assert!(!pay("three").await);
    assert_eq!(run.result().await.unwrap(), 15);
    for id in ["one", "two", "three"] {
        assert!(pay(id).await, "{id}");
    }
    assert!(to.send_event("payment", 5).id("four").await.is_err());
    run.restart().await.unwrap();
    assert!(pay("two").await);
}

/// Hundreds of events of one run, most of which are in segments by the end.
#[tickover::workflow]
async fn counter(ctx: Ctx, of: u32) -> Result<u32> {
    let mut sum = 0;
    for _ in 0..of {
        sum += ctx.wait_for_event::<u32>("payment", forever()).await?;
    }
    Ok(sum)
}

#[tokio::test]
async fn an_event_id_counts_once_in_a_long_run() {
    let env = TestEnv::new().workflow(counter);
    let run = env.submit(env.client().start(&counter, 120).id("c")).await.unwrap();
    let to = env.client().handle::<u32>("c").unwrap();
    for number in 0..120 {
        for repeated in [false, true] {
            let sent = to.send_event("payment", 1).id(format!("payment-{number}")).await.unwrap();
            assert_eq!(sent.duplicate.unwrap_or_default(), repeated, "{number}");
        }
        assert!(
            number == 0
                || to.send_event("payment", 1).id("payment-0").await.unwrap().duplicate.unwrap_or_default()
        );
        env.run_until_idle().await.unwrap();
    }
    assert_eq!(run.result().await.unwrap(), 120);
}

/// Fails as long as its name is broken, and notes its key.
#[tickover::step(remote, retry = "none")]
async fn far(#[state] log: &Log, name: String) -> Result<()> {
    log.add(tickover::step_info().unwrap().idempotency_key);
    if log.is_broken(&name) { Err(Failure::new("broken", name).into()) } else { Ok(()) }
}

#[tickover::workflow]
async fn charges_far_away(ctx: Ctx, name: String) -> Result<()> {
    Ok(ctx.step(far(name)).await?)
}

#[tokio::test]
async fn a_remote_step_that_a_rerun_repeats_has_its_idempotency_key_again() {
    let log = Log::default();
    let env = TestEnv::new().workflow(charges_far_away).step::<far>().state(log.clone());
    log.breaks("charge");
    let run = env.start(&charges_far_away, "charge".to_owned()).await.unwrap();
    run.result().await.unwrap_err();
    run.rerun(Rerun::Failed).await.unwrap();
    run.result().await.unwrap_err();
    log.mend();
    run.rerun(Rerun::Failed).await.unwrap();
    run.result().await.unwrap();
    let keys = log.lines();
    assert!(keys.len() == 3 && keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    // A rerun of all is new work.
    run.rerun(Rerun::All).await.unwrap();
    run.result().await.unwrap();
    assert_ne!(log.lines(), keys[..1]);
}

#[tickover::workflow("chain")]
async fn chain(ctx: Ctx, to: String) -> Result<String> {
    for name in ["first", "second", "third"] {
        ctx.step(work(format!("{name} {to}")).named(name)).await?;
    }
    Ok(to)
}

#[tokio::test]
async fn a_rerun_begins_at_a_step_and_may_have_another_input() {
    let log = Log::default();
    let env = TestEnv::new().workflow(chain).state(log.clone());
    let start = env.client().start(&chain, "ada".to_owned()).label("team", "blue");
    let run = env.submit(start).await.unwrap();
    run.result().await.unwrap();
    assert_eq!(log.lines(), ["first ada", "second ada", "third ada"]);
    run.rerun(Rerun::From("second".to_owned())).await.unwrap();
    assert_eq!(run.result().await.unwrap(), "ada");
    assert_eq!(log.lines(), ["second ada", "third ada"]);
    run.rerun_with(Rerun::From("third".to_owned()), "bob").await.unwrap();
    assert_eq!(run.result().await.unwrap(), "bob");
    assert_eq!(log.lines(), ["third bob"]);
    let wordy = "x".repeat(5_000);
    run.rerun_with(Rerun::All, &wordy).await.unwrap();
    assert_eq!(run.result().await.unwrap(), wordy);
    assert_eq!(log.lines().len(), 3);
    // The next one has that input, and labels stay.
    run.rerun(Rerun::All).await.unwrap();
    assert_eq!(run.result().await.unwrap(), wordy);
    assert_eq!(run.describe().await.unwrap().labels.unwrap().as_str(), r#"{"team":"blue"}"#);
    run.rerun(Rerun::From("fourth".to_owned())).await.unwrap_err();
}
