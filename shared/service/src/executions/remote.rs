//! Remote steps: started and cancelled by the turn of their execution.
//!
//! A remote step is a task like any other. Its id follows from the execution, the run and the step's name, so that a
//! second start has no effect.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::stream::{self, StreamExt as _};
use tickover_core::error::Reject;
use tickover_core::execution::{Execution, Parent};
use tickover_core::flow::Paced;
use tickover_core::id::{ExecutionId, Fingerprint, Incarnation, StepName, TaskId};
use tickover_core::kind::Policies;
use tickover_core::limits;
use tickover_core::payload::Json;
use tickover_core::task::Task;
use tickover_core::task::command::{Command, Schedule, Start};
use tickover_core::timeout::{LifeTimeout, Timeouts};

use super::RemoteStep;
use super::start::hash;
use crate::drive::Known;
use crate::error::ServiceError;
use crate::flow::{own_key, recorded};
use crate::service::Service;
use crate::tasks::schedule::is_new;
use crate::telemetry::field;

/// What was done of a request to start remote steps.
#[derive(Debug, Default)]
pub struct Begun {
    /// The steps that exist now.
    pub names: Vec<StepName>,
    /// The steps that can't be started, and why.
    pub refused: Vec<(StepName, Reject)>,
    /// Why the others don't exist yet.
    pub error: Option<ServiceError>,
}

impl Begun {
    /// The steps, if all of them exist.
    pub fn all(self) -> Result<Vec<StepName>, ServiceError> {
        let refused = self.refused.into_iter().next().map(|(_, reject)| reject.into());
        match refused.or(self.error) {
            None => Ok(self.names),
            Some(error) => Err(error),
        }
    }
}

/// How many tasks are written, or results read, at the same time.
pub(super) const AT_ONCE: usize = 64;

/// The id of the task of a remote step in an execution's run.
pub fn remote_id(execution: &Execution, name: &StepName) -> TaskId {
    id_in_run(&execution.id, execution.incarnation, execution.run, name)
}

/// The key of a task's work for calls to other services: its id or, where a rerun repeats the work of an earlier run, the
/// id that the step's task had there. (If the record had no space for the step's name, it is the task's own id.)
pub fn idempotency_key(task: &Task) -> TaskId {
    let repeated = task.parent.as_ref().and_then(|parent| {
        Some(id_in_run(&parent.execution, parent.incarnation, parent.work?, parent.step.as_ref()?))
    });
    repeated.unwrap_or_else(|| task.id.clone())
}

fn id_in_run(execution: &ExecutionId, incarnation: Incarnation, run: u32, name: &StepName) -> TaskId {
    let digest: [u8; 16] = hash(&[
        execution.as_str().as_bytes(),
        incarnation.as_bytes(),
        &run.to_be_bytes(),
        name.as_str().as_bytes(),
    ]);
    #[expect(clippy::expect_used, reason = "base64url's characters are allowed in every id, after a letter")]
    TaskId::parse(format!("s-{}", URL_SAFE_NO_PAD.encode(digest))).expect("base64url is a name")
}

impl Service {
    /// Starts remote steps. Steps that exist already stay as they are. If the start of one is refused or fails, the others
    /// are started.
    pub async fn start_remote(&self, execution: &Execution, steps: Vec<RemoteStep>) -> Begun {
        let own_keys: Vec<_> = execution.gates().iter().map(|gated| gated.key).collect();
        let (mut ready, mut begun) = (Vec::with_capacity(steps.len()), Begun::default());
        // Each is asked once: an answer that doesn't come takes its time, and steps wait behind each other here.
        let mut silent = BTreeSet::new();
        // Those that can't be started, with their slots of a join.
        let mut refused = Vec::new();
        for step in steps {
            if silent.contains(&step.queue) {
                continue;
            }
            let (name, queue, slot) = (step.name.clone(), step.queue.clone(), step.slot);
            match self.completed_step(&own_keys, step).await {
                Ok(step) => ready.push(step),
                Err(ServiceError::Rejected(reject)) => refused.push((name, slot, reject)),
                Err(error) => {
                    begun.error = Some(error);
                    silent.insert(queue);
                }
            }
        }
        let needed: Vec<_> = ready.iter().map(|step| recorded(&step.flow, None).gates).collect();
        let gates = Box::pin(self.read_gates(needed.iter().flatten())).await;
        let now = self.now();
        let in_line: Vec<bool> = needed.iter().map(|needed| gates.lack_place(needed, now)).collect();
        let starts = self.starts_of(execution, &ready, &in_line).await;
        let steps = ready.into_iter().zip(in_line).zip(starts);
        let ended: Vec<_> = stream::iter(steps)
            .map(|((step, in_line), start)| async move {
                let (name, slot) = (step.name.clone(), step.slot);
                (name, slot, self.start_one(execution, step, in_line, start).await)
            })
            .buffered(AT_ONCE)
            .collect()
            .await;
        let mut effects = Vec::new();
        for (name, slot, one) in ended {
            match one {
                Ok(more) => {
                    effects.extend(more);
                    begun.names.push(name);
                }
                Err(ServiceError::Rejected(reject)) => refused.push((name, slot, reject)),
                Err(error) => begun.error = Some(error),
            }
        }
        self.publish(effects).await;
        for (name, slot, reject) in refused {
            // No task of its will mark its slot, and the join of the others would never be full.
            if slot.is_some() {
                let parent = Parent { step: Some(name.clone()), slot, ..Parent::of(execution) };
                if let Err(error) = self.try_to_notify(&parent).await {
                    // It isn't known as refused: the next turn asks for it again.
                    begun.error = Some(error);
                    continue;
                }
            }
            begun.refused.push((name, reject));
        }
        begun
    }

    /// The step with its queue, which exists then, and with the defaults of its kind.
    async fn completed_step(
        &self,
        own_keys: &[Fingerprint],
        step: RemoteStep,
    ) -> Result<RemoteStep, ServiceError> {
        let mut step = step;
        let bytes = step.input.as_ref().map_or(0, Json::len);
        limits::check("input_bytes", bytes, self.limits.payload_bytes)?;
        if step.any_queue
            && let Some(queue) = self.queue_providing(&step.flow.requires).await
        {
            step.queue = queue;
        }
        self.open_queue(&step.queue).await?;
        let own = Policies { retry: step.retry, timeouts: step.timeouts, flow: step.flow };
        let Policies { retry, timeouts, flow } =
            self.with_defaults(&step.queue, &step.kind, own, &step.given).await?;
        if let Some(problem) = own_key(own_keys, &flow) {
            return Err(Reject::field("concurrency", format!("{}: {problem}", step.name)).into());
        }
        let whole = timeouts.schedule_to_close;
        let after = [whole.map(|whole| whole.after), step.at_most].into_iter().flatten().min();
        let is_error = whole.is_none_or(|whole| whole.is_error);
        let schedule_to_close = after.map(|after| LifeTimeout { after, is_error });
        let timeouts = Timeouts { schedule_to_close, ..timeouts };
        Ok(RemoteStep { retry, timeouts, flow, ..step })
    }

    /// The starts of steps with a rate that don't exist yet, and don't begin in a line.
    async fn starts_of(
        &self,
        execution: &Execution,
        steps: &[RemoteStep],
        in_line: &[bool],
    ) -> Vec<Option<Paced>> {
        let paced = steps.iter().filter(|step| step.flow.rate.is_some());
        let ids: Vec<TaskId> = paced.map(|step| remote_id(execution, &step.name)).collect();
        if ids.is_empty() {
            return vec![None; steps.len()];
        }
        // Boxed, because the future of each turn would contain all of this, and few steps have a rate.
        let known = Box::pin(self.known_ids(ids)).await;
        let is_new = |step: &RemoteStep| !known.contains(&remote_id(execution, &step.name));
        let of_step = steps.iter().zip(in_line);
        let rates: Vec<_> = of_step
            .map(|(step, in_line)| step.flow.rate.as_ref().filter(|_| !*in_line && is_new(step)))
            .collect();
        Box::pin(self.reserve_starts(&rates)).await
    }

    async fn start_one(
        &self,
        execution: &Execution,
        step: RemoteStep,
        in_line: bool,
        start: Option<Paced>,
    ) -> Result<Vec<tickover_core::decision::Effect>, ServiceError> {
        let id = remote_id(execution, &step.name);
        let flow = recorded(&step.flow, start.clone()).within(execution.lane, &step.given);
        let work = execution.repeats_as(&step.name);
        let parent = Parent { step: Some(step.name), work, slot: step.slot, ..Parent::of(execution) };
        let command = Command::Schedule(Box::new(Schedule {
            id: id.clone(),
            incarnation: self.new_incarnation(),
            queue: step.queue,
            kind: step.kind,
            input: step.input,
            labels: None,
            retry: step.retry,
            timeouts: step.timeouts,
            flow,
            start: Start::After(tickover_core::duration::Millis::ZERO),
            // Its id identifies the step.
            in_line,
            fingerprint: Fingerprint::from_bytes(hash(&[id.as_str().as_bytes()])),
            key: None,
            parent: Some(parent),
            trace: self.carried(execution.trace),
            blob_ids: [self.new_blob_id(), self.new_blob_id()],
        }));
        let decision = self.drive_unpublished(&id, Known::Absent, &command).await?;
        if !is_new(&decision) {
            Box::pin(self.give_unused_back(start.as_ref())).await;
        }
        decision.outcome?;
        Ok(decision.effects)
    }

    /// Cancels remote steps that the execution doesn't wait for any more; steps that have ended stay as they are.
    pub async fn cancel_remote(&self, execution: &Execution, names: &[StepName]) -> Result<(), ServiceError> {
        let ids: Vec<TaskId> = names.iter().map(|name| remote_id(execution, name)).collect();
        let cancelled: Vec<_> =
            stream::iter(ids).map(|id| self.cancel_task(id)).buffered(AT_ONCE).collect().await;
        cancelled.into_iter().collect()
    }

    pub(super) async fn cancel_task(&self, id: TaskId) -> Result<(), ServiceError> {
        match Box::pin(self.cancel(&id, true)).await {
            // It was never started, or was deleted long ago.
            Ok(_) | Err(ServiceError::Rejected(Reject::NotFound | Reject::AlreadyTerminal { .. })) => Ok(()),
            Err(error) => {
                tracing::debug!({ field::TASK_ID } = %id, %error, "step not cancelled");
                Err(error)
            }
        }
    }
}
