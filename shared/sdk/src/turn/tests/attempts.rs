//! Attempts that an invocation's end cuts off, and what is known of those before.

use std::sync::atomic::{AtomicU32, Ordering};

use tickover_core::execution::journal::Happened;

use super::*;

/// A workflow of one step that is tried three times: at first it fails at once, then it takes longer than any
/// invocation.
fn fails_then_hangs(clock: &Arc<ManualClock>) -> (Registry, Arc<AtomicU32>) {
    thread_local! {
        static PARTS: std::cell::RefCell<Option<(Arc<ManualClock>, Arc<AtomicU32>)>> =
            const { std::cell::RefCell::new(None) };
    }
    let seen = Arc::new(AtomicU32::new(0));
    PARTS.set(Some((clock.clone(), seen.clone())));
    let body = |ctx: Ctx, (): ()| {
        let parts = PARTS.take();
        async move {
            let Some((clock, seen)) = parts else { return Err(crate::Error::msg("no clock")) };
            let flaky = step("flaky", move || {
                let (clock, seen) = (clock.clone(), seen.clone());
                async move {
                    let attempt = crate::step::step_info().map_or(0, |info| info.attempt);
                    seen.store(attempt, Ordering::SeqCst);
                    if attempt == 1 {
                        return Err(Failure::new("net", "down"));
                    }
                    clock.sleep_until(clock.now().plus(Millis::from_secs(1_000))).await;
                    Ok::<_, Failure>(())
                }
            });
            Ok(ctx.step(flaky.retry("fixed(2, 1s)").timeout("2h")).await?)
        }
        .boxed()
    };
    (Registry::new().with(Workflow::<(), ()>::new("flaky", body)), seen)
}

#[tokio::test]
async fn a_failure_is_remembered_though_the_invocation_ends_in_the_attempt_after_it() {
    let scene = Scene::new();
    scene.start("flaky").await;
    let (registry, seen) = fails_then_hangs(&scene.clock);
    assert_eq!(scene.invoke(&registry, Millis::from_secs(30)).await, TurnEnd::Suspended);
    assert_eq!(seen.load(Ordering::SeqCst), 2);

    let (registry, seen) = fails_then_hangs(&scene.clock);
    scene.invoke(&registry, Millis::from_secs(30)).await;
    // The attempt that was cut off counts as little as one whose worker was lost.
    assert_eq!(seen.load(Ordering::SeqCst), 2);
    let execution = scene.service.execution(&ExecutionId::parse("x").unwrap()).await.unwrap().unwrap();
    let journal = scene.service.journal_of(&execution.execution).await.unwrap();
    let failures = journal.iter().filter(|entry| {
        matches!(&entry.what, Happened::Attempt { attempt: 1, error: Some(error), .. } if error.code == "net")
    });
    assert_eq!(failures.count(), 1);
}
