//! Maps whose items run in child executions, page by page.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tickover::client::ExecutionError;
use tickover::prelude::*;
use tickover::test::{TestEnv, with_each_death};
use tickover_core::id::ExecutionId;

/// What the steps of one test count.
#[derive(Clone, Default)]
struct Counts(Arc<Mutex<Counted>>);

#[derive(Default)]
struct Counted {
    running: usize,
    most: usize,
    calls: BTreeMap<u32, u32>,
    /// How often each item was called, by its idempotency key.
    by_key: BTreeMap<String, u32>,
}

/// Doubles a number. A number that ends with 9 fails.
#[tickover::step("double")]
async fn double(number: u32, #[state] counts: &Counts) -> Result<u32, Failure> {
    {
        let mut counted = counts.0.lock().unwrap();
        counted.running += 1;
        counted.most = counted.most.max(counted.running);
        *counted.calls.entry(number).or_default() += 1;
        let key = tickover::step_info().unwrap().idempotency_key;
        *counted.by_key.entry(key).or_default() += 1;
    }
    tokio::task::yield_now().await;
    counts.0.lock().unwrap().running -= 1;
    if number % 10 == 9 { Err(Failure::new("nine", number.to_string())) } else { Ok(number * 2) }
}

/// How a map is made: items, page size, items at once, tolerance, and whether its steps are remote.
type Plan = (u32, usize, usize, String, bool);

#[tickover::workflow("doubled")]
async fn doubled(ctx: Ctx, plan: Plan) -> Result<(u32, usize, usize, usize)> {
    let (items, size, at_once, tolerated, is_remote) = plan;
    let one = |number| if is_remote { double(number).remote() } else { double(number) };
    let mut results =
        ctx.map("double", 0..items, one).at_once(at_once).tolerate(tolerated).paged(size).await?;
    let all = results.collect().await?;
    assert!(all.completed().all(|(index, value)| usize::try_from(*value) == Ok(index * 2)));
    Ok((all.completed().map(|(_, value)| *value).sum(), results.failed(), results.len(), results.pages()))
}

fn env(counts: &Counts) -> TestEnv {
    TestEnv::new().workflow(doubled).step::<double>().state(counts.clone())
}

fn plan(items: u32, size: usize, at_once: usize, tolerated: &str, is_remote: bool) -> Plan {
    (items, size, at_once, tolerated.to_owned(), is_remote)
}

async fn run(counts: &Counts, plan: Plan) -> Result<(u32, usize, usize, usize), ExecutionError> {
    let env = env(counts);
    env.start(&doubled, plan).await.unwrap().result().await
}

#[tokio::test]
async fn a_map_over_ten_thousand_items_has_two_journal_entries_a_page() {
    let counts = Counts::default();
    let env = env(&counts);
    let run = env.start(&doubled, plan(10_000, 100, 20, "10%", false)).await.unwrap();
    let (_, failed, items, pages) = run.result().await.unwrap();
    assert_eq!((failed, items, pages), (1_000, 10_000, 100));
    let (execution, journal) = {
        let id = ExecutionId::parse(run.id().as_str()).unwrap();
        let execution = env.service().execution(&id).await.unwrap().unwrap().execution;
        let journal = env.service().journal_of(&execution).await.unwrap();
        (execution, journal)
    };
    assert!(execution.closed().is_some());
    assert!((200..=210).contains(&journal.len()), "{} entries", journal.len());
    let counted = counts.0.lock().unwrap();
    assert!(counted.most <= 20 && counted.most > 8, "{} at once", counted.most);
    assert!(counted.calls.len() == 10_000 && counted.calls.values().all(|calls| *calls == 1));
}

#[tokio::test]
async fn no_more_items_run_at_once_than_the_map_allows() {
    for (at_once, is_remote) in [(1, false), (3, false), (13, false), (3, true)] {
        let counts = Counts::default();
        run(&counts, plan(60, 10, at_once, "10%", is_remote)).await.unwrap();
        let most = counts.0.lock().unwrap().most;
        assert!((1..=at_once).contains(&most), "{most} of {at_once} at once");
    }
}

#[tokio::test]
async fn a_map_fails_with_one_failure_more_than_it_tolerates() {
    for (tolerated, allows) in [("3", true), ("2", false), ("10%", true), ("9%", false), ("0", false)] {
        let ended = run(&Counts::default(), plan(30, 7, 4, tolerated, false)).await;
        assert_eq!(ended.is_ok(), allows, "{tolerated}: {ended:?}");
        if let Err(error) = ended {
            let text = error.to_string();
            assert!(text.contains("of 30 steps of `double` failed") && text.contains("nine"), "{text}");
        }
    }
}

#[tokio::test]
async fn remote_items_of_a_map_are_tasks_with_the_same_results() {
    let ended = run(&Counts::default(), plan(40, 10, 6, "4", true)).await.unwrap();
    let expected = (0..40).filter(|number| number % 10 != 9).map(|number| number * 2).sum();
    assert_eq!(ended, (expected, 4, 40, 4));
}

#[tokio::test]
async fn more_failures_than_an_error_shows_are_all_counted() {
    let ended = run(&Counts::default(), plan(300, 20, 50, "30", false)).await.unwrap();
    assert_eq!((ended.1, ended.2), (30, 300));
    let error = run(&Counts::default(), plan(300, 300, 1, "29", false)).await.unwrap_err().to_string();
    assert!(error.contains("30 of 300 steps of `double` failed; the last one: "), "{error}");
}

#[tokio::test]
async fn a_map_survives_a_death_after_each_write_and_no_completed_item_runs_again() {
    for is_remote in [false, true] {
        let deaths = Arc::new(Mutex::new(vec![]));
        let env = || {
            let (counts, deaths) = (Counts::default(), Arc::clone(&deaths));
            env(&counts).on_death(move |death| {
                deaths.lock().unwrap().push((death.completed.clone(), counts.clone()));
            })
        };
        let story = async |env: &TestEnv| {
            let run = env.start(&doubled, plan(6, 2, 2, "0", is_remote)).await.unwrap();
            let ended = run.result().await.unwrap();
            // A death after the last write comes after the result: it is waited for too.
            env.run_until_idle().await.unwrap();
            ended
        };
        assert_eq!(with_each_death(env, story).await, (30, 0, 6, 3));
        let deaths = deaths.lock().unwrap();
        let mut in_the_middle = 0;
        for (completed, counts) in &*deaths {
            let by_key = &counts.0.lock().unwrap().by_key;
            let completed: Vec<_> = completed.iter().filter_map(|key| by_key.get(key)).collect();
            assert!(completed.iter().all(|calls| **calls == 1), "{by_key:?}");
            in_the_middle += usize::from((1..6).contains(&completed.len()));
        }
        assert!(deaths.len() >= 12 && in_the_middle >= 5, "{in_the_middle} of {}", deaths.len());
    }
}

#[tickover::step("fill")]
async fn fill(bytes: usize) -> Result<String> {
    Ok("x".repeat(bytes))
}

#[tickover::workflow("filled")]
async fn filled(ctx: Ctx, (items, bytes, size): (usize, usize, usize)) -> Result<usize> {
    let mut results = ctx.map("fill", (0..items).map(|_| bytes), fill).paged(size).await?;
    let mut sum = 0;
    // Each page may be read several times and in any order.
    for number in (0..results.pages()).rev().chain([0]) {
        sum += results.page(number).await?.completed().map(|(_, text)| text.len()).sum::<usize>();
    }
    Ok(sum)
}

#[tokio::test]
async fn results_over_a_pages_limit_name_the_page_the_limit_and_what_to_do() {
    let env = TestEnv::new().workflow(filled);
    let error = env.start(&filled, (30, 40_000, 10)).await.unwrap().result().await.unwrap_err().to_string();
    let expected = "page 0 of the map `fill`: the results of items 0 to 9 have 400101 bytes together, and those of a \
                    page can have at most 358400: make the pages smaller, such as `paged(8)`";
    assert!(error.contains("limit_exceeded") && error.contains(expected), "{error}");
    assert_eq!(env.start(&filled, (30, 40_000, 8)).await.unwrap().result().await.unwrap(), 38 * 40_000);
}

#[tokio::test]
async fn an_empty_map_has_no_pages_and_wrong_options_fail_the_run() {
    let ended = run(&Counts::default(), plan(0, 10, 1, "0", false)).await.unwrap();
    assert_eq!(ended, (0, 0, 0, 0));
    let wrong = [
        (plan(5, 10, 0, "0", false), "at least 1"),
        (plan(5, 10, 1, "101%", false), "101%"),
        (plan(5, 0, 1, "0", false), "1 to 1000 items, not 0"),
        (plan(5, 1_001, 1, "0", false), "1 to 1000 items, not 1001"),
    ];
    for (plan, expected) in wrong {
        let text = run(&Counts::default(), plan).await.unwrap_err().to_string();
        assert!(text.contains(expected), "{text}");
    }
}

#[tickover::workflow("twice")]
async fn twice(ctx: Ctx, (): ()) -> Result<()> {
    ctx.map("double", 0..3, double).paged(2).await?;
    ctx.map("double", 0..3, double).paged(2).await?;
    Ok(())
}

#[tokio::test]
async fn a_second_map_of_one_name_waits_for_repaired_code() {
    let env = TestEnv::new().workflow(twice).state(Counts::default());
    let run = env.start(&twice, ()).await.unwrap();
    env.advance("1m").await.unwrap();
    let stuck = run.describe().await.unwrap().stuck.unwrap();
    assert_eq!(stuck.code, "invalid_step");
    assert!(stuck.message.contains("child:map:double[0]"), "{stuck:?}");
}
