//! A stored record of any kind, and what records of all kinds have in common.

use crate::cron::Cron;
use crate::due::Due;
use crate::execution::{Execution, ExecutionState};
use crate::gate::Gate;
use crate::id::{CronId, ExecutionId, GateId, Incarnation, Nonce, OperationId, QueueName, RecordId, TaskId};
use crate::operation::Operation;
use crate::queue::{KeyRecord, QueueRecord};
use crate::task::Task;
use crate::tick::TickRecord;
use crate::time::Timestamp;

/// A record of one of the kinds that a store keeps.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    Task(Box<Task>),
    Execution(Box<Execution>),
    Cron(Box<Cron>),
    Queue(Box<QueueRecord>),
    Operation(Box<Operation>),
    Gate(Box<Gate>),
    Tick(Box<TickRecord>),
    Key(Box<KeyRecord>),
}

impl Record {
    pub fn id(&self) -> RecordId {
        match self {
            Self::Task(task) => RecordId::Task(task.id.clone()),
            Self::Execution(execution) => RecordId::Execution(execution.id.clone()),
            Self::Cron(cron) => RecordId::Cron(cron.id.clone()),
            Self::Queue(queue) => RecordId::Queue(queue.name.clone()),
            Self::Operation(operation) => RecordId::Operation(operation.id.clone()),
            Self::Gate(gate) => RecordId::Gate(gate.id.clone()),
            Self::Tick(_) => RecordId::Tick,
            Self::Key(key) => RecordId::Key(key.key),
        }
    }

    pub fn head(&self) -> Head {
        match self {
            Self::Task(task) => (&**task).into(),
            Self::Execution(execution) => (&**execution).into(),
            Self::Cron(cron) => (&**cron).into(),
            Self::Queue(queue) => (&**queue).into(),
            Self::Operation(operation) => (&**operation).into(),
            Self::Gate(gate) => (&**gate).into(),
            Self::Tick(tick) => (&**tick).into(),
            Self::Key(key) => (&**key).into(),
        }
    }

    /// Moves it in the due index, for a store that keeps the due slot apart from the record.
    pub fn set_due(&mut self, due: Option<Due>) {
        match self {
            Self::Task(task) => task.due = due,
            Self::Execution(execution) => execution.due = due,
            Self::Cron(cron) => cron.due = due,
            Self::Operation(operation) => operation.due = due,
            Self::Queue(_) | Self::Gate(_) | Self::Tick(_) | Self::Key(_) => {}
        }
    }
}

/// What conditions and indexes ask of a record, whatever its kind. Records that have no such field have its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// `None` for records that are never made anew under the same name.
    pub incarnation: Option<Incarnation>,
    pub version: u64,
    /// The decision that wrote it.
    pub nonce: Nonce,
    pub due: Option<Due>,
    /// How often an execution has been woken.
    pub wakes: u64,
    /// From when on the record counts as deleted.
    pub expires_at: Option<Timestamp>,
}

impl From<&Task> for Head {
    fn from(task: &Task) -> Self {
        let Task { incarnation, version, nonce, due, .. } = *task;
        let expires_at = task.ended().map(|ended| ended.expires_at);
        Self { incarnation: Some(incarnation), version, nonce, due, wakes: 0, expires_at }
    }
}

impl From<&Execution> for Head {
    /// It doesn't expire while its open steps and children are being ended.
    fn from(execution: &Execution) -> Self {
        let Execution { incarnation, version, nonce, due, wakes, .. } = *execution;
        let expires_at = match &execution.state {
            ExecutionState::Ended(ended) => Some(ended.expires_at),
            ExecutionState::Pending(_)
            | ExecutionState::Running(_)
            | ExecutionState::Waiting(_)
            | ExecutionState::Closing(_) => None,
        };
        Self { incarnation: Some(incarnation), version, nonce, due, wakes, expires_at }
    }
}

impl From<&Cron> for Head {
    fn from(cron: &Cron) -> Self {
        let (incarnation, expires_at) = (Some(cron.incarnation), cron.expires_at());
        Self { incarnation, version: 0, nonce: cron.nonce, due: cron.due, wakes: 0, expires_at }
    }
}

impl From<&QueueRecord> for Head {
    fn from(queue: &QueueRecord) -> Self {
        let QueueRecord { version, nonce, .. } = *queue;
        Self { incarnation: None, version, nonce, due: queue.due(), wakes: 0, expires_at: None }
    }
}

impl From<&Operation> for Head {
    fn from(operation: &Operation) -> Self {
        let Operation { version, nonce, due, .. } = *operation;
        Self { incarnation: None, version, nonce, due, wakes: 0, expires_at: operation.expires_at() }
    }
}

impl From<&Gate> for Head {
    fn from(gate: &Gate) -> Self {
        let Gate { version, nonce, .. } = *gate;
        Self { incarnation: None, version, nonce, due: None, wakes: 0, expires_at: gate.expires_at() }
    }
}

impl From<&TickRecord> for Head {
    fn from(tick: &TickRecord) -> Self {
        let TickRecord { version, nonce, .. } = *tick;
        Self { incarnation: None, version, nonce, due: None, wakes: 0, expires_at: None }
    }
}

impl From<&KeyRecord> for Head {
    fn from(key: &KeyRecord) -> Self {
        let expires_at = Some(key.expires_at);
        Self { incarnation: None, version: 0, nonce: key.nonce, due: None, wakes: 0, expires_at }
    }
}

/// A record of one kind as one of any kind, and back, if it is of that kind. The same for its id.
macro_rules! kinds {
    ($($kind:ident: $record:ty $(, $id:ty)?;)*) => {$(
        impl From<$record> for Record {
            fn from(record: $record) -> Self {
                Self::$kind(Box::new(record))
            }
        }

        impl TryFrom<Record> for $record {
            type Error = Record;

            fn try_from(record: Record) -> Result<Self, Record> {
                if let Record::$kind(record) = record { Ok(*record) } else { Err(record) }
            }
        }

        impl<'a> TryFrom<&'a Record> for &'a $record {
            type Error = &'a Record;

            fn try_from(record: &'a Record) -> Result<Self, &'a Record> {
                if let Record::$kind(one) = record { Ok(one) } else { Err(record) }
            }
        }

        $(
            impl From<$id> for RecordId {
                fn from(id: $id) -> Self {
                    Self::$kind(id)
                }
            }

            impl TryFrom<RecordId> for $id {
                type Error = RecordId;

                fn try_from(id: RecordId) -> Result<Self, RecordId> {
                    if let RecordId::$kind(id) = id { Ok(id) } else { Err(id) }
                }
            }
        )?
    )*};
}

kinds! {
    Task: Task, TaskId;
    Execution: Execution, ExecutionId;
    Cron: Cron, CronId;
    Queue: QueueRecord, QueueName;
    Operation: Operation, OperationId;
    Gate: Gate, GateId;
    Tick: TickRecord;
    Key: KeyRecord;
}
