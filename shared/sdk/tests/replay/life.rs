//! A random body from its start to its end, in a system that may die.

use std::future::poll_fn;
use std::pin::pin;

use tickover::Millis;
use tickover::test::TestEnv;
use tickover_core::execution::journal::{DRIFT, Happened};
use tickover_core::execution::{Execution, ExecutionOutcome, ExecutionState};
use tickover_core::id::{EventName, ExecutionId, QueueName, WorkflowName};
use tickover_core::payload::Json;
use tickover_service::Service;
use tickover_service::executions::StartRequest;

use crate::body::{AGAIN, random};
use crate::steps::{little, work};
use crate::tree::{EVENTS, Ending, Offer, Plan};
use crate::witness::{ID, Witness};

/// Most deaths of one body that are tried.
const DEATHS_MAX: u64 = 10;
/// How often an execution is helped on by events that would wait for ever.
const HELP_MAX: u32 = 40;
/// How often it is looked at.
const LOOKS_MAX: u32 = 300;
/// Seconds between two looks, at least and at most.
const PAUSE: (u64, u64) = (100, 100_000);

/// Runs a body undisturbed, and then with deaths. What is wrong, if anything is.
pub(crate) async fn live(plan: &Plan) -> Result<(), String> {
    let writes = Box::pin(live_once(plan, None)).await?;
    // All of them, or some that lie as far apart as may be.
    let step = writes.div_ceil(DEATHS_MAX).max(1);
    let mut write = 1 + plan.luck % step;
    while write <= writes {
        // Of some lives, the next one is as short.
        let again = (plan.luck / step + write).is_multiple_of(3).then_some(plan.luck % 7 + 1);
        let died = Box::pin(live_once(plan, Some((write, again)))).await;
        died.map_err(|problem| format!("death after write {write}, and after {again:?} more: {problem}"))?;
        write += step;
    }
    Ok(())
}

/// Runs a body. The system may die after a write, and once more so many writes later. How many writes there were.
async fn live_once(plan: &Plan, death: Option<(u64, Option<u64>)>) -> Result<u64, String> {
    let env = TestEnv::new().workflow((random, little)).step::<work>();
    let env = env.on_death(|death| Witness::current().died(&death.completed));
    let witness = Witness::new(plan, env.service().clone());
    if let Some((write, _)) = death {
        env.kill_after_write(write);
    }
    let mut again = death.and_then(|(_, again)| again);
    let story = tell(&witness);
    let mut story = pin!(story);
    let told = poll_fn(|context| {
        if env.deaths() > 0
            && let Some(more) = again.take()
        {
            env.kill_after_write(env.writes() + more);
        }
        story.as_mut().poll(context)
    });
    env.run(told).await.map_err(|error| format!("{error}\n{}", witness.shown()))?;
    match witness.problem() {
        Some(problem) => Err(problem),
        None => Ok(env.writes()),
    }
}

/// Starts the execution, offers it what comes from outside, and then whatever it may still be waiting for.
pub(crate) async fn tell(witness: &Witness) {
    let service = &witness.service;
    let mut request = StartRequest::new(
        WorkflowName::parse(random.name()).unwrap(),
        QueueName::parse(random.options().queue).unwrap(),
    );
    request.id = Some(id());
    service.start(request).await.unwrap();
    for Offer { after, event, bytes } in &witness.plan.offers {
        wait(service, *after).await;
        offer(witness, event, *bytes).await;
    }
    let (mut pause, mut helped) = (PAUSE.0, 0);
    for _ in 0..LOOKS_MAX {
        wait(service, pause).await;
        let described = service.execution(&id()).await.unwrap().unwrap();
        if let Some(closed) = described.execution.closed() {
            if !is_to_run_again(&closed.outcome) {
                let output = described.output.as_ref().map(Json::as_str);
                return judge(witness, &closed.outcome, output);
            }
            // It isn't while what it left open is being ended: then it is tried again.
            drop(service.rerun(&id(), &[], true).await);
        } else if goes_on_by_itself(&described.execution) {
            pause = (2 * pause).min(PAUSE.1);
        } else if helped < HELP_MAX {
            (pause, helped) = (PAUSE.0, helped + 1);
            for event in EVENTS {
                offer(witness, event, 1).await;
                offer(witness, event, 300).await;
            }
        } else {
            break;
        }
    }
    witness.object("it doesn't end".to_owned());
}

fn is_to_run_again(outcome: &ExecutionOutcome) -> bool {
    matches!(outcome, ExecutionOutcome::Failed { error, .. } if error.code == AGAIN)
}

/// Whether there is an instant at which it wakes.
fn goes_on_by_itself(execution: &Execution) -> bool {
    matches!(&execution.state, ExecutionState::Waiting(waiting) if waiting.until.is_some())
}

/// An execution comes to what its last turn came to.
fn judge(witness: &Witness, outcome: &ExecutionOutcome, output: Option<&str>) {
    let last = witness.last();
    if !matches!(outcome, ExecutionOutcome::Completed { .. }) || output != last.as_deref() {
        witness.object(format!("it ended with {outcome:?}, {output:?}; the last turn with {last:?}"));
    }
    // A run that began with kept results may have gone another way than the one that had them.
    let drift = witness.journal().into_iter().find(|entry| is_drift(&entry.what));
    if let (Some(drift), Ending::Result | Ending::Afterwards) = (drift, witness.plan.ending) {
        witness.object(format!("the code counts as changed: {drift:?}"));
    }
}

fn is_drift(what: &Happened) -> bool {
    matches!(what, Happened::Note { kind, .. } if kind == DRIFT)
}

fn id() -> ExecutionId {
    ExecutionId::parse(ID).unwrap()
}

async fn wait(service: &Service, seconds: u64) {
    service.clock().sleep_until(service.now().plus(Millis::from_secs(seconds))).await;
}

async fn offer(witness: &Witness, event: &str, bytes: usize) {
    let name = EventName::parse(event).unwrap();
    let payload = Json::string(&witness.make(event, bytes));
    // An execution that has ended takes none.
    drop(witness.service.send_event(&id(), name, None, Some(payload)).await);
}
