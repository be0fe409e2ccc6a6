//! Tasks as the rules make them, and the commands that make them.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tickover_core::command::{Context, Isolation};
use tickover_core::decision::Write;
use tickover_core::due::Due;
use tickover_core::duration::Millis;
use tickover_core::id::{
    BlobId, Fingerprint, Incarnation, LeaseId, NameError, Nonce, QueueName, TaskId, TaskKind, WorkerName,
};
use tickover_core::limits::Limits;
use tickover_core::payload::Json;
use tickover_core::queue::QueueView;
use tickover_core::retry::{MaxAttempts, RetryPolicy};
use tickover_core::task::command::{Claim, Command, Complete, Fail, Schedule, Start};
use tickover_core::task::decide;
use tickover_core::task::decision::Decision;
use tickover_core::task::{Failure, Task};
use tickover_core::time::Timestamp;
use tickover_core::timeout::{LifeTimeout, Timeouts};

use tickover_service::ports::{Store, StoreError};

/// The time of all cases: so far ahead that no store deletes by age what a case has just written.
pub(super) const NOW: Timestamp = Timestamp::from_millis(4_000_000_000_250);

/// The only shard of the due index.
pub(super) const SHARD: u16 = 0;

/// A store, and the parts of a service that the cases need.
pub(super) struct World {
    pub(super) store: Arc<dyn Store>,
    limits: Limits,
    serial: AtomicU64,
}

impl World {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        let limits = Limits { due_shards: 1, ..Limits::default() };
        // A nonce is unique, even across tables: `DynamoDB` recognises transactions by it.
        Self { store, limits, serial: AtomicU64::new(rand::random()) }
    }

    fn next(&self) -> u64 {
        self.serial.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn nonce(&self) -> Nonce {
        Nonce::from_bytes(self.next().to_be_bytes())
    }

    /// A request for a task, without further options.
    pub(super) fn request(&self, task: &str) -> Schedule {
        let serial = self.next().to_be_bytes();
        Schedule {
            id: id(task),
            incarnation: Incarnation::from_bytes(serial),
            queue: queue("mail"),
            kind: parsed(TaskKind::parse("send")),
            input: Some(json(r#"{"to":"ä@b","n":1.50}"#)),
            labels: None,
            retry: RetryPolicy::none(),
            flow: tickover_core::flow::Flow::default(),
            timeouts: Timeouts::default(),
            start: Start::After(Millis::ZERO),
            in_line: false,
            fingerprint: Fingerprint::from_bytes([9; 16]),
            key: None,
            parent: None,
            trace: None,
            blob_ids: [self.blob_id(), self.blob_id()],
        }
    }

    pub(super) fn blob_id(&self) -> BlobId {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.next().to_be_bytes());
        BlobId::from_bytes(bytes)
    }

    pub(super) fn claim(&self) -> Command {
        let mut lease = [0; 16];
        lease[..8].copy_from_slice(&self.next().to_be_bytes());
        let worker = Some(parsed(WorkerName::parse("worker-1")));
        let lease = LeaseId::from_bytes(lease);
        Command::Claim(Claim {
            lease,
            worker,
            length: Millis::from_secs(60),
            hint: None,
            isolation: Isolation::Alone,
            inside: false,
            paused: false,
            held: false,
            places: None,
            start: None,
            start_of: None,
        })
    }

    pub(super) fn complete(&self, running: &Task, output: &str) -> Command {
        let blob_id = self.blob_id();
        Command::Complete(Complete { lease: lease(running), output: Some(json(output)), blob_id })
    }

    pub(super) fn fail(&self, running: &Task, retryable: bool) -> Command {
        let error = Failure::new("smtp", "421 try \"again\" later");
        Command::Fail(Fail { lease: lease(running), error, retryable, blob_id: self.blob_id() })
    }

    /// The rules' decision; nothing is written.
    pub(super) fn decide(&self, task: Option<&Task>, command: &Command, now: Timestamp) -> Decision {
        let context = Context { now, nonce: self.nonce(), limits: &self.limits, by: None };
        decide(task, command, &context)
    }

    /// Executes a decision's writes, and returns the stored task.
    pub(super) async fn carry_out(&self, decision: Decision) -> Result<Task, StoreError> {
        for part in &decision.new_items {
            self.store.put_item(part).await?;
        }
        assert!(!decision.writes.is_empty(), "the rules refuse: {:?}", decision.reply());
        self.store.commit(&decision.writes).await?;
        Ok(present(decision.record().cloned()))
    }

    /// Decides on a task and executes the writes.
    pub(super) async fn drive(
        &self,
        task: &Task,
        command: &Command,
        now: Timestamp,
    ) -> Result<Task, StoreError> {
        self.carry_out(self.decide(Some(task), command, now)).await
    }

    /// A task that was scheduled by this request, at [`NOW`].
    pub(super) async fn schedule(&self, request: Schedule) -> Result<Task, StoreError> {
        self.carry_out(self.decide(None, &Command::Schedule(Box::new(request)), NOW)).await
    }

    /// A task that was just scheduled.
    pub(super) async fn scheduled(&self, task: &str) -> Result<Task, StoreError> {
        self.schedule(self.request(task)).await
    }

    /// A task that has just been claimed.
    pub(super) async fn claimed(&self, task: &str) -> Result<Task, StoreError> {
        let pending = self.scheduled(task).await?;
        self.drive(&pending, &self.claim(), NOW).await
    }

    /// A task that was completed at that instant.
    pub(super) async fn completed(&self, task: &str, at: Timestamp) -> Result<Task, StoreError> {
        let running = self.claimed(task).await?;
        self.drive(&running, &self.complete(&running, "null"), at).await
    }

    /// A task that failed for good at that instant.
    pub(super) async fn failed(&self, task: &str, at: Timestamp) -> Result<Task, StoreError> {
        let running = self.claimed(task).await?;
        self.drive(&running, &self.fail(&running, false), at).await
    }

    /// A task that was scheduled and failed for good at that instant.
    pub(super) async fn failed_since(&self, task: &str, at: Timestamp) -> Result<Task, StoreError> {
        let schedule = Command::Schedule(Box::new(self.request(task)));
        let pending = self.carry_out(self.decide(None, &schedule, at)).await?;
        let running = self.drive(&pending, &self.claim(), at).await?;
        self.drive(&running, &self.fail(&running, false), at).await
    }

    /// Changes the due slot, as a tick does.
    pub(super) async fn moved(&self, task: &Task, to: Due) -> Result<Task, StoreError> {
        self.store.commit(&[Write::Rearm { record: task.clone().into(), to }]).await?;
        Ok(Task { due: Some(to), ..task.clone() })
    }

    /// The task as the store has it.
    pub(super) async fn stored(&self, task: &Task) -> Result<Task, StoreError> {
        Ok(present(self.store.task(&task.id).await?))
    }
}

/// The tick's probe of a task, without knowledge of its queue.
pub(super) fn look() -> Command {
    Command::Due(QueueView::default())
}

/// The timeout over all attempts.
pub(super) fn deadline(secs: u64) -> Timeouts {
    let schedule_to_close = Some(LifeTimeout { after: Millis::from_secs(secs), is_error: true });
    Timeouts { schedule_to_close, ..Timeouts::default() }
}

/// Several attempts, a second apart.
pub(super) fn retried(attempts: u32) -> RetryPolicy {
    let max_attempts = NonZeroU32::new(attempts).map_or(MaxAttempts::Skip, MaxAttempts::Limited);
    RetryPolicy { max_attempts, ..RetryPolicy::fixed(0, Millis::from_secs(1)) }
}

pub(super) fn later(secs: u64) -> Timestamp {
    NOW.plus(Millis::from_secs(secs))
}

pub(super) fn id(text: &str) -> TaskId {
    parsed(TaskId::parse(text))
}

pub(super) fn queue(text: &str) -> QueueName {
    parsed(QueueName::parse(text))
}

pub(super) fn json(text: &str) -> Json {
    Json::parse(text).unwrap_or_else(|| panic!("not JSON: {text}"))
}

pub(super) fn parsed<T>(name: Result<T, NameError>) -> T {
    name.unwrap_or_else(|error| panic!("an invalid name: {error}"))
}

/// The due slot of a task that has one.
pub(super) fn place(task: &Task) -> Due {
    present(task.due)
}

fn lease(running: &Task) -> LeaseId {
    present(running.running()).lease
}

/// A value that must be there.
pub(super) fn present<T>(value: Option<T>) -> T {
    value.unwrap_or_else(|| panic!("a value that must be there is missing"))
}

/// The record in a conflict.
pub(super) fn conflicting<T: std::fmt::Debug>(result: Result<T, StoreError>) -> Option<Task> {
    match result {
        Err(StoreError::Conflict { current }) => current.and_then(|current| Task::try_from(current).ok()),
        other => panic!("not a conflict: {other:?}"),
    }
}
