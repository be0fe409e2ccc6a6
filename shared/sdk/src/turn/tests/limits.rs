//! What a turn does when its invocation ends, and what it doesn't wait for.

use tickover_core::execution::journal::{Entry, Happened};

use super::*;
use crate::step::step_info;

/// A step whose first attempt fails and is retried 3 s later. Its result is the number of the attempt.
async fn flaky(ctx: Ctx) -> crate::Result<u32> {
    let flaky = step("flaky", || async {
        let attempt = step_info().map_or(0, |info| info.attempt);
        if attempt < 2 { Err(Failure::new("net", "down")) } else { Ok(attempt) }
    });
    Ok(ctx.step(flaky.retry("fixed(5, 3s)")).await?)
}

/// The same in parallel with a step that needs more time than an invocation has left after another step.
async fn beside_a_long_one(ctx: Ctx) -> crate::Result<u32> {
    let quick = || step("quick", || async { Ok::<_, Failure>(()) });
    let long = || step("long", || async { Ok::<_, Failure>(10) }).timeout("20s");
    let other = async {
        ctx.step(quick()).await?;
        crate::Result::<u32>::Ok(ctx.step(long()).await?)
    };
    let (flaky, long) = futures::join!(flaky(ctx.clone()), other);
    Ok(flaky? + long?)
}

async fn journal(scene: &Scene) -> Vec<Entry> {
    let described = scene.service.execution(&ExecutionId::parse("x").unwrap()).await.unwrap().unwrap();
    scene.service.journal_of(&described.execution).await.unwrap()
}

/// The failed attempts, each with the earliest start of the next one, in ms since `START`.
fn failures(journal: &[Entry]) -> Vec<(u32, i64)> {
    let failure = |entry: &Entry| match &entry.what {
        Happened::Attempt { attempt, error: Some(_), next_at: Some(at), .. } => {
            Some((*attempt, at.as_millis() - START.as_millis()))
        }
        _ => None,
    };
    journal.iter().filter_map(failure).collect()
}

#[tokio::test]
async fn a_retry_that_comes_after_the_invocations_end_is_written_down_and_made_in_another_one() {
    let scene = Scene::new();
    scene.start("flaky").await;
    let registry = || Registry::new().with(Workflow::<(), u32>::new("flaky", |ctx, ()| flaky(ctx).boxed()));
    // The turn would wait for the retry, but the invocation ends 1 s before it.
    assert_eq!(scene.invoke(&registry(), Millis::from_secs(3)).await, TurnEnd::Suspended);
    assert_eq!(scene.clock.now(), START.plus(Millis::from_secs(2)));
    assert_eq!(failures(&journal(&scene).await), [(1, 3_000)]);
    scene.clock.advance(Millis::from_secs(1));
    assert_eq!(scene.invoke(&registry(), Millis::from_secs(60)).await, TurnEnd::Closed);
    assert_eq!(scene.output().await.as_deref(), Some("2"));
}

#[tokio::test]
async fn a_retry_that_fits_is_waited_for_where_it_is() {
    let scene = Scene::new();
    scene.start("flaky").await;
    let registry = Registry::new().with(Workflow::<(), u32>::new("flaky", |ctx, ()| flaky(ctx).boxed()));
    assert_eq!(scene.invoke(&registry, Millis::from_secs(10)).await, TurnEnd::Closed);
    assert_eq!(scene.clock.now(), START.plus(Millis::from_secs(3)));
    // The failed attempt needed no entry.
    assert_eq!(failures(&journal(&scene).await), []);
}

#[tokio::test]
async fn where_something_no_longer_fits_a_near_retry_is_left_to_the_next_invocation_as_well() {
    let scene = Scene::new();
    scene.start("both").await;
    let registry =
        || Registry::new().with(Workflow::<(), u32>::new("both", |ctx, ()| beside_a_long_one(ctx).boxed()));
    assert_eq!(scene.invoke(&registry(), Millis::from_secs(10)).await, TurnEnd::Suspended);
    // The turn ends at once: a wait for the retry would only delay the other step's new invocation.
    assert_eq!(scene.clock.now(), START);
    assert_eq!(failures(&journal(&scene).await), [(1, 3_000)]);
    let mut ends = vec![];
    while ends.last() != Some(&TurnEnd::Closed) && ends.len() < 5 {
        ends.push(scene.invoke(&registry(), Millis::from_secs(60)).await);
        scene.clock.advance(Millis::from_secs(3));
    }
    assert_eq!(ends, [TurnEnd::Suspended, TurnEnd::Closed]);
    assert_eq!(scene.output().await.as_deref(), Some("12"));
}
