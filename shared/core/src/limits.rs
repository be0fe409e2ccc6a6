//! All bounds, except the lengths of names, which are defined beside their types in [`crate::id`].
//!
//! Bounds on which stored records depend are constants. If all of them are at their maximum at once, a record stays
//! within its byte budget until its end. A deployment may set the others, which are in [`Limits`].

use crate::duration::Millis;
use crate::error::Reject;
use crate::time::Timestamp;

pub use crate::id::{
    EVENT_ID_MAX, EVENT_NAME_MAX, EXECUTION_ID_MAX, ID_MAX, KIND_MAX, QUEUE_NAME_MAX, STEP_NAME_MAX,
    WORKER_MAX, WORKFLOW_MAX,
};

/// Longest error code, in bytes.
pub const ERROR_CODE_MAX: usize = 64;
/// Longest idempotency key, in bytes.
pub const IDEMPOTENCY_KEY_MAX: usize = 256;

/// Largest control record, in bytes as `DynamoDB` counts them. A write then costs one write unit, whatever the size
/// of the payloads.
pub const CONTROL_RECORD_BYTES: usize = 1024;
/// How many attempts a record keeps.
pub const ATTEMPTS_KEPT: usize = 3;
/// How many bytes of an error's message a past attempt in the record keeps.
pub const ATTEMPT_ERROR_BYTES: usize = 120;
/// How many bytes of the last error's message the record keeps. When the task ends, a longer message goes to a blob.
pub const ERROR_BYTES: usize = 240;
/// Largest details of a heartbeat, in bytes of their JSON.
pub const DETAILS_MAX: usize = 512;

/// Longest delay of a message in SQS.
pub const QUEUE_DELAY_MAX: Millis = Millis::from_secs(900);
/// Longest timeout, delay or backoff: one year.
pub const SPAN_MAX: Millis = Millis::from_secs(365 * 86_400);
/// Shortest and longest lease. The longest lease is the longest visibility timeout of SQS.
pub const LEASE_RANGE: (Millis, Millis) = (Millis::from_secs(1), Millis::from_secs(12 * 3600));
/// Longest long poll of a claim, as in SQS.
pub const WAIT_MAX: Millis = Millis::from_secs(20);
/// Shortest timeout of an execution, of a run, or of a workflow's code for failures.
pub const RUN_TIMEOUT_MIN: Millis = Millis::from_secs(1);
/// Most labels of a task or an execution.
pub const LABELS_MAX: usize = 16;
/// Longest name of a label, in characters.
pub const LABEL_NAME_MAX: usize = 64;
/// Longest value of a label, in characters.
pub const LABEL_VALUE_MAX: usize = 256;
/// Most records on a page of a list.
pub const PAGE_MAX: usize = 500;
/// How many records a page has if the request gives no number.
pub const PAGE_DEFAULT: usize = 50;
/// Most tasks that one claim returns, as many as one SQS receive returns messages.
pub const CLAIM_MAX: usize = 10;
/// Most messages that a worker asks for in one receive. SQS returns at most 10 of them, the embedded queue all.
pub const RECEIVE_MAX: usize = 100;
/// Deepest nesting of JSON.
pub const JSON_DEPTH_MAX: usize = 64;

/// Limits and defaults that a deployment may set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest input or output, in bytes. `DynamoDB` takes items of 400 KiB; this leaves space for the other
    /// attributes.
    pub payload_bytes: usize,
    /// Largest set of labels, in bytes of their JSON.
    pub labels_bytes: usize,
    /// Most entries in a batch.
    pub batch: usize,
    /// The length of a lease if the claim gives none.
    pub lease: Millis,
    /// A turn with a lease of at most this length doesn't need the tick for the timeouts of its inline steps: if its worker
    /// is lost, they are found when the lease ends. Zero where an earlier due slot costs nothing.
    pub short_lease: Millis,
    /// How long a record can be read after its end.
    pub retention: Millis,
    /// How many workers may be lost in a row before the task counts as poisoned.
    pub losses: u32,
    /// How long after a record needed a hint the tick first probes it.
    pub backstop: Millis,
    /// The longest time between two probes. A hint of this age is sent again whatever the state of its queue.
    pub backstop_max: Millis,
    /// The shortest time for which an idempotency key is kept.
    pub idempotency: Millis,
    /// The number of shards of the due index over which new records are spread.
    pub due_shards: u16,
    /// Most entries in the journal of one run: steps, sleeps, waits, captures and events together.
    pub journal_entries: usize,
    /// Most steps in one call of `join_all` and similar functions.
    pub fan_out: usize,
    /// Most events that may wait for an execution to receive them.
    pub pending_events: usize,
    /// Most steps and children of one execution that may be open at the same time.
    pub open_steps: usize,
    /// Largest memo, in bytes of its JSON.
    pub memo_bytes: usize,
    /// How many turns in a row may end without progress before the execution counts as poisoned.
    pub idle_turns: u32,
    /// Whether a record keeps the trace that it belongs to, and passes it on.
    pub carry_trace: bool,
    /// Since when this process has the store to itself. The workers that ran inside an earlier process died with it, so
    /// their leases are over. None where processes share the store.
    pub alone_since: Option<Timestamp>,
}

/// How much longer than other records a parent's steps and children are kept. A parent that is paused, stuck or
/// without workers can read their outcomes for this time on top of the retention.
pub const KEPT_FOR_PARENT: Millis = Millis::from_secs(30 * 86_400);

impl Limits {
    /// Whether a worker inside the process that had the store at this instant has died with it.
    pub fn outlived(&self, claimed_at: Timestamp) -> bool {
        self.alone_since.is_some_and(|since| claimed_at < since)
    }

    /// Whether another due slot costs two index writes: where processes share the store.
    pub(crate) const fn moves_cost(&self) -> bool {
        self.alone_since.is_none()
    }

    /// How long a record is kept after its end.
    pub const fn kept(&self, has_parent: bool) -> Millis {
        if has_parent { self.retention.saturating_add(KEPT_FOR_PARENT) } else { self.retention }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            payload_bytes: 350 * 1024,
            labels_bytes: 4 * 1024,
            batch: 100,
            lease: Millis::from_secs(60),
            short_lease: Millis::ZERO,
            retention: Millis::from_secs(30 * 86_400),
            losses: 3,
            backstop: Millis::from_secs(600),
            backstop_max: Millis::from_secs(6 * 3600),
            idempotency: Millis::from_secs(86_400),
            due_shards: 16,
            journal_entries: 10_000,
            fan_out: 1_000,
            pending_events: 1_000,
            open_steps: 2_000,
            memo_bytes: 4 * 1024,
            idle_turns: 10,
            carry_trace: false,
            alone_since: None,
        }
    }
}

/// Refuses a value above its limit. The error names the limit, the value and the maximum.
pub fn check(limit: &'static str, value: usize, maximum: usize) -> Result<(), Reject> {
    if value > maximum {
        return Err(Reject::LimitExceeded { limit, value, maximum });
    }
    Ok(())
}
