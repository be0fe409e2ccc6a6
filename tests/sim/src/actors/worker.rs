//! Runs tasks and turns: correctly, badly, late, twice or not at all.

use futures::future::join_all;
use tickover_core::duration::Millis;
use tickover_core::id::WorkerName;
use tickover_core::payload::Json;
use tickover_core::task::Failure;
use tickover_core::task::command::SignOfLife;
use tickover_service::claim::{ClaimRequest, ClaimedTask};

use crate::history::{Actor, Held, Report};
use crate::plan::{DEADLY, GREEN, QUEUES, SLOW};
use crate::process::Process;
use crate::process::execution::ReceivedWork;
use crate::progress::Progress;
use crate::world::queue;

use super::turn::turn;

/// How a worker behaves with a task.
#[derive(Clone, Copy)]
enum Behaviour {
    /// Completes it.
    Completes,
    /// Completes it after minutes, with heartbeats.
    CompletesSlowly,
    /// Fails it.
    Fails,
    /// Releases it.
    Releases,
    /// Does nothing and reports nothing.
    StopsReporting,
    /// Reports only long after its lease has ended.
    ReportsLate,
    /// Reports at the very instant of the attempt's deadline.
    ReportsOnTheDot,
    /// Reports twice, with different results.
    ReportsTwice,
}

const BEHAVIOURS: [Behaviour; 12] = [
    Behaviour::Completes,
    Behaviour::Completes,
    Behaviour::CompletesSlowly,
    Behaviour::CompletesSlowly,
    Behaviour::Fails,
    Behaviour::Fails,
    Behaviour::Fails,
    Behaviour::Releases,
    Behaviour::StopsReporting,
    Behaviour::ReportsLate,
    Behaviour::ReportsOnTheDot,
    Behaviour::ReportsTwice,
];

/// Works until the run ends.
pub async fn worker(process: Process, progress: &Progress) {
    let dice = &process.gate.dice;
    loop {
        let stormy = process.world.in_fault_phase();
        let request = ClaimRequest {
            worker: WorkerName::parse(process.gate.actor.to_string()).ok(),
            max: usize::try_from(dice.between(1, if process.world.hardship.kills { 10 } else { 3 }))
                .unwrap_or(1),
            lease: dice.secs(5, 60),
            wait: Millis::from_secs(if stormy { dice.pick([0, 5, 20]) } else { 20 }),
            provides: vec![],
        };
        // Where messages can become dead letters, workers don't claim by id: the message would stay in the queue and be
        // received in vain again and again.
        let may_claim_by_id = process.world.hardship.mortality.is_none();
        let by_id = if stormy && may_claim_by_id && dice.chance(80) { progress.recall(dice) } else { None };
        let name = if process.world.hardship.is_calm {
            // Nothing waits because all workers look at another queue.
            let Actor::Worker(number) = process.gate.actor else { return };
            QUEUES[usize::from(number) % QUEUES.len()]
        } else if process.world.hardship.is_busy {
            dice.pick([QUEUES[0], QUEUES[1], GREEN])
        } else {
            dice.pick(QUEUES)
        };
        let queue = queue(name);
        let of_task = |(task, held)| ReceivedWork::Task(Box::new(task), held);
        let claimed: Result<Vec<ReceivedWork>, _> = match by_id {
            Some(id) => {
                process.claim_by_id(&id, &request).await.map(|one| one.into_iter().map(of_task).collect())
            }
            // Some workers take what belongs together.
            None if stormy && dice.chance(100) => {
                let fill = dice.secs(0, 20);
                let claimed = process.claim_together(&queue, &request, fill).await;
                claimed.map(|all| all.into_iter().map(of_task).collect())
            }
            // Some workers run no workflows.
            None if stormy && dice.chance(150) => {
                process.claim(&queue, &request).await.map(|all| all.into_iter().map(of_task).collect())
            }
            None => process.work(&queue, &request).await,
        };
        match claimed {
            Ok(all) if all.is_empty() && request.wait > Millis::ZERO => {}
            Ok(all) if all.is_empty() => process.sleep(dice.millis(500, 10_000)).await,
            Ok(all) => drop(join_all(all.into_iter().map(|one| deal_with(&process, one))).await),
            Err(_) => process.sleep(dice.millis(100, 5_000)).await,
        }
    }
}

async fn deal_with(process: &Process, one: ReceivedWork) {
    match one {
        ReceivedWork::Task(task, held) => drop(work(process, &task, &held).await),
        ReceivedWork::Turn(taken) => drop(turn(process, *taken).await),
    }
}

/// Runs a task; returns whether its attempt is over.
pub(super) async fn work(process: &Process, task: &ClaimedTask, held: &Held) -> bool {
    let dice = &process.gate.dice;
    let is = |input: &str| task.input.as_ref().is_some_and(|own| *own == Json::string(input));
    if is(DEADLY) {
        process.sleep(dice.millis(0, 2_000)).await;
        process.gate.die().await;
    }
    if is(SLOW) {
        process.sleep(dice.secs(20, 40)).await;
        return close(process, held, complete(process, held)).await;
    }
    let is_odd = process.world.in_fault_phase() && !process.world.hardship.has_good_workers();
    let behaviour = if is_odd { dice.pick(BEHAVIOURS) } else { Behaviour::Completes };
    match behaviour {
        Behaviour::Completes => {
            process.work_for(3_000).await;
            if process.world.hardship.is_calm && fails_at_first(task) {
                let error = Failure::new("broken", "for now");
                return close(process, held, Report::Fail { error, retryable: true }).await;
            }
            close(process, held, complete(process, held)).await
        }
        Behaviour::CompletesSlowly => {
            for _ in 0..dice.between(1, 8) {
                let lease = task.lease_expires_at.since(process.now()).as_u64();
                process.sleep(dice.millis(1, lease.clamp(3_000, 30_000) / 2)).await;
                let sign =
                    dice.pick([SignOfLife::Both, SignOfLife::Both, SignOfLife::Worker, SignOfLife::Work]);
                if process.report(held, Report::Heartbeat(sign)).await.is_err() && dice.chance(700) {
                    return false;
                }
            }
            close(process, held, complete(process, held)).await
        }
        Behaviour::Fails => {
            process.sleep(dice.millis(1, 5_000)).await;
            close(process, held, fail(process, held)).await
        }
        Behaviour::Releases => close(process, held, Report::Release).await,
        Behaviour::StopsReporting => false,
        Behaviour::ReportsLate => {
            process.sleep(dice.millis(30_000, 200_000)).await;
            let report = if dice.chance(300) { fail(process, held) } else { complete(process, held) };
            close(process, held, report).await
        }
        Behaviour::ReportsOnTheDot => on_the_dot(process, task, held).await,
        Behaviour::ReportsTwice => {
            let (first, second) = (either(process, held), either(process, held));
            close(process, held, first).await;
            process.sleep(dice.millis(0, 20_000)).await;
            close(process, held, second).await
        }
    }
}

/// Whether a task of a client fails once: every other one does.
fn fails_at_first(task: &ClaimedTask) -> bool {
    let number = task.task.id.as_str().strip_prefix("t-").and_then(|number| number.parse::<u64>().ok());
    task.task.attempt == 1 && number.is_some_and(|number| number.is_multiple_of(2))
}

/// Sends heartbeats until the instant of the attempt's deadline, and reports at just that instant.
async fn on_the_dot(process: &Process, task: &ClaimedTask, held: &Held) -> bool {
    let deadline = task.deadline_at.unwrap_or(task.lease_expires_at);
    while process.now() < deadline {
        let left = deadline.since(process.now());
        process.sleep(left.min(Millis::from_secs(4))).await;
        if process.now() < deadline
            && process.report(held, Report::Heartbeat(SignOfLife::Both)).await.is_err()
        {
            process.sleep_until(deadline).await;
        }
    }
    let last = if process.gate.dice.chance(300) {
        Report::Heartbeat(SignOfLife::Both)
    } else {
        complete(process, held)
    };
    close(process, held, last).await
}

/// Reports, and repeats the report while there is no answer. Returns whether there was one.
async fn close(process: &Process, held: &Held, report: Report) -> bool {
    for _ in 0..5 {
        match process.report(held, report.clone()).await {
            Ok(()) | Err(tickover_service::ServiceError::Rejected(_)) => return true,
            Err(_) => process.sleep(process.gate.dice.millis(50, 4_000)).await,
        }
    }
    false
}

fn either(process: &Process, held: &Held) -> Report {
    if process.gate.dice.chance(700) { complete(process, held) } else { fail(process, held) }
}

/// A unique result that names its worker's lease. Some results are large.
fn complete(process: &Process, held: &Held) -> Report {
    let dice = &process.gate.dice;
    let padding = "x".repeat(usize::try_from(dice.pick([0, 0, 10, 400, 2_000])).unwrap_or(0));
    Report::Complete(Json::string(&format!("{} {:x} {padding}", held.lease, dice.roll())))
}

fn fail(process: &Process, held: &Held) -> Report {
    let dice = &process.gate.dice;
    let padding = "y".repeat(usize::try_from(dice.pick([0, 30, 200, 1_500])).unwrap_or(0));
    let code = if dice.chance(150) { "fatal" } else { "broken" };
    let error = Failure::new(code, format!("{} {padding}", held.lease));
    Report::Fail { error, retryable: dice.chance(900) }
}
