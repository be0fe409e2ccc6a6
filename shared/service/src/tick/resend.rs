//! For a queue that is lost with its process: sends everything again that a durable queue would still have.

use std::sync::PoisonError;

use futures::stream::{self, StreamExt as _};
use tickover_core::decision::Effect;
use tickover_core::due::TIMER_HORIZON;
use tickover_core::execution::due as of_execution;
use tickover_core::execution::message::TurnHint;
use tickover_core::execution::{Execution, ExecutionState};
use tickover_core::id::{ExecutionId, RecordId, TaskId};
use tickover_core::limits::Limits;
use tickover_core::task::due::visible_at;
use tickover_core::task::hint::Hint;
use tickover_core::task::{State, Task};
use tickover_core::time::Timestamp;
use tickover_core::timer::Timer;

use crate::error::ServiceError;
use crate::ports::{DueRange, StoreError};
use crate::service::Service;
use crate::telemetry::field;
use crate::warn_unless_logged;

/// Records read at once: the most that a store reads in one call.
const PAGE: usize = 100;

/// Executions that are read at the same time.
const NOTIFIED_AT_ONCE: usize = 16;

/// How many unreadable records are returned by name; all are in the log.
const UNREADABLE_NAMED_MAX: usize = 100;

impl Service {
    /// Opens every queue that was ever used. A queue whose record can't be read is opened with the first task that
    /// needs it.
    pub async fn open_remembered(&self) -> Result<(), ServiceError> {
        match self.remembered_queues().await {
            Ok(queues) => {
                for queue in queues {
                    self.ports.queue.open(&queue.name).await?;
                }
                Ok(())
            }
            Err(ServiceError::Corrupt { reason }) => {
                self.note_unreadable("a queue's record", &reason);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// The records that this build couldn't read when it started, by kind and id.
    pub fn unreadable(&self) -> Vec<String> {
        self.unreadable.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note_unreadable(&self, record: &str, reason: &str) {
        tracing::error!(record, reason, "record left alone: if another build wrote it, start that one");
        let mut unreadable = self.unreadable.lock().unwrap_or_else(PoisonError::into_inner);
        if unreadable.len() < UNREADABLE_NAMED_MAX {
            unreadable.push(record.to_owned());
        }
    }

    /// The record that was found, or `None` and a log entry if it can't be read.
    fn readable<T>(
        &self,
        record: &str,
        found: Result<Option<T>, StoreError>,
    ) -> Result<Option<T>, ServiceError> {
        match found {
            Err(StoreError::Corrupt { reason }) => {
                self.note_unreadable(record, &reason);
                Ok(None)
            }
            found => Ok(found?),
        }
    }

    /// The tasks among these that can be read.
    async fn readable_tasks(&self, ids: &[TaskId]) -> Result<Vec<Task>, ServiceError> {
        match self.with_retries(|| self.ports.store.tasks(ids)).await {
            Err(StoreError::Corrupt { .. }) => {}
            found => return Ok(found?),
        }
        let mut tasks = Vec::new();
        for id in ids {
            let found = self.with_retries(|| self.ports.store.task(id)).await;
            tasks.extend(self.readable(&format!("task {id}"), found)?);
        }
        Ok(tasks)
    }

    /// The executions among these that can be read.
    async fn readable_executions(&self, ids: &[ExecutionId]) -> Result<Vec<Execution>, ServiceError> {
        match self.with_retries(|| self.ports.store.executions(ids)).await {
            Err(StoreError::Corrupt { .. }) => {}
            found => return Ok(found?),
        }
        let mut executions = Vec::new();
        for id in ids {
            let found = self.with_retries(|| self.ports.store.execution(id)).await;
            executions.extend(self.readable(&format!("execution {id}"), found)?);
        }
        Ok(executions)
    }

    /// Sends the hint of every live task and execution again, and the timers of instants that no tick will hand over.
    /// Returns the number of messages. A record that can't be read is logged and left alone.
    pub async fn hint_all(&self) -> Result<u64, ServiceError> {
        let service = self.with_short_timeouts();
        let sent = service.hint_all_of_the_index().await?;
        // The clock may have been set back since the last process planned them.
        Box::pin(service.plan_crons_anew()).await?;
        // Places whose work has ended may have been left behind.
        Box::pin(service.patrol_lines(Timestamp::from_millis(i64::MAX))).await?;
        Ok(sent)
    }

    async fn hint_all_of_the_index(&self) -> Result<u64, ServiceError> {
        let mut sent = 0;
        for shard in 0..self.limits.due_shards {
            let mut cursor: Option<String> = None;
            loop {
                let everything = DueRange::until(shard, Timestamp::from_millis(i64::MAX));
                let page =
                    self.with_retries(|| self.ports.store.due(everything, PAGE, cursor.as_deref())).await?;
                let (mut ids, mut executions, mut others) = (Vec::new(), Vec::new(), Vec::new());
                for entry in page.items {
                    match entry.record {
                        RecordId::Task(id) => ids.push(id),
                        RecordId::Execution(id) => executions.push(id),
                        // The walks of a queue soon count as lost, and the tick sends their messages.
                        RecordId::Queue(_) | RecordId::Gate(_) | RecordId::Tick | RecordId::Key(_) => {}
                        // Its process is gone with all others. The message continues it now.
                        RecordId::Operation(id) => {
                            let (record, at) = (RecordId::Operation(id), self.now());
                            others.push(Timer { record, at, due_at: entry.due_at });
                        }
                        // The only message of a cron is the timer of its next occurrence.
                        RecordId::Cron(id) => {
                            let found = self.with_retries(|| self.ports.store.cron(&id)).await;
                            if self.readable(&format!("cron {id}"), found)?.is_some() {
                                let (record, at) = (RecordId::Cron(id), entry.due_at);
                                others.push(Timer { record, at, due_at: at });
                            }
                        }
                    }
                }
                let tasks = self.readable_tasks(&ids).await?;
                let executions = self.readable_executions(&executions).await?;
                // The table may have a task whose queue's own record was never written.
                let queues = tasks.iter().map(|task| &task.queue);
                for queue in queues.chain(executions.iter().map(|execution| &execution.queue)) {
                    if let Err(error) = self.ports.queue.open(queue).await {
                        // The work of the other queues continues; a tick finds the work of this one.
                        tracing::warn!({ field::QUEUE_NAME } = %queue, %error, "queue not opened");
                    }
                }
                let now = self.now();
                // The queue goes by the instants: it doesn't find what is ready all the same.
                let is_found = |task: &Task| match &task.state {
                    State::Pending(pending) if pending.available_at > now && task.is_ready(pending, now) => {
                        false
                    }
                    State::Pending(_) => self.ports.queue.traits().finds_pending,
                    State::Running(_) | State::Ended(_) => false,
                };
                let hint = |task: &Task| if is_found(task) { None } else { hint(task, now, &self.limits) };
                let of_tasks = tasks.iter().flat_map(|task| [hint(task), timer(task, now)]);
                let of_executions = executions.iter().flat_map(|execution| {
                    [
                        turn(execution, now, &self.limits),
                        turn_timer(execution, now),
                        self.continuation(execution),
                    ]
                });
                let is_soon = |timer: &Timer| timer.at <= now.plus(TIMER_HORIZON);
                let others = others.into_iter().filter(is_soon).map(Effect::Timer);
                let effects: Vec<_> = of_tasks.chain(of_executions).flatten().chain(others).collect();
                sent += u64::try_from(effects.len()).unwrap_or(u64::MAX);
                self.publish(effects).await;
                let missed = stream::iter(executions).map(|execution| self.notify_if_missed(execution));
                for notified in missed.buffer_unordered(NOTIFIED_AT_ONCE).collect::<Vec<_>>().await {
                    if let Err(error) = notified {
                        warn_unless_logged!(error; %error, "not notified; a probe will find it");
                    }
                }
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
        }
        Ok(sent)
    }
}

/// The hint that a live task would have in a durable queue.
fn hint(task: &Task, now: Timestamp, limits: &Limits) -> Option<Effect> {
    let at = match &task.state {
        // Whoever looks at the line calls it.
        State::Pending(pending) if pending.hint_later || task.parked.in_line().is_some() => return None,
        State::Pending(pending) if task.is_ready(pending, now) => now,
        State::Pending(pending) => pending.available_at,
        State::Running(running) if running.is_lost(now, limits) => now,
        State::Running(running) => running.lease_expires_at,
        State::Ended(_) => return None,
    };
    Some(Effect::Dispatch { hint: Box::new(Hint::of(task)), at })
}

/// The hint that an open execution would have in a durable queue. An execution that waits for others has none there,
/// but the hint of their end may have been lost.
fn turn(execution: &Execution, now: Timestamp, limits: &Limits) -> Option<Effect> {
    let at = match &execution.state {
        ExecutionState::Pending(ready) if ready.hint_later || execution.parked.in_line().is_some() => {
            return None;
        }
        ExecutionState::Pending(ready) if execution.is_ready(ready, now) => now,
        ExecutionState::Pending(ready) => ready.available_at,
        ExecutionState::Running(turn) if turn.is_lost(now, limits) => now,
        ExecutionState::Running(turn) => turn.lease_expires_at,
        ExecutionState::Waiting(waiting)
            if execution.wakes > waiting.seen_wakes || waiting.wake_requested =>
        {
            now
        }
        ExecutionState::Waiting(waiting) if waiting.hint_later => {
            of_execution::handed_over_at(execution).filter(|at| *at <= now.plus(TIMER_HORIZON))?
        }
        ExecutionState::Waiting(waiting) => waiting.until?,
        // It has a message of its own.
        ExecutionState::Closing(_) | ExecutionState::Ended(_) => return None,
    };
    Some(Effect::Turn { queue: execution.queue.clone(), hint: TurnHint::of(execution), at })
}

/// The timer of an execution's deadline, if it comes before the next tick surely hands it over.
fn turn_timer(execution: &Execution, now: Timestamp) -> Option<Effect> {
    let at = of_execution::visible_at(execution).filter(|at| *at <= now.plus(TIMER_HORIZON))?;
    let due_at = execution.due?.at;
    Some(Effect::Timer(Timer { record: execution.id.clone().into(), at, due_at }))
}

/// The timer of a task's instant, if it comes before the next tick surely hands it over.
fn timer(task: &Task, now: Timestamp) -> Option<Effect> {
    let at = visible_at(task).filter(|at| *at <= now.plus(TIMER_HORIZON))?;
    let due_at = task.due?.at;
    Some(Effect::Timer(Timer { record: task.id.clone().into(), at, due_at }))
}
