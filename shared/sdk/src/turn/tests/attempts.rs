//! Attempts that the end of an invocation stops, and the failures recorded before them.

use std::sync::Mutex;

use tickover_core::execution::journal::Happened;

use super::*;

/// A workflow of one step with three attempts: the first fails at once, the next takes longer than any invocation.
fn fails_then_hangs(clock: &Arc<ManualClock>) -> (Registry, Arc<Mutex<Vec<u32>>>) {
    type Parts = (Arc<ManualClock>, Arc<Mutex<Vec<u32>>>);
    thread_local! {
        static PARTS: std::cell::RefCell<Option<Parts>> = const { std::cell::RefCell::new(None) };
    }
    let seen = Arc::new(Mutex::new(vec![]));
    PARTS.set(Some((clock.clone(), seen.clone())));
    let body = |ctx: Ctx, (): ()| {
        let parts = PARTS.take();
        async move {
            let Some((clock, seen)) = parts else { return Err(crate::Error::msg("no clock")) };
            let flaky = step("flaky", move || {
                let (clock, seen) = (clock.clone(), seen.clone());
                async move {
                    let attempt = crate::step::step_info().map_or(0, |info| info.attempt);
                    seen.lock().unwrap().push(attempt);
                    if attempt == 1 {
                        return Err(Failure::new("net", "down"));
                    }
                    clock.sleep_until(clock.now().plus(Millis::from_secs(1_000))).await;
                    Ok::<_, Failure>(())
                }
            });
            Ok(ctx.step(flaky.retry("fixed(2, 1s)")).await?)
        }
        .boxed()
    };
    (Registry::new().with(Workflow::<(), ()>::new("flaky", body)), seen)
}

#[tokio::test]
async fn a_failure_is_remembered_though_the_invocation_ends_in_the_attempt_after_it() {
    let scene = Scene::new();
    scene.start("flaky").await;
    // An attempt that is stopped doesn't count, like one whose worker was lost.
    for expected in [vec![1, 2], vec![2], vec![2]] {
        let (registry, seen) = fails_then_hangs(&scene.clock);
        let end = scene.invoke(&registry, Millis::from_secs(30)).await;
        assert!(matches!(end, TurnEnd::Suspended | TurnEnd::Released), "{end:?}");
        assert_eq!(*seen.lock().unwrap(), expected);
    }
    let execution = scene.service.execution(&ExecutionId::parse("x").unwrap()).await.unwrap().unwrap();
    let journal = scene.service.journal_of(&execution.execution).await.unwrap();
    let failures = journal.iter().filter(|entry| {
        matches!(&entry.what, Happened::Attempt { attempt: 1, error: Some(error), .. } if error.code == "net")
    });
    assert_eq!(failures.count(), 1);
}
