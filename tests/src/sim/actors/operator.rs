//! Cancels, retries, pauses and resumes at random while it storms, and leaves every queue running.

use crate::sim::plan::{QUEUES, next_minute};
use crate::sim::process::Process;
use crate::sim::progress::Progress;
use crate::sim::world::queue;

/// Does odd things until the storm is over.
pub async fn operator(process: Process, progress: &Progress) {
    let dice = &process.gate.dice;
    while process.world.is_stormy() {
        process.sleep(dice.secs(5, 240)).await;
        if dice.chance(300) {
            on_the_minute(&process).await;
        }
        let task = progress.recall(dice);
        // What comes of it is for the checks to judge, not for the operator.
        match (dice.between(0, 9), task) {
            (0..=2, Some(task)) => drop(process.cancel(&task, dice.chance(400)).await),
            (3..=7, Some(task)) => drop(process.retry(&task).await),
            (8, _) => {
                let name = queue(dice.pick(QUEUES));
                drop(process.pause(&name, true).await);
                process.sleep(dice.secs(1, 300)).await;
                on_the_minute(&process).await;
                drop(process.pause(&name, false).await);
            }
            _ => {}
        }
    }
    for name in QUEUES {
        while process.pause(&queue(name), false).await.is_err() {
            process.sleep(dice.secs(1, 5)).await;
        }
    }
}

/// Much of what operators do is done by scripts, on the minute: just when ticks come.
async fn on_the_minute(process: &Process) {
    let minute = next_minute(process.world.now());
    process.gate.sleep(minute.since(process.world.now())).await;
}
