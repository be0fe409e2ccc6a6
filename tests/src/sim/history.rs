//! Everything that happened in a run, in order: what was asked, decided, written, sent and answered, and what went
//! wrong. The checks know nothing else.

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
use tickover_core::task::command::Command;
use tickover_core::task::decision::Reply;
use tickover_core::task::hint::Hint;
use tickover_core::task::{Failure, Task};
use tickover_core::time::Timestamp;
use tickover_core::timer::{Timer, Wake};
use tickover_service::ServiceError;
use tickover_service::tick::TickReport;
use tickover_service::timers::Fired;

use execution::{Asked, Change, Happening, HeldTurn, Told};

/// Who did something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Actor {
    /// Nobody: the world itself.
    World,
    /// Somebody who schedules tasks.
    Client(u8),
    /// A process that works on tasks.
    Worker(u8),
    /// A function that is called once a minute.
    Ticker(u8),
    /// A function that reads the queue of timers.
    Timers(u8),
    /// Somebody who cancels, retries, pauses and resumes.
    Operator,
    /// Somebody who keeps queues busy.
    Filler,
    /// A function that is called with batches of a work queue's messages.
    Batch(u8),
}

#[derive(Clone, Debug)]
pub struct Event {
    /// When, by the world's clock.
    pub at: Timestamp,
    pub actor: Actor,
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum What {
    /// A call began.
    Called {
        call: u64,
        request: Request,
    },
    /// A call ended. One whose process died never does.
    Answered {
        call: u64,
        answer: Answer,
    },
    /// The rules were asked.
    Decided(Box<Decided>),
    /// A record changed. This is the truth, whatever anybody was told.
    Stored(Box<Stored>),
    /// Something happened to an execution.
    OfExecution(Box<Happening>),
    /// Something happened to a message.
    Message {
        queue: QueueName,
        /// What happened.
        fate: Fate,
        note: Note,
    },
    Fault(Fault),
}

impl What {
    /// How a task's record changed, if that is what happened.
    pub fn task_change(&self) -> Option<&Stored> {
        if let Self::Stored(stored) = self { Some(stored) } else { None }
    }

    /// How an execution's record changed, if that is what happened.
    pub fn execution_change(&self) -> Option<&Change> {
        let Self::OfExecution(happening) = self else { return None };
        if let Happening::Stored(change) = &**happening { Some(change) } else { None }
    }

    /// In which call the rules were asked, and at what time by the clock of whoever asked.
    pub fn decision(&self) -> Option<(u64, Timestamp)> {
        if let Self::Decided(decided) = self {
            return Some((decided.call, decided.now));
        }
        let Self::OfExecution(happening) = self else { return None };
        if let Happening::Decided(ruling) = &**happening { Some((ruling.call, ruling.now)) } else { None }
    }
}

/// What was asked of the service.
#[derive(Clone, Debug)]
pub enum Request {
    /// Make these tasks; an id that wasn't chosen is absent.
    Schedule(Vec<Option<TaskId>>),
    /// Take tasks from a queue.
    Claim(QueueName),
    /// Take tasks and turns from a queue.
    Work(QueueName),
    OfExecution(Asked),
    /// Take this task.
    ClaimById(TaskId),
    /// A worker's report on what it holds.
    Report(Held, Report),
    Cancel(TaskId),
    Retry(TaskId),
    /// Stop or resume handing out a queue's tasks.
    Pause(QueueName, bool),
    /// Sweep what is due, for this minute.
    Tick(Timestamp),
    /// Deal with a message of the queue of timers.
    Fire(Note),
}

/// A task in a worker's hands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub task: TaskId,
    /// Which of those that had this id.
    pub incarnation: Incarnation,
    /// The fence of the attempt.
    pub lease: LeaseId,
    /// What to report with.
    pub token: String,
}

#[derive(Clone, Debug)]
pub enum Report {
    /// Still at it.
    Heartbeat,
    /// Done, with this result.
    Complete(Json),
    /// It went wrong.
    Fail {
        error: Failure,
        /// Whether trying again can help.
        retryable: bool,
    },
    /// Given back.
    Release,
}

/// What the service said.
#[derive(Clone, Debug)]
pub enum Answer {
    /// These tasks exist.
    Scheduled(Vec<Result<Made, ServiceError>>),
    /// The caller holds these.
    Claimed(Vec<Held>),
    /// The caller holds these tasks and these turns.
    Taken(Vec<Held>, Vec<HeldTurn>),
    OfExecution(Told),
    /// The lease holds until then.
    Renewed {
        /// See [`tickover_service::tasks::work::Renewed`].
        lease_expires_at: Timestamp,
    },
    /// The attempt is over.
    Closed {
        /// Whether it had been before.
        duplicate: bool,
    },
    /// What an operator asked for is done.
    Done,
    /// What a tick did.
    Ticked(TickReport),
    /// What became of a message of the queue of timers.
    Fired(Fired),
    /// It should be seen again.
    NotFired(String),
    /// Neither done nor refused by the caller's own fault, or refused for a reason.
    Failed(ServiceError),
}

/// A task that a client was told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    pub task: TaskId,
    /// Which of those that had this id.
    pub incarnation: Incarnation,
    /// Whether it had existed before.
    pub existed: bool,
}

/// A decision, whether or not it was carried out.
#[derive(Clone, Debug)]
pub struct Decided {
    /// The call it was taken in.
    pub call: u64,
    /// The time that it was taken at, by the clock of whoever took it.
    pub now: Timestamp,
    /// Marks its writes.
    pub nonce: Nonce,
    /// The record that it was taken on.
    pub seen: Option<Box<Task>>,
    pub command: Command,
    pub outcome: Result<Reply, Reject>,
    /// What others were to be told.
    pub effects: Vec<Effect>,
}

/// A change of one record.
#[derive(Clone, Debug)]
pub struct Stored {
    pub before: Option<Task>,
    pub after: Task,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is in the queue, to be seen after that delay.
    Sent(Millis),
    /// Its sender thinks that it is in the queue, and it isn't.
    Dropped,
    /// There is a second one of it, to be seen after that delay.
    Duplicated(Millis),
    /// Somebody has it.
    Received,
    /// Somebody was given it, and never got it.
    ReceivedByNobody,
    /// Others see it although somebody has it.
    Shown,
}

/// What a message says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// That a task waits.
    Hint {
        task: TaskId,
        /// Which of those that had this id.
        incarnation: Incarnation,
        /// The record's version.
        version: u64,
    },
    /// That an execution's turn may begin.
    Turn {
        execution: ExecutionId,
        /// Which of those that had this id.
        incarnation: Incarnation,
    },
    /// That somebody is to look at these records.
    Timers(Vec<Timer>),
    /// Anything else, as it is.
    Other(String),
}

impl Note {
    /// Whether it has the rest of a slot handed over.
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
            return Self::Turn { execution: turn.id, incarnation: turn.inc };
        }
        match Wake::parse(body) {
            Ok(Wake::Timer(timer)) => Self::Timers(vec![timer]),
            Ok(Wake::Timers(timers)) => Self::Timers(timers),
            Ok(Wake::Sweep(_) | Wake::Handover(_) | Wake::Resume(_)) | Err(_) => Self::Other(body.to_owned()),
        }
    }
}

/// An item that the table has deleted by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// A task's, an execution's or a schedule's record.
    Record,
    Segment(SegmentKey),
    Join,
    Blob(BlobId),
    Key,
}

/// What takes several writes, and can be gone on with by others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Midst {
    /// An execution is closing, and what it left open isn't ended yet.
    Closing,
    /// Instants are sent to timers, or a shard is handed on, and that isn't noted yet.
    HandingOver,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The process died; it is started anew after that long.
    Crashed(Millis),
    /// The process stands still for that long.
    Frozen(Millis),
    /// The process's clock is ahead by so many milliseconds from now on.
    ClockJumped(i64),
    /// A write was applied, and its answer didn't come.
    LostAnswer,
    /// A write's answer didn't come, and it will be applied after that long.
    LateWrite(Millis),
    /// A call wasn't answered, and nothing had happened.
    Unavailable,
    /// A call was refused because there were too many.
    Throttled,
    /// A write was refused because of another one.
    Conflicted,
    /// A queue with messages said that it has none.
    WrongDepth,
    /// Minutes pass without a tick.
    MissedTicks(u64),
    /// A call waited in vain for a service that is away.
    Away,
    /// An item's time was over, and the table has deleted it.
    Deleted(Deleted),
    /// So many dead letters were sent again.
    Redriven(usize),
    /// A key of the table or of an index had had all the writes that it takes in a second.
    KeyThrottled,
    /// A function wasn't called any more with a message of a chain that had come to so many hops.
    LoopStopped(u32),
    /// An older build met what it can't read.
    TooNew,
    /// A process died in the middle of what takes several writes.
    Struck(Midst),
    /// A function wasn't called, because as many invocations as there can be were under way.
    NotInvoked,
    /// From now on, everything works.
    StormOver,
}

#[derive(Debug, Default)]
pub struct History(Mutex<Vec<Event>>);

impl History {
    /// Adds what just happened.
    pub fn note(&self, at: Timestamp, actor: Actor, what: What) {
        self.events().push(Event { at, actor, what });
    }

    /// How much has happened.
    pub fn len(&self) -> usize {
        self.events().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Everything that happened until now. The history is empty then.
    pub fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.events())
    }

    fn events(&self) -> std::sync::MutexGuard<'_, Vec<Event>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
