//! Bugs of messages that are never sent.

use tickover_core::duration::Millis;
use tickover_core::execution::ExecutionState;
use tickover_core::execution::message::TurnHint;
use tickover_core::task::State;
use tickover_core::task::hint::Hint;
use tickover_service::ports::{Outgoing, QueueError};

use super::Bug;
use super::sleeps::is_for_a_sleep;
use crate::gate::Gate;
use crate::history::{Actor, Fault};
use crate::world::World;

/// How long a process is frozen whose messages are refused, with the bug. No two calls take as long.
const STOOD_STILL: Millis = Millis::from_secs(40);

/// Whether a worker gives up the messages that its queue has refused, with the bug: then it was frozen meanwhile.
pub async fn gives_up(gate: &Gate, answer: &Result<Vec<Result<(), QueueError>>, QueueError>) -> bool {
    let is_refused = answer.as_ref().map_or(true, |each| each.iter().any(Result::is_err));
    let is_worker = matches!(gate.actor, Actor::Worker(_));
    if gate.world.bug != Some(Bug::GivenUpAfterFreeze) || !is_refused || !is_worker {
        return false;
    }
    gate.world.fault(gate.actor, Fault::Frozen(STOOD_STILL));
    gate.clock.freeze(STOOD_STILL);
    gate.clock.thaw().await;
    true
}

/// Whether a process forgets to send these messages.
pub fn forgets(world: &World, actor: Actor, messages: &[Outgoing]) -> bool {
    let forgets = |message: &Outgoing| match world.bug {
        Some(Bug::HeldHintForgotten) => is_for_a_sleep(actor, message),
        Some(Bug::TaskNotHinted) => matches!(actor, Actor::Worker(_)) && is_of_later_attempt(message),
        Some(Bug::StartNotHinted) => matches!(actor, Actor::Client(_)) && is_of_start(world, message),
        Some(_) | None => false,
    };
    messages.iter().all(forgets)
}

fn is_of_later_attempt(message: &Outgoing) -> bool {
    let waits_again = |hint: &Hint| matches!(hint.task.state, State::Pending(_)) && hint.task.attempt > 0;
    Hint::parse(&message.body).is_ok_and(|hint| waits_again(&hint))
}

fn is_of_start(world: &World, message: &Outgoing) -> bool {
    let Ok(hint) = TurnHint::parse(&message.body) else { return false };
    let execution = world.ledger.execution(&hint.turn.id);
    execution.is_some_and(|execution| matches!(execution.state, ExecutionState::Pending(_)))
}
