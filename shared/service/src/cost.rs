//! What each operation costs in the units that AWS bills. Tests check the code, the functions and the templates against
//! these figures, so a price that is calculated from them is measured.
//!
//! Write units are `DynamoDB`'s for records of up to 1 KB, including the indexes; read units are strongly consistent
//! ones; messages are those sent to SQS. The cost of receiving and deleting a message, and of the function's own time,
//! depends on batching and on the work: the caller adds it. Payloads are small: a larger one adds its own size.

/// The most that one operation consumes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Units {
    pub writes: f64,
    pub reads: f64,
    pub sends: f64,
    /// Requests that send them. Hints of remote steps that start together go in one request for each ten of them, if
    /// they have one queue.
    pub send_requests: f64,
    /// Messages among [`Units::sends`] whose function waits for the exact instant: see [`WAITED_OUT_MS`]. A message that
    /// the tick has held counts as a part of one.
    pub timed: f64,
    /// Bytes in the functions' logs at `info`, with the essential metrics, as `CloudWatch` counts them:
    /// [`LOG_LINE_BYTES`] more than each line has.
    pub log_bytes: f64,
    /// Bytes in the table and its indexes until the retention ends, as `DynamoDB` counts them: [`ITEM_BYTES`] more than
    /// each item and each index entry has.
    pub stored_bytes: f64,
}

impl Units {
    const fn of(writes: f64, reads: f64, sends: f64) -> Self {
        Self { writes, reads, sends, send_requests: sends, timed: 0.0, log_bytes: 0.0, stored_bytes: 0.0 }
    }

    /// All messages of the operation are for an instant.
    const fn timed(self) -> Self {
        Self { timed: self.sends, ..self }
    }

    /// All messages of the operation are for an instant, and were held by the tick.
    const fn held(self) -> Self {
        Self { timed: self.sends * (HELD_WAITED_OUT_MS / WAITED_OUT_MS), ..self }
    }

    const fn logging(self, log_bytes: f64) -> Self {
        Self { log_bytes, ..self }
    }

    const fn storing(self, stored_bytes: f64) -> Self {
        Self { stored_bytes, ..self }
    }

    #[must_use]
    pub fn times(self, count: f64) -> Self {
        Self {
            writes: self.writes * count,
            reads: self.reads * count,
            sends: self.sends * count,
            send_requests: self.send_requests * count,
            timed: self.timed * count,
            log_bytes: self.log_bytes * count,
            stored_bytes: self.stored_bytes * count,
        }
    }

    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            writes: self.writes + other.writes,
            reads: self.reads + other.reads,
            sends: self.sends + other.sends,
            send_requests: self.send_requests + other.send_requests,
            timed: self.timed + other.timed,
            log_bytes: self.log_bytes + other.log_bytes,
            stored_bytes: self.stored_bytes + other.stored_bytes,
        }
    }
}

/// What `CloudWatch` adds to each line of a log (`PutLogEvents` in its API reference).
pub const LOG_LINE_BYTES: f64 = 26.0;
/// What `DynamoDB` adds to each item and index entry that is stored ("Table size" in its pricing).
pub const ITEM_BYTES: f64 = 100.0;
/// How long a function waits on average for the exact instant of a timed message: SQS counts whole seconds, so the
/// message comes up to a second early.
pub const WAITED_OUT_MS: f64 = 500.0;
/// The same of a message that the tick holds until a whole number of seconds remains, and sends with others whose
/// fractions are nearly the same.
pub const HELD_WAITED_OUT_MS: f64 = 25.0;
/// How long a tick is longer that holds messages.
pub const HELD_MS: f64 = 1_000.0;

pub const SCHEDULE: Units = Units::of(2.0, 0.0, 1.0).logging(330.0).storing(450.0);
/// Claiming the task from its hint.
pub const CLAIM: Units = Units::of(1.0, 0.0, 0.0).logging(330.0);
/// What the claim of a remote step adds: a read of its execution.
pub const PARENT: Units = Units::of(0.0, 0.5, 0.0);
/// What an attempt's own timeout adds to the claim that starts it.
pub const ATTEMPT_TIMEOUT: Units = Units::of(2.0, 0.0, 1.0).timed();
pub const HEARTBEAT: Units = Units::of(1.0, 1.0, 0.0);
pub const COMPLETE: Units = Units::of(2.0, 1.0, 0.0).logging(350.0);
/// A failure with a retry.
pub const RETRY: Units = Units::of(1.0, 1.0, 1.0).timed().logging(620.0);
/// A final failure, or a deadline that passed.
pub const END_BADLY: Units = Units::of(3.0, 1.0, 0.0).logging(1_600.0);
/// The timer of a deadline.
pub const TIMER: Units = Units::of(0.0, 1.0, 1.0).timed();
pub const START: Units = Units::of(3.0, 0.0, 1.0).storing(700.0);
/// What a list of all executions adds to a start (`TICKOVER_LISTS=all`). A result costs nothing more; a failure moves the
/// entry.
pub const LISTED: Units = Units::of(1.0, 0.0, 0.0).storing(200.0);
/// Starting a turn.
pub const TURN: Units = Units::of(1.0, 1.0, 0.0).logging(330.0);
/// Recording an inline step's result. The last one before a close or a suspension costs nothing.
pub const INLINE_STEP: Units = Units::of(1.0, 0.0, 0.0).storing(150.0);
/// Suspending, the event or child's end, however late it comes, the turn that continues, and the entry of what came, which
/// is recorded before the next step begins. With a deadline, of the wait or of the execution, it is two write units more:
/// the due slot moves, where it would otherwise be removed and made again.
pub const WAIT: Units = Units::of(6.0, 2.0, 1.0).logging(330.0).storing(150.0);
/// The whole of a sleep of more than 15 minutes, up to which SQS delays a message: the tick sends its hint, from the
/// index alone ([`HANDOVER`]).
pub const SLEEP: Units = Units::of(4.0, 1.0, 1.0).held().logging(330.0).storing(150.0);
/// The whole of a sleep of up to 15 minutes that ends before the record's next probe.
pub const SHORT_SLEEP: Units = Units::of(2.0, 1.0, 1.0).timed().logging(330.0).storing(150.0);
/// A remote step of a fan-out, with everything that its execution does for it, apart from [`started_together`].
pub const REMOTE_STEP: Units =
    Units { send_requests: 0.0, ..Units::of(6.0, 2.55, 1.0) }.logging(840.0).storing(700.0);
/// Waiting for remote steps that were started together, however many: suspending, the last result, and the turn after
/// it. An inline step that follows has their entries recorded before it begins, for an [`INLINE_STEP`] more.
pub const JOIN: Units = Units::of(3.0, 2.0, 1.0).logging(700.0).storing(150.0);

/// Remote steps that one request sends the hints of, and whose entries the execution's record has room for.
const STEPS_TOGETHER: f64 = 10.0;

/// What so many remote steps that start together add: the requests that send their hints, and of many, the segments that
/// their entries need.
#[must_use]
pub fn started_together(steps: f64) -> Units {
    let writes = if steps > STEPS_TOGETHER { 0.5 * steps } else { 0.0 };
    Units { writes, send_requests: (steps / STEPS_TOGETHER).ceil(), ..Units::default() }
}
pub const CLOSE: Units = Units::of(2.0, 0.0, 0.0).logging(360.0);
/// A tick with nothing due, for each shard of the due index.
pub const IDLE_SHARD: Units = Units::of(0.0, 1.0, 0.0);
/// A tick itself, beside its shards: its record, and the parts of all lines.
pub const TICK: Units = Units::of(0.0, 2.5, 0.0).logging(300.0);
/// What a tick adds that sends timers or the hints of sleeps, however many: it records up to where.
pub const HANDOVER: Units = Units::of(1.0, 0.5, 0.0);
/// A minute of a queue with work: its record, which is read again every five seconds by each process, and in which a claim
/// writes once a minute up to where messages have been received.
pub const QUEUE_MINUTE: Units = Units::of(1.0, 7.0, 0.0);
/// The access log's line for a request to the HTTP API.
pub const REQUEST: Units = Units::of(0.0, 0.0, 0.0).logging(350.0);

/// Custom metrics in `CloudWatch`, with `Metrics=essential`.
pub mod metrics {
    /// Of the core: that the tick is alive.
    pub const CORE: u16 = 1;
    /// Of a queue with tasks that succeed: scheduled, how late they started, ended.
    pub const TASKS: u16 = 3;
    /// Of a queue with executions that succeed: how late turns started, ended.
    pub const EXECUTIONS: u16 = 2;
    /// Of a queue with tasks that don't: the other outcome, the timeouts, their lateness.
    pub const FAILURES: u16 = 3;
}

/// Alarms of one template, without `EventsQueue`. One that compares several metrics counts once for each, as in AWS's bill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alarms {
    /// With `Alarms=essential`.
    pub essential: u16,
    /// With `Alarms=all`.
    pub all: u16,
}

/// The alarms of `infra/core.yaml`.
pub const CORE_ALARMS: Alarms = Alarms { essential: 11, all: 39 };
/// The alarms of `infra/worker.yaml`.
pub const WORKER_ALARMS: Alarms = Alarms { essential: 4, all: 9 };
/// Queues of `infra/core.yaml` that Lambda polls. Each `infra/worker.yaml` adds one.
pub const CORE_QUEUES: u16 = 3;
/// Queues that `Priorities=on` adds to a queue.
pub const CLASS_QUEUES: u16 = 2;
/// The alarms of each of them.
pub const CLASS_ALARMS: Alarms = Alarms { essential: 3, all: 3 };
