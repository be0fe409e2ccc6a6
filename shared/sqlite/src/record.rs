//! Records as rows, and back.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension as _, Row};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tickover_core::cron::{self, Cron};
use tickover_core::due::{Due, DueKind};
use tickover_core::execution::{self, Execution};
use tickover_core::gate::{self, Gate, Waiter};
use tickover_core::id::{
    BlobId, CronId, ExecutionId, GateId, Incarnation, Nonce, OperationId, QueueName, RecordId, TaskId,
    WorkflowName,
};
use tickover_core::operation::{self, Operation};
use tickover_core::payload::Payload;
use tickover_core::queue::{KeyRecord, QueueRecord};
use tickover_core::record::{Head, Record};
use tickover_core::task::{self, State, Task};
use tickover_core::tick::TickRecord;
use tickover_core::time::Timestamp;
use tickover_service::ports::{Failed, StoreError};

use crate::backlog::stored_lane;

/// The list of crons that aren't deleted.
pub(crate) const CRONS: &str = "crons";

/// The list of operations.
pub(crate) const OPERATIONS: &str = "operations";

/// What the names of the lists of workflows' executions begin with.
const WORKFLOW: &str = "workflow ";

/// The list of a workflow's executions.
pub(crate) fn list_of(workflow: &WorkflowName) -> String {
    format!("{WORKFLOW}{workflow}")
}

/// The workflow of a list of executions.
pub(crate) fn workflow_of(list: &str) -> Result<WorkflowName, StoreError> {
    let name = list.strip_prefix(WORKFLOW).and_then(|name| WorkflowName::parse(name).ok());
    name.ok_or_else(|| corrupt("the list of an execution isn't one".to_owned()))
}

/// Which table of its own a record would have. The numbers are stored, and order listings as [`RecordId`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Task = 0,
    Execution = 1,
    Cron = 2,
    Queue = 3,
    Key = 4,
    Tick = 5,
    Operation = 6,
    Gate = 7,
    /// A task that waits at a key. Its id is the key's, and a sort key in the order in which they get places.
    Waiter = 8,
}

impl Kind {
    pub(crate) const ALL: [Self; 9] = [
        Self::Task,
        Self::Execution,
        Self::Cron,
        Self::Queue,
        Self::Key,
        Self::Tick,
        Self::Operation,
        Self::Gate,
        Self::Waiter,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Execution => "execution",
            Self::Cron => "cron",
            Self::Queue => "queue",
            Self::Key => "idempotency key",
            Self::Tick => "record of the ticks",
            Self::Operation => "operation",
            Self::Gate => "key with a limit",
            Self::Waiter => "item of a line",
        }
    }

    pub(crate) const fn plural(self) -> &'static str {
        match self {
            Self::Task => "tasks",
            Self::Execution => "executions",
            Self::Cron => "crons",
            Self::Queue => "queues with a record",
            Self::Key => "idempotency keys",
            Self::Tick => "records of the ticks",
            Self::Operation => "operations",
            Self::Gate => "keys with a limit",
            Self::Waiter => "tasks and executions that wait for a place",
        }
    }

    /// The record of this stored kind and id; `None` for what lies in no listing.
    pub(crate) fn record(kind: i64, id: String) -> Result<Option<RecordId>, StoreError> {
        let wrong = |what: &str| corrupt(format!("the id of a {what} isn't one"));
        Ok(Some(match kind {
            0 => RecordId::Task(TaskId::parse(id).map_err(|_| wrong("task"))?),
            1 => RecordId::Execution(ExecutionId::parse(id).map_err(|_| wrong("execution"))?),
            2 => RecordId::Cron(CronId::parse(id).map_err(|_| wrong("cron"))?),
            3 => RecordId::Queue(QueueName::parse(id).map_err(|_| wrong("queue"))?),
            6 => RecordId::Operation(OperationId::parse(id).map_err(|_| wrong("operation"))?),
            _ => return Ok(None),
        }))
    }

    pub(crate) const fn of(record: &RecordId) -> Self {
        match record {
            RecordId::Task(_) => Self::Task,
            RecordId::Execution(_) => Self::Execution,
            RecordId::Cron(_) => Self::Cron,
            RecordId::Queue(_) => Self::Queue,
            RecordId::Operation(_) => Self::Operation,
            RecordId::Gate(_) => Self::Gate,
            RecordId::Tick => Self::Tick,
            RecordId::Key(_) => Self::Key,
        }
    }
}

/// The labels of a task, or of an execution, which never change.
#[derive(Debug)]
pub(crate) enum Labels {
    Inline(BTreeMap<String, String>),
    /// They are in this item, because it is too large for the record. And what reads them from its text.
    Blob(BlobId, fn(&str) -> BTreeMap<String, String>),
}

impl Labels {
    fn of(payload: Option<&Payload>, within: fn(&str) -> BTreeMap<String, String>) -> Self {
        match payload {
            Some(Payload::Inline(json)) => Self::Inline(within(json.as_str())),
            Some(Payload::Blob(at)) => Self::Blob(at.id, within),
            None => Self::Inline(BTreeMap::new()),
        }
    }

    /// The labels; `None` if the item that has them isn't there.
    pub(crate) fn read(
        &self,
        connection: &Connection,
    ) -> Result<Option<Cow<'_, BTreeMap<String, String>>>, rusqlite::Error> {
        let (blob, within) = match self {
            Self::Inline(labels) => return Ok(Some(Cow::Borrowed(labels))),
            Self::Blob(blob, within) => (blob, within),
        };
        let mut statement = connection.prepare_cached("SELECT body FROM blob WHERE id = ?1")?;
        let body: Option<String> = statement.query_row([blob.as_bytes()], |row| row.get(0)).optional()?;
        Ok(body.map(|body| Cow::Owned(within(&body))))
    }

    /// Those of a task, whose payload they are. The service has checked them.
    fn of_task(labels: &str) -> BTreeMap<String, String> {
        serde_json::from_str(labels).unwrap_or_default()
    }

    /// Those in an execution's details.
    fn in_details(details: &str) -> BTreeMap<String, String> {
        #[derive(Default, Deserialize)]
        struct Details {
            #[serde(default)]
            labels: BTreeMap<String, String>,
        }

        serde_json::from_str::<Details>(details).unwrap_or_default().labels
    }
}

/// The id of a task that waits at a key, among all that wait: in their order.
pub(crate) fn waiter_id(gate: &GateId, waiter: &Waiter) -> String {
    format!("{gate}#{}", waiter.sort_key())
}

/// A record that is to be written.
#[derive(Debug)]
pub(crate) struct NewRecord {
    pub(crate) stored: Head,
    pub(crate) list: Option<(String, Timestamp)>,
    pub(crate) queue: Option<String>,
    pub(crate) status: Option<&'static str>,
    /// From when on workers may have it, if it is a task that is pending.
    pub(crate) ready_at: Option<Timestamp>,
    /// Whether a hint of it should be in its queue.
    pub(crate) has_hint: bool,
    /// Where its hints stand among those of its queue, if it is a task and they have a place of their own.
    pub(crate) lane: Option<String>,
    /// Whether it is an execution that has no outcome yet.
    pub(crate) is_open: bool,
    /// The code of the error with which it has failed, if it is a task or an execution.
    pub(crate) error: Option<String>,
    /// When it has failed, the kind of task or the workflow, and the step because of which an execution has failed.
    pub(crate) failed_at: Option<Timestamp>,
    pub(crate) failed_of: Option<String>,
    pub(crate) failed_step: Option<String>,
    pub(crate) labels: Labels,
    pub(crate) body: String,
}

impl NewRecord {
    pub(crate) fn of(record: &Record) -> Result<Self, StoreError> {
        match record {
            Record::Task(task) => Self::task(task),
            Record::Execution(execution) => Self::execution(execution),
            Record::Cron(cron) => Self::cron(cron),
            Record::Operation(operation) => Self::operation(operation),
            Record::Queue(queue) => Ok(Self::plain(record.head(), body(queue)?)),
            Record::Gate(gate) => Ok(Self::plain(record.head(), body(gate)?)),
            Record::Tick(tick) => Ok(Self::plain(record.head(), body(tick)?)),
            Record::Key(key) => Ok(Self::plain(record.head(), body(key)?)),
        }
    }

    fn task(task: &Task) -> Result<Self, StoreError> {
        // In the list of its status, at a place that never changes.
        let status = task.status().as_str();
        let list = Some((status.to_owned(), task.created_at));
        let ready_at = match &task.state {
            State::Pending(pending) => Some(pending.available_at),
            State::Running(_) | State::Ended(_) => None,
        };
        let (queue, status) = (Some(task.queue.to_string()), Some(status));
        let has_hint = task.hint_at().is_some();
        let lane = stored_lane(task.lane());
        let labels = Labels::of(task.labels.as_ref(), Labels::of_task);
        let plain = Self { labels, ..Self::plain(task.into(), body(task)?) }.failed(Failed::of_task(task));
        Ok(Self { list, queue, status, ready_at, has_hint, lane, ..plain })
    }

    fn execution(execution: &Execution) -> Result<Self, StoreError> {
        let list = Some((list_of(&execution.workflow), execution.created_at));
        let (queue, status) = (Some(execution.queue.to_string()), Some(execution.status().as_str()));
        let is_open = execution.closed().is_none();
        let labels = Labels::of(execution.details.as_ref(), Labels::in_details);
        let plain = Self { labels, ..Self::plain(execution.into(), body(execution)?) }
            .failed(Failed::of_execution(execution));
        Ok(Self { list, queue, status, is_open, ..plain })
    }

    fn failed(self, failed: Option<Failed<'_>>) -> Self {
        let Some(Failed { at, of, code, step, .. }) = failed else { return self };
        Self {
            error: code.map(str::to_owned),
            failed_at: Some(at),
            failed_of: Some(of.to_owned()),
            failed_step: step.map(Cow::into_owned),
            ..self
        }
    }

    fn cron(cron: &Cron) -> Result<Self, StoreError> {
        let list = (!cron.is_deleted()).then(|| (CRONS.to_owned(), cron.created_at));
        Ok(Self { list, ..Self::plain(cron.into(), body(cron)?) })
    }

    fn operation(operation: &Operation) -> Result<Self, StoreError> {
        let list = Some((OPERATIONS.to_owned(), operation.created_at));
        Ok(Self { list, ..Self::plain(operation.into(), body(operation)?) })
    }

    /// What waits has no version of its own: nothing is conditional on it.
    pub(crate) fn waiter(waiter: &Waiter, expires_at: Timestamp) -> Result<Self, StoreError> {
        let stored = Head {
            incarnation: Some(waiter.incarnation),
            version: 0,
            nonce: Nonce::from_bytes([0; 8]),
            due: None,
            wakes: 0,
            expires_at: Some(expires_at),
        };
        Ok(Self::plain(stored, body(waiter)?))
    }

    fn plain(stored: Head, body: String) -> Self {
        Self {
            stored,
            list: None,
            queue: None,
            status: None,
            ready_at: None,
            has_hint: false,
            lane: None,
            is_open: false,
            error: None,
            failed_at: None,
            failed_of: None,
            failed_step: None,
            labels: Labels::Inline(BTreeMap::new()),
            body,
        }
    }
}

/// Reads what conditions ask for, from these columns: incarnation, version, nonce, the three of the due slot, wakes and
/// expiry. The first of them is at `first`.
pub(crate) fn stored(row: &Row<'_>, first: usize) -> Result<Head, rusqlite::Error> {
    Ok(Head {
        incarnation: row
            .get::<_, Option<i64>>(first)?
            .map(|bits| Incarnation::from_bytes(bits.to_be_bytes())),
        version: row.get::<_, i64>(first + 1)?.cast_unsigned(),
        nonce: Nonce::from_bytes(row.get::<_, i64>(first + 2)?.to_be_bytes()),
        due: due(row, first + 3)?,
        wakes: row.get::<_, i64>(first + 6)?.cast_unsigned(),
        expires_at: row.get::<_, Option<i64>>(first + 7)?.map(Timestamp::from_millis),
    })
}

/// Reads the three columns of a due slot.
pub(crate) fn due(row: &Row<'_>, first: usize) -> Result<Option<Due>, rusqlite::Error> {
    let Some(shard) = row.get::<_, Option<u16>>(first)? else { return Ok(None) };
    let at = Timestamp::from_millis(row.get(first + 1)?);
    let letter = row.get_ref(first + 2)?.as_str()?;
    let kind = DueKind::of_letter(letter).ok_or_else(|| {
        rusqlite::Error::InvalidColumnType(first + 2, "due_kind".to_owned(), rusqlite::types::Type::Text)
    })?;
    Ok(Some(Due { at, kind, shard }))
}

/// Eight random bytes as their column has them.
pub(crate) const fn bits(bytes: [u8; 8]) -> i64 {
    i64::from_be_bytes(bytes)
}

/// A record as it is stored: its body, and the columns that may have changed without it.
pub(crate) struct Read<'a> {
    pub(crate) id: &'a str,
    pub(crate) body: &'a str,
    pub(crate) stored: Head,
}

impl Read<'_> {
    /// The record of this kind; `None` for what waits at a key, which is no record.
    pub(crate) fn record(&self, kind: Kind) -> Result<Option<Record>, StoreError> {
        let Head { due, wakes, expires_at, .. } = self.stored;
        let name = kind.name();
        Ok(Some(match kind {
            Kind::Task => Task { due, ..self.parse(name, |task: &Task| task.format == task::FORMAT)? }.into(),
            Kind::Execution => {
                let execution = self.parse(name, |one: &Execution| one.format == execution::FORMAT)?;
                Execution { due, wakes, ..execution }.into()
            }
            Kind::Cron => Cron { due, ..self.parse(name, |cron: &Cron| cron.format == cron::FORMAT)? }.into(),
            Kind::Operation => {
                let operation = self.parse(name, |one: &Operation| one.format == operation::FORMAT)?;
                Operation { due, ..operation }.into()
            }
            Kind::Gate => self.parse(name, |gate: &Gate| gate.format == gate::FORMAT)?.into(),
            Kind::Queue => self.parse(name, |_: &QueueRecord| true)?.into(),
            Kind::Key => {
                let key: KeyRecord = self.parse(name, |_| true)?;
                KeyRecord { expires_at: expires_at.unwrap_or(key.expires_at), ..key }.into()
            }
            Kind::Tick => self.parse(name, |_: &TickRecord| true)?.into(),
            Kind::Waiter => return Ok(None),
        }))
    }

    pub(crate) fn waiter(&self) -> Result<Waiter, StoreError> {
        self.parse(Kind::Waiter.name(), |_| true)
    }

    /// What serde has to say of a body it can't read would quote it, and that may be a payload.
    fn parse<T: DeserializeOwned>(&self, what: &str, is_known: impl Fn(&T) -> bool) -> Result<T, StoreError> {
        let parsed: Option<T> = serde_json::from_str(self.body).ok();
        parsed.filter(is_known).ok_or_else(|| {
            corrupt(format!("the record of {what} {:?} isn't of a format that this build reads", self.id))
        })
    }
}

/// A record or part as JSON.
pub(crate) fn body<T: Serialize>(record: &T) -> Result<String, StoreError> {
    serde_json::to_string(record).map_err(|_| corrupt("a record can't be serialised".to_owned()))
}

pub(crate) fn corrupt(reason: String) -> StoreError {
    StoreError::Corrupt { reason }
}
