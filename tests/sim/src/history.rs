//! Everything that happened in a run, in order: calls, decisions, writes, messages, answers and faults. The checks use
//! nothing else.

pub mod act;
pub mod execution;

use std::sync::{Mutex, PoisonError};

use tickover_core::decision::Effect;
use tickover_core::duration::Millis;
use tickover_core::error::Reject;
use tickover_core::execution::journal::SegmentKey;
use tickover_core::execution::message::TurnHint;
use tickover_core::id::{BlobId, ExecutionId, Incarnation, LeaseId, Nonce, QueueName, TaskId};
use tickover_core::payload::Json;
use tickover_core::task::command::{Command, SignOfLife};
use tickover_core::task::decision::Reply;
use tickover_core::task::hint::Hint;
use tickover_core::task::{Failure, Task};
use tickover_core::time::Timestamp;
use tickover_core::timer::{Timer, Wake};
use tickover_service::ServiceError;
use tickover_service::tick::TickReport;
use tickover_service::timers::Fired;

use execution::{Asked, Change, ExecutionCallAnswer, Happening, HeldTurn};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Actor {
    /// The world itself, no process.
    World,
    /// A caller that schedules tasks.
    Client(u8),
    /// A process that works on tasks.
    Worker(u8),
    /// A function that is invoked once a minute.
    Ticker(u8),
    /// A function that reads the queue of timers.
    Timers(u8),
    /// An operator, who cancels, retries, pauses and resumes.
    Operator,
    /// Somebody without credentials, who has tokens.
    Outsider,
    /// An actor that keeps queues busy.
    Filler,
    /// A function that is invoked with batches of a work queue's messages.
    Batch(u8),
}

#[derive(Clone, Debug)]
pub struct Event {
    /// When, by the world's clock.
    pub at: Timestamp,
    pub actor: Actor,
    pub what: What,
}

#[derive(Clone, Debug)]
pub enum What {
    /// A call began.
    Called {
        call: u64,
        request: Request,
    },
    /// A call ended. If its process died, it never does.
    Answered {
        call: u64,
        answer: Answer,
    },
    /// The rules made a decision.
    Decided(Box<Decided>),
    /// A record changed. This is the truth, whatever an answer said.
    Stored(Box<Stored>),
    /// An event about an execution.
    OfExecution(Box<Happening>),
    /// An event about a message.
    Message {
        queue: QueueName,
        /// What happened to it.
        fate: Fate,
        note: Note,
    },
    Fault(Fault),
}

impl What {
    /// The change of a task's record, if it is one.
    pub fn task_change(&self) -> Option<&Stored> {
        if let Self::Stored(stored) = self { Some(stored) } else { None }
    }

    /// The change of an execution's record, if it is one.
    pub fn execution_change(&self) -> Option<&Change> {
        let Self::OfExecution(happening) = self else { return None };
        if let Happening::Stored(change) = &**happening { Some(change) } else { None }
    }

    /// The call of a decision, and its time by the clock of the process.
    pub fn decision(&self) -> Option<(u64, Timestamp)> {
        if let Self::Decided(decided) = self {
            return Some((decided.call, decided.now));
        }
        let Self::OfExecution(happening) = self else { return None };
        if let Happening::Decided(ruling) = &**happening { Some((ruling.call, ruling.now)) } else { None }
    }
}

/// A call to the service.
#[derive(Clone, Debug)]
pub enum Request {
    /// Schedule these tasks; an id is absent where the caller gave none.
    Schedule(Vec<Option<TaskId>>),
    /// Claim tasks from a queue.
    Claim(QueueName),
    /// Claim tasks of one kind and tenant from a queue, after a wait of this length for more of them.
    ClaimTogether(QueueName, Millis),
    /// Receive tasks and turns from a queue.
    Work(QueueName),
    OfExecution(Asked),
    /// Claim this task.
    ClaimById(TaskId),
    /// A worker's report with a lease.
    Report(Held, Report),
    Cancel(TaskId),
    Retry(TaskId),
    /// Pause or resume a queue.
    Pause(QueueName, bool),
    /// The tick of this minute.
    Tick(Timestamp),
    /// Process a message of the queue of timers.
    Fire(Note),
}

/// A task that a worker has claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub task: TaskId,
    /// Its incarnation among the tasks that had this id.
    pub incarnation: Incarnation,
    /// The fence of the attempt.
    pub lease: LeaseId,
    /// The token that reports carry.
    pub token: String,
}

#[derive(Clone, Debug)]
pub enum Report {
    Heartbeat(SignOfLife),
    /// Completed, with this result.
    Complete(Json),
    /// Failed.
    Fail {
        error: Failure,
        /// Whether a retry can help.
        retryable: bool,
    },
    Release,
}

/// An answer of the service.
#[derive(Clone, Debug)]
pub enum Answer {
    /// These tasks exist.
    Scheduled(Vec<Result<Made, ServiceError>>),
    /// The caller has claimed these.
    Claimed(Vec<Held>),
    /// The caller has claimed these tasks and these turns.
    Taken(Vec<Held>, Vec<HeldTurn>),
    OfExecution(ExecutionCallAnswer),
    /// The lease is valid until then.
    Renewed {
        /// See [`tickover_service::tasks::work::Renewed`].
        lease_expires_at: Timestamp,
    },
    /// The attempt is over.
    Closed {
        /// Whether it had been over before.
        duplicate: bool,
    },
    /// An operator's request is done.
    Done,
    /// The report of a tick.
    Ticked(TickReport),
    /// The result for a message of the queue of timers.
    Fired(Fired),
    /// The message should be received again.
    NotFired(String),
    /// An error: of the service, or a refusal with a reason.
    Failed(ServiceError),
}

/// A task in an answer to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    pub task: TaskId,
    /// Its incarnation among the tasks that had this id.
    pub incarnation: Incarnation,
    /// Whether it had existed before.
    pub existed: bool,
}

/// A decision, whether or not it was written.
#[derive(Clone, Debug)]
pub struct Decided {
    /// The call in which it was made.
    pub call: u64,
    /// The time of the decision, by the clock of the process.
    pub now: Timestamp,
    /// Marks its writes.
    pub nonce: Nonce,
    /// The record that it was made on.
    pub seen: Option<Box<Task>>,
    pub command: Command,
    pub outcome: Result<Reply, Reject>,
    /// The messages and notifications that follow.
    pub effects: Vec<Effect>,
}

/// A change of one record.
#[derive(Clone, Debug)]
pub struct Stored {
    pub before: Option<Task>,
    pub after: Task,
}

/// What happened to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is in the queue, visible after this delay.
    Sent(Millis),
    /// The sender believes that it is in the queue, but it was lost.
    Dropped,
    /// The sender knows that it isn't in the queue.
    Refused,
    /// There is a second copy of it, visible after this delay.
    Duplicated(Millis),
    /// An actor received it.
    Received,
    /// It was delivered, but the actor never got it.
    NeverReceived,
    /// It is visible to others although an actor has it.
    Shown,
    /// It isn't in the queue any more.
    Deleted,
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A task is ready.
    Hint {
        task: TaskId,
        /// Its incarnation among the tasks that had this id.
        incarnation: Incarnation,
        /// The record's version.
        version: u64,
    },
    /// An execution's turn may start.
    Turn {
        execution: ExecutionId,
        /// Its incarnation among the executions that had this id.
        incarnation: Incarnation,
        /// When it was to arrive.
        at: Option<Timestamp>,
    },
    /// Instants of these records have come.
    Timers(Vec<Timer>),
    /// Any other message, as it is.
    Other(String),
}

impl Note {
    /// Whether it carries the rest of a slot for which timers are to be sent.
    pub fn is_handover(&self) -> bool {
        match self {
            Self::Other(body) => matches!(Wake::parse(body), Ok(Wake::Handover(_))),
            Self::Hint { .. } | Self::Turn { .. } | Self::Timers(_) => false,
        }
    }

    pub fn of(body: &str) -> Self {
        if let Ok(Hint { task, .. }) = Hint::parse(body) {
            return Self::Hint { task: task.id, incarnation: task.incarnation, version: task.version };
        }
        if let Ok(TurnHint { turn, .. }) = TurnHint::parse(body) {
            return Self::Turn { execution: turn.id, incarnation: turn.inc, at: turn.at };
        }
        match Wake::parse(body) {
            Ok(Wake::Timer(timer)) => Self::Timers(vec![timer]),
            Ok(Wake::Timers(timers)) => Self::Timers(timers),
            Ok(Wake::Sweep(_) | Wake::Handover(_) | Wake::Resume(_)) | Err(_) => Self::Other(body.to_owned()),
        }
    }
}

/// An item that the table has deleted after its expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// A task's, an execution's or a schedule's record.
    Record,
    Segment(SegmentKey),
    Join,
    Blob(BlobId),
    Key,
}

/// Operations of several writes that others can continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MultiWrite {
    /// An execution is closing, and the steps and children that it left open aren't ended yet.
    Closing,
    /// Timers are sent or a shard is passed on, and the other half of that is to come.
    HandingOver,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The process died; it restarts after this span.
    Crashed(Millis),
    /// A caller left before it had an answer. What it called goes on.
    CallerLeft,
    /// The process is frozen for this span.
    Frozen(Millis),
    /// The process's clock is ahead by so many milliseconds from now on.
    ClockJumped(i64),
    /// A write was applied, and its answer didn't arrive.
    LostAnswer,
    /// A write's answer didn't arrive, and the write will be applied after this span.
    LateWrite(Millis),
    /// A call wasn't answered, and had no effect.
    Unavailable,
    /// A call was throttled.
    Throttled,
    /// A write was refused because of another one.
    Conflicted,
    /// A queue with messages reported that it is empty.
    WrongDepth,
    /// Minutes pass without a tick.
    MissedTicks(u64),
    /// A call waited in vain for a service that is unreachable.
    Away,
    /// The table has deleted an expired item.
    Deleted(Deleted),
    /// So many dead letters were redriven.
    Redriven(usize),
    /// A key of the table or of an index had had all the writes that it accepts in a second.
    KeyThrottled,
    /// A function wasn't invoked with a message of a chain that had reached this many hops.
    LoopStopped(u32),
    /// An older build read a record in a newer format.
    TooNew,
    /// A process died between writes that belong together.
    DiedMidway(MultiWrite),
    /// A function wasn't invoked, because the limit of concurrent invocations was reached.
    NotInvoked,
    /// From now on, everything works.
    FaultPhaseOver,
}

#[derive(Debug, Default)]
pub struct History(Mutex<Vec<Event>>);

impl History {
    /// Adds an event.
    pub fn note(&self, at: Timestamp, actor: Actor, what: What) {
        self.events().push(Event { at, actor, what });
    }

    /// The number of events.
    pub fn len(&self) -> usize {
        self.events().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All events until now. The history is empty then.
    pub fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.events())
    }

    fn events(&self) -> std::sync::MutexGuard<'_, Vec<Event>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
