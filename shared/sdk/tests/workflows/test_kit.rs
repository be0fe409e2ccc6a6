//! The test kit, as a user's tests use it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tickover::Millis;
use tickover::prelude::*;
use tickover::test::{BEGINNING, TestEnv, with_each_death};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Label {
    text: String,
}

#[tickover::workflow("label")]
async fn label(ctx: Ctx, text: String) -> Result<Label> {
    ctx.sleep("wait", "6d 23h").await?;
    let step = remote::<Label>("print-label", &text).retry("fixed(2, 1m)");
    Ok(ctx.step(step).await?)
}

/// A printer that always works.
fn printer() -> impl Fn(String) -> Result<Label, Failure> + Send + Sync {
    |text| Ok(Label { text: format!("[{text}]") })
}

#[tokio::test]
async fn advancing_a_week_moves_the_clock_by_a_week() {
    let env = TestEnv::new().workflow(label).answer("print-label", printer());
    let run = env.start(&label, "books".to_owned()).await.unwrap();
    env.advance("6d").await.unwrap();
    assert_eq!(env.now().since(BEGINNING), Millis::from_secs(6 * 86_400));
    assert!(run.describe().await.unwrap().is_live());
    assert_eq!(run.result().await.unwrap(), Label { text: "[books]".to_owned() });
    let taken = env.now().since(BEGINNING);
    assert!(taken >= Millis::from_secs(167 * 3_600) && taken < Millis::from_secs(167 * 3_600 + 1), "{taken}");
}

#[tokio::test]
async fn an_answer_may_be_an_error_that_is_tried_again() {
    let tries = AtomicU32::new(0);
    let env = TestEnv::new().workflow(label).answer("print-label", move |text| {
        match tries.fetch_add(1, Ordering::SeqCst) {
            0 => Err(Failure::new("jammed", "no paper")),
            _ => printer()(text),
        }
    });
    let run = env.start(&label, "books".to_owned()).await.unwrap();
    assert_eq!(run.result().await.unwrap().text, "[books]");
    assert!(env.now().since(BEGINNING) >= Millis::from_secs(167 * 3_600 + 60));
}

#[tokio::test]
async fn a_step_without_an_answer_is_named_and_may_be_answered_later() {
    let env = TestEnv::new().workflow(label);
    let run = env.start(&label, "books".to_owned()).await.unwrap();
    let error = run.result().await.unwrap_err().to_string();
    assert!(error.contains("kinds print-label") && error.contains("step print-label: sent"), "{error}");
    assert_eq!(env.unanswered(), ["print-label"]);

    env.answer_now("print-label", printer()).await.unwrap();
    assert_eq!(run.result().await.unwrap().text, "[books]");
    assert!(env.unanswered().is_empty());
}

#[tickover::workflow("question")]
async fn question(ctx: Ctx) -> Result<String> {
    Ok(ctx.wait_for_event("answer", forever()).await?)
}

#[tokio::test]
async fn an_endless_wait_is_an_error_that_shows_the_timeline() {
    let env = TestEnv::new().workflow(question);
    let run = env.start(&question, ()).await.unwrap();
    let error = run.result().await.unwrap_err().to_string();
    assert!(error.contains("stalled") && error.contains("+0ms  question"), "{error}");
    env.send_event(run.id().as_str(), "answer", "42").await.unwrap();
    assert_eq!(run.result().await.unwrap(), "42");
}

#[tokio::test]
async fn a_timeline_shows_each_event_with_its_time() {
    let env = TestEnv::new().workflow(label).answer("print-label", printer());
    let start = env.client().start(&label, "books".to_owned()).id("label-1");
    let run = env.submit(start).await.unwrap();
    run.result().await.unwrap();
    let timeline = run.timeline().await.unwrap();
    let lines: Vec<&str> = timeline.lines().map(str::trim).collect();
    assert_eq!(
        lines,
        [
            "+0ms  label label-1 started",
            "+0ms  wait: waits until +6d 23h",
            "+6d 23h  wait: over",
            "+6d 23h  step print-label: sent to other workers",
            "+6d 23h  step print-label: completed with {\"text\":\"[books]\"}",
            "+6d 23h  completed with {\"text\":\"[books]\"}",
        ]
    );
}

static RUNS: AtomicU32 = AtomicU32::new(0);

#[tickover::step]
async fn slow() -> Result<u32> {
    let runs = RUNS.fetch_add(1, Ordering::SeqCst) + 1;
    // The event that it waits for happens in the real world, outside of the virtual time.
    let (sender, receiver) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || sender.send(runs));
    Ok(receiver.await?)
}

#[tickover::workflow("patient")]
async fn patient(ctx: Ctx) -> Result<u32> {
    Ok(ctx.step(slow()).await?)
}

#[tokio::test]
async fn with_a_real_timeout_the_virtual_clock_waits_for_real_futures() {
    let env = TestEnv::new().workflow(patient).real_timeout(Duration::from_secs(10));
    let run = env.start(&patient, ()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), 1);
    assert_eq!(env.now(), BEGINNING);
}

#[tokio::test]
async fn after_a_death_the_next_system_continues_when_the_lease_ends() {
    let env = TestEnv::new().workflow(label).answer("print-label", printer());
    let run = env.start(&label, "books".to_owned()).await.unwrap();
    let before = env.writes();
    // The start of the turn is its first write: no step has run yet.
    env.kill_after_write(before + 1);
    env.run_until_idle().await.unwrap();
    assert_eq!(env.deaths(), 1);
    let waited = env.now().since(BEGINNING);
    assert!(waited >= Millis::from_secs(60) && waited < Millis::from_secs(120), "{waited}");
    env.kill();
    assert_eq!(run.result().await.unwrap().text, "[books]");
    assert_eq!(env.deaths(), 2);
}

#[tokio::test]
async fn the_same_test_writes_the_same_each_time() {
    let mut counts = Vec::new();
    for _ in 0..3 {
        let env = TestEnv::new().workflow(label).answer("print-label", printer());
        let run = env.start(&label, "books".to_owned()).await.unwrap();
        run.result().await.unwrap();
        counts.push((env.writes(), env.now(), run.id().clone()));
    }
    assert_eq!(counts[0].0, counts[1].0);
    assert_eq!(counts[1].1, counts[2].1);
}

#[tokio::test]
async fn two_workflows_of_one_name_are_refused() {
    let env = TestEnv::new().workflow((label, label));
    let run = env.start(&label, "books".to_owned()).await;
    assert!(run.unwrap_err().to_string().contains("two workflows are named `label`"));
}

#[tickover::workflow("teller")]
async fn teller(ctx: Ctx, to: String) -> Result<Vec<String>> {
    let mut told = Vec::new();
    for number in 0..3_u32 {
        let sent = ctx.send_event(format!("tell[{number}]"), to.as_str(), "number", &number).await;
        told.extend(sent.err().map(|error| error.to_string()));
    }
    Ok(told)
}

#[tickover::workflow("listener")]
async fn listener(ctx: Ctx, (): ()) -> Result<(Vec<u32>, usize)> {
    let mut heard = Vec::new();
    for _ in 0..3 {
        heard.push(ctx.wait_for_event("number", forever()).await?);
    }
    ctx.sleep("after", "1h").await?;
    Ok((heard, ctx.count_events("number").await?))
}

#[tokio::test]
async fn an_event_for_another_execution_is_there_once_whenever_the_system_dies() {
    let story = async |env: &TestEnv| {
        let heard = env.start(&listener, ()).await.unwrap();
        let told = env.start(&teller, heard.id().to_string()).await.unwrap();
        (told.result().await.unwrap(), heard.result().await.unwrap())
    };
    let told = with_each_death(|| TestEnv::new().workflow((teller, listener)), story).await;
    assert_eq!(told, (vec![], (vec![0, 1, 2], 0)));
}

#[tokio::test]
#[should_panic(expected = "death after write 1: 1 instead of 0")]
async fn a_story_with_another_result_after_a_death_is_reported() {
    let story = async |env: &TestEnv| {
        env.start(&listener, ()).await.unwrap();
        env.run_until_idle().await.unwrap();
        env.deaths()
    };
    with_each_death(|| TestEnv::new().workflow(listener), story).await;
}

#[tokio::test]
async fn an_event_for_an_unknown_execution_is_a_separate_error() {
    let env = TestEnv::new().workflow(teller);
    let told = env.start(&teller, "nobody".to_owned()).await.unwrap().result().await.unwrap();
    assert_eq!(told.len(), 3);
    assert!(told[0].contains("tell[0]") && told[0].contains("execution"), "{told:?}");
    let told = env.start(&teller, "no id".to_owned()).await.unwrap().result().await.unwrap();
    assert!(told[2].contains("id"), "{told:?}");
}

#[tickover::step(retry = "fixed(3, 1m)")]
async fn fetch(url: String) -> Result<u32, Failure> {
    unreachable!("no test goes out to {url}")
}

#[tickover::workflow("fetches")]
async fn fetches(ctx: Ctx, url: String) -> Result<(u32, u32)> {
    let here = ctx.step(fetch(url.clone()).named("here")).await?;
    let elsewhere = ctx.step(fetch(format!("{url}/elsewhere")).named("elsewhere").remote()).await?;
    Ok((here, elsewhere))
}

#[tokio::test]
async fn a_mock_runs_instead_of_a_step_wherever_the_step_would_run() {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let env =
        TestEnv::new().workflow(fetches).mock::<fetch>(|url| match CALLS.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => Err(Failure::new("net", "down")),
            calls => Ok(1_000 * calls + u32::try_from(url.len()).unwrap()),
        });
    let run = env.start(&fetches, "https://a".to_owned()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), (2_009, 3_019));
    // Two attempts failed, and each retry came one minute later: the step's own policy applies.
    assert_eq!(env.now().since(BEGINNING), Millis::from_secs(120));
    assert_eq!(CALLS.load(Ordering::Relaxed), 4);
}

#[tokio::test]
async fn a_mock_may_fail_as_the_step_would() {
    let env = TestEnv::new().workflow(fetches).mock::<fetch>(|_| Err(Failure::new("gone", "404")));
    let run = env.start(&fetches, "https://a".to_owned()).await.unwrap();
    let error = run.result().await.unwrap_err();
    let failure = error.failure().unwrap();
    assert_eq!((failure.code.as_str(), failure.message.as_str()), ("gone", "404"));
}

mod renamed {
    use super::*;

    #[tickover::step]
    async fn second(number: u32) -> Result<u32> {
        Ok(10 * number)
    }

    #[tickover::workflow("versions")]
    pub(super) async fn versions(ctx: Ctx, number: u32) -> Result<u32> {
        let first = ctx.step(super::first(number)).await?;
        ctx.sleep("night", "8h").await?;
        Ok(ctx.step(second(first)).await?)
    }
}

static FIRST: AtomicU32 = AtomicU32::new(0);

#[tickover::step]
async fn first(number: u32) -> Result<u32> {
    FIRST.fetch_add(1, Ordering::Relaxed);
    Ok(number + 1)
}

#[tickover::workflow("versions")]
async fn versions(ctx: Ctx, number: u32) -> Result<u32> {
    let first = ctx.step(first(number)).await?;
    ctx.sleep("night", "8h").await?;
    Ok(first)
}

#[tokio::test]
async fn a_deployment_changes_the_code_of_running_executions() {
    let env = TestEnv::new().workflow((versions, label));
    let run = env.start(&versions, 1).await.unwrap();
    env.run_until_idle().await.unwrap();
    env.deploy(renamed::versions).await.unwrap();
    assert_eq!(run.result().await.unwrap(), 20);
    assert_eq!((FIRST.load(Ordering::Relaxed), env.deaths()), (1, 1));
    // Workflows and steps that weren't deployed again are still there.
    let other = env.start(&label, "a".to_owned()).await.unwrap();
    env.advance("7d").await.unwrap();
    assert_eq!(env.unanswered(), ["print-label"]);
    let error = env.answer_now("print-lable", printer()).await.unwrap_err().to_string();
    assert!(error.contains("`print-lable`") && error.contains("these do: print-label"), "{error}");
    env.answer_now("print-label", printer()).await.unwrap();
    assert_eq!(other.result().await.unwrap().text, "[a]");
}

#[tickover::workflow("grandchild")]
async fn grandchild(ctx: Ctx, (): ()) -> Result<u32> {
    ctx.sleep("days", "3d").await?;
    Ok(1)
}

#[tickover::workflow("parent")]
async fn parent(ctx: Ctx, generation: u32) -> Result<u32> {
    Ok(1 + match generation {
        0 => ctx.child(&grandchild, ()).id(format!("child-{generation}")).await?,
        _ => ctx.child(&parent, generation - 1).id(format!("child-{generation}")).await?,
    })
}

#[tokio::test]
async fn a_parent_is_waited_for_while_a_child_of_its_child_sleeps() {
    let env = TestEnv::new().workflow((parent, grandchild));
    let run = env.start(&parent, 2).await.unwrap();
    assert_eq!(run.result().await.unwrap(), 4);
    assert!(env.now().since(BEGINNING) >= Millis::from_secs(3 * 86_400));
}

#[tickover::step("render", remote, requires("gpu"))]
async fn render(frame: u32) -> Result<u32> {
    Ok(frame + 1)
}

#[tickover::workflow("film")]
async fn film(ctx: Ctx, frame: u32) -> Result<u32> {
    Ok(ctx.step(render(frame)).await?)
}

#[tokio::test]
async fn a_tests_worker_provides_whatever_a_step_requires() {
    let env = TestEnv::new().workflow(film).step::<render>();
    assert_eq!(env.start(&film, 1).await.unwrap().result().await.unwrap(), 2);
}

/// Works for this many seconds by Tokio's clock.
#[tickover::step(timeout = "60s")]
async fn work(seconds: u64) -> Result<u64> {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    Ok(seconds)
}

#[tickover::workflow("working")]
async fn working(ctx: Ctx, seconds: u64) -> Result<u64> {
    Ok(ctx.step(work(seconds)).await?)
}

#[tickover::workflow("working-elsewhere")]
async fn working_elsewhere(ctx: Ctx, seconds: u64) -> Result<u64> {
    Ok(ctx.step(work(seconds).remote()).await?)
}

fn working_env() -> TestEnv {
    TestEnv::new().workflow((working, working_elsewhere)).step::<work>()
}

#[tokio::test]
async fn a_step_that_sleeps_by_tokios_clock_takes_virtual_time() {
    for workflow in [working(), working_elsewhere()] {
        let (env, begun) = (working_env(), std::time::Instant::now());
        let run = env.start(&workflow, 45).await.unwrap();
        assert_eq!(run.result().await.unwrap(), 45);
        assert_eq!(env.now().since(BEGINNING), Millis::from_secs(45));
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?} of real time", begun.elapsed());
    }
}

#[tokio::test]
async fn a_step_that_sleeps_too_long_by_tokios_clock_times_out_when_its_timeout_has_passed() {
    for workflow in [working(), working_elsewhere()] {
        let env = working_env();
        let run = env.start(&workflow, 90).await.unwrap();
        let error = run.result().await.unwrap_err().to_string();
        assert!(error.contains("timed out"), "{error}");
        assert_eq!(env.now().since(BEGINNING), Millis::from_secs(60));
    }
}

#[tickover::step(retry = "fixed(1, 5s)")]
async fn call(seconds: u64) -> Result<String> {
    let answer = tokio::time::sleep(Duration::from_secs(seconds));
    let attempt = step_info().map_or(0, |info| info.attempt);
    match tokio::time::timeout(Duration::from_secs(10), answer).await {
        Ok(()) => Ok(format!("{seconds} s")),
        Err(_) if attempt == 1 => Err(Error::new("slow", "no answer yet")),
        Err(_) => Ok(format!("no answer in attempt {attempt}")),
    }
}

#[tickover::workflow("telephoning")]
async fn telephoning(ctx: Ctx, (): ()) -> Result<Vec<(String, u64)>> {
    let begun = ctx.now("begun").await?;
    let timed = async |seconds: u64| -> Result<(String, u64)> {
        let called = ctx.step(call(seconds).named(format!("call-{seconds}"))).await?;
        let ended = ctx.now(format!("ended-{seconds}")).await?;
        Ok((called, ended.since(begun).as_u64()))
    };
    let (one, two, three) = tokio::join!(timed(3), timed(30), timed(7));
    Ok(vec![one?, two?, three?])
}

#[tokio::test]
async fn timers_of_steps_side_by_side_end_each_at_its_own_instant() {
    let env = TestEnv::new().workflow(telephoning);
    let run = env.start(&telephoning, ()).await.unwrap();
    let expected = [("3 s", 3_000), ("no answer in attempt 2", 25_000), ("7 s", 7_000)]
        .map(|(text, ms)| (text.to_owned(), ms));
    assert_eq!(run.result().await.unwrap(), expected);
    assert_eq!(env.now().since(BEGINNING), Millis::from_secs(25));
}

#[tokio::test]
async fn a_step_that_sleeps_by_tokios_clock_goes_on_where_the_test_let_time_pass_to() {
    let env = working_env();
    let run = env.start(&working, 45).await.unwrap();
    for passed in [20, 40] {
        env.advance("20s").await.unwrap();
        assert_eq!(env.now().since(BEGINNING), Millis::from_secs(passed));
        assert!(run.describe().await.unwrap().is_live());
    }
    env.run_until_idle().await.unwrap();
    assert_eq!(env.now().since(BEGINNING), Millis::from_secs(45));
    assert_eq!(run.result().await.unwrap(), 45);
}

#[tokio::test]
async fn a_task_of_the_test_that_sleeps_by_tokios_clock_acts_when_its_sleep_is_over() {
    let env = TestEnv::new().workflow(question);
    let run = env.submit(env.client().start(&question, ()).execution_timeout("1h")).await.unwrap();
    let asked = env.client().handle::<String>(run.id().as_str()).unwrap();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(90)).await;
        asked.send_event("answer", "late").await.unwrap();
    });
    assert_eq!(run.result().await.unwrap(), "late");
    // It began before the clock was paused, which moves the clock by less than 25 ms.
    let taken = env.now().since(BEGINNING).as_u64();
    assert!((89_950..=90_000).contains(&taken), "{taken}");
}

/// Has time for a second attempt after the lease of a lost worker.
#[tickover::workflow("working-long")]
async fn working_long(ctx: Ctx, seconds: u64) -> Result<u64> {
    Ok(ctx.step(work(seconds).timeout("10m")).await?)
}

#[tokio::test]
async fn after_a_death_a_sleep_of_a_step_begins_again() {
    let env = TestEnv::new().workflow(working_long);
    let run = env.start(&working_long, 45).await.unwrap();
    env.advance("20s").await.unwrap();
    env.kill();
    assert_eq!((run.result().await.unwrap(), env.deaths()), (45, 1));
}

#[tokio::test]
async fn between_its_waits_a_test_has_real_time() {
    let env = working_env();
    env.start(&working, 45).await.unwrap().result().await.unwrap();
    let (by_tokio, real) = (tokio::time::Instant::now(), std::time::Instant::now());
    while real.elapsed() < Duration::from_millis(2) {}
    assert!(by_tokio.elapsed() >= Duration::from_millis(2));
}

#[tickover::step]
async fn count(text: String) -> Result<usize> {
    Ok(tokio::task::spawn_blocking(move || text.len()).await?)
}

#[tickover::workflow("counting")]
async fn counting(ctx: Ctx, text: String) -> Result<usize> {
    Ok(ctx.step(count(text)).await?)
}

#[tokio::test]
async fn the_clock_waits_for_a_blocking_call_of_a_step() {
    let env = TestEnv::new().workflow(counting);
    let run = env.start(&counting, "abc".to_owned()).await.unwrap();
    assert_eq!((run.result().await.unwrap(), env.now()), (3, BEGINNING));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_runtime_with_several_threads_is_refused() {
    let env = working_env();
    let error = env.start(&working, 1).await.err().unwrap().to_string();
    assert!(error.contains("current-thread runtime") && error.contains("#[tokio::test]"), "{error}");
}
