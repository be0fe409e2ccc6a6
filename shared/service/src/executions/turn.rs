//! A turn: started by a worker, recorded as it proceeds, and ended.

use futures::FutureExt as _;
use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::execution::command::{
    Cleanup, Close, Command, Ending, Record, ReleaseReason, StartTurn, Suspend,
};
use tickover_core::execution::decision::{Reply, StartTurnReply};
use tickover_core::execution::journal::Entry;
use tickover_core::execution::message::{HintedTurn, TurnHint};
use tickover_core::execution::{Admission, Execution, ahead_of_journal};
use tickover_core::id::{LeaseId, QueueName};
use tickover_core::payload::{BlobRef, Json, Payload};

use super::{StartedTurn, Suspended};
use crate::claim::{ClaimRequest, Delivered, Hinted, Isolation, Terms, WAITED_OUT};
use crate::drive::Known;
use crate::error::ServiceError;
use crate::flow::admission;
use crate::gates::{Admitted, Taking};
use crate::service::{Asks, CodeAsks, Service};
use crate::telemetry::field;

/// Payloads of up to this many bytes are stored in the journal; a larger one has its own item.
pub(super) const INLINE_BYTES: usize = 200;

/// The result of the attempt to start a turn.
pub(crate) enum TurnStart {
    Turn(Box<StartedTurn>),
    /// It may not start before this long.
    Early(Millis),
    /// It must be started by a worker that has no other work in progress.
    Suspect,
    /// Its worker, which is elsewhere, must say first what limits its begin.
    Ask(Box<Execution>),
    /// The hint can't lead to anything any more.
    Spent,
}

impl Service {
    /// Starts the turn of a hint, for workers that received the message themselves. Returns `None` if there is nothing
    /// to do. In that case, and once the turn has ended, the caller deletes the message.
    pub async fn start_turn(
        &self,
        body: &str,
        request: &ClaimRequest,
    ) -> Result<Option<StartedTurn>, ServiceError> {
        let message = Delivered::first(body);
        match self.start_turn_among(message, request, Isolation::Alone).await? {
            Hinted::Taken(turn) => Ok(Some(*turn)),
            Hinted::Spent | Hinted::Suspect => Ok(None),
        }
    }

    /// The same for workers that may have other work in progress.
    pub async fn start_turn_among(
        &self,
        message: Delivered<'_>,
        request: &ClaimRequest,
        isolation: Isolation,
    ) -> Result<Hinted<StartedTurn>, ServiceError> {
        let Ok(hint) = TurnHint::parse(message.body) else {
            return Err(Reject::field("hint", "isn't the hint of a turn").into());
        };
        let Some(execution) = self.load_execution(&hint.turn.id).await? else { return Ok(Hinted::Spent) };
        let queue = execution.queue.clone();
        let is_open = execution.incarnation == hint.turn.inc && execution.closed().is_none();
        let paused = is_open && self.parks(&queue).await?;
        let terms = Terms { isolation, paused, patience: WAITED_OUT, inside: true };
        let taken = self.try_start_turn(&hint.turn, message.is_again(), execution, request, terms).await?;
        self.see_worker(&queue, request.worker.as_ref());
        if let Some(arrived) = hint.turn.at {
            self.note_received(&queue, self.class_of(message.receipt), arrived).await;
        }
        match taken {
            TurnStart::Turn(turn) => Ok(Hinted::Taken(turn)),
            TurnStart::Early(left) => {
                // It came too early to wait for.
                self.send_hint(&queue, message.body, left).await?;
                Ok(Hinted::Spent)
            }
            TurnStart::Suspect => Ok(Hinted::Suspect),
            // A worker elsewhere doesn't start turns in this way.
            TurnStart::Ask(_) | TurnStart::Spent => Ok(Hinted::Spent),
        }
    }

    /// Tries to start a turn, and waits for one that may start soon enough.
    pub(crate) async fn try_start_turn(
        &self,
        hint: &HintedTurn,
        again: bool,
        execution: Execution,
        request: &ClaimRequest,
        Terms { isolation, paused, patience, inside }: Terms,
    ) -> Result<TurnStart, ServiceError> {
        if execution.incarnation == hint.inc && self.end_if_parent_ended(&execution).await? {
            return Ok(TurnStart::Spent);
        }
        let terms = self.terms.get(&execution.workflow);
        let code = terms.map(|terms| terms.code).unwrap_or_default();
        let asks = match terms.and_then(|terms| terms.asks.as_ref()) {
            Some(Asks::Code(asks)) if execution.takes_limits() => {
                self.limits_of_code(&execution, asks).await?
            }
            Some(Asks::Elsewhere(asked)) if execution.takes_limits() => match asked.get(&execution.id) {
                Some(flow) => admission(flow, None),
                None => return Ok(TurnStart::Ask(Box::new(execution))),
            },
            Some(_) | None => None,
        };
        let mut known = Known::Record(Box::new(execution));
        let mut admitted = Admitted::default();
        let (lease, began_at) = (self.new_lease(), self.now());
        loop {
            let command = Command::StartTurn(StartTurn {
                lease,
                worker: request.worker.clone(),
                length: request.lease,
                incarnation: Some(hint.inc),
                again,
                isolation,
                outside: !inside && self.limits.alone_since.is_some(),
                paused,
                terms: code,
                asks: asks.clone(),
                places: admitted.places(),
                start: admitted.start(),
            });
            let decision = self.drive_execution(&hint.id, known, &command).await?;
            // If there is no execution, it was deleted meanwhile.
            let Ok((execution, Reply::StartTurn(reply))) = decision.outcome else {
                return Ok(TurnStart::Spent);
            };
            let is_asking = matches!(reply, StartTurnReply::NeedsPlaces | StartTurnReply::NeedsStart);
            if !is_asking && admitted.has_any() {
                // Boxed, because the future of each turn would contain all of this, and few executions have keys.
                Box::pin(self.give_up_unused(Some(&execution), &mut admitted)).await;
            }
            match reply {
                StartTurnReply::NeedsPlaces => {
                    match Box::pin(self.take_for_turn(execution, &mut admitted)).await? {
                        Taking::Decide(execution) => known = Known::Record(execution),
                        Taking::Waits | Taking::Gone => return Ok(TurnStart::Spent),
                    }
                }
                StartTurnReply::NeedsStart => {
                    Box::pin(self.start_for_turn(&execution, &mut admitted, began_at, patience)).await?;
                    known = Known::Record(Box::new(execution));
                }
                StartTurnReply::Started => return self.started_turn(execution).await,
                StartTurnReply::Early { available_at } => {
                    let left = available_at.since(self.now());
                    if left > patience {
                        return Ok(TurnStart::Early(left));
                    }
                    self.ports.clock.sleep_until(available_at).await;
                    known = Known::Record(Box::new(execution));
                }
                StartTurnReply::NeedsIsolation => return Ok(TurnStart::Suspect),
                // The call that closed it, or its messages, end the open steps and children.
                StartTurnReply::Closing
                | StartTurnReply::LeasedByOther
                | StartTurnReply::Parked
                | StartTurnReply::Stale => {
                    if paused && execution.parked.in_line().is_some() {
                        Box::pin(self.passes_on(&execution.waiting())).await?;
                    }
                    self.notify_of_outcome(&execution, again).await?;
                    if again && execution.closed().is_some() {
                        self.patrol_gates(execution.gates()).await?;
                    }
                    return Ok(TurnStart::Spent);
                }
            }
        }
    }

    /// What limits the begin of an execution by its workflow's code. Nothing if the input doesn't fit the code, which says
    /// so itself.
    async fn limits_of_code(
        &self,
        execution: &Execution,
        asks: &CodeAsks,
    ) -> Result<Option<Box<Admission>>, ServiceError> {
        let input = self.payload(execution.input.as_ref()).await?;
        Ok(input.and_then(|input| admission(&asks(&input)?, None)))
    }

    async fn started_turn(&self, execution: Execution) -> Result<TurnStart, ServiceError> {
        let Some(lease) = execution.turn().map(|turn| turn.lease) else { return Ok(TurnStart::Spent) };
        let known = self.kept.as_ref().and_then(|kept| kept(&execution.id));
        let (journal, since, input, receipt, brought) = (vec![], None, None, None, None);
        let turn = StartedTurn { execution, journal, since, input, lease, receipt, brought };
        Ok(TurnStart::Turn(Box::new(self.read_turn(turn, known.as_ref()).await?)))
    }

    /// Reads what a started turn needs: the whole run, or what its journal has more than when its record was as it is
    /// `known`. A turn that can't be read is released.
    pub async fn read_turn(
        &self,
        mut turn: StartedTurn,
        known: Option<&Execution>,
    ) -> Result<StartedTurn, ServiceError> {
        let (execution, lease) = (&turn.execution, turn.lease);
        let read = async {
            if let Some(known) = known
                && let Some(since) = self.journal_since(execution, known).await?
            {
                return Ok((vec![], Some(since), None));
            }
            let journal = self.journal_of(execution).await?;
            let input = self.payload(execution.input.as_ref()).await?;
            Ok::<_, ServiceError>((journal, None, input))
        };
        match read.await {
            Ok(read) => {
                (turn.journal, turn.since, turn.input) = read;
                Ok(turn)
            }
            Err(error) => {
                // No worker runs the turn, so another one may try before the lease runs out.
                let cleanup = Some(Cleanup::of(execution));
                let released = self.release_turn(execution, lease, WAITED_OUT, error.undone(), cleanup);
                if let Err(error) = released.await {
                    tracing::debug!({ field::EXECUTION_ID } = %execution.id, %error, "not released");
                }
                Err(error)
            }
        }
    }

    /// Records a turn's new journal entries. The turn continues with the returned record.
    pub async fn record_turn(
        &self,
        execution: &Execution,
        lease: LeaseId,
        entries: Vec<Entry>,
        cleanup: Cleanup,
    ) -> Result<Execution, ServiceError> {
        self.record_progress(
            execution,
            Record { lease, entries, cleanup, timed_attempts: None, values: None },
        )
        .await
    }

    /// The same, for a worker that reports which attempts it has in progress.
    pub async fn record_progress(
        &self,
        execution: &Execution,
        record: Record,
    ) -> Result<Execution, ServiceError> {
        self.drive_turn(execution, &Command::Record(record)).await
    }

    /// Ends a turn that has to wait, unless the execution was woken meanwhile.
    pub async fn suspend_turn(
        &self,
        execution: &Execution,
        suspend: Suspend,
    ) -> Result<Suspended, ServiceError> {
        let lease = suspend.lease;
        let execution = self.drive_turn(execution, &Command::Suspend(suspend)).await?;
        // A turn that hasn't ended still has its lease.
        if execution.turn().is_some_and(|turn| turn.lease == lease) {
            let journal = self.journal_of(&execution).await?;
            return Ok(Suspended::Continue(Box::new(execution), journal));
        }
        Ok(Suspended::Done(Box::new(execution)))
    }

    /// Ends a run, with its open steps and children.
    pub async fn close_turn(&self, execution: &Execution, close: Close) -> Result<Execution, ServiceError> {
        let may_go_on = matches!(close.ending, Ending::FailedRun { .. } | Ending::ContinueAsNew { .. });
        let command = Command::Close(close);
        let closed = self.drive_turn(execution, &command).await?;
        if may_go_on && closed.run > execution.run {
            // A type of its own: with this in each close, the compiler gives up on the future of a worker.
            self.end_left_open(execution, command.entries()).boxed().await;
        }
        Ok(closed)
    }

    /// Heartbeat of a turn's worker, with its new journal entries and published values; its message stays hidden as long as its lease.
    pub async fn heartbeat_turn(
        &self,
        execution: &Execution,
        lease: LeaseId,
        (entries, values): (Vec<Entry>, Option<Payload>),
        receipt: Option<&str>,
    ) -> Result<Execution, ServiceError> {
        let renewed = self.drive_turn(execution, &Command::Heartbeat { lease, entries, values }).await?;
        if let Some(turn) = renewed.turn() {
            self.see_worker(&renewed.queue, turn.worker.as_ref());
        }
        if let (Some(receipt), Some(turn)) = (receipt, renewed.turn()) {
            let hidden = self.ports.queue.change_visibility(&renewed.queue, receipt, turn.lease_length).await;
            if let Err(error) = hidden {
                tracing::debug!({ field::EXECUTION_ID } = %renewed.id, %error, "message not extended");
            }
        }
        Ok(renewed)
    }

    /// Gives a turn back without a result. `cleanup` is what its code does if it ends early; `None` if that isn't known.
    pub async fn release_turn(
        &self,
        execution: &Execution,
        lease: LeaseId,
        after: Millis,
        reason: ReleaseReason,
        cleanup: Option<Cleanup>,
    ) -> Result<(), ServiceError> {
        self.drive_turn(execution, &Command::Release { lease, after, reason, cleanup }).await?;
        Ok(())
    }

    pub async fn done_with(&self, queue: &QueueName, receipt: &str) {
        self.delete_message(queue, receipt).await;
    }

    /// The record as it is now, for the worker that has its turn.
    pub async fn record_of_turn(
        &self,
        execution: &Execution,
        lease: LeaseId,
    ) -> Result<Execution, ServiceError> {
        let current = self.load_execution(&execution.id).await?;
        let held = current.filter(|current| current.turn().is_some_and(|turn| turn.lease == lease));
        held.ok_or_else(|| Reject::TurnLost.into())
    }

    async fn drive_turn(&self, execution: &Execution, command: &Command) -> Result<Execution, ServiceError> {
        let known = Known::Record(Box::new(execution.clone()));
        Ok(self.drive_execution(&execution.id, known, command).await?.outcome?.0)
    }

    /// A payload for the journal of an open execution: inline, or written to its own item.
    pub async fn store_payload(&self, json: Json) -> Result<Payload, ServiceError> {
        if json.len() <= INLINE_BYTES {
            return Ok(Payload::Inline(json));
        }
        let (bytes, maximum) = (json.len(), self.limits.payload_bytes);
        tickover_core::limits::check("payload_bytes", bytes, maximum)?;
        if bytes > maximum / 5 * 4 {
            tracing::warn!(limit = "payload_bytes", value = bytes, maximum, "a limit is nearly reached");
        }
        let bytes = u32::try_from(json.len()).unwrap_or(u32::MAX);
        let expires_at = ahead_of_journal(self.now(), &self.limits);
        let at = BlobRef { id: self.new_blob_id(), bytes, expires_at };
        self.with_retries(|| self.ports.store.put_blob(&at, &json)).await?;
        Ok(Payload::Blob(at))
    }

    /// The text of a payload, from the record or from its own item.
    pub async fn open(&self, payload: &Payload) -> Result<Json, ServiceError> {
        let json = self.payload(Some(payload)).await?;
        json.ok_or_else(|| ServiceError::Corrupt { reason: "a payload is missing".to_owned() })
    }
}
