//! Values that the code publishes: seen while it runs, once each, at no write of their own.

#![expect(clippy::unwrap_used, reason = "a test fails if it doesn't find what it expects")]

use tickover::client::Rerun;
use tickover::prelude::*;
use tickover::test::{TestEnv, with_each_death};

#[tickover::step]
async fn pack(number: u32) -> Result<u32> {
    Ok(number)
}

#[tickover::workflow("shipment")]
async fn shipment(ctx: Ctx, boxes: u32) -> Result<u32> {
    for number in 0..boxes {
        ctx.publish("stage", "packing")?;
        ctx.publish("packed", number)?;
        ctx.step(pack(number).named(format!("pack[{number}]"))).await?;
        ctx.sleep(format!("rest[{number}]"), "1h").await?;
    }
    ctx.publish("packed", boxes)?;
    ctx.publish("stage", "done")?;
    Ok(boxes)
}

/// The same without its values.
#[tickover::workflow("silent-shipment")]
async fn silent(ctx: Ctx, boxes: u32) -> Result<u32> {
    for number in 0..boxes {
        ctx.step(pack(number).named(format!("pack[{number}]"))).await?;
        ctx.sleep(format!("rest[{number}]"), "1h").await?;
    }
    Ok(boxes)
}

/// The name, version and text of each value.
async fn values<O>(run: &tickover::client::Handle<O>) -> Vec<(String, u32, String)> {
    let values = run.values().await.unwrap();
    values.into_iter().map(|one| (one.name.to_string(), one.version, one.value.as_str().to_owned())).collect()
}

fn expected(values: &[(&str, u32, &str)]) -> Vec<(String, u32, String)> {
    values.iter().map(|(name, version, text)| ((*name).to_owned(), *version, (*text).to_owned())).collect()
}

#[tokio::test]
async fn a_value_takes_the_place_of_the_one_before_and_costs_no_write() {
    let env = TestEnv::new().workflow((shipment, silent));
    // The first execution makes the queue known.
    let mut before = vec![];
    for _ in 0..2 {
        before.push(env.writes());
        env.start(&silent, 3).await.unwrap().result().await.unwrap();
    }
    let (begun, usual) = (env.writes(), env.writes() - before[1]);
    let run = env.start(&shipment, 3).await.unwrap();
    env.run_until_idle().await.unwrap();
    assert_eq!(values(run.handle()).await, expected(&[("packed", 1, "0"), ("stage", 1, "\"packing\"")]));
    env.advance("90m").await.unwrap();
    assert_eq!(values(run.handle()).await, expected(&[("packed", 2, "1"), ("stage", 1, "\"packing\"")]));
    assert_eq!(run.result().await.unwrap(), 3);
    // They are there after its end, and each change has counted once although each turn was replayed.
    let last = expected(&[("packed", 4, "3"), ("stage", 2, "\"done\"")]);
    assert_eq!(values(run.handle()).await, last);
    assert_eq!(run.describe().await.unwrap().values.len(), 2);
    assert_eq!(env.writes() - begun, usual);
    let packed = run.handle().value::<u32>("packed").await.unwrap().unwrap();
    assert_eq!((packed.version, packed.value), (4, 3));
    assert_eq!(run.handle().value::<u32>("weight").await.unwrap(), None);
    assert_eq!(run.handle().value_after::<u32>("packed", 4).await.unwrap(), None, "it has ended");
    assert!(run.handle().value::<bool>("packed").await.is_err());
}

#[tokio::test]
async fn values_are_those_of_the_code_whenever_its_worker_dies() {
    let story = async |env: &TestEnv| {
        let run = env.start(&shipment, 2).await.unwrap();
        run.result().await.unwrap();
        values(run.handle()).await
    };
    let found = with_each_death(|| TestEnv::new().workflow(shipment), story).await;
    assert_eq!(found, expected(&[("packed", 3, "2"), ("stage", 2, "\"done\"")]));
}

/// In each run it publishes what only that run has, and a value that no record has space for.
#[tickover::workflow("ledger", on_failure = report)]
async fn ledger(ctx: Ctx, page: u32) -> Result<u32> {
    ctx.publish("page", page)?;
    ctx.publish(format!("page[{page}]"), "x".repeat(2_000))?;
    ctx.sleep("day", "1d").await?;
    if page < 3 { ctx.continue_as_new(page + 1).await } else { Err(Error::new("full", "no more pages")) }
}

async fn report(ctx: Ctx, page: u32, _: Cause) -> Result<Option<u32>> {
    ctx.publish("reported", page)?;
    Ok(None)
}

#[tokio::test]
async fn values_stay_through_runs_the_failure_handler_and_a_restart() {
    let env = TestEnv::new().workflow(ledger);
    let run = env.start(&ledger, 1).await.unwrap();
    run.result().await.unwrap_err();
    let found = values(run.handle()).await;
    let names: Vec<_> = found.iter().map(|(name, version, _)| (name.as_str(), *version)).collect();
    assert_eq!(names, [("page", 3), ("page[1]", 1), ("page[2]", 1), ("page[3]", 1), ("reported", 1)]);
    assert!(found[1].2.len() > 2_000);
    run.handle().rerun(Rerun::All).await.unwrap();
    env.run_until_idle().await.unwrap();
    assert_eq!(values(run.handle()).await, found, "the same values again");
    run.handle().terminate().await.unwrap();
    run.handle().rerun_with(Rerun::All, &7).await.unwrap();
    env.run_until_idle().await.unwrap();
    let page = run.handle().value::<u32>("page").await.unwrap().unwrap();
    assert_eq!((page.version, page.value), (4, 7));
    assert_eq!(run.handle().values().await.unwrap().len(), 6);
}

#[tickover::workflow("wordy")]
async fn wordy(ctx: Ctx, (): ()) -> Result<Vec<String>> {
    let mut refused = vec![];
    let mut note = |published: Result<()>| refused.extend(published.err().map(|error| error.to_string()));
    note(ctx.publish("no spaces", 1));
    note(ctx.publish("large", "x".repeat(400_000)));
    for number in 0..16 {
        note(ctx.publish(format!("name-{number}"), "x"));
    }
    note(ctx.publish("name-16", "x"));
    note(ctx.publish("name-0", "y".repeat(300_000)));
    note(ctx.publish("name-1", "z".repeat(100_000)));
    ctx.sleep("again", "1s").await?;
    Ok(refused)
}

#[tokio::test]
async fn too_much_is_refused_with_the_reason_and_the_same_in_each_replay() {
    let env = TestEnv::new().workflow(wordy);
    let run = env.start(&wordy, ()).await.unwrap();
    let refused = run.result().await.unwrap();
    let of = ["no spaces", "\"large\": all values", "at most 16 names", "\"name-1\": all values"];
    assert_eq!(refused.len(), of.len(), "{refused:?}");
    for (refused, part) in refused.iter().zip(of) {
        assert!(refused.contains(part), "{part} in {refused}");
    }
    assert_eq!(run.handle().values().await.unwrap().len(), 16);
}

#[tickover::step]
async fn long_work((): ()) -> Result<()> {
    tokio::time::sleep(std::time::Duration::from_mins(10)).await;
    Ok(())
}

#[tickover::workflow("long-shipment")]
async fn long(ctx: Ctx, (): ()) -> Result<()> {
    ctx.publish("stage", "packing")?;
    ctx.step(long_work(())).await?;
    Ok(())
}

#[tokio::test]
async fn during_a_long_step_a_heartbeat_brings_the_values() {
    let env = TestEnv::new().workflow(long);
    let run = env.start(&long, ()).await.unwrap();
    env.advance("5m").await.unwrap();
    assert_eq!(values(run.handle()).await, expected(&[("stage", 1, "\"packing\"")]));
    run.result().await.unwrap();
}
