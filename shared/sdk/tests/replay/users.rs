//! Code as users write it, whose replays once went another way than the run before them.

use std::cell::RefCell;
use std::collections::BTreeSet;

use futures::future::{FusedFuture as _, poll_immediate, select_all};
use futures::stream::{self, FuturesUnordered};
use futures::{FutureExt as _, StreamExt as _};
use tickover::client::ExecutionStatus;
use tickover::prelude::*;
use tickover::test::{BEGINNING, TestEnv};
use tickover::{Millis, Register};
use tickover_service::Service;

thread_local! {
    /// What each start of the body on this thread has seen.
    static SEEN: RefCell<Vec<Vec<String>>> = const { RefCell::new(vec![]) };
    /// The steps that started.
    static BEGUN: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) };
    /// The system of the test that runs on this thread.
    static SYSTEM: RefCell<Option<Service>> = const { RefCell::new(None) };
}

/// The body starts.
fn begin() {
    SEEN.with_borrow_mut(|seen| seen.push(vec![]));
}

/// The body sees a value.
fn saw(what: &impl ToString) {
    SEEN.with_borrow_mut(|seen| seen.last_mut().unwrap().push(what.to_string()));
}

/// Takes this many seconds.
#[tickover::step]
async fn work(seconds: u64) -> Result<u64> {
    BEGUN.with_borrow_mut(|begun| begun.insert(step_info().unwrap().name));
    let service = SYSTEM.with_borrow(Clone::clone).unwrap();
    service.clock().sleep_until(service.now().plus(Millis::from_secs(seconds))).await;
    Ok(seconds)
}

fn begun() -> Vec<String> {
    BEGUN.take().into_iter().collect()
}

fn env_of(workflow: impl Register) -> TestEnv {
    SEEN.take();
    BEGUN.take();
    let env = TestEnv::new().workflow(workflow);
    SYSTEM.set(Some(env.service().clone()));
    env
}

/// Runs a story without a death, and once with a death after each write. Each start of the body must go the same way.
async fn always(workflow: impl Register + Copy, expected: &[&str], story: impl AsyncFn(&TestEnv)) {
    let env = env_of(workflow);
    story(&env).await;
    let turns = agree(expected, "undisturbed");
    assert!(turns > 1, "nothing was replayed");
    for write in 1..=env.writes() {
        let env = env_of(workflow);
        env.kill_after_write(write);
        story(&env).await;
        agree(expected, &format!("death after write {write}"));
    }
}

/// How many starts of the body there were. The last one has seen all of `expected`, and each of the others a prefix of
/// it.
fn agree(expected: &[&str], when: &str) -> usize {
    let seen = SEEN.take();
    for turn in &seen {
        assert!(turn.iter().zip(expected).all(|(one, other)| one == other), "{when}: {turn:?}");
    }
    assert_eq!(seen.last().unwrap(), expected, "{when}");
    seen.len()
}

#[tickover::workflow("approval")]
async fn approval(ctx: Ctx, biased: bool) -> Result<u32> {
    begin();
    let mut decision = ctx.wait_for_event::<String>("decision", forever());
    let mut reminders = 0;
    loop {
        let reminder = ctx.sleep(format!("reminder[{reminders}]"), "1d");
        let decided = if biased {
            tokio::select! { biased; decided = &mut decision => Some(decided), _ = reminder => None }
        } else {
            tokio::select! { decided = &mut decision => Some(decided), _ = reminder => None }
        };
        if let Some(decided) = decided {
            saw(&decided?);
            break Ok(reminders);
        }
        saw(&"reminder");
        ctx.step(work(1).named(format!("mail[{reminders}]"))).await?;
        saw(&"mail");
        reminders += 1;
    }
}

#[tokio::test]
async fn an_approval_counts_the_reminders_that_were_sent() {
    for biased in [true, false] {
        always(approval, &["reminder", "mail", "reminder", "mail", "yes"], async |env| {
            let run = env.start(&approval, biased).await.unwrap();
            env.advance("2d 12h").await.unwrap();
            run.send_event("decision", "yes").await.unwrap();
            assert_eq!(run.result().await.unwrap(), 2);
            assert_eq!(begun(), ["mail[0]", "mail[1]"]);
        })
        .await;
    }
}

#[tickover::workflow("first-of-two")]
async fn first_of_two(ctx: Ctx, seconds: [u64; 2]) -> Result<()> {
    begin();
    let [one, other] = seconds.map(work);
    tokio::select! {
        _ = ctx.step(one.named("quote[0]")) => ctx.step(work(1).named("order[0]")).await?,
        _ = ctx.step(other.named("quote[1]")) => ctx.step(work(1).named("order[1]")).await?,
    };
    saw(&"ordered");
    ctx.sleep("delivery", "1d").await?;
    saw(&"delivered");
    Ok(())
}

#[tokio::test]
async fn only_the_branch_of_the_first_of_two_runs() {
    for (seconds, winner) in [([9, 4], "order[1]"), ([4, 9], "order[0]"), ([4, 4], "order[")] {
        always(first_of_two, &["ordered", "delivered"], async |env| {
            env.start(&first_of_two, seconds).await.unwrap().result().await.unwrap();
            let orders: Vec<String> = begun().into_iter().filter(|name| name.starts_with("order")).collect();
            assert!(orders.len() == 1 && orders[0].starts_with(winner), "{seconds:?}: {orders:?}");
        })
        .await;
    }
}

/// Four steps that end in another order than they start.
fn four(ctx: &Ctx) -> Vec<impl Future<Output = Result<u64, StepError<Error>>> + Unpin + use<>> {
    [4, 1, 3, 2].into_iter().map(|seconds| ctx.step(work(seconds).named(format!("s{seconds}")))).collect()
}

#[tickover::workflow("unordered")]
async fn unordered(ctx: Ctx, (): ()) -> Result<()> {
    begin();
    let mut all: FuturesUnordered<_> = four(&ctx).into_iter().collect();
    while let Some(seconds) = all.next().await {
        saw(&seconds?);
        ctx.sleep(format!("after[{}]", all.len()), "1h").await?;
    }
    Ok(())
}

#[tokio::test]
async fn unordered_futures_give_their_results_in_the_same_order_again() {
    always(unordered, &["1", "2", "3", "4"], async |env| {
        env.start(&unordered, ()).await.unwrap().result().await.unwrap();
    })
    .await;
}

#[tickover::workflow("buffered")]
async fn buffered(ctx: Ctx, (): ()) -> Result<()> {
    begin();
    let noted = four(&ctx).into_iter().map(|step| step.inspect(|seconds| saw(seconds.as_ref().unwrap())));
    let all: Vec<_> = stream::iter(noted).buffered(3).collect().await;
    saw(&all.len());
    ctx.sleep("after", "1h").await?;
    saw(&"after");
    Ok(())
}

#[tokio::test]
async fn buffered_futures_end_in_the_same_order_again() {
    // The last one starts when the first has ended.
    always(buffered, &["1", "3", "4", "2", "4", "after"], async |env| {
        env.start(&buffered, ()).await.unwrap().result().await.unwrap();
    })
    .await;
}

#[tickover::workflow("races")]
async fn races(ctx: Ctx, (): ()) -> Result<()> {
    begin();
    let mut left = four(&ctx);
    while !left.is_empty() {
        let (won, _, rest) = select_all(left).await;
        saw(&won?);
        left = rest;
        if left.len() == 2 {
            ctx.sleep("pause", "1h").await?;
        }
    }
    ctx.sleep("after", "1h").await?;
    saw(&"after");
    Ok(())
}

#[tokio::test]
async fn a_race_is_won_by_the_same_step_again() {
    // Futures that ended while they weren't polled come in the order in which they ended.
    always(races, &["1", "2", "3", "4", "after"], async |env| {
        env.start(&races, ()).await.unwrap().result().await.unwrap();
    })
    .await;
}

#[tickover::workflow("drained")]
async fn drained(ctx: Ctx, (): ()) -> Result<usize> {
    begin();
    let mut all: FuturesUnordered<_> = four(&ctx).into_iter().collect();
    let mut count = 0;
    while let Some(seconds) = all.next().await {
        saw(&seconds?);
        count += 1;
    }
    ctx.sleep("after", "1h").await?;
    saw(&all.len());
    Ok(count)
}

#[tokio::test]
async fn unordered_futures_that_have_all_ended_keep_no_worker_busy() {
    let env = env_of(drained);
    let run = env.start(&drained, ()).await.unwrap();
    env.run_until_idle().await.unwrap();
    assert_eq!(run.describe().await.unwrap().status, ExecutionStatus::Waiting);
    assert_eq!(env.now().since(BEGINNING), Millis::from_secs(4));
    assert_eq!(run.result().await.unwrap(), 4);
    assert_eq!(env.now().since(BEGINNING), Millis::from_secs(3_604));
    agree(&["1", "2", "3", "4", "0"], "undisturbed");
}

#[tickover::workflow("aside")]
async fn aside(ctx: Ctx, (): ()) -> Result<()> {
    begin();
    let mut early = ctx.step(work(1).named("early"));
    assert!(poll_immediate(&mut early).await.is_none(), "no future has ended when it is first polled");
    ctx.step(work(5).named("late")).await?;
    saw(&"late");
    ctx.sleep("nap", "1h").await?;
    saw(&"nap");
    early.await?;
    saw(&"early");
    ctx.sleep("end", "1h").await?;
    saw(&"end");
    Ok(())
}

#[tokio::test]
async fn outcomes_during_another_await_come_later_in_replays_too() {
    always(aside, &["late", "nap", "early", "end"], async |env| {
        env.start(&aside, ()).await.unwrap().result().await.unwrap();
    })
    .await;
}

#[tickover::workflow("handled")]
async fn handled(ctx: Ctx, (): ()) -> Result<()> {
    begin();
    let [mut one, mut two, mut three, mut four] =
        [4, 3, 1, 2].map(|seconds| ctx.step(work(seconds).named(format!("s{seconds}"))).fuse());
    loop {
        // Which branch `select!` polls first is random.
        let seconds = tokio::select! {
            seconds = &mut one, if !one.is_terminated() => seconds?,
            seconds = &mut two, if !two.is_terminated() => seconds?,
            seconds = &mut three, if !three.is_terminated() => seconds?,
            seconds = &mut four, if !four.is_terminated() => seconds?,
            else => break,
        };
        saw(&seconds);
        ctx.step(work(10).named(format!("handle[{seconds}]"))).await?;
        saw(&"handled");
    }
    ctx.sleep("after", "1h").await?;
    Ok(())
}

#[tokio::test]
async fn outcomes_during_handling_come_one_by_one_in_the_order_in_which_they_ended() {
    let expected = ["1", "handled", "2", "handled", "3", "handled", "4", "handled"];
    always(handled, &expected, async |env| {
        env.start(&handled, ()).await.unwrap().result().await.unwrap();
    })
    .await;
}

#[tickover::workflow("looked")]
async fn looked(ctx: Ctx, (): ()) -> Result<()> {
    begin();
    let mut other = ctx.step(work(1).named("aside"));
    assert!(poll_immediate(&mut other).await.is_none());
    let mut awaited = ctx.step(work(90).named("awaited"));
    let mut looks = 0;
    while poll_immediate(&mut awaited).await.is_none() {
        assert!(looks < 9, "the future ended long ago");
        ctx.sleep(format!("minute[{looks}]"), "1m").await?;
        looks += 1;
    }
    saw(&"awaited");
    other.await?;
    saw(&"other");
    ctx.sleep("end", "1h").await?;
    Ok(())
}

/// A future that is only polled now and then is seen to have ended, even if another outcome that nothing polls comes
/// before it.
#[tokio::test]
async fn a_rarely_polled_future_is_seen_to_have_ended() {
    always(looked, &["awaited", "other"], async |env| {
        env.start(&looked, ()).await.unwrap().result().await.unwrap();
    })
    .await;
}

#[tickover::workflow("spawned")]
async fn spawned(ctx: Ctx, (): ()) -> Result<u64> {
    let step = tokio::spawn(ctx.step(work(1)));
    Ok(step.await.unwrap()?)
}

#[tokio::test]
async fn a_context_future_in_a_spawned_task_fails_the_run_with_advice() {
    let env = env_of(spawned);
    let error = env.start(&spawned, ()).await.unwrap().result().await.unwrap_err();
    let failure = error.failure().unwrap();
    assert_eq!(failure.code, "outside_turn");
    for advice in ["tokio::spawn", "await it in the workflow", "ctx.join_all", "tokio::join!"] {
        assert!(failure.message.contains(advice), "{}", failure.message);
    }
    assert!(begun().is_empty());
}
