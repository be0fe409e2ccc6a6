//! Batches in the test kit's system: in virtual time, and with deaths after every write.

use std::collections::BTreeSet;
use std::future::IntoFuture as _;
use std::sync::{Arc, Mutex};

use tickover::prelude::*;
use tickover::test::{BEGINNING, TestEnv, with_each_death};
use tickover::{Millis, step_infos};

/// The keys of the tasks whose code has run, for each call.
#[derive(Clone, Default)]
pub(crate) struct Ran(Arc<Mutex<Vec<Vec<String>>>>);

#[tickover::step(queue = "numbers", retry = "fixed(2, 1s)", batch(3, within = "5s"))]
async fn double(#[state] ran: &Ran, numbers: Vec<u32>) -> Vec<Result<u32>> {
    let infos = step_infos();
    ran.0.lock().unwrap().push(infos.iter().map(|info| info.idempotency_key.clone()).collect());
    let all = numbers.into_iter().zip(infos);
    all.map(|(number, info)| match (number, info.attempt) {
        (13, 1) => Err(Error::new("unlucky", "once more")),
        _ => Ok(number * 2),
    })
    .collect()
}

#[tickover::workflow("doubles")]
async fn doubles(ctx: Ctx, numbers: Vec<u32>) -> Result<Vec<u32>> {
    Ok(ctx.join_all("double", numbers.into_iter().map(double)).await?)
}

#[tokio::test]
async fn a_batch_fills_in_virtual_time() {
    let ran = Ran::default();
    let env = TestEnv::new().step::<double>().state(ran.clone());
    let mut tasks = vec![];
    for number in 1..=4 {
        tasks.push(env.run(env.client().schedule(double(number)).into_future()).await.unwrap().unwrap());
    }
    env.advance("1s").await.unwrap();
    // Three were enough; the fourth waits for others.
    let sizes = || ran.0.lock().unwrap().iter().map(Vec::len).collect::<Vec<_>>();
    assert_eq!(sizes(), [3]);
    env.run_until_idle().await.unwrap();
    assert_eq!((sizes(), env.now()), (vec![3, 1], BEGINNING.plus(Millis::from_secs(5))));
    for (task, expected) in tasks.iter().zip([2, 4, 6, 8]) {
        assert_eq!(env.run(task.result()).await.unwrap().unwrap(), expected);
    }
}

#[tokio::test]
async fn a_mock_gets_the_inputs_of_a_batch_one_by_one() {
    let env = TestEnv::new().workflow(doubles).mock::<double>(|number| Ok(number + 1));
    assert_eq!(env.start(&doubles, vec![1, 2]).await.unwrap().result().await.unwrap(), [2, 3]);
}

#[tokio::test]
async fn a_batch_survives_a_death_after_each_write_and_repeats_nothing_that_had_ended() {
    // How many tasks had ended at a death, and how many of these ran again after it.
    let counts = Arc::new(Mutex::new((0, 0)));
    let env = || {
        let ran = Ran::default();
        let (before, ended) = (ran.clone(), Arc::new(Mutex::new(BTreeSet::new())));
        let (seen, count) = (Arc::clone(&ended), Arc::clone(&counts));
        TestEnv::new().workflow(doubles).step::<double>().state(ran.clone()).on_death(move |death| {
            let again: BTreeSet<_> = before.0.lock().unwrap().drain(..).flatten().collect();
            let mut seen = seen.lock().unwrap();
            let mut counts = count.lock().unwrap();
            counts.0 += death.completed.len();
            counts.1 += again.intersection(&seen).count();
            seen.extend(death.completed.iter().cloned());
        })
    };
    let story = async |env: &TestEnv| {
        let run = env.start(&doubles, vec![1, 13, 5, 7]).await.unwrap();
        let result = run.result().await.unwrap();
        // A second death compares what has run since the first one.
        if env.deaths() == 1 {
            env.kill();
            env.run_until_idle().await.unwrap();
        }
        result
    };
    assert_eq!(with_each_death(env, story).await, [2, 26, 10, 14]);
    let (ended, repeated) = *counts.lock().unwrap();
    assert!(ended > 0 && repeated == 0, "{ended} had ended, {repeated} of them ran again");
}
