//! Work from a queue's messages for workers that run workflows: both tasks and turns.

use futures::future::join_all;
use tickover_core::duration::Millis;
use tickover_core::execution::Execution;
use tickover_core::execution::message::TurnHint;
use tickover_core::id::QueueName;

use super::StartedTurn;
use super::turn::TurnStart;
use crate::claim::{ClaimRequest, ClaimedTask, Found, REDELIVERY_DELAY, WAITED_OUT, Wanted};
use crate::error::ServiceError;
use crate::ports::Received;
use crate::service::Service;
use crate::telemetry::field;
use crate::warn_unless_logged;

/// How soon a turn's message comes back if the caller that received it takes only tasks.
const TURN_REDELIVERY: Millis = Millis::from_secs(5);
/// How soon a turn's message comes back while its worker is asked what limits its begin.
const ASK_REDELIVERY: Millis = Millis::new(100);

#[derive(Clone, Debug)]
pub enum Work {
    Task(Box<ClaimedTask>),
    Turn(Box<StartedTurn>),
}

/// The result of a turn's message.
enum Message {
    Turn(Box<StartedTurn>),
    /// It must be started by a worker that has no other work in progress.
    Suspect,
    /// Its worker, which is elsewhere, must say first what limits its begin; the message is visible again soon.
    Ask(Box<Execution>),
    /// The turn may start after this long, within a second; the message is still in flight.
    Soon(Millis),
    /// No turn; the message has been deleted or replaced.
    Done,
}

impl Service {
    /// Claims work from a queue, as much as there is up to `max`: tasks, and turns of executions.
    pub async fn next_work(
        &self,
        queue: &QueueName,
        request: &ClaimRequest,
    ) -> Result<Vec<Work>, ServiceError> {
        self.claim_work(queue, request, true).await
    }

    /// Processes the messages of turns. A caller waits for turns that may start within a second only if it has no other
    /// work: sent again, their messages would be back at once.
    pub(crate) async fn start_turns<'m>(
        &self,
        queue: &QueueName,
        hinted: Vec<(TurnHint, &'m Received)>,
        wanted: Wanted<'_>,
    ) -> Found<'m> {
        let mut found = Found::default();
        let (mut hinted, mut waits, patient) = (hinted, false, !wanted.patience.is_zero());
        while !hinted.is_empty() {
            let patience = if waits || hinted.len() == 1 { wanted.patience } else { Millis::ZERO };
            let wanted = Wanted { patience, ..wanted };
            let taken = hinted.iter().map(|(hint, message)| self.take_message(queue, hint, message, wanted));
            let taken = join_all(taken).await;
            let mut soon = Vec::new();
            for (one, taken) in hinted.into_iter().zip(taken) {
                match taken {
                    Ok(Message::Turn(turn)) => found.work.push(Work::Turn(turn)),
                    Ok(Message::Suspect) => found.suspects.push(one.1),
                    Ok(Message::Ask(execution)) => found.asks.push(*execution),
                    Ok(Message::Soon(left)) => soon.push((one, left)),
                    Ok(Message::Done) => {}
                    Err(error) => found.error = Some(error),
                }
            }
            if patient && !waits && found.work.is_empty() {
                hinted = soon.into_iter().map(|(one, _)| one).collect();
                waits = true;
                continue;
            }
            for ((_, message), left) in soon {
                if let Err(error) = self.replace_message(queue, message, left).await {
                    found.error = Some(error);
                }
            }
            break;
        }
        found
    }

    /// Processes a turn's message. After an error the message is visible again soon.
    async fn take_message(
        &self,
        queue: &QueueName,
        hint: &TurnHint,
        message: &Received,
        wanted: Wanted<'_>,
    ) -> Result<Message, ServiceError> {
        let (request, terms) = (wanted.request, wanted.terms());
        let taken = async {
            match self.load_execution(&hint.turn.id).await? {
                Some(execution) => {
                    let again = message.receive_count > 1;
                    self.try_start_turn(&hint.turn, again, execution, request, terms).await
                }
                None => Ok(TurnStart::Spent),
            }
        };
        let taken = taken.await;
        if let (Some(arrived), true) = (hint.turn.at, taken.is_ok()) {
            self.note_received(queue, self.class_of(Some(&message.receipt)), arrived).await;
        }
        let done = match taken {
            Ok(TurnStart::Turn(turn)) => {
                let receipt = Some(message.receipt.clone());
                return Ok(Message::Turn(Box::new(StartedTurn { receipt, ..*turn })));
            }
            Ok(TurnStart::Suspect) => return Ok(Message::Suspect),
            Ok(TurnStart::Ask(execution)) => {
                self.set_visibility(queue, message, ASK_REDELIVERY).await;
                return Ok(Message::Ask(execution));
            }
            Ok(TurnStart::Early(left)) if left <= WAITED_OUT => return Ok(Message::Soon(left)),
            Ok(TurnStart::Early(left)) => self.replace_message(queue, message, left).await,
            Ok(TurnStart::Spent) => {
                self.delete_message(queue, &message.receipt).await;
                Ok(())
            }
            Err(error) => Err(error),
        };
        if let Err(error) = &done {
            warn_unless_logged!(
                error;
                { field::EXECUTION_ID } = %hint.turn.id, { field::QUEUE_NAME } = %queue, %error, "turn not started"
            );
            // A record that can't be read won't be readable soon: its message stays hidden for the lease.
            if !matches!(error, ServiceError::Corrupt { .. }) {
                let times = 1 << message.receive_count.saturating_sub(1).min(6);
                let after = REDELIVERY_DELAY.saturating_mul(times).min(request.lease);
                self.set_visibility(queue, message, after).await;
            }
        }
        done.map(|()| Message::Done)
    }

    /// Puts back the messages of turns for a caller that takes only tasks.
    pub(crate) async fn leave_turns(&self, queue: &QueueName, hinted: Vec<(TurnHint, &Received)>) {
        for (hint, message) in hinted {
            tracing::debug!(
                { field::EXECUTION_ID } = %hint.turn.id, { field::QUEUE_NAME } = %queue, "a turn, left to workers that run workflows"
            );
            if let Err(error) = self.replace_message(queue, message, TURN_REDELIVERY).await {
                tracing::debug!({ field::QUEUE_NAME } = %queue, %error, "message not sent again");
            }
        }
    }
}
