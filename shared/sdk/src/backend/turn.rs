//! The calls of a turn whose service is another process's.

use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::execution::command::{Cleanup, Close, Record, ReleaseReason, Suspend};
use tickover_core::execution::journal::Entry;
use tickover_core::execution::values::Values;
use tickover_core::execution::{Execution, ExecutionStatus};
use tickover_core::failure::Failure;
use tickover_core::id::{EventId, EventName, ExecutionId, Incarnation, LeaseId, StepName};
use tickover_core::payload::{Json, Payload};
use tickover_core::time::Timestamp;
use tickover_core::trace::TraceContext;
use tickover_service::ServiceError;
use tickover_service::callbacks::Callback;
use tickover_service::executions::{NamedEnd, StartedWork, Suspended, ToStart};
use tickover_wire::answer::{Problem, StartedView, TurnAnswer, TurnStartAnswer};
use tickover_wire::request::{
    AwaitedExecution, EventRequest, TurnCallbackRequest, TurnCancelRequest, TurnPayloadRequest,
    TurnReadRequest, TurnRelease, TurnStartRequest, TurnSuspension, TurnWriteRequest,
};
use tickover_wire::{OpenEnum, Verbatim};

use super::Called;
use super::error::of_problem;
use super::remote::{Remote, all_stored, parsed, stored};
use super::work::named_end;

/// Payloads of up to this many bytes stand in the journal.
const INLINE_BYTES: usize = 200;
/// About how many bytes of steps and children one call has. The service takes 6 MiB, and a proxy often 1.
const START_BYTES: usize = 512 * 1024;
/// How many of these a step or child takes besides its input, about.
const UNIT_BYTES: usize = 500;

impl Remote {
    pub(super) async fn record_progress(&self, execution: &Execution, record: Record) -> Called<Execution> {
        let Record { lease: _, entries, cleanup, timed_attempts, values } = record;
        let timed_attempts = timed_attempts.map(|timed| timed.iter().map(stored).collect()).transpose()?;
        let request = self.written(execution, (&entries, values.as_ref()), Some(cleanup))?;
        self.write(TurnWriteRequest { timed_attempts, ..request }).await.map(|(record, _)| record)
    }

    pub(super) async fn suspend_turn(&self, execution: &Execution, suspend: Suspend) -> Called<Suspended> {
        let Suspend {
            entries,
            seen_version,
            seen_wakes,
            until,
            awaits_others,
            events,
            cleanup,
            lease,
            values,
        } = suspend;
        let request = TurnWriteRequest {
            seen_version,
            suspend: Some(TurnSuspension {
                seen_wakes,
                until: until.map(Into::into),
                awaits_others: Some(awaits_others),
                events: Some(events),
            }),
            ..self.written(execution, (&entries, values.as_ref()), Some(cleanup))?
        };
        let (record, journal) = self.write(request).await?;
        if record.turn().is_none_or(|turn| turn.lease != lease) {
            return Ok(Suspended::Done(Box::new(record)));
        }
        let journal = match journal {
            Some(journal) if journal.len() == record.entries() => journal,
            _ => self.journal_of(&record).await?,
        };
        Ok(Suspended::Continue(Box::new(record), journal))
    }

    pub(super) async fn close_turn(&self, execution: &Execution, close: Close) -> Called<Execution> {
        let Close { lease: _, entries, ending, cleanup, values } = close;
        let request = self.written(execution, (&entries, values.as_ref()), Some(cleanup))?;
        let request = TurnWriteRequest { close: Some(stored(&ending)?), ..request };
        self.write(request).await.map(|(record, _)| record)
    }

    pub(super) async fn heartbeat_turn(
        &self,
        execution: &Execution,
        _: LeaseId,
        (entries, values): (Vec<Entry>, Option<Payload>),
        _: Option<&str>,
    ) -> Called<Execution> {
        let request = self.written(execution, (&entries, values.as_ref()), None)?;
        self.write(TurnWriteRequest { heartbeat: Some(true), ..request }).await.map(|(record, _)| record)
    }

    pub(super) async fn release_turn(
        &self,
        execution: &Execution,
        _: LeaseId,
        after: Millis,
        reason: ReleaseReason,
        cleanup: Option<Cleanup>,
    ) -> Called<()> {
        let release = TurnRelease { after: Some(after.into()), reason: Some(stored(&reason)?) };
        let undoes = cleanup.map(|cleanup| cleanup.undoes);
        let request = TurnWriteRequest { undoes, ..self.written(execution, (&[], None), cleanup)? };
        self.write(TurnWriteRequest { release: Some(release), ..request }).await.map(drop)
    }

    fn written(
        &self,
        execution: &Execution,
        (entries, values): (&[Entry], Option<&Payload>),
        cleanup: Option<Cleanup>,
    ) -> Called<TurnWriteRequest> {
        let (_, lease) = self.turn()?;
        let Cleanup { on_failure, on_cancel, undoes } = cleanup.unwrap_or_default();
        Ok(TurnWriteRequest {
            lease,
            seen_version: execution.version,
            seen_entries: u32::try_from(execution.entries()).unwrap_or(u32::MAX),
            entries: all_stored(entries)?,
            values: values.map(stored).transpose()?,
            on_failure_timeout: on_failure.map(Into::into),
            on_cancel_timeout: on_cancel.map(Into::into),
            undoes: undoes.then_some(true),
            timed_attempts: None,
            heartbeat: None,
            suspend: None,
            close: None,
            release: None,
        })
    }

    async fn write(&self, request: TurnWriteRequest) -> Called<(Execution, Option<Vec<Entry>>)> {
        let (id, _) = self.turn()?;
        let answer = self.call(|| self.line.api.write_turn(id, &request)).await?;
        let journal = answer.journal.map(|all| all.iter().map(parsed).collect::<Called<_>>());
        Ok((parsed(&answer.execution)?, journal.transpose()?))
    }

    pub(super) async fn record_of_turn(&self, _: &Execution, _: LeaseId) -> Called<Execution> {
        parsed(&self.read(None, vec![], vec![], vec![]).await?.execution)
    }

    /// The journal of this record. Entries that came later aren't part of it.
    pub(super) async fn journal_of(&self, execution: &Execution) -> Called<Vec<Entry>> {
        let mut journal: Vec<Entry> = Vec::with_capacity(execution.entries());
        while journal.len() < execution.entries() {
            let answer = self.read(Some(journal.len()), vec![], vec![], vec![]).await?;
            let more = answer.journal.unwrap_or_default();
            if more.is_empty() {
                return Err(ServiceError::Corrupt { reason: "the journal ends too early".to_owned() });
            }
            for entry in &more {
                journal.push(parsed(entry)?);
            }
        }
        journal.truncate(execution.entries());
        Ok(journal)
    }

    async fn read(
        &self,
        from: Option<usize>,
        steps: Vec<StepName>,
        children: Vec<AwaitedExecution>,
        payloads: Vec<String>,
    ) -> Called<TurnAnswer> {
        let (id, lease) = self.turn()?;
        let request = TurnReadRequest {
            lease,
            from: from.map(|from| u32::try_from(from).unwrap_or(u32::MAX)),
            steps: (!steps.is_empty()).then_some(steps),
            children: (!children.is_empty()).then_some(children),
            payloads: (!payloads.is_empty()).then_some(payloads),
        };
        self.call(|| self.line.api.read_turn(id, &request)).await
    }

    pub(super) async fn outcomes(
        &self,
        _: &Execution,
        remote: &[StepName],
        children: Vec<(StepName, ExecutionId)>,
    ) -> Called<Vec<NamedEnd>> {
        if remote.is_empty() && children.is_empty() {
            return Ok(vec![]);
        }
        let awaited = children.into_iter().map(|(name, execution)| AwaitedExecution { name, execution });
        let answer = self.read(None, remote.to_vec(), awaited.collect(), vec![]).await?;
        answer.outcomes.iter().map(named_end).collect()
    }

    /// Starts them by as many calls as their inputs need.
    pub(super) async fn start_work(&self, _: &Execution, work: ToStart) -> StartedWork {
        let mut all = StartedWork::default();
        for part in parts_of(work) {
            let StartedWork { steps, children, trouble } = self.start_part(part).await;
            all.steps.extend(steps);
            all.children.extend(children);
            if trouble.is_some() {
                return StartedWork { trouble, ..all };
            }
        }
        all
    }

    async fn start_part(&self, work: ToStart) -> StartedWork {
        let trouble = |error| StartedWork { trouble: Some(error), ..StartedWork::default() };
        let request = || -> Called<(ExecutionId, TurnStartRequest)> {
            let (id, lease) = self.turn()?;
            let (steps, children) = (all_stored(&work.steps)?, all_stored(&work.children)?);
            let given = |names: &[StepName]| (!names.is_empty()).then(|| names.to_vec());
            let (again, with_input) = (given(&work.again), given(&work.with_input));
            Ok((id.clone(), TurnStartRequest { lease, steps, again, with_input, children }))
        };
        let (id, request) = match request() {
            Ok(request) => request,
            Err(error) => return trouble(error),
        };
        let TurnStartAnswer { steps, children, incomplete } =
            match self.call(|| self.line.api.start_steps(&id, &request)).await {
                Ok(answer) => answer,
                Err(error) => return trouble(error),
            };
        let each = |started: StartedView| {
            let refused = started.refused.as_ref().map(failure);
            (started.name, refused.map_or(Ok(()), Err))
        };
        StartedWork {
            steps: steps.into_iter().map(each).collect(),
            children: children.into_iter().map(each).collect(),
            trouble: incomplete.map(|problem| of_problem(&problem, &Reject::TurnLost)),
        }
    }

    pub(super) async fn cancel_remote(&self, _: &Execution, names: &[StepName]) -> Called<()> {
        let (id, lease) = self.turn()?;
        let request = TurnCancelRequest { lease, steps: names.to_vec() };
        self.call(|| self.line.api.cancel_steps(id, &request)).await.map(drop)
    }

    pub(super) async fn store_payload(&self, json: Json) -> Called<Payload> {
        if json.len() <= INLINE_BYTES {
            return Ok(Payload::Inline(json));
        }
        tickover_core::limits::check("payload_bytes", json.len(), self.limits().payload_bytes)?;
        let (id, lease) = self.turn()?;
        let request = TurnPayloadRequest { lease, payload: Verbatim(json.clone()) };
        let answer = self.call(|| self.line.api.store_payload(id, &request)).await?;
        let payload: Payload = parsed(&answer.payload)?;
        if let Some(blob) = payload.blob() {
            self.know(blob.id, json);
        }
        Ok(payload)
    }

    pub(super) async fn values_of(&self, execution: &Execution) -> Called<Values> {
        let Some(document) = &execution.values else { return Ok(Values::default()) };
        let values = Values::parse(&self.open(document).await?);
        values.ok_or_else(|| ServiceError::Corrupt { reason: "published values can't be read".to_owned() })
    }

    pub(super) async fn open(&self, payload: &Payload) -> Called<Json> {
        let blob = match payload {
            Payload::Inline(json) => return Ok(json.clone()),
            Payload::Blob(blob) => blob,
        };
        if let Some(json) = self.known(blob.id) {
            return Ok(json);
        }
        self.know_all(self.read(None, vec![], vec![], vec![blob.id.to_string()]).await?.payloads);
        let json = self.known(blob.id);
        json.ok_or_else(|| ServiceError::Corrupt { reason: "a payload is missing".to_owned() })
    }

    pub(super) async fn callback_of_wait(
        &self,
        _: &ExecutionId,
        _: Incarnation,
        event: EventName,
        expires_at: Timestamp,
    ) -> Called<Callback> {
        let (id, lease) = self.turn()?;
        let request = TurnCallbackRequest { lease, event, expires_at: expires_at.into() };
        let made = self.call(|| self.line.api.create_wait_callback(id, &request)).await?;
        Ok(Callback { token: made.token, url: made.url, expires_at: made.expires_at.into() })
    }

    pub(super) async fn send_event(
        &self,
        id: &ExecutionId,
        name: EventName,
        event_id: EventId,
        payload: Json,
        trace: Option<TraceContext>,
    ) -> Called<()> {
        let request = EventRequest {
            payload: Some(Verbatim(payload)),
            event_id: Some(event_id),
            traceparent: trace.map(|trace| trace.traceparent()),
        };
        self.call(|| self.line.api.send_event(id, &name, &request)).await.map(drop)
    }

    pub(super) async fn cancel_execution(&self, id: &ExecutionId) -> Called<()> {
        self.call(|| self.line.api.cancel(id)).await.map(drop)
    }

    pub(super) async fn terminate(&self, id: &ExecutionId) -> Called<()> {
        self.call(|| self.line.api.terminate(id)).await.map(drop)
    }

    pub(super) async fn status_of(&self, id: &ExecutionId) -> Called<Option<ExecutionStatus>> {
        match self.call(|| self.line.api.execution(id, Millis::ZERO)).await {
            Ok(answer) => match answer.execution.status {
                OpenEnum::Known(status) => Ok(Some(status)),
                OpenEnum::Other(word) => Err(ServiceError::Corrupt { reason: format!("a status {word}") }),
            },
            Err(ServiceError::Rejected(Reject::Elsewhere { code: "not_found", .. })) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Parts of what is to be started, none of which has more bytes of inputs than one call may have.
fn parts_of(work: ToStart) -> Vec<ToStart> {
    let ToStart { steps, again, with_input, children } = work;
    let (mut parts, mut left) = (vec![], 0);
    let mut part_for = |parts: &mut Vec<ToStart>, input: Option<&Json>| {
        let bytes = input.map_or(0, Json::len) + UNIT_BYTES;
        if bytes > left {
            parts.push(ToStart::default());
            left = START_BYTES;
        }
        left = left.saturating_sub(bytes);
    };
    for step in steps {
        part_for(&mut parts, step.input.as_ref());
        if let Some(part) = parts.last_mut() {
            let its = |names: &[StepName]| names.contains(&step.name).then(|| step.name.clone());
            part.again.extend(its(&again));
            part.with_input.extend(its(&with_input));
            part.steps.push(step);
        }
    }
    for child in children {
        part_for(&mut parts, child.start.input.as_ref());
        if let Some(part) = parts.last_mut() {
            part.children.push(child);
        }
    }
    parts
}

fn failure(problem: &Problem) -> Failure {
    Failure::new(&*problem.code, problem.detail.as_str())
}
