//! Runs a random body from its start to its end, in a system that may die.

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
use crate::tree::{EVENTS, Ending, Plan, SentEvent};
use crate::witness::{ID, Witness};

/// The most deaths that are tried for one body.
const DEATHS_MAX: u64 = 10;
/// How often the test sends events to an execution that would otherwise wait for ever.
const HELP_MAX: u32 = 40;
/// How often the execution's status is read.
const LOOKS_MAX: u32 = 300;
/// Seconds between two reads, at least and at most.
const PAUSE: (u64, u64) = (100, 100_000);

/// Runs a body without a death, and then once for each chosen death. Returns the first error.
pub(crate) async fn live(plan: &Plan) -> Result<(), String> {
    let writes = Box::pin(live_once(plan, None)).await?;
    // Every write, or some writes at equal distances.
    let step = writes.div_ceil(DEATHS_MAX).max(1);
    let mut write = 1 + plan.write_choice % step;
    while write <= writes {
        // In a third of the cases, the system dies a second time a few writes later.
        let again = (plan.write_choice / step + write).is_multiple_of(3).then_some(plan.write_choice % 7 + 1);
        let died = Box::pin(live_once(plan, Some((write, again)))).await;
        died.map_err(|problem| format!("death after write {write}, and after {again:?} more: {problem}"))?;
        write += step;
    }
    Ok(())
}

/// Runs a body. The system may die after one write, and once more a number of writes later. Returns how many writes
/// there were.
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

/// Starts the execution, sends it the planned events, and then any event that it may still wait for.
pub(crate) async fn tell(witness: &Witness) {
    let service = &witness.service;
    let mut request = StartRequest::new(
        WorkflowName::parse(random().name()).unwrap(),
        QueueName::parse(random().options().queue).unwrap(),
    );
    request.id = Some(id());
    service.start(request).await.unwrap();
    for SentEvent { after, event, bytes } in &witness.plan.offers {
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
            // A rerun is refused while the children and steps that the execution left open are being ended. The next
            // iteration tries again.
            drop(service.rerun(&id(), &[], true).await);
        } else if wakes_by_itself(&described.execution) {
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

/// Whether the execution waits for an instant.
fn wakes_by_itself(execution: &Execution) -> bool {
    matches!(&execution.state, ExecutionState::Waiting(waiting) if waiting.until.is_some())
}

/// The outcome of an execution must be what its code has seen last.
fn judge(witness: &Witness, outcome: &ExecutionOutcome, output: Option<&str>) {
    let last = witness.last();
    if !matches!(outcome, ExecutionOutcome::Completed { .. }) || output != last.as_deref() {
        witness.object(format!(
            "it ended with {outcome:?} and the output {output:?}; its code has seen {last:?} last"
        ));
    }
    // A run that begins with kept results may go another way than the run that produced them.
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
    // An execution that has ended refuses the event.
    drop(witness.service.send_event(&id(), name, None, Some(payload)).await);
}
